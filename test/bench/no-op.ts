/** What the benchmarks run as a task. */
import { appendFileSync } from 'node:fs';
import { defineTasks } from '../../adapters/tasks/index.ts';
import { addOne } from './add-one.ts';

export const { increment, fill, note } = defineTasks(import.meta.url, {
  increment: addOne,
  /** Results of this many bytes, no two of them alike. */
  fill(nbytes: number, seed: number): Uint8Array {
    return new Uint8Array(nbytes).fill(seed);
  },
  /** Takes this long, and leaves a line in the file, so that runs can be counted. */
  async note(file: string, ms: number, value: number): Promise<number> {
    await new Promise((resolve) => setTimeout(resolve, ms));
    appendFileSync(file, `${value}\n`);
    return value;
  },
});
