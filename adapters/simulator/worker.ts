import { type Clock, YardmasterError } from '../../core/api/index.ts';
import type { WorkerReport } from '../../core/messages/stimulus.ts';
import type { ToWorkerMessage } from '../../core/messages/to-worker.ts';
import type { TaskFailure } from '../../core/state/task.ts';
import type { WorkerIdentity } from '../../core/state/worker.ts';
import { EVENT_LOOP_RESOURCE } from '../../core/util/event-loop.ts';
import type { Execute, Instruction, WorkerEvent } from '../../core/worker/events.ts';
import {
  DEFAULT_MEMORY_THRESHOLDS,
  MemoryGovernor,
  type MemoryMode,
} from '../../core/worker/memory.ts';
import { WorkerKernel } from '../../core/worker/worker-kernel.ts';
import {
  type Link,
  type Port,
  SimulatedTransfers,
  type TransferOwner,
  type TransferWorld,
} from './network.ts';
import type { Evaluate, Outcome, WorkerModel } from './options.ts';

/** The services of the simulated world that a worker uses. */
export interface WorkerWorld extends RunWorld, TransferWorld {
  readonly options: RunWorld['options'] & { readonly diskBandwidth: number };
  /** A message of this worker to the scheduler. */
  report(worker: SimulatedWorker, message: WorkerReport): void;
  /** A message that arrives at the scheduler is handled as soon as the scheduler is free. */
  whenFree(deliver: () => void): () => void;
  /** The worker dies. */
  kill(place: number): void;
  /** The worker closes because the scheduler wants it to. */
  close(worker: SimulatedWorker, restart: boolean): void;
}

/** Work that the threads of a real worker have in line. */
const SHORT_RUN_S = 0.001;
const FIND_MISSING_MS = 1000;
const RETRY_BUSY_MS = 150;
/** The speed that a worker of speed 1 tells. */
const SPEED_UNIT = 1000;
/** Part of the memory limit that transfers may fill. */
const TRANSFER_FRACTION = 0.1;
const STORY_LENGTH = 16;

/**
 * The state machine of a real worker. What its host would do takes virtual time here: runs, transfers, messages,
 * spilling.
 */
export class SimulatedWorker implements RunOwner, TransferOwner {
  readonly address: string;
  readonly threadCount: number;
  readonly kernel: WorkerKernel;
  readonly store: SimulatedStore;
  readonly runs: SimulatedRuns;
  readonly transfers: SimulatedTransfers;
  readonly port: Port;
  readonly bornMs: number;
  diedMs = Infinity;
  /** The number of times that it paused for lack of memory. */
  pauseCount = 0;
  /** Milliseconds by which messages to and from the scheduler are later, of each fault that lasts: the newest counts. */
  readonly extraDelaysMs: number[] = [];
  /** Its process stands still until then. */
  pausedUntilMs = 0;
  private readonly memory: MemoryWatch | undefined;
  private memoryMode: MemoryMode = 'running';
  private isPausedByScheduler = false;
  private isSearching = false;
  /** Messages that arrive together, and when. */
  private inbox: ToWorkerMessage[] = [];
  private inboxMs = -1;
  private lastSentMs = 0;

  constructor(
    readonly name: string,
    readonly model: WorkerModel,
    /** The speed of the worker, as a multiple of what the workload says. */
    readonly speed: number,
    /** The number of its place; another worker may take it later. */
    readonly place: number,
    private readonly world: WorkerWorld,
  ) {
    const { memoryLimitBytes = 0, bandwidth, threads = 1 } = model;
    this.address = `sim://${name}`;
    this.threadCount = threads;
    const { clock, network, options } = world;
    this.bornMs = clock.nowMs();
    this.port = network.connect(bandwidth);
    this.kernel = new WorkerKernel({
      address: this.address,
      threadCount: this.threadCount,
      resources: this.resources,
      shortRunS: SHORT_RUN_S,
      incomingBytesMax: memoryLimitBytes > 0 ? memoryLimitBytes * TRANSFER_FRACTION : Infinity,
      isOneOfMany: true,
      validate: options.validate,
      transitionLogLength: options.validate ? 1000 : STORY_LENGTH,
    });
    if (memoryLimitBytes > 0) this.memory = new MemoryWatch(this, clock, memoryLimitBytes);
    this.store = new SimulatedStore(
      clock,
      (ms, callback) => this.later(ms, callback),
      memoryLimitBytes,
      options.diskBandwidth,
      () => this.memory?.noteChange(this.store),
    );
    this.runs = new SimulatedRuns(this, world);
    this.transfers = new SimulatedTransfers(this, world);
  }

