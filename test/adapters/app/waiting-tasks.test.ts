import { expect, it } from 'vitest';
import { findWaiting } from '../../../adapters/app/watch-scheduler.ts';
import { SchedulerEnv } from '../../kit/env.ts';

const never = { workerSelection: { admits: () => false, score: () => 1 } };

it('a policy that gives a task to no worker is named while all workers could take it', () => {
  const env = new SchedulerEnv({ policies: never });
  env.addWorkers(2);
  env.submit({ a: {} });
  expect(findWaiting(env.cluster, 'never')?.text).toContain(
    'the policy "never" (workerSelection) gives a to no worker',
  );
});

it('no policy is named while a worker is paused, as after a restart, because it may take the task later', () => {
  const env = new SchedulerEnv({ policies: never });
  env.addWorkers(2);
  env.submit({ a: {} });
  env.setStatus('w1', 'paused');
  expect(findWaiting(env.cluster, 'never')).toBeUndefined();
});
