import type { KernelScope } from './scope.ts';
import type { TaskStateName } from '../state/state-names.ts';
import type { TaskState } from '../state/task.ts';

/**
 * Recommendations to move a task to a state. The newest is taken first; a task that is
 * recommended again gets the new target and keeps its place (Dask's `popitem` on a dictionary).
 */
export class RecommendationStack {
  private readonly tasks: (TaskState | undefined)[] = [];
  private readonly targets: TaskStateName[] = [];
  /** Recommendations of a large graph that come later, while some of them are being followed. */
  line: PendingStarts | undefined;
  /** Releases that earlier stimuli have deferred. */
  readonly deferredReleases = new DeferredReleases();
  /** Of these, tasks that this stimulus has to do with: they are followed now. */
  private readonly takenUp = new Set<TaskState>();

  recommend(task: TaskState, target: TaskStateName): void {
    if (task.pendingIndex >= 0) {
      this.targets[task.pendingIndex] = target;
      return;
    }
    if (task.startIndex >= 0) {
      if (this.line !== undefined) {
        this.line.retarget(task, target);
        return;
      }
      task.startIndex = -1;
    } else if (isDeferred(task)) {
      this.deferredReleases.remove(task);
      this.takenUp.add(task);
    }
    task.pendingIndex = this.tasks.length;
    this.tasks.push(task);
    this.targets.push(target);
  }

  /** The task is not needed. A release that was deferred before keeps its turn. */
  deferRelease(task: TaskState, target: 'released' | 'forgotten'): void {
    if (isDeferred(task)) this.deferredReleases.retarget(task, target);
    else this.recommend(task, target);
  }

  /** Takes a recommendation back. No-op when there is none. */
  withdraw(task: TaskState): void {
    if (isDeferred(task)) return;
    if (task.pendingIndex >= 0) this.tasks[task.pendingIndex] = undefined;
    task.pendingIndex = -1;
    task.startIndex = -1;
    if (this.takenUp.delete(task)) this.deferredReleases.add(task, 'released');
  }

  /** True when the task that was popped was left by an earlier stimulus. */
  wasLeft(task: TaskState): boolean {
    return this.takenUp.size > 0 && this.takenUp.delete(task);
  }

  /** Takes the newest recommendation and follows it. Returns false when there is none. */
  followNext<Scope>(scope: Scope, follow: Follow<Scope>): boolean {
    while (this.tasks.length > 0) {
      const task = this.tasks.pop();
      const target = this.targets.pop() as TaskStateName;
      if (task === undefined) continue;
      task.pendingIndex = -1;
      follow(scope, task, target);
      return true;
    }
    return false;
  }

  /** Drops everything that is recommended, also for later stimuli. O(tasks that are recommended). */
  clear(): void {
    for (const task of this.tasks) if (task !== undefined) task.pendingIndex = -1;
    this.tasks.length = 0;
    this.targets.length = 0;
    this.line = undefined;
    this.takenUp.clear();
    this.deferredReleases.clear();
  }

  /** The present recommendation for this task, if there is one. */
  targetOf(task: TaskState): TaskStateName | undefined {
    return task.pendingIndex < 0 ? undefined : this.targets[task.pendingIndex];
  }
}

/** Moves a task on to the recommended state. Made once, so that a recommendation costs no closure. */
type Follow<Scope> = (scope: Scope, task: TaskState, target: TaskStateName) => void;

/**
 * Tasks that are not needed, whose release a long stimulus has deferred to later ones, the newest
 * first. Meanwhile they keep their state: results are held, and tasks that were sent to workers are
 * computed. A task that is needed again when its turn comes is kept.
 */
export class DeferredReleases {
  private readonly tasks: (TaskState | undefined)[] = [];
  private readonly targets: TaskStateName[] = [];
  /** A field, because it is read after each stimulus. */
  isEmpty = true;
  /** The index at which the entries begin that came in the order in which they would have been followed. */
  private unturned = 0;

  has(task: TaskState): boolean {
    return isDeferred(task) && this.tasks[task.deferredIndex] === task;
  }