  get isAlive(): boolean {
    return this.diedMs === Infinity;
  }

  get isIdle(): boolean {
    const { occupiedThreads, transferCount } = this.kernel.tables;
    return occupiedThreads === 0 && transferCount === 0;
  }

  get identity(): WorkerIdentity {
    const { address, name, model, resources } = this;
    const { threadCount } = this;
    const { memoryLimitBytes = 0 } = model;
    const who = { address, serverId: name, name, host: name };
    const speed = Math.max(1, Math.round(SPEED_UNIT * this.speed));
    return { ...who, threadCount, memoryLimitBytes, resources, speed, tellsRunEnds: true };
  }

  private get resources(): Readonly<Record<string, number>> {
    return { [EVENT_LOOP_RESOURCE]: this.threadCount, ...this.model.resources };
  }

  /** Calls back after a time; not when the worker has died by then, and later when its process stands still. */
  later(ms: number, callback: () => void): void {
    const { clock } = this.world;
    clock.setTimer(ms, () => {
      if (!this.isAlive) return;
      const waitMs = this.pausedUntilMs - clock.nowMs();
      if (waitMs > 0) this.later(waitMs, callback);
      else callback();
    });
  }

  /** Feeds the machine, and has its instructions carried out. Not to be called from within an instruction. */
  take(...events: WorkerEvent[]): void {
    if (!this.isAlive) return;
    for (const next of this.kernel.handleAll(events, this.world.clock.nowMs())) this.carryOut(next);
    if (this.kernel.tables.missing.size > 0) this.searchLater();
  }

  /** Takes a message of the scheduler, which arrives after its way. */
  receive(message: ToWorkerMessage): void {
    const { clock } = this.world;
    const arriveMs = Math.max(clock.nowMs() + this.messageMs(this.port.incoming), this.inboxMs);
    if (arriveMs === this.inboxMs && this.inbox.length > 0) {
      this.inbox.push(message);
      return;
    }
    const batch = [message];
    this.inbox = batch;
    this.inboxMs = arriveMs;
    this.later(arriveMs - clock.nowMs(), () => {
      if (this.inbox === batch) this.inbox = [];
      this.open(batch);
    });
  }

  /** Has something happen at the scheduler after the way there; in order. */
  send(deliver: () => void): void {
    const { clock } = this.world;
    this.lastSentMs = Math.max(clock.nowMs() + this.messageMs(this.port.outgoing), this.lastSentMs);
    clock.setTimer(this.lastSentMs - clock.nowMs(), this.world.whenFree(deliver));
  }

  /** It is gone, with all it held. */
  die(): void {
    this.diedMs = this.world.clock.nowMs();
    this.runs.end();
    this.transfers.end();
    this.world.network.drop(this.port);
  }

  /** Sends the scheduler its figures. */
  heartbeat(): void {
    const { store, world } = this;
    const metrics = {
      memoryBytes: store.memoryBytes,
      spilledMemoryBytes: store.diskBytes,
      spilledDiskBytes: store.diskBytes,
      managedBytes: store.memoryBytes + store.diskBytes,
    };
    world.report(this, {
      op: 'heartbeat-worker',
      stimulusId: '',
      metrics: { ...metrics, ...this.transfers.takeTransfers() },
      executing: this.runs.executing(),
      workerNowMs: world.clock.nowMs(),
    });
  }

  onMemoryMode(mode: MemoryMode): void {
    const before = this.status;
    this.memoryMode = mode;
    if (mode === 'paused') this.pauseCount++;
    this.adapt(before);
  }

  onTooMuch(): void {
    this.world.kill(this.place);
  }

  private get status(): 'running' | 'paused' {
    return this.isPausedByScheduler || this.memoryMode === 'paused' ? 'paused' : 'running';
  }

  private adapt(before: 'running' | 'paused'): void {
    const { status } = this;
    const pace =
      status === 'paused' ? 'pause' : this.memoryMode === 'crawling' ? 'crawl' : 'unpause';
    this.take({ op: pace, stimulusId: `memory-${this.memoryMode}` });
    if (status === before) return;
    this.world.report(this, { op: 'worker-status-change', stimulusId: '', status });
  }

