import { expect, it } from 'vitest';
import { byPriority } from '../../core/state/task.ts';
import { SchedulerEnv } from '../kit/env.ts';
import { numbered } from '../kit/graph.ts';

function cluster(): SchedulerEnv {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  return env;
}

it('the priority is user priority, generation and rank', () => {
  const env = cluster();
  env.submit({ a: [], b: { deps: ['a'], userPriority: 10 } });
  expect(env.task('a').priority).toEqual([0, 1, 0]);
  expect(env.task('b').priority).toEqual([-10, 1, 1]);
});

it('a later submission is a later generation', () => {
  const env = cluster();
  env.submit({ a: [] });
  env.advance(1).submit({ b: [] });
  expect(env.task('b').priority).toEqual([0, 2, 0]);
});

it('submissions within the timeout share the generation of the first', () => {
  const env = cluster();
  env.submit({ a: [] }, { fifoTimeoutMs: 100 });
  env.advance(60).submit({ b: [] }, { fifoTimeoutMs: 100 });
  env.advance(60).submit({ c: [] }, { fifoTimeoutMs: 100 });
  expect(['a', 'b', 'c'].map((key) => env.task(key).generation)).toEqual([1, 1, 2]);
});

it('what a running task submits comes before every ordinary generation', () => {
  const env = cluster();
  env.submit({ parent: [] });
  env.advance(1).submit({ child: [] }, { submittingTask: 'parent' });
  expect(env.task('child').priority).toEqual([0, -0.01, 0]);
  env.advance(1).submit({ other: [] }, { submittingTask: 'unknown' });
  expect(env.task('other').generation).toBe(2);
});

it('what a boosted task submits comes even earlier', () => {
  const env = cluster();
  env.submit({ parent: { userPriority: 10 } });
  env.submit({ child: [] }, { submittingTask: 'parent' });
  expect(env.task('child').priority).toEqual([0, -10.01, 0]);
});

it('a task keeps its first priority for life', () => {
  const env = cluster();
  env.submit({ a: [] });
  env.advance(1).submit({ b: [], a: { userPriority: 5 } });
  expect(env.task('a').priority).toEqual([0, 1, 0]);
});

it('ranks that the client gives are taken, and the ordering policy is not asked', () => {
  const env = cluster();
  env.submit({ a: { rank: 5 }, b: { deps: ['a'], rank: 9 } });
  expect(env.task('b').priority).toEqual([0, 1, 9]);
});

it('one missing rank leaves all to the ordering policy', () => {
  const env = cluster();
  env.submit({ a: { rank: 5 }, b: ['a'] });
  expect([env.task('a').rank, env.task('b').rank]).toEqual([0, 1]);
});

it('pure data has no priority', () => {
  const env = cluster();
  env.scatter({ x: ['w1'] });
  expect(env.task('x').priority).toBeUndefined();
});

it('equal priorities of two submissions are ordered by key', () => {
  const env = cluster();
  env.submit({ b: [] });
  env.submit({ a: [] });
  expect([env.task('b'), env.task('a')].sort(byPriority).map(({ key }) => key)).toEqual(['a', 'b']);
});

it('a task with a better user priority overtakes an older graph in the queue', () => {
  const env = cluster();
  env.submit(numbered('r', 4));
  env.advance(1).submit({ 's-0': { userPriority: 1 }, 's-1': [], 's-2': [] });
  expect(env.cluster.queued.peek()?.key).toBe('s-0');
});
