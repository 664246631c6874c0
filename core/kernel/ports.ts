import { type ErrorCode, YardmasterError } from '../api/errors.ts';
import type { SchedulerHooks } from '../api/hooks.ts';
import type { UseEntry } from '../api/plugin.ts';
import type { Rule } from '../api/rules.ts';
import type {
  Fairness,
  GraphLinks,
  KernelSlots,
  Ordering,
  Queuing,
  WorkerSelection,
} from '../api/policies.ts';
import type { ErrorPayload } from '../messages/protocol.ts';
import type { GraphTask } from '../messages/stimulus.ts';
import type { TaskFailure, WorkerState } from '../state/task.ts';
import type { TransitionRecord } from '../api/insight.ts';

/** The failure of a policy, and the answer that could not be used. */
export interface PolicyFailure {
  /** The question: the same value each time, of the kernel an object. */
  readonly question: object | string;
  readonly slot: string;
  readonly policy: string;
  /** The fault in words that follow the policy's name: `threw: …`, `chose …`. */
  readonly what: string;
  readonly error: YardmasterError;
}

/** A worker, or the state in which the task waits for one. */
export type Placement = WorkerState | 'queued' | 'no-worker';

/** The subject of a question to an ordering policy. */
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
  /** Its configuration, when that can be written down: not for an object given in code. */
  readonly entry?: UseEntry;
}

/** A rule with the weight of its scores. */
export interface NamedRule extends Named<Rule> {
  readonly weight: number;
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
  /** In the order in which they are asked. */
  readonly rules: readonly NamedRule[];
  /** The policies that decide when one of these throws or gives an unusable answer. */
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

/** Options of the kernel. Times in milliseconds unless the name says otherwise. */
export interface KernelOptions {
  /** Check every invariant after each stimulus; slow, for tests. Default false. */
  readonly validate: boolean;
  /** Unexpected deaths of workers under one task that are forgiven. Default 3. */
  readonly allowedFailures: number;
  /** Retries of a task whose submission does not say. Default 0. */
  readonly defaultRetries: number;
  /** A task is not placed again where a worker died under it, as long as there are others. Default false. */
  readonly avoidUsedWorkers: boolean;
  /** Bytes per second between two workers, which each measurement moves by the share of one worker. Default 100 MB/s. */
  readonly bandwidth: number;
  /** The bandwidth counts for nothing beside the first measurements. Default false. */
  readonly isBandwidthGuessed: boolean;
  /** Seconds. Default 0.5. */
  readonly unknownTaskDurationS: number;
  /** Seconds of short tasks that share a slot of a worker. Default 0: each task takes a slot. */
  readonly slotWorkS: number;
  /** Largest result, in bytes, that a worker sends along for a client that waits. Default 0: none. */
  readonly sendAlongBytes: number;
  /** Seconds by prefix. Default none. */
  readonly defaultTaskDurationsS: ReadonlyMap<string, number>;
  /** Bytes that a result of unknown size is taken for. Default 1 KiB. */
  readonly defaultDataSize: number;
  /** Records of the transition log. Default 1000. */
  readonly transitionLogLength: number;
  /**
   * Transitions, tasks of a graph or keys after which a stimulus leaves the rest of its work to `continue`.
   * Default Infinity: a stimulus does all its work.
   */
  readonly sliceTransitions: number;
  /** A fuse against endless loops, for tests: transitions in the whole life. Default none. */
  readonly transitionCounterMax: number;
  /** A worker that is silent for longer is removed. Infinity: never. Default 5 minutes. */
  readonly workerTtlMs: number;
  /** Tasks without any suitable worker fail after this. Infinity: they wait. Default Infinity. */
  readonly noWorkersTimeoutMs: number;
  /** Milliseconds after which unmanaged memory of a worker counts as old. Default 30 seconds. */
  readonly recentToOldMs: number;
  /** Failures kept for people. Default 100. */
  readonly erredTasksMax: number;
  /** Inputs larger than a worker's memory make a task fail at once. Default true. */
  readonly refuseOversizedInputs: boolean;
  /** The order that breaks ties between workers. Default `registration`: who came first. */
  readonly workerOrder: 'registration' | 'address';
}

export const DEFAULT_KERNEL_OPTIONS: KernelOptions = {
  validate: false,
  allowedFailures: 3,
  defaultRetries: 0,
  avoidUsedWorkers: false,
  bandwidth: 100_000_000,
  isBandwidthGuessed: false,
  unknownTaskDurationS: 0.5,
  slotWorkS: 0,
  sendAlongBytes: 0,
  defaultTaskDurationsS: new Map(),
  defaultDataSize: 1024,
  transitionLogLength: 1000,
  sliceTransitions: Infinity,
  transitionCounterMax: Infinity,
  workerTtlMs: 300_000,
  noWorkersTimeoutMs: Infinity,
  recentToOldMs: 30_000,
  erredTasksMax: 100,
  refuseOversizedInputs: true,
  workerOrder: 'registration',
};

/** The state of the scheduler is inconsistent. Always a bug; carries what led to it. */
export function invariantError(
  message: string,
  data: Readonly<Record<string, unknown>>,
  story: readonly TransitionRecord[] = [],
  code: 'ERR_INVARIANT' | 'ERR_TRANSITION' = 'ERR_INVARIANT',
): YardmasterError {
  const steps = story.slice(-20).map(({ key, start, finish, stimulusId }) => {
    return `  ${key}: ${start} -> ${finish} (${stimulusId})`;
  });
  const text = steps.length === 0 ? message : `${message}\nstory:\n${steps.join('\n')}`;
  return new YardmasterError(code, text, { ...data, story });
}

/** A failure that the scheduler itself declares, in the form in which workers report theirs. */
export function schedulerFailure(
  code: ErrorCode,
  message: string,
  data: Readonly<Record<string, unknown>>,
): TaskFailure {
  const exception: ErrorPayload = { name: 'YardmasterError', message, code, data };
  return { exception, traceback: undefined, exceptionText: message, tracebackText: '' };
}
