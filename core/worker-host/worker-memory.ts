import type { Clock } from '../api/clock.ts';
import { messageOf, YardmasterError } from '../api/errors.ts';
import type { DataStore, Executor } from '../api/executor.ts';
import { type Logger } from '../api/plugin.ts';
import { collaborator, inject } from '../plugin-host/injection.ts';
import { CLOCK, LOGGER } from '../host/tokens.ts';
import type { Traffic } from '../state/worker.ts';
import { FailureCount, isReported } from '../util/failure-count.ts';
import {
  CALM_RATIO,
  COLLECTION_PAUSE_RATIO,
  DEFAULT_MEMORY_THRESHOLDS,
  LEAST_TARGET,
  LOOK_RATIO,
  MemoryGovernor,
  type MemoryMode,
  type MemoryThresholds,
} from '../worker/memory.ts';
import { type SpillTrouble, TieredStore } from '../worker/tiered-store.ts';
import { SHARED_BYTES_MIN } from './peer-channels.ts';
import { WORKER_OPTIONS } from './tokens.ts';
import type { WorkerHostOptions, WorkerMemoryOptions } from './worker-options.ts';

/** The questions and reports of the worker's memory to the worker. */
export interface MemoryOwner {
  /** Nothing runs and nothing is on its way. */
  readonly isIdle: boolean;
  onMode(mode: MemoryMode): void;
  /** Called at each look, if a quota has a hard limit. */
  onMeasured(processBytes: number): void;
  onLost(key: string): void;
  /** The worker occupies so much that it has to give up. @returns whether something else was done about it */
  onTooMuch(error: YardmasterError): boolean;
}

/** Metrics of the memory of a worker, in bytes. */
interface MemoryFigures {
  readonly memoryBytes: number;
  readonly spilledMemoryBytes: number;
  readonly spilledDiskBytes: number;
}

/** Milliseconds between two warnings that it pauses; a worker at its limit may do so often. */
const WARNING_INTERVAL_MS = 10_000;

/** Milliseconds between two reports that results cannot be spilled and fill the worker. */
const BLOCKED_REPORT_MS = 60_000;

/**
 * The memory of a worker: its results, where they are, and what is done when they become too many.
 * Without a limit it measures, and collects the garbage that released results are.
 */
@collaborator
export class WorkerMemory {
  /** Of all results. */
  readonly store: DataStore;
  readonly monitorIntervalMs: number;
  /** Bytes of results ever received and sent, counted by those who do it. */
  readonly moved = { received: 0, sent: 0 };
  private readonly thresholds: MemoryThresholds;
  private readonly tiers: TieredStore | undefined;
  private readonly governor: MemoryGovernor | undefined;
  /** Without a limit. */
  private readonly released: ReleasedResults | undefined;
  private mode: MemoryMode = 'running';
  private blockedReportAtMs = -Infinity;
  private warnedAtMs = -Infinity;
  private garbageBytes = 0;
  private isClosed = false;
  /** Garbage since the young was last collected. */
  private youngBytes = 0;
  /** The bytes that have come, or become garbage, since memory was last looked at. */
  private unseenBytes = 0;
  private isLookDue = false;
  /** The memory that the process occupies besides results, garbage aside. */
  private calmBytes = Number.MAX_VALUE;
  private nextOwnCollectionMs = -Infinity;

  private readonly options: WorkerMemoryOptions;
  private readonly limitBytes: number;
  /** Of results in memory. */
  private readonly ram: DataStore;
  private readonly executor: Executor;
  /** Bytes that the worker's process occupies. Default: results in memory, and what the executor says. */
  private readonly measure: (() => number) | undefined;
  private owner: MemoryOwner | undefined;
  /** The address at which peers reach the worker, for messages. */
  private address: string;

  /** By the system, when it was asked last. */
  private measuredBytes = 0;
  private readonly unmeasured = new FailureCount();

