import { expect, it } from 'vitest';
import type { GraphTask } from '../../../../core/messages/stimulus.ts';
import { GraphWalk } from '../../../../core/kernel/graph-intake.ts';
import { setTaskState } from '../../../../core/state/relations.ts';
import { SchedulerEnv } from '../../../kit/env.ts';
import { graphTasks, type TerseGraph } from '../../../kit/graph.ts';

function walkThrough(
  env: SchedulerEnv,
  tasks: readonly GraphTask[],
  keys: readonly string[],
): GraphWalk {
  const walk = new GraphWalk(env.cluster, tasks, keys);
  walk.enlist(0, tasks.length);
  walk.resolve(0, tasks.length);
  walk.advance(Infinity);
  walk.cull(0, tasks.length);
  return walk;
}

function plan(graph: TerseGraph, keys: readonly string[], env = new SchedulerEnv()) {
  const tasks = graphTasks(graph);
  const { order, lost, cycle, outside, keys: kept } = walkThrough(env, tasks, keys);
  return {
    order: [...order].map((index) => tasks[index]!.key).join(' '),
    outside: [...outside].map(({ key }) => key),
    kept,
    lost,
    cycle,
  };
}

it('dependencies come before their dependents, depth first', () => {
  const graph = { top: ['left', 'right'], left: ['base'], right: ['base'], base: [] };
  expect(plan(graph, ['top']).order).toBe('base left right top');
});

it('only what the requested keys need is in the order', () => {
  expect(plan({ a: [], b: ['a'], c: ['b'], d: [] }, ['b']).order).toBe('a b');
});

it('every lost key is listed with the first thing that it lacks', () => {
  const graph = { a: ['lost'], b: ['a'], c: ['b'], d: [] };
  const { order, kept, lost } = plan(graph, ['c', 'd', 'b']);
  expect(lost).toEqual([
    { key: 'c', missing: 'lost' },
    { key: 'b', missing: 'lost' },
  ]);
  expect(kept).toEqual(['d']);
  expect(order).toBe('d');
});

it('a task that a lost and a good key share is kept', () => {
  const graph = { shared: [], good: ['shared'], bad: ['shared', 'lost'] };
  expect(plan(graph, ['bad', 'good']).order).toBe('shared good');
});

it('dependencies outside of the graph are found in the cluster', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: [] });
  expect(plan({ b: ['a'] }, ['b'], env)).toMatchObject({ order: 'b', outside: ['a'] });
});

it('a known task needs nothing from the graph', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: [], b: ['a'] });
  expect(plan({ b: ['other'], other: [] }, ['b'], env).order).toBe('b');
});

it('the cycle is reported from where it was entered, each key depending on the next', () => {
  expect(plan({ a: ['b'], b: ['c'], c: ['d'], d: ['b'] }, ['a']).cycle).toEqual([
    'b',
    'c',
    'd',
    'b',
  ]);
});

it('a diamond is no cycle', () => {
  expect(plan({ a: [], b: ['a'], c: ['a'], d: ['b', 'c'] }, ['d']).cycle).toBeUndefined();
});

it('a graph with a cycle leaves neither tasks nor groups', () => {
  const env = new SchedulerEnv();
  plan({ a: ['b'], b: ['c'], c: ['b'], 'other-1': [] }, ['a'], env);
  expect(env.cluster.tasks.size).toBe(0);
  expect(env.cluster.groups.size).toBe(0);
});

it('what is culled or lost leaves neither tasks nor groups, what is kept has both', () => {
  const env = new SchedulerEnv();
  plan({ a: [], 'culled-1': ['a'], 'lost-1': ['nowhere'] }, ['a', 'lost-1'], env);
  expect([...env.cluster.tasks.keys()]).toEqual(['a']);
  expect([...env.cluster.groups.keys()]).toEqual(['a']);
});

it('of two tasks with one key the last one counts', () => {
  const env = new SchedulerEnv();
  const [first, other] = graphTasks({ a: [], b: [] });
  const second = { ...first!, dependencies: ['b'] };
  const { order, states } = walkThrough(env, [first!, other!, second], ['a']);
  expect([...order]).toEqual([1, 2]);
  expect([...order].map((index) => states[index]!.key)).toEqual(['b', 'a']);
  expect(env.cluster.tasks.size).toBe(2);
});

it('a task that was forgotten since its dependents were resolved is missing, or another graph has created it', () => {
  const env = new SchedulerEnv();
  const tasks = graphTasks({ gone: [], again: [], a: ['gone'], b: ['again'] });
  const walk = new GraphWalk(env.cluster, tasks, ['a', 'b']);
  walk.enlist(0, 4);
  walk.resolve(0, 4);
  for (const key of ['gone', 'again']) {
    const task = env.cluster.tasks.get(key)!;
    setTaskState(task, 'forgotten');
    env.cluster.removeTask(task);
  }
  const again = env.cluster.newTask('again');
  again.runSpec = 'again';
  walk.advance(Infinity);
  expect(walk.lost).toEqual([{ key: 'a', missing: 'gone' }]);
  expect(walk.outside).toEqual([again]);
  expect(walk.dependencyAt(1)).toBe(again);
});

it('walking in steps of any length gives what walking in one go gives', () => {
  const graph = { a: [], b: ['a'], bad: ['b', 'lost'], c: ['a', 'b'], top: ['c', 'b'] };
  const tasks = graphTasks(graph);
  for (let stepsMax = 1; stepsMax < 12; stepsMax++) {
    const walk = new GraphWalk(new SchedulerEnv().cluster, tasks, ['bad', 'top']);
    walk.enlist(0, tasks.length);
    walk.resolve(0, tasks.length);
    while (!walk.advance(stepsMax));
    expect([...walk.order].map((index) => tasks[index]!.key).join(' ')).toBe('a b c top');
    expect(walk.lost).toEqual([{ key: 'bad', missing: 'lost' }]);
  }
});
