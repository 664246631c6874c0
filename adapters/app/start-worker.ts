import {
  type Clock,
  type Executor,
  type Logger,
  type Transport,
  YardmasterError,
} from '../../core/api/index.ts';
import { RECONNECT_TIMEOUT_MS } from '../../core/shared/reconnect.ts';
import { PluginResolver } from '../../core/plugin-host/loading/plugin-resolver.ts';
import { checkExecutor } from '../../core/plugin-host/contracts.ts';
import { Preloads } from '../../core/plugin-host/loading/preloads.ts';
import {
  type WorkerEnd,
  createWorker,
  type HostedWorker,
  type WorkerHostOptions,
} from '../../core/worker-host/create-worker.ts';
import type { WorkerMemoryOptions } from '../../core/worker-host/worker-options.ts';
import { checkCallOptions } from '../../core/shared/call-options.ts';
import { SystemClock } from '../clocks/index.ts';
import { collectGarbage, collectYoungGarbage } from '../executors/collect-garbage.ts';
import { MemoryStore, removeAbandoned, SpillFolder } from '../stores/index.ts';
import { AllowedModules, type ClusterReach } from '../tasks/index.ts';
import { hostTowards } from '../transports/tcp/address.ts';
import { limitLifetime } from './lifetime.ts';
import { textLogger } from './text-log.ts';
import { type StartWorkerOptions, WORKER_RULES } from './start-worker-options.ts';
import { byScheme } from '../../core/host/transport-table.ts';

/** Part of the memory limit that tasks may leave behind in a thread before it collects that. */
const TIDY_RATIO = 0.03;
/** The same without a limit, in bytes. */
const TIDY_BYTES = 64 * 1024 * 1024;

/** A worker that is registered. */
export interface RunningWorker {
  readonly name: string;
  readonly address: string;
  /** Resolves when it has been closed on request; rejects when it has ended otherwise. */
  readonly closed: Promise<void>;
  /** Resolves when it has closed, with the reason. */
  readonly ended: Promise<WorkerEnd>;
  close(): Promise<void>;
  /**
   * Takes it out of service and moves what only it holds to other workers. Never rejects.
   * @param timeoutMs - milliseconds for that
   */
  retire(timeoutMs: number): Promise<void>;
  /** Publishes a message under topics on the scheduler. */
  logEvent(topics: readonly string[], message: unknown): void;
}

/**
 * Starts a worker and registers it.
 *
 * @param scheduler - address of the scheduler
 * @throws YardmasterError `ERR_CONFIG`, `ERR_CONNECT`, `ERR_TIMEOUT`, `ERR_PROTOCOL`, `ERR_REGISTRATION`
 */
export async function startWorker(
  scheduler: string,
  options: StartWorkerOptions = {},
): Promise<RunningWorker> {
  checkCallOptions('startWorker', options, WORKER_RULES);
  const { clock = new SystemClock(), name, lifetime } = options;
  const { log = textLogger(name ?? 'worker') } = options;
  const transports = await transportsFor(scheduler, options, clock);
  const preloads = await loadPreloads(options, clock, log);
  await preloads?.setUp();
  let executor: Executor | undefined;
  try {
    const modules = allowedModules(options);
    const { onSchedulerLost, reconnect } = reconnection(options);
    const cluster = {
      scheduler,
      transports: [...transports.values()],
      modules,
      ...(onSchedulerLost === 'reconnect' ? { reconnect } : {}),
    };
    executor = await makeExecutor(options, clock, log, cluster);
    const host = await createWorker({
      ...hostOptions(scheduler, options, log),
      listenAddress: await ownAddress(scheduler, options.host),
      ...(modules === undefined ? {} : { modules }),
      transports,
      executor,
      clock,
      log,
    });
    if (lifetime !== undefined) limitLifetime(host, lifetime, { clock, log });
    return running(host, preloads);
  } catch (error) {
    await executor?.close();
    await preloads?.close();
    throw error;
  }
}

