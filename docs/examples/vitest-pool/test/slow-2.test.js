import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';

test('sums, after 2 tenths of a second', async () => {
  await sleep(200);
  expect(1 + 2).toBe(3);
});
