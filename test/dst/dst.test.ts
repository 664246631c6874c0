/** The search through random clusters finds nothing, and would find planted bugs. The long form: `npm run dst`. */
import { expect, it } from 'vitest';
import { effort } from '../kit/effort.ts';
import { PLANTED_BUGS } from './planted-bugs.ts';
import { flagsOf, reductionOf, shrink } from './reduction.ts';
import { CUTS_TOO_MUCH, type Planted, PLANTED_IN_STACK } from './stack/planted.ts';
import { checkStack, playStack } from './stack/stack-trial.ts';
import { check } from './trial.ts';

const SEEDS = effort(15).numRuns;
const SEEDS_OF_A_BUG_MAX = 200;
const ATTEMPTS_MAX = 60;

it(`the first ${SEEDS} seeds pass, twice each with the same trace`, async () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const { problem } = await check(seed);
    expect(problem, `npm run dst -- --seed ${seed}`).toBeUndefined();
  }
});

it(`the first ${SEEDS} seeds of the whole program pass, twice each with the same trace`, async () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const { problem } = await checkStack(seed);
    expect(problem, `npm run dst -- --seed ${seed} --only stack`).toBeUndefined();
  }
});

it.each(PLANTED_BUGS)(
  `the planted bug %s is found within ${SEEDS_OF_A_BUG_MAX} seeds, from seed %i on`,
  async (_name, from, makeKernel) => {
    for (let seed = from; seed <= SEEDS_OF_A_BUG_MAX; seed++) {
      if ((await check(seed, {}, makeKernel)).problem !== undefined) return;
    }
    expect.fail('it was not found');
  },
);

// The first seeds are left out where they find nothing: that takes time.
it.each(PLANTED_IN_STACK)(
  `the bug %s of the whole program is found within ${SEEDS_OF_A_BUG_MAX} seeds, from seed %i on`,
  async (_name: string, from: number, planted: Planted) => {
    for (let seed = from; seed <= SEEDS_OF_A_BUG_MAX; seed++) {
      if ((await playStack(seed, {}, planted)).problem !== undefined) return;
    }
    expect.fail('it was not found');
  },
);

it('what finds a planted bug is shrunk, and the flags that are printed repeat it', async () => {
  const seed = 1;
  const run = async (reduction: object) => {
    const { problem, ...verdict } = await playStack(seed, reduction, CUTS_TOO_MUCH);
    return problem === undefined ? undefined : { ...verdict, problem };
  };
  const failure = await run({});
  expect(failure).toBeDefined();
  const shrunk = await shrink(failure!, run, ATTEMPTS_MAX);
  expect(shrunk.attempts).toBeLessThanOrEqual(ATTEMPTS_MAX);
  expect(shrunk.failure.size.tasks).toBeLessThan(failure!.size.tasks / 4);
  expect(shrunk.failure.size.workers).toBe(1);
  const { without } = shrunk.reduction;
  expect(failure!.size.events - without!.size).toBeLessThanOrEqual(2);
  const flags = flagsOf(shrunk.reduction).split(' ');
  const valueOf = (name: string) => flags[flags.findIndex((flag) => flag === `--${name}`) + 1];
  const again = await run(
    reductionOf((name) => (flags.includes(`--${name}`) ? valueOf(name) : undefined)),
  );
  expect(again?.problem).toBe(shrunk.failure.problem);
});
