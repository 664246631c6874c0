import { expect, it } from 'vitest';
import { setAwakeTimer } from '../../../core/shared/timers.ts';
import { SessionSecret } from '../../../core/scheduler-host/membership.ts';
import { ReconnectGrace } from '../../../core/scheduler-host/reconnect-grace.ts';
import type { Config } from '../../../core/config/types.ts';
import { Budget } from '../../../plugins/coordination/wait-queue.ts';
import { type CoordinationScope, DisconnectCleanup } from '../../../plugins/coordination/scope.ts';
import { Leases } from '../../../plugins/coordination/leases.ts';
import { StallingClock } from '../../kit/stalling-clock.ts';

it('without a stall it fires to the millisecond', () => {
  const clock = new StallingClock();
  const fired: number[] = [];
  setAwakeTimer(clock.clock, 10_001, () => fired.push(clock.clock.nowMs()));
  clock.advance(10_000);
  expect(fired).toEqual([]);
  clock.advance(1);
  expect(fired).toEqual([10_001]);
});

it('time in which the process stood still does not count, and is reported', () => {
  const clock = new StallingClock();
  const told: unknown[] = [];
  const timer = setAwakeTimer(
    clock.clock,
    10_000,
    () => told.push('over'),
    (stalledMs) => told.push(stalledMs),
  );
  clock.advance(4000);
  clock.stall(60_000);
  clock.advance(5999);
  expect(told).toEqual([60_000]);
  clock.advance(1);
  expect(told).toEqual([60_000, 'over']);
  timer.cancel();
});

it('after a stall at the very end there is time for what has come in meanwhile, once', () => {
  const clock = new StallingClock();
  let isOver = false;
  setAwakeTimer(clock.clock, 10_000, () => (isOver = true));
  clock.advance(9999);
  clock.stall(60_000);
  clock.advance(1);
  expect(isOver).toBe(false);
  clock.stall(60_000);
  clock.advance(500);
  expect(isOver).toBe(true);
});

it('a client that wants to come back is waited for as long as the scheduler can hear it', () => {
  const clock = new StallingClock();
  const absences = new ReconnectGrace(clock.clock, {
    scheduler: { clientGrace: 30_000 },
  } as Config);
  const secret = new SessionSecret('s');
  let isGone = false;
  absences.begin('c', 10_000, secret, () => (isGone = true));
  clock.stall(60_000);
  clock.advance(9000);
  expect([isGone, absences.end('c', 's')]).toEqual([false, true]);
  absences.begin('c', 10_000, secret, () => (isGone = true));
  clock.advance(10_000);
  expect(isGone).toBe(true);
});

it('a lease outlives a stall of the scheduler, and ends when it is not renewed after it', () => {
  const clock = new StallingClock();
  const scope = {
    clock: clock.clock,
    leaseTimeoutMs: 10_000,
    budget: new Budget(1_000_000),
    departures: new DisconnectCleanup(),
  } as unknown as CoordinationScope;
  const leases = new Leases(scope);
  const ended: string[] = [];
  const first = leases.grant('a', 'the lock "x"', () => ended.push('x'));
  clock.advance(1000);
  leases.grant('b', 'the lock "y"', () => ended.push('y'));
  clock.stall(60_000);
  clock.advance(1000);
  expect(leases.renew('a', [first.lease])).toEqual([]);
  clock.advance(9000);
  expect(ended).toEqual(['y']);
  clock.advance(2000);
  expect(ended).toEqual(['y', 'x']);
});
