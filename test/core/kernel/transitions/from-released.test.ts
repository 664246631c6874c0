import { expect, it } from 'vitest';
import { SchedulerEnv } from '../../../kit/env.ts';

function cluster(): SchedulerEnv {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  return env;
}

it('a task with dependencies waits and counts as their waiter', () => {
  const env = cluster();
  env.submit({ a: [], b: [], c: ['a', 'b'] });
  expect(env.state('c')).toBe('waiting');
  expect(env.task('c').waitingOn.map(({ key }) => key)).toEqual(['a', 'b']);
  expect(env.task('a').waiters.map(({ key }) => key)).toEqual(['c']);
});

it('a task whose dependencies are in memory is placed at once', () => {
  const env = cluster();
  env.submit({ a: [] });
  env.finish('a');
  env.submit({ b: ['a'] });
  expect(env.state('b')).toBe('processing');
});

it('released dependencies are computed again first', () => {
  const env = cluster();
  env.submit({ a: [], b: ['a'], c: ['b'] }, { keys: ['c', 'b'] });
  env.finishAll('a', 'b', 'c');
  expect(env.states).toEqual({ a: 'released', b: 'memory w1', c: 'memory w1' });
  env.ignoreMessages();
  env.releaseWorkerData('w1', 'b');
  expect(env.takeWorker('w1')).toEqual(['compute-task a']);
  expect(env.states).toEqual({ a: 'processing w1', b: 'waiting', c: 'memory w1' });
});

it('a task that lost a dependency is cancelled when it would have to be computed', () => {
  const env = cluster();
  env.scatter({ x: ['w1'] });
  env.submit({ a: ['x'] });
  env.finish('a');
  env.releaseWorkerData('w1', 'x');
  expect(env.states).toEqual({ a: 'memory w1' });
  expect(env.task('a').hasLostDependencies).toBe(true);
  env.ignoreMessages();
  env.releaseWorkerData('w1', 'a');
  expect(env.takeClientMessages()).toMatchObject([
    { op: 'lost-data', key: 'a' },
    { op: 'cancelled-keys', keys: ['a'], reason: 'it depends on data that is lost' },
  ]);
  expect(env.states).toEqual({});
});

it('a failure passes through waiting tasks to all that want them', () => {
  const env = cluster();
  env.submit({ a: [], b: ['a'], c: ['b'], d: ['c'] }, { keys: ['b', 'd'] });
  env.ignoreMessages();
  env.fail('a');
  expect(env.takeClient().toSorted()).toEqual([
    'task-erred b because of a',
    'task-erred d because of a',
  ]);
  expect(env.task('d').exceptionBlame?.key).toBe('a');
  env.expectEmpty();
});

it('the inputs of a failed task are released', () => {
  const env = cluster();
  env.addWorker('w2');
  env.submit({ a: [], b: [], c: ['a', 'b'] });
  env.finish('a');
  env.ignoreMessages();
  env.fail('b');
  expect(env.states).toEqual({ a: 'released', b: 'erred', c: 'erred' });
  expect(env.takeWorker('w1')).toEqual(['free-keys a']);
});

it('a forgotten task takes along what only it needed', () => {
  const env = cluster();
  env.submit({ a: [], b: ['a'], c: ['a'] });
  env.release('b');
  expect(Object.keys(env.states)).toEqual(['a', 'c']);
  env.release('c');
  expect(env.states).toEqual({});
});

it('a group goes with its last task', () => {
  const env = cluster();
  env.submit({ 'a-1': [], 'a-2': [] });
  env.release('a-1');
  expect([...env.cluster.groups.keys()]).toEqual(['a']);
  env.release('a-2');
  expect([...env.cluster.groups.keys()]).toEqual([]);
});
