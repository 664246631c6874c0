import type { Submission } from '../../api/policies.ts';
import type { TaskState } from '../../state/task.ts';
import type { OrderSubject, Placement } from '../ports.ts';

/** How a task was placed. */
export interface PlacementEvent {
  readonly task: TaskState;
  readonly placement: Placement;
  /** Whether the queuing policy decided; otherwise the selection policy did. */
  readonly isRootish: boolean;
}

/**
 * Observes the decisions of policies: called after each decision and before its effects. It changes
 * nothing. Without watchers a decision costs one more comparison.
 */
export interface Watcher {
  placed?(event: PlacementEvent): void;
  /** The tasks of a graph have their ranks. Not called when the client gave them. */
  ranked?(subject: OrderSubject, ranks: ArrayLike<number>): void;
  /** A submission has its generation; the lowest when each task has its own. */
  submitted?(submission: Submission, generation: number): void;
  /** Tasks were linked, dependencies first. */
  readonly prepare?: ((tasks: readonly TaskState[]) => void) | undefined;
}
