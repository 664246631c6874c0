import {
  type Clock,
  type Executor,
  type Logger,
  type NannyHooks,
  type NannyPluginContext,
  type Transport,
  type UseEntry,
  YardmasterError,
} from '../../core/api/index.ts';
import { loadConfigObject } from '../../core/config/load.ts';
import type {
  Config,
  ConfigInput,
  PluginEntry,
  WorkerConfig,
  WorkerMemoryConfig,
} from '../../core/config/types.ts';
import { checkExecutor } from '../../core/plugin-host/contracts.ts';
import {
  type LocalEntry,
  type LocalPluginInput,
  LocalPlugins,
  RemotePlugins,
} from '../../core/plugin-host/local-plugins.ts';
import { PluginResolver } from '../../core/plugin-host/plugin-resolver.ts';
import { Preloads } from '../../core/plugin-host/preloads.ts';
import { byScheme } from '../../core/plugin-host/transport-table.ts';
import {
  AMOUNTS,
  ANY,
  BYTES,
  checkCallOptions,
  CLOCK,
  DURATION,
  either,
  FIELDS,
  FLAG,
  LIST,
  LOG,
  type ModuleLimit,
  objectWith,
  oneOf,
  type OptionRules,
  TEXT,
  wholeNumber,
} from '../../core/shared/call-options.ts';
import { type OnSchedulerLost, RECONNECT_TIMEOUT_MS } from '../../core/shared/reconnect.ts';
import { inBackground } from '../../core/shared/timers.ts';
import {
  createWorker,
  type HostedWorker,
  type WorkerEnd,
  type WorkerHostOptions,
} from '../../core/worker-host/create-worker.ts';
import type { WorkerMemoryOptions } from '../../core/worker-host/worker-options.ts';
import { SystemClock } from '../clocks/index.ts';
import { collectGarbage, collectYoungGarbage } from '../executors/collect-garbage.ts';
import { MemoryStore, removeAbandoned, SpillFolder } from '../stores/index.ts';
import { AllowedModules, type ClusterReach } from '../tasks/index.ts';
import { hostTowards } from '../transports/tcp/index.ts';
import type { CertificateFiles } from '../transports/tls/index.ts';
import { type Lifetime, limitLifetime } from './lifetime.ts';
import { textLogger } from './text-log.ts';

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
    nannyPlugins,
    services,
    extra,
    name,
    nanny,
    resources,
    ready,
    plugins,
    folder,
    provide: options.provide,
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
    transfer,
    quota,
    hardLimit,
    maxSpillBytes: maxSpill,
    monitorIntervalMs: monitorInterval,
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
    const { InlineExecutor } = await import('../executors/inline.ts');
    return new InlineExecutor({ clock, cluster, ...count });
  }
  const { ThreadExecutor } = await import('../executors/threads/index.ts');
  const grace = killGraceMs === undefined ? {} : { abortGraceMs: killGraceMs };
  const tidyBytes = memoryLimitBytes > 0 ? TIDY_RATIO * memoryLimitBytes : TIDY_BYTES;
  return new ThreadExecutor({ clock, log, cluster, ...count, ...grace, tidyBytes });
}

