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

/** The workers that hold inputs, and the least busy others, of which a faster one may take the task all the same. */
const REACH = { holders: 4, others: 4 };
/** The price of a transfer, in times of what it takes: what was moved once is often moved again, and links are shared. */
const TRANSFER_PRICE = 2;
/** Results beyond this part of its memory limit have to leave a worker, for other workers or for the disk. */
const FULL = 0.6;
/** The cost of fetching anything at all, in seconds. */
const LATENCY_S = 0.001;

/**
 * The worker on which the task ends first if it could begin at once: where the inputs are, unless a faster worker gains more
 * than twice what it takes to fetch them. Waiting does not count: moving tasks that wait is left to stealing, which knows
 * more by then. What would not fit into a worker's memory costs as much as to move it away. Ties go to the least busy worker.
 * With `sources: ranges` the sources of a graph are divided beforehand, so that neighbours share a worker. After Mars' assigner.
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
        default: 'turns',
      },
    },
  },
  create: ({ sources }) => new LocalityFirst(sources === 'ranges'),
});

/** Seconds that decide between equals. */
const NEARLY_NOTHING = 1e-6;

type IntendedMemory = readonly (readonly [task: number, worker: string])[];

class LocalityFirst implements ScoringSelection {
  readonly reach = REACH;
  readonly placesRootish = false;
  /** Worker for which each source was meant, by id of the task; only with ranges. */
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

  score(task: TaskView, worker: WorkerView, missingBytes: number, { costs }: ClusterView): number {
    if (this.intended[task.id] === worker) return -1;
    const load = worker.processing.size / worker.threadCount;
    const fetchS = missingBytes > 0 ? LATENCY_S + missingBytes / costs.bandwidth : 0;
    return (
      TRANSFER_PRICE * fetchS +
      overflowBytes(task, worker, missingBytes) / costs.bandwidth +
      task.prefix.durationEstimateS * worker.pace +
      NEARLY_NOTHING * (load / (1 + load))
    );
  }

  pickFromPool(task: TaskView, pool: WorkerPool, cluster: ClusterView): WorkerView | undefined {
    const worker = this.intended[task.id];
    const isThere = worker !== undefined && cluster.workers.get(worker.address) === worker;
    return isThere ? worker : takeTurns(pool, cluster);
  }
}

/** Bytes beyond {@link FULL} that a worker would hold with the task, its inputs and its result. O(1). */
function overflowBytes(task: TaskView, worker: WorkerView, missingBytes: number): number {
  const { memoryLimitBytes, nbytes, networkBytes } = worker;
  if (memoryLimitBytes === 0) return 0;
  const heldBytes = nbytes + networkBytes + missingBytes + task.prefix.nbytesAverage;
  return Math.max(0, heldBytes - FULL * memoryLimitBytes);
}
