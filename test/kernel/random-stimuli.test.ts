import fc from 'fast-check';
import { expect, it } from 'vitest';
import { scenario } from '../kit/random-scenario.ts';
import { kernelFor, play } from '../kit/random-world.ts';

/** A failure prints its seed; `YARDMASTER_SEED=… vitest run …` repeats it. */
const seed = process.env['YARDMASTER_SEED'];
const repeat = seed === undefined ? {} : { seed: Number(seed) };

it('whatever happens, the state stays consistent and everything wanted is done in the end', () => {
  fc.assert(
    fc.property(scenario, (next) => void play(next, kernelFor(next))),
    { numRuns: 600, interruptAfterTimeLimit: 6000, ...repeat },
  );
});

it('the same stimuli give the same messages and the same story', () => {
  fc.assert(
    fc.property(scenario, (next) => {
      const [one, other] = [play(next, kernelFor(next)), play(next, kernelFor(next))];
      expect(other.transcript).toEqual(one.transcript);
      expect(other.kernel.story()).toEqual(one.kernel.story());
    }),
    { numRuns: 100, interruptAfterTimeLimit: 2000, ...repeat },
  );
});
