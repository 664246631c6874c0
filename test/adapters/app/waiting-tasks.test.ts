import { expect, it } from 'vitest';
import { LocalCluster } from '../../../adapters/app/local-cluster.ts';
import { waitingIn } from '../../../core/shared/waiting.ts';
import { findWaiting } from '../../../adapters/app/watch-scheduler.ts';
import { family } from '../../../policies/queuing/family.ts';
import { square } from '../cli/fixtures/tasks.js';
import { SchedulerEnv } from '../../kit/env.ts';
import { made } from '../../kit/made.ts';

const NAMES = { current: { workerSelection: 'never', queuing: 'root-ish' } };
const never = { workerSelection: { admits: () => false, score: () => 1 } };

it('a policy that gives a task to no worker is named while all workers could take it', () => {
  const env = new SchedulerEnv({ policies: never });
  env.addWorkers(2);
  env.submit({ a: {} });
  expect(findWaiting(env.cluster, NAMES)?.text).toContain(
    'a waits although all workers are idle, perhaps for ever: the policy "never" (workerSelection)',
  );
});

it('so is one that gives a task that was held back to no slot', () => {
  const policies = { ...never, queuing: made(family) };
  const env = new SchedulerEnv({ policies });
  env.addWorkers(2);
  env.submit({ a: {} });
  expect(env.states).toEqual({ a: 'queued' });
  expect(findWaiting(env.cluster, NAMES)?.text).toBe(
    'a waits although all workers are idle, perhaps for ever: the policy "never" (workerSelection) gives it to no worker, or "root-ish" (queuing) to no slot',
  );
});

it('no policy is named while a worker is paused, as after a restart, because it may take the task later', () => {
  const env = new SchedulerEnv({ policies: never });
  env.addWorkers(2);
  env.submit({ a: {} });
  env.setStatus('w1', 'paused');
  expect(findWaiting(env.cluster, NAMES)).toBeUndefined();
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
  expect(findWaiting(env.cluster, NAMES)?.text).toContain(`train waits: ${text}; start a worker`);
  expect(waitingIn(env.cluster)[0]?.text).toContain(`such as train: ${text}`);
  env.cancel(['train']);
  env.submit({ later: {} });
  const night = 'the rule night holds it back';
  expect(findWaiting(env.cluster, NAMES)?.text).toBe(
    `later waits although all workers are idle, perhaps for ever: ${night}`,
  );
  expect(waitingIn(env.cluster)[0]?.text).toBe(`No worker takes 1 task, such as later: ${night}.`);
  env.submit({ a: {} });
  expect(findWaiting(env.cluster, NAMES)).toBeUndefined();
});

it('the warning is among the lines that the scheduler keeps for those who ask', async () => {
  const silent = (): void => undefined;
  const log = { debug: silent, info: silent, warn: silent, error: silent };
  await using cluster = await LocalCluster.start({ mode: 'inline', workers: 1, log });
  const client = await cluster.client();
  client.with({ resources: { GPU: 1 } }).submit(square, 2);
  await expect
    .poll(async () => JSON.stringify(await cluster.scheduler.command('logs', {})))
    .toContain('waits: ');
});
