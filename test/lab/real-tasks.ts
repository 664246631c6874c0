/** What a workload does on a real cluster: it takes its time, and returns bytes. */
import { defineTasks } from '../../adapters/tasks/index.ts';

const STILL = new Int32Array(new SharedArrayBuffer(4));

function result(nbytes: number, inputs: readonly unknown[]): Uint8Array {
  if (inputs.includes(undefined)) throw new Error('an input is missing');
  return new Uint8Array(nbytes);
}

export const { sleep, compute } = defineTasks(import.meta.url, {
  /** Occupies its thread without using the processor. */
  sleep(ms: number, nbytes: number, ...inputs: readonly unknown[]): Uint8Array {
    if (ms > 0) Atomics.wait(STILL, 0, 0, ms);
    return result(nbytes, inputs);
  },
  /** Uses a processor. */
  compute(ms: number, nbytes: number, ...inputs: readonly unknown[]): Uint8Array {
    const beganMs = performance.now();
    while (performance.now() - beganMs < ms);
    return result(nbytes, inputs);
  },
});
