/** How what is written refers to what is written elsewhere. */
import type { TaskGroup, TaskPrefix } from '../../state/groups.ts';
import type { ClientState, TaskState, WorkerState } from '../../state/task.ts';
import { FORGOTTEN } from './state-parts.ts';

/** Added to the number of a state. */
export const WAITER = 16;
export const COMPUTABLE = 32;

/** Positions of objects in a list that is written, in the order in which they were added. */
export class Positions<T> {
  readonly items: T[] = [];
  private readonly byItem = new Map<T, number>();

  constructor(items: Iterable<T> = []) {
    for (const item of items) this.of(item);
  }

  /** The position of an item; it is added when it is not there. */
  of(item: T): number {
    let position = this.byItem.get(item);
    if (position === undefined) {
      position = this.items.length;
      this.items.push(item);
      this.byItem.set(item, position);
    }
    return position;
  }
}

/** What the parts of one snapshot refer to. */
export interface SnapshotTables {
  readonly prefixes: Positions<TaskPrefix>;
  readonly groups: Positions<TaskGroup>;
  /** By rank, then those that have left. */
  readonly workers: Positions<WorkerState>;
  readonly clients: Positions<ClientState>;
}

/** How a task is named. */
export function idOf(task: TaskState): number {
  return task.state === 'forgotten' ? FORGOTTEN : task.id;
}
