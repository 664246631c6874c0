import { type Clock, type Timer, YardmasterError } from '../../core/api/index.ts';
import type { SchedulerKernel } from '../../core/kernel/kernel.ts';
import { DecisionDigest, digestOfState } from '../../core/log/digest.ts';
import { RecordingKernel } from '../../core/log/recording-kernel.ts';
import type { ToClientMessage } from '../../core/messages/to-client.ts';
import type { ToWorkerMessage } from '../../core/messages/to-worker.ts';
import type { Scheduler } from '../../core/scheduler-host/scheduler.ts';
import type { IncomingStimulus } from '../../core/scheduler-host/tokens.ts';
import { lineLog } from '../../core/shared/line-log.ts';
import { checkCall } from '../../core/shared/schema.ts';
import { countOf } from '../../core/util/values.ts';
import { VirtualClock } from '../clocks/virtual-clock.ts';
import type { SimulatedWorkload } from '../workloads/shapes.ts';
import { checkOptions, RUN_RULES, type SimulationOptions } from './options.ts';
import {
  type MakeScheduler,
  SimulatedClient,
  type SimulatedScheduler,
  startSimulatedScheduler,
} from './scheduler.ts';
import { SimulatedWorld } from './world.ts';

/** The options of the submission of a graph. */
export interface SubmitOptions {
  /** Name of the client. Default `client`. */
  readonly client?: string;
  /** The time of the submission, in milliseconds of virtual time. Default: now. */
  readonly atMs?: number;
}

/** The end of a simulation. */
export interface RunOptions {
  /** Virtual milliseconds that may pass. Default: a year. */
  readonly maxMs?: number;
}

/** Virtual milliseconds without a run, a transfer or a transition, after which nothing more is expected. */
const STALL_MS = 600_000;
const YEAR_MS = 365 * 24 * 3_600_000;
/** Events between two looks at whether anything still happens. */
const EVENTS_PER_LOOK = 10_000;
const CLIENT = 'client';

/** The clock of the scheduler and its plugins: what their timers promise is awaited. */
class PluginClock implements Clock {
  hasRun = false;

  constructor(private readonly clock: VirtualClock) {}

  nowMs(): number {
    return this.clock.nowMs();
  }

  setTimer(delayMs: number, callback: () => void): Timer {
    return this.clock.setTimer(delayMs, () => {
      this.hasRun = true;
      callback();
    });
  }
}

/**
 * A cluster in virtual time: the scheduler of production with its policies and plugins, the state machines of real
 * workers, and models of all around them. Equal options give equal runs.
 */
export class SimulatedCluster {
  readonly clock = new VirtualClock();
  /** Warnings and errors, one line each, unless a `log` was given. */
  readonly logged: string[] = [];
  readonly clients = new Map<string, SimulatedClient>();
  private readonly pluginClock = new PluginClock(this.clock);
  private scheduled!: SimulatedScheduler;
  private world!: SimulatedWorld;
  private readonly workloads: string[] = [];
  /** Costs of all tasks, by the number that is their `runSpec`. */
  private readonly durationsMs: number[] = [];
  private readonly sizes: number[] = [];
  private pendingSubmissions = 0;
  private firstSubmitMs: number | undefined;
  private openClients = 0;
  private settledMs = 0;
  private decisions = 0;

  /**
   * @param nextTurn - calls back when the jobs of promises that are due have run
   * @throws YardmasterError `ERR_CONFIG` when options are wrong
   */
  constructor(
    private readonly options: SimulationOptions,
    private readonly nextTurn: (callback: () => void) => void,
  ) {
    checkOptions(options);
  }

