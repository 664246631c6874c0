import type { WorkerReport } from '../../core/messages/stimulus.ts';
import type { ToWorkerMessage } from '../../core/messages/to-worker.ts';
import type { WorkerIdentity } from '../../core/state/worker.ts';
import { EVENT_LOOP_RESOURCE } from '../../core/util/event-loop.ts';
import type { Instruction, WorkerEvent } from '../../core/worker/events/events.ts';
import type { MemoryMode } from '../../core/worker/memory/governor.ts';
import { WorkerKernel } from '../../core/worker/worker-kernel.ts';
import { MemoryWatch } from './memory-watch.ts';
import type { Port } from './network.ts';
import type { WorkerModel } from './options.ts';
import { type RunOwner, type RunWorld, SimulatedRuns } from './runs.ts';
import { SimulatedStore } from './store.ts';
import { SimulatedTransfers, type TransferOwner, type TransferWorld } from './transfers.ts';

/** What a worker needs of the world around. */
export interface WorkerWorld extends RunWorld, TransferWorld {
  readonly options: RunWorld['options'] & { readonly diskBandwidth: number };
  /** A message of this worker to the scheduler. */
  report(worker: SimulatedWorker, message: WorkerReport): void;
  /** What has a message handled that arrives at the scheduler, as soon as it is free. */
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
  /** Milliseconds by which messages to and from the scheduler are later. */
  extraDelayMs = 0;
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
    /** How much faster it computes than the workload says. */
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
    return { ...who, threadCount, memoryLimitBytes, resources, tellsRunEnds: true };
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
    const arriveMs = Math.max(clock.nowMs() + this.messageMs(), this.inboxMs);
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
    this.lastSentMs = Math.max(clock.nowMs() + this.messageMs(), this.lastSentMs);
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
    const bandwidth = this.transfers.takeBandwidth();
    world.report(this, {
      op: 'heartbeat-worker',
      stimulusId: '',
      metrics: bandwidth === undefined ? metrics : { ...metrics, bandwidth },
      executing: this.runs.executing(),
      workerNowMs: world.clock.nowMs(),
    });
  }

  onMemoryMode(mode: MemoryMode): void {
    const before = this.status;
    this.memoryMode = mode;
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
      case 'rejoined':
        return; // No simulated run gives its thread away.
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

  private messageMs(): number {
    return this.world.messageMs(this.name) + this.extraDelayMs;
  }
}
