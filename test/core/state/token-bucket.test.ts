import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type Rate, TokenBucket } from '../../../core/state/token-bucket.ts';

/** The times at which something starts that is asked for at these times, and taken when there is a token. */
function starts(rate: Rate, askedMs: readonly number[]): number[] {
  const bucket = new TokenBucket(rate, rate.burst, 0);
  return askedMs.filter((nowMs) => {
    if (!bucket.has(nowMs)) return false;
    bucket.take(nowMs);
    return true;
  });
}

const rates = fc.record({
  intervalMs: fc.double({ min: 0.01, max: 1000, noNaN: true }),
  burst: fc.double({ min: 1, max: 20, noNaN: true }),
});

it('within any span of time no more start than burst + rate × span', () => {
  const gaps = fc.array(fc.oneof(fc.constant(0), fc.nat(20), fc.nat(3000)), { maxLength: 200 });
  fc.assert(
    fc.property(rates, gaps, (rate, gapsMs) => {
      let nowMs = 1.7e12;
      const times = starts(
        rate,
        gapsMs.map((gap) => (nowMs += gap)),
      );
      for (let from = 0; from < times.length; from++) {
        for (let to = from; to < times.length; to++) {
          const allowed = rate.burst + (times[to]! - times[from]!) / rate.intervalMs;
          // A time of today has no smaller parts than this.
          const inexact = (2 * Number.EPSILON * nowMs) / rate.intervalMs;
          expect(to - from + 1).toBeLessThanOrEqual(allowed + 1e-6 + inexact);
        }
      }
    }),
  );
});

it('all that the rate allows start when they are asked for often enough', () => {
  const everyMs = Array.from({ length: 10_000 }, (_, ms) => ms);
  expect(starts({ intervalMs: 10, burst: 1 }, everyMs)).toHaveLength(1000);
  expect(starts({ intervalMs: 100 / 3, burst: 1.03 }, everyMs)).toHaveLength(301);
});

it('a token that is there at a time is there at the time that was foretold', () => {
  fc.assert(
    fc.property(rates, fc.nat(30), (rate, taken) => {
      const bucket = new TokenBucket(rate, rate.burst, 0);
      for (let left = taken; left > 0; left--) bucket.take(5);
      const atMs = Math.max(5, bucket.timeOf(1));
      expect(bucket.has(atMs + 1e-6 * rate.intervalMs)).toBe(true);
      const beforeMs = atMs - 1e-3 * rate.intervalMs;
      expect(beforeMs > 5 && bucket.has(beforeMs)).toBe(false);
    }),
  );
});

it('a slower rate keeps what has started, and fewer tokens', () => {
  const bucket = new TokenBucket({ intervalMs: 10, burst: 5 }, 5, 0);
  bucket.take(0);
  bucket.setRate({ intervalMs: 100, burst: 2 }, 0);
  bucket.take(0);
  bucket.take(0);
  expect([bucket.has(0), bucket.timeOf(1)]).toEqual([false, 100]);
});
