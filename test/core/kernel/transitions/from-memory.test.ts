import { expect, it } from 'vitest';
import { SchedulerEnv } from '../../../kit/env.ts';

it('a result is freed on every holder as soon as it is not needed', () => {
  const env = new SchedulerEnv();
  env.addWorkers(2);
  env.submit({ a: [], b: ['a'] });
  env.finish('a');
  env.addKeys('w2', 'a');
  env.ignoreMessages();
  env.finish('b');
  expect(env.takeWorker('w1')).toEqual(['free-keys a']);
  expect(env.takeWorker('w2')).toEqual(['free-keys a']);
  expect(env.states).toEqual({ a: 'released', b: 'memory w1' });
  expect(env.worker('w1').nbytes).toBe(100);
});

it('a result that one of two dependents still needs is kept', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: [], b: ['a'], c: ['a'] });
  env.finishAll('a', 'b');
  expect(env.state('a')).toBe('memory');
  env.finish('c');
  expect(env.state('a')).toBe('released');
});

it('the size of a result is remembered after it was released', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: [], b: ['a'] });
  env.finish('a', { nbytes: 42 });
  env.finish('b');
  expect(env.task('a')).toMatchObject({ state: 'released', nbytes: 42 });
});

it('dependents that are under way wait again for a result that is lost', () => {
  const env = new SchedulerEnv();
  env.addWorkers(2);
  env.submit({ a: { workers: ['tcp://w1:1'] }, b: { deps: ['a'], workers: ['tcp://w2:1'] } });
  env.finish('a');
  env.ignoreMessages();
  env.releaseWorkerData('w1', 'a');
  expect(env.states).toEqual({ a: 'processing w1', b: 'waiting' });
  expect(env.takeWorker('w2')).toEqual(['free-keys b']);
});

it('lost data cancels everything that would have needed it', () => {
  const env = new SchedulerEnv();
  env.addWorkers(2);
  env.scatter({ x: ['w1'] });
  env.submit({ a: ['x'], b: ['a'], other: [] });
  env.release('x');
  env.ignoreMessages();
  env.removeWorker('w1');
  expect(env.takeClientMessages()).toMatchObject([
    { op: 'cancelled-keys', keys: ['b'], reason: 'it depends on data that is lost' },
  ]);
  expect(env.states).toEqual({ other: 'processing w2' });
});

it('results that were computed from lost data stay', () => {
  const env = new SchedulerEnv();
  env.addWorkers(2);
  env.scatter({ x: ['w1'] });
  env.submit({ a: { deps: ['x'], workers: ['tcp://w2:1'] } });
  env.finish('a');
  env.removeWorker('w1');
  expect(env.states).toEqual({ a: 'memory w2' });
});
