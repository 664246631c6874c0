import type { GraphTask } from '../messages/stimulus.ts';
import type { ActionTiming } from '../state/groups.ts';
import type { TaskStateName } from '../state/state-names.ts';
import type { TaskFailure } from '../state/task.ts';
import type { YardmasterError } from './errors.ts';
import type { ClientView, TaskView, WorkerView } from './views.ts';

/**
 * The events that a program around a scheduler can listen to. They are derived from the hooks of plugins, and published once the
 * stimulus is complete.
 */
export interface SchedulerEvents {
  'worker-added': (worker: WorkerView) => void;
  'worker-removed': (worker: WorkerView, stimulusId: string, loss: WorkerLoss) => void;
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

/** Names of the events. */
export type EventName = keyof SchedulerEvents;

/** The events of a scheduler. A listener that throws affects no other listener. */
export interface EventSource {
  on<Name extends EventName>(name: Name, listener: SchedulerEvents[Name]): void;
  once<Name extends EventName>(name: Name, listener: SchedulerEvents[Name]): void;
  off<Name extends EventName>(name: Name, listener: SchedulerEvents[Name]): void;
}

/**
 * The result of a hook: anything but a promise, and it is ignored. An `async` hook does not compile,
 * because nothing waits for it.
 */
export type HookResult =
  | void
  | undefined
  | null
  | string
  | number
  | boolean
  | bigint
  | symbol
  | (object & { readonly then?: never });

/** The report of a worker that caused the transition, if one did. */
export interface TransitionDetails {
  readonly worker?: string;
  readonly nbytes?: number;
  readonly type?: string;
  readonly timings?: readonly ActionTiming[];
  readonly metadata?: Readonly<Record<string, unknown>>;
  /** Key of the task that failed first. */
  readonly cause?: string;
  readonly failure?: TaskFailure;
}

/** A graph that is about to be taken in, as its client sent it: {@link SchedulerHooks.admit}. */
export interface GraphSubmission {
  readonly client: string;
  readonly tasks: readonly GraphTask[];
  /** Requested keys. */
  readonly keys: readonly string[];
  /** The task from inside which it was submitted. */
  readonly submittingTask?: string;
}

/** The changes that a submitted graph made to the tables. */
export interface GraphUpdate {
  readonly client: string;
  /** Requested keys. */
  readonly keys: readonly string[];
  /** Tasks that the graph made or touched. */
  readonly tasks: readonly TaskView[];
  readonly stimulusId: string;
}

/** The loss that a departing worker caused. */
export interface WorkerLoss {
  readonly expected: boolean;
  /** Tasks that were processing there. */
  readonly processing: readonly string[];
  /** Results whose last copy was there and that are computed again. */
  readonly recomputed: readonly string[];
  /** Results whose last copy was there and that are gone. */
  readonly lost: readonly string[];
}

/**
 * The hooks that observers can have: any number of plugins, called in order of registration.
 *
 * Hooks run inside the scheduler's loop: they are synchronous, fast (the metrics show calls and
 * time), and cannot change what they are shown. To act, call `context.enqueue(stimulus)`, which
 * runs after the present stimulus. A hook that throws is isolated as the plugin's `onError` says.
 */
export interface SchedulerHooks {
  /**
   * Takes a graph in or refuses it, all or none, before any of its tasks exists. The plugins are asked in their
   * order until one refuses, which is named in the error of the client. One that fails admits.
   */
  admit(submission: GraphSubmission): true | { readonly refuse: string };
  /**
   * After every executed transition, also one that ended where it began. Several times per task:
   * keep it short. `finish` is the state that was reached; a forgotten task is readable for the
   * length of this call and is no longer in `cluster.tasks`.
   */
  taskTransition(
    task: TaskView,
    start: TaskStateName,
    finish: TaskStateName,
    stimulusId: string,
    details: TransitionDetails,
  ): HookResult;
  /** A task has failed, or failed because of another one: the transition to `erred`, for those who need no other. */
  taskErred(task: TaskView, stimulusId: string): HookResult;
  /** A graph was added; its first transition follows. */
  graphUpdated(update: GraphUpdate): HookResult;
  /** A worker is registered; tasks that waited for one like it follow. */
  workerAdded(worker: WorkerView, stimulusId: string): HookResult;
  /** A worker is out of the tables, and its tasks have been placed anew. */
  workerRemoved(worker: WorkerView, stimulusId: string, loss: WorkerLoss): HookResult;
  workerStatusChanged(worker: WorkerView, stimulusId: string): HookResult;
  clientAdded(client: ClientView, stimulusId: string): HookResult;
  clientRemoved(client: ClientView, stimulusId: string): HookResult;
  /** All tasks were forgotten. */
  restarted(stimulusId: string): HookResult;
  /** Something was published under a topic. */
  eventLogged(topic: string, message: unknown): HookResult;
  /** A hook, a policy or a listener failed, or a plugin reported an error; the scheduler continues. */
  errorReported(error: YardmasterError): HookResult;
}

/** Names of the hooks. */
export type HookName = keyof SchedulerHooks;

/** All hooks; adding one to the interface without adding it here is a compile error. */
export const HOOK_NAMES = Object.keys({
  admit: true,
  taskTransition: true,
  taskErred: true,
  graphUpdated: true,
  workerAdded: true,
  workerRemoved: true,
  workerStatusChanged: true,
  clientAdded: true,
  clientRemoved: true,
  restarted: true,
  eventLogged: true,
  errorReported: true,
} satisfies Record<HookName, true>) as readonly HookName[];

/** A hook, or a hook that wants to run before or after those of other plugins. */
export type Hook<Handler> = Handler | { readonly order: 'pre' | 'post'; readonly handler: Handler };

/** Any of the hooks; all are optional. */
export type HookTable = { readonly [Name in HookName]?: Hook<SchedulerHooks[Name]> };
