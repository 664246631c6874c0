import type { ClusterState } from '../state/cluster.ts';
import type { TaskStateName } from '../state/state-names.ts';
import type { TaskState } from '../state/task.ts';
import type { KernelScope } from './scope.ts';

/**
 * Long work. A stimulus does `sliceTransitions` steps at most; what is left after that is on the agenda, and each
 * `continue` does as much of it again. Two things can be left: recommendations of single tasks, which are followed in
 * the order of a stimulus that does all at once, and the rest of handlers that are generators (intakes of graphs, and
 * whatever goes through very many keys). Handlers take turns, when no recommendation is left.
 */
export class Work {
  /** Recommendations that are left. */
  leftCount = 0;
  /** The rest of the handler; undefined: it is done. */
  rest: Generator<void, void> | undefined = undefined;

  /** @param client - who said it, and waits until it is done: a key may return with another meaning */
  constructor(
    readonly stimulusId: string,
    readonly client: string | undefined,
  ) {}

  get isOver(): boolean {
    return this.leftCount === 0 && this.rest === undefined;
  }

  /** Runs the handler to its next pause. One that throws is over. */
  advance(): void {
    const { rest } = this;
    this.rest = undefined;
    if (rest?.next().done === false) this.rest = rest;
  }
}

/** Runs the handler of the present stimulus to its first pause. */
export function begin(scope: KernelScope, handler: Generator<void, void>): void {
  const work = scope.work();
  work.rest = handler;
  work.advance();
}

/** The target of a task that is not needed, when this is recommended for it: it does not start any more. */
export function targetOfSuperfluous(task: TaskState, target: TaskStateName): TaskStateName {
  if (task.dependentCount === 0 || task.hasLostDependencies) return 'forgotten';
  if (target === 'erred' || task.state === 'erred' || task.state === 'released') return target;
  return 'released';
}

/**
 * Recommendations to move a task to a state. The newest is taken first; a task that is
 * recommended again gets the new target and keeps its place (Dask's `popitem` on a dictionary).
 */
export class RecommendationStack {
  private readonly tasks: (TaskState | undefined)[] = [];
  private readonly targets: TaskStateName[] = [];
  /** The recommendations that long stimuli have left to later ones. */
  readonly left = new LeftRecommendations();
  /** Tasks whose release was left, and that the present stimulus has to do with: they are followed now. */
  private readonly takenUp = new Set<TaskState>();

  recommend(task: TaskState, target: TaskStateName): void {
    if (task.pendingIndex >= 0) {
      this.targets[task.pendingIndex] = target;
      return;
    }
    if (isLeft(task) && isRelease(this.left.remove(task))) this.takenUp.add(task);
    task.pendingIndex = this.tasks.length;
    this.tasks.push(task);
    this.targets.push(target);
  }

  /**
   * Takes a recommendation back; the release of what is not needed stays left. No-op when there is none.
   * @returns whether the release of the task was left, and has been taken up
   */
  withdraw(task: TaskState): boolean {
    if (isLeft(task)) {
      if (!isRelease(this.left.targetOf(task))) this.left.remove(task);
      return false;
    }
    if (task.pendingIndex >= 0) this.tasks[task.pendingIndex] = undefined;
    task.pendingIndex = -1;
    return this.takenUp.delete(task);
  }

  /** True when the present stimulus has nothing more to follow. */
  get isEmpty(): boolean {
    return this.tasks.length === 0;
  }

  /** True when the release of the task that was popped was left by an earlier stimulus. */
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
    this.takenUp.clear();
    this.left.clear();
  }

  /** The present recommendation for this task, if there is one. */
  targetOf(task: TaskState): TaskStateName | undefined {
    return task.pendingIndex < 0 ? undefined : this.targets[task.pendingIndex];
  }
}

/** Moves a task on to the recommended state. Made once, so that a recommendation costs no closure. */
type Follow<Scope> = (scope: Scope, task: TaskState, target: TaskStateName) => void;

/**
 * Recommendations that long stimuli have left to later ones, in the order in which they would have been followed.
 * Meanwhile the tasks keep their state: a task that is not needed is held or computed, one that is to fail waits, one
 * that is to start again is failed. When the turn of a task comes, its state decides anew.
 */
export class LeftRecommendations {
  private readonly tasks: (TaskState | undefined)[] = [];
  /** By task; of those that were left together, it is the same. */
  private readonly reasons: Reason[] = [];
  /** The index at which the entries begin that came in the order in which they would have been followed. */
  private unturned = 0;
  /** The index at which the entries begin that keep their place when they are recommended again. */
  private ownFrom = 0;

  get isEmpty(): boolean {
    return this.tasks.length === 0;
  }

  /** A stimulus begins. One that continues others keeps what they have left in its place. */
  begin(continues: boolean): void {
    this.ownFrom = continues ? 0 : this.tasks.length;
  }

  has(task: TaskState): boolean {
    return isLeft(task) && this.tasks[task.leftIndex] === task;
  }

  /** True when the present stimulus would come to the task anyway, in the order of one that does all at once. */
  isOwn({ leftIndex }: TaskState): boolean {
    return leftIndex >= this.ownFrom;
  }

  targetOf(task: TaskState): TaskStateName {
    return (this.reasons[task.leftIndex] as Reason).target;
  }

  /** The target of the next task; undefined: nothing is left. */
  get nextTarget(): TaskStateName | undefined {
    return this.reasons.at(-1)?.target;
  }

  /** The task comes after those that were left before it and since the last {@link turn}. */
  add(task: TaskState, reason: Reason): void {
    const index = this.tasks.push(task) - 1;
    this.reasons.push(reason);
    reason.work.leftCount++;
    // Last: wherever this fails, `clear` finds the task.
    task.leftIndex = index;
  }

