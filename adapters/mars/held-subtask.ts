import type { TaskSummary } from '../../core/api/index.ts';
import type { Future } from '../client/index.ts';
import type { PriorityLabel, PriorityTuple } from './priority-labels.ts';
import type { Subtask, SubtaskScheduleSummary } from './subtask.ts';

/** A subtask of which the session holds the result. */
export interface HeldSubtask {
  readonly subtask: Subtask;
  readonly future: Future<unknown>;
  priority: PriorityTuple;
  /** Undefined once its place in the order does not matter any more. */
  label: PriorityLabel | undefined;
}

/** Where it stands. */
export function summaryOf(
  { subtask, future, priority }: HeldSubtask,
  known: TaskSummary | undefined,
): SubtaskScheduleSummary {
  const { id, taskId } = subtask;
  const {
    state = 'gone',
    processingOn,
    whoHas = [],
    reschedules = 0,
    retriesLeft = 0,
  } = known ?? {};
  return {
    subtaskId: id,
    ...(taskId === undefined ? {} : { taskId }),
    state,
    bands: processingOn === undefined ? whoHas : [processingOn],
    numReschedules: reschedules,
    retriesLeft,
    priority,
    isFinished: state === 'memory',
    isFailed: state === 'erred',
    isCancelled: future.status === 'cancelled',
  };
}
