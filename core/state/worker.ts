import { LazySet, SmallSet, Tally } from '../util/collections.ts';
import {
  type Integer,
  type Name,
  type Positive,
  type Resources,
  SHOWN,
  type Size,
} from '../util/values.ts';
import type { CostModel } from './cluster.ts';
import type { TaskPrefix } from './groups.ts';
import { ProcessingList, ReplicaList } from './relations.ts';
import type { TaskState } from './task.ts';

/** Status of a worker, mirrored from the worker itself. */
export type WorkerStatus = 'running' | 'paused' | 'closing-gracefully' | 'closing' | 'closed';

/** The description that a worker sends when it registers. It does not change afterwards. */
export interface WorkerIdentity {
  /** The address at which peers reach the worker: `tcp://host:port`. Unique among registered workers. */
  readonly address: Name;
  /** Unique id of the worker process: a restarted worker has another one at the same address. */
  readonly serverId: Name;
  /** A name for people and restrictions; unique among registered workers. Default: the address. */
  readonly name: Name;
  readonly host: Name;
  /** Tasks that it runs at once. */
  readonly threadCount: Positive;
  /** 0 = unlimited. */
  readonly memoryLimitBytes: Size;
  readonly resources: Resources;
  /** Language of the tasks that it computes. Default `javascript`. */
  readonly language?: Name;
  /** Times per second that one of its threads does a piece of work that is the same for all workers. Default: not told. */
  readonly speed?: Positive;
  readonly pid?: Integer;
  /** Name or address of the supervisor that starts another worker in its place when it is asked to restart. */
  readonly nanny?: string;
  /** True when it reports the end of runs that were taken back from it. Default false. */
  readonly tellsRunEnds?: boolean;
  /** The folder for its temporary files. */
  readonly localDirectory?: string;
  /** Of the packages that matter to tasks, for messages to people. */
  readonly versions?: Readonly<Record<string, string>>;
  /** Addresses of other services of its process, by name. */
  readonly services?: Readonly<Record<string, string>>;
  /** Facts that the code that started it gives; plain data. */
  readonly extra?: Readonly<Record<string, unknown>>;
}

/** The measurements of a heartbeat. */
export interface WorkerMetrics {
  /** Resident set of the worker's process in bytes. */
  readonly memoryBytes: Size;
  /** Spilled results: their size in memory and on disk. */
  readonly spilledMemoryBytes: Size;
  readonly spilledDiskBytes: Size;
  readonly managedBytes: Size;
  /** Bytes per second of the transfers since the last heartbeat, if there were any. */
  readonly bandwidth?: Size;
  /** 100 for each core that the worker's process kept busy since the last heartbeat, if it tells. */
  readonly cpuPercent?: Size;
  /** The same for a process that the worker shares with others, and that each of them tells. */
  readonly sharedCpuPercent?: Size;
  /** 100 for each thread of its process that could have run and had no processor, on average since the last heartbeat. */
  readonly cpuWaitPercent?: Size;
  /** 100 for each core that all programs of the worker's machine kept busy. */
  readonly hostCpuPercent?: Size;
  /** Processors of the machine. */
  readonly hostCores?: Size;
  /** Milliseconds by which timers of the worker's process were late at most since the last heartbeat, if it tells. */
  readonly loopDelayMs?: Size;
  /** Bytes per second since the last heartbeat, if it tells. Workers of Dask tell those of their machine. */
  readonly traffic?: Traffic;
  /** Large transfers to the worker since the last heartbeat: from each peer, and of each type of result. */
  readonly transfers?: readonly MeasuredTransfers[];
}

/** Bytes per second of results that a worker received, sent, read from its disk and wrote to it. */
export interface Traffic {
  readonly received: Size;
  readonly sent: Size;
  readonly diskRead: Size;
  readonly diskWritten: Size;
}

/** Transfers that have the same source, or the same type of result. */
export interface MeasuredTransfers {
  readonly from?: Name;
  readonly type?: string;
  /** Bytes per second. */
  readonly bandwidth: Size;
}

const NO_METRICS: WorkerMetrics = {
  memoryBytes: 0,
  spilledMemoryBytes: 0,
  spilledDiskBytes: 0,
  managedBytes: 0,
};

