import type { ErrorPayload } from '../messages/protocol.ts';
import type { Clock } from './clock.ts';
import {
  type ApiVersion,
  checkDefinition,
  type MadeDefinition,
  type NoOptions,
  type OptionsOf,
  type WrittenDefinition,
} from './definition.ts';
import type { Logger } from './plugin.ts';

/** A task that is ready to run: its inputs are here. */
export interface ExecutableTask {
  readonly key: string;
  /** As the client sent it. */
  readonly runSpec: unknown;
  /** Serialised results of the dependencies by key. */
  readonly inputs: ReadonlyMap<string, Uint8Array>;
  /**
   * Expected to take less time than its hand-over, so it may be queued behind other short runs.
   * Default false.
   */
  readonly isShort?: boolean;
  /**
   * Waits most of its time: it may begin beside other runs, and the worker gives more of them than there are threads.
   * Only for executors with {@link Executor.hasEventLoops}. Default false.
   */
  readonly isConcurrent?: boolean;
  /**
   * It was assigned before, to this worker or another one, so a store of results may have its result by now.
   * Default false.
   */
  readonly isRepeated?: boolean;
  /**
   * Set for a task that makes an actor: an object that stays with the executor, under the key of the
   * task. It is the address under which others reach it; the result describes it.
   */
  readonly actorAt?: string;
}

/** A call of a method of an actor, or a look at one of its properties. */
export interface ActorCall {
  /** Of the task that made the actor. */
  readonly key: string;
  readonly member: string;
  /** Serialised arguments; undefined: the property is read. */
  readonly args?: Uint8Array;
  /** The actors that are among the arguments, as their results describe them. */
  readonly actors?: readonly {
    readonly key: string;
    readonly worker: string;
    readonly type: string;
    readonly methods: readonly string[];
  }[];
}

/** The end of a run: a value, a failure, or a request to be rescheduled. */
export type ExecutionResult =
  | {
      readonly kind: 'success';
      /** The serialised result: this is what is stored, counted and sent to peers. */
      readonly value: Uint8Array;
      /** Type name for people (`Array`, `Map`, `number`). */
      readonly type: string;
      readonly startMs: number;
      readonly stopMs: number;
    }
  | { readonly kind: 'failure'; readonly error: ErrorPayload }
  /** The task asked to be placed anew. */
  | { readonly kind: 'reschedule' }
  /** It was queued and has not begun: the run before it takes longer than expected. */
  | { readonly kind: 'returned' };

/**
 * The reason with which the signal of a run is aborted when the caller of the cancellation limits
 * how long it may continue.
 */
export class RunAborted extends Error {
  /**
   * @param killTimeoutMs - milliseconds; an executor that ends threads ends this one after it
   * @param isGivenUp - the failure of the run has been reported: its place is free at once for the next task, whatever
   *   its code still does; the run ends when that has ended. Default false
   */
  constructor(
    readonly killTimeoutMs: number,
    readonly isGivenUp = false,
  ) {
    super('the task was cancelled');
    this.name = 'AbortError';
  }
}

/** The place of a running task among those that the worker runs at once. */
export interface TaskSlot {
  /** The task continues without it, and another one may begin. */
  secede(): void;
  /** Resolves when the task has a place again; at once, if it has one. */
  rejoin(): Promise<void>;
  /** The task does nothing before the next call of its function: what limits it may go to others. Default: no effect. */
  pause?(): void;
  /** Ends a pause. Resolves when the task may go on, which may be never once its signal is aborted. */
  resume?(): Promise<void>;
  /**
   * The task begins only when this resolves, because what runs it has to start first: its time counts from then.
   * Resolves as well when the task goes to another place, which may say so again.
   */
  delay?(begun: Promise<void>): void;
}

/** The place at which a function is run that is no task. */
export type AsidePlace = 'worker' | 'threads';

/** The call stack of a running task. */
export interface TaskStack {
  /** Id of its thread, within its process. */
  readonly thread?: number;
  /** Innermost first; none when it computes nothing at present: it waits. */
  readonly frames: readonly StackFrame[];
  /** The reason why there are no frames, if that is not because the task waits. */
  readonly unseen?: string;
}

