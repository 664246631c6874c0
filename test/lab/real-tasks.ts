/** What a workload does on a real cluster: it takes its time, and returns bytes. */
import { defineTasks } from '../../adapters/tasks/index.ts';

const STILL = new Int32Array(new SharedArrayBuffer(4));

export const { work } = defineTasks(import.meta.url, {
  /** Occupies its thread without using the processor. */
  work(ms: number, nbytes: number, ...inputs: readonly unknown[]): Uint8Array {
    if (inputs.includes(undefined)) throw new Error('an input is missing');
    if (ms > 0) Atomics.wait(STILL, 0, 0, ms);
    return new Uint8Array(nbytes);
  },
});
