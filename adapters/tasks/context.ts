import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type Clock,
  type ErrorPayload,
  type StoreSpec,
  type TaskSlot,
  toErrorPayload,
  type Transport,
  YardmasterError,
} from '../../core/api/index.ts';
import type { ModuleLimit } from '../../core/shared/limits.ts';
import type { ReconnectRules } from '../../core/shared/reconnect.ts';
import type { ActorCaller } from './actor-handle.ts';

/** The requests and actions of a running task. */
export interface TaskContext {
  readonly key: string;
  /**
   * Aborted when no client or task wants the result any more. A long task should check it now and
   * then.
   */
  readonly signal: AbortSignal;
  /** 1 for the first call of this run, 2 for the first retry by rules; in a chunk that of the item. */
  readonly attempt: number;
  /** Gives the task back: the scheduler places it anew, perhaps on another worker. Not a failure. */
  reschedule(): never;
  /**
   * Releases the task's thread slot to another task, and continues. For a task that waits for long,
   * above all for other tasks. No-op when it has seceded already.
   */
  secede(): void;
  /** Waits for a place, which it gets before tasks that have not begun. At once, if it has one. */
  rejoin(): Promise<void>;
}

const RESCHEDULE = Symbol.for('yardmaster.reschedule');
const STORAGE = Symbol.for('yardmaster.taskContext');

/** The parts with which tasks reach the cluster that they run on. */
export interface ClusterReach {
  /** Address of the scheduler. */
  readonly scheduler: string;
  /** Of the worker. */
  readonly transports: readonly Transport[];
  /** Which modules its tasks may be in. Default: all. */
  readonly modules?: ModuleLimit;
  /** The rules by which the clients of tasks reconnect when the scheduler is gone. Default: they end. */
  readonly reconnect?: ReconnectRules | undefined;
  /** The store of results for the clients of tasks. Default: none. */
  readonly resultStore?: StoreSpec | undefined;
}

/** The services with which the tasks of a worker reach the cluster that they run on. One for each thread. */
export interface TaskSurroundings extends ClusterReach {
  readonly clock: Clock;
  /** Adds something to do when the worker closes. In a thread that is ended it is not called. */
  onClose(close: () => void): void;
  /** The caller of the actors whose handles this run has received. */
  actorCaller(run: RunContext): ActorCaller;
}

/** The slot of a run, as its executor sees it. */
export interface RunSlot extends TaskSlot {
  /**
   * As `secede`, for a run that does nothing until it has called `rejoin`: its thread may run others meanwhile.
   * Default: `secede`.
   */
  park?(): void;
}

/** The context with what is not for its task, but for the package. */
export interface RunContext extends TaskContext {
  attempt: number;
  /** As `secede`, for a run that only waits until it calls `rejoin`. */
  park(): void;
  /** Until `resume` resolves the function of the run is not called: others may have its place in its limit. */
  pause(): void;
  /** Never resolves for some of the runs that are aborted. */
  resume(): Promise<void>;
  readonly surroundings: TaskSurroundings | undefined;
  /** The client of the run, once it has asked for one. */
  client: Promise<unknown> | undefined;
  /** To do at the end of the run, whatever that is. Must not throw. */
  onEnd: (() => void) | undefined;
}

/** Shared by all copies of this package: the executor's and that of the task's module. */
function storage(): AsyncLocalStorage<RunContext> {
  const holder = globalThis as { [STORAGE]?: AsyncLocalStorage<RunContext> };
  return (holder[STORAGE] ??= new AsyncLocalStorage());
}

/**
 * The task that called this function, also across `await`.
 * @throws YardmasterError `ERR_TASK` outside of a task
 */
export function currentTask(): TaskContext {
  return currentRun('currentTask()');
}

/**
 * The same with what is not for the task itself.
 * @param what - that was called, for the message
 * @throws YardmasterError `ERR_TASK` outside of a task
 */
export function currentRun(what: string): RunContext {
  const context = storage().getStore();
  if (context === undefined) {
    throw new YardmasterError('ERR_TASK', `${what} was called outside of a running task`);
  }
  return context;
}

/** The run of the calling task; undefined outside of a task. */
export function callingRun(): TaskRun | undefined {
  const context = storage().getStore();
  return context instanceof RunningTask ? context.run : undefined;
}

/** The context of one run. Its creator calls {@link endRun} at the end. */
export function contextOf(key: string, run: TaskRun): RunContext {
  return new RunningTask(key, run);
}

/** Most tasks ask nothing, so that nothing is made before they do. */
class RunningTask implements RunContext {
  readonly reschedule = reschedule;
  attempt = 1;
  client: Promise<unknown> | undefined = undefined;
  onEnd: (() => void) | undefined = undefined;

  constructor(
    readonly key: string,
    readonly run: TaskRun,
  ) {}

  get signal(): AbortSignal {
    return this.run.signal ?? NEVER;
  }

  get surroundings(): TaskSurroundings | undefined {
    return this.run.surroundings;
  }

  get secede(): () => void {
    const { slot = NO_SLOT } = this.run;
    return () => slot.secede();
  }

  park(): void {
    const { slot = NO_SLOT } = this.run;
    if (slot.park === undefined) slot.secede();
    else slot.park();
  }