  /** The task comes after those that were left before it and since the last {@link turn}. */
  add(task: TaskState, target: TaskStateName): void {
    task.startIndex = -1;
    task.deferredIndex = this.tasks.length;
    this.tasks.push(task);
    this.targets.push(target);
    this.isEmpty = false;
  }

  /** Reverses the entries added since the last call, so that the first of them comes first. O(these entries). */
  turn(): void {
    const { tasks, targets, unturned } = this;
    this.unturned = tasks.length;
    if (tasks.length - unturned < 2) return;
    const newest = tasks.splice(unturned);
    const newTargets = targets.splice(unturned);
    for (let index = newest.length - 1; index >= 0; index--) {
      const task = newest[index];
      if (task !== undefined) this.add(task, newTargets[index] as TaskStateName);
    }
    this.unturned = tasks.length;
  }

  retarget(task: TaskState, target: TaskStateName): void {
    this.targets[task.deferredIndex] = target;
  }

  /** The task is needed again. No-op when its release was not deferred. */
  keep(task: TaskState): void {
    if (isDeferred(task)) this.remove(task);
  }

  clear(): void {
    for (const task of this.tasks) if (task !== undefined) task.deferredIndex = -1;
    this.tasks.length = 0;
    this.trim();
    this.targets.length = 0;
  }

  /** Takes a task out. */
  remove(task: TaskState): void {
    this.tasks[task.deferredIndex] = undefined;
    task.deferredIndex = -1;
    this.trim();
  }

  /** Takes the next task and follows what was recommended for it. Returns false when there is none. */
  followNext<Scope>(scope: Scope, follow: Follow<Scope>): boolean {
    const task = this.tasks.pop();
    if (task === undefined) return false;
    const target = this.targets.pop() as TaskStateName;
    task.deferredIndex = -1;
    this.trim();
    follow(scope, task, target);
    return true;
  }

  /** The last one is always a task. */
  private trim(): void {
    const { tasks, targets } = this;
    while (tasks.length > 0 && tasks[tasks.length - 1] === undefined) {
      tasks.pop();
      targets.pop();
    }
    this.isEmpty = tasks.length === 0;
    this.unturned = Math.min(this.unturned, tasks.length);
  }
}

/** True when the task is released at a later stimulus, unless it is needed by then. */
export function isDeferred({ deferredIndex }: TaskState): boolean {
  return deferredIndex >= 0;
}

/** True when the key stands for nothing any more: the task is left, and all that is missing is a last step. */
export function isAllButForgotten(task: TaskState): boolean {
  return (
    isDeferred(task) && task.state === 'released' && task.dependentCount === 0 && !task.isNeeded
  );
}

/**
 * A visit of one dependent after a step of a task. Made once, so that a visit costs no closure. It looks at
 * the state that both have by then.
 *
 * @param epoch - {@link DeferredVisits.epoch} when the visit was deferred
 */
export type Visit = (
  scope: KernelScope,
  task: TaskState,
  dependent: TaskState,
  epoch: number,
) => void;

/** Dependents of one task that have not been visited yet. */
interface Rest {
  readonly task: TaskState;
  readonly dependents: readonly TaskState[];
  /** Those before this index. */
  left: number;
  readonly visit: Visit;
  readonly epoch: number;
}

/**
 * Dependents that fail with a task, or start again with it, and to which a long stimulus has not come: later ones
 * visit them, the newest first. Until then a dependent that is to fail waits under the failed task, and one that is to
 * start again is still failed.
 */
export class DeferredVisits {
  private readonly rests: Rest[] = [];
  /** True when nothing is to be visited. A field, because it is read after each stimulus. */
  isEmpty = true;
  /** Tells what fails from now on from what has failed before. Raised when a retry begins, and when visits are deferred. */
  epoch = 0;

  /** Returns the new epoch: what has failed before is distinguished from what fails from now on. */
  begin(): number {
    return ++this.epoch;
  }

