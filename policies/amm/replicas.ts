import {
  ActiveMemoryManagerPolicy,
  type AmmView,
  drop,
  replicate,
  type Suggestion,
  type SuggestionGenerator,
  type TaskView,
  type WorkerView,
} from '../../core/api/index.ts';

/** The tasks to spread, and the number of copies. */
interface SpreadReplicasOptions {
  readonly tasks: Iterable<TaskView>;
  /** Copies of each; Infinity: on all of the workers. */
  readonly copies: number;
  /** Addresses of the workers to use. Undefined: all. */
  readonly workers: ReadonlySet<string> | undefined;
  /** Copies that each holder gives to others at once. */
  readonly branchingFactor: number;
  /** Copies on these workers beyond the number are dropped. */
  readonly dropSurplus: boolean;
}

/**
 * Makes a number of copies of each of some results, as a tree: in every round the holders give
 * copies to a few more workers. For one call of `replicate`; it ends itself when it is done.
 */
export class SpreadReplicas extends ActiveMemoryManagerPolicy<SpreadReplicasOptions> {
  /** Results whose copies have not arrived yet. */
  readonly open: Set<TaskView>;

  constructor(options: SpreadReplicasOptions) {
    super(options);
    this.open = new Set(options.tasks);
  }

  override *run(amm: AmmView): SuggestionGenerator {
    const workers = this.workers(amm);
    for (const task of this.open) {
      if (task.state === 'memory') yield* this.spread(task, workers, amm);
      else this.open.delete(task); // It is gone.
    }
  }

  private workers({ cluster }: AmmView): readonly WorkerView[] {
    const { workers } = this.options;
    return [...cluster.running].filter(({ address }) => workers?.has(address) !== false);
  }

  private *spread(
    task: TaskView,
    workers: readonly WorkerView[],
    { pending }: AmmView,
  ): SuggestionGenerator {
    const { copies, branchingFactor, dropSurplus } = this.options;
    const holders = workers.filter((worker) => worker.hasWhat.has(task));
    const underWay = pending.get(task)?.replicate.size ?? 0;
    const missing = Math.min(copies, workers.length) - holders.length - underWay;
    if (missing <= 0 && underWay === 0) {
      if (dropSurplus) yield* this.dropSurplus(task, holders);
      this.open.delete(task);
      return;
    }
    const atOnce = Math.min(missing, branchingFactor * task.whoHas.size - underWay);
    for (let count = 0; count < atOnce; count++) yield this.copy(task, workers);
  }

  private copy(task: TaskView, workers: readonly WorkerView[]): Suggestion {
    const candidates = this.options.workers === undefined ? undefined : workers;
    return replicate(task, candidates, { beyondPending: true });
  }

  private *dropSurplus(task: TaskView, holders: readonly WorkerView[]): SuggestionGenerator {
    for (let surplus = holders.length - this.options.copies; surplus > 0; surplus--) {
      yield drop(task, holders, { force: true });
    }
  }
}
