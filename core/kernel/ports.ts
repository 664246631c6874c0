import type { YardmasterError } from '../api/errors.ts';
import type { SchedulerHooks } from '../api/hooks.ts';
import type { UseEntry } from '../api/plugin.ts';
import type {
  Fairness,
  GraphLinks,
  KernelSlots,
  Ordering,
  Queuing,
  WorkerSelection,
} from '../api/policies.ts';
import type { GraphTask } from '../messages/stimulus.ts';
import type { WorkerState } from '../state/task.ts';

/** Where a policy failed, and what the kernel could not use. */
export interface PolicyFailure {
  /** What it was asked: the same object each time, equal by identity alone. */
  readonly question: object;
  readonly slot: string;
  readonly policy: string;
  /** What it did, in words that follow its name: `threw: …`, `chose …`. */
  readonly what: string;
  readonly error: YardmasterError;
}

/** A worker, or the state in which the task waits for one. */
export type Placement = WorkerState | 'queued' | 'no-worker';

/** What an ordering policy is asked about. */
export interface OrderSubject {
  readonly tasks: readonly GraphTask[];
  /** Requested. */
  readonly keys: readonly string[];
  readonly links: GraphLinks;
}

/** A policy with the name under which it was configured. */
export interface Named<T> {
  readonly name: string;
  readonly policy: T;
  /** How it was configured, when that can be written down: not for an object given in code. */
  readonly entry?: UseEntry;
}

/** The observers of each hook: functions of plugins, each already isolated from the others. */
export type HookCalls<Hooks = SchedulerHooks> = {
  readonly [Name in keyof Hooks]: readonly Hooks[Name][];
};

/**
 * All that the kernel calls: plain functions and arrays, compiled once. Adding or removing a plugin
 * makes a new object, which replaces the old one between two stimuli.
 */
export interface KernelPorts {
  readonly workerSelection: Named<WorkerSelection>;
  readonly queuing: Named<Queuing>;
  readonly ordering: Named<Ordering>;
  readonly fairness: Named<Fairness>;
  /** What decides when one of these throws or gives an unusable answer. */
  readonly fallbacks: Readonly<KernelSlots>;
  /**
   * Observers in the order in which they run. They must not throw: the code that compiles the ports
   * wraps each of them.
   */
  readonly hooks: HookCalls;
  /** Called when a policy threw or gave an unusable answer and the built-in one decided instead. */
  readonly onPolicyFailure: (failure: PolicyFailure) => void;
  /** Called when a policy gave an answer that is used. Default: nobody counts. */
  readonly onPolicyAnswer?: (question: object) => void;
}
