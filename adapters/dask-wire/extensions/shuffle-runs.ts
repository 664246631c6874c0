import type { TaskView } from '../../../core/api/index.ts';
import type { DaskContext, Fields } from '../context.ts';
import { PythonException, uncaughtAnswer } from '../py-errors.ts';

/** A run of a shuffle. */
export interface Shuffle {
  readonly id: string;
  /** Grows with each run of any shuffle. */
  readonly runId: number;
  /** Which worker has which output partition, by the partition as text. */
  readonly workerFor: ReadonlyMap<string, readonly [partition: unknown, worker: string]>;
  /** Opaque; for the workers. */
  readonly runSpec: unknown;
  /** Addresses of workers that send or receive. */
  readonly participants: Set<string>;
}

/** Times that a run is placed anew because a worker left while Python was placing it. */
const ATTEMPTS_MAX = 5;

/** The shuffles that are under way. */
export class ShuffleRuns {
  /** By id. */
  readonly active = new Map<string, Shuffle>();
  private readonly beginning = new Map<string, Promise<Shuffle>>();
  private runCount = 0;
  private shift = 0;
  /** Changes when all is forgotten. */
  private epoch = 0;

  constructor(
    private readonly context: DaskContext,
    private readonly barrierOf: (id: string) => TaskView | undefined,
    private readonly idOf: (key: string) => string | undefined,
  ) {}

  /** One run, however many workers ask for it at once. */
  begin(id: string, barrier: TaskView): Promise<Shuffle> {
    let begun = this.beginning.get(id);
    if (begun === undefined) {
      begun = this.place(id, barrier).finally(() => this.beginning.delete(id));
      this.beginning.set(id, begun);
    }
    return begun;
  }

  clear(): void {
    this.epoch++;
    this.active.clear();
    this.beginning.clear();
  }

  private async place(id: string, barrier: TaskView): Promise<Shuffle> {
    const { epoch } = this;
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
      await this.partnersOf(barrier);
      const shuffle = await this.ask(barrier);
      if (this.epoch !== epoch || this.barrierOf(id) !== barrier) break;
      const { workers } = this.context.cluster;
      if (![...shuffle.participants].every((address) => workers.has(address))) continue;
      this.active.set(id, shuffle);
      this.context.log.info(
        { shuffle: id, runId: shuffle.runId, workers: shuffle.participants.size },
        'a P2P shuffle begins',
      );
      return shuffle;
    }
    throw inconsistent(`Shuffle ${id} could not begin: its tasks or workers are gone`);
  }

  private async ask(barrier: TaskView): Promise<Shuffle> {
    const runId = ++this.runCount;
    const run = await this.context.graphs.shuffleRun({
      barrier: barrier.runSpec,
      workers: this.workersOf(barrier),
      placed: this.placedWith(barrier),
      runId,
    });
    return {
      id: run.shuffleId,
      runId,
      workerFor: new Map(run.workerFor.map((entry) => [JSON.stringify(entry[0]), entry])),
      runSpec: run.runSpec,
      participants: new Set(run.workerFor.map(([, worker]) => worker)),
    };
  }

  /** Those that the barrier may run on. Each run begins with another one, so that small ones spread. */
  private workersOf({ restrictions }: TaskView): string[] {
    const wanted = restrictions?.workers;
    const all = [...this.context.workers.keys()];
    const allowed = wanted === undefined ? all : all.filter((address) => wanted.has(address));
    if (allowed.length === 0)
      throw inconsistent('There is no worker that may take part in the shuffle');
    const shift = this.shift++ % allowed.length;
    return [...allowed.slice(shift), ...allowed.slice(0, shift)];
  }

  /**
   * The two sides of a join have output tasks in common, so both put each partition on the same worker.
   * The workers may have changed since the other side began, so its choice counts.
   */
  private placedWith(barrier: TaskView): (readonly [unknown, string])[] {
    const placed = new Map<string, readonly [unknown, string]>();
    for (const partner of this.partners(barrier)) {
      const shuffle = this.active.get(partner);
      for (const [text, entry] of shuffle?.workerFor ?? []) placed.set(text, entry);
    }
    return [...placed.values()];
  }

  /** One side of a join must be placed before the other is. */
  private async partnersOf(barrier: TaskView): Promise<void> {
    for (const partner of this.partners(barrier)) {
      await this.beginning.get(partner)?.catch(() => undefined);
    }
  }

  private partners(barrier: TaskView): Set<string> {
    const ids = new Set<string>();
    for (const output of barrier.dependents) {
      for (const other of output.dependencies) {
        const id = other === barrier ? undefined : this.idOf(other.key);
        if (id !== undefined) ids.add(id);
      }
    }
    return ids;
  }
}

/** What a worker did does not fit to the state of the shuffle; it reports its task as failed or comes back. */
export function inconsistent(message: string): PythonException {
  return new PythonException('P2PConsistencyError', message);
}

/** The answer for an inconsistency, which the worker raises itself. @throws other errors */
export function failedAnswer(error: unknown): Fields {
  if (!(error instanceof PythonException) || error.type !== 'P2PConsistencyError') throw error;
  return { ...uncaughtAnswer(error), status: 'error', message: error.message };
}
