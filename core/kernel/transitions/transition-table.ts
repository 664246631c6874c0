import type { TransitionDetails } from '../../api/hooks.ts';
import type { TaskState } from '../../state/task.ts';
import { ByState, type TaskStateName } from '../../state/task-state-name.ts';
import { erredToReleased } from './from-erred.ts';
import { memoryToErred, memoryToForgotten, memoryToReleased } from './from-memory.ts';
import { noWorkerToErred, noWorkerToProcessing, noWorkerToReleased } from './from-no-worker.ts';
import { processingToErred, processingToMemory, processingToReleased } from './from-processing.ts';
import { queuedToErred, queuedToProcessing, queuedToReleased } from './from-queued.ts';
import { releasedToErred, releasedToForgotten, releasedToWaiting } from './from-released.ts';
import {
  waitingToMemory,
  waitingToNoWorker,
  waitingToProcessing,
  waitingToQueued,
  waitingToReleased,
} from './from-waiting.ts';
import type { KernelScope } from '../scope.ts';

/**
 * One step of a task. It changes the state, recommends what should follow, and puts messages into the
 * outbox; it never takes a second step itself. It may leave the task where it was.
 */
export type Transition = (scope: KernelScope, task: TaskState, details: TransitionDetails) => void;

/**
 * The direct transitions. Any other pair goes through `released`, or is impossible.
 * Source: the transitions of Dask's scheduler.
 */
export const TRANSITIONS: Readonly<
  Record<TaskStateName, Partial<Record<TaskStateName, Transition>>>
> = {
  released: {
    waiting: releasedToWaiting,
    erred: releasedToErred,
    forgotten: releasedToForgotten,
  },
  waiting: {
    released: waitingToReleased,
    processing: waitingToProcessing,
    'no-worker': waitingToNoWorker,
    queued: waitingToQueued,
    memory: waitingToMemory,
  },
  queued: {
    released: queuedToReleased,
    processing: queuedToProcessing,
    erred: queuedToErred,
  },
  'no-worker': {
    released: noWorkerToReleased,
    processing: noWorkerToProcessing,
    erred: noWorkerToErred,
  },
  processing: {
    released: processingToReleased,
    memory: processingToMemory,
    erred: processingToErred,
  },
  memory: {
    released: memoryToReleased,
    forgotten: memoryToForgotten,
    erred: memoryToErred,
  },
  erred: {
    released: erredToReleased,
  },
  forgotten: {},
};

/** {@link TRANSITIONS} for the loop: `DIRECT.of(start)?.of(finish)`. */
export const DIRECT = new ByState({
  released: new ByState(TRANSITIONS.released),
  waiting: new ByState(TRANSITIONS.waiting),
  queued: new ByState(TRANSITIONS.queued),
  'no-worker': new ByState(TRANSITIONS['no-worker']),
  processing: new ByState(TRANSITIONS.processing),
  memory: new ByState(TRANSITIONS.memory),
  erred: new ByState(TRANSITIONS.erred),
});
