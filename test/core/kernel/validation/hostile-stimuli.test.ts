import fc from 'fast-check';
import { it } from 'vitest';
import { effort } from '../../../kit/effort.ts';
import { hostileSteps } from '../../../kit/hostile-stimuli.ts';
import { configurations, usualKernel, withstand } from '../../../kit/withstand.ts';

it('whatever workers, clients and plugins say, the state stays consistent and what is asked for is done in the end', () => {
  fc.assert(
    fc.property(hostileSteps, configurations, (steps, configuration) => {
      withstand(steps, configuration, usualKernel);
    }),
    effort(150),
  );
});
