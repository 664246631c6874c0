import type { TaskState } from '../../state/task.ts';
import type { TaskStateName } from '../../state/task-state-name.ts';

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
  /** Whether the tasks have joined; otherwise all of them start at once. */
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

/** Whether the turn of the task comes at a later stimulus. */
export function isInLine({ startIndex }: TaskState): boolean {
  return startIndex >= 0;
}
