import { describe, expect, it } from 'vitest';
import type { Ordering } from '../../../../core/api/index.ts';
import { byPriority } from '../../../../core/state/task.ts';
import { SchedulerEnv } from '../../../kit/env.ts';
import { numbered } from '../../../kit/graph.ts';

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

it('a task that is submitted again keeps its generation and rank, and gets the higher priority', () => {
  const env = cluster();
  env.submit({ a: [] });
  env.advance(1).submit({ b: [], a: { userPriority: 5 } });
  expect(env.task('a').priority).toEqual([-5, 1, 0]);
  env.submit({ a: { userPriority: 2 } });
  expect(env.task('a').priority).toEqual([-5, 1, 0]);
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

it('equal priorities of two submissions are ordered by arrival', () => {
  const env = cluster();
  env.submit({ b: [] });
  env.submit({ a: [] });
  expect([env.task('a'), env.task('b')].sort(byPriority).map(({ key }) => key)).toEqual(['b', 'a']);
});

it('a task with a better user priority overtakes an older graph in the queue', () => {
  const env = cluster();
  env.submit(numbered('r', 4));
  env.advance(1).submit({ 's-0': { userPriority: 1 }, 's-1': [], 's-2': [] });
  expect(env.cluster.queued.peek()?.key).toBe('s-0');
});

it('the annotation of a task counts more than the priority of its submission', () => {
  const env = cluster();
  const annotations = { priority: 7 };
  env.submit({ a: { annotations, userPriority: 1 }, b: { annotations: { priority: 'high' } } });
  expect([env.task('a').priority?.[0], env.task('b').priority?.[0]]).toEqual([-7, 0]);
});

it('with an unlimited timeout all submissions share a generation', () => {
  const env = cluster();
  env.submit({ a: [] });
  env.advance(1e9).submit({ b: [] }, { fifoTimeoutMs: Infinity });
  expect(env.task('b').generation).toBe(1);
});

describe('the ordering policy', () => {
  function asked(): { env: SchedulerEnv; graphs: unknown[] } {
    const graphs: unknown[] = [];
    const ordering: Ordering = {
      order: (tasks, keys) => {
        graphs.push([tasks.map(({ key, dependencies }) => [key, ...dependencies].join(' ')), keys]);
        return tasks.map((_, index) => 10 * (index + 1));
      },
    };
    const env = new SchedulerEnv({ policies: { ordering }, kernel: { validate: true } });
    env.addWorkers(1);
    return { env, graphs };
  }

  it('may leave gaps between ranks', () => {
    const { env } = asked();
    env.submit({ a: [], b: ['a'] });
    expect([env.task('a').rank, env.task('b').rank]).toEqual([10, 20]);
  });

  it('gets the dependencies as positions, too', () => {
    let seen: unknown;
    const ordering: Ordering = {
      order: (tasks, keys, links) => {
        const positions = [...keys, 'a', 'unneeded', 'nowhere'].map((key) =>
          links?.positionOf(key),
        );
        seen = [Array.from(links!.offsets), Array.from(links!.targets), positions];
        return tasks.map((_, index) => index);
      },
    };
    const env = new SchedulerEnv({ policies: { ordering }, kernel: { validate: true } });
    env.addWorkers(1);
    env.submit({ before: [] });
    env.submit({ unneeded: [], a: ['before'], b: ['a', 'before', 'a'] }, { keys: ['b'] });
    expect(seen).toEqual([
      [0, 1, 4],
      [-1, 0, -1, 0],
      [1, 0, -1, -1],
    ]);
  });

  it('sees only tasks that are needed, in the order of submission', () => {
    const { env, graphs } = asked();
    env.submit({ odd: ['end'], a: [], end: ['odd', 'a'], b: ['a'] }, { keys: ['b'] });
    expect(graphs).toEqual([[['a', 'b a'], ['b']]]);
    expect([env.task('a').rank, env.task('b').rank]).toEqual([10, 20]);
  });

  it('sees known tasks without the dependencies that they are given anew', () => {
    const { env, graphs } = asked();
    env.submit({ a: [] });
    env.submit({ a: ['b'], b: ['a'], c: ['b', 'a'] }, { keys: ['c'] });
    expect(graphs[1]).toEqual([['a', 'b a', 'c b a'], ['c']]);
    expect([env.task('a').rank, env.task('c').rank]).toEqual([10, 30]);
  });
});