function running(host: HostedWorker, preloads: Preloads | undefined): RunningWorker {
  const ended = host.finished.then(async (end) => {
    await preloads?.close();
    return end;
  });
  const closed = ended.then(({ error }) => {
    if (error !== undefined) throw error;
  });
  closed.catch(() => undefined); // Its users handle the rejection.
  return {
    name: host.name,
    address: host.address,
    closed,
    ended,
    close: async () => {
      await host.close();
      await ended;
    },
    retire: (timeoutMs) => host.retire(timeoutMs),
    logEvent: (topics, message) => host.logEvent(topics, message),
  };
}

async function loadPreloads(
  { preload = [], folder = process.cwd() }: StartWorkerOptions,
  clock: Clock,
  log: Logger,
): Promise<Preloads | undefined> {
  if (preload.length === 0) return undefined;
  return Preloads.load(preload, new PluginResolver({}, folder), { role: 'worker', clock, log });
}

function hostOptions(
  scheduler: string,
  options: StartWorkerOptions,
  log: Logger,
): Omit<WorkerHostOptions, 'transports' | 'executor' | 'clock' | 'log' | 'listenAddress'> {
  const { name, resources, nanny, ready, plugins, folder } = options;
  const { services, extra, nannyPlugins } = options;
  return {
    schedulerAddress: scheduler,
    store: new MemoryStore(),
    memoryLimitBytes: options.memoryLimitBytes ?? 0,
    memory: memoryOptions(options, log),
    validate: options.validate ?? false,
    pid: process.pid,
    versions: { node: process.versions.node },
    localDirectory: new SpillFolder(options.memory?.spillFolder).parent,
    ...(nannyPlugins === undefined ? {} : { nannyPlugins }),
    ...(services === undefined ? {} : { services }),
    ...(extra === undefined ? {} : { extra }),
    ...(name === undefined ? {} : { name }),
    ...(nanny === undefined ? {} : { nanny }),
    ...(resources === undefined ? {} : { resources }),
    ...(ready === undefined ? {} : { ready }),
    ...(plugins === undefined ? {} : { plugins }),
    ...(folder === undefined ? {} : { folder }),
    ...(options.provide === undefined ? {} : { provide: options.provide }),
    ...reconnection(options),
    ...(options.isGuest === true ? {} : { measureMemory: () => process.memoryUsage.rss() }),
  };
}

/** Where it listens: a free port of the given host, or of the address by which it reaches its scheduler. */
async function ownAddress(scheduler: string, given: string | undefined): Promise<string> {
  const scheme = schemeOf(scheduler);
  if (given === undefined && scheme !== 'tcp' && scheme !== 'tls') return `${scheme}://local:0`;
  const host = given ?? (await hostTowards(scheduler, scheme));
  return `${scheme}://${host.includes(':') && !host.startsWith('[') ? `[${host}]` : host}:0`;
}

function reconnection({
  onSchedulerLost = 'close',
  reconnectTimeoutMs: timeoutMs = RECONNECT_TIMEOUT_MS,
  schedulerTtlMs,
}: StartWorkerOptions): Pick<
  WorkerHostOptions,
  'onSchedulerLost' | 'reconnect' | 'schedulerTtlMs'
> {
  const ttl = schedulerTtlMs === undefined ? {} : { schedulerTtlMs };
  return { onSchedulerLost, reconnect: { timeoutMs }, ...ttl };
}

/** The program around a guest runs whatever it likes. */
function allowedModules({
  allowModules,
  codeRoot,
  folder = process.cwd(),
  isGuest = false,
}: StartWorkerOptions): AllowedModules | undefined {
  if (!isGuest) return AllowedModules.of(allowModules, folder, codeRoot);
  if (allowModules === undefined && codeRoot === undefined) return undefined;
  return AllowedModules.of(allowModules ?? ['*'], folder, codeRoot);
}

