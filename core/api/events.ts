import type { YardmasterError } from './errors.ts';
import type { ClientView, TaskView, WorkerView } from './views.ts';

/** What happens at a low rate, for any number of listeners, after the fact. */
export interface SchedulerEvents {
  'worker-added': (worker: WorkerView) => void;
  'worker-removed': (worker: WorkerView, stimulusId: string) => void;
  'worker-status': (worker: WorkerView) => void;
  'client-added': (client: ClientView) => void;
  'client-removed': (client: ClientView) => void;
  'graph-submitted': (client: string, taskCount: number) => void;
  'task-erred': (task: TaskView) => void;
  'plugin-added': (name: string) => void;
  'plugin-removed': (name: string) => void;
  /** A hook, a policy or a listener failed; the scheduler continued. */
  error: (error: YardmasterError) => void;
  /** Something was logged under a topic. */
  event: (topic: string, message: unknown) => void;
  closed: () => void;
}

/** Names of the events of the outer bus. */
export type EventName = keyof SchedulerEvents;

/** The outer event bus, read side. A listener that throws affects no other listener. */
export interface EventSource {
  on<Name extends EventName>(name: Name, listener: SchedulerEvents[Name]): void;
  once<Name extends EventName>(name: Name, listener: SchedulerEvents[Name]): void;
  off<Name extends EventName>(name: Name, listener: SchedulerEvents[Name]): void;
}
