import type { ClusterState } from '../state/cluster.ts';
import type { TaskStateName } from '../state/state-names.ts';
import type { TaskState } from '../state/task.ts';
import type { KernelScope } from './scope.ts';

/**
 * Long work. A stimulus does `sliceTransitions` steps at most; what is left after that is on the agenda, and each
 * `continue` does as much of it again. Two things can be left: recommendations of single tasks, which are followed in
 * the order of a stimulus that does all at once, and the rest of a handler that is a generator (intakes of graphs, and
 * whatever goes through very many keys), which goes on when none of its recommendations is left. The works of the agenda
 * take turns.
 *
 * A task whose recommendation is left keeps its state: one that is not needed is held or computed, one that is to fail
 * waits, one that is to start again is failed. When its turn comes, its state decides anew.
 */
export class Work {
  /** The rest of the handler; undefined: it is done. */
  rest: Generator<void, void> | undefined = undefined;
  /** The handler is done at once when the agenda is cleared; others are dropped then. */
  mustEnd = false;
  /** False while the handler waits for other works. */
  isReady: () => boolean = always;
  leftCount = 0;
  /** Tasks in the reverse order in which they are followed; undefined where one was taken out. */
  private readonly tasks: (TaskState | undefined)[] = [];
  private readonly targets: TaskStateName[] = [];
  /** The index at which the entries begin that came in the order in which they would have been followed. */
  private unturned = 0;

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

  /** The task comes after those that were left before it and since the last {@link turn}. */
  leave(task: TaskState, target: TaskStateName): void {
    const index = this.tasks.push(task) - 1;
    this.targets.push(target);
    this.leftCount++;
    task.leftBy = this;
    // Last: wherever this fails, `clear` finds the task.
    task.leftIndex = index;
  }

  holds(task: TaskState): boolean {
    return task.leftBy === this && this.tasks[task.leftIndex] === task;
  }

  targetOf(task: TaskState): TaskStateName {
    return this.targets[task.leftIndex] as TaskStateName;
  }

  retarget(task: TaskState, target: TaskStateName): void {
    this.targets[task.leftIndex] = target;
  }

  /** Takes a task out, and returns what was recommended for it. */
  remove(task: TaskState): TaskStateName {
    const target = this.targetOf(task);
    this.tasks[task.leftIndex] = undefined;
    this.leftCount--;
    task.leftIndex = -1;
    task.leftBy = undefined;
    this.trim();
    return target;
  }

  /** The next task; undefined: nothing is left. */
  get next(): TaskState | undefined {
    return this.tasks.at(-1);
  }

  /** Reverses the entries added since the last call, so that the first of them comes first. O(these entries). */
  turn(): void {
    const { tasks, targets, unturned } = this;
    for (let low = unturned, high = tasks.length - 1; low < high; low++, high--) {
      swap(tasks, low, high);
      swap(targets, low, high);
    }
    for (let index = unturned; index < tasks.length; index++) {
      const task = tasks[index];
      if (task !== undefined) task.leftIndex = index;
    }
    this.keepOrder();
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

  /** Forgets the recommendations. */
  clear(): void {
    for (const task of this.tasks) {
      if (task === undefined) continue;
      task.leftIndex = -1;
      task.leftBy = undefined;
    }
    this.tasks.length = 0;
    this.targets.length = 0;
    this.unturned = 0;
    this.leftCount = 0;
  }

  /** The last one is always a task. */
  private trim(): void {
    const { tasks, targets } = this;
    while (tasks.length > 0 && tasks[tasks.length - 1] === undefined) {
      tasks.pop();
      targets.pop();
    }
    this.unturned = Math.min(this.unturned, tasks.length);
  }
}

function swap<T>(items: T[], one: number, other: number): void {
  const item = items[one] as T;
  items[one] = items[other] as T;
  items[other] = item;
}

const always = (): boolean => true;

/** Runs the handler of the present stimulus to its first pause; one that is not ready waits until it is. */
export function begin(
  scope: KernelScope,
  handler: Generator<void, void>,
  isReady: () => boolean = always,
): Work {
  const work = scope.work();
  work.rest = handler;
  work.isReady = isReady;
  if (isReady()) work.advance();
  return work;
}

/** The work that comes to the task later; undefined: none does. */
export function workOn({ leftBy }: TaskState): Work | undefined {
  return leftBy as Work | undefined;
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
  /** Tasks whose release was left, and that the present stimulus has to do with: they are followed now. */
  private readonly takenUp = new Set<TaskState>();
  /** The target of the recommendation that was taken last. */
  taken: TaskStateName = 'released';

  recommend(task: TaskState, target: TaskStateName): void {
    if (task.pendingIndex >= 0) {
      this.targets[task.pendingIndex] = target;
      return;
    }
    const left = workOn(task)?.remove(task);
    if (left !== undefined && isRelease(left)) this.takenUp.add(task);
    task.pendingIndex = this.tasks.length;
    this.tasks.push(task);
    this.targets.push(target);
  }

  /**
   * Takes a recommendation back; the release of what is not needed stays left. No-op when there is none.
   * @returns whether the release of the task was left, and has been taken up
   */
  withdraw(task: TaskState): boolean {
    const work = workOn(task);
    if (work !== undefined) {
      if (!isRelease(work.targetOf(task))) work.remove(task);
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

  /** Takes the newest recommendation, whose target is {@link taken} until the next; undefined: there is none. */
  take(): TaskState | undefined {
    const { tasks, targets } = this;
    while (tasks.length > 0) {
      const task = tasks.pop();
      this.taken = targets.pop() as TaskStateName;
      if (task === undefined) continue;
      task.pendingIndex = -1;
      return task;
    }
    this.taken = 'released';
    return undefined;
  }

  /** Drops everything that is recommended. O(tasks that are recommended). */
  clear(): void {
    for (const task of this.tasks) if (task !== undefined) task.pendingIndex = -1;
    this.tasks.length = 0;
    this.targets.length = 0;
    this.takenUp.clear();
  }

  /** The present recommendation for this task, if there is one. */
  targetOf(task: TaskState): TaskStateName | undefined {
    return task.pendingIndex < 0 ? undefined : this.targets[task.pendingIndex];
  }
}

/** True when a later stimulus comes to the task. */
export function isLeft({ leftBy }: TaskState): boolean {
  return leftBy !== undefined;
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
 * @returns the work to which the rest of the list belongs; undefined: all is done
 */
export function inSlices<T>(
  scope: KernelScope,
  items: readonly T[],
  take: (items: readonly T[]) => void,
  finish?: () => void,
): Work | undefined {
  const count = KEYS_PER_TRANSITION * scope.options.sliceTransitions;
  if (items.length > count) return begin(scope, sliced(items, count, take, finish));
  take(items);
  finish?.();
  return undefined;
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
