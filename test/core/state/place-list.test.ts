import { expect, it } from 'vitest';
import { ProcessingList, ReplicaList } from '../../../core/state/relations.ts';
import type { TaskState } from '../../../core/state/task.ts';
import { SchedulerEnv } from '../../kit/env.ts';

function tasks(count: number): TaskState[] {
  const { cluster } = new SchedulerEnv();
  return Array.from({ length: count }, (_, n) => cluster.newTask(`t-${n}`));
}

it('tasks come in the order in which they were added, whichever tasks left in between', () => {
  const set = new ProcessingList();
  const all = tasks(100);
  for (const task of all) set.add(task);
  const left = all.filter((_, n) => n % 7 === 3);
  for (const task of all) if (!left.includes(task)) set.delete(task);
  expect([...set]).toEqual(left);
  expect(set.size).toBe(left.length);
  expect(all.filter((task) => set.has(task))).toEqual(left);
});

it('a task that left and comes again is the last one', () => {
  const set = new ProcessingList();
  const [a, b, c] = tasks(3) as [TaskState, TaskState, TaskState];
  for (const task of [a, b, c]) set.add(task);
  set.delete(b);
  set.add(b);
  expect([...set]).toEqual([a, c, b]);
});

it('copies of a task on several workers are found, dropped and moved independently', () => {
  const lists = [new ReplicaList(), new ReplicaList(), new ReplicaList()];
  const all = tasks(60);
  const holds = lists.map(() => new Set<TaskState>());
  let seed = 7;
  const random = (below: number): number =>
    (seed = (seed * 1103515245 + 12345) & 0x7fffffff) % below;
  for (let step = 0; step < 5000; step++) {
    const n = random(lists.length);
    const task = all[random(all.length)]!;
    const [list, expected] = [lists[n]!, holds[n]!];
    if (expected.has(task)) {
      expected.delete(task);
      expect(list.delete(task)).toBe(true);
    } else {
      expected.add(task);
      list.add(task);
    }
    expect(list.size).toBe(expected.size);
  }
  lists.forEach((list, n) => {
    expect([...list]).toEqual([...holds[n]!]);
    expect(all.filter((task) => list.has(task)).length).toBe(list.size);
  });
});

it('deleting what is not there says so', () => {
  const list = new ReplicaList();
  const [a, b] = tasks(2) as [TaskState, TaskState];
  list.add(a);
  expect(list.delete(b)).toBe(false);
  expect(list.delete(a)).toBe(true);
  expect(list.size).toBe(0);
});
