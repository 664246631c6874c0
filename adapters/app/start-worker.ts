import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import { resolve } from 'node:path';
import {
  type Clock,
  type Executor,
  type Logger,
  messageOf,
  type NannyHooks,
  type NannyPluginContext,
  type StoreSpec,
  type Transport,
  type UseEntry,
  YardmasterError,
} from '../../core/api/index.ts';
import { type OptionsOf, rulesOf, withoutSettings, writtenOf } from '../../core/shared/settings.ts';
import { IN_CODE } from '../../core/config/problems.ts';
import { WORKER_SCHEMA } from '../../core/config/schema.ts';
import type { WorkerConfig } from '../../core/config/types.ts';
import {
  type LocalEntry,
  LocalPlugins,
  RemotePlugins,
} from '../../core/plugin-host/plugin-host.ts';
import { resolverIn } from '../../core/plugin-host/module-files.ts';
import { loadExecutor, loadTransports, Preloads } from '../../core/plugin-host/load-extensions.ts';
import {
  ANY,
  checkCall,
  FIELDS,
  FLAG,
  LIST,
  LOG,
  type Rules,
  TEXT,
} from '../../core/shared/schema.ts';
import type { ModuleLimit } from '../../core/shared/limits.ts';
import { inBackground } from '../../core/shared/timers.ts';
import {
  createWorker,
  type HostedWorker,
  type WorkerEnd,
  type WorkerHostOptions,
} from '../../core/worker-host/create-worker.ts';
import type { CpuTimes, WorkerMemoryOptions } from '../../core/worker-host/worker-options.ts';
import { type ResultStoreOption, storeSpec } from '../client/options.ts';
import { SystemClock } from '../clocks/index.ts';
import { LoopDelay } from '../dashboard/process-figures.ts';
import { collectGarbage, collectYoungGarbage } from '../executors/collect-garbage.ts';
import { workerContext, type WorkerContext } from '../executors/worker-context.ts';
import { openResultStore } from '../stores/open-result-store.ts';
import { MemoryStore, removeAbandoned, SpillFolder } from '../stores/index.ts';
import { AllowedModules } from '../tasks/index.ts';
import { hostTowards } from '../transports/tcp/index.ts';
import { NETWORK_RULES, type NetworkOptions } from '../transports/open-transports.ts';
import { builtins } from './builtin-extensions.ts';
import { limitLifetime } from './lifetime.ts';
import { threadSpeed } from './thread-speed.ts';
import { type LogLevel, textLogger } from './text-log.ts';
import { configuration } from './config.ts';

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
  checkCall('startWorker', options, WORKER_RULES);
  const worker = writtenOf(SETTINGS, options);
  return runWorker(
    scheduler,
    configuration.loadObject({ worker }, options.folder).config.worker,
    options,
  );
}

/**
 * As {@link startWorker}, with settings that have been checked.
 * @throws YardmasterError as {@link startWorker}
 */
export async function runWorker(
  scheduler: string,
  config: WorkerConfig,
  parts: WorkerParts,
): Promise<RunningWorker> {
  const { clock = new SystemClock(), name } = parts;
  const { log = textLogger(name ?? 'worker') } = parts;
  const transports = await transportsFor(scheduler, parts, clock);
  const preloads = await loadPreloads(config, parts, clock, log);
  await preloads?.setUp();
  let context: WorkerContext | undefined;
  let executor: Executor | undefined;
  // The process of a guest is not its own.
  const loopDelay = parts.isGuest === true ? undefined : new LoopDelay();
  loopDelay?.start();
  const close = async (): Promise<void> => {
    loopDelay?.stop();
    context?.close();
    await preloads?.close();
  };
  try {
    const modules = allowedModules(config, parts);
    const { onSchedulerLost, reconnectTimeout, schedulerTtl: schedulerTtlMs } = config;
    const { resources, memoryLimit: memoryLimitBytes, ready, plugins } = config;
    const reconnect = { timeoutMs: reconnectTimeout };
    context = workerContext({
      ...{ clock, log, threadCount: config.threads ?? availableParallelism() },
      killGraceMs: config.killGrace,
      tidyBytes: memoryLimitBytes > 0 ? TIDY_RATIO * memoryLimitBytes : TIDY_BYTES,
      cluster: {
        scheduler,
        transports: [...transports.values()],
        modules,
        reconnect: onSchedulerLost === 'reconnect' ? reconnect : undefined,
        resultStore: await storeOf(config, parts),
      },
    });
    executor = (await executorOf(config, parts))(context);
    const { nanny, nannyPlugins, services, extra, folder, provide, validate = false } = parts;
    const host = await createWorker({
      ...{ schedulerAddress: scheduler, listenAddress: await ownAddress(scheduler, parts.host) },
      ...{ transports, executor, store: new MemoryStore(), clock, log },
      ...{ name, nanny, nannyPlugins, services, extra, folder, provide, validate, modules },
      ...{ resources, memoryLimitBytes, ready, plugins },
      ...{ onSchedulerLost, reconnect, schedulerTtlMs },
      memory: memoryOptions(config, parts, log),
      pid: process.pid,
      versions: { node: process.versions.node },
      localDirectory: new SpillFolder(config.memory.spillFolder).parent,
      // The process of a guest is not its own, and in virtual time nobody uses CPU.
      ...(parts.isGuest === true ? {} : { measureMemory: () => process.memoryUsage.rss() }),
      ...(loopDelay === undefined ? {} : { takeLoopDelayMs: () => latestDelayMs(loopDelay) }),
      ...(clock instanceof SystemClock ? { measureCpu } : {}),
      ...(clock instanceof SystemClock && parts.isGuest !== true ? { speed: threadSpeed() } : {}),
      sharesProcess: parts.isGuest === true,
    });
    limitLifetime(host, config, { clock, log });
    return running(host, close);
  } catch (error) {
    await executor?.close();
    await close();
    throw error;
  }
}

