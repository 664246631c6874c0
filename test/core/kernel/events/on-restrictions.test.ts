import { expect, it } from 'vitest';
import { SchedulerEnv } from '../../../kit/env.ts';

it('a task that runs stays where it is, and its next run goes where it may', () => {
  const env = new SchedulerEnv();
  env.addWorkers(2);
  env.submit({ x: { workers: ['tcp://w1:1'] } });
  expect(env.takeWorker('w1')).toEqual(['compute-task x']);
  env.restrict({ x: ['w2'] });
  env.expectEmpty();
  env.reschedule('x');
  expect(env.takeWorker('w2')).toEqual(['compute-task x']);
});

it('a task that found no worker is placed when it may go elsewhere', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ x: { workers: ['tcp://gone:1'] } });
  expect(env.task('x').state).toBe('no-worker');
  env.restrict({ x: [], unknown: [] });
  expect(env.takeWorker('w1')).toEqual(['compute-task x']);
  expect(env.task('x').restrictions).toBeUndefined();
});

it('hosts, resources and preferences stay as they were', () => {
  const env = new SchedulerEnv();
  env.addWorker('w1', { resources: { gpu: 1 } });
  env.submit({ x: { workers: ['w1'], resources: { gpu: 1 }, allowOtherWorkers: true } });
  env.restrict({ x: ['w2'] });
  expect(env.task('x').restrictions).toEqual({
    workers: new Set(['tcp://w2:1']),
    resources: new Map([['gpu', 1]]),
    loose: true,
  });
});

it('a task that is not queueable is not held back', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: ['b'], b: [] }, { keys: ['a'] });
  env.restrict({ a: [] }, false);
  expect(env.task('a').isQueueable).toBe(false);
});

it('released results are computed again as far as they are needed', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ out: ['barrier'], barrier: ['in'], in: [] }, { keys: ['out'] });
  env.finish('in');
  env.finish('barrier');
  expect(env.task('out').state).toBe('processing');
  env.ignoreMessages();
  env.releaseTasks('out', 'barrier', 'in', 'unknown');
  expect(env.task('out').state).toBe('waiting');
  expect(env.task('barrier').state).toBe('waiting');
  expect(env.takeWorker('w1')).toEqual(expect.arrayContaining(['compute-task in']));
  env.finish('in');
  env.finish('barrier');
  env.finish('out');
  expect(env.task('out').state).toBe('memory');
});

it('failed tasks and data stay as they are', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ x: [] });
  env.fail('x');
  env.scatter({ data: ['w1'] });
  env.ignoreMessages();
  env.releaseTasks('x', 'data');
  expect(env.task('x').state).toBe('erred');
  expect(env.task('data').state).toBe('memory');
  env.expectEmpty();
});
