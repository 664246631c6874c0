import fc from 'fast-check';
import { expect, it } from 'vitest';
import { TaskQueue } from '../../../core/state/task-queue.ts';
import { byPriority, type TaskState } from '../../../core/state/task.ts';
import { SchedulerEnv } from '../../kit/env.ts';

/** Tasks with these ranks. */
function tasksOf(ranks: readonly number[]): TaskState[] {
  const { cluster } = new SchedulerEnv();
  return ranks.map((rank, index) => {
    const task = cluster.newTask(`t-${index}`);
    task.rank = rank;
    return task;
  });
}

function drain(queue: TaskQueue): string[] {
  const keys: string[] = [];
  for (let task = queue.peek(); task !== undefined; task = queue.peek()) {
    keys.push(task.key);
    queue.delete(task);
  }
  return keys;
}

it('tasks leave by priority, however they came in', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(9), fc.boolean())), (steps) => {
      const tasks = tasksOf(steps.map(([rank]) => rank));
      const queue = new TaskQueue();
      const model = new Set<TaskState>();
      steps.forEach(([, isRemoval], index) => {
        const task = tasks[index]!;
        queue.add(task);
        model.add(task);
        if (!isRemoval) return;
        const other = [...model][index % model.size]!;
        expect(queue.delete(other)).toBe(true);
        model.delete(other);
        expect(queue.has(other)).toBe(false);
      });
      const expected = [...model].sort(byPriority);
      expect(queue.size).toBe(model.size);
      expect(queue.sorted()).toEqual(expected);
      expect(drain(queue)).toEqual(expected.map(({ key }) => key));
    }),
  );
});

it('tasks leave by priority, however often they are moved', () => {
  const step = fc.record({ which: fc.nat(11), what: fc.nat(2), priority: fc.nat(4) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const tasks = tasksOf(Array.from({ length: 12 }, (_, rank) => rank));
      const queue = new TaskQueue();
      const model = new Set<TaskState>();
      for (const { which, what, priority } of steps) {
        const task = tasks[which]!;
        if (what === 0) {
          queue.add(task);
          model.add(task);
        } else if (what === 1) {
          expect(queue.delete(task)).toBe(model.delete(task));
        } else {
          queue.reorder(task, () => {
            if (what === 2) task.negatedUserPriority = -priority;
            else task.generation = priority;
          });
        }
        expect(queue.size).toBe(model.size);
        expect(queue.has(task)).toBe(model.has(task));
        expect(queue.peek()).toBe([...model].sort(byPriority)[0]);
      }
      expect(drain(queue)).toEqual([...model].sort(byPriority).map(({ key }) => key));
    }),
  );
});

it('a task is in the queue once', () => {
  const [task] = tasksOf([1]) as [TaskState];
  const queue = new TaskQueue();
  queue.add(task);
  queue.add(task);
  expect(queue.size).toBe(1);
  expect(queue.delete(task)).toBe(true);
  expect(queue.delete(task)).toBe(false);
});

it('an emptied queue takes tasks again', () => {
  const [a, b] = tasksOf([1, 2]) as [TaskState, TaskState];
  const queue = new TaskQueue();
  queue.add(b);
  queue.clear();
  expect([queue.size, queue.has(b), queue.peek()]).toEqual([0, false, undefined]);
  queue.add(b);
  queue.add(a);
  expect(drain(queue)).toEqual(['t-0', 't-1']);
});

it('a queue that never empties does not grow', () => {
  const queue = new TaskQueue();
  const tasks = tasksOf(Array.from({ length: 10_000 }, (_, rank) => rank));
  queue.add(tasks[0]!);
  for (let index = 1; index < tasks.length; index++) {
    queue.add(tasks[index]!);
    queue.delete(queue.peek()!);
  }
  expect(queue.size).toBe(1);
  expect(queue['run'].length).toBeLessThan(3000);
});
