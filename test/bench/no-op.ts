/** What the benchmarks run as a task. */
import { defineTasks } from '../../adapters/tasks/index.ts';
import { addOne } from './add-one.ts';

export const { increment, fill } = defineTasks(import.meta.url, {
  increment: addOne,
  /** So many bytes, no two results alike. */
  fill(nbytes: number, seed: number): Uint8Array {
    return new Uint8Array(nbytes).fill(seed);
  },
});