  private open(batch: readonly ToWorkerMessage[]): void {
    const events: WorkerEvent[] = [];
    for (const message of batch) {
      if (message.op === 'close') {
        this.world.close(this, message.restart === true);
        return;
      }
      if (message.op === 'worker-status-change') {
        const before = this.status;
        this.isPausedByScheduler = message.status !== 'running';
        this.adapt(before);
      } else events.push(message);
    }
    if (events.length > 0) this.take(...events);
  }

  private carryOut(instruction: Instruction): void {
    switch (instruction.kind) {
      case 'execute':
        return this.runs.begin(instruction);
      case 'gather':
        return this.transfers.begin(instruction);
      case 'drop-data':
        return this.store.delete(instruction.key);
      case 'send':
        return this.world.report(this, instruction.message);
      case 'abort-execution':
        return this.runs.abort(instruction.key);
      case 'limit-time':
      case 'rejoined':
      case 'resumed':
        return; // Simulated runs have no time limits, and give neither thread nor limit away.
      case 'retry-busy-later': {
        const { worker } = instruction;
        const stimulusId = `retry-${worker}`;
        return this.later(RETRY_BUSY_MS, () =>
          this.take({ op: 'retry-busy-worker', worker, stimulusId }),
        );
      }
    }
  }

  private searchLater(): void {
    if (this.isSearching) return;
    this.isSearching = true;
    this.later(FIND_MISSING_MS, () => {
      this.isSearching = false;
      this.take({ op: 'find-missing', stimulusId: 'find-missing' });
    });
  }

  /** The time of a message to or from the scheduler, over this direction of the link. */
  private messageMs(link: Link): number {
    const { world } = this;
    return (
      world.messageMs(this.name) + world.network.waitMs(link) + (this.extraDelaysMs.at(-1) ?? 0)
    );
  }
}

/** A result on a simulated worker. */
interface StoredResult {
  readonly nbytes: number;
  /** See `SimulationOptions.evaluate`. */
  readonly value: number;
  place: 'memory' | 'spilling' | 'disk';
}

/**
 * The results of one worker. Beyond the target of its memory limit the oldest are written to its disk, one after the
 * other; until a result is written, it occupies memory.
 */
export class SimulatedStore {
  readonly items = new Map<string, StoredResult>();
  memoryBytes = 0;
  diskBytes = 0;
  peakBytes = 0;
  /** Bytes that were ever written. */
  spilledBytes = 0;
  private readonly targetBytes: number;
  private spillingBytes = 0;
  /** The time at which the disk has finished all its work. */
  private diskFreeMs = 0;

  /** @param later - calls back after a time, unless the worker has died */
  constructor(
    private readonly clock: Clock,
    private readonly later: (ms: number, callback: () => void) => void,
    limitBytes: number,
    private readonly diskBandwidth: number,
    private readonly onChange: () => void,
  ) {
    this.targetBytes = limitBytes > 0 ? DEFAULT_MEMORY_THRESHOLDS.target * limitBytes : Infinity;
  }

  put(key: string, nbytes: number, value: number): void {
    if (this.items.has(key)) return;
    this.items.set(key, { nbytes, value, place: 'memory' });
    this.grow(nbytes);
    this.spill(this.memoryBytes - this.spillingBytes - this.targetBytes);
  }

  delete(key: string): void {
    const item = this.items.get(key);
    if (item === undefined) return;
    this.items.delete(key);
    if (item.place === 'disk') this.diskBytes -= item.nbytes;
    else this.memoryBytes -= item.nbytes;
    if (item.place === 'spilling') this.spillingBytes -= item.nbytes;
    this.onChange();
  }

  /** Brings results into memory. @returns milliseconds until they are there */
  read(keys: readonly string[]): number {
    if (this.diskBytes === 0) return 0;
    let bytes = 0;
    for (const key of keys) {
      const item = this.items.get(key);
      if (item?.place !== 'disk') continue;
      item.place = 'memory';
      this.diskBytes -= item.nbytes;
      bytes += item.nbytes;
      // The newest in the order of spilling.
      this.items.delete(key);
      this.items.set(key, item);
    }
    if (bytes === 0) return 0;
    this.grow(bytes);
    const readMs = this.useDisk(bytes);
    this.spill(this.memoryBytes - this.spillingBytes - this.targetBytes);
    return readMs;
  }

