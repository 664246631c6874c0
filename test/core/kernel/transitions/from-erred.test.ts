import { expect, it } from 'vitest';
import { SchedulerEnv } from '../../../kit/env.ts';
import type { TerseGraph } from '../../../kit/graph.ts';

/** A cluster in which the graph was submitted and these tasks have failed. */
function failed(graph: TerseGraph, keys: readonly string[], wanted?: readonly string[]) {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit(graph, wanted === undefined ? {} : { keys: wanted });
  for (const key of keys) env.fail(key);
  return env.ignoreMessages();
}

it('a retried task forgets its failure and frees the tombstone on its worker', () => {
  const env = failed({ a: [] }, ['a']);
  env.retry('a');
  expect(env.takeWorker('w1')).toEqual(['free-keys a', 'compute-task a']);
  expect(env.takeClient()).toEqual(['task-retried a']);
  expect(env.task('a')).toMatchObject({ failure: undefined, exceptionBlame: undefined });
  env.expectEmpty();
});

it('what failed because of a retried task comes back with it', () => {
  const env = failed({ a: [], b: ['a'], c: ['b'] }, ['a']);
  env.retry('a');
  expect(env.states).toEqual({ a: 'processing w1', b: 'waiting', c: 'waiting' });
  expect(env.takeClient()).toEqual(['task-retried c']);
});

it('retrying a task retries the failures below it', () => {
  const graph = { a: [], b: [], c: ['a', 'b'], d: ['c'] };
  const env = failed(graph, ['a', 'b'], ['a', 'b', 'd']);
  env.retry('d');
  expect(env.states).toEqual({
    a: 'processing w1',
    b: 'processing w1',
    c: 'waiting',
    d: 'waiting',
  });
});

it('a failed task that reaches the root by two ways of different length comes back', () => {
  const env = failed({ a: [], b: ['a'], c: ['b'], d: ['a', 'c'], e: ['b', 'd'] }, ['a']);
  env.retry('a');
  expect(env.states).toEqual({
    a: 'processing w1',
    b: 'waiting',
    c: 'waiting',
    d: 'waiting',
    e: 'waiting',
  });
  env.finishAll('a', 'b', 'c', 'd', 'e');
  expect(env.state('e')).toBe('memory');
});

it('a task stays failed while another failure holds it back, and blames that one', () => {
  const env = failed({ a: [], b: [], c: ['a', 'b'] }, ['a', 'b'], ['a', 'b', 'c']);
  expect(env.task('c').exceptionBlame?.key).toBe('a');
  env.retry('a');
  expect(env.states).toEqual({ a: 'processing w1', b: 'erred', c: 'erred' });
  expect(env.task('c').exceptionBlame?.key).toBe('b');
  expect(env.takeClient()).toEqual(['task-retried a']);
});

it('the new blame reaches everything that failed with the task', () => {
  const graph = { a: [], b: [], c: ['a', 'b'], d: ['c'], e: ['d', 'a'] };
  const env = failed(graph, ['a', 'b'], ['a', 'b', 'e']);
  env.retry('a');
  expect(['c', 'd', 'e'].map((key) => env.task(key).exceptionBlame?.key)).toEqual(['b', 'b', 'b']);
  expect(env.states).toMatchObject({ c: 'erred', d: 'erred', e: 'erred' });
});

it('a retried task that is not needed any more is not computed', () => {
  const env = failed({ a: [], b: [], c: ['a', 'b'] }, ['a', 'b'], ['a', 'b', 'c']);
  env.release('a');
  env.retry('a');
  expect(env.states).toEqual({ a: 'released', b: 'erred', c: 'erred' });
  expect(env.takeWorker('w1')).toEqual(['free-keys a', 'compute-task a', 'free-keys a']);
});

it('a retry that fails again is reported again', () => {
  const env = failed({ a: [], b: ['a'] }, ['a']);
  env.retry('b');
  env.fail('a');
  expect(env.takeClient()).toEqual(['task-retried b', 'task-erred b because of a']);
});

it('a result that was computed before the failure is not computed again', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: [], b: [], c: ['a', 'b'] }, { keys: ['a', 'c'] });
  env.finish('a');
  env.fail('b');
  env.ignoreMessages();
  env.retry('c');
  expect(env.takeWorker('w1')).toEqual(['free-keys b', 'compute-task b']);
  expect(env.state('a')).toBe('memory');
});

it('retrying what has not failed does nothing', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: [], b: ['a'] });
  env.ignoreMessages();
  env.retry('a', 'b', 'unknown');
  expect(env.states).toEqual({ a: 'processing w1', b: 'waiting' });
  env.expectEmpty();
});

it('data under a failed key is reported after the tasks that failed because of it continue', () => {
  const env = failed({ a: [], b: ['a'], c: ['b'] }, ['a']);
  // No worker has the data for b: its client only wants to know how it stands.
  env.scatter({ a: ['w1'], b: [] }, 'd');
  expect(env.states).toEqual({ a: 'memory w1', b: 'processing w1', c: 'waiting' });
  expect(env.takeClient('d')).toEqual(['key-in-memory a on w1', 'task-retried b']);
  env.retry('a', 'b', 'c');
  env.finishAll('b', 'c');
  expect(env.state('c')).toBe('memory');
});

it('a failure is explained although what it began with was retried, and data took the place of what led to it', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  for (const client of ['c', 'd', 'e']) env.client(client);
  const graph: TerseGraph = { F1: [], F2: [], mid: ['F1'], top: ['mid', 'F2'] };
  env.submit(graph, { keys: ['F1', 'F2', 'top'] });
  env.fail('F1');
  env.fail('F2');
  env.scatter({ mid: ['w1'] }, 'd');
  expect(env.task('top').exceptionBlame?.key).toBe('F2');
  env.retry('F1');
  env.submit(graph, { client: 'e', keys: ['top'] });
  expect(env.takeClient('e')).toEqual(['task-erred top because of F2']);
  env.retry('top');
  env.finishAll('F1', 'F2', 'top');
  expect(env.state('top')).toBe('memory');
});
