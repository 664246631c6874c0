import {
  type ClusterView,
  definePolicy,
  type Priority,
  type Queuing,
  type TaskView,
  type WorkerView,
} from '../../core/api/index.ts';
import { IndexedHeap } from '../../core/util/heaps.ts';
import { saidRootish, waitsForSlot } from './is-rootish.ts';
import { saturationOf, saturationSchema, slotLimit } from './root-ish.ts';

/**
 * Roots are held back as with `root-ish`, but those that meet downstream go to the same worker, one after
 * the other as its slots open: what they come to does not have to be moved there. Which tasks are
 * roots, and which of them belong together, is found out once, when the graph is submitted.
 */
export const family = definePolicy('queuing', {
  name: 'family',
  apiVersion: 1,
  optionsSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      workerSaturation: saturationSchema,
      familySize: {
        description: 'Roots that meet in one task are divided when there are more of them.',
        type: 'integer',
        minimum: 1,
        default: 64,
      },
    },
  },
  create: ({ workerSaturation, familySize }) =>
    new FamilyQueuing(saturationOf(workerSaturation), familySize),
});

class FamilyQueuing implements Queuing {
  readonly holdsBack: boolean;
  /** A worker selection that places root-ish tasks itself decides where, whatever their families. */
  readonly leavesPlacement = true;
  /** By id of the task: whether it is a root. */
  private readonly isRoot: boolean[] = [];
  /** By id of the task: its family, until it is sent to a worker for the first time. */
  private readonly families: (Family | undefined)[] = [];
  /** The family that a worker takes tasks from. */
  private readonly runs = new WeakMap<WorkerView, Family>();
  private readonly line = new FamilyLine();
  private readonly places = new Places();
  private graphCount = 0;

  constructor(
    private readonly saturation: number,
    private readonly familySize: number,
  ) {
    this.holdsBack = saturation !== Infinity;
  }

