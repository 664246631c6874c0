import type { MemoryQuotaOptions, MemoryThresholds } from '../worker/memory.ts';
import { hostOf } from '../util/hosts.ts';
import type { ReadyStrategy, WorkerKernelSettings } from '../worker/worker-options.ts';
import type { Clock } from '../api/clock.ts';
import type { DataStore, Executor, SpillArea } from '../api/executor.ts';
import type { Logger } from '../api/plugin.ts';
import type { Provider } from '../api/token.ts';
import type { ModuleLimit } from '../shared/limits.ts';
import type { OnSchedulerLost, ReconnectRules } from '../shared/reconnect.ts';
import type { Transport } from '../api/transport.ts';
import { EVENT_LOOP_RESOURCE } from '../util/event-loop.ts';
import type { WorkerIdentity } from '../state/worker.ts';
import type { LocalPluginInput, RemotePlugins } from '../plugin-host/plugin-host.ts';

/** The rules by which a worker keeps its memory limit. */
export interface WorkerMemoryOptions {
  /** Default: `DEFAULT_MEMORY_THRESHOLDS`. */
  readonly thresholds?: Partial<MemoryThresholds>;
  /** Part of the limit that transfers under way may fill. 0: no bound. Default 0.1. */
  readonly transfer?: number;
  /** Admits tasks by what they are expected to use: a share of the limit, or bytes. 0, the default: no. */
  readonly quota?: number;
  /** With a quota: beyond it no task begins beside others. The same measures. 0, the default: none. */
  readonly hardLimit?: number;
  /** The area for results that have no room in memory. Default: they stay in memory. */
  readonly disk?: SpillArea;
  /** Bytes on disk that are never exceeded. Default Infinity. */
  readonly maxSpillBytes?: number;
  /** Milliseconds between two looks at the memory. Default 100. */
  readonly monitorIntervalMs?: number;
  /** Collects the garbage of this thread. Default: the engine does as it likes. */
  readonly collectGarbage?: () => void;
  /** The same for what came about lately, which takes next to no time. Default: the engine does it. */
  readonly collectYoungGarbage?: () => void;
}

/** Milliseconds of CPU time used so far. */
export interface CpuTimes {
  /** By the process of the worker. */
  readonly processMs: number;
  /** In which threads of this process could have run and had no processor, summed; undefined where no system tells. */
  readonly waitedMs?: number;
  /** By all programs of its machine. */
  readonly hostMs: number;
  /** Processors of the machine. */
  readonly hostCores: number;
}

/** The part of the identity that is given. Default: no resources, no memory limit, and a random `serverId`. */
type GivenIdentity = Partial<
  Omit<WorkerIdentity, 'address' | 'host' | 'threadCount' | 'language' | 'tellsRunEnds'>
>;

/** The options of a worker's host. */
export interface WorkerHostOptions extends GivenIdentity {
  readonly schedulerAddress: string;
  /** The address at which peers reach it: `scheme://host:port`; port 0 chooses a free one. */
  readonly listenAddress: string;
  /** The rules by which it keeps its memory limit. */
  readonly memory?: WorkerMemoryOptions;
  /** The rule that chooses the first of the ready tasks. Default `priority`. */
  readonly ready?: ReadyStrategy;
  /** By scheme. They must include those of both addresses. */
  readonly transports: ReadonlyMap<string, Transport>;
  /** The number of its threads is that of the worker. Closed together with the worker. */
  readonly executor: Executor;
  /** Of results in memory. */
  readonly store: DataStore;
  readonly clock: Clock;
  readonly log: Logger;
  /** Bytes that its process occupies. Default: results in memory, and what the executor says. */
  readonly measureMemory?: () => number;
  /** Measures CPU time. Default: none is told. */
  readonly measureCpu?: () => CpuTimes;
  /** True when the process belongs to others as well, such as other workers: its CPU is told as shared. */
  readonly sharesProcess?: boolean;
  /** Milliseconds by which its timers were late at most since the last call. Default: not told. */
  readonly takeLoopDelayMs?: () => number;
  /** The plugins of its nanny, which clients can register. Default: it has none. */
  readonly nannyPlugins?: Pick<RemotePlugins, 'agree' | 'answer'>;
  /**
   * Upper bound of the concurrent transfers to peers; further requests get the answer that this
   * worker is busy. Default 50.
   */
  readonly outgoingTransfersMax?: number;
  /** Milliseconds for a connection to be made and answered. Default 10 000. */
  readonly connectTimeoutMs?: number;
  /** Plugins that are set up before its first task. Default none. */
  readonly plugins?: readonly LocalPluginInput[];
  /** The folder that their paths are relative to. Default: the current folder. */
  readonly folder?: string;
  /** The places of the modules of plugins that clients register. Default: everywhere. */
  readonly modules?: ModuleLimit;
  /** Replaces parts of the worker (`tokens` of `yardmaster/plugin`); takes precedence over its plugins. Default none. */
  readonly provide?: readonly Provider[];
  /** The reaction when its scheduler is gone. Default `close`. */
  readonly onSchedulerLost?: OnSchedulerLost;
  /**
   * Milliseconds without an answer after which the scheduler counts as gone; Infinity: never. Default: five
   * minutes.
   */
  readonly schedulerTtlMs?: number;
  /** With `reconnect`: for how long and how often it tries. Default: a minute. */
  readonly reconnect?: ReconnectRules;
  /** Check every invariant after each event; slow, for tests. Default false. */
  readonly validate?: boolean;
  /** Called once when the worker has closed. */
  readonly onClose?: (end: WorkerEnd) => void;
}

