import { expect, it } from 'vitest';
import type { Queuing, WorkerSelection } from '../../../core/api/policies.ts';
import { SchedulerEnv } from '../../kit/env.ts';

/** Never gives a worker a second task. */
const oneAtATime: WorkerSelection = {
  admits: (_task, worker) => worker.processing.size === 0,
  score: () => 0,
};

function full(): SchedulerEnv {
  const env = new SchedulerEnv({ policies: { workerSelection: oneAtATime } });
  env.addWorkers(1, { threads: 4 });
  env.submit({ a: [], b: [], d: [] });
  return env.ignoreMessages();
}

it('a task that the policy admits nowhere waits without a worker', () => {
  const env = full();
  expect(env.task('a').state).toBe('processing');
  expect(env.task('b').state).toBe('no-worker');
  expect(env.task('d').state).toBe('no-worker');
});

it('a refused task is offered again when a worker has less to do', () => {
  const env = full();
  env.finish('a');
  expect(env.takeWorker('w1')).toEqual(['compute-task b']);
  expect(env.task('d').state).toBe('no-worker');
  env.finish('b');
  expect(env.takeWorker('w1')).toEqual(['compute-task d']);
});

it('a policy that refuses is not asked for ever', () => {
  let asked = 0;
  const never: WorkerSelection = {
    admits: () => {
      asked++;
      return false;
    },
    score: () => 0,
  };
  const env = new SchedulerEnv({ policies: { workerSelection: never } });
  env.addWorkers(1, { threads: 100 });
  env.submit(Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`t${n}-x`, []])));
  asked = 0;
  env.setStatus('w1', 'paused');
  expect(asked).toBe(0);
  expect(env.cluster.unrunnable.size).toBe(50);
});

it('tasks that no worker suits do not keep refused ones from their turn', () => {
  const env = new SchedulerEnv({ policies: { workerSelection: oneAtATime } });
  env.addWorkers(1, { threads: 4 });
  const unsuited = Array.from({ length: 20 }, (_, n) => [`x${n}-y`, { resources: { gpu: 1 } }]);
  env.submit(Object.fromEntries(unsuited) as Record<string, { resources: { gpu: number } }>);
  env.submit({ a: [], b: [] });
  expect(env.states).toMatchObject({ a: 'processing w1', b: 'no-worker' });
  env.finish('a');
  expect(env.state('b')).toBe('processing');
});

it('when nothing runs every refused task is offered', () => {
  const smallOnly: WorkerSelection = {
    admits: (task, worker) => worker.processing.size === 0 && !task.key.startsWith('huge'),
    score: () => 0,
  };
  const env = new SchedulerEnv({ policies: { workerSelection: smallOnly } });
  env.addWorkers(1, { threads: 4 });
  env.submit({ first: [] });
  env.submit(Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`huge${n}-x`, []])));
  env.submit({ small: [] });
  expect(env.state('small')).toBe('no-worker');
  env.finish('first');
  expect(env.state('small')).toBe('processing');
});

/** Places tasks without inputs as long as no worker has more than one. */
const spareOne: WorkerSelection = {
  score: () => 0,
  pickFromPool: (_task, pool) =>
    [...pool].find((worker) => worker.processing.size < 1) ?? undefined,
};

it('a policy whose pickFromPool answers undefined is asked again when a worker has less to do', () => {
  const env = new SchedulerEnv({ policies: { workerSelection: spareOne } });
  env.addWorkers(2, { threads: 4 });
  const keys = Array.from({ length: 20 }, (_, n) => `t${n}-x`);
  env.submit(Object.fromEntries(keys.map((key) => [key, []])));
  const finished: string[] = [];
  const running = (): string | undefined => keys.find((key) => env.state(key) === 'processing');
  for (let key = running(); key !== undefined; key = running()) {
    env.finish(key);
    finished.push(key);
  }
  expect(finished).toHaveLength(20);
});

it('a queuing policy that holds nothing back is asked again for the tasks that it refused', () => {
  const queuing: Queuing = {
    holdsBack: false,
    isRootish: () => true,
    slotLimit: () => Infinity,
    selectRootish: (_task, { running }) =>
      [...running].find((worker) => worker.processing.size === 0),
  };
  const env = new SchedulerEnv({ policies: { queuing } });
  env.addWorkers(1, { threads: 4 });
  env.submit({ a: [], b: [], d: [] });
  expect(env.states).toEqual({ a: 'processing w1', b: 'no-worker', d: 'no-worker' });
  env.finish('a');
  expect(env.states).toMatchObject({ b: 'processing w1', d: 'no-worker' });
});

it('a policy that goes by measurements is asked again when a heartbeat brings some', () => {
  const roomy: WorkerSelection = {
    admits: (task, worker) => task.key === 'small' && worker.metrics.memoryBytes < 1000,
    score: () => 0,
  };
  const env = new SchedulerEnv({ policies: { workerSelection: roomy } });
  env.addWorkers(1, { threads: 4 });
  env.heartbeat('w1', { memoryBytes: 2000 });
  env.submit(Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`huge${n}-x`, []])));
  env.submit({ small: [] });
  expect(env.state('small')).toBe('no-worker');
  for (let n = 0; n < 3; n++) env.heartbeat('w1', { memoryBytes: 500 });
  expect(env.state('small')).toBe('processing');
});
