import { expect, it } from 'vitest';
import { SchedulerEnv } from '../../../kit/env.ts';

it('a worker that suits starts the tasks that waited for it, the best first', () => {
  const env = new SchedulerEnv();
  env.submit({ a: { workers: ['tcp://w1:1'] }, b: { workers: ['tcp://w1:1'], userPriority: 1 } });
  expect(env.states).toEqual({ a: 'no-worker', b: 'no-worker' });
  env.addWorker('w1');
  expect(env.takeWorker('w1')).toEqual(['compute-task b', 'compute-task a']);
  expect(env.cluster.unrunnable.size).toBe(0);
});

it('a worker that does not suit leaves them waiting', () => {
  const env = new SchedulerEnv();
  env.submit({ a: { workers: ['tcp://w1:1'] } });
  env.addWorker('w2');
  expect(env.states).toEqual({ a: 'no-worker' });
  env.expectEmpty();
});

it('a worker that runs again starts them', () => {
  const env = new SchedulerEnv();
  env.addWorker('w1', { status: 'paused' });
  env.submit({ a: { workers: ['tcp://w1:1'] } });
  expect(env.state('a')).toBe('no-worker');
  env.setStatus('w1', 'running');
  expect(env.state('a')).toBe('processing');
});

it('a task that waited for a worker needs no open slot, though its group became root-ish', () => {
  const env = new SchedulerEnv();
  env.addWorker('w1', { status: 'paused', threads: 1 });
  env.submit({ 'r-0': [], 'r-1': [] });
  env.submit({ 'r-2': [], 'r-3': [] });
  expect(env.states).toMatchObject({ 'r-0': 'no-worker', 'r-1': 'no-worker', 'r-2': 'queued' });
  env.addWorker('w2', { threads: 1 });
  expect(env.states).toMatchObject({ 'r-0': 'processing w2', 'r-1': 'processing w2' });
  expect(env.states).toMatchObject({ 'r-2': 'queued', 'r-3': 'queued' });
  expect(env.cluster.unrunnable.size).toBe(0);
});

it('a worker that offers more of a resource starts the tasks that wait for it', () => {
  const env = new SchedulerEnv();
  env.addWorker('w1', { resources: { gpu: 1 } });
  env.submit({ a: { resources: { gpu: 2 } } });
  expect(env.state('a')).toBe('no-worker');
  env.heartbeat('w1', { resources: { gpu: 2 } });
  expect(env.takeWorker('w1')).toEqual(['compute-task a']);
});

it('a task with mere preferences is started by any worker', () => {
  const env = new SchedulerEnv();
  env.submit({ a: { workers: ['tcp://w1:1'], allowOtherWorkers: true } });
  env.addWorker('w2');
  expect(env.states).toEqual({ a: 'processing w2' });
});

it('a task that waits for a worker and is not wanted any more is forgotten', () => {
  const env = new SchedulerEnv();
  env.submit({ a: { workers: ['tcp://w1:1'] } });
  env.release('a');
  expect(env.cluster.unrunnable.size).toBe(0);
  expect(env.states).toEqual({});
});

it('a task that waits for a worker and loses its input waits for that first', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: [], b: { deps: ['a'], workers: ['tcp://w9:1'] } });
  env.finish('a');
  expect(env.state('b')).toBe('no-worker');
  env.releaseWorkerData('w1', 'a');
  expect(env.states).toEqual({ a: 'processing w1', b: 'waiting' });
  expect(env.cluster.unrunnable.size).toBe(0);
});
