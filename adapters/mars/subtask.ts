import { inspect } from 'node:util';
import { type TaskStateName, YardmasterError } from '../../core/api/index.ts';
import { type Graph, Ref, TaskNode } from '../client/index.ts';
import { checkFields } from './options.ts';
import type { PriorityTuple } from './priority-labels.ts';

/** One task of a session of the scheduling service. */
export interface Subtask {
  /** Unique in the session. */
  readonly id: string;
  /**
   * What to call with what: `task(fn, …)`. `ref(id)` anywhere in the arguments stands for the result of
   * another subtask of the session; futures of the same client may be there, too.
   */
  readonly call: TaskNode<unknown>;
  /** Ids of subtasks that it has to wait for without using their results. */
  readonly dependencies?: readonly string[];
  /** Times that it may fail and is tried again. Default: `scheduling.subtaskMaxRetries`. */
  readonly retries?: number;
  /** Addresses or names of the workers where it should run. Default: any. */
  readonly expectedBands?: readonly string[];
  /** It must run on one of them, and waits when none is there. Default false. */
  readonly bandsMandatory?: boolean;
  /** Groups subtasks for summaries. */
  readonly taskId?: string;
}

/** Where a subtask stands. */
export interface SubtaskScheduleSummary {
  readonly subtaskId: string;
  readonly taskId?: string;
  /** As the scheduler has it; `gone`: it does not know the subtask (any more). */
  readonly state: TaskStateName | 'gone';
  /** Address of the worker that it was sent to, or those of the holders of its result. */
  readonly bands: readonly string[];
  /** Times that it was placed again: after the death of a worker, a failure, a theft or a loss. */
  readonly numReschedules: number;
  /** Times that it may still fail. */
  readonly retriesLeft: number;
  readonly priority: PriorityTuple;
  /** It has a result, or the session has said that it is done with it. */
  readonly isFinished: boolean;
  readonly isFailed: boolean;
  readonly isCancelled: boolean;
}

/** What becomes a task of the cluster. */
interface PlacedSubtask {
  readonly subtask: Subtask;
  readonly priority: number;
  /** Addresses of workers; also names that no worker has yet. */
  readonly bands: readonly string[];
}

/** Subtasks as a graph by id. */
export function graphOf(placed: readonly PlacedSubtask[]): Graph {
  const nodes = placed.map(({ subtask, priority, bands }) => {
    const { id, call, dependencies = [], retries, bandsMandatory = false } = subtask;
    const node = call.after(...dependencies.map((other) => new Ref<unknown>(other))).with({
      priority,
      ...(retries === undefined ? {} : { retries }),
      ...(bands.length === 0 ? {} : { workers: bands, allowOtherWorkers: !bandsMandatory }),
    });
    return [id, node] as const;
  });
  return Object.fromEntries(nodes);
}

/** @throws YardmasterError `ERR_GRAPH_INVALID` naming the subtask and the field */
export function checkSubtasks(
  subtasks: readonly Subtask[],
  isTaken: (id: string) => boolean,
): void {
  const ids = new Set<string>();
  if (!Array.isArray(subtasks)) checkFields('the list of subtasks', undefined, []);
  for (const subtask of subtasks) {
    checkFields('a subtask', subtask, FIELDS);
    const { id, call, expectedBands, dependencies } = subtask;
    if (typeof id !== 'string' || id === '') refuse(inspect(id), 'needs an id, which is a text');
    checkValues(subtask);
    if (ids.has(id) || isTaken(id))
      refuse(id, 'is there already; finish it first, or name this one otherwise');
    if (!(call instanceof TaskNode)) refuse(id, 'has no call; write call: task(fn, …)');
    if (!isListOfTexts(expectedBands))
      refuse(id, 'has expectedBands that are not names of workers');
    if (!isListOfTexts(dependencies)) refuse(id, 'has dependencies that are not ids');
    ids.add(id);
  }
}

const FIELDS: readonly (keyof Subtask)[] = [
  'id',
  'call',
  'dependencies',
  'retries',
  'expectedBands',
  'bandsMandatory',
  'taskId',
];

function checkValues({ id, retries, bandsMandatory, taskId }: Subtask): void {
  if (retries !== undefined && !(Number.isSafeInteger(retries) && retries >= 0)) {
    refuse(id, 'has retries that are not a whole number, at least 0');
  }
  if (bandsMandatory !== undefined && typeof bandsMandatory !== 'boolean') {
    refuse(id, 'has a bandsMandatory that is neither true nor false');
  }
  if (taskId !== undefined && typeof taskId !== 'string')
    refuse(id, 'has a taskId that is no text');
}

/** @throws YardmasterError `ERR_GRAPH_INVALID` */
export function refuse(id: string, why: string): never {
  throw new YardmasterError('ERR_GRAPH_INVALID', `the subtask "${id}" ${why}`, { subtask: id });
}

function isListOfTexts(value: unknown): boolean {
  return (
    value === undefined || (Array.isArray(value) && value.every((item) => typeof item === 'string'))
  );
}
