import { expect, it } from 'vitest';
import { waitingIn } from '../../../adapters/dashboard/waiting.ts';
import { findWaiting } from '../../../adapters/app/watch-scheduler.ts';
import { SchedulerEnv } from '../../kit/env.ts';

const never = { workerSelection: { admits: () => false, score: () => 1 } };

it('a policy that gives a task to no worker is named while all workers could take it', () => {
  const env = new SchedulerEnv({ policies: never });
  env.addWorkers(2);
  env.submit({ a: {} });
  expect(findWaiting(env.cluster, 'never')?.text).toContain(
    'a waits although all workers are idle, perhaps for ever: the policy "never" (workerSelection)',
  );
});

it('no policy is named while a worker is paused, as after a restart, because it may take the task later', () => {
  const env = new SchedulerEnv({ policies: never });
  env.addWorkers(2);
  env.submit({ a: {} });
  env.setStatus('w1', 'paused');
  expect(findWaiting(env.cluster, 'never')).toBeUndefined();
});

it('rules that refuse every worker are named, and one that holds a task back is not while something runs', () => {
  const gpu = { concerns: ({ key }: { key: string }) => key === 'train', filter: () => false };
  const held = { concerns: ({ key }: { key: string }) => key === 'later', holds: () => true };
  const rules = [
    { name: 'gpu', policy: gpu },
    { name: 'night', policy: held },
  ];
  const env = new SchedulerEnv({ policies: { rules } });
  env.addWorkers(2);
  env.submit({ train: {} });
  const text = 'the rule gpu refuses 2 of 2 workers';
  expect(findWaiting(env.cluster, 'p')?.text).toContain(`train waits: ${text}; start a worker`);
  expect(waitingIn(env.cluster)[0]?.text).toContain(`such as train: ${text}`);
  env.cancel(['train']);
  env.submit({ later: {} });
  const night = 'the rule night holds it back';
  expect(findWaiting(env.cluster, 'p')?.text).toBe(
    `later waits although all workers are idle, perhaps for ever: ${night}`,
  );
  expect(waitingIn(env.cluster)[0]?.text).toBe(`No worker takes 1 task, such as later: ${night}.`);
  env.submit({ a: {} });
  expect(findWaiting(env.cluster, 'p')).toBeUndefined();
});