/** How to start a worker. Everything has a default. */
export interface StartWorkerOptions {
  /** Default: its address. */
  readonly name?: string;
  /** Tasks at once. Default: the number of processors; 1 for `inline`. */
  readonly threads?: number;
  /**
   * Where tasks run: in threads, in the thread of the worker, or in an executor of your own, which says
   * how many tasks it takes at once. The worker closes it. Default `threads`.
   */
  readonly executor?: 'threads' | 'inline' | Executor;
  readonly resources?: Readonly<Record<string, number>>;
  /**
   * What runs first of the tasks that are ready: `priority`, as the scheduler says, or `lifo`, what
   * became ready last. Default `priority`.
   */
  readonly ready?: 'priority' | 'lifo';
  /** Bytes; 0: unlimited. Default 0. */
  readonly memoryLimitBytes?: number;
  /** How it keeps that limit. */
  readonly memory?: Partial<WorkerMemoryConfig>;
  /**
   * Milliseconds that an aborted task may continue before its thread is terminated and replaced;
   * Infinity: without limit. For `threads`. Default 5000.
   */
  readonly killGraceMs?: number;
  /**
   * The host under which others reach it. Default: the address by which it reaches its scheduler, which is
   * 127.0.0.1 on the machine of the scheduler; `local` in memory.
   */
  readonly host?: string;
  /** Name of what starts another worker in its place when it restarts. Default: nothing does. */
  readonly nanny?: string;
  /** The plugins of its nanny, which clients can register. Default: it has none. */
  readonly nannyPlugins?: WorkerHostOptions['nannyPlugins'];
  /** Addresses of other services of its process by name, for `client.identity()`. Default none. */
  readonly services?: Readonly<Record<string, string>>;
  /** Further properties for `client.identity()`; plain data. Default none. */
  readonly extra?: Readonly<Record<string, unknown>>;
  /** Shares its process with other workers: what it holds counts as its memory. Default false. */
  readonly isGuest?: boolean;
  /**
   * Path of the access file, for a scheduler at `tls://…`. Default: `YARDMASTER_ACCESS`, else what the
   * scheduler left on this machine.
   */
  readonly access?: string;
  /** Paths of certificates of one's own (PEM) in the place of an access file. */
  readonly tls?: CertificateFiles;
  /** Ways to reach others besides `tcp` and `tls`. */
  readonly transports?: readonly Transport[];
  readonly clock?: Clock;
  /** Default: warnings and errors on the error stream. */
  readonly log?: Logger;
  /** Plugins that are set up before its first task. Default none. */
  readonly plugins?: readonly LocalPluginInput[];
  /** Modules that are loaded before anything else. Default none. */
  readonly preload?: readonly UseEntry[];
  /** What the paths of both are relative to. Default: the current folder. */
  readonly folder?: string;
  /**
   * Where the modules may be that clients name, of tasks and plugins: folders and files, which start with `.` or `/`,
   * or packages; `*` permits every file. Default: the project of the current folder. `isGuest`: everywhere.
   */
  readonly allowModules?: readonly string[];
  /**
   * The project in which modules of tasks are looked for that clients name relative to theirs. Default: the project of
   * the current folder (the nearest folder with a `package.json`).
   */
  readonly codeRoot?: string;
  /** Replaces collaborators of the worker (`yardmaster/worker-host`). Default none. */
  readonly provide?: WorkerHostOptions['provide'];
  /** After which it retires and closes. Default: none. */
  readonly lifetime?: Lifetime;
  /** When the scheduler is gone: say so and close, or try to come back. Default `close`. */
  readonly onSchedulerLost?: OnSchedulerLost;
  /** Milliseconds for coming back; Infinity: for ever. Default 60 000. */
  readonly reconnectTimeoutMs?: number;
  /** Milliseconds without an answer after which the scheduler counts as gone; Infinity: never. Default 300 000. */
  readonly schedulerTtlMs?: number;
  /** Checks every invariant after each event; slow, for tests. Default false. */
  readonly validate?: boolean;
}

/** What each option of `startWorker` has to be. */
const WORKER_RULES: OptionRules<StartWorkerOptions> = {
  name: TEXT,
  threads: wholeNumber(1),
  executor: either(oneOf('threads', 'inline'), objectWith('run')),
  resources: AMOUNTS,
  ready: oneOf('priority', 'lifo'),
  memoryLimitBytes: BYTES,
  memory: FIELDS,
  killGraceMs: DURATION,
  host: TEXT,
  nanny: TEXT,
  nannyPlugins: ANY,
  services: FIELDS,
  extra: FIELDS,
  isGuest: FLAG,
  access: TEXT,
  tls: FIELDS,
  transports: LIST,
  clock: CLOCK,
  log: LOG,
  plugins: LIST,
  preload: LIST,
  folder: TEXT,
  allowModules: LIST,
  codeRoot: TEXT,
  provide: LIST,
  lifetime: FIELDS,
  onSchedulerLost: oneOf('close', 'reconnect'),
  reconnectTimeoutMs: DURATION,
  schedulerTtlMs: DURATION,
  validate: FLAG,
};

/** The part of a configuration that workers take as it is, and what its paths are relative to. */
export interface WorkerSettings {
  readonly worker: Partial<WorkerConfig>;
  readonly folder: string;
  /** `scheduler.transport`, by which workers reach the scheduler and each other. */
  readonly transport?: UseEntry;
}

