import type { TaskView } from '../../../core/api/index.ts';
import type { DaskContext, Fields } from '../context.ts';
import { PythonException, uncaughtAnswer } from '../rpc/py-errors.ts';
import {
  answerByFields,
  placeByFields,
  type Placement,
  type ShuffleSource,
} from './shuffle-sources.ts';

/** A run of a shuffle. */
export interface Shuffle {
  readonly id: string;
  /** Grows with each run of any shuffle. */
  readonly runId: number;
  /** Which worker has which output partition, by the partition as text. */
  readonly workerFor: ReadonlyMap<string, readonly [partition: unknown, worker: string]>;
  /** What workers are answered that take part: an object of Python, or all fields of the answer. */
  readonly description:
    | { readonly kind: 'run-spec'; readonly runSpec: unknown }
    | { readonly kind: 'fields'; readonly fields: Fields };
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
  begin(id: string, barrier: TaskView, source: ShuffleSource): Promise<Shuffle> {
    let begun = this.beginning.get(id);
    if (begun === undefined) {
      begun = this.place(id, barrier, source).finally(() => this.beginning.delete(id));
      this.beginning.set(id, begun);
    }
    return begun;
  }

  clear(): void {
    this.epoch++;
    this.active.clear();
    this.beginning.clear();
  }

  private async place(id: string, barrier: TaskView, source: ShuffleSource): Promise<Shuffle> {
    const { epoch } = this;
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
      await this.partnersOf(barrier);
      const shuffle = await this.describe(id, barrier, source);
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

  private async describe(id: string, barrier: TaskView, source: ShuffleSource): Promise<Shuffle> {
    const runId = ++this.runCount;
    const [workers, placed] = [this.workersOf(barrier), this.placedWith(barrier)];
    if (source.kind === 'fields') {
      const placement = placeByFields(source.spec, workers, placed);
      const fields = answerByFields(source, runId, placement);
      return shuffleOf(id, runId, placement, { kind: 'fields', fields });
    }
    const described = source.kind === 'spec' ? { spec: source.spec } : { barrier: barrier.runSpec };
    const run = await this.context.graphs.shuffleRun({ ...described, workers, placed, runId });
    const { runSpec, workerFor } = run;
    return shuffleOf(id, runId, workerFor, { kind: 'run-spec', runSpec });
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

function shuffleOf(
  id: string,
  runId: number,
  placement: Placement,
  description: Shuffle['description'],
): Shuffle {
  return {
    id,
    runId,
    workerFor: new Map(placement.map((entry) => [JSON.stringify(entry[0]), entry])),
    description,
    participants: new Set(placement.map(([, worker]) => worker)),
  };
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
