import type { ActorCall, ExecutionResult } from '../../../core/api/index.ts';
import type { TunnelRequest } from '../../transports/tunnel/index.ts';
import type { ResultColumns, RunColumns } from './run-queue.ts';

/** What a thread is told when it starts. */
export interface ThreadData {
  /** Of `StartedRuns`, for a thread that runs tasks. */
  readonly begun?: SharedArrayBuffer;
  /** Where its tasks find their cluster; undefined: nowhere. */
  readonly cluster?: {
    /** Address of the scheduler. */
    readonly scheduler: string;
    /** Of the transports of the worker. */
    readonly schemes: readonly string[];
  };
  /** Bytes that its tasks may leave behind before it collects them. Default: the engine does as it likes. */
  readonly tidyBytes?: number;
}

/** A task as it is posted. */
export interface PostedTask {
  readonly key: string;
  readonly runSpec: unknown;
  readonly inputs: readonly (readonly [key: string, value: Uint8Array])[];
}

/** From the pool to a thread. */
export type ToThread =
  /** To be run one after the other, in order, after what came before. */
  | ({ readonly op: 'run' } & RunColumns)
  | ({ readonly op: 'make-actor'; readonly id: number; readonly actorAt: string } & PostedTask)
  /** Not a task, but beside them. */
  | ({ readonly op: 'run-aside'; readonly id: number } & PostedTask)
  | { readonly op: 'call-actor'; readonly id: number; readonly call: ActorCall }
  | { readonly op: 'release-actor'; readonly key: string }
  /** This run, if it still goes on. */
  | { readonly op: 'abort'; readonly number: number }
  /** The task has a place again, as it asked. */
  | { readonly op: 'rejoined' }
  /** Garbage, as soon as the task that runs lets it. Answered by `collected`. */
  | { readonly op: 'collect' };

/** From a thread to the pool. Times are of `epochMs`. */
export type FromThread = (
  | { readonly op: 'ready' }
  /** The task goes on beside those that count. */
  | { readonly op: 'secede' }
  | { readonly op: 'rejoin' }
  | { readonly op: 'collected' }
  /** The task wants a connection. */
  | ({ readonly op: 'connect' } & TunnelRequest)
  | ({ readonly op: 'done' } & ResultColumns)
  /** An actor was made, or called, or a function was run beside the tasks. */
  | { readonly op: 'answered'; readonly id: number; readonly result: ExecutionResult }
) & {
  /** Bytes that the JavaScript of the thread occupies now. */
  readonly memoryBytes: number;
};

/** From here on, memory is shared or moved rather than copied. */
const MOVED_BYTES_MIN = 16 * 1024;

/**
 * Results of this size lie in shared memory: written once by the thread that computes them, then
 * read by other threads without a copy. Nobody can change them, because reading copies.
 */
const SHARED_BYTES_MIN = 64 * 1024;

/** The bytes as they shall be posted by the thread that made them. */
export function forSharing(bytes: Uint8Array, moved: ArrayBuffer[]): Uint8Array {
  if (bytes.buffer instanceof SharedArrayBuffer) return bytes;
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
export function forCopying(bytes: Uint8Array, moved: ArrayBuffer[]): Uint8Array {
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