  /**
   * Starts the scheduler and the workers; to be called once, before anything else.
   * @throws YardmasterError `ERR_CONFIG`, `ERR_PLUGIN_LOAD`, `ERR_PLUGIN_SETUP`, `ERR_SLOT`
   * @internal
   */
  async open(make: MakeScheduler): Promise<void> {
    const { options, pluginClock, clock, logged } = this;
    const log = options.log ?? lineLog(logged);
    const wire = {
      toWorker: (address: string, message: ToWorkerMessage) => this.toWorker(address, message),
      toClient: (client: string, message: ToClientMessage) => this.toClient(client, message),
    };
    this.scheduled = await startSimulatedScheduler(
      options,
      { clock: pluginClock, log, wire },
      make,
    );
    const { knowledge: prefixes = [] } = options;
    if (prefixes.length > 0) this.scheduled.accept({ op: 'recall-prefixes', prefixes });
    const end = {
      knows: (address: string) => this.kernel.cluster.workers.has(address),
      accept: (stimulus: IncomingStimulus) => this.scheduled.accept(stimulus),
    };
    const costs = {
      durationMs: (runSpec: unknown) => this.durationsMs[runSpec as number] ?? 0,
      nbytes: (runSpec: unknown) => this.sizes[runSpec as number] ?? 0,
    };
    this.world = new SimulatedWorld(clock, end, costs, options);
    this.world.start(options.faults ?? []);
    // Workers are there before work comes.
    const { latencyMs = 0.5, jitterMs = 0 } = options.network ?? {};
    clock.advance(latencyMs + jitterMs);
  }

  get scheduler(): Scheduler {
    return this.scheduled.scheduler;
  }

  get kernel(): SchedulerKernel {
    return this.scheduled.kernel;
  }

  get nowMs(): number {
    return this.clock.nowMs();
  }

  /** True when clients know about all results that they want. */
  get isSettled(): boolean {
    return this.openClients === 0 && this.pendingSubmissions === 0;
  }

  /** Has a client submit a graph. */
  submit(workload: SimulatedWorkload, { client = CLIENT, atMs }: SubmitOptions = {}): void {
    const first = this.durationsMs.length;
    workload.tasks.forEach((_, index) => {
      this.durationsMs.push(1000 * (workload.durationsS[index] ?? 0));
      // Whole bytes, as workers report them: sums of fractions would drift.
      this.sizes.push(Math.round(workload.nbytes[index] ?? 0));
    });
    this.workloads.push(workload.name);
    this.pendingSubmissions++;
    const delayMs = atMs === undefined ? 0 : Math.max(0, atMs - this.nowMs);
    this.clock.setTimer(delayMs, () => this.send(workload, client, first));
  }

  /**
   * Lets time pass until clients know about all results.
   * @throws YardmasterError `ERR_TIMEOUT` when nothing happens any more, or the time is over; `ERR_CONFIG`
   */
  async run(options: RunOptions = {}): Promise<void> {
    const { maxMs = YEAR_MS } = checkCall('run', options, RUN_RULES);
    const { clock, pluginClock } = this;
    const untilMs = this.nowMs + maxMs;
    let begun = -1;
    let idleSinceMs = Infinity;
    for (let events = 0; !this.isSettled; events++) {
      if (events % EVENTS_PER_LOOK === 0) {
        // A look may fall into the moment between a transfer and its message, so it takes two of them.
        const isIdle = !this.isBusy && begun === this.begunCount;
        begun = this.begunCount;
        idleSinceMs = isIdle ? Math.min(idleSinceMs, this.nowMs) : Infinity;
        if (this.nowMs - idleSinceMs > STALL_MS) throw this.stuck('nothing happens any more');
      }
      if ((clock.nextTimerMs ?? Infinity) > untilMs) throw this.stuck(`${maxMs} ms are over`);
      clock.runNext();
      this.checkCrash();
      if (pluginClock.hasRun) await this.settlePromises();
    }
  }

  /** Lets this time pass, whatever happens. */
  async pass(durationMs: number): Promise<void> {
    const { clock, pluginClock } = this;
    const untilMs = this.nowMs + durationMs;
    while ((clock.nextTimerMs ?? Infinity) <= untilMs) {
      clock.runNext();
      this.checkCrash();
      if (pluginClock.hasRun) await this.settlePromises();
    }
    clock.advanceTo(untilMs);
  }

  /** The value of a key that a client wants, as it is on a worker: see `SimulationOptions.evaluate`. Undefined: it is on none. */
  valueOf(key: string): number | undefined {
    for (const { address } of this.kernel.cluster.tasks.get(key)?.whoHas ?? []) {
      const item = this.world.workers.get(address)?.store.items.get(key);
      if (item !== undefined) return item.value;
    }
    return undefined;
  }

