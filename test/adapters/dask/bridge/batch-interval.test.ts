import { expect, test } from 'vitest';

import { batchIntervalMs } from '../../../../adapters/dask/worker-bridge.ts';

test.each([
  [0, 2, 2],
  [20, 2, 2],
  [21, 2, 10],
  [5000, 1000, 2],
  [5, 0, 10],
])('with %i tasks queued for %i threads, clients get messages every %i ms', (size, threads, ms) => {
  expect(batchIntervalMs({ queued: { size }, totalThreads: threads })).toBe(ms);
});
