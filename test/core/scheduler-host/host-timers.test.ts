import { expect, it } from 'vitest';
import { HostTimers, IdleWatch } from '../../../core/scheduler-host/scheduler-life.ts';
import type { Config } from '../../../core/config/types.ts';
import { SchedulerKernel } from '../../../core/kernel/kernel.ts';
import { makePorts } from '../../kit/ports.ts';
import { StallingClock } from '../../kit/stalling-clock.ts';

function start(settings: Partial<Config['scheduler']>): {
  clock: StallingClock;
  enqueued: unknown[];
} {
  const clock = new StallingClock();
  const enqueued: unknown[] = [];
  const idleWatch = new IdleWatch(new SchedulerKernel({}, makePorts(), 0), clock.clock);
  const stimuli = { accept: (stimulus: unknown) => void enqueued.push(stimulus) };
  const timers = new HostTimers(clock.clock, stimuli, idleWatch);
  const never = { workerTtl: Infinity, noWorkersTimeout: Infinity, idleTimeout: Infinity };
  const config = { ...never, ...settings } as Config['scheduler'];
  timers.start(
    config,
    () => false,
    () => undefined,
  );
  return { clock, enqueued };
}

it('workers are looked at once in their time to live', () => {
  const { clock, enqueued } = start({ workerTtl: 60_000 });
  clock.advance(59_999);
  expect(enqueued).toEqual([]);
  clock.advance(120_001);
  const check = { op: 'check-worker-ttl' };
  expect(enqueued).toEqual([check, check, check]);
});

it('a stall of the process is reported before silent workers are checked', () => {
  const { clock, enqueued } = start({ workerTtl: 60_000 });
  clock.advance(1000);
  clock.stall(500_000);
  clock.advance(2000);
  expect(enqueued).toEqual([
    { op: 'scheduler-stalled', stalledMs: 500_000 },
    { op: 'check-worker-ttl' },
  ]);
});

it('a stall is reported once, however many timers are late', () => {
  const { clock, enqueued } = start({ workerTtl: 5000, noWorkersTimeout: 1000 });
  clock.advance(125);
  clock.stall(4000);
  clock.advance(250);
  expect(enqueued).toEqual([
    { op: 'scheduler-stalled', stalledMs: 4000 },
    { op: 'check-no-workers-timeout' },
  ]);
});