  constructor(
    @inject(WORKER_OPTIONS) worker: WorkerHostOptions,
    @inject(CLOCK) private readonly clock: Clock,
    @inject(LOGGER) private readonly log: Logger,
  ) {
    const { store, memory: options = {}, memoryLimitBytes: limitBytes = 0 } = worker;
    this.options = options;
    this.limitBytes = limitBytes;
    this.ram = store;
    this.executor = worker.executor;
    this.measure = worker.measureMemory;
    this.address = worker.listenAddress;
    this.thresholds = { ...DEFAULT_MEMORY_THRESHOLDS, ...options.thresholds };
    const { disk, maxSpillBytes = Infinity, monitorIntervalMs = 100 } = options;
    this.monitorIntervalMs = monitorIntervalMs;
    this.store = store;
    if (limitBytes === 0) {
      this.released = new ReleasedResults(options, this.executor, clock);
      return;
    }
    const { thresholds } = this;
    this.governor = new MemoryGovernor(limitBytes, thresholds);
    if (disk === undefined) return;
    this.tiers = new TieredStore({
      ram: store,
      disk,
      clock,
      targetBytes: thresholds.target > 0 ? thresholds.target * limitBytes : Infinity,
      maxSpillBytes,
      onLost: (key, error) => this.onLost(key, error),
      onGarbage: (nbytes) => this.noteGarbage(nbytes),
      onGrowth: (nbytes) => this.noteChange(nbytes),
      onTrouble: (trouble) => this.onTrouble(trouble),
    });
    this.store = this.tiers;
  }

  /** Sets whom it reports to; before that, it only measures. */
  connect(owner: MemoryOwner, address: string): void {
    this.owner = owner;
    this.address = address;
  }

  /** True when there is anything to look after. */
  get isLimited(): boolean {
    return this.governor !== undefined;
  }

  /** Bytes of results ever received, sent, read from disk and written to it. */
  get movedBytes(): Traffic {
    const { read: diskRead, written: diskWritten } = this.tiers?.moved ?? { read: 0, written: 0 };
    return { ...this.moved, diskRead, diskWritten };
  }

  /** As of now. */
  figures(): MemoryFigures {
    const spilledMemoryBytes = this.tiers?.spilledBytes ?? 0;
    return {
      memoryBytes: this.processBytes(),
      spilledMemoryBytes,
      // Copies of what is in memory as well are not spilled, though they are on disk.
      spilledDiskBytes: spilledMemoryBytes,
    };
  }

  /** Looks at the memory, and does what has to be done. */
  poll(): void {
    const { governor, tiers } = this;
    if (governor === undefined || this.isClosed) return;
    const { clock, owner } = this;
    this.unseenBytes = 0;
    this.collectYoung();
    const processBytes = this.processBytes();
    this.aim(processBytes);
    if ((this.options.hardLimit ?? 0) > 0) owner?.onMeasured(processBytes);
    const verdict = governor.decide({
      nowMs: clock.nowMs(),
      processBytes,
      garbageBytes: this.garbageBytes,
      ramBytes: this.ramBytes,
      canSpill: tiers?.canSpill === true,
      isSpillFailing: tiers?.isSpillFailing === true,
      isIdle: owner?.isIdle ?? true,
    });
    if (verdict.terminate) {
      if (this.giveUp(processBytes)) governor.giveAnotherChance();
      return;
    }
    tiers?.spill(verdict.spillBytes);
    if (verdict.collect) this.collect(governor);
    if (verdict.isBlockedByDisk) this.reportBlocked(processBytes);
    if (verdict.mode === this.mode) return;
    this.tellMode(verdict.mode, processBytes);
    this.mode = verdict.mode;
    owner?.onMode(verdict.mode);
  }

  /** Deletes a result. No-op for an unknown key. */
  drop(key: string): void {
    const before = this.store.nbytes;
    this.store.delete(key);
    this.released?.note(before - this.store.nbytes);
  }

  /** Deletes what was spilled. */
  close(): void {
    this.isClosed = true;
    this.options.disk?.close();
  }

