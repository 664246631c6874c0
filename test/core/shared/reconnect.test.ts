import { expect, test } from 'vitest';
import { VirtualClock } from '../../../adapters/clocks/virtual-clock.ts';
import { YardmasterError } from '../../../core/api/errors.ts';
import { comeBack } from '../../../core/shared/reconnect.ts';

const NEVER = new AbortController().signal;

test('a peer that is back is found within a second, however long it was away', async () => {
  for (let awayMs = 50; awayMs < 59_000; awayMs *= 1.7) {
    const clock = new VirtualClock();
    const returning = comeBack(clock, { timeoutMs: 60_000 }, NEVER, () =>
      clock.nowMs() >= awayMs
        ? Promise.resolve()
        : Promise.reject(new YardmasterError('ERR_CONNECT', 'refused')),
    );
    await clock.advanceAsync(60_000);
    const { afterMs } = await returning;
    expect(afterMs).toBeGreaterThanOrEqual(awayMs);
    expect(afterMs - awayMs).toBeLessThan(1000);
  }
});

/** Attempts at a peer that fails in this way each time, for ten minutes. Returns after how many it was given up. */
async function attemptsAt(code: 'ERR_CLOSED' | 'ERR_REGISTRATION'): Promise<number> {
  const clock = new VirtualClock();
  let attempts = 0;
  const ending = new AbortController();
  const over = comeBack(clock, { timeoutMs: 10_000 }, ending.signal, (onAnswer) => {
    attempts++;
    onAnswer();
    return Promise.reject(new YardmasterError(code, 'not now'));
  }).catch((error: unknown) => error);
  await clock.advanceAsync(600_000);
  ending.abort();
  await over;
  return attempts;
}

test('a peer that comes and goes is not given up; one that refuses is', async () => {
  expect(await attemptsAt('ERR_CLOSED')).toBeGreaterThan(1000);
  expect(await attemptsAt('ERR_REGISTRATION')).toBeLessThan(30);
});