/** A guest does not close for lack of memory: that would hardly free what its process occupies. */
function memoryOptions(
  { memory = {}, memoryLimitBytes = 0, isGuest = false }: StartWorkerOptions,
  log: Logger,
): WorkerMemoryOptions {
  if (memoryLimitBytes === 0) return { collectGarbage, collectYoungGarbage };
  const { target, spill, pause, terminate, transfer, maxSpill, monitorInterval } = memory;
  const { quota, hardLimit } = memory;
  const removed = removeAbandoned(memory.spillFolder);
  if (removed.length > 0) {
    log.info({ folders: removed }, 'deleted what workers that are no more had spilled');
  }
  return {
    thresholds: {
      ...(target === undefined ? {} : { target }),
      ...(spill === undefined ? {} : { spill }),
      ...(pause === undefined ? {} : { pause }),
      ...(isGuest ? { terminate: 0 } : terminate === undefined ? {} : { terminate }),
    },
    disk: new SpillFolder(memory.spillFolder),
    collectGarbage,
    collectYoungGarbage,
    ...(transfer === undefined ? {} : { transfer }),
    ...(quota === undefined ? {} : { quota }),
    ...(hardLimit === undefined ? {} : { hardLimit }),
    ...(maxSpill === undefined ? {} : { maxSpillBytes: maxSpill }),
    ...(monitorInterval === undefined ? {} : { monitorIntervalMs: monitorInterval }),
  };
}

function schemeOf(address: string): string {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//.exec(address)?.[1];
  if (scheme !== undefined) return scheme;
  throw new YardmasterError(
    'ERR_CONNECT',
    `"${address}" is not the address of a scheduler; use one like tcp://127.0.0.1:8786`,
    { address },
  );
}

async function transportsFor(
  scheduler: string,
  { transports: given = [], access, tls }: StartWorkerOptions,
  clock: Clock,
): Promise<Map<string, Transport>> {
  const scheme = schemeOf(scheduler);
  const transports = byScheme(given);
  if (scheme === 'tls') {
    const { TlsTransport } = await import('../transports/tls/index.ts');
    const known = transports.get(scheme);
    if (known instanceof TlsTransport) transports.set(scheme, known.forWorker(scheduler));
    const file = {
      ...(access === undefined ? {} : { access }),
      ...(tls === undefined ? {} : { certificates: tls }),
    };
    if (known === undefined) {
      transports.set(scheme, new TlsTransport(clock, { serves: 'data', scheduler, ...file }));
    }
  }
  if (scheme === 'tcp' && !transports.has(scheme)) {
    const { tcp } = await import('../dask/interop/tcp.ts');
    transports.set(scheme, tcp.create({ clock }, {}));
  }
  if (!transports.has(scheme)) {
    const known = [...transports.keys()].join(', ') || 'tcp';
    throw new YardmasterError(
      'ERR_CONNECT',
      `no transport speaks the scheme of ${scheduler}; this worker knows ${known}: name another one in its configuration as scheduler.transport, or give it in code as transports`,
      { address: scheduler },
    );
  }
  return transports;
}

async function makeExecutor(
  { executor = 'threads', threads, killGraceMs, memoryLimitBytes = 0 }: StartWorkerOptions,
  clock: Clock,
  log: Logger,
  cluster: ClusterReach,
): Promise<Executor> {
  if (typeof executor === 'object') {
    checkExecutor(executor);
    return executor;
  }
  const count = threads === undefined ? {} : { threadCount: threads };
  if (executor === 'inline') {
    const { InlineExecutor } = await import('../executors/inline/index.ts');
    return new InlineExecutor({ clock, cluster, ...count });
  }
  const { ThreadExecutor } = await import('../executors/threads/index.ts');
  const grace = killGraceMs === undefined ? {} : { abortGraceMs: killGraceMs };
  const tidyBytes = memoryLimitBytes > 0 ? TIDY_RATIO * memoryLimitBytes : TIDY_BYTES;
  return new ThreadExecutor({ clock, log, cluster, ...count, ...grace, tidyBytes });
}
