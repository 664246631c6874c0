import { SimulatedWorld } from '../../adapters/simulator/world.ts';
import { VirtualClock } from '../../adapters/clocks/virtual-clock.ts';
import type { KernelSlots } from '../../core/api/policies.ts';
import type { KernelOptions } from '../../core/kernel/ports.ts';
import type { Outbox } from '../../core/kernel/outbox.ts';
import { SchedulerKernel } from '../../core/kernel/kernel.ts';
import type { GraphTask, UpdateGraph } from '../../core/messages/stimulus.ts';
import type { Unnamed } from './env.ts';
import { sinks } from './graph.ts';
import { makePorts } from './ports.ts';

/** What a simulation is about; everything has a default. */
export interface SimulationOptions {
  readonly policies?: Partial<KernelSlots>;
  /** Threads of each worker. */
  readonly workers?: readonly number[];
  readonly bandwidth?: number;
  /** How long a task takes, in milliseconds. */
  readonly durationMs?: (key: string) => number;
  /** Check every invariant of scheduler and workers; slow. */
  readonly validate?: boolean;
  /** Size of the result of a task. */
  readonly nbytes?: (key: string) => number;
  /** Makes the kernel in the place of the usual one. */
  readonly makeKernel?: (options: Partial<KernelOptions>) => SchedulerKernel;
}

/** Workers and network of the simulator that write down which tasks have run. */
class NotingWorld extends SimulatedWorld {
  readonly executed: string[] = [];

  override noteRunEnd(worker: Parameters<SimulatedWorld['noteRunEnd']>[0], key: string): void {
    super.noteRunEnd(worker, key);
    this.executed.push(key);
  }
}

/**
 * A bare kernel with given policies, and no plugins, on the simulator's workers. Everything is called at once, and not
 * by promises. One submission or several; then `run` until nothing happens any more.
 */
export class SimulatedCluster {
  readonly kernel: SchedulerKernel;
  /** The most that all workers ever held together. */
  peakTotalBytes = 0;
  private readonly clock = new VirtualClock();
  private readonly world: NotingWorld;
  private sequence = 0;

  constructor(options: SimulationOptions = {}) {
    const { policies = {}, workers = [1, 1, 1, 1], bandwidth = 100_000_000 } = options;
    const { validate = false, durationMs = () => 100, nbytes = () => 1_000_000 } = options;
    const {
      makeKernel = (chosen: Partial<KernelOptions>) =>
        new SchedulerKernel(chosen, makePorts({ policies }), 0),
    } = options;
    this.kernel = makeKernel({ bandwidth, validate });
    const scheduler = {
      knows: (address: string) => this.kernel.cluster.workers.has(address),
      accept: (stimulus: object) => this.stimulate(stimulus as Unnamed),
    };
    const costs = {
      durationMs: (key: unknown) => durationMs(key as string),
      nbytes: (key: unknown) => nbytes(key as string),
    };
    this.world = new NotingWorld(this.clock, scheduler, costs, {
      workers: workers.map((threads) => ({ threads })),
      network: { bandwidth, latencyMs: 1, sharing: 'none' },
      heartbeatMs: Infinity,
      validate,
    });
    this.world.start([]);
    this.clock.advance(1);
  }

  /** Keys in the order in which their runs ended. */
  get executed(): readonly string[] {
    return this.world.executed;
  }

  get nowMs(): number {
    return this.clock.nowMs();
  }

  /** Lets time pass, in which nothing happens but what is due. */
  set nowMs(timeMs: number) {
    this.clock.advanceTo(timeMs);
  }

  /** The most that one worker ever held. */
  get peakWorkerBytes(): number {
    return Math.max(...this.world.everyWorker.map(({ store }) => store.peakBytes));
  }

  /** Bytes that went from one worker to another. */
  get movedBytes(): number {
    return this.world.network.movedBytes;
  }

  submit(tasks: readonly GraphTask[], more: Partial<UpdateGraph> = {}): void {
    const costed = tasks.map((task) => ({ ...task, runSpec: task.key }));
    this.stimulate({
      op: 'update-graph',
      client: 'c',
      tasks: costed,
      keys: sinks(tasks),
      ...more,
    });
  }

  /** Until nothing happens any more, or that time has come. */
  run(untilMs = Infinity): this {
    const { clock } = this;
    while ((clock.nextTimerMs ?? Infinity) <= untilMs && clock.runNext()) {
      const held = this.world.everyWorker.reduce((sum, { store }) => sum + store.memoryBytes, 0);
      this.peakTotalBytes = Math.max(this.peakTotalBytes, held);
    }
    return this;
  }

  stimulate(stimulus: Unnamed): void {
    const stimulusId = `${stimulus.op}-${this.sequence++}`;
    this.deliver(this.kernel.handle({ ...stimulus, stimulusId }, this.clock.nowMs()));
  }

  private deliver({ toWorkers }: Outbox): void {
    for (const { worker, message } of toWorkers) this.world.toWorker(worker.address, message);
  }
}