  /**
   * Records that buffers of this size have become unreachable. The engine does not notice them, and
   * would let them accumulate.
   */
  noteGarbage(nbytes: number): void {
    if (!this.isLimited) return;
    this.garbageBytes += nbytes;
    this.youngBytes += nbytes;
    this.noteChange(nbytes);
  }

  /** Looks when enough has changed, for between two looks of the clock much can come. */
  private noteChange(nbytes: number): void {
    this.unseenBytes += nbytes;
    if (this.isLookDue || this.unseenBytes < LOOK_RATIO * this.limitBytes) return;
    this.isLookDue = true;
    // Not in the middle of what the store does.
    queueMicrotask(() => {
      this.isLookDue = false;
      this.poll();
    });
  }

  private collectYoung(): void {
    if (this.youngBytes < LOOK_RATIO * this.limitBytes) return;
    this.youngBytes = 0;
    this.options.collectYoungGarbage?.();
  }

  /**
   * Results and all else that the process occupies shall stay below the target together. What comes on top of that
   * until garbage is collected, and what has come is spilled, then stays below the thresholds.
   */
  private aim(processBytes: number): void {
    const { tiers, thresholds } = this;
    const { measure, limitBytes } = this;
    if (tiers === undefined || measure === undefined || thresholds.spill === 0) return;
    if (thresholds.target === 0) return;
    const otherBytes = Math.max(0, processBytes - this.ramBytes);
    const { calmBytes } = this;
    this.calmBytes = Math.min(otherBytes, calmBytes + CALM_RATIO * (otherBytes - calmBytes));
    const roomBytes = thresholds.target * limitBytes - this.calmBytes;
    tiers.aim(Math.max(LEAST_TARGET * limitBytes, roomBytes));
  }

  private get ramBytes(): number {
    return this.tiers?.ramBytes ?? this.ram.nbytes;
  }

  private processBytes(): number {
    const { measure, executor } = this;
    if (measure === undefined) return this.ramBytes + (executor.memoryBytes ?? 0);
    try {
      this.measuredBytes = measure();
    } catch (err) {
      // Without a free file descriptor (EMFILE) the system does not tell. The next look comes soon.
      const text = 'the memory of the process cannot be measured now; what it was before counts';
      if (isReported(this.unmeasured.add('memory'))) this.log.warn({ err }, text);
    }
    return this.measuredBytes;
  }

  /**
   * Threads collect beside us. What this thread holds counts in the measure of a process; of a worker that
   * shares its process it does not, so that this thread is spared more often than the governor would.
   */
  private collect(governor: MemoryGovernor): void {
    const { clock, executor, measure } = this;
    this.garbageBytes = 0;
    this.youngBytes = 0;
    executor.collectGarbage?.();
    const startedMs = clock.nowMs();
    const isDue = measure !== undefined || startedMs >= this.nextOwnCollectionMs;
    if (isDue) this.options.collectGarbage?.();
    const nowMs = clock.nowMs();
    const tookMs = nowMs - startedMs;
    if (isDue) this.nextOwnCollectionMs = nowMs + COLLECTION_PAUSE_RATIO * tookMs;
    governor.noteCollection(nowMs, measure === undefined ? 0 : tookMs);
  }

  /** @returns whether the worker may continue after all */
  private giveUp(processBytes: number): boolean {
    const { limitBytes, address } = this;
    const error = new YardmasterError(
      'ERR_OUT_OF_MEMORY',
      `the worker ${address} gives up: it occupies ${processBytes} of ${limitBytes} bytes, and collecting garbage did not help; give it a higher memory limit, fewer threads, or smaller tasks`,
      { worker: address, processBytes, limitBytes, managedBytes: this.ramBytes },
    );
    return this.owner?.onTooMuch(error) ?? false;
  }

