import { expect, it } from 'vitest';
import { heartbeatIntervalMs } from '../../../../core/util/event-loop.ts';

it.each([
  [1, 500],
  [10, 500],
  [11, 1000],
  [49, 1000],
  [50, 2000],
  [199, 2000],
  [200, 2000],
  [1000, 6000],
])('%i workers send a heartbeat every %i ms', (workers, intervalMs) => {
  expect(heartbeatIntervalMs(workers)).toBe(intervalMs);
});
