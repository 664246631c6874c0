import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';

test('sums, after 1 tenths of a second', async () => {
  await sleep(100);
  expect(1 + 1).toBe(2);
});