/** Shared empty collections for most workers, so that ten thousand workers take little memory. */
const NO_AMOUNTS: ReadonlyMap<string, number> = new Map();
const NOTHING_EXECUTING: ReadonlyMap<never, number> = new Map<never, number>();

/** The number of tasks of one prefix that a worker is processing. */
interface PrefixCount {
  readonly prefix: TaskPrefix;
  count: number;
}

/** The least weight of a new measurement, so that a worker that becomes slow is found. */
const PACE_WEIGHT_MIN = 0.05;
/** The variance that differences are expected to have before any was measured. */
const PACE_VARIANCE = 0.1;
/** Standard errors below which a difference is no difference. */
const PACE_ERRORS = 2;

/**
 * Learns by which factor tasks take longer on one worker than usually, from the logarithms of both: the weighted mean
 * and variance of the differences. What may be noise is taken off: the mean is shrunk as by James and Stein.
 */
export class Pace {
  private count = 0;
  private mean = 0;
  private variance = 0;
  /** Above 1: slower than others. */
  factor = 1;

  /** @param logRatio - natural logarithm of what a task took here, divided by what it usually takes */
  learn(logRatio: number): void {
    const weight = Math.max(1 / ++this.count, PACE_WEIGHT_MIN);
    const difference = logRatio - this.mean;
    this.mean += weight * difference;
    this.variance = (1 - weight) * (this.variance + weight * difference * difference);
    const noise = PACE_ERRORS ** 2 * (this.variance + PACE_VARIANCE) * weight;
    const share = Math.max(0, 1 - noise / this.mean ** 2);
    this.factor = Math.exp(share * this.mean);
  }

  /** Measurements, mean, variance and factor. */
  get learnt(): readonly number[] {
    return [this.count, this.mean, this.variance, this.factor];
  }
  set learnt([count = 0, mean = 0, variance = 0, factor = 1]: readonly number[]) {
    this.count = count;
    this.mean = mean;
    this.variance = variance;
    this.factor = factor;
  }
}

/** Workers whose speeds are less than this factor from the mean are taken for equal: measurements are not exact. */
const SPEED_TOLERANCE = 1.15;

/** A worker that went unexpectedly, and what was known of it when it did. */
export interface LostWorker {
  /** Times that a worker of this name did. */
  readonly times: number;
  /** The share of its memory limit that it had in use when it was last heard; 0: it has none, or never told. */
  readonly memoryShare: number;
  /** A task that it was given last. */
  readonly during: string | undefined;
}

/**
 * A worker as the scheduler sees it. Plugins see it as `WorkerView`.
 *
 * Its sides of the links to tasks (`processing`, `hasWhat`, `needsWhat`) are written in
 * `relations.ts` alone.
 */
export class WorkerState {
  // First what the steps of its tasks look at, so that it is close together in memory.

  readonly address: string;
  status: WorkerStatus = 'running';
  /** Dense position in the order that breaks ties between workers; moves when workers come and go. */
  rank = -1;
  readonly threadCount: number;
  /** Root-ish tasks beyond which the worker counts as full; Infinity without queuing. */
  slotLimit = Infinity;
  /** Tasks sent to it, seceded ones included. */
  readonly processing = new ProcessingList<TaskState>();
  /** The part of `processing` that seceded from its thread. */
  readonly longRunning = new LazySet<TaskState>();
  /** Ids of runs that were taken back and whose end it has not reported. */
  readonly endingRuns = new LazySet<number>();
  /** Ids of runs that count for their limits and occupy no slot: they seceded and were taken back, or failed by their time. */
  readonly lingeringRuns = new LazySet<number>();
  /** Processing and not seceded tasks by prefix, in no order that matters. */
  readonly prefixCounts: PrefixCount[] = [];
  /** Dependencies of processing tasks that it does not hold, with the number of tasks that need each. */
  readonly needsWhat = new Tally<TaskState>();
  /** Sum of the sizes of what is in `needsWhat`, in bytes. */
  networkBytes = 0;
  /** Bytes that it has to send: of each result that it alone holds, times the workers that need it. */
  requestedBytes = 0;
  /** Results it holds, oldest first. */
  readonly hasWhat = new ReplicaList<TaskState>();
  /** Sum of the sizes of the results it holds, spilled ones included, in bytes. */
  nbytes = 0;
  /** The set of workers that has this one as its only member; shared by the tasks that it holds. */
  readonly alone: SmallSet<WorkerState> = SmallSet.of<WorkerState>(this);
  /** The address as a list, for messages about results of which this worker has the only copy. */
  readonly soleAddress: readonly [string];