  prepare(tasks: readonly TaskView[]): void {
    const { isRoot, families, found } = findFamilies(tasks, this.familySize, this.places);
    this.graphCount++;
    for (const family of found) family.graph = this.graphCount;
    for (let place = 0; place < tasks.length; place++) {
      const { id } = tasks[place] as TaskView;
      // Without gaps, so that the arrays stay dense.
      while (this.isRoot.length <= id) {
        this.isRoot.push(false);
        this.families.push(undefined);
      }
      this.isRoot[id] = isRoot[place] === true;
      this.families[id] = families[place];
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
   * The best task when it has no family; the next task of the worker's family, or else the first task of a family that no
   * worker has begun. When there is neither, the best task helps another worker with its family.
   */
  nextQueued(worker: WorkerView, cluster: ClusterView): TaskView | undefined {
    const best = cluster.queued.peek();
    if (best === undefined) return undefined;
    const own = this.families[best.id];
    if (own === undefined) return best;
    const other = this.line.first((family) => isServed(family, cluster));
    const first = other?.nextQueued();
    const run = this.runs.get(worker);
    const next = run?.nextQueued();
    if (run !== undefined && next !== undefined) {
      // What another worker has begun is its business, as far as the order of graphs goes.
      const isTaken = own !== run && isServed(own, cluster);
      if (isMoreUrgent(best, next, isTaken || own.graph === run.graph)) return best;
      const isOvertaken =
        first !== undefined && isMoreUrgent(first, next, other?.graph === run.graph);
      return isOvertaken ? first : next;
    }
    if (run !== undefined) this.endRun(worker, run);
    // If no worker serves the family of the best task, it begins the best family.
    if (first === undefined || !isServed(own, cluster)) return best;
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
      const leastBusy = freestWorker(cluster);
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

/** Workers with nothing to do that are looked at for a fast one. */
const COMPARED = 8;

/**
 * The least busy worker with an open slot. Those with nothing to do take turns, so that single tasks spread; of the next
 * few the first that is as fast as the average, or else the fastest. O(1).
 */
function freestWorker({ openSlots, idle, assignedCount }: ClusterView): WorkerView | undefined {
  const leastBusy = openSlots.peek();
  if (leastBusy === undefined || leastBusy.processing.size > 0) return leastBusy;
  let fastest: WorkerView | undefined;
  for (let turn = 0; turn < Math.min(idle.size, COMPARED); turn++) {
    const next = idle.at((assignedCount + turn) % idle.size);
    if (next?.processing.size !== 0 || next.openSlots <= 0) continue;
    if (next.pace <= 1) return next;
    if (fastest === undefined || next.pace < fastest.pace) fastest = next;
  }
  return fastest ?? leastBusy;
}

/** True when a worker takes tasks from the family and is in service. */
function isServed({ worker }: Family, cluster: ClusterView): boolean {
  if (worker?.status !== 'running') return false;
  return cluster.workers.get(worker.address) === worker;
}

/**
 * True when `a` must not wait for `b`: by the user's own priority, and across graphs also by generation,
 * which is the order of submissions and of clients. Within a graph families may run ahead.
 */
function isMoreUrgent(a: TaskView, b: TaskView, isSameGraph: boolean): boolean {
  const [one, other] = [a.priority, b.priority];
  if (one === undefined || other === undefined) return false;
  if (one[0] !== other[0]) return one[0] < other[0];
  return !isSameGraph && one[1] < other[1];
}

/** A task with more dependencies than this is not a root; the others' dependencies are examined. */
const ROOT_DEPENDENCIES_MAX = 4;
/** An input with fewer dependents than this is not a common one. */
const COMMON_DEPENDENTS_MIN = 8;
/** A common input is needed by at least this share of the graph. */
const COMMON_SHARE = 1 / 8;

const NO_PRIORITY: Priority = [0, 0, 0];

/** A family: root tasks that meet in the same task downstream. */
export class Family {
  /** By priority, as soon as the graph has been analysed. */
  readonly roots: TaskView[] = [];
  /** The worker that takes its tasks as slots open there. */
  worker: WorkerView | undefined = undefined;
  /** Number of the graph in which it was found. */
  graph = 0;
  /** Of the task because of which it waits for a worker, or waited last. */
  waitsWith: Priority = NO_PRIORITY;
  /** In the heap of the families that wait; -1: it does not. */
  place = -1;
  /** Roots before this one have left the queue. */
  private head = 0;

  constructor(
    /** True when more roots are put into another family when it has as many as the policy allows. */
    readonly isBounded: boolean,
  ) {}

  /** Roots that have not left the queue for good. */
  get left(): readonly TaskView[] {
    return this.roots.slice(this.head).filter(({ state }) => state !== 'forgotten');
  }

  /** The next root that is queued, or undefined when none is. O(1) for each root that has left. */
  nextQueued(): TaskView | undefined {
    for (; this.head < this.roots.length; this.head++) {
      const root = this.roots[this.head] as TaskView;
      if (waitsForSlot(root)) return root;
      // This one may still come; it must not hide those behind it.
      if (root.state === 'waiting' || root.state === 'released' || root.state === 'queued') {
        return this.roots.slice(this.head).find(waitsForSlot);
      }
    }
    return undefined;
  }
}

/** Which tasks of a graph are roots, and which roots are a family: by their places in the graph. */
interface FamilyTree {
  readonly isRoot: readonly boolean[];
  readonly families: readonly (Family | undefined)[];
  /** All families. */
  readonly found: readonly Family[];
}

/** The places of the tasks of one graph after the other, by the ids of tasks. What is left of another graph does no harm. */
class Places {
  private readonly byId: number[] = [];

  set(tasks: readonly TaskView[]): void {
    const { byId } = this;
    for (let place = 0; place < tasks.length; place++) {
      const { id } = tasks[place] as TaskView;
      while (byId.length <= id) byId.push(0); // Without gaps, so that it stays dense.
      byId[id] = place;
    }
  }

  /** Undefined: the task is not in the graph. */
  of(task: TaskView, tasks: readonly TaskView[]): number | undefined {
    const place = this.byId[task.id] ?? 0;
    return tasks[place] === task ? place : undefined;
  }
}

/**
 * Finds the roots of a graph and the first task downstream in which each of them meets others.
 *
 * A root has no inputs, or only inputs that a large part of the graph needs. The annotation
 * `rootish` (true or false) overrides this rule, and roots with the same annotation `family` are a
 * family; roots that meet no other root have none. The names of tasks and the size of the cluster do
 * not matter. O(tasks log tasks + dependencies).
 *
 * @param tasks - dependencies first
 * @param sizeMax - a family without a name is divided when it is larger
 */
export function findFamilies(
  tasks: readonly TaskView[],
  sizeMax: number,
  places = new Places(),
): FamilyTree {
  return new FamilyFinder(tasks, sizeMax, places).find();
}

/**
 * The origin of a task: the place of a root that has not met another one yet, or the family of the roots
 * that met.
 */
type Descent = number | Family;

class FamilyFinder implements FamilyTree {
  readonly isRoot: boolean[] = [];
  readonly families: (Family | undefined)[] = [];
  readonly found: Family[] = [];
  private readonly descents: (Descent | undefined)[] = [];
  private readonly named = new Map<string, Family>();
  private readonly commonDependents: number;

  constructor(
    private readonly tasks: readonly TaskView[],
    private readonly sizeMax: number,
    private readonly places: Places,
  ) {
    this.commonDependents = Math.max(COMMON_DEPENDENTS_MIN, tasks.length * COMMON_SHARE);
    places.set(tasks);
  }

  find(): FamilyTree {
    const { tasks, isRoot, families, descents } = this;
    for (let place = 0; place < tasks.length; place++) {
      const task = tasks[place] as TaskView;
      isRoot.push(this.isRootOf(task));
      families.push(undefined);
      if (isRoot[place] === true) {
        descents.push(place);
        this.joinNamed(place, task.annotations?.['family']);
      } else descents.push(this.meet(task));
    }
    for (const { roots } of this.found) sortByPriority(roots);
    return this;
  }

  private isRootOf(task: TaskView): boolean {
    const { restrictions, isActor, dependencies } = task;
    const said = saidRootish(task);
    if (said !== undefined) return said;
    if (restrictions !== undefined || isActor) return false;
    if (dependencies.length > ROOT_DEPENDENCIES_MAX) return false;
    return dependencies.every((input) => input.dependentCount >= this.commonDependents);
  }

  private joinNamed(root: number, name: unknown): void {
    if (typeof name !== 'string') return;
    let family = this.named.get(name);
    if (family === undefined) this.named.set(name, (family = this.newFamily(false)));
    this.join(family, root);
  }

  /** Merges what a task descends from into one family, as far as it is not in one. */
  private meet({ dependencies }: TaskView): Descent | undefined {
    let family: Family | undefined;
    let first: number | undefined;
    let hasSeveral = false;
    for (const dependency of dependencies) {
      const descent = this.descentOf(dependency);
      if (descent instanceof Family) family ??= descent;
      else if (first === undefined) first = descent;
      else if (descent !== undefined && descent !== first) hasSeveral = true;
    }
    if (first === undefined) return family;
    if (family === undefined && !hasSeveral) return first;
    return this.unite(dependencies, family);
  }

  private unite(dependencies: readonly TaskView[], existing: Family | undefined): Family {
    let family = existing;
    for (const dependency of dependencies) {
      const root = this.descentOf(dependency);
      if (root === undefined || root instanceof Family) continue;
      if (family === undefined || this.isFull(family)) family = this.newFamily(true);
      this.join(family, root);
    }
    return family as Family;
  }

  /** A root that has found its family since stands for that. */
  private descentOf(task: TaskView): Descent | undefined {
    const place = this.places.of(task, this.tasks);
    const descent = place === undefined ? undefined : this.descents[place];
    if (descent === undefined || descent instanceof Family) return descent;
    return this.families[descent] ?? descent;
  }

  private newFamily(isBounded: boolean): Family {
    const family = new Family(isBounded);
    this.found.push(family);
    return family;
  }

  private join(family: Family, root: number): void {
    family.roots.push(this.tasks[root] as TaskView);
    this.families[root] = family;
  }

  private isFull(family: Family): boolean {
    return family.isBounded && family.roots.length >= this.sizeMax;
  }
}

/** Negative when `a` runs sooner. */
export function comparePriorities(a: Priority, b: Priority): number {
  return a[0] - b[0] || a[1] - b[1] || a[2] - b[2];
}

function sortByPriority(tasks: TaskView[]): void {
  const ranked = tasks.map((task) => ({ task, priority: task.priority ?? NO_PRIORITY }));
  ranked.sort((a, b) => comparePriorities(a.priority, b.priority));
  ranked.forEach(({ task }, place) => (tasks[place] = task));
}

/** Families that have queued tasks and no worker, the best first. */
export class FamilyLine {
  private readonly families = new IndexedHeap<Family>(
    (a, b) => comparePriorities(a.waitsWith, b.waitsWith) || a.graph - b.graph,
  );

  /**
   * No-op when it is in the queue. O(log families).
   * @param priority - of the task because of which it is in the queue
   */
  add(family: Family, priority: Priority): void {
    if (this.families.has(family)) return;
    family.waitsWith = priority;
    this.families.add(family);
  }

  /** The best family that still has a queued task and no worker that takes them. */
  first(isServed: (family: Family) => boolean): Family | undefined {
    const { families } = this;
    for (let family = families.peek(); family !== undefined; family = families.peek()) {
      if (!isServed(family) && family.nextQueued() !== undefined) return family;
      families.pop();
    }
    return undefined;
  }

  /** Those that wait, the best first. */
  get waiting(): readonly Family[] {
    return this.families.sorted();
  }
}

/** The memory of the policy `family`, as plain data. */
export interface FamilyMemory {
  readonly graphCount: number;
  readonly families: readonly SavedFamily[];
  /** Ids that have been given a meaning are below this. */
  readonly idEnd: number;
  /** Ids of roots. */
  readonly roots: readonly number[];
  /** Families of tasks that were not sent to a worker yet, by their ids. */
  readonly memberships: readonly (readonly [task: number, family: number])[];
  /** The family that a worker takes tasks from. */
  readonly runs: readonly (readonly [worker: string, family: number])[];
  readonly line: readonly (readonly [family: number, priority: Priority])[];
}

interface SavedFamily {
  readonly isBounded: boolean;
  readonly graph: number;
  /** Address, or `null`. */
  readonly worker: string | null;
  /** Ids of tasks. */
  readonly roots: readonly number[];
}

/** The tables that the policy works on. */
export interface FamilyTables {
  readonly isRoot: boolean[];
  readonly families: (Family | undefined)[];
  readonly runs: Pick<WeakMap<WorkerView, Family>, 'get' | 'set'>;
  readonly line: FamilyLine;
}

/** O(tasks). */
export function rememberFamilies(
  { isRoot, families, runs, line }: FamilyTables,
  graphCount: number,
  { tasks, workers }: ClusterView,
): FamilyMemory {
  const all = new Map<Family, number>();
  const placeOf = (family: Family): number => {
    const place = all.get(family) ?? all.size;
    all.set(family, place);
    return place;
  };
  const roots: number[] = [];
  const memberships: [number, number][] = [];
  for (const { id } of tasks.values()) {
    if (isRoot[id] === true) roots.push(id);
    const family = families[id];
    if (family !== undefined) memberships.push([id, placeOf(family)]);
  }
  const memory = {
    graphCount,
    idEnd: isRoot.length,
    roots,
    memberships,
    runs: [...workers.values()].flatMap((worker) => {
      const family = runs.get(worker);
      return family === undefined ? [] : [[worker.address, placeOf(family)] as const];
    }),
    line: line.waiting.map((family) => [placeOf(family), family.waitsWith] as const),
  };
  const saved = [...all.keys()].map(({ isBounded, graph, worker, left }): SavedFamily => {
    const isThere = worker !== undefined && workers.get(worker.address) === worker;
    const address = isThere ? worker.address : null;
    return { isBounded, graph, worker: address, roots: left.map(({ id }) => id) };
  });
  return { ...memory, families: saved };
}

/** The reverse of {@link rememberFamilies}, into empty tables. */
export function restoreFamilies(
  { isRoot, families, runs, line }: FamilyTables,
  memory: FamilyMemory,
  { tasks, workers }: ClusterView,
): void {
  const byId: (TaskView | undefined)[] = [];
  for (const task of tasks.values()) byId[task.id] = task;
  const all = memory.families.map(({ isBounded, graph, worker, roots }) => {
    const family = new Family(isBounded);
    family.graph = graph;
    family.worker = worker === null ? undefined : workers.get(worker);
    for (const id of roots) {
      const root = byId[id];
      if (root !== undefined) family.roots.push(root);
    }
    return family;
  });
  while (isRoot.length < memory.idEnd) {
    isRoot.push(false);
    families.push(undefined);
  }
  for (const id of memory.roots) isRoot[id] = true;
  for (const [id, place] of memory.memberships) families[id] = all[place];
  for (const [address, place] of memory.runs) {
    const worker = workers.get(address);
    const family = all[place];
    if (worker !== undefined && family !== undefined) runs.set(worker, family);
  }
  for (const [place, priority] of memory.line) {
    const family = all[place];
    if (family !== undefined) line.add(family, priority);
  }
}
