import {
  type ClusterView,
  definePolicy,
  type Queuing,
  type TaskView,
  type WorkerView,
} from '../../core/api/index.ts';
import { type Family, findFamilies } from './families.ts';
import { FamilyLine } from './family-line.ts';
import {
  type FamilyMemory,
  type FamilyTables,
  rememberFamilies,
  restoreFamilies,
} from './family-memory.ts';
import { saturationOf, saturationSchema, slotLimit } from './root-ish.ts';

/** Options of the policy `family`. */
export interface FamilyOptions {
  readonly workerSaturation: number | 'inf';
  readonly familySize: number;
}

const FAMILY_SIZE = 64;

/**
 * Roots are held back as with `root-ish`, but those that meet downstream go to the same worker, one after
 * the other as its slots open: what they come to does not have to be moved there. Which tasks are
 * roots, and which of them belong together, is found out once, when the graph is submitted.
 */
export const family = definePolicy<'queuing', Partial<FamilyOptions>>('queuing', {
  name: 'family',
  optionsSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      workerSaturation: saturationSchema,
      familySize: {
        description: 'Roots that meet in one task are divided when there are more of them.',
        type: 'integer',
        minimum: 1,
        default: FAMILY_SIZE,
      },
    },
  },
  create: ({ workerSaturation, familySize = FAMILY_SIZE }) =>
    new FamilyQueuing(saturationOf(workerSaturation), familySize),
});

class FamilyQueuing implements Queuing {
  readonly holdsBack: boolean;
  /** By id of the task: whether it is a root. */
  private readonly isRoot: boolean[] = [];
  /** By id of the task: its family, until it is sent to a worker for the first time. */
  private readonly families: (Family | undefined)[] = [];
  /** The family that a worker takes tasks from. */
  private readonly runs = new WeakMap<WorkerView, Family>();
  private readonly line = new FamilyLine();
  private graphCount = 0;

  constructor(
    private readonly saturation: number,
    private readonly familySize: number,
  ) {
    this.holdsBack = saturation !== Infinity;
  }

  prepare(tasks: readonly TaskView[]): void {
    const { roots, families } = findFamilies(tasks, this.familySize);
    this.graphCount++;
    for (const family of families.values()) family.graph = this.graphCount;
    for (const task of tasks) {
      // Without gaps, so that the arrays stay dense.
      while (this.isRoot.length <= task.id) {
        this.isRoot.push(false);
        this.families.push(undefined);
      }
      this.isRoot[task.id] = roots.has(task);
      this.families[task.id] = families.get(task);
    }
  }

  snapshot(cluster: ClusterView): FamilyMemory {
    return rememberFamilies(this.tables, this.graphCount, cluster);
  }

  restore(memory: unknown, cluster: ClusterView): void {
    this.graphCount = (memory as FamilyMemory).graphCount;
    restoreFamilies(this.tables, memory as FamilyMemory, cluster);
  }

  private get tables(): FamilyTables {
    const { isRoot, families, runs, line } = this;
    return { isRoot, families, runs, line };
  }

  isRootish(task: TaskView): boolean {
    return this.isRoot[task.id] ?? task.dependencies.length === 0;
  }

  slotLimit(worker: WorkerView): number {
    return slotLimit(this.saturation, worker.threadCount);
  }

  selectRootish(task: TaskView, cluster: ClusterView): WorkerView | undefined {
    const family = this.families[task.id];
    const worker = this.workerFor(task, family, cluster);
    if (worker !== undefined) this.families[task.id] = undefined;
    else if (family !== undefined && !isServed(family, cluster)) this.putInLine(family, task);
    return worker;
  }

  /**
   * The next task of the worker's family, or else the first task of a family that no worker has
   * begun. When there is neither, the best task helps another worker with its family.
   */
  nextQueued(worker: WorkerView, cluster: ClusterView): TaskView | undefined {
    const best = cluster.queued.peek();
    if (best === undefined) return undefined;
    const other = this.line.first((family) => isServed(family, cluster));
    const first = other?.nextQueued();
    const own = this.families[best.id];
    const run = this.runs.get(worker);
    const next = run?.nextQueued();
    if (run !== undefined && next !== undefined) {
      // What another worker has begun is its business, as far as the order of graphs goes.
      const isTaken = own !== undefined && own !== run && isServed(own, cluster);
      if (isMoreUrgent(best, next, isTaken || own?.graph === run.graph)) return best;
      const isOvertaken =
        first !== undefined && isMoreUrgent(first, next, other?.graph === run.graph);
      return isOvertaken ? first : next;
    }
    if (run !== undefined) this.endRun(worker, run);
    // If no worker serves the family of the best task, it begins the best family.
    if (own === undefined || first === undefined || !isServed(own, cluster)) return best;
    return isMoreUrgent(best, first, own.graph === other?.graph) ? best : first;
  }

  private workerFor(
    task: TaskView,
    family: Family | undefined,
    cluster: ClusterView,
  ): WorkerView | undefined {
    const worker = family === undefined ? undefined : family.worker;
    const isLimited = this.holdsBack && task.isQueueable;
    if (family === undefined || worker === undefined || !isServed(family, cluster)) {
      const leastBusy = cluster.openSlots.peek();
      if (family !== undefined && leastBusy !== undefined) this.beginRun(leastBusy, family);
      return leastBusy;
    }
    if (!isLimited || worker.openSlots > 0) return worker;
    // On its way out of the queue it helps; as long as it may wait, it waits for the others.
    return task.state === 'queued' ? cluster.openSlots.peek() : undefined;
  }

  private beginRun(worker: WorkerView, family: Family): void {
    const before = this.runs.get(worker);
    if (before !== undefined && before !== family) {
      before.worker = undefined;
      const next = before.nextQueued();
      if (next !== undefined) this.putInLine(before, next);
    }
    this.runs.set(worker, family);
    family.worker = worker;
  }

  private endRun(worker: WorkerView, family: Family): void {
    this.runs.delete(worker);
    family.worker = undefined;
  }

  private putInLine(family: Family, task: TaskView): void {
    if (task.priority !== undefined) this.line.add(family, task.priority);
  }
}

/** Whether a worker takes tasks from the family and is in service. */
function isServed({ worker }: Family, cluster: ClusterView): boolean {
  if (worker?.status !== 'running') return false;
  return cluster.workers.get(worker.address) === worker;
}

/**
 * Whether `a` must not wait for `b`: by the user's own priority, and across graphs also by generation,
 * which is the order of submissions and of clients. Within a graph families may run ahead.
 */
function isMoreUrgent(a: TaskView, b: TaskView, isSameGraph: boolean): boolean {
  const [one, other] = [a.priority, b.priority];
  if (one === undefined || other === undefined) return false;
  if (one[0] !== other[0]) return one[0] < other[0];
  return !isSameGraph && one[1] < other[1];
}
