/** The decisions of the scheduler, as plain data, so that they can be sent to a client. */
import type { Priority } from '../state/task.ts';
import type { TaskStateName } from '../state/state-names.ts';
import type { SlotName } from './policies.ts';

/** A recording that a scheduler writes, or has written. */
export interface RecordingInfo {
  /** Path on the machine of the scheduler. */
  readonly file: string;
  /** Milliseconds since 1970. */
  readonly startedAtMs: number;
  /** The bytes that were written so far. */
  readonly bytes: number;
}

/** A worker that the decision considered. */
export interface DecisionCandidate {
  readonly worker: string;
  /** As the policy scored it: lower is better. Undefined for policies that do not score. */
  readonly score?: number;
  /** Bytes of inputs that it lacks. */
  readonly missingBytes?: number;
  /** Bytes in use, by the measure of the Active Memory Manager. */
  readonly memoryBytes?: number;
  /** Seconds of work ahead of it. */
  readonly occupancyS: number;
  /** Tasks sent to it. */
  readonly processingCount: number;
  /** Root-ish tasks that it could still take. Undefined without queuing. */
  readonly openSlots?: number;
}

/** One decision about one task, with what it was based on. */
export interface Decision {
  readonly kind: 'placement' | 'steal' | 'replicate' | 'drop';
  readonly key: string;
  /** The name of the policy or plugin that decided. */
  readonly policy: string;
  /**
   * The worker that was chosen, or the state in which the task waits: `queued`, `no-worker`; `refused` for a
   * suggestion to the Active Memory Manager.
   */
  readonly outcome: string;
  /** Which rule chose, in words. */
  readonly rule: string;
  /** The best first; at most eight (`CANDIDATES_MAX`). */
  readonly candidates: readonly DecisionCandidate[];
  /** The number of candidates. */
  readonly candidateCount: number;
  readonly stimulusId: string;
  /** Milliseconds of the scheduler's clock. */
  readonly atMs: number;
}

/** A decision as a plugin records it; its author and time are added. */
export type PluginDecision = Omit<Decision, 'policy' | 'stimulusId' | 'atMs'> & {
  /** Default: the name of the plugin. */
  readonly policy?: string;
};

/** Receives the decisions of plugins, for `why`. */
export interface DecisionSink {
  /** Check it before you collect candidates: usually decisions are not recorded. */
  readonly isRecording: boolean;
  /** No-op unless decisions are being recorded. */
  record(decision: PluginDecision): void;
}

/** Upper bound of the candidates in each decision. */
export const CANDIDATES_MAX = 8;

/** A decision on which a shadow would have decided otherwise. */
export interface Disagreement {
  /** Key of the task, or id of the stimulus for a whole graph. */
  readonly subject: string;
  readonly active: string;
  readonly shadow: string;
  /** Seconds by which the shadow expects the task to start earlier; negative: later. */
  readonly gainS?: number;
  /** Bytes that the shadow expects not to be moved; negative: more are moved. */
  readonly savedBytes?: number;
  readonly stimulusId: string;
  readonly atMs: number;
}

/** The report about a policy that decides nothing: what it would have decided. */
export interface ShadowReport {
  readonly slot: SlotName;
  /** Name of the policy in the shadow, and of the one in charge. */
  readonly shadow: string;
  readonly active: string;
  /** Milliseconds of the scheduler's clock. */
  readonly sinceMs: number;
  /** Decisions that it was asked for, too. */
  readonly decisions: number;
  readonly differing: number;
  /** Sums over the differing decisions for which there is an expectation. */
  readonly gainS: number;
  readonly savedBytes: number;
  /** The number of times that it threw or gave an unusable answer; after ten (`SHADOW_FAILURES_MAX`) it is not asked any more. */
  readonly failures: number;
  readonly lastFailure?: string;
  /** The newest differences, oldest first; bounded. */
  readonly examples: readonly Disagreement[];
}

/** Failures after which a shadow is left alone. */
export const SHADOW_FAILURES_MAX = 10;

/** The state of a task, and the workers that it is on. */
export interface TaskSummary {
  readonly key: string;
  readonly state: TaskStateName;
  /** Undefined for data, which has no place in the order. */
  readonly priority?: Priority;
  /** Address of the worker that it was sent to. */
  readonly processingOn?: string;
  /** Addresses of the workers that hold its result. */
  readonly whoHas: readonly string[];
  /** Times that it may still fail and is tried again. */
  readonly retriesLeft: number;
  /** Workers that died while it was there. */
  readonly deaths: number;
  /** Times that it was sent to a worker again, whatever the reason. */
  readonly reschedules: number;
  /** Bytes of the result; -1 while unknown. */
  readonly nbytes: number;
}

/** One executed transition. */
export interface TransitionRecord {
  readonly key: string;
  readonly start: TaskStateName;
  /** State that was reached, which is not always the one that was asked for. */
  readonly finish: TaskStateName;
  readonly recommendations: readonly (readonly [key: string, target: TaskStateName])[];
  readonly stimulusId: string;
  readonly atMs: number;
}

/** The explanation of the present state of a task. */
export interface Why {
  readonly key: string;
  /** `unknown` when the scheduler does not know the key (any more). */
  readonly state: string;
  /** The present situation, one sentence each. */
  readonly now: readonly string[];
  /** Recorded decisions, oldest first; empty unless they are being recorded. */
  readonly decisions: readonly Decision[];
  /** True when decisions are being recorded. */
  readonly isRecording: boolean;
  /** Its transitions and what recommended them, oldest first. */
  readonly story: readonly TransitionRecord[];
  /** True when older transitions of the task are no longer remembered (`scheduler.transitionLogLength`). */
  readonly isStoryCut: boolean;
}
