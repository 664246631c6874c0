import fc from 'fast-check';

import { hostileSteps } from '../kit/hostile-stimuli.ts';
import { configurations, usualKernel, withstand } from '../kit/withstand.ts';

const RUNS_OF_ROUND = 500;

/**
 * Random stimuli, hostile ones included, to kernels of random configurations that check all invariants after
 * each. A failure prints its seed and the shortest stimuli that cause it.
 */
export function fuzzKernel(stimuli: number): void {
  const startMs = performance.now();
  let done = 0;
  for (let seed = 1; done < stimuli; seed++) {
    fc.assert(
      fc.property(hostileSteps, configurations, (steps, configuration) => {
        done += steps.length;
        withstand(steps, configuration, usualKernel);
      }),
      { numRuns: RUNS_OF_ROUND, seed },
    );
    if (seed % 20 === 0 || done >= stimuli) {
      const seconds = Math.round((performance.now() - startMs) / 1000);
      process.stdout.write(
        `seed ${seed}: ${done} stimuli in ${seconds} s, none that was not contained\n`,
      );
    }
  }
}
