import { describe, expect, it } from 'vitest';
import { Pace } from '../../../core/state/worker.ts';
import { SchedulerEnv } from '../../kit/env.ts';
import { numbered } from '../../kit/graph.ts';

const learnt = (...ratios: readonly number[]): number => {
  const pace = new Pace();
  for (const ratio of ratios) pace.learn(Math.log(ratio));
  return pace.factor;
};

it('a worker on which all tasks take twice as long is found after a few', () => {
  const ratios = Array.from({ length: 12 }, () => 2);
  expect(learnt(...ratios.slice(0, 4))).toBeGreaterThan(1.5);
  expect(learnt(...ratios)).toBeGreaterThan(1.8);
  expect(learnt(...ratios)).toBeLessThanOrEqual(2);
});

it('durations that differ from task to task are no pace', () => {
  const ratios = Array.from({ length: 40 }, (_, n) => [0.7, 1.4, 1, 0.8, 1.3][n % 5] as number);
  for (let count = 1; count <= ratios.length; count++) {
    expect(learnt(...ratios.slice(0, count))).toBe(1);
  }
});

it('a worker that becomes fast again is found', () => {
  const slow = Array.from({ length: 30 }, () => 3);
  const usual = Array.from({ length: 80 }, () => 1);
  expect(learnt(...slow)).toBeGreaterThan(2.5);
  expect(learnt(...slow, ...usual)).toBeLessThan(1.1);
});

it('the first task of a prefix, and tasks of less than a millisecond, say nothing', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1, { threads: 40 });
  env.submit({ 'once-1': [], ...numbered('a', 12) });
  env.finish('once-1', { durationS: 100 });
  for (let n = 0; n < 12; n++) env.finish(`a-${n}`, { durationS: n === 0 ? 0.001 : 0.0005 });
  expect(env.worker('w1').pace).toBe(1);
});

it('what a slow worker measures makes the others no faster', () => {
  const env = new SchedulerEnv();
  env.addWorkers(2, { threads: 40 });
  const keys = Array.from({ length: 60 }, (_, n) => `x-${n}`);
  const worker = (n: number): string => (n % 2 === 0 ? 'w1' : 'w2');
  env.submit(Object.fromEntries(keys.map((key, n) => [key, { workers: [worker(n)] }])));
  keys.forEach((key, n) => env.finish(key, { durationS: n % 2 === 0 ? 1 : 4 }));
  expect(env.worker('w2').pace / env.worker('w1').pace).toBeGreaterThan(3);
});

describe('what workers tell of their speed', () => {
  it('is their pace, beside the mean of all threads', () => {
    const env = new SchedulerEnv();
    env.addWorker('slow', { threads: 3, speed: 1000 });
    env.addWorker('fast', { threads: 1, speed: 4000 });
    expect(env.worker('slow').pace).toBe(1.75);
    expect(env.worker('fast').pace).toBe(1.75 / 4);
    env.removeWorker('slow');
    expect(env.worker('fast').pace).toBe(1);
  });

  it('is nothing when it differs no more than measurements do, and for a worker that tells none', () => {
    const env = new SchedulerEnv();
    env.addWorker('one', { speed: 1000 });
    env.addWorker('other', { speed: 1100 });
    env.addWorker('silent');
    expect(['one', 'other', 'silent'].map((name) => env.worker(name).pace)).toEqual([1, 1, 1]);
  });

  it('gives way to what its tasks show', () => {
    const env = new SchedulerEnv();
    env.addWorker('w1', { threads: 40, speed: 1000 });
    env.addWorker('w2', { threads: 40, speed: 2000 });
    const keys = Array.from({ length: 80 }, (_, n) => `x-${n}`);
    const worker = (n: number): string => (n % 2 === 0 ? 'w1' : 'w2');
    env.submit(Object.fromEntries(keys.map((key, n) => [key, { workers: [worker(n)] }])));
    const ratio = (): number => env.worker('w1').pace / env.worker('w2').pace;
    expect(ratio()).toBe(2);
    for (const key of keys) env.finish(key, { durationS: 1 });
    expect(ratio()).toBeLessThan(1.2);
  });
});