  report(): SimulationReport {
    const { world, scheduled, kernel } = this;
    const endMs = this.isSettled ? this.settledMs : this.nowMs;
    const startMs = this.firstSubmitMs ?? 0;
    const workers = world.everyWorker;
    const clients = [...this.clients.values()];
    const { useless } = scheduled.fallbacks;
    const firstFailure = clients.find((client) => client.firstFailure)?.firstFailure;
    return {
      workload: this.workloads.join('+'),
      seed: this.options.seed ?? 1,
      makespanS: (endMs - startMs) / 1000,
      tasks: this.durationsMs.length,
      runs: world.runCount,
      failed: clients.reduce((sum, client) => sum + client.failedCount, 0),
      firstFailure,
      movedBytes: world.network.movedBytes,
      transfers: world.network.transferCount,
      peakWorkerBytes: workers.reduce((peak, { store }) => Math.max(peak, store.peakBytes), 0),
      spilledBytes: workers.reduce((sum, { store }) => sum + store.spilledBytes, 0),
      pauses: workers.reduce((sum, { pauseCount }) => sum + pauseCount, 0),
      idleShare: this.idleShare(startMs, endMs),
      decisions: this.decisions,
      fallbacks: scheduled.fallbacks.count,
      useless,
      stimuli: scheduled.stimulusCount,
      transitions: kernel.transitionCounter,
      traceHash: this.traceHash(),
    };
  }