/** A call that has not returned. Lines and columns count from 1. */
export interface StackFrame {
  /** Empty for functions without a name. */
  readonly name: string;
  readonly url: string;
  readonly line: number;
  readonly column: number;
}

/** Calls that were seen in samples of stacks, with what they call. */
export interface CallTree {
  readonly name: string;
  readonly url: string;
  /** Counted from 1; 0: unknown. */
  readonly line: number;
  /** Samples in it, and in what it calls. */
  readonly count: number;
  readonly children: readonly CallTree[];
}

/** Samples of what running tasks computed. */
export interface TaskProfile {
  readonly intervalMs: number;
  /** The time at which sampling began. */
  readonly sinceMs: number;
  /** Calls by the prefix of the task, which is the root. */
  readonly prefixes: Readonly<Record<string, CallTree>>;
}

/** Makes a run stop: aborts its signal, or has it returned when it has not begun. */
export type AbortRun = (reason?: RunAborted) => void;

/**
 * Runs tasks. The worker never gives it more than `threadCount` at once, seceded ones aside, and short
 * ones where it has {@link Executor.begin}.
 */
export interface Executor {
  /** The version of the contract that it was written for. Default 1. */
  readonly apiVersion?: ApiVersion;
  readonly threadCount: number;
  /** True when a thread can run tasks beside each other that wait most of their time. Default false. */
  readonly hasEventLoops?: boolean;
  /**
   * Runs one task to its end. Never rejects: what the task throws is a `failure`.
   * @param signal - aborted when the result is no longer wanted, perhaps with a {@link RunAborted}
   *   as its reason; the task may ignore it
   * @param slot - for tasks that secede. Default: seceding has no effect
   */
  run(task: ExecutableTask, signal: AbortSignal, slot?: TaskSlot): Promise<ExecutionResult>;
  /**
   * Calls an actor that a run has made. Calls begin in the order in which they come. Never rejects.
   * Without it the executor cannot have actors.
   */
  callActor?(call: ActorCall): Promise<ExecutionResult>;
  /** An actor is needed no more. No-op for an unknown key. */
  releaseActor?(key: string): void;
  /** Set by the worker: called when an actor is lost other than by release. */
  onActorLost?: (key: string) => void;
  /**
   * As `run`, for executors that are handed short tasks ahead of time, so that a thread need not wait
   * for the next one. Only here may a run end as `returned`.
   * @param onEnd - called once, never from within this call
   */
  begin?(task: ExecutableTask, slot: TaskSlot, onEnd: (result: ExecutionResult) => void): AbortRun;
  /**
   * Runs a function beside the tasks, as soon as the threads come to it: in the thread of the worker, or
   * once in every thread for tasks. Never rejects. Without it functions cannot be run so.
   */
  runAside?(
    task: ExecutableTask,
    place: AsidePlace,
    signal: AbortSignal,
  ): Promise<readonly ExecutionResult[]>;
  /** The call stacks of running tasks, as far as they can be seen. */
  callStacks?(): Promise<ReadonlyMap<string, TaskStack>>;
  /** The calls of its tasks, sampled from the first reading on, as long as it is read at least every half minute. */
  profile?(): Promise<TaskProfile>;
  /** Bytes that its threads occupy besides results, as last known. Default 0. */
  readonly memoryBytes?: number;
  /** Asks idle threads to give back what is garbage. Does not wait for it. */
  collectGarbage?(): void;
  /** Ends its threads. Running tasks fail. */
  close(): Promise<void>;
}

/** The call that a task asks for. */
export interface TaskCall {
  /** URL of the module of the function. */
  readonly module: string;
  /** The name under which `defineTasks` registered the function, or of the export. */
  readonly name: string;
  /** To be called without `this`. */
  readonly fn: (...args: readonly unknown[]) => unknown;
  /** The results of other tasks are in their places. They are copies, which belong to the call. */
  readonly args: readonly unknown[];
}