  /** Returns the reason of tasks that are left together. */
  reasonFor(target: TaskStateName, work: Work): Reason {
    const last = this.reasons.at(-1);
    return last?.target === target && last.work === work ? last : { target, work };
  }

  /** Reverses the entries added since the last call, so that the first of them comes first. O(these entries). */
  turn(): void {
    const { tasks, reasons, unturned } = this;
    for (let low = unturned, high = tasks.length - 1; low < high; low++, high--) {
      swap(tasks, low, high);
      swap(reasons, low, high);
    }
    for (let index = unturned; index < tasks.length; index++) {
      const task = tasks[index];
      if (task !== undefined) task.leftIndex = index;
    }
    this.unturned = tasks.length;
    this.trim();
  }

  /** True when a {@link turn} is due. */
  get hasUnturned(): boolean {
    return this.unturned < this.tasks.length;
  }

  /** The entries added since the last {@link turn} stand in the order in which they are taken, from the end. */
  keepOrder(): void {
    this.unturned = this.tasks.length;
  }

  retarget(task: TaskState, target: TaskStateName): void {
    const { work } = this.reasons[task.leftIndex] as Reason;
    this.reasons[task.leftIndex] = { target, work };
  }

  /** Takes a task out, and returns what was recommended for it. */
  remove(task: TaskState): TaskStateName {
    const { leftIndex } = task;
    const { target, work } = this.reasons[leftIndex] as Reason;
    this.tasks[leftIndex] = undefined;
    work.leftCount--;
    task.leftIndex = -1;
    this.trim();
    return target;
  }

  /** Takes the next task. Returns false when there is none. */
  followNext<Scope>(
    scope: Scope,
    follow: (scope: Scope, task: TaskState, target: TaskStateName, work: Work) => void,
  ): boolean {
    const task = this.tasks.at(-1);
    if (task === undefined) return false;
    const { work } = this.reasons.at(-1) as Reason;
    follow(scope, task, this.remove(task), work);
    return true;
  }

  clear(): void {
    for (const { work } of this.reasons) work.leftCount = 0;
    for (const task of this.tasks) if (task !== undefined) task.leftIndex = -1;
    this.tasks.length = 0;
    this.reasons.length = 0;
    this.trim();
  }

  /** The last one is always a task. */
  private trim(): void {
    const { tasks, reasons } = this;
    while (tasks.length > 0 && tasks[tasks.length - 1] === undefined) {
      tasks.pop();
      reasons.pop();
    }
    this.unturned = Math.min(this.unturned, tasks.length);
    this.ownFrom = Math.min(this.ownFrom, tasks.length);
  }
}

/** The recommendation for a task that is left, and the work that has left it. */
interface Reason {
  readonly target: TaskStateName;
  readonly work: Work;
}

function swap<T>(items: T[], one: number, other: number): void {
  const item = items[one] as T;
  items[one] = items[other] as T;
  items[other] = item;
}

/** True when a later stimulus comes to the task. */
export function isLeft({ leftIndex }: TaskState): boolean {
  return leftIndex >= 0;
}

/** True when nothing is to come of the task but that it goes. */
export function isRelease(target: TaskStateName): target is 'released' | 'forgotten' {
  return target === 'released' || target === 'forgotten';
}

/** True when the state stays consistent if the step comes later: not when a worker, copies or inputs are gone. */
export function canBeLeft(cluster: ClusterState, task: TaskState, target: TaskStateName): boolean {
  const { state } = task;
  if (task.hasLostDependencies || task.runSpec === undefined) return false;
  // One that starts again is still a waiter of its dependencies.
  const isIdle = state === 'released' && !task.countsAsWaiter;
  if (target === 'waiting') return isIdle || state === 'erred';
  if (target === 'processing') return state === 'waiting';
  if (target === 'erred') return task.failure === undefined && (isIdle || state === 'waiting');
  if (!isRelease(target) || task.isNeeded) return false;
  if (state === 'memory') return task.whoHas.size > 0;
  if (state === 'erred') return true;
  if (task.blame !== undefined) return false;
  if (state === 'waiting') return task.missingDependencyCount > 0;
  return task.processingOn === undefined || cluster.isRegistered(task.processingOn);
}

/** True when the key stands for nothing any more: the task is left, and all that is missing is a last step. */
export function isAllButForgotten(task: TaskState): boolean {
  return isLeft(task) && task.state === 'released' && task.dependentCount === 0 && !task.isNeeded;
}

/** The pace of long work: it pauses after each `count` steps. */
export class Pace {
  private left: number;

  constructor(private readonly count: number) {
    this.left = count;
  }

  /** Counts one step. Returns whether it is time for a pause. */
  isPauseDue(): boolean {
    if (--this.left > 0) return false;
    this.left = this.count;
    return true;
  }
}

/** Keys that are looked up, and told of, in the time of one transition. */
const KEYS_PER_TRANSITION = 4;

/**
 * Goes through a list: at once when it is short, else by and by. From the end, because the newest recommendation is
 * followed first.
 */
export function inSlices<T>(
  scope: KernelScope,
  items: readonly T[],
  take: (items: readonly T[]) => void,
  finish?: () => void,
): void {
  const count = KEYS_PER_TRANSITION * scope.options.sliceTransitions;
  if (items.length > count) {
    begin(scope, sliced(items, count, take, finish));
    return;
  }
  take(items);
  finish?.();
}

function* sliced<T>(
  items: readonly T[],
  count: number,
  take: (items: readonly T[]) => void,
  finish?: () => void,
): Generator<void, void> {
  for (let end = items.length; end > 0; end -= count) {
    take(items.slice(Math.max(0, end - count), end));
    yield;
  }
  finish?.();
}