  async close(): Promise<void> {
    await this.scheduler.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  private get isBusy(): boolean {
    const { activeRuns, pendingFaults, network } = this.world;
    return activeRuns + pendingFaults + network.activeCount + this.pendingSubmissions > 0;
  }

  /** Runs and transfers so far. Tasks that a policy places nowhere make transitions for ever. */
  private get begunCount(): number {
    const { runCount, network } = this.world;
    return runCount + network.transferCount;
  }

  private send(workload: SimulatedWorkload, name: string, first: number): void {
    this.firstSubmitMs ??= this.nowMs;
    let client = this.clients.get(name);
    if (client === undefined) {
      client = new SimulatedClient(name, (isSettled) => this.noteSettled(isSettled));
      this.clients.set(name, client);
      this.scheduled.accept({ op: 'register-client', client: name });
    }
    client.want(workload.keys);
    this.pendingSubmissions--;
    const tasks = workload.tasks.map((task, index) => ({ ...task, runSpec: first + index }));
    const { keys } = workload;
    const deliver = this.world.whenFree(() => {
      this.scheduled.accept({ op: 'update-graph', client: name, tasks, keys });
    });
    this.clock.setTimer(this.world.messageMs(name), deliver);
  }

  private noteSettled(isSettled: boolean): void {
    this.openClients += isSettled ? -1 : 1;
    if (isSettled) this.settledMs = this.nowMs;
  }

  private toWorker(address: string, message: ToWorkerMessage): void {
    if (message.op === 'compute-task') this.decisions++;
    this.world.toWorker(address, message);
  }

  private toClient(name: string, message: ToClientMessage): void {
    const client = this.clients.get(name);
    if (client === undefined) return;
    const { nowMs } = this;
    // In the order in which they were sent, as on a connection.
    client.lastNewsMs = Math.max(nowMs + this.world.messageMs(name), client.lastNewsMs);
    this.clock.setTimer(client.lastNewsMs - nowMs, () => client.take(message));
  }

  private idleShare(startMs: number, endMs: number): number {
    let busyMs = 0;
    let threadMs = 0;
    for (const worker of this.world.everyWorker) {
      busyMs += worker.runs.busyMs;
      const livedMs = Math.min(worker.diedMs, endMs) - Math.max(worker.bornMs, startMs);
      threadMs += worker.threadCount * Math.max(0, livedMs);
    }
    return threadMs === 0 ? 0 : Math.max(0, 1 - busyMs / threadMs);
  }

  private traceHash(): string {
    const { kernel, world } = this;
    const decided =
      kernel instanceof RecordingKernel ? kernel.checkNow(false).decisions : new DecisionDigest();
    return `${world.trace.toString()}${String(decided)}${digestOfState(kernel.cluster)}`;
  }

  private checkCrash(): void {
    const { crash } = this.scheduler;
    if (crash !== undefined) throw crash;
  }

  /** Jobs of promises that a timer of a plugin has begun. */
  private settlePromises(): Promise<void> {
    this.pluginClock.hasRun = false;
    return new Promise((resolve) => this.nextTurn(resolve));
  }

  private stuck(why: string): YardmasterError {
    const open = [...this.clients.values()].reduce((sum, client) => sum + client.openCount, 0);
    const { workers, queued, unrunnable } = this.kernel.cluster;
    const message = `the simulation does not end: ${why} at ${this.nowMs} ms, and clients wait for ${countOf(open, 'key')} (${countOf(workers.size, 'worker')}, ${countOf(queued.size, 'task')} queued, ${unrunnable.size} without a worker)`;
    const data = { nowMs: this.nowMs, open, workers: workers.size };
    return new YardmasterError('ERR_TIMEOUT', message, data);
  }
}

/**
 * A fault, and its time in milliseconds of virtual time. `worker` is the number of a place, from 0 on: when a
 * worker there has been started again, the new one is meant. A place without a worker is left alone.
 */
export type Fault = KillFault | JoinFault | PauseFault | StraggleFault | DelayFault;

/** A worker dies with all it holds. */
export interface KillFault {
  readonly kind: 'kill';
  readonly worker: number;
  readonly atMs: number;
  /** Another worker starts in its place after this time. Default: none does. */
  readonly restartAfterMs?: number;
}

/** Another worker comes. */
export interface JoinFault {
  readonly kind: 'join';
  readonly atMs: number;
  /** Threads. Default: as the first worker. */
  readonly threads?: number;
}

/** The process of a worker stands still. */
export interface PauseFault {
  readonly kind: 'pause';
  readonly worker: number;
  readonly atMs: number;
  readonly forMs: number;
}

/** The runs that a worker begins meanwhile take longer by a factor. */
export interface StraggleFault {
  readonly kind: 'straggle';
  readonly worker: number;
  readonly atMs: number;
  readonly forMs: number;
  readonly factor: number;
}

/** Messages between a worker and the scheduler take longer. */
export interface DelayFault {
  readonly kind: 'delay';
  readonly worker: number;
  readonly atMs: number;
  readonly forMs: number;
  readonly byMs: number;
}

/** The figures of a simulation. */
export interface SimulationReport {
  /** Names of the workloads, joined by `+`. */
  readonly workload: string;
  readonly seed: number;
  /** Seconds from the first submission until the clients know about all results. */
  readonly makespanS: number;
  readonly tasks: number;
  /** Runs that began; more than there are tasks when results were lost. */
  readonly runs: number;
  /** Keys that clients wanted and that failed. */
  readonly failed: number;
  /** The reason of the first failure. */
  readonly firstFailure?: string;
  /** Bytes of results that went from one worker to another. */
  readonly movedBytes: number;
  readonly transfers: number;
  /** The most that one worker had in memory. */
  readonly peakWorkerBytes: number;
  /** Bytes that workers wrote to their disks. */
  readonly spilledBytes: number;
  /** The number of times that a worker paused for lack of memory. */
  readonly pauses: number;
  /** The part of the time of all threads in which nothing ran. */
  readonly idleShare: number;
  /** The number of times that the scheduler sent a task to a worker. */
  readonly decisions: number;
  /** The number of times that a policy threw or gave an unusable answer: of a slot, the built-in one decided in its place. */
  readonly fallbacks: number;
  /**
   * Set when a policy did so each time that it was asked something: then the figures are not its own. Says which one, and
   * what it did.
   */
  readonly useless?: string;
  /** Stimuli that the scheduler handled, and transitions that its tasks made. */
  readonly stimuli: number;
  readonly transitions: number;
  /** A hash of all that happened, and when: equal options give equal hashes. */
  readonly traceHash: string;
}