/** Of this process and this machine. O(cores + threads of the process), half a millisecond for a dozen threads. */
function measureCpu(): CpuTimes {
  const { user, system } = process.cpuUsage();
  let hostMs = 0;
  const cores = cpus();
  for (const { times } of cores) hostMs += times.user + times.nice + times.sys + times.irq;
  const waitedMs = measureCpuWait();
  return { processMs: (user + system) / 1000, waitedMs, hostMs, hostCores: cores.length };
}

/** Milliseconds that threads of this process waited for a processor, as Linux tells; undefined elsewhere. */
function measureCpuWait(): number | undefined {
  const folder = '/proc/self/task';
  try {
    const waitedNs = readdirSync(folder).map((thread) =>
      Number(readFileSync(`${folder}/${thread}/schedstat`, 'latin1').split(' ')[1]),
    );
    return waitedNs.reduce((sum, ns) => sum + ns, 0) / 1e6;
  } catch {
    return undefined; // Another system, or a thread has ended meanwhile.
  }
}

/** The most that timers of this process were late since the call before, in milliseconds. */
function latestDelayMs(delay: LoopDelay): number {
  return Math.round(delay.take(1)[0] ?? 0);
}

/** The store of results for the clients of tasks; that of a module is tried. */
async function storeOf(
  { resultStore }: WorkerConfig,
  { folder }: WorkerParts,
): Promise<StoreSpec | undefined> {
  if (resultStore === undefined) return undefined;
  const spec = configuredStore(resultStore, folder);
  if ('use' in spec) await openResultStore(spec);
  return spec;
}

/**
 * The store that a configuration names. Its module is found as from beside the configuration, wherever a thread loads it.
 * @throws YardmasterError `ERR_PLUGIN_LOAD` when it is not there
 */
export function configuredStore(option: ResultStoreOption, folder = '.'): StoreSpec {
  const spec = storeSpec(option, folder);
  if (!('use' in spec)) return spec;
  return {
    ...spec,
    use: resolverIn(resolve(folder)).pathOf(spec.use, 'store'),
  };
}

function executorOf(
  { executor = { use: 'threads' } }: WorkerConfig,
  { folder = process.cwd() }: WorkerParts,
): ReturnType<typeof loadExecutor> {
  const place = { origin: IN_CODE, optionsAt: ['worker', 'executor', 'options'] };
  return loadExecutor(executor, resolverIn(folder, builtins), place);
}

