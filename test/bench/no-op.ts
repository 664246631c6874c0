/** What the end-to-end benchmark runs: as little as a task can do. */
import { defineTasks } from '../../adapters/tasks/index.ts';

export const { increment } = defineTasks(import.meta.url, {
  increment(value: number): number {
    return value + 1;
  },
});