/** The reason why a worker closed. */
export interface WorkerEnd {
  /** For people. */
  readonly reason: string;
  /** Set unless it was asked to close. */
  readonly error?: Error;
  /** The scheduler wants it to come back as a new process. */
  readonly restart?: boolean;
}

/** Part of the memory limit that transfers may fill. */
const TRANSFER_FRACTION = 0.1;

/** Bytes under way beyond which no transfer begins. */
function transferLimit({ memoryLimitBytes = 0, memory }: WorkerHostOptions): number {
  const fraction = memory?.transfer ?? TRANSFER_FRACTION;
  return memoryLimitBytes > 0 && fraction > 0 ? memoryLimitBytes * fraction : Infinity;
}

/** The quota by which tasks are admitted, if there is one. */
function quotaOf({
  memoryLimitBytes: limitBytes = 0,
  memory = {},
}: WorkerHostOptions): MemoryQuotaOptions | undefined {
  const { quota = 0, hardLimit = 0 } = memory;
  if (limitBytes === 0 || quota === 0) return undefined;
  const bytesOf = (amount: number): number => (amount <= 1 ? amount * limitBytes : amount);
  return {
    quotaBytes: bytesOf(quota),
    hardLimitBytes: hardLimit === 0 ? Infinity : bytesOf(hardLimit),
  };
}

/** The description that a worker sends when it registers. */
export function identityOf(
  options: WorkerHostOptions,
  address: string,
  serverId: string,
): WorkerIdentity {
  const { name = address, executor, resources = {}, memoryLimitBytes = 0 } = options;
  return {
    address,
    serverId,
    name,
    host: hostOf(address),
    threadCount: executor.threadCount,
    memoryLimitBytes,
    resources: executor.hasEventLoops === true ? withEventLoops(executor, resources) : resources,
    tellsRunEnds: true,
    speed: options.speed,
    pid: options.pid,
    nanny: options.nanny,
    versions: options.versions,
    localDirectory: options.localDirectory,
    services: options.services,
    extra: options.extra,
  };
}

function withEventLoops(
  { threadCount }: Executor,
  resources: Readonly<Record<string, number>>,
): Readonly<Record<string, number>> {
  return { [EVENT_LOOP_RESOURCE]: threadCount, ...resources };
}

/** Work that threads may have in line: enough to hide the way there and back, too little to matter. */
const SHORT_RUN_S = 0.001;

export function kernelSettings(
  options: WorkerHostOptions,
  identity: WorkerIdentity,
): WorkerKernelSettings {
  return {
    address: identity.address,
    threadCount: identity.threadCount,
    resources: identity.resources,
    ready: options.ready,
    incomingBytesMax: transferLimit(options),
    memoryQuota: quotaOf(options),
    shortRunS: options.executor.begin === undefined ? 0 : SHORT_RUN_S,
    validate: options.validate ?? false,
  };
}
