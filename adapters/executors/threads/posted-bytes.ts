import type { ActorCall, ExecutableTask, ExecutionResult } from '../../../core/api/index.ts';
import { memoriesOf, withSharedMemory } from '../../tasks/index.ts';
import type { PostedCall, PostedResult, PostedTask } from './messages.ts';

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
