import {
  type ClusterView,
  definePolicy,
  type TaskView,
  type ScoringSelection,
  type WorkerPool,
  type WorkerView,
} from '../../core/api/index.ts';
import { takeTurns } from './earliest-start.ts';
import { divideSources } from './source-ranges.ts';

/**
 * The worker that holds the most bytes of the inputs, however busy it is: nothing is moved that can be
 * avoided. Ties go to the least busy one. The sources of a graph are divided beforehand, so that
 * neighbours share a worker. After Mars' assigner.
 */
export const localityFirst = definePolicy('workerSelection', {
  name: 'locality-first',
  apiVersion: 1,
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
  create: ({ sources }) => new LocalityFirst(sources === 'ranges'),
});

type IntendedMemory = readonly (readonly [task: number, worker: string])[];

class LocalityFirst implements ScoringSelection {
  readonly placesRootish = false;
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

  /** Sources by id, with the addresses of their workers. O(tasks). */
  snapshot({ tasks }: ClusterView): IntendedMemory {
    return [...tasks.values()].flatMap(({ id }) => {
      const worker = this.intended[id];
      return worker === undefined ? [] : [[id, worker.address] as const];
    });
  }

  restore(memory: unknown, { workers }: ClusterView): void {
    for (const [id, address] of memory as IntendedMemory) {
      while (this.intended.length <= id) this.intended.push(undefined);
      this.intended[id] = workers.get(address);
    }
  }

  /** Bytes are whole, so a fraction that grows with the load decides among equals. */
  score(task: TaskView, worker: WorkerView, missingBytes: number): number {
    if (this.intended[task.id] === worker) return -1;
    const load = worker.processing.size / worker.threadCount;
    return missingBytes + load / (1 + load);
  }

  pickFromPool(task: TaskView, pool: WorkerPool, cluster: ClusterView): WorkerView | undefined {
    const worker = this.intended[task.id];
    const isThere = worker !== undefined && cluster.workers.get(worker.address) === worker;
    return isThere ? worker : takeTurns(pool, cluster);
  }
}
