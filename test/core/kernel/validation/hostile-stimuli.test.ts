import fc from 'fast-check';
import { it } from 'vitest';
import { hostileSteps } from '../../../kit/hostile-stimuli.ts';
import { configurations, usualKernel, withstand } from '../../../kit/withstand.ts';

/**
 * A failure prints its seed: `YARDMASTER_SEED=… npm test -- hostile-stimuli` repeats it, and
 * `YARDMASTER_RUNS=20000` looks harder.
 */
const { YARDMASTER_SEED: seed, YARDMASTER_RUNS: runs } = process.env;
const HOUR_MS = 3_600_000;

function effort(): fc.Parameters<unknown> {
  const repeat = seed === undefined ? {} : { seed: Number(seed) };
  if (runs !== undefined) return { numRuns: Number(runs), ...repeat };
  return { numRuns: 600, plugins: [fc.interruptAfterTimeLimit(3000)], ...repeat };
}

it(
  'whatever workers, clients and plugins say, the state stays consistent and what is asked for is done in the end',
  () => {
    fc.assert(
      fc.property(hostileSteps, configurations, (steps, configuration) => {
        withstand(steps, configuration, usualKernel);
      }),
      effort(),
    );
  },
  HOUR_MS,
);