  [SHOWN]: object | 'worker' = 'worker';
  readonly memoryLimitBytes: number;
  readonly name: string;
  readonly host: string;
  /** Of the tasks that it computes. */
  readonly language: string;
  /** Offered amounts. */
  resources: ReadonlyMap<string, number> = NO_AMOUNTS;
  private occupied: Map<string, number> | undefined = undefined;
  /** Seconds that tasks have been running, as of the last heartbeat. */
  executing: ReadonlyMap<TaskState, number> = NOTHING_EXECUTING;
  /** Steals without an answer in which it is the victim or the thief. */
  stealsInFlight = 0;
  /** Seconds of work, and tasks, that it will have more when they succeed; less: negative. */
  inFlightS = 0;
  inFlightTasks = 0;
  /** Results of another language that it has as translations: never given to others. */
  readonly translations = new LazySet<TaskState>();
  /** Actors that live or are being made here. */
  readonly actors = new LazySet<TaskState>();

  readonly pacing = new Pace();

  metrics: WorkerMetrics = NO_METRICS;
  /** Scheduler's clock in milliseconds. */
  lastSeenMs: number;
  /** Milliseconds since then in which the scheduler itself stood still and could hear no worker. */
  deafMs = 0;
  /** Scheduler's clock minus the worker's, in milliseconds. */
  timeDelayMs = 0;
  readonly unmanagedHistory = new UnmanagedHistory();
  /** {@link nbytes} when {@link metrics} came. */
  measuredNbytes = 0;

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
      this.offer(resource, amount);
    }
  }

  /** Amounts that processing tasks occupy. */
  get usedResources(): ReadonlyMap<string, number> {
    return this.occupied ?? NO_AMOUNTS;
  }
  set usedResources(amounts: ReadonlyMap<string, number>) {
    this.occupied = amounts.size === 0 ? undefined : new Map(amounts);
  }

  /** It offers that much of a resource from now on. */
  offer(resource: string, amount: number): void {
    this.resources = new Map([...this.resources, [resource, amount]]);
    if (!this.usedResources.has(resource)) this.occupy(resource, 0);
  }

  /** A task of these resources begins (1) or ends (-1). */
  occupyAll(resources: ReadonlyMap<string, number> | undefined, sign: 1 | -1): void {
    if (resources === undefined) return;
    for (const [resource, amount] of resources) this.occupy(resource, sign * amount);
  }

  /** No task that is processing occupies anything. */
  vacate(): void {
    for (const resource of this.usedResources.keys()) this.occupied?.set(resource, 0);
  }

  private occupy(resource: string, amount: number): void {
    this.occupied ??= new Map();
    this.occupied.set(resource, (this.occupied.get(resource) ?? 0) + amount);
  }

  get serverId(): string {
    return this.identity.serverId;
  }

  /** The factor by which tasks take longer here than usually: what the worker's speed tells, and what was learnt beyond it. */
  get pace(): number {
    return this.pacing.factor * this.toldPace;
  }

  /** The part of {@link pace} that follows from the speeds that workers tell; 1 for a worker that tells none. */
  get toldPace(): number {
    const { speed } = this.identity;
    if (speed === undefined) return 1;
    const pace = this.costs.threadSpeed / speed;
    return pace > SPEED_TOLERANCE || pace < 1 / SPEED_TOLERANCE ? pace : 1;
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
    for (const { prefix, count } of this.prefixCounts) taken += count / prefix.tasksPerSlot;
    return this.slotLimit - taken - this.endingRuns.size;
  }

  /** Tasks that were sent to it, and runs that were taken back and have not ended. */
  get runCount(): number {
    return this.processing.size + this.endingRuns.size;
  }

  /** Runs per thread: what workers with an open slot are sorted by. */
  get load(): number {
    return this.runCount / this.threadCount;
  }

  /**
   * The memory of the process is only known from its heartbeats. Results that came since the last one
   * count at once, so the process is taken to be at least as large as they make it.
   */
  get memory(): MemoryState {
    const { memoryBytes, spilledMemoryBytes, spilledDiskBytes } = this.metrics;
    const managed = Math.max(0, this.nbytes - spilledMemoryBytes);
    const grownBytes = Math.max(0, this.nbytes - this.measuredNbytes);
    return new MemoryState({
      process: Math.max(memoryBytes, Math.min(managed, memoryBytes + grownBytes)),
      managed,
      spilled: spilledDiskBytes,
      unmanagedOld: this.unmanagedHistory.oldBytes,
    });
  }

  toString(): string {
    return `<Worker ${this.address} ${this.status}>`;
  }
}