/** The settings of one run of a task. */
export interface RunSettings {
  /** Of the run, as `run` of the executor got it. */
  readonly signal: AbortSignal;
  /** As `run` of the executor got it. Default: seceding has no effect. */
  readonly slot?: TaskSlot | undefined;
  /** Makes the call; what it returns, or a promise of it, is the result. Default: calls the function in this thread. */
  readonly call?: (call: TaskCall) => unknown;
}

/** The context in which an executor is made: one for each worker. */
export interface ExecutorContext {
  readonly clock: Clock;
  readonly log: Logger;
  /** `worker.threads`: the number of tasks that the executor is expected to run at once. */
  readonly threadCount: number;
  /** `worker.killGrace`: milliseconds that an aborted task may continue. */
  readonly killGraceMs: number;
  /**
   * Finds the function of a task and puts the inputs into its arguments: only in modules that the worker permits, and of
   * packages only what `defineTasks` registered.
   * @throws YardmasterError `ERR_FUNCTION_MISSING`, `ERR_FUNCTION_VERSION`, `ERR_MODULE_REFUSED`
   */
  load(task: ExecutableTask): Promise<TaskCall>;
  /**
   * Runs a task as the built-in executors do: finds its call as {@link load}, makes it (`currentTask()` works within),
   * follows its rules for retries and kept results, serialises what it returns and describes what it throws. Never rejects.
   */
  run(task: ExecutableTask, settings: RunSettings): Promise<ExecutionResult>;
}

/** An executor that a configuration can name. */
export type ExecutorDefinition<Options = never> = MadeDefinition<
  'executor',
  ExecutorContext,
  Executor,
  Options
>;

/**
 * Declares an executor; types its options.
 * @throws YardmasterError `ERR_PLUGIN_LOAD` when the definition is missing or empty
 */
export function defineExecutor<const Schema extends object = NoOptions>(
  definition: WrittenDefinition<ExecutorContext, Executor, Schema>,
): ExecutorDefinition<OptionsOf<Schema>> {
  checkDefinition('defineExecutor', definition, '{ name, apiVersion: 1, create }');
  return { kind: 'executor', ...definition };
}

/** Holds the serialised results of a worker. */
export interface DataStore {
  /** Bytes of all values. */
  readonly nbytes: number;
  has(key: string): boolean;
  /** Undefined when it is not there, or is there no more. */
  get(key: string): Uint8Array | undefined;
  /**
   * As `get`, for callers that send a value part by part: it need not be in memory as a whole.
   * Default: `get`.
   */
  open?(key: string): ValueReader | undefined;
  set(key: string, value: Uint8Array): void;
  /**
   * Makes space for an expected value. Default: no-op.
   * @returns to be called once, just before the value is set, or when it will not arrive
   */
  reserve?(nbytes: number): () => void;
  delete(key: string): boolean;
  keys(): Iterable<string>;
}

/** A value that is read from its beginning to its end. It stays readable when it is deleted meanwhile. */
export interface ValueReader {
  /** Bytes of the whole value. */
  readonly nbytes: number;
  /**
   * The next bytes, at most `nbytesMax`; fewer only at the end. They must not be changed.
   * @throws Error when they cannot be read, or differ from what was stored
   */
  read(nbytesMax: number): Uint8Array;
  /** To be called once, wherever the reader stands. */
  close(): void;
}

/**
 * Holds results that do not fit into memory. Its calls are synchronous, so that a spilled result
 * has left memory before the next one is added.
 */
export interface SpillArea {
  /** Bytes that the results in it occupy. */
  readonly nbytes: number;
  /** Keeps a value until it is deleted. @throws Error when it cannot; nothing of it is left then */
  write(key: string, value: Uint8Array): void;
  /** Reads what was written. @throws Error when it is gone or damaged */
  read(key: string): Uint8Array;
  /** As `read`, part by part. Default: `read`. @throws Error when it is gone */
  open?(key: string): ValueReader;
  /** No-op for an unknown key. */
  delete(key: string): void;
  /** Deletes everything. Never throws. */
  close(): void;
}
