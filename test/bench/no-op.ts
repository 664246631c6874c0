/** What the benchmarks run as a task. */
import { defineTasks } from '../../adapters/tasks/index.ts';
import { addOne } from './add-one.ts';

export const { increment, fill } = defineTasks(import.meta.url, {
  increment: addOne,
  /** Results of this many bytes, no two of them alike. */
  fill(nbytes: number, seed: number): Uint8Array {
    return new Uint8Array(nbytes).fill(seed);
  },
});