/** The measures by which a policy may compare workers. */
export const MEMORY_MEASURES = [
  'process',
  'managed',
  'managedTotal',
  'spilled',
  'unmanaged',
  'unmanagedOld',
  'unmanagedRecent',
  'optimistic',
] as const;

/** Names of the ways to measure the memory of a worker. */
export type MemoryMeasure = (typeof MEMORY_MEASURES)[number];

/**
 * A consistent picture of memory: bytes of one worker (or of several, summed), split by who manages them. `managed` and
 * `process` come from different moments, so the constructor clamps what cannot be true at once (Dask `MemoryState`).
 */
export class MemoryState implements Record<MemoryMeasure, number> {
  /** Resident set of the worker's process. */
  readonly process: number;
  /** Results in RAM. */
  readonly managed: number;
  /** Results on disk, as they are there. */
  readonly spilled: number;
  /** Least unmanaged memory seen over the time of `scheduler.recentToOldTime`: leaks and baseline. */
  readonly unmanagedOld: number;

  constructor(parts: Pick<MemoryState, 'process' | 'managed' | 'spilled' | 'unmanagedOld'>) {
    this.process = parts.process;
    this.managed = Math.min(parts.process, parts.managed);
    this.spilled = parts.spilled;
    this.unmanagedOld = Math.min(parts.unmanagedOld, this.process - this.managed);
  }

  static sum(states: Iterable<MemoryState>): MemoryState {
    let process = 0;
    let managed = 0;
    let spilled = 0;
    let unmanagedOld = 0;
    for (const state of states) {
      process += state.process;
      managed += state.managed;
      spilled += state.spilled;
      unmanagedOld += state.unmanagedOld;
    }
    return new MemoryState({ process, managed, spilled, unmanagedOld });
  }

  get managedTotal(): number {
    return this.managed + this.spilled;
  }

  get unmanaged(): number {
    return this.process - this.managed;
  }

  get unmanagedRecent(): number {
    return this.process - this.managed - this.unmanagedOld;
  }

  /** The memory that the worker would use if recent unmanaged memory were garbage about to be collected. */
  get optimistic(): number {
    return this.managed + this.unmanagedOld;
  }
}

/** The least unmanaged memory of the last time: of 30 seconds, unless the configuration says otherwise. */
class UnmanagedHistory {
  private entries: { readonly atMs: number; readonly bytes: number }[] = [];
  /** Bytes; 0 while nothing was measured. */
  oldBytes = 0;

  /** The measurements of the last time as plain data. */
  get measured(): readonly (readonly [atMs: number, bytes: number])[] {
    return this.entries.map(({ atMs, bytes }) => [atMs, bytes]);
  }
  set measured(measured: readonly (readonly [atMs: number, bytes: number])[]) {
    this.entries = measured.map(([atMs, bytes]) => ({ atMs, bytes }));
  }

  /**
   * Cost per heartbeat: amortised O(1), and O(entries) when the minimum grows old.
   * @param recentMs - how long a measurement counts as recent
   */
  add(nowMs: number, bytes: number, recentMs: number): void {
    while (this.entries.length > 0 && this.entries[0]!.atMs < nowMs - recentMs) {
      const dropped = this.entries.shift()!;
      if (dropped.bytes === this.oldBytes) this.oldBytes = 0;
    }
    this.entries.push({ atMs: nowMs, bytes });
    if (this.oldBytes === 0) this.oldBytes = leastBytes(this.entries);
    else if (bytes < this.oldBytes) this.oldBytes = bytes;
  }
}

function leastBytes(entries: readonly { readonly bytes: number }[]): number {
  return entries.reduce((least, { bytes }) => Math.min(least, bytes), Infinity);
}
