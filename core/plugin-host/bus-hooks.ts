import type { SchedulerHooks } from '../api/hooks.ts';
import type { EventBus } from './event-bus.ts';

/**
 * Observers that publish the events of the kernel on the outer event bus.
 * @param workerLeft - called first, with the address of a worker that was removed
 */
export function busHooks(
  bus: EventBus,
  workerLeft: (address: string) => void,
): Partial<SchedulerHooks> {
  return {
    taskTransition: (task, _start, finish) => {
      if (finish === 'erred') bus.emit('task-erred', task);
    },
    graphUpdated: ({ client, tasks }) => bus.emit('graph-submitted', client, tasks.length),
    workerAdded: (worker) => bus.emit('worker-added', worker),
    workerRemoved: (worker, stimulusId) => {
      workerLeft(worker.address);
      bus.emit('worker-removed', worker, stimulusId);
    },
    workerStatusChanged: (worker) => bus.emit('worker-status', worker),
    clientAdded: (client) => bus.emit('client-added', client),
    clientRemoved: (client) => bus.emit('client-removed', client),
  };
}
