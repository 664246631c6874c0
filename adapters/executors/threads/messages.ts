import type {
  ActorCall,
  ExecutableTask,
  ExecutionResult,
  StoreSpec,
} from '../../../core/api/index.ts';
import type { ReconnectRules } from '../../../core/shared/reconnect.ts';
import { memoriesOf, withSharedMemory } from '../../tasks/index.ts';
import type { TunnelRequest } from '../../transports/tunnel.ts';

/** Settings that a thread receives when it starts. */
export interface ThreadData {
  /** Of `StartedRuns`, for a thread that runs tasks. */
  readonly begun?: SharedArrayBuffer;
  /** The place at which tasks find their cluster; undefined: they cannot reach it. */
  readonly cluster?: {
    /** Address of the scheduler. */
    readonly scheduler: string;
    /** Of the transports of the worker. */
    readonly schemes: readonly string[];
    /** Folders that its tasks may be in; undefined: all. */
    readonly moduleFolders?: readonly string[];
    /** The project in which modules are looked for; see `ModuleLimit`. */
    readonly codeRoot?: string;
    /** The rules by which the clients of tasks reconnect; see `ClusterReach`. */
    readonly reconnect: ReconnectRules | undefined;
    /** The store of results for the clients of tasks. */
    readonly resultStore: StoreSpec | undefined;
  };
  /** Bytes that its tasks may leave behind before it collects them. Default: the engine does as it likes. */
  readonly tidyBytes?: number;
}

/** Shared memory that posted bytes refer to; undefined: they contain everything. */
type Memories = readonly SharedArrayBuffer[] | undefined;

export interface PostedTask {
  readonly key: string;
  readonly runSpec: unknown;
  /** Of the arguments in `runSpec`. */
  readonly memories?: Memories;
  readonly inputs: readonly (readonly [key: string, value: Uint8Array, memories?: Memories])[];
  readonly isRepeated?: boolean;
}

/** An outcome as it is posted. */
export type PostedResult = ExecutionResult & { readonly memories?: Memories };

type PostedCall = ActorCall & { readonly memories?: Memories };

/**
 * A function that the thread refers to by its position among all functions that it has received.
 */
export type FunctionName = readonly [
  position: number,
  module: string,
  name: string,
  version: string,
];

/**
 * Runs that are queued for a thread, in one message of few objects. A thread clones each message, and pays for every object
 * and every byte string in it: a round trip of one small run took 60 µs of CPU with a list and bytes for each field, 46 as
 * below, and 41 as a single text.
 */
export interface PostedRuns {
  /** Number of the first run; the others follow. */
  readonly first: number;
  /**
   * Of one run after the other: its key, the position of its function, and where its arguments end in `args`. The position is
   * {@link IN_OTHERS} for a run in `others`.
   */
  readonly runs: readonly (string | number)[];
  /** Arguments of all runs one after the other; see {@link textOf}. */
  readonly args: string;
  /** Functions that the thread has not received yet. */
  readonly newFunctions?: readonly FunctionName[];
  /** With inputs, with large arguments, or with a description that no client of ours makes; in order. */
  readonly others?: readonly PostedTask[];
}

/** Outcomes of runs, in one message of few objects. */
export interface PostedResults {
  /**
   * Of one run after the other: its number, its type, its start and end in the clock of threads, and where its value ends in
   * `values`. The end is {@link IN_OTHERS} for an outcome in `others`.
   */
  readonly results: readonly (string | number)[];
  /** Values of all runs one after the other; see {@link textOf}. */
  readonly values: string;
  /** Failures and large values, in order. */
  readonly others?: readonly PostedResult[];
}

/** Stands in the place of a position for what is posted as an object of its own. */
export const IN_OTHERS = -1;

/** Bytes as a text with a character for each, which is cloned with less work than bytes are. */
export function textOf(bytes: Buffer, length: number): string {
  return bytes.toString('latin1', 0, length);
}

