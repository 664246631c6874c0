import { type Clock, YardmasterError } from '../../core/api/index.ts';
import type { PriorityTuple } from './priority-labels.ts';

/** How to open a session. */
export interface SchedulingApiOptions {
  /** Keeps the subtasks of this session apart from all others in the cluster. Default: the client's id. */
  readonly sessionId?: string;
  /** Summaries of subtasks that are finished or cancelled which are kept, the newest. Default 10 000. */
  readonly historyLength?: number;
  readonly clock?: Clock;
}

/** How to cancel. */
export interface CancelSubtasksOptions {
  /**
   * Milliseconds that a run has to stop. Then its thread is ended, unless the worker never ends threads.
   * Default 5000.
   */
  readonly killTimeoutMs?: number;
}

/** What became of subtasks that were to be cancelled; ids. */
export interface CancelledSubtasks {
  readonly cancelled: readonly string[];
  /** Had ended before. */
  readonly ended: readonly string[];
  /** Not of this session, or finished or cancelled before. */
  readonly unknown: readonly string[];
  /** The part of `cancelled` whose runs still go on. Nobody gets their results. */
  readonly running: readonly string[];
}

/** How to finish. */
export interface FinishSubtasksOptions {
  /** Where each ran to its end. A subtask runs in one place only, so there is nothing to stop elsewhere. */
  readonly bands?: readonly (string | undefined)[];
  /** Must be true: what can run next is always sent at once. Default true. */
  readonly scheduleNext?: boolean;
}

/** A priority: one number, or several of which the first counts most. Larger runs earlier. */
export type SubtaskPriority = number | PriorityTuple;

/** @throws YardmasterError `ERR_GRAPH_INVALID` when there are not as many as subtasks */
export function tuplesFor(
  subtasks: readonly unknown[],
  priorities: readonly SubtaskPriority[] | undefined,
): PriorityTuple[] {
  if (priorities === undefined) return subtasks.map(() => [0]);
  if (priorities.length === subtasks.length) return priorities.map(tupleOf);
  throw new YardmasterError(
    'ERR_GRAPH_INVALID',
    `${subtasks.length} subtasks need as many priorities, got ${priorities.length}`,
  );
}

/** A number is a tuple of one. */
export function tupleOf(priority: SubtaskPriority): PriorityTuple {
  return typeof priority === 'number' ? [priority] : priority;
}

/** @throws YardmasterError `ERR_GRAPH_INVALID` */
export function checkFinish(
  ids: readonly string[],
  { bands, scheduleNext = true }: FinishSubtasksOptions,
): void {
  if (!scheduleNext) {
    throw new YardmasterError(
      'ERR_GRAPH_INVALID',
      'scheduleNext cannot be false: what can run next is always sent at once; pause workers instead',
      { option: 'scheduleNext' },
    );
  }
  if (bands === undefined || bands.length === ids.length) return;
  throw new YardmasterError(
    'ERR_GRAPH_INVALID',
    `${ids.length} subtasks need as many bands, got ${bands.length}`,
    { option: 'bands' },
  );
}
