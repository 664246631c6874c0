import * as cancelledOrResumed from './from-cancelled-resumed.ts';
import * as fetchOrFlight from './from-fetch-flight.ts';
import * as memoryOrReleased from './from-memory-released.ts';
import * as readyOrExecuting from './from-ready-executing.ts';
import type { WorkerTransition } from '../worker-scope.ts';
import type { WorkerTarget, WorkerTaskStateName } from '../worker-task.ts';

/** Transitions from one state, by what is recommended. */
export type WorkerTableRow = Readonly<Partial<Record<WorkerTarget, WorkerTransition>>>;

/**
 * The transitions by start and target. A pair that is missing here goes through `released`; if that
 * is impossible, it is a bug.
 *
 * A transition need not reach its target: it may leave a task in its state (a transfer continues),
 * or lead it elsewhere (a run cannot be stopped, so its task is cancelled).
 */
export const WORKER_TRANSITIONS = {
  released: {
    waiting: memoryOrReleased.releasedToWaiting,
    fetch: fetchOrFlight.releasedToFetch,
    missing: fetchOrFlight.releasedToMissing,
    memory: memoryOrReleased.releasedToMemory,
    forgotten: memoryOrReleased.releasedToForgotten,
  },
  waiting: {
    ready: readyOrExecuting.waitingToReady,
    constrained: readyOrExecuting.waitingToConstrained,
    memory: memoryOrReleased.toMemoryUnasked,
    error: readyOrExecuting.waitingToError,
    released: readyOrExecuting.waitingToReleased,
  },
  ready: {
    executing: readyOrExecuting.readyToExecuting,
    memory: memoryOrReleased.toMemoryUnasked,
    released: readyOrExecuting.readyToReleased,
  },
  constrained: {
    executing: readyOrExecuting.readyToExecuting,
    memory: memoryOrReleased.toMemoryUnasked,
    released: readyOrExecuting.readyToReleased,
  },
  executing: {
    memory: readyOrExecuting.executingToMemory,
    waiting: memoryOrReleased.releasedToWaiting,
    error: readyOrExecuting.executingToError,
    rescheduled: readyOrExecuting.executingToRescheduled,
    released: readyOrExecuting.executingToReleased,
  },
  fetch: {
    flight: fetchOrFlight.fetchToFlight,
    missing: fetchOrFlight.fetchToMissing,
    released: fetchOrFlight.fetchToReleased,
  },
  flight: {
    memory: memoryOrReleased.flightToMemory,
    fetch: fetchOrFlight.flightToFetch,
    missing: fetchOrFlight.releasedToMissing,
    released: fetchOrFlight.flightToReleased,
  },
  missing: {
    fetch: fetchOrFlight.missingToFetch,
    released: fetchOrFlight.missingToReleased,
  },
  memory: { released: memoryOrReleased.memoryToReleased },
  error: { released: readyOrExecuting.waitingToReleased },
  cancelled: {
    fetch: cancelledOrResumed.cancelledToFetch,
    waiting: cancelledOrResumed.cancelledToWaiting,
    released: cancelledOrResumed.cancelledToReleased,
  },
  resumed: {
    fetch: cancelledOrResumed.cancelledToFetch,
    waiting: cancelledOrResumed.cancelledToWaiting,
    released: cancelledOrResumed.resumedToReleased,
  },
  forgotten: {},
} as const satisfies Record<WorkerTaskStateName, WorkerTableRow>;
