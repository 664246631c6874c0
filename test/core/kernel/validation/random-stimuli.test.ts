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

it('whatever happens while graphs are taken in by slices, the state stays consistent', () => {
  fc.assert(
    fc.property(scenario, (next) => {
      play(next, kernelFor(next), undefined, 'interleaved');
    }),
    effort(80),
  );
});

it('whatever happens while long stimuli leave work to others, the state stays consistent', () => {
  fc.assert(
    fc.property(scenario, fc.constantFrom(1, 3, 8), (next, sliceTransitions) => {
      play(next, kernelFor(next, undefined, sliceTransitions), undefined, 'interleaved');
    }),
    effort(80),
  );
});

it('a graph that is taken in by slices is scheduled as one that is taken in at once', () => {
  fc.assert(
    fc.property(scenario, (next) => {
      const whole = play(next, kernelFor(next));
      const sliced = play(next, kernelFor(next), undefined, 'in slices');
      expect(sliced.received).toEqual(whole.received);
    }),
    effort(40),
  );
});
