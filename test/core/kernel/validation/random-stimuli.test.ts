import fc from 'fast-check';
import { expect, it } from 'vitest';
import { effort } from '../../../kit/effort.ts';
import { scenario } from '../../../kit/random-scenario.ts';
import { kernelFor, play } from '../../../kit/random-world.ts';

it('whatever happens, the state stays consistent and everything wanted is done in the end', () => {
  fc.assert(
    fc.property(scenario, (next) => void play(next, kernelFor(next))),
    effort(300),
  );
});

it('the same stimuli give the same messages and the same story', () => {
  fc.assert(
    fc.property(scenario, (next) => {
      const [one, other] = [play(next, kernelFor(next)), play(next, kernelFor(next))];
      expect(other.transcript).toEqual(one.transcript);
      expect(other.kernel.story()).toEqual(one.kernel.story());
    }),
    effort(40),
  );
});

it('whatever happens while long stimuli leave work to others, the state stays consistent', () => {
  fc.assert(
    fc.property(scenario, fc.constantFrom(1, 2, 3, 8), (next, sliceTransitions) => {
      play(next, kernelFor(next, undefined, sliceTransitions));
    }),
    effort(120),
  );
});

/** What goes through lists of keys, from the end of the list. */
const THROUGH_KEYS: ReadonlySet<string> = new Set([
  'desire',
  'release',
  'cancel',
  'retry',
  'remove-client',
]);

/** From how many seeds on the terms of a limit come again. */
const TERMS = 12;

it('what is done in slices comes to the same as what is done at once', () => {
  fc.assert(
    fc.property(scenario, fc.constantFrom(1, 2, 3, 8), (next, sliceTransitions) => {
      // The terms of a limit are always the same: of a graph that raises one while it is taken in, what waits already may
      // start before what comes with it, and has a higher priority.
      const terms = (next.steps[0]?.seed ?? 0) % TERMS;
      const steps = next.steps
        .filter(({ what }) => !THROUGH_KEYS.has(what))
        .map((step) => ({ ...step, seed: step.seed - (step.seed % TERMS) + terms }));
      const [whole, sliced] = [Infinity, sliceTransitions].map((count) => {
        const kernel = kernelFor(next, undefined, count);
        const { received } = play({ ...next, steps }, kernel, undefined, 'alone');
        // Left steps, and slots that are left open, come with another stimulus, and after what it says at once. The ids
        // of the runs tell in which order tasks are sent.
        const withoutIds = Array.from(received, ([receiver, texts]) => {
          const named = texts.map((text) => text.replace(/"stimulusId":"[^"]*"/, ''));
          return [receiver, named.toSorted()] as const;
        });
        return new Map(withoutIds);
      });
      expect(sliced).toEqual(whole);
    }),
    effort(60),
  );
});