  pause(): void {
    this.run.slot?.pause?.();
  }

  resume(): Promise<void> {
    return this.run.slot?.resume?.() ?? Promise.resolve();
  }

  get rejoin(): () => Promise<void> {
    const { slot = NO_SLOT } = this.run;
    return () => slot.rejoin();
  }
}

export function callInTask<T>(context: RunContext, body: () => T): T {
  return storage().run(context, body);
}

/** Gives back what the run has taken. */
export function endRun(context: RunContext): void {
  context.onEnd?.();
  context.onEnd = undefined;
}

/** The context of a task's call besides its arguments. */
export interface TaskRun {
  /** Asked for when the task asks. Default: one that is never aborted. */
  readonly signal?: AbortSignal;
  readonly slot?: RunSlot;
  readonly surroundings?: TaskSurroundings;
}

const NEVER = new AbortController().signal;
/** For executors without a limit of concurrent runs. */
const NO_SLOT: RunSlot = { secede: () => undefined, rejoin: () => Promise.resolve() };

/** True when this was thrown by `reschedule()`. */
export function isReschedule(thrown: unknown): boolean {
  try {
    return typeof thrown === 'object' && thrown !== null && RESCHEDULE in thrown;
  } catch {
    return false; // A proxy whose handler throws, or that was revoked.
  }
}

class RescheduleRequest extends Error {
  override readonly name = 'RescheduleRequest';
  readonly [RESCHEDULE] = true;
}

function reschedule(): never {
  throw new RescheduleRequest('the task asks to be placed anew');
}

/** All that there are: nothing can be asked of what tasks throw, such as a revoked proxy. */
const retriesFailed = new WeakSet<object>();

/** A failure by rules for retries, with the number of calls. Only {@link describeFailure} sees it. */
export class RetriesFailed extends Error {
  constructor(
    readonly thrown: unknown,
    readonly attempts: number,
  ) {
    super();
    retriesFailed.add(this);
  }

  static is(thrown: unknown): thrown is RetriesFailed {
    return retriesFailed.has(thrown as object);
  }
}

/**
 * The payload of anything that was thrown, made of nothing but plain data: it passes every boundary
 * between threads and processes, whatever the error carried.
 */
export function describeFailure(thrown: unknown): ErrorPayload {
  if (RetriesFailed.is(thrown)) {
    const error = describeFailure(thrown.thrown);
    return { ...error, data: { ...error.data, attempts: thrown.attempts } };
  }
  return folded(JSON.parse(JSON.stringify(toErrorPayload(thrown))) as ErrorPayload);
}

/** Without the frames of what has run the task. */
function folded({ stack, cause, ...rest }: ErrorPayload): ErrorPayload {
  return {
    ...rest,
    ...(stack === undefined ? {} : { stack: foldStack(stack) }),
    ...(cause === undefined ? {} : { cause: folded(cause) }),
  };
}

/** The folder of this package on this machine: frames of a stack from there are not the user's. */
const PACKAGE = new URL('../../', import.meta.url).href;
const PACKAGE_PATH = decodeURIComponent(new URL(PACKAGE).pathname);
/** Folders of the package whose frames say nothing about a task. */
const INTERNAL = /^(?:dist\/)?(?:core|adapters|bundle)\//;
const FRAME = /^\s+at /;

/**
 * A stack without the frames of this package and of Node, except when nothing else would be left. Their count is not
 * kept: the call begins with the first frame that is shown.
 */
export function foldStack(stack: string): string {
  const lines = stack.split('\n');
  const kept = lines.filter((line) => !FRAME.test(line) || !isInternal(line));
  return kept.some((line) => FRAME.test(line)) ? kept.join('\n') : stack;
}

/** The first frame of a stack that is neither of this package nor of Node: `at score (file:///x/policy.js:3:9)`. */
export function userFrame(stack: string): string | undefined {
  return stack
    .split('\n')
    .find((line) => FRAME.test(line) && !isInternal(line))
    ?.trim();
}

function isInternal(frame: string): boolean {
  if (/\(?node:/.test(frame)) return true;
  for (const root of [PACKAGE, PACKAGE_PATH]) {
    const at = frame.indexOf(root);
    if (at >= 0) return INTERNAL.test(frame.slice(at + root.length));
  }
  return false;
}

/** First byte of what stands for a value that could not come; no value begins with it. */
const MARK = 2;

/**
 * Bytes in the place of a result that cannot be represented in this language. Each reader gets the
 * error, and other tasks are not affected. The data of the error have to be plain.
 */
export function refusalBytes({ code, message, data }: YardmasterError): Uint8Array {
  const text = Buffer.from(JSON.stringify({ code, message, data }));
  const bytes = new Uint8Array(1 + text.byteLength);
  bytes[0] = MARK;
  bytes.set(text, 1);
  return bytes;
}

/** @throws YardmasterError when the bytes are those of {@link refusalBytes} */
export function checkRefusal(bytes: Uint8Array): void {
  if (bytes[0] !== MARK) return;
  const text = Buffer.from(bytes.subarray(1)).toString();
  const { code, message, data } = JSON.parse(text) as ErrorPayload;
  throw new YardmasterError(code as YardmasterError['code'], message, { ...data });
}
