import { inspect } from 'node:util';
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
   * Default: `scheduling.subtaskCancelTimeout` of the scheduler, else 5000.
   */
  readonly killTimeoutMs?: number;
}

/** What became of subtasks that were to be cancelled, and of what depends on them; ids. */
export interface CancelledSubtasks {
  /** Those that were asked for, then what depends on them. */
  readonly cancelled: readonly string[];
  /** Had ended before. */
  readonly ended: readonly string[];
  /** Not of this session, or finished or cancelled before. */
  readonly unknown: readonly string[];
  /** The part of `cancelled` whose runs have not ended yet. Their results are dropped. */
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

/** @throws YardmasterError `ERR_GRAPH_INVALID` when there are not as many as subtasks, or one is of another type */
export function tuplesFor(
  subtasks: readonly unknown[],
  priorities: readonly SubtaskPriority[] | undefined,
): PriorityTuple[] {
  if (priorities === undefined) return subtasks.map(() => [0]);
  if (!Array.isArray(priorities))
    refuseOption('priorities', 'must be a list, one for each subtask');
  const given = priorities as readonly SubtaskPriority[];
  if (given.length === subtasks.length) return given.map(tupleOf);
  throw new YardmasterError(
    'ERR_GRAPH_INVALID',
    `${subtasks.length} subtasks need as many priorities, got ${given.length}`,
  );
}

/**
 * A number is a tuple of one.
 * @throws YardmasterError `ERR_GRAPH_INVALID` when it is something else than a number or a list of numbers
 */
export function tupleOf(priority: SubtaskPriority): PriorityTuple {
  const tuple: unknown = typeof priority === 'number' ? [priority] : priority;
  if (Array.isArray(tuple) && tuple.every((element) => typeof element === 'number')) return tuple;
  return refuseOption(
    'priority',
    `must be a number, or a list of numbers, got ${inspect(priority)}`,
  );
}

/** @throws YardmasterError `ERR_GRAPH_INVALID` */
export function checkFinish(ids: readonly string[], options: FinishSubtasksOptions): void {
  checkFields('the options', options, ['bands', 'scheduleNext']);
  const { bands } = options;
  const scheduleNext: unknown = options.scheduleNext ?? true;
  if (scheduleNext !== true) {
    const why = 'what can run next is always sent at once; pause workers instead';
    refuseOption('scheduleNext', `cannot be ${inspect(scheduleNext)}: ${why}`);
  }
  if (bands === undefined) return;
  if (!Array.isArray(bands)) refuseOption('bands', 'must be a list, one for each subtask');
  if (bands.length === ids.length) return;
  throw new YardmasterError(
    'ERR_GRAPH_INVALID',
    `${ids.length} subtasks need as many bands, got ${bands.length}`,
    { option: 'bands' },
  );
}

/** @throws YardmasterError `ERR_GRAPH_INVALID` naming the option */
export function checkCancel(options: CancelSubtasksOptions): void {
  checkFields('the options', options, ['killTimeoutMs']);
  const { killTimeoutMs } = options;
  if (killTimeoutMs === undefined || (Number.isFinite(killTimeoutMs) && killTimeoutMs >= 0)) return;
  const got = inspect(killTimeoutMs);
  refuseOption('killTimeoutMs', `must be a finite number, at least 0, got ${got}`);
}

/** @throws YardmasterError `ERR_GRAPH_INVALID` naming the option */
export function checkSession(options: SchedulingApiOptions): void {
  checkFields('the options', options, ['sessionId', 'historyLength', 'clock']);
  const { sessionId, historyLength } = options;
  if (sessionId !== undefined && (typeof sessionId !== 'string' || sessionId === '')) {
    refuseOption('sessionId', `must be a text that is not empty, got ${inspect(sessionId)}`);
  }
  if (historyLength === undefined || (Number.isInteger(historyLength) && historyLength >= 0))
    return;
  if (historyLength === Infinity) return;
  refuseOption(
    'historyLength',
    `must be a whole number, at least 0, got ${inspect(historyLength)}`,
  );
}

/** @throws YardmasterError `ERR_GRAPH_INVALID` when it is no text */
export function checkText(option: string, value: unknown): void {
  if (typeof value !== 'string') refuseOption(option, `must be a text, got ${inspect(value)}`);
}

/** @throws YardmasterError `ERR_GRAPH_INVALID` when it is no list of texts */
export function checkIds(ids: unknown): void {
  if (Array.isArray(ids) && ids.every((id) => typeof id === 'string')) return;
  refuseOption('ids', `must be a list of ids of subtasks, got ${inspect(ids)}`);
}

/** @throws YardmasterError `ERR_GRAPH_INVALID` when it is no object, or has a field that there is not */
export function checkFields(what: string, value: unknown, known: readonly string[]): void {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new YardmasterError(
      'ERR_GRAPH_INVALID',
      `${what} must be an object, got ${inspect(value)}`,
    );
  }
  const unknown = Object.keys(value).find((field) => !known.includes(field));
  if (unknown === undefined) return;
  throw new YardmasterError(
    'ERR_GRAPH_INVALID',
    `${what}: there is no "${unknown}"; there are ${known.join(', ')}`,
    { option: unknown },
  );
}

function refuseOption(option: string, why: string): never {
  throw new YardmasterError('ERR_GRAPH_INVALID', `${option} ${why}`, { option });
}
