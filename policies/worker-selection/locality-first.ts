import {
  type ClusterView,
  definePolicy,
  type TaskView,
  type WorkerSelection,
  type WorkerView,
} from '../../core/api/index.ts';
import { takeTurns } from './earliest-start.ts';
import { divideSources } from './source-ranges.ts';

/** Options of the policy `locality-first`. */
export interface LocalityFirstOptions {
  readonly sources: 'ranges' | 'turns';
}

/**
 * The worker that holds the most bytes of the inputs, however busy it is: nothing is moved that can be
 * avoided. Ties go to the least busy one. The sources of a graph are divided beforehand, so that
 * neighbours share a worker. After Mars' assigner.
 */
export const localityFirst = definePolicy<'workerSelection', Partial<LocalityFirstOptions>>(
  'workerSelection',
  {
    name: 'locality-first',
    optionsSchema: {
      type: 'object',
      additionalProperties: false,
      properties: {
        sources: {
          description:
            'Where tasks without inputs go: ranges, neighbours in the graph to the same worker; turns, the least occupied worker.',
          enum: ['ranges', 'turns'],
          default: 'ranges',
        },
      },
    },
    create: ({ sources = 'ranges' }) => new LocalityFirst(sources === 'ranges'),
  },
);

class LocalityFirst implements WorkerSelection {
  /** Worker of each source that is not placed yet, by id of the task. */
  private readonly intended: (WorkerView | undefined)[] = [];

  constructor(private readonly hasRanges: boolean) {}

  prepare(tasks: readonly TaskView[], cluster: ClusterView): void {
    if (!this.hasRanges) return;
    const { intended } = this;
    // The ids may have been used before.
    for (const { id } of tasks) {
      while (intended.length <= id) intended.push(undefined);
      intended[id] = undefined;
    }
    divideSources(tasks, cluster, (source, worker) => {
      intended[source.id] = worker;
    });
  }

  select(
    task: TaskView,
    candidates: readonly WorkerView[],
    cluster: ClusterView,
    missingBytes: (worker: WorkerView) => number,
  ): WorkerView | undefined {
    const intended = this.takeIntended(task, cluster);
    if (intended !== undefined) return intended;
    let best: WorkerView | undefined;
    let [leastBytes, leastLoad] = [Infinity, Infinity];
    const actors = task.isActor ? leastActors(candidates) : 0;
    for (const worker of candidates) {
      if (task.isActor && worker.actors.size > actors) continue;
      const bytes = missingBytes(worker);
      const load = worker.processing.size / worker.threadCount;
      if (bytes > leastBytes || (bytes === leastBytes && load >= leastLoad)) continue;
      best = worker;
      [leastBytes, leastLoad] = [bytes, load];
    }
    return best;
  }

  selectUnconstrained(
    task: TaskView,
    pool: Parameters<typeof takeTurns>[0],
    cluster: ClusterView,
  ): WorkerView | undefined {
    return this.takeIntended(task, cluster) ?? takeTurns(pool, cluster);
  }

  private takeIntended({ id }: TaskView, cluster: ClusterView): WorkerView | undefined {
    const worker = this.intended[id];
    if (worker === undefined) return undefined;
    this.intended[id] = undefined;
    const isThere = cluster.workers.get(worker.address) === worker && worker.status === 'running';
    return isThere ? worker : undefined;
  }
}

function leastActors(candidates: readonly WorkerView[]): number {
  return candidates.reduce((least, { actors }) => Math.min(least, actors.size), Infinity);
}
