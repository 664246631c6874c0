import { expect, it } from 'vitest';
import type { WorkerSelection } from '../../core/api/policies.ts';
import { SchedulerEnv } from '../kit/env.ts';

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
