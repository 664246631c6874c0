import { SmallSet } from '../util/small-set.ts';
import { Tally } from '../util/tally.ts';
import type { CostModel } from './cost-model.ts';
import type { TaskPrefix } from './groups.ts';
import { MemoryState, UnmanagedHistory } from './memory.ts';
import { ProcessingList, ReplicaList } from './place-list.ts';
import type { TaskState } from './task.ts';

/** Status of a worker, mirrored from the worker itself. */
export type WorkerStatus = 'running' | 'paused' | 'closing-gracefully' | 'closing' | 'closed';

/** What a worker tells about itself when it registers. It does not change afterwards. */
export interface WorkerIdentity {
  /** Where peers reach it: `tcp://host:port`. Unique among registered workers. */
  readonly address: string;
  /** Unique id of the worker process: a restarted worker has another one at the same address. */
  readonly serverId: string;
  /** A name for people and restrictions; unique among registered workers. Default: the address. */
  readonly name: string;
  readonly host: string;
  readonly threadCount: number;
  /** 0 = unlimited. */
  readonly memoryLimitBytes: number;
  readonly resources: Readonly<Record<string, number>>;
  /** Language of the tasks that it computes. Default `javascript`. */
  readonly language?: string;
  readonly pid?: number;
  readonly nanny?: string;
  /** It tells when runs are over that were taken back from it. Default false. */
  readonly tellsRunEnds?: boolean;
  readonly localDirectory?: string;
  readonly versions?: Readonly<Record<string, string>>;
  readonly services?: Readonly<Record<string, string>>;
  readonly extra?: Readonly<Record<string, unknown>>;
}

/** What a heartbeat reports. */
export interface WorkerMetrics {
  /** Resident set of the worker's process in bytes. */
  readonly memoryBytes: number;
  /** Spilled results: their size in memory and on disk. */
  readonly spilledMemoryBytes: number;
  readonly spilledDiskBytes: number;
  readonly managedBytes: number;
  /** Bytes per second of the transfers since the last heartbeat, if there were any. */
  readonly bandwidth?: number;
  readonly cpuPercent?: number;
}

const NO_METRICS: WorkerMetrics = {
  memoryBytes: 0,
  spilledMemoryBytes: 0,
  spilledDiskBytes: 0,
  managedBytes: 0,
};

/** How many tasks of one prefix a worker is processing. */
interface PrefixCount {
  readonly prefix: TaskPrefix;
  count: number;
}

/**
 * A worker as the scheduler sees it. Plugins see it as `WorkerView`.
 *
 * Its sides of the links to tasks (`processing`, `hasWhat`, `needsWhat`) are written in
 * `relations.ts` alone.
 */
export class WorkerState {
  readonly address: string;
  /** The address as a list, for messages about results that nobody else holds. */
  readonly soleAddress: readonly [string];
  /** The set of workers that has this one as its only member; shared by the tasks that it holds. */
  readonly alone: SmallSet<WorkerState> = SmallSet.of<WorkerState>(this);
  readonly name: string;
  readonly host: string;
  readonly threadCount: number;
  readonly memoryLimitBytes: number;
  /** Of the tasks that it computes. */
  readonly language: string;
  /** Offered amounts. */
  readonly resources = new Map<string, number>();
  /** Amounts that processing tasks occupy. */
  readonly usedResources = new Map<string, number>();

  status: WorkerStatus = 'running';
  /** Dense position in the order that breaks ties between workers; moves when workers come and go. */
  rank = -1;
  /** Root-ish tasks beyond which the worker counts as full; Infinity without queuing. */
  slotLimit = Infinity;
  /** Runs per thread when it was last judged: its key among the workers with an open slot. */
  load = 0;
  /** Position in the heap of workers with an open slot, or -1. Owned by that heap. */
  place = -1;