/** The bytes of a text of {@link textOf}, in memory that is shared with others: they are only read, and not kept. */
export function bytesOf(text: string): Uint8Array {
  const { buffer, byteOffset, byteLength } = Buffer.from(text, 'latin1');
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** From the pool to a thread. */
export type ToThread =
  /** Runs to be started one after the other, in order, behind those that were sent before. */
  | ({ readonly op: 'run' } & PostedRuns)
  /** A run that begins at once, beside the others. Its number is negative. */
  | ({ readonly op: 'begin'; readonly number: number } & PostedTask)
  | ({ readonly op: 'make-actor'; readonly id: number; readonly actorAt: string } & PostedTask)
  /** Runs a function that is not a task, beside the tasks. */
  | ({ readonly op: 'run-aside'; readonly id: number } & PostedTask)
  | { readonly op: 'call-actor'; readonly id: number; readonly call: PostedCall }
  | { readonly op: 'release-actor'; readonly key: string }
  /** Aborts this run unless it has ended. */
  | { readonly op: 'abort'; readonly number: number }
  /** The run has a slot again, as it asked. */
  | { readonly op: 'rejoined'; readonly number: number }
  /** The run may go on after its pause, as it asked. */
  | { readonly op: 'resumed'; readonly number: number }
  /** Answered by `turning` as soon as the event loop of the thread turns. */
  | { readonly op: 'are-you-turning'; readonly number: number }
  /** Garbage, as soon as the task that runs lets it. Answered by `collected`. */
  | { readonly op: 'collect' };

/** From a thread to the pool. Times are of `epochMs`. */
export type FromThread = (
  | { readonly op: 'ready' }
  /** The run continues without a slot. It may compute, so the thread begins no other. */
  | { readonly op: 'secede'; readonly number: number }
  /** The run waits without a slot, and the thread begins the next one. */
  | { readonly op: 'park'; readonly number: number }
  /** The run asks for a slot. */
  | { readonly op: 'rejoin'; readonly number: number }
  /** The run does nothing before the next call of its function. */
  | { readonly op: 'pause'; readonly number: number }
  /** The run asks to go on after its pause. */
  | { readonly op: 'resume'; readonly number: number }
  | { readonly op: 'turning'; readonly number: number }
  | { readonly op: 'collected' }
  /** The task wants a connection. */
  | ({ readonly op: 'connect' } & TunnelRequest)
  | ({ readonly op: 'done' } & PostedResults)
  /** An actor was made, or called, or a function was run beside the tasks. */
  | { readonly op: 'answered'; readonly id: number; readonly result: PostedResult }
) & {
  /** Bytes that the JavaScript of the thread occupies now. */
  readonly memoryBytes: number;
};

/** From here on, memory is shared or moved rather than copied. */
const MOVED_BYTES_MIN = 16 * 1024;

/**
 * Results of at least this size are in shared memory: the thread that computes them writes them
 * once, and other threads read them without a copy. They stay unchanged, because deserialisation
 * copies.
 */
const SHARED_BYTES_MIN = 64 * 1024;

/** The bytes as they shall be posted by the thread that made them. */
export function forSharing(bytes: Uint8Array, moved: ArrayBuffer[]): Uint8Array {
  // Small bytes have no buffer until it is asked for.
  if (bytes.byteLength < MOVED_BYTES_MIN) return bytes;
  if (bytes.buffer instanceof SharedArrayBuffer || memoriesOf(bytes) !== undefined) return bytes;
  if (bytes.byteLength >= SHARED_BYTES_MIN) {
    const shared = new Uint8Array(new SharedArrayBuffer(bytes.byteLength));
    shared.set(bytes);
    return shared;
  }
  return owned(bytes, moved);
}

/**
 * The bytes as they shall be posted by a thread that keeps them. Posting a view copies all the memory
 * under it, which may be a whole frame of the network, so the view is cut out first.
 */
function forCopying(bytes: Uint8Array, moved: ArrayBuffer[]): Uint8Array {
  const { buffer, byteLength } = bytes;
  if (buffer.byteLength === byteLength || buffer instanceof SharedArrayBuffer) return bytes;
  // Not `slice`, which for a Buffer is another view.
  return owned(Uint8Array.prototype.slice.call(bytes), moved);
}

function owned(bytes: Uint8Array, moved: ArrayBuffer[]): Uint8Array {
  const { buffer, byteLength } = bytes;
  const isWhole = buffer instanceof ArrayBuffer && buffer.byteLength === byteLength;
  if (isWhole && byteLength >= MOVED_BYTES_MIN) moved.push(buffer);
  return bytes;
}

/** A task as it is posted to a thread for itself, with the shared memory that its bytes refer to. */
export function postedTask(task: ExecutableTask, moved: ArrayBuffer[]): PostedTask {
  const { key, runSpec, inputs, isRepeated } = task;
  const { args } = (runSpec ?? {}) as { readonly args?: unknown };
  const hasBytes = args instanceof Uint8Array;
  return {
    key,
    runSpec: hasBytes ? { ...(runSpec as object), args: forCopying(args, moved) } : runSpec,
    memories: hasBytes ? memoriesOf(args) : undefined,
    inputs: Array.from(
      inputs,
      ([name, value]) => [name, forCopying(value, moved), memoriesOf(value)] as const,
    ),
    ...(isRepeated === true ? { isRepeated } : {}),
  };
}

/** The task in the thread that it was posted to. */
export function receivedTask({
  key,
  runSpec,
  memories,
  inputs,
  isRepeated,
}: PostedTask): ExecutableTask {
  if (memories !== undefined) {
    withSharedMemory((runSpec as { readonly args: Uint8Array }).args, memories);
  }
  const received = inputs.map(
    ([name, value, its]) => [name, withSharedMemory(value, its)] as const,
  );
  const again = isRepeated === true ? { isRepeated } : {};
  return { key, runSpec, inputs: new Map(received), ...again };
}

/** An outcome with the shared memory that its bytes refer to. */
export function postedResult(result: ExecutionResult): PostedResult {
  const memories = result.kind === 'success' ? memoriesOf(result.value) : undefined;
  return memories === undefined ? result : { ...result, memories };
}

/** The outcome in the thread that it was posted to. */
export function receivedResult(posted: PostedResult): ExecutionResult {
  const { memories, ...result } = posted;
  if (memories === undefined || result.kind !== 'success') return posted;
  withSharedMemory(result.value, memories);
  return result;
}

/** A call of an actor with the shared memory that its arguments refer to. */
export function postedCall(call: ActorCall, moved: ArrayBuffer[]): PostedCall {
  const { args } = call;
  if (args === undefined) return call;
  return { ...call, args: forCopying(args, moved), memories: memoriesOf(args) };
}

/** The call in the thread that it was posted to. */
export function receivedCall({ memories, ...call }: PostedCall): ActorCall {
  if (call.args !== undefined) withSharedMemory(call.args, memories);
  return call;
}
