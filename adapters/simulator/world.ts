import type { Clock } from '../../core/api/index.ts';
import { Digest } from '../../core/log/digest.ts';
import type { WorkerReport } from '../../core/messages/stimulus.ts';
import type { ToWorkerMessage } from '../../core/messages/to-worker.ts';
import type { IncomingStimulus } from '../../core/scheduler-host/tokens.ts';
import { heartbeatIntervalMs } from '../../core/util/event-loop.ts';
import { SimulatedNetwork, type SimulatedTransfers } from './network.ts';
import {
  DEFAULT_DISK_BANDWIDTH,
  DEFAULT_DURATIONS,
  DEFAULT_NETWORK,
  type DurationModel,
  type Evaluate,
  type NetworkModel,
  type Outcome,
  type SimulationOptions,
  type WorkerModel,
  workerModels,
} from './options.ts';
import { Draw } from './random.ts';
import type { Fault } from './simulated-cluster.ts';
import { type RunOwner, SimulatedWorker, type WorkerWorld } from './worker.ts';

/** Milliseconds after which a supervisor starts a worker again that had to close. */
const RESTART_MS = 1000;

/** The table of the costs of tasks, by `runSpec`. */
export interface TaskCosts {
  durationMs(runSpec: unknown): number;
  nbytes(runSpec: unknown): number;
}

/** The scheduler, as workers reach it. */
export interface SchedulerEnd {
  readonly knows: (address: string) => boolean;
  accept(stimulus: IncomingStimulus): void;
}

interface WorldOptions {
  readonly validate: boolean;
  readonly diskBandwidth: number;
  readonly evaluate?: Evaluate;
  readonly outcome?: Outcome;
}

/** The workers, the network between them, and what goes wrong. */
export class SimulatedWorld implements WorkerWorld {
  readonly options: WorldOptions;
  readonly network: SimulatedNetwork;
  readonly draw: Draw;
  readonly workers = new Map<string, SimulatedWorker>();
  /** All workers that there ever were. */
  readonly everyWorker: SimulatedWorker[] = [];
  activeRuns = 0;
  runCount = 0;
  /** Faults that have not happened, or whose effect has not ended. */
  pendingFaults = 0;
  /** A hash of what happens on workers, and when. */
  readonly trace = new Digest();
  private readonly places: (SimulatedWorker | undefined)[] = [];
  private readonly startsOfPlace: number[] = [];
  private readonly models: WorkerModel[];
  private readonly runsOfKey = new Map<string, number>();
  /** Those that last, by the name of the worker: the newest counts. */
  private readonly slowdowns = new Map<string, number[]>();
  private readonly heartbeatMs: number | undefined;
  private readonly net: NetworkModel;
  private readonly durations: DurationModel;
  private messageCount = 0;
  private schedulerFreeMs = 0;

  constructor(
    readonly clock: Clock,
    private readonly scheduler: SchedulerEnd,
    private readonly costs: TaskCosts,
    options: SimulationOptions,
  ) {
    const { evaluate, outcome } = options;
    this.options = {
      validate: options.validate ?? false,
      diskBandwidth: options.diskBandwidth ?? DEFAULT_DISK_BANDWIDTH,
      evaluate,
      outcome,
    };
    this.net = { ...DEFAULT_NETWORK, ...options.network };
    this.durations = { ...DEFAULT_DURATIONS, ...options.durations };
    this.network = new SimulatedNetwork(clock, this.net);
    this.draw = new Draw(options.seed ?? 1);
    this.models = workerModels(options);
    this.heartbeatMs = options.heartbeatMs;
  }

  /** Starts the workers, and arms the faults. */
  start(faults: readonly Fault[]): void {
    this.models.forEach((model, place) => this.startWorker(place, model));
    for (const fault of faults) this.plan(fault.atMs, () => this.inflict(fault));
  }

  toWorker(address: string, message: ToWorkerMessage): void {
    this.workers.get(address)?.receive(message);
  }

  report(worker: SimulatedWorker, message: WorkerReport): void {
    const { address } = worker;
    // The message is ours alone. A copy would get a hidden class of its own, which slows the kernel down.
    (message as { worker?: string }).worker = address;
    worker.send(() => {
      // Its connection would have been closed.
      if (this.scheduler.knows(address)) this.scheduler.accept(message as IncomingStimulus);
    });
  }

  whenFree(deliver: () => void): () => void {
    return this.durations.schedulerMs === 0 ? deliver : () => this.queueAtScheduler(deliver);
  }

  messageMs(worker: string): number {
    const { latencyMs, jitterMs } = this.net;
    if (jitterMs === 0) return latencyMs;
    return latencyMs + jitterMs * this.draw.uniform(worker, this.messageCount++);
  }

  transfersOf(address: string): SimulatedTransfers | undefined {
    return this.workers.get(address)?.transfers;
  }

  get overheadMs(): number {
    return this.durations.overheadMs;
  }

  countRun(key: string): number {
    this.runCount++;
    if (this.durations.spread === 0 && this.options.outcome === undefined) return 0;
    const before = this.runsOfKey.get(key) ?? 0;
    this.runsOfKey.set(key, before + 1);
    return before;
  }