  /** @param left - how many of the dependents are still to be visited; they are visited from the last to the first */
  add(task: TaskState, dependents: readonly TaskState[], left: number, visit: Visit): void {
    this.isEmpty = false;
    this.rests.push({ task, dependents, left, visit, epoch: this.begin() });
  }

  /** Visits the next dependent. Returns false when there is none. */
  visitNext(scope: KernelScope): boolean {
    const rest = this.rests.at(-1);
    if (rest === undefined) return false;
    const dependent = rest.dependents[--rest.left];
    // First of all: a visit that throws is over.
    if (rest.left <= 0) this.pop();
    if (dependent !== undefined && dependent.state !== 'forgotten') {
      rest.visit(scope, rest.task, dependent, rest.epoch);
    }
    return true;
  }

  clear(): void {
    this.rests.length = 0;
    this.isEmpty = true;
  }

  /** Dependents that are still to be visited, by the task; for validation. O(visits). */
  pending(): ReadonlyMap<TaskState, ReadonlySet<TaskState>> {
    const pending = new Map<TaskState, Set<TaskState>>();
    for (const { task, dependents, left } of this.rests) {
      const awaiting = pending.get(task) ?? new Set();
      for (const dependent of dependents.slice(0, left)) awaiting.add(dependent);
      pending.set(task, awaiting);
    }
    return pending;
  }

  private pop(): void {
    this.rests.pop();
    this.isEmpty = this.rests.length === 0;
  }
}

/** The scope of the kernel, as far as it is needed here. */
interface Recommender {
  recommend(task: TaskState, target: TaskStateName): void;
}

/**
 * The tasks of a large graph in the order in which they start, some at each stimulus: what the
 * recommendation stack would hold if all were recommended at once. A task that is recommended again while
 * others of the line start keeps its place and gets the new target; another stimulus that recommends it
 * takes it out of the line.
 */
export class PendingStarts {
  private next = 0;
  /** True when the tasks have joined; otherwise all of them start at once. */
  private isLine = false;
  private targets: Map<TaskState, TaskStateName> | undefined;

  /** @param tasks - the best first */
  constructor(readonly tasks: readonly TaskState[]) {}

  get isOver(): boolean {
    return this.next >= this.tasks.length;
  }

  /** Tasks whose turn has not come. */
  get rest(): readonly TaskState[] {
    return this.tasks.slice(this.next);
  }

  /** The tasks at these places join, as far as they are to be started. */
  join(from: number, to: number): void {
    this.isLine = true;
    for (let place = from; place < to; place++) {
      const task = this.tasks[place] as TaskState;
      const isIdle = task.pendingIndex < 0 && task.deferredIndex < 0 && task.startIndex < 0;
      if (isIdle && isStartable(task)) task.startIndex = place;
    }
  }

  retarget(task: TaskState, target: TaskStateName): void {
    this.targets ??= new Map();
    this.targets.set(task, target);
  }

  /** Recommends what is next, the best task last, so that it is followed first. */
  advance(count: number, scope: Recommender): void {
    const start = this.next;
    this.next = Math.min(this.tasks.length, start + count);
    for (let place = this.next - 1; place >= start; place--) {
      const task = this.tasks[place] as TaskState;
      if (!this.isLine) {
        if (isStartable(task)) scope.recommend(task, 'waiting');
      } else if (this.leave(task, place) && task.state === 'released') {
        scope.recommend(task, this.targets?.get(task) ?? 'waiting');
      }
    }
  }

  /** Drops all pending starts. */
  clear(): void {
    for (let place = this.next; place < this.tasks.length; place++) {
      this.leave(this.tasks[place] as TaskState, place);
    }
    this.next = this.tasks.length;
  }

  /** Returns whether it was still in the line. */
  private leave(task: TaskState, place: number): boolean {
    if (task.startIndex !== place) return false;
    task.startIndex = -1;
    return true;
  }
}

function isStartable({ state, runSpec }: TaskState): boolean {
  return state === 'released' && runSpec !== undefined;
}

/** True when the turn of the task comes at a later stimulus. */
export function isInLine({ startIndex }: TaskState): boolean {
  return startIndex >= 0;
}
