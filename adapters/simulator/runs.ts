import type { TaskFailure } from '../../core/state/task.ts';
import type { Execute, WorkerEvent } from '../../core/worker/events/events.ts';
import { type Clock, YardmasterError } from '../../core/api/index.ts';
import type { Evaluate, Outcome } from './options.ts';
import type { SimulatedStore } from './store.ts';

/** The worker whose threads these are. */
export interface RunOwner {
  readonly name: string;
  readonly threadCount: number;
  readonly speed: number;
  readonly store: SimulatedStore;
  later(ms: number, callback: () => void): void;
  take(event: WorkerEvent): void;
}

/** What runs need of the world around. */
export interface RunWorld {
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
export class SimulatedRuns {
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

  /** What runs continues to its end, as on a thread that cannot be interrupted; what waits ends when its turn comes. */
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