  durationMs(worker: RunOwner, key: string, runSpec: unknown, attempt: number): number {
    const { spread, overheadMs } = this.durations;
    const speed = worker.speed / (this.slowdowns.get(worker.name)?.at(-1) ?? 1);
    return (
      overheadMs + (this.costs.durationMs(runSpec) * this.draw.factor(spread, key, attempt)) / speed
    );
  }

  nbytesOf(runSpec: unknown): number {
    return this.costs.nbytes(runSpec);
  }

  noteRunEnd({ name }: RunOwner, key: string): void {
    this.trace.add(this.clock.nowMs());
    this.trace.addText(name);
    this.trace.addText(key);
  }

  kill(place: number): void {
    const worker = this.places[place];
    if (worker === undefined) return;
    this.bury(worker, false);
    this.restartLater(worker, RESTART_MS);
  }

  close(worker: SimulatedWorker, restart: boolean): void {
    this.bury(worker, true);
    if (restart) this.restartLater(worker, RESTART_MS);
  }

  /** Another worker, in a place of its own. */
  join(model: WorkerModel = this.models[0] ?? {}): void {
    this.startWorker(this.places.length, model);
  }

  private queueAtScheduler(deliver: () => void): void {
    const { schedulerMs } = this.durations;
    const nowMs = this.clock.nowMs();
    this.schedulerFreeMs = Math.max(nowMs, this.schedulerFreeMs) + schedulerMs;
    this.clock.setTimer(this.schedulerFreeMs - nowMs, deliver);
  }

  private startWorker(place: number, model: WorkerModel): void {
    const before = this.startsOfPlace[place] ?? 0;
    this.startsOfPlace[place] = before + 1;
    const name = before === 0 ? `w${place + 1}` : `w${place + 1}-${before + 1}`;
    const worker = new SimulatedWorker(name, model, this.speedOf(name, model), place, this);
    this.places[place] = worker;
    this.everyWorker.push(worker);
    this.workers.set(worker.address, worker);
    worker.send(() => {
      const { identity } = worker;
      this.scheduler.accept({ op: 'register-worker', identity, status: 'running' });
    });
    this.beat(worker, this.draw.uniform(name));
  }

  private beat(worker: SimulatedWorker, part: number): void {
    const intervalMs = this.heartbeatMs ?? heartbeatIntervalMs(this.workers.size);
    if (intervalMs === Infinity) return;
    worker.later(part * intervalMs, () => {
      worker.heartbeat();
      this.beat(worker, 1);
    });
  }

  /** @param expected - whether the scheduler wanted it to close */
  private bury(worker: SimulatedWorker, expected: boolean): void {
    const { address, place, name } = worker;
    this.places[place] = undefined;
    this.workers.delete(address);
    worker.die();
    this.trace.addText(`${name} is gone`);
    worker.send(() => {
      if (!this.scheduler.knows(address)) return;
      this.scheduler.accept({ op: 'remove-worker', worker: address, expected, close: false });
    });
  }

  private restartLater({ place, model }: SimulatedWorker, ms: number): void {
    this.plan(this.clock.nowMs() + ms, () => this.startWorker(place, model));
  }

  private speedOf(name: string, { speed = 1 }: WorkerModel): number {
    const { speedSpread } = this.durations;
    return speed * this.draw.factor(speedSpread, `speed of ${name}`);
  }

  /** Plans something that the end of the simulation waits for. */
  private plan(atMs: number, happen: () => void): void {
    this.pendingFaults++;
    this.clock.setTimer(atMs - this.clock.nowMs(), () => {
      this.pendingFaults--;
      happen();
    });
  }

  /** Adds what a fault does to what others do, until its own end. */
  private lastUntil(untilMs: number, lasting: number[], effect: number): void {
    lasting.push(effect);
    this.plan(untilMs, () => lasting.splice(lasting.indexOf(effect), 1));
  }

  private inflict(fault: Fault): void {
    if (fault.kind === 'join') {
      this.join({
        ...this.models[0],
        ...(fault.threads === undefined ? {} : { threads: fault.threads }),
      });
      return;
    }
    const worker = this.places[fault.worker];
    if (worker === undefined) return;
    const untilMs = this.clock.nowMs() + (fault.kind === 'kill' ? 0 : fault.forMs);
    switch (fault.kind) {
      case 'kill': {
        const { restartAfterMs } = fault;
        this.bury(worker, false);
        if (restartAfterMs !== undefined) this.restartLater(worker, restartAfterMs);
        return;
      }
      case 'pause':
        worker.pausedUntilMs = Math.max(worker.pausedUntilMs, untilMs);
        this.plan(untilMs, () => undefined);
        return;
      case 'straggle': {
        const factors = this.slowdowns.get(worker.name) ?? [];
        this.slowdowns.set(worker.name, factors);
        this.lastUntil(untilMs, factors, fault.factor);
        return;
      }
      case 'delay':
        this.lastUntil(untilMs, worker.extraDelaysMs, fault.byMs);
        return;
    }
  }
}