  private tellMode(mode: MemoryMode, processBytes: number): void {
    const { log, address, limitBytes, clock } = this;
    const facts = { worker: address, processBytes, limitBytes, managedBytes: this.ramBytes };
    const amount = `${processBytes} of ${limitBytes} bytes, ${this.ramBytes} of them results`;
    if (mode === 'running') {
      log.info(facts, `worker resumes: it occupies ${amount}`);
      return;
    }
    const text =
      mode === 'paused'
        ? `worker pauses: it occupies ${amount}`
        : `worker resumes one task at a time: it occupies ${amount}, and waiting did not help; give it a higher memory limit`;
    const isDue = clock.nowMs() - this.warnedAtMs >= WARNING_INTERVAL_MS;
    if (isDue) this.warnedAtMs = clock.nowMs();
    if (isDue) log.warn(facts, text);
    else log.info(facts, text);
  }

  private reportBlocked(processBytes: number): void {
    const { log, address, limitBytes, ramBytes, clock } = this;
    if (clock.nowMs() < this.blockedReportAtMs) return;
    this.blockedReportAtMs = clock.nowMs() + BLOCKED_REPORT_MS;
    const facts = { worker: address, processBytes, limitBytes, managedBytes: ramBytes };
    log.error(
      facts,
      `worker pauses until its disk takes results again: it occupies ${processBytes} of ${limitBytes} bytes, ${ramBytes} of them results that cannot be spilled; free disk space, release results, or start more workers`,
    );
  }

  private onLost(key: string, err: unknown): void {
    const text = `the spilled result "${key}" cannot be read: ${messageOf(err)}; it counts as lost`;
    this.log.warn({ err, key, worker: this.address }, text);
    this.owner?.onLost(key);
  }

  private onTrouble(trouble: SpillTrouble): void {
    const { key, nbytes } = trouble;
    const why =
      trouble.why === 'full'
        ? `that would be more than ${trouble.maxBytes} bytes on disk (worker.memory.maxSpill)`
        : messageOf(trouble.error);
    const facts = { key, nbytes, worker: this.address };
    const err = trouble.why === 'failed' ? { err: trouble.error } : {};
    const text = `"${key}" (${nbytes} bytes) cannot be spilled: ${why}; it stays in memory, and so do others`;
    this.log.warn({ ...facts, ...err }, text);
  }
}

/** Bytes of released results after which young garbage is collected, and after which all of it is. */
const YOUNG_BYTES = 64 * 1024 * 1024;
const ALL_BYTES = 256 * 1024 * 1024;

/**
 * Has the memory of released results given back where no limit of memory does it. Large results are in memory that
 * threads share, which the engine does not count: it sees no reason to collect the few small objects that hold it.
 */
export class ReleasedResults {
  private youngBytes = 0;
  private allBytes = 0;
  private isDue = false;
  private nextFullMs = -Infinity;

  constructor(
    private readonly collect: Pick<WorkerMemoryOptions, 'collectGarbage' | 'collectYoungGarbage'>,
    private readonly executor: Pick<Executor, 'collectGarbage'>,
    private readonly clock: Clock,
  ) {}

  note(nbytes: number): void {
    if (nbytes < SHARED_BYTES_MIN) return; // The engine counts its memory.
    this.youngBytes += nbytes;
    this.allBytes += nbytes;
    if (this.isDue || this.youngBytes < YOUNG_BYTES) return;
    this.isDue = true;
    // What releases it may still refer to it.
    queueMicrotask(() => {
      this.isDue = false;
      this.collectSome();
    });
  }

  private collectSome(): void {
    const { collect, clock } = this;
    this.youngBytes = 0;
    const startMs = clock.nowMs();
    if (this.allBytes < ALL_BYTES || startMs < this.nextFullMs) {
      collect.collectYoungGarbage?.();
      return;
    }
    this.allBytes = 0;
    this.executor.collectGarbage?.();
    collect.collectGarbage?.();
    const endMs = clock.nowMs();
    this.nextFullMs = endMs + COLLECTION_PAUSE_RATIO * (endMs - startMs);
  }
}