  /** Writes the oldest results until so many bytes are on their way to the disk. */
  spill(bytes: number): void {
    if (!(bytes > 0)) return;
    let left = bytes;
    for (const [key, item] of this.items) {
      if (left <= 0) return;
      if (item.place !== 'memory' || item.nbytes === 0) continue;
      item.place = 'spilling';
      this.spillingBytes += item.nbytes;
      left -= item.nbytes;
      this.later(this.useDisk(item.nbytes), () => this.written(key, item));
    }
  }

  private written(key: string, item: StoredResult): void {
    if (item.place !== 'spilling' || this.items.get(key) !== item) return;
    item.place = 'disk';
    this.spillingBytes -= item.nbytes;
    this.memoryBytes -= item.nbytes;
    this.diskBytes += item.nbytes;
    this.spilledBytes += item.nbytes;
    this.onChange();
  }

  private grow(nbytes: number): void {
    this.memoryBytes += nbytes;
    this.peakBytes = Math.max(this.peakBytes, this.memoryBytes);
    this.onChange();
  }

  private useDisk(bytes: number): number {
    const nowMs = this.clock.nowMs();
    this.diskFreeMs = Math.max(nowMs, this.diskFreeMs) + (1000 * bytes) / this.diskBandwidth;
    return this.diskFreeMs - nowMs;
  }
}

/** The worker whose threads these are. */
export interface RunOwner {
  readonly name: string;
  readonly threadCount: number;
  readonly speed: number;
  readonly store: SimulatedStore;
  later(ms: number, callback: () => void): void;
  take(event: WorkerEvent): void;
}

/** The services of the simulated world that runs use. */
interface RunWorld {
  readonly overheadMs: number;
  readonly clock: Clock;
  readonly options: {
    readonly validate: boolean;
    readonly evaluate?: Evaluate;
    readonly outcome?: Outcome;
  };
  /** Runs under way on all workers. */
  activeRuns: number;
  /** @returns the number of runs of this key before */
  countRun(key: string): number;
  durationMs(worker: RunOwner, key: string, runSpec: unknown, attempt: number): number;
  nbytesOf(runSpec: unknown): number;
  noteRunEnd(worker: RunOwner, key: string): void;
}

const NOTHING: readonly number[] = [];

/** A run in line, or on a thread. */
interface Run {
  readonly instruction: Execute;
  startedMs: number;
  isAborted: boolean;
}

/** The threads of one worker. */
class SimulatedRuns {
  /** Thread milliseconds of runs that have ended. */
  private endedBusyMs = 0;
  /** In the order in which they began. A list, because most workers have few threads. */
  private readonly running: Run[] = [];
  /** Short runs that wait for a thread. */
  private readonly inLine: Run[] = [];

  constructor(
    private readonly worker: RunOwner,
    private readonly world: RunWorld,
  ) {}

  /** Thread milliseconds in which something ran. */
  get busyMs(): number {
    let total = this.endedBusyMs;
    const nowMs = this.world.clock.nowMs();
    for (const { startedMs } of this.running) total += nowMs - startedMs;
    return total;
  }

  /** Seconds for which each key has been running. */
  executing(): [key: string, seconds: number][] {
    const nowMs = this.world.clock.nowMs();
    return this.running.map((run) => [run.instruction.key, (nowMs - run.startedMs) / 1000]);
  }

  begin(instruction: Execute): void {
    const run: Run = { instruction, startedMs: 0, isAborted: false };
    if (this.running.length < this.worker.threadCount || instruction.isConcurrent === true)
      this.start(run);
    else this.inLine.push(run);
  }

  /**
   * A run that has begun continues to its end, as on a thread that cannot be interrupted; one that waits ends when its turn
   * comes.
   */
  abort(key: string): void {
    const run = this.running.find(({ instruction }) => instruction.key === key);
    if (run !== undefined) run.isAborted = true;
    for (const waiting of this.inLine) {
      if (waiting.instruction.key === key) waiting.isAborted = true;
    }
  }

  /** The worker has died. */
  end(): void {
    this.endedBusyMs = this.busyMs;
    this.world.activeRuns -= this.running.length;
    this.running.length = 0;
  }