/** What a worker takes from its configuration as it is. */
export function settingsOf({ worker, folder }: WorkerSettings): Partial<StartWorkerOptions> {
  const { onSchedulerLost, reconnectTimeout, schedulerTtl, plugins, preload } = worker;
  const { lifetime, retireTimeout, allowModules } = worker;
  return {
    folder,
    allowModules,
    onSchedulerLost,
    reconnectTimeoutMs: reconnectTimeout,
    schedulerTtlMs: schedulerTtl,
    plugins,
    preload,
    ...(lifetime === undefined || !Number.isFinite(lifetime)
      ? {}
      : {
          lifetime: {
            lifetimeMs: lifetime,
            staggerMs: worker.lifetimeStagger ?? 0,
            restart: worker.lifetimeRestart ?? false,
            retireMs: retireTimeout,
          },
        }),
  };
}

/**
 * The same for a worker in a separate process, as a value of `--settings`.
 * @throws YardmasterError `ERR_CONFIG` when a plugin is given in code, which cannot travel
 */
export function settingsText(
  { worker: config, scheduler: { transport } }: Pick<Config, 'worker' | 'scheduler'>,
  folder: string,
): string {
  const worker: ConfigInput['worker'] = {
    onSchedulerLost: config.onSchedulerLost,
    reconnectTimeout: timeText(config.reconnectTimeout),
    schedulerTtl: timeText(config.schedulerTtl),
    lifetime: timeText(config.lifetime),
    lifetimeStagger: timeText(config.lifetimeStagger),
    lifetimeRestart: config.lifetimeRestart,
    retireTimeout: timeText(config.retireTimeout),
    // The program that starts a cluster runs whatever it likes.
    allowModules: config.allowModules ?? ['*'],
    env: config.env,
    plugins: named(config.plugins, 'worker.plugins'),
    preload: named(config.preload, 'worker.preload'),
  };
  const wire = transport === undefined ? undefined : byName(transport, 'scheduler.transport');
  return JSON.stringify({ worker, folder, transport: wire });
}

/** What {@link settingsText} wrote. */
export function readSettings(text: string): WorkerSettings {
  const {
    worker: given,
    folder,
    transport,
  } = JSON.parse(text) as {
    readonly worker: NonNullable<ConfigInput['worker']>;
    readonly folder: string;
    readonly transport?: UseEntry;
  };
  const { worker } = loadConfigObject({ worker: given }, folder).config;
  const entries = Object.entries(worker).filter(([name]) => name in given);
  return { worker: Object.fromEntries(entries), folder, transport };
}

/** A time as flags and configurations are written. */
export function timeText(ms: number): string {
  return Number.isFinite(ms) ? `${ms} ms` : 'inf';
}

function named(
  entries: readonly (UseEntry | PluginEntry)[],
  field: string,
): readonly { readonly use: string }[] {
  return entries.map((entry, index) => byName(entry, `${field}[${index}]`));
}

function byName(entry: UseEntry, field: string): { readonly use: string } {
  const { use } = entry;
  if (typeof use === 'string') return { ...entry, use };
  throw new YardmasterError(
    'ERR_CONFIG',
    `${field} is given in code, which cannot be sent to workers in separate processes; name its module`,
    { field },
  );
}

/** What a nanny is given by its configuration. */
interface NannyPluginsOptions {
  /** Of the worker. */
  readonly name: string;
  readonly plugins: readonly LocalEntry[];
  readonly preload: readonly UseEntry[];
  /** What their paths are relative to. */
  readonly folder: string;
  /** Where the modules of those may be that clients register. Default: everywhere. */
  readonly modules?: ModuleLimit;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The nanny, as its plugins see it. */
interface NannyOfPlugins {
  restart(): void;
  close(): Promise<void>;
}

/** The plugins of one nanny. */
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
      const why = error instanceof Error ? error.message : String(error);
      log.error({ err: error }, `a plugin of this nanny is not there: ${why}`);
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
    const resolver = new PluginResolver({}, folder);
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

  /** The nanny is there. */
  serve(nanny: NannyOfPlugins): void {
    this.nanny = nanny;
  }

  /** Tears everything down. Never rejects. */
  async close(): Promise<void> {
    await this.plugins.close();
    await this.preloads.close();
  }
}
