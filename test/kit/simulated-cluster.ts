import type { KernelSlots } from '../../core/api/policies.ts';
import type { KernelOptions } from '../../core/kernel/options.ts';
import type { Outbox } from '../../core/kernel/outbox.ts';
import { SchedulerKernel } from '../../core/kernel/scheduler-kernel.ts';
import type { GraphTask, UpdateGraph } from '../../core/messages/stimulus.ts';
import type { ToWorkerMessage } from '../../core/messages/to-worker.ts';
import type { Instruction, WorkerEvent } from '../../core/worker/events/events.ts';
import { WorkerKernel } from '../../core/worker/worker-kernel.ts';
import type { Unnamed } from './env.ts';
import { sinks } from './graph.ts';
import { addressOf } from './in-short.ts';
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

interface Happening {
  readonly atMs: number;
  readonly sequence: number;
  readonly happen: () => void;
}

/** Milliseconds for a message, and before the first byte of a transfer. */
const LATENCY_MS = 1;

/** A real machine of a worker, whose runs and transfers take virtual time. */
class SimulatedWorker {
  readonly kernel: WorkerKernel;
  /** Bytes by key: what it holds at present. */
  readonly store = new Map<string, number>();
  heldBytes = 0;
  peakBytes = 0;
  receivedBytes = 0;

  constructor(
    readonly address: string,
    threadCount: number,
    private readonly world: SimulatedCluster,
  ) {
    this.kernel = new WorkerKernel({ address, threadCount, validate: world.validate });
  }

  take(event: WorkerEvent): void {
    for (const next of this.kernel.handle(event, this.world.nowMs)) this.carryOut(next);
  }

  private carryOut(instruction: Instruction): void {
    const { world } = this;
    switch (instruction.kind) {
      case 'execute': {
        const { key, dependencies } = instruction;
        for (const input of dependencies) {
          if (!this.store.has(input)) throw new Error(`${key} runs without its input ${input}`);
        }
        const ms = world.durationMs(key);
        world.later(ms, () => {
          this.hold(key, world.nbytes(key));
          const stopS = world.nowMs / 1000;
          const timings = [{ action: 'compute', startS: stopS - ms / 1000, stopS }];
          world.executed.push(key);
          this.take({
            op: 'execute-success',
            stimulusId: `ran-${key}`,
            key,
            nbytes: world.nbytes(key),
            type: 'bytes',
            timings,
          });
        });
        return;
      }
      case 'gather':
        this.fetch(instruction.worker, instruction.keys, instruction.nbytes);
        return;
      case 'drop-data':
        this.heldBytes -= this.store.get(instruction.key) ?? 0;
        this.store.delete(instruction.key);
        return;
      case 'send': {
        const report = { ...instruction.message, worker: this.address } as Unnamed;
        world.later(LATENCY_MS, () => world.stimulate(report));
        return;
      }
      case 'abort-execution':
        return; // It runs to its end; nobody takes the result.
      case 'rejoined':
        throw new Error('nobody has ever left its thread here');
      case 'retry-busy-later':
        throw new Error('nobody is ever busy here');
    }
  }

  private fetch(from: string, keys: readonly string[], nbytes: number): void {
    const { world } = this;
    world.later(LATENCY_MS + (1000 * nbytes) / world.bandwidth, () => {
      const peer = world.workers.get(from);
      const found = keys.filter((key) => peer?.store.has(key));
      const sizes = found.map((key) => peer!.store.get(key)!);
      found.forEach((key, index) => {
        this.hold(key, sizes[index]!);
        this.receivedBytes += sizes[index]!;
      });
      const event = { op: 'gather-success', worker: from, keys: found, nbytes: sizes } as const;
      this.take({ ...event, stimulusId: `got-${found.join('-')}` });
    });
  }

  private hold(key: string, nbytes: number): void {
    if (this.store.has(key)) return;
    this.store.set(key, nbytes);
    this.heldBytes += nbytes;
    this.peakBytes = Math.max(this.peakBytes, this.heldBytes);
    this.world.noteBytes();
  }
}

