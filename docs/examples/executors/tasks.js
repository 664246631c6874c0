import { defineTasks } from 'yardmaster';
import { python } from './python.js';

export const { square, countGlobals, spin, median, sleep } = defineTasks(import.meta.url, {
  square: (x) => x * x,
  // A global that a task leaves behind is gone in the next one.
  countGlobals: () => (globalThis.seen = (globalThis.seen ?? 0) + 1),
  spin: () => {
    for (;;);
  },
  median: (numbers) =>
    python('import statistics\nresult = statistics.median(numbers)', { numbers }),
  sleep: (seconds) => python('import time\ntime.sleep(seconds)', { seconds }),
});
