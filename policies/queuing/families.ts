import type { Priority, TaskView, WorkerView } from '../../core/api/index.ts';
import { saidRootish } from './is-rootish.ts';
import { waitsForSlot } from './waits-for-slot.ts';

/** A task with more dependencies than this is not a root; the others' dependencies are examined. */
const ROOT_DEPENDENCIES_MAX = 4;
/** An input with fewer dependents than this is not a common one. */
const COMMON_DEPENDENTS_MIN = 8;
/** A common input is needed by at least this share of the graph. */
const COMMON_SHARE = 1 / 8;

/**
 * A family: root tasks that meet in the same task downstream, or that are only neighbours by
 * priority.
 */
export class Family {
  /** By priority, as soon as the graph has been analysed. */
  readonly roots: TaskView[] = [];
  /** The worker that takes its tasks as slots open there. */
  worker: WorkerView | undefined = undefined;
  /** Number of the graph in which it was found. */
  graph = 0;
  /** Whether it is in the queue of families that wait for a worker. */
  isInLine = false;
  /** Roots before this one have left the queue. */
  private head = 0;

  constructor(
    /** Whether more roots are put into another family when it has as many as the policy allows. */
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

/** Which tasks of a graph are roots, and which roots are a family. */
interface FamilyTree {
  readonly roots: ReadonlySet<TaskView>;
  readonly families: ReadonlyMap<TaskView, Family>;
}

/**
 * Finds the roots of a graph and the first task downstream in which each of them meets others.
 *
 * A root has no inputs, or only inputs that a large part of the graph needs. The annotation
 * `rootish` (true or false) overrides this rule, and roots with the same annotation `family` are a
 * family. Roots that meet no other root are divided into families by priority. The names of tasks
 * and the size of the cluster do not matter. O(tasks log tasks + dependencies).
 *
 * @param tasks - dependencies first
 * @param sizeMax - a family without a name is divided when it is larger
 */
export function findFamilies(tasks: readonly TaskView[], sizeMax: number): FamilyTree {
  return new FamilyFinder(tasks, sizeMax).find();
}

/**
 * What a task descends from: a root that has not met another one yet, or the family of the roots
 * that met.
 */
type Descent = TaskView | Family;

class FamilyFinder implements FamilyTree {
  readonly roots = new Set<TaskView>();
  readonly families = new Map<TaskView, Family>();
  private readonly descents = new Map<TaskView, Descent>();
  private readonly named = new Map<string, Family>();
  private readonly commonDependents: number;

  constructor(
    private readonly tasks: readonly TaskView[],
    private readonly sizeMax: number,
  ) {
    this.commonDependents = Math.max(COMMON_DEPENDENTS_MIN, tasks.length * COMMON_SHARE);
  }

  find(): FamilyTree {
    for (const task of this.tasks) {
      if (this.isRoot(task)) this.addRoot(task);
      else this.meet(task);
    }
    this.divideLoners();
    for (const family of new Set(this.families.values())) sortByPriority(family.roots);
    return this;
  }

  private isRoot(task: TaskView): boolean {
    const { restrictions, isActor, dependencies } = task;
    const said = saidRootish(task);
    if (said !== undefined) return said;
    if (restrictions !== undefined || isActor) return false;
    if (dependencies.length > ROOT_DEPENDENCIES_MAX) return false;
    return dependencies.every((input) => input.dependentCount >= this.commonDependents);
  }

  private addRoot(root: TaskView): void {
    this.roots.add(root);
    this.descents.set(root, root);
    const name = root.annotations?.['family'];
    if (typeof name !== 'string') return;
    let family = this.named.get(name);
    if (family === undefined) this.named.set(name, (family = new Family(false)));
    this.join(family, root);
  }

  /** Merges what a task descends from into one family, as far as it is not in one. */
  private meet(task: TaskView): void {
    let family: Family | undefined;
    let first: TaskView | undefined;
    let hasSeveral = false;
    for (const dependency of task.dependencies) {
      const descent = this.descentOf(dependency);
      if (descent instanceof Family) family ??= descent;
      else if (first === undefined) first = descent;
      else if (descent !== undefined && descent !== first) hasSeveral = true;
    }
    if (first === undefined) {
      if (family !== undefined) this.descents.set(task, family);
      return;
    }
    if (family === undefined && !hasSeveral) {
      this.descents.set(task, first);
      return;
    }
    this.descents.set(task, this.unite(task, family));
  }

  private unite(task: TaskView, existing: Family | undefined): Family {
    let family = existing;
    for (const dependency of task.dependencies) {
      const root = this.descentOf(dependency);
      if (root === undefined || root instanceof Family) continue;
      if (family === undefined || this.isFull(family)) family = new Family(true);
      this.join(family, root);
    }
    return family as Family;
  }

  /** A root that has found its family since stands for that. */
  private descentOf(task: TaskView): Descent | undefined {
    const descent = this.descents.get(task);
    if (descent === undefined || descent instanceof Family) return descent;
    return this.families.get(descent) ?? descent;
  }

  private divideLoners(): void {
    const loners = [...this.roots].filter((root) => !this.families.has(root));
    sortByPriority(loners);
    let family = new Family(true);
    for (const root of loners) {
      if (this.isFull(family)) family = new Family(true);
      this.join(family, root);
    }
  }

  private join(family: Family, root: TaskView): void {
    family.roots.push(root);
    this.families.set(root, family);
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
  const priorities = new Map(tasks.map((task) => [task, task.priority ?? NO_PRIORITY]));
  const of = (task: TaskView): Priority => priorities.get(task) ?? NO_PRIORITY;
  tasks.sort((a, b) => comparePriorities(of(a), of(b)));
}

const NO_PRIORITY: Priority = [0, 0, 0];
