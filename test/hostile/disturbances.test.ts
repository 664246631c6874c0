import { expect, it } from 'vitest';

import { disturb } from './disturbances.ts';

it('workers that are killed and stopped, and a scheduler that stands still, cost no task and no data', async () => {
  const seed = 1 + (Date.now() % 1_000_000);
  const outcome = await disturb({ kills: 3, stops: 3, stallTtls: 2 }, seed);
  expect(outcome.disturbances, `seed ${seed}`).toBe(7);
  expect(outcome.rounds).toBeGreaterThan(0);
});
