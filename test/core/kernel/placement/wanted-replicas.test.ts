import { expect, it } from 'vitest';
import { SchedulerEnv } from '../../../kit/env.ts';

function wanted(env: SchedulerEnv): [key: string, replicas: number][] {
  return [...env.cluster.replicasWanted].map(({ key, replicas }) => [key, replicas]);
}

function submit(env: SchedulerEnv, annotations: Readonly<Record<string, unknown>>): void {
  env.send({
    op: 'update-graph',
    client: env.client(),
    keys: ['a'],
    tasks: [{ key: 'a', dependencies: [], runSpec: 'spec', annotations }],
  });
}

it('a task asks for copies of its result with an annotation', () => {
  const env = new SchedulerEnv();
  submit(env, { replicas: 3 });
  expect(wanted(env)).toEqual([['a', 3]]);
});

it.each([0, 1.5, -1, NaN, '2', null, 1])(
  'the annotation replicas: %s asks for nothing',
  (replicas) => {
    const env = new SchedulerEnv();
    submit(env, { replicas });
    expect(wanted(env)).toEqual([]);
  },
);

it('scattered data brings its number of replicas along', () => {
  const env = new SchedulerEnv();
  const worker = env.addWorker('w1');
  const items = [{ key: 'x', nbytes: 1, workers: [worker], replicas: Infinity }];
  env.send({ op: 'update-data', client: env.client(), items });
  expect(wanted(env)).toEqual([['x', Infinity]]);
});

it('a number of replicas can be requested later, changed, and taken back; unknown keys are left out', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: [], b: [] });
  const want = (replicas: number): void => {
    env.send({ op: 'want-replicas', keys: ['a', 'unknown', 'b'], replicas });
  };
  want(2);
  want(4);
  expect(wanted(env)).toEqual([
    ['a', 4],
    ['b', 4],
  ]);
  want(1);
  expect(wanted(env)).toEqual([]);
});

it('the number of replicas is forgotten with the task, and by a restart', () => {
  const env = new SchedulerEnv();
  submit(env, { replicas: 2 });
  env.send({ op: 'client-releases-keys', client: 'c', keys: ['a'] });
  expect([env.cluster.tasks.size, wanted(env)]).toEqual([0, []]);
  submit(env, { replicas: 2 });
  env.send({ op: 'restart' });
  expect(wanted(env)).toEqual([]);
});

it('the number of replicas outlives the loss of the result', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  submit(env, { replicas: 2 });
  env.finish('a');
  env.removeWorker('w1');
  expect(env.state('a')).toBe('queued');
  expect(wanted(env)).toEqual([['a', 2]]);
});
