import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

type Collect = (options?: { readonly type: 'minor' }) => void;

let collect: Collect | undefined;

/**
 * Collects the garbage of this thread, and blocks it meanwhile. Node does so by itself when a heap
 * grows, but not when large buffers become unreachable.
 */
export function collectGarbage(): void {
  collector()();
  // Buffers are freed on the side; only the next collection, of whatever kind, counts them as gone.
  collectYoungGarbage();
}

/** Collects young objects that have become unreachable. Takes about a millisecond. */
export function collectYoungGarbage(): void {
  collector()({ type: 'minor' });
}

function collector(): Collect {
  if (collect === undefined) {
    setFlagsFromString('--expose-gc');
    collect = runInNewContext('gc') as Collect;
  }
  return collect;
}

/** Bytes that the JavaScript of this thread occupies: its heap, and buffers that it does not share. */
export function threadBytes(): number {
  const { used_heap_size: heap, external_memory: external } = getHeapStatistics();
  return heap + external;
}