  private start(run: Run): void {
    const { worker, world } = this;
    const { store } = worker;
    const { key, dependencies, runSpec } = run.instruction;
    run.startedMs = world.clock.nowMs();
    this.running.push(run);
    world.activeRuns++;
    const isValueNeeded = world.options.evaluate !== undefined || world.options.validate;
    const values = isValueNeeded ? dependencies.map((input) => this.valueOf(key, input)) : NOTHING;
    const readMs = store.read(dependencies);
    const attempt = world.countRun(key);
    const outcome = world.options.outcome?.(key, attempt) ?? 'success';
    const ms = run.isAborted ? 0 : world.durationMs(worker, key, runSpec, attempt);
    worker.later(readMs + ms, () => this.finish(run, outcome, values));
  }

  private finish(run: Run, outcome: string, values: readonly number[]): void {
    const { worker, world, running } = this;
    const { key, runSpec } = run.instruction;
    const nowMs = world.clock.nowMs();
    this.endedBusyMs += nowMs - run.startedMs;
    running.splice(running.indexOf(run), 1);
    world.activeRuns--;
    world.noteRunEnd(worker, key);
    const next = this.inLine.shift();
    if (next !== undefined) this.start(next);
    const stimulusId = `ran-${key}`;
    if (outcome === 'failure') {
      worker.take({ op: 'execute-failure', stimulusId, key, failure: failureOf(key) });
    } else if (outcome === 'reschedule') {
      worker.take({ op: 'execute-reschedule', stimulusId, key });
    } else {
      const nbytes = world.nbytesOf(runSpec);
      worker.store.put(key, nbytes, world.options.evaluate?.(key, values) ?? 0);
      // As real workers report it: without what they need besides.
      const startS = Math.min(nowMs, run.startedMs + world.overheadMs) / 1000;
      const timings = [{ action: 'compute', startS, stopS: nowMs / 1000 }] as const;
      worker.take({ op: 'execute-success', stimulusId, key, nbytes, type: 'bytes', timings });
    }
  }

  /** The machine of the worker starts no run before its inputs are there. */
  private valueOf(key: string, input: string): number {
    const item = this.worker.store.items.get(input);
    if (item !== undefined) return item.value;
    throw new YardmasterError(
      'ERR_INVARIANT',
      `the simulated worker ${this.worker.name} runs "${key}" without its input "${input}". This is a bug.`,
      { key, input, worker: this.worker.name },
    );
  }
}

function failureOf(key: string): TaskFailure {
  const exceptionText = `${key} was to fail`;
  return { exception: exceptionText, traceback: '', exceptionText, tracebackText: '' };
}

/** The interval at which the memory is looked at, and the part of its limit below which that is not worth it. */
const LOOK_MS = 100;
const LOOK_RATIO = 0.5;

/** The reactions of a worker to its memory. */
interface MemoryOwner {
  readonly isIdle: boolean;
  later(ms: number, callback: () => void): void;
  onMemoryMode(mode: MemoryMode): void;
  /** The worker has to close for lack of memory. */
  onTooMuch(): void;
}

/** Decides with the governor of real workers when a simulated one pauses, and when it gives up. */
class MemoryWatch {
  private readonly governor: MemoryGovernor;
  private mode: MemoryMode = 'running';
  private isDue = false;

  constructor(
    private readonly owner: MemoryOwner,
    private readonly clock: Clock,
    private readonly limitBytes: number,
  ) {
    this.governor = new MemoryGovernor(limitBytes, DEFAULT_MEMORY_THRESHOLDS);
  }

  /** Something was added or dropped. */
  noteChange(store: SimulatedStore): void {
    const isCalm = this.mode === 'running' && store.memoryBytes < LOOK_RATIO * this.limitBytes;
    if (this.isDue || isCalm) return;
    this.isDue = true;
    this.owner.later(LOOK_MS, () => this.look(store));
  }

  private look(store: SimulatedStore): void {
    this.isDue = false;
    const { governor, clock, owner } = this;
    const nowMs = clock.nowMs();
    const verdict = governor.decide({
      nowMs,
      processBytes: store.memoryBytes,
      garbageBytes: 0,
      ramBytes: store.memoryBytes,
      canSpill: true,
      isIdle: owner.isIdle,
    });
    // Memory that is freed here is free at once.
    if (verdict.collect) governor.noteCollection(nowMs, 0);
    if (verdict.terminate) {
      owner.onTooMuch();
      return;
    }
    if (verdict.mode !== this.mode) {
      this.mode = verdict.mode;
      owner.onMemoryMode(verdict.mode);
    }
    this.noteChange(store);
  }
}
