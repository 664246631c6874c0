/** The search through random clusters finds nothing, and would find planted bugs. The long form: `npm run dst`. */
import { expect, it } from 'vitest';
import { PLANTED_BUGS } from './planted-bugs.ts';
import { losesMessages } from './stack/network.ts';
import { checkStack } from './stack/stack-trial.ts';
import { check } from './trial.ts';

const SEEDS = 15;
const SEEDS_OF_A_BUG_MAX = 200;

it(`the first ${SEEDS} seeds pass, twice each with the same trace`, async () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const { problem } = await check(seed);
    expect(problem, `npm run dst -- --seed ${seed}`).toBeUndefined();
  }
}, 120_000);

it(`the first ${SEEDS} seeds of the whole program pass, twice each with the same trace`, async () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const { problem } = await checkStack(seed);
    expect(problem, `npm run dst -- --seed ${seed} --only stack`).toBeUndefined();
  }
}, 120_000);

it.each(PLANTED_BUGS)(
  `the planted bug %s is found within ${SEEDS_OF_A_BUG_MAX} seeds`,
  async (_, makeKernel) => {
    for (let seed = 1; seed <= SEEDS_OF_A_BUG_MAX; seed++) {
      if ((await check(seed, makeKernel)).problem !== undefined) return;
    }
    expect.fail('it was not found');
  },
  300_000,
);

it(`a network that loses messages is found within ${SEEDS} seeds of the whole program`, async () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    if ((await checkStack(seed, losesMessages)).problem !== undefined) return;
  }
  expect.fail('it was not found');
}, 120_000);

it('there are ten planted bugs or more', () => {
  expect(PLANTED_BUGS.length).toBeGreaterThanOrEqual(10);
});