/** @param close - to be called when the worker has closed */
function running(host: HostedWorker, close: () => Promise<void>): RunningWorker {
  const ended = host.finished.then(async (end) => {
    await close();
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
  { preload }: WorkerConfig,
  { folder = process.cwd() }: WorkerParts,
  clock: Clock,
  log: Logger,
): Promise<Preloads | undefined> {
  if (preload.length === 0) return undefined;
  return Preloads.load(preload, resolverIn(folder), {
    role: 'worker',
    clock,
    log,
  });
}

/** The address at which it listens: a free port of the given host, or of the address by which it reaches its scheduler. */
async function ownAddress(scheduler: string, given: string | undefined): Promise<string> {
  const scheme = schemeOf(scheduler);
  if (given === undefined && scheme !== 'tcp' && scheme !== 'tls') return `${scheme}://local:0`;
  const host = given ?? (await hostTowards(scheduler, scheme));
  return `${scheme}://${host.includes(':') && !host.startsWith('[') ? `[${host}]` : host}:0`;
}

/** The program around a guest runs whatever it likes. */
function allowedModules(
  { allowModules }: WorkerConfig,
  { codeRoot, folder = process.cwd(), isGuest = false }: WorkerParts,
): AllowedModules | undefined {
  if (!isGuest) return AllowedModules.of(allowModules, folder, codeRoot);
  if (allowModules === undefined && codeRoot === undefined) return undefined;
  return AllowedModules.of(allowModules ?? ['*'], folder, codeRoot);
}

/** A guest does not close for lack of memory: that would hardly free what its process occupies. */
function memoryOptions(
  { memory, memoryLimit }: WorkerConfig,
  { isGuest = false }: WorkerParts,
  log: Logger,
): WorkerMemoryOptions {
  if (memoryLimit === 0) return { collectGarbage, collectYoungGarbage };
  const { target, spill, pause, transfer, quota, hardLimit, spillFolder } = memory;
  const removed = removeAbandoned(spillFolder);
  if (removed.length > 0) {
    log.info({ folders: removed }, 'deleted what workers that are no more had spilled');
  }
  return {
    thresholds: { target, spill, pause, terminate: isGuest ? 0 : memory.terminate },
    disk: new SpillFolder(spillFolder),
    ...{ collectGarbage, collectYoungGarbage, transfer, quota, hardLimit },
    maxSpillBytes: memory.maxSpill,
    monitorIntervalMs: memory.monitorInterval,
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
  { transports: given = [], access, tls, folder = process.cwd() }: WorkerParts,
  clock: Clock,
): Promise<Map<string, Transport>> {
  const scheme = schemeOf(scheduler);
  const transports = await loadTransports(given, resolverIn(folder, builtins), clock);
  if (scheme === 'tls') {
    const { TlsTransport } = await import('../transports/tls.ts');
    const known = transports.get(scheme);
    if (known instanceof TlsTransport) transports.set(scheme, known.forWorker(scheduler));
    const file = {
      access,
      certificates: tls,
    };
    if (known === undefined) {
      transports.set(scheme, new TlsTransport(clock, { serves: 'data', scheduler, ...file }));
    }
  }
  if (scheme === 'tcp' && !transports.has(scheme)) {
    const { tcp } = await import('../peers/tcp.ts');
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

/** The others are of what watches a worker in a separate process, and of that process. */
const SETTINGS = withoutSettings(
  WORKER_SCHEMA,
  ...(['nanny', 'stuckAfter', 'nannyPlugins', 'nannyPreload', 'env'] as const),
);

/** Settings of the section `worker` of a configuration, and what the worker is made of. */
export interface StartWorkerOptions extends OptionsOf<typeof SETTINGS>, WorkerParts {}

type HostParts = Pick<
  WorkerHostOptions,
  'nanny' | 'nannyPlugins' | 'services' | 'extra' | 'provide' | 'validate'
>;

/** The parts of a worker besides its settings. Everything has a default. */
export interface WorkerParts extends NetworkOptions, HostParts {
  /** Default: its address. */
  readonly name?: string;
  /**
   * The host under which others reach it. Default: the address by which it reaches its scheduler, which is
   * 127.0.0.1 on the machine of the scheduler; `local` in memory.
   */
  readonly host?: string;
  /** Shares its process with other workers: what it holds counts as its memory. Default false. */
  readonly isGuest?: boolean;
  /** Default: warnings and errors on the error stream. */
  readonly log?: Logger;
  /**
   * The folder that the paths of plugins, preloaded modules and permitted modules are relative to. Default: the current folder.
   */
  readonly folder?: string;
  /**
   * The project in which modules of tasks are looked for that clients name relative to theirs. Default: the project of
   * the current folder (the nearest folder with a `package.json`).
   */
  readonly codeRoot?: string;
}

const WORKER_RULES: Rules<StartWorkerOptions> = {
  ...rulesOf(SETTINGS),
  ...NETWORK_RULES,
  name: TEXT,
  host: TEXT,
  nanny: TEXT,
  nannyPlugins: ANY,
  services: FIELDS,
  extra: FIELDS,
  isGuest: FLAG,
  log: LOG,
  folder: TEXT,
  codeRoot: TEXT,
  provide: LIST,
  validate: FLAG,
};

/** All that a worker in a separate process is told by what starts it; plain data. */
export interface WorkerSettings {
  /** Address of the scheduler. */
  readonly scheduler: string;
  readonly config: WorkerConfig;
  /** `scheduler.transport`, by which workers reach the scheduler and each other. */
  readonly transport?: UseEntry;
  /** The folder that the paths of the configuration are relative to. */
  readonly folder: string;
  readonly name?: string;
  readonly host?: string;
  readonly codeRoot?: string;
  /** Path of the access file. Default: as the environment says. */
  readonly access?: string;
  /** It may listen beyond this machine without encryption and keys. */
  readonly insecure?: boolean;
  /** Errors are shown with their stack. */
  readonly verbose?: boolean;
  readonly logFormat: 'text' | 'json';
  readonly logLevel: LogLevel;
}

/**
 * The settings as they can be sent to another process. Plugins of the nanny stay with the nanny.
 * @throws YardmasterError `ERR_CONFIG` when another plugin is given in code, which cannot travel
 */
export function sendable(settings: WorkerSettings): WorkerSettings {
  const { config, transport } = settings;
  const named = (field: string, entries: readonly UseEntry[]) =>
    entries.map(({ use }, index) => ({ field: `${field}[${index}]`, use }));
  const code = [
    ...named('worker.plugins', config.plugins),
    ...named('worker.preload', config.preload),
    { field: 'worker.executor', use: config.executor?.use ?? '' },
    { field: 'scheduler.transport', use: transport?.use ?? '' },
  ].find(({ use }) => typeof use !== 'string');
  if (code !== undefined) {
    const { field } = code;
    throw new YardmasterError(
      'ERR_CONFIG',
      `${field} is given in code, which cannot be sent to workers in separate processes; name its module`,
      { field },
    );
  }
  return { ...settings, config: { ...config, nannyPlugins: [], nannyPreload: [] } };
}

interface NannyPluginsOptions {
  /** Of the worker. */
  readonly name: string;
  readonly plugins: readonly LocalEntry[];
  readonly preload: readonly UseEntry[];
  /** The folder that their paths are relative to. */
  readonly folder: string;
  /** The places of the modules of plugins that clients register. Default: everywhere. */
  readonly modules?: ModuleLimit;
  readonly clock: Clock;
  readonly log: Logger;
}

interface NannyOfPlugins {
  restart(): void;
  close(): Promise<void>;
}

export class NannyPlugins {
  /** For the nanny to call. */
  readonly hooks: NannyHooks;
  /** Those that clients register with the scheduler. */
  readonly remote: RemotePlugins;
  private nanny: NannyOfPlugins | undefined;

  private constructor(
    private readonly plugins: LocalPlugins<NannyPluginContext, NannyHooks>,
    private readonly preloads: Preloads,
    log: Logger,
  ) {
    this.remote = new RemotePlugins(plugins, (error) => {
      log.error({ err: error }, `a plugin of this nanny is not there: ${messageOf(error)}`);
    });
    this.hooks = {
      processStarting: (environment) => plugins.call('processStarting', environment),
      processRegistered: (address) => plugins.call('processRegistered', address),
      processEnded: (ending) => plugins.call('processEnded', ending),
    };
  }

  /**
   * Loads modules and sets plugins up, before the nanny is there.
   * @throws YardmasterError `ERR_PLUGIN_LOAD`, `ERR_CONFIG`, `ERR_PLUGIN_SETUP`; then nothing is left
   */
  static async start(options: NannyPluginsOptions): Promise<NannyPlugins> {
    const { name: worker, folder, clock, log } = options;
    const resolver = resolverIn(folder);
    const preloads = await Preloads.load(options.preload, resolver, { role: 'nanny', clock, log });
    const made: { self?: NannyPlugins } = {};
    const plugins = new LocalPlugins<NannyPluginContext, NannyHooks>({
      kind: 'nanny-plugin',
      resolver,
      modules: options.modules,
      clock,
      log,
      context: (base) => ({ ...base, worker, restart: () => made.self?.nanny?.restart() }),
      onCrash: () => {
        inBackground(made.self?.nanny?.close() ?? Promise.resolve(), (error) => {
          log.error({ err: error }, 'the nanny could not close its worker');
        });
      },
    });
    const self = new NannyPlugins(plugins, preloads, log);
    made.self = self;
    await preloads.setUp();
    try {
      await plugins.addConfigured(options.plugins);
      return self;
    } catch (error) {
      await self.close();
      throw error;
    }
  }

  serve(nanny: NannyOfPlugins): void {
    this.nanny = nanny;
  }

  /** Tears everything down. Never rejects. */
  async close(): Promise<void> {
    await this.plugins.close();
    await this.preloads.close();
  }
}
