import { expect, it } from 'vitest';
import { ProcessingSet } from '../../core/state/processing-set.ts';
import type { TaskState } from '../../core/state/task.ts';
import { SchedulerEnv } from '../kit/env.ts';

function tasks(count: number): TaskState[] {
  const { cluster } = new SchedulerEnv();
  return Array.from({ length: count }, (_, n) => cluster.newTask(`t-${n}`));
}

it('tasks come in the order in which they were added, whoever left in between', () => {
  const set = new ProcessingSet();
  const all = tasks(100);
  for (const task of all) set.add(task);
  const left = all.filter((_, n) => n % 7 === 3);
  for (const task of all) if (!left.includes(task)) set.delete(task);
  expect([...set]).toEqual(left);
  expect(set.size).toBe(left.length);
  expect(all.filter((task) => set.has(task))).toEqual(left);
});

it('a task that left and comes again is the last one', () => {
  const set = new ProcessingSet();
  const [a, b, c] = tasks(3) as [TaskState, TaskState, TaskState];
  for (const task of [a, b, c]) set.add(task);
  set.delete(b);
  set.add(b);
  expect([...set]).toEqual([a, c, b]);
});
