import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';

test('sums, after 3 tenths of a second', async () => {
  await sleep(300);
  expect(1 + 3).toBe(4);
});
