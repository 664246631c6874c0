import { expect, it } from 'vitest';
import { RecommendationStack } from '../../../../core/kernel/agenda.ts';
import type { TaskState } from '../../../../core/state/task.ts';
import { SchedulerEnv } from '../../../kit/env.ts';

function stack() {
  const { cluster } = new SchedulerEnv();
  const recommendations = new RecommendationStack();
  const popped = (): string[] => {
    const all: string[] = [];
    for (let task = recommendations.take(); task !== undefined; task = recommendations.take()) {
      all.push(`${task.key} ${recommendations.taken}`);
    }
    return all;
  };
  const [a, b, c] = ['a', 'b', 'c'].map((key) => cluster.newTask(key)) as [
    TaskState,
    TaskState,
    TaskState,
  ];
  return { recommendations, popped, a, b, c };
}

it('the newest recommendation comes first', () => {
  const { recommendations, popped, a, b } = stack();
  recommendations.recommend(a, 'waiting');
  recommendations.recommend(b, 'released');
  expect(popped()).toEqual(['b released', 'a waiting']);
});

it('a task that is recommended again gets the new target and keeps its place', () => {
  const { recommendations, popped, a, b } = stack();
  recommendations.recommend(a, 'waiting');
  recommendations.recommend(b, 'released');
  recommendations.recommend(a, 'erred');
  expect(popped()).toEqual(['b released', 'a erred']);
});

it('a task that was taken and is recommended again comes first', () => {
  const { recommendations, popped, a, b } = stack();
  recommendations.recommend(a, 'waiting');
  recommendations.recommend(b, 'released');
  expect(recommendations.take()).toBe(b);
  recommendations.recommend(b, 'forgotten');
  expect(popped()).toEqual(['b forgotten', 'a waiting']);
});

it('a withdrawn recommendation is skipped', () => {
  const { recommendations, popped, a, b, c } = stack();
  for (const task of [a, b, c]) recommendations.recommend(task, 'waiting');
  recommendations.withdraw(b);
  recommendations.withdraw(b);
  expect(popped()).toEqual(['c waiting', 'a waiting']);
});

it('the target of a recommendation can be asked until it is taken', () => {
  const { recommendations, a, b } = stack();
  recommendations.recommend(a, 'waiting');
  recommendations.recommend(b, 'released');
  expect(recommendations.targetOf(b)).toBe('released');
  expect(recommendations.take()).toBe(b);
  expect(recommendations.targetOf(b)).toBeUndefined();
  expect(recommendations.targetOf(a)).toBe('waiting');
});
