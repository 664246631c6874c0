import { expect, it } from 'vitest';
import { RunTable } from '../../../core/state/cluster.ts';
import type { TaskState } from '../../../core/state/task.ts';
import { SchedulerEnv } from '../../kit/env.ts';

function assigned(runIds: readonly number[]): TaskState[] {
  const { cluster } = new SchedulerEnv();
  return runIds.map((runId) => {
    const task = cluster.newTask(`t-${runId}`);
    task.runId = runId;
    return task;
  });
}

it('an assignment is found by run id and key, until it ends', () => {
  const table = new RunTable();
  const [task] = assigned([5]) as [TaskState];
  table.add(task);
  expect(table.find(5, 't-5')).toBe(task);
  expect(table.find(5, 'another')).toBeUndefined();
  expect(table.find(6, 't-5')).toBeUndefined();
  table.delete(task);
  expect(table.find(5, 't-5')).toBeUndefined();
});

it('the table grows with the assignments that are alive at once', () => {
  const table = new RunTable();
  const tasks = assigned(Array.from({ length: 5000 }, (_, n) => n));
  for (const task of tasks) table.add(task);
  expect(tasks.every((task) => table.find(task.runId, task.key) === task)).toBe(true);
});

it('an assignment that outlives the table gives its place to a newer one', () => {
  const table = new RunTable();
  const [old, young] = assigned([3, 3 + 2 ** 24]) as [TaskState, TaskState];
  for (const task of [old, young]) table.add(task);
  expect(table.find(young.runId, young.key)).toBe(young);
  expect(table.find(old.runId, old.key)).toBeUndefined();
  table.delete(old);
  expect(table.find(young.runId, young.key)).toBe(young);
});
