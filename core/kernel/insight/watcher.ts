import type { Submission } from '../../api/policies.ts';
import type { TaskState } from '../../state/task.ts';
import type { Placement } from '../placement/placement.ts';
import type { OrderSubject } from '../graph/ranks.ts';
import type { KernelScope } from '../scope.ts';

/** How a task was placed. */
export interface PlacementEvent {
  readonly task: TaskState;
  readonly placement: Placement;
  /** Whether the queuing policy decided; otherwise the selection policy did. */
  readonly isRootish: boolean;
}

/**
 * Looks on while policies decide: called after each decision and before anything follows from it. It
 * changes nothing. Without watchers a decision costs one comparison more.
 */
export interface Watcher {
  placed?(scope: KernelScope, event: PlacementEvent): void;
  /** The tasks of a graph have got their ranks. Not called when the client gave them. */
  ranked?(scope: KernelScope, subject: OrderSubject, ranks: ArrayLike<number>): void;
  /** A submission has got its generation; the lowest when each task has its own. */
  submitted?(scope: KernelScope, submission: Submission, generation: number): void;
  /** Tasks were linked, dependencies first. */
  readonly prepare?: ((scope: KernelScope, tasks: readonly TaskState[]) => void) | undefined;
}
