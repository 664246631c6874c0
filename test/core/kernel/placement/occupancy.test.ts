import { describe, expect, it } from 'vitest';
import { classify } from '../../../../core/kernel/occupancy.ts';
import { SchedulerEnv } from '../../../kit/env.ts';

describe('a worker', () => {
  it('with fewer tasks than threads is idle, whatever their length', () => {
    expect(classify(100, 1, 2, 1)).toEqual({ isIdle: true, isSaturated: false });
  });

  it('with less than half of the average work is idle', () => {
    expect(classify(0.9, 2, 2, 1)).toMatchObject({ isIdle: true });
    expect(classify(1, 2, 2, 1)).toMatchObject({ isIdle: false });
  });

  it('with as many tasks as threads is never saturated', () => {
    expect(classify(100, 2, 2, 1)).toEqual({ isIdle: false, isSaturated: false });
  });

  it('with more than 0.4 seconds and 1.9 averages of backlog per thread is saturated', () => {
    // 4 tasks on one thread: three quarters of the work are backlog.
    expect(classify(4, 4, 1, 1)).toMatchObject({ isSaturated: true });
    expect(classify(4, 4, 1, 1.6)).toMatchObject({ isSaturated: false });
    expect(classify(0.53, 4, 1, 0.1)).toMatchObject({ isSaturated: false });
    expect(classify(0.54, 4, 1, 0.1)).toMatchObject({ isSaturated: true });
  });
});

it('the work ahead of a worker is the expected durations and the transfers', () => {
  const env = new SchedulerEnv({ kernel: { bandwidth: 100, unknownTaskDurationS: 0.25 } });
  env.addWorkers(2);
  env.scatter({ x: ['w1'] });
  env.submit({ a: { deps: ['x'], workers: ['tcp://w2:1'] }, b: { workers: ['tcp://w2:1'] } });
  expect(env.worker('w2').occupancyS).toBe(0.5 + 1);
  expect(env.cluster.totalOccupancyS).toBe(1.5);
});

it('an input that two tasks need is fetched once', () => {
  const env = new SchedulerEnv({ kernel: { bandwidth: 100 } });
  env.addWorkers(2);
  env.scatter({ x: ['w1'] });
  const there = { deps: ['x'], workers: ['tcp://w2:1'] };
  env.submit({ a: there, b: there });
  expect(env.worker('w2').networkBytes).toBe(100);
  env.finish('a');
  expect(env.worker('w2').networkBytes).toBe(100);
  env.addKeys('w2', 'x');
  expect(env.worker('w2').networkBytes).toBe(0);
});

it('what is learned about a prefix changes the occupancy of every worker at once', () => {
  const env = new SchedulerEnv();
  env.addWorkers(2);
  env.submit({ 'a-1': { workers: ['tcp://w1:1'] }, 'a-2': { workers: ['tcp://w2:1'] } });
  env.finish('a-1', { durationS: 8 });
  expect(env.worker('w2').occupancyS).toBe(8);
  expect(env.cluster.totalOccupancyS).toBe(8);
});

it('durations that are known beforehand are used', () => {
  const env = new SchedulerEnv({ kernel: { defaultTaskDurationsS: new Map([['a', 9]]) } });
  env.addWorkers(1);
  env.submit({ 'a-1': [] });
  expect(env.worker('w1').occupancyS).toBe(9);
});

it('a worker whose work is done is idle and has no occupancy', () => {
  const env = new SchedulerEnv();
  env.addWorkers(2);
  env.submit({ a: [], b: [], c: [], d: [], e: [], f: [] });
  for (const key of ['a', 'b', 'c', 'd', 'e', 'f']) env.finish(key, { durationS: 0.1 });
  expect(env.cluster.totalOccupancyS).toBe(0);
  expect(env.cluster.idle.size).toBe(2);
});

it('a worker with a long queue is saturated, and not any more when it is done', () => {
  const env = new SchedulerEnv();
  env.addWorkers(3);
  for (const key of ['a', 'b', 'c', 'd', 'e']) env.submit({ [key]: { workers: ['tcp://w1:1'] } });
  expect([...env.cluster.saturated].map(({ name }) => name)).toEqual(['w1']);
  env.setStatus('w1', 'paused');
  expect(env.cluster.saturated.size).toBe(0);
});

describe('what a worker has to send', () => {
  const there = (worker: string) => ({ deps: ['x'], workers: [`tcp://${worker}:1`] });

  it('is each result that it alone has, for every worker that needs it', () => {
    const env = new SchedulerEnv();
    env.addWorkers(3);
    env.scatter({ x: ['w1'] });
    env.submit({ a: there('w2'), b: there('w2'), c: there('w3') });
    expect(env.worker('w1').requestedBytes).toBe(200);
  });

  it('is nothing any more when others have it, too, and what is left when they lose it', () => {
    const env = new SchedulerEnv();
    env.addWorkers(3);
    env.scatter({ x: ['w1'] });
    env.submit({ a: there('w2'), b: there('w3') });
    env.addKeys('w2', 'x');
    expect(env.worker('w1').requestedBytes).toBe(0);
    env.removeWorker('w2');
    expect(env.worker('w1').requestedBytes).toBe(100);
  });

  it('ends with the task that needs it', () => {
    const env = new SchedulerEnv();
    env.addWorkers(2);
    env.scatter({ x: ['w1'] });
    env.submit({ a: there('w2') });
    env.finish('a');
    expect(env.worker('w1').requestedBytes).toBe(0);
  });
});