/**
 * A real kernel and the real machines of workers in virtual time: results exist, are fetched, and
 * are dropped. One submission or several; then `run` until nothing happens any more.
 */
export class SimulatedCluster {
  readonly kernel: SchedulerKernel;
  readonly workers = new Map<string, SimulatedWorker>();
  readonly bandwidth: number;
  readonly validate: boolean;
  readonly durationMs: (key: string) => number;
  readonly nbytes: (key: string) => number;
  /** Keys in the order in which their runs ended. */
  readonly executed: string[] = [];
  nowMs = 0;
  peakTotalBytes = 0;

  private readonly agenda: Happening[] = [];
  private sequence = 0;

  constructor(options: SimulationOptions = {}) {
    const { policies = {}, workers = [1, 1, 1, 1], bandwidth = 100_000_000 } = options;
    this.bandwidth = bandwidth;
    this.validate = options.validate ?? false;
    this.durationMs = options.durationMs ?? (() => 100);
    this.nbytes = options.nbytes ?? (() => 1_000_000);
    const {
      makeKernel = (chosen: Partial<KernelOptions>) =>
        new SchedulerKernel(chosen, makePorts({ policies }), 0),
    } = options;
    this.kernel = makeKernel({ bandwidth, validate: this.validate });
    workers.forEach((threadCount, index) => this.addWorker(`w${index + 1}`, threadCount));
  }

  submit(tasks: readonly GraphTask[], more: Partial<UpdateGraph> = {}): void {
    this.stimulate({ op: 'update-graph', client: 'c', tasks, keys: sinks(tasks), ...more });
  }

  /** Until nothing happens any more, or that time has come. */
  run(untilMs = Infinity): this {
    for (let next = this.agenda[0]; next !== undefined; next = this.agenda[0]) {
      if (next.atMs > untilMs) break;
      this.agenda.shift();
      this.nowMs = next.atMs;
      next.happen();
    }
    return this;
  }

  /** Bytes that went from one worker to another. */
  get movedBytes(): number {
    return this.sum((worker) => worker.receivedBytes);
  }

  /** The most that one worker ever held. */
  get peakWorkerBytes(): number {
    return Math.max(...[...this.workers.values()].map((worker) => worker.peakBytes));
  }

  later(ms: number, happen: () => void): void {
    const happening = { atMs: this.nowMs + ms, sequence: this.sequence++, happen };
    // Sorted by time, then by who came first; few things are under way at once.
    let at = this.agenda.length;
    while (at > 0 && this.agenda[at - 1]!.atMs > happening.atMs) at--;
    this.agenda.splice(at, 0, happening);
  }

  stimulate(stimulus: Unnamed): void {
    const stimulusId = `${stimulus.op}-${this.sequence++}`;
    this.deliver(this.kernel.handle({ ...stimulus, stimulusId }, this.nowMs));
  }

  noteBytes(): void {
    this.peakTotalBytes = Math.max(
      this.peakTotalBytes,
      this.sum((worker) => worker.heldBytes),
    );
  }

  private deliver({ toWorkers }: Outbox): void {
    for (const { worker, message } of toWorkers) {
      const { address } = worker;
      const copy = structuredClone(message);
      this.later(LATENCY_MS, () => this.workers.get(address)?.take(eventOf(copy)));
    }
  }

  private addWorker(name: string, threadCount: number): void {
    const address = addressOf(name);
    this.workers.set(address, new SimulatedWorker(address, threadCount, this));
    this.stimulate({
      op: 'register-worker',
      status: 'running',
      identity: {
        address,
        serverId: name,
        name,
        host: name,
        threadCount,
        memoryLimitBytes: 0,
        resources: {},
      },
    });
  }

  private sum(of: (worker: SimulatedWorker) => number): number {
    let total = 0;
    for (const worker of this.workers.values()) total += of(worker);
    return total;
  }
}

function eventOf(message: ToWorkerMessage): WorkerEvent {
  if (message.op === 'close' || message.op === 'worker-status-change') {
    throw new Error(`a simulated worker is told to ${message.op}`);
  }
  return message;
}
