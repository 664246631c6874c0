import { expect, it } from 'vitest';
import { SchedulerEnv } from '../../../kit/env.ts';

/** Submits a task that names these dependencies, of which those that begin with `known` are there already. */
function dependenciesOf(names: readonly string[]): readonly string[] {
  const env = new SchedulerEnv();
  const distinct = [...new Set(names)];
  const known = distinct.filter((name) => name.startsWith('known'));
  if (known.length > 0) {
    const tasks = known.map((key) => ({ key, dependencies: [], runSpec: 1 }));
    env.send({ op: 'update-graph', client: 'c', tasks, keys: known });
  }
  const fresh = distinct.filter((name) => !known.includes(name));
  const tasks = fresh.map((key) => ({ key, dependencies: [] as readonly string[], runSpec: 1 }));
  tasks.push({ key: 'x', dependencies: names, runSpec: 1 });
  env.send({ op: 'update-graph', client: 'c', tasks, keys: ['x'] });
  return env.task('x').dependencies.map(({ key }) => key);
}

it.each([
  [['a', 'a'], ['a']],
  [
    ['a', 'b', 'a'],
    ['a', 'b'],
  ],
  [
    ['a', 'b', 'c', 'd', 'e', 'f', 'b'],
    ['a', 'b', 'c', 'd', 'e', 'f'],
  ],
  [
    ['known-1', 'a', 'known-1'],
    ['known-1', 'a'],
  ],
  [
    ['known-1', 'a', 'b', 'c', 'known-2', 'd', 'known-1', 'a'],
    ['known-1', 'a', 'b', 'c', 'known-2', 'd'],
  ],
])('%j names each dependency once, in the order in which they came', (names, distinct) => {
  expect(dependenciesOf(names)).toEqual(distinct);
});

it('long lists without duplicates are kept as they are', () => {
  const names = ['known-1', 'b', 'c', 'known-2', 'e', 'f', 'known-3'];
  expect(dependenciesOf(names)).toEqual(names);
});

it('tasks that need the same single result share the list of it', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit(
    { a: [], b: ['a'], c: ['a'], d: ['b'], e: ['a', 'b'] },
    { keys: ['b', 'c', 'd', 'e'] },
  );
  expect(env.task('c').dependencies).toBe(env.task('b').dependencies);
  expect(env.task('d').dependencies).toEqual([env.task('b')]);
  expect(env.task('e').dependencies).toEqual([env.task('a'), env.task('b')]);
  expect(env.task('a').dependents.map(({ key }) => key)).toEqual(['b', 'c', 'e']);
});

it('a task that loses the result of a shared list leaves the list to the others', () => {
  const env = new SchedulerEnv();
  env.addWorker('w');
  env.scatter({ data: ['w'] });
  env.submit({ b: ['data'], c: ['data'], d: ['c', 'b'] }, { keys: ['b', 'c', 'd'] });
  env.finishAll('b', 'c');
  const list = env.task('b').dependencies;
  const data = env.task('data');
  env.removeWorker('w');
  expect(list).toEqual([data]);
  env.ignoreMessages();
});
