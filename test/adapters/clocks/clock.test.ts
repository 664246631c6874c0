import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { SystemClock, VirtualClock } from '../../../adapters/clocks/index.ts';
import { every } from '../../../core/api/index.ts';

describe('SystemClock', () => {
  const clock = new SystemClock();
  const fired = (delayMs: number): Promise<number> => {
    const startMs = clock.nowMs();
    return new Promise((resolve) => {
      clock.setTimer(delayMs, () => resolve(clock.nowMs() - startMs));
    });
  };

  it('counts milliseconds since the epoch, and never back', () => {
    expect(Math.abs(clock.nowMs() - Date.now())).toBeLessThan(1000);
    let last = clock.nowMs();
    for (let count = 0; count < 1000; count++) {
      const now = clock.nowMs();
      expect(now).toBeGreaterThanOrEqual(last);
      last = now;
    }
  });

  it('never calls back early', async () => {
    const delays = [0.3, 1, 1.7, 2.2, 3];
    const elapsed = await Promise.all(delays.map(fired));
    delays.forEach((delayMs, index) => {
      expect(elapsed[index]).toBeGreaterThanOrEqual(delayMs);
    });
  });

  it('calls back for a delay of 0 or less in the next turn, in order, and not before', async () => {
    const events: string[] = [];
    const done = new Promise<void>((resolve) => {
      clock.setTimer(0, () => events.push('first'));
      clock.setTimer(-5, () => {
        events.push('second');
        resolve();
      });
    });
    events.push('sync');
    await Promise.resolve();
    events.push('promise job');
    await done;
    expect(events).toEqual(['sync', 'promise job', 'first', 'second']);
  });

  it('does not call back when cancelled, and a late or second cancel does nothing', async () => {
    let count = 0;
    const timers = [0, 1].map((delayMs) => clock.setTimer(delayMs, () => count++));
    for (const timer of timers) timer.cancel();
    await fired(3);
    expect(count).toBe(0);
    const ran = clock.setTimer(0, () => count++);
    await fired(0);
    ran.cancel();
    ran.cancel();
    expect(count).toBe(1);
  });

  it('refuses NaN', () => {
    expect(() => clock.setTimer(NaN, () => undefined)).toThrow('NaN');
  });

  describe('with delays beyond those of setTimeout', () => {
    beforeEach(() => vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
    afterEach(() => vi.useRealTimers());

    it('calls back after 60 days, not at once', () => {
      let count = 0;
      const dayMs = 86_400_000;
      clock.setTimer(60 * dayMs, () => count++);
      vi.advanceTimersByTime(59 * dayMs);
      expect(count).toBe(0);
      vi.advanceTimersByTime(dayMs + 1);
      expect(count).toBe(1);
    });

    it('never calls back for Infinity', () => {
      const timer = clock.setTimer(Infinity, () => undefined);
      expect(vi.getTimerCount()).toBe(0);
      timer.cancel();
    });
  });
});

describe('VirtualClock', () => {
  it('stands still until it is advanced', () => {
    const clock = new VirtualClock(1000);
    let count = 0;
    clock.setTimer(0, () => count++);
    expect([clock.nowMs(), count, clock.timerCount, clock.nextTimerMs]).toEqual([1000, 0, 1, 1000]);
    clock.advance(0);
    expect([clock.nowMs(), count, clock.timerCount, clock.nextTimerMs]).toEqual([
      1000,
      1,
      0,
      undefined,
    ]);
  });

  it('runs timers in the order of time, then of creation, each at its own time', () => {
    const clock = new VirtualClock();
    const runs: string[] = [];
    const arm = (name: string, delayMs: number): void => {
      clock.setTimer(delayMs, () => runs.push(`${name}@${clock.nowMs()}`));
    };
    arm('late', 30);
    arm('first of two', 10);
    arm('early', 5);
    arm('second of two', 10);
    arm('negative', -5);
    clock.advance(29);
    expect(runs).toEqual(['negative@0', 'early@5', 'first of two@10', 'second of two@10']);
    expect(clock.nowMs()).toBe(29);
    clock.advanceTo(30);
    expect(runs.at(-1)).toBe('late@30');
  });

  it('runs what timers arm, when it falls due within the same advance', () => {
    const clock = new VirtualClock();
    const times: number[] = [];
    const again = (): void => {
      times.push(clock.nowMs());
      clock.setTimer(4, again);
    };
    clock.setTimer(4, again);
    clock.advance(13);
    expect(times).toEqual([4, 8, 12]);
  });

  it('does not run what was cancelled, also by an earlier timer of the same time', () => {
    const clock = new VirtualClock();
    const runs: string[] = [];
    clock.setTimer(1, () => second.cancel());
    const second = clock.setTimer(1, () => runs.push('second'));
    const third = clock.setTimer(2, () => runs.push('third'));
    third.cancel();
    third.cancel();
    expect(clock.timerCount).toBe(2);
    clock.advance(10);
    expect(runs).toEqual([]);
    expect(clock.timerCount).toBe(0);
  });

  it('runs any set of timers as a stable sort by time would', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ delayMs: fc.nat(20), isCancelled: fc.boolean() }), { maxLength: 60 }),
        (plan) => {
          const clock = new VirtualClock();
          const runs: number[] = [];
          const timers = plan.map(({ delayMs }, id) =>
            clock.setTimer(delayMs, () => runs.push(id)),
          );
          plan.forEach(({ isCancelled }, id) => {
            if (isCancelled) timers[id]!.cancel();
          });
          while (clock.runNext());
          const expected = plan
            .map((timer, id) => ({ ...timer, id }))
            .filter(({ isCancelled }) => !isCancelled)
            .sort((a, b) => a.delayMs - b.delayMs)
            .map(({ id }) => id);
          expect(runs).toEqual(expected);
        },
      ),
    );
  });

  it('runs the next timer however far away it is', () => {
    const clock = new VirtualClock();
    clock.setTimer(1e9, () => undefined);
    expect(clock.runNext()).toBe(true);
    expect(clock.nowMs()).toBe(1e9);
    expect(clock.runNext()).toBe(false);
  });

  it('never runs a timer of Infinity', () => {
    const clock = new VirtualClock();
    const timer = clock.setTimer(Infinity, () => undefined);
    expect(clock.timerCount).toBe(0);
    expect(clock.runNext()).toBe(false);
    timer.cancel();
  });

  it('continues after a timer threw', () => {
    const clock = new VirtualClock();
    let count = 0;
    clock.setTimer(1, () => {
      throw new Error('a bug');
    });
    clock.setTimer(2, () => count++);
    expect(() => clock.advance(5)).toThrow('a bug');
    clock.advance(5);
    expect(count).toBe(1);
  });

  it('refuses to be advanced from within a timer, backwards, or without end', () => {
    const clock = new VirtualClock(10);
    clock.setTimer(0, () => clock.advance(1));
    expect(() => clock.advance(1)).toThrow('only the test may do so');
    expect(() => clock.advanceTo(9)).toThrow('cannot go from');
    expect(() => clock.advance(-1)).toThrow('cannot go from');
    expect(() => clock.advance(Infinity)).toThrow('cannot go from');
    expect(() => clock.setTimer(NaN, () => undefined)).toThrow('NaN');
  });

  it('says so when time stands still because a timer arms itself with 0 ms', () => {
    const clock = new VirtualClock();
    const again = (): void => {
      clock.setTimer(0, again);
    };
    again();
    expect(() => clock.advance(1)).toThrow('virtual time stands still at 0 ms');
  });

  describe('async', () => {
    it('lets promise jobs settle before each timer', async () => {
      const clock = new VirtualClock();
      const runs: string[] = [];
      const sleep = (delayMs: number): Promise<void> =>
        new Promise((resolve) => {
          clock.setTimer(delayMs, resolve);
        });
      const walk = async (name: string): Promise<void> => {
        for (let step = 0; step < 3; step++) {
          await Promise.resolve();
          await sleep(10);
          runs.push(`${name}${step}@${clock.nowMs()}`);
        }
      };
      const walks = [walk('a'), walk('b')];
      await clock.advanceAsync(30);
      await Promise.all(walks);
      expect(runs).toEqual(['a0@10', 'b0@10', 'a1@20', 'b1@20', 'a2@30', 'b2@30']);
      expect(clock.nowMs()).toBe(30);
    });

    it('runUntil stops as soon as the predicate holds', async () => {
      const clock = new VirtualClock();
      let count = 0;
      every(clock, 10, () => count++);
      await clock.runUntil(() => count === 3);
      expect(clock.nowMs()).toBe(30);
    });

    it('runUntil fails when the time is over, without having gone beyond it', async () => {
      const clock = new VirtualClock();
      every(clock, 10, () => undefined);
      await expect(clock.runUntil(() => false, { maxMs: 25 })).rejects.toMatchObject({
        code: 'ERR_TIMEOUT',
        data: { nowMs: 20, maxMs: 25, nextTimerMs: 30 },
      });
    });

    it('runUntil fails when no timer is left', async () => {
      const clock = new VirtualClock();
      clock.setTimer(5, () => undefined);
      await expect(clock.runUntil(() => false)).rejects.toThrow('no timer is left');
    });

    it('passes on what a timer throws', async () => {
      const clock = new VirtualClock();
      clock.setTimer(1, () => {
        throw new Error('a bug');
      });
      await expect(clock.advanceAsync(5)).rejects.toThrow('a bug');
    });
  });
});

describe('every', () => {
  it('calls back after each interval until it is cancelled', () => {
    const clock = new VirtualClock();
    const times: number[] = [];
    const timer = every(clock, 10, () => times.push(clock.nowMs()));
    clock.advance(35);
    timer.cancel();
    clock.advance(100);
    expect(times).toEqual([10, 20, 30]);
    expect(clock.timerCount).toBe(0);
  });

  it('can be cancelled from within its own call', () => {
    const clock = new VirtualClock();
    let count = 0;
    const timer = every(clock, 10, () => {
      count++;
      timer.cancel();
    });
    clock.advance(100);
    expect(count).toBe(1);
  });

  it('continues after a call that threw', () => {
    const clock = new VirtualClock();
    let count = 0;
    every(clock, 10, () => {
      count++;
      if (count === 1) throw new Error('once');
    });
    expect(() => clock.advance(15)).toThrow('once');
    clock.advance(15);
    expect(count).toBe(2);
  });
});