  /** Sum of the sizes of the results it holds, spilled ones included, in bytes. */
  nbytes = 0;
  /** Results it holds, oldest first. */
  readonly hasWhat = new ReplicaList();
  /** Tasks sent to it, seceded ones included. */
  readonly processing = new ProcessingList();
  /** The part of `processing` that seceded from its thread. */
  readonly longRunning = new Set<TaskState>();
  /** Seconds that tasks have been running, as of the last heartbeat. */
  executing: ReadonlyMap<TaskState, number> = new Map();
  /** Dependencies of processing tasks that it does not hold, with the number of tasks that need each. */
  readonly needsWhat = new Tally<TaskState>();
  /** Sum of the sizes of what is in `needsWhat`, in bytes. */
  networkBytes = 0;
  /** Processing and not seceded tasks by prefix, in no order that matters. */
  readonly prefixCounts: PrefixCount[] = [];
  /** Steals without an answer in which it is the victim or the thief. */
  stealsInFlight = 0;
  /** Seconds of work, and tasks, that it will have more when they succeed; less: negative. */
  inFlightS = 0;
  inFlightTasks = 0;
  /** Ids of runs that were taken back and of which it has not told that they are over. */
  readonly endingRuns = new Set<number>();
  /** Results of another language that it has as translations: never given to others. */
  readonly translations = new Set<TaskState>();
  /** Actors that live or are being made here. */
  readonly actors = new Set<TaskState>();

  metrics: WorkerMetrics = NO_METRICS;
  /** Scheduler's clock in milliseconds. */
  lastSeenMs: number;
  /** Scheduler's clock minus the worker's, in milliseconds. */
  timeDelayMs = 0;
  readonly unmanagedHistory = new UnmanagedHistory();

  constructor(
    readonly identity: WorkerIdentity,
    /** Number of workers that registered before this one. */
    readonly sequence: number,
    private readonly costs: CostModel,
    nowMs: number,
  ) {
    this.address = identity.address;
    this.soleAddress = [identity.address];
    this.name = identity.name;
    this.host = identity.host;
    this.threadCount = identity.threadCount;
    this.memoryLimitBytes = identity.memoryLimitBytes;
    this.language = identity.language ?? 'javascript';
    this.lastSeenMs = nowMs;
    for (const [resource, amount] of Object.entries(identity.resources)) {
      this.resources.set(resource, amount);
      this.usedResources.set(resource, 0);
    }
  }

  get serverId(): string {
    return this.identity.serverId;
  }

  /**
   * Seconds of work ahead: expected durations of what is processing and not seceded, and the time to
   * fetch what that work still lacks. O(prefixes processing here).
   */
  get occupancyS(): number {
    let seconds = 0;
    for (const { prefix, count } of this.prefixCounts) seconds += count * prefix.durationEstimateS;
    // Last, as in the sum over all workers: one that does everything has exactly the total.
    return seconds + this.networkBytes / this.costs.bandwidth;
  }

  /**
   * Root-ish tasks that it could still take, of which short ones count for a part, and runs that were
   * taken back count until they are over; may be negative,
   * Infinity without queuing. O(prefixes processing here).
   */
  get openSlots(): number {
    let taken = 0;
    for (const { prefix, count } of this.prefixCounts) taken += count / prefix.sharing.tasksPerSlot;
    return this.slotLimit - taken - this.endingRuns.size;
  }

  /** Tasks that were sent to it, and runs that were taken back and go on. */
  get runCount(): number {
    return this.processing.size + this.endingRuns.size;
  }

  /** Looks at {@link load} anew. In the heap of open slots, the worker must be put in its place then. */
  judgeLoad(): void {
    this.load = this.runCount / this.threadCount;
  }

  get memory(): MemoryState {
    const { memoryBytes, spilledMemoryBytes, spilledDiskBytes } = this.metrics;
    return new MemoryState({
      process: memoryBytes,
      managed: Math.max(0, this.nbytes - spilledMemoryBytes),
      spilled: spilledDiskBytes,
      unmanagedOld: this.unmanagedHistory.oldBytes,
    });
  }

  toString(): string {
    return `<Worker ${this.address} ${this.status}>`;
  }
}
