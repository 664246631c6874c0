import { expect, it } from 'vitest';
import { DependencyGuess } from '../../../../core/kernel/graph-table.ts';
import type { TaskState } from '../../../../core/state/task.ts';
import { SchedulerEnv } from '../../../kit/env.ts';

function graph(count: number): TaskState[] {
  const { cluster } = new SchedulerEnv();
  return Array.from({ length: count }, (_, index) => {
    const task = cluster.newTask(`t-${index}`);
    task.graphIndex = index;
    return task;
  });
}

/** Goes through lists of dependencies, and says which of them were guessed. */
function guessed(states: readonly TaskState[], lists: readonly number[][]): (number | undefined)[] {
  const guess = new DependencyGuess(states);
  return lists.flatMap((list) => {
    let before: number | undefined;
    return list.map((index) => {
      const found = guess.find(`t-${index}`, before);
      guess.learn(index, before);
      before = index;
      return found?.graphIndex;
    });
  });
}

it('evenly spaced dependencies of one task are guessed from the second distance on', () => {
  expect(guessed(graph(40), [[3, 10, 17, 24, 31]])).toEqual([
    undefined,
    undefined,
    undefined,
    24,
    31,
  ]);
});

it('first dependencies of tasks that follow each other are guessed, whatever is between them', () => {
  const lists = [[5], [6, 20], [7, 30], [8, 25]];
  const found = guessed(graph(40), lists);
  expect(found.filter((index) => index !== undefined)).toEqual([8]);
});

it('no guess is made after a wrong one, and none is ever wrong', () => {
  const lists = [[1], [2], [3], [11], [12], [13], [14]];
  const none = undefined;
  // 11 was guessed to be 4: its key said otherwise.
  expect(guessed(graph(20), lists)).toEqual([none, none, 3, none, none, none, 14]);
});

it('no task is guessed beyond the graph, and none that was forgotten', () => {
  const states = graph(5);
  states[3]!.state = 'forgotten';
  const none = undefined;
  expect(guessed(states, [[1], [2], [3], [4], [5]])).toEqual([none, none, none, 4, none]);
});
