import { MessageChannel } from 'node:worker_threads';

import type { Clock } from '../../../core/api/index.ts';
import { Opaque } from '../codec/index.ts';
import { LARGE_FRAME_BYTES } from './frames.ts';

const { port1: closedPort } = new MessageChannel();
closedPort.close();

/**
 * Gives the memory of large frames back to the system now: a collection of garbage would do so at some
 * later time, or never in a process that has little to do. The frames are empty from then on. One leaves
 * in each turn of the event loop, because the system takes a millisecond for each few megabytes.
 * @param values - opaque values that were passed on, and to which nothing else refers
 */
export function releaseFrames(values: Iterable<unknown>, clock: Clock): void {
  const memory: ArrayBuffer[] = [];
  for (const value of values) if (value instanceof Opaque) memory.push(...largeFramesOf(value));
  const releaseNext = (): void => {
    const next = memory.pop();
    if (next === undefined) return;
    // What is transferred leaves this thread, and a closed port drops it.
    closedPort.postMessage(null, [next]);
    if (memory.length > 0) clock.setTimer(0, releaseNext);
  };
  releaseNext();
}

/** The memory of those that share it with nothing else. */
function largeFramesOf({ frames }: Opaque): ArrayBuffer[] {
  return frames.flatMap(({ buffer, length }) => {
    const isAlone = length >= LARGE_FRAME_BYTES && length === buffer.byteLength;
    return isAlone && buffer instanceof ArrayBuffer ? [buffer] : [];
  });
}
