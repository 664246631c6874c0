import { expect, it } from 'vitest';
import type { TaskErredMessage } from '../../../../core/messages/to-client.ts';
import { SchedulerEnv } from '../../../kit/env.ts';
import { numbered } from '../../../kit/graph.ts';

it('tasks that no requested key needs are culled', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: [], b: ['a'], unneeded: ['a'] }, { keys: ['b'] });
  expect(Object.keys(env.states)).toEqual(['a', 'b']);
});

it('a key that depends on something unknown is cancelled, and the others are computed', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ good: [], bad: ['lost'], worse: ['bad'] }, { keys: ['good', 'worse'] });
  expect(env.takeClientMessages()).toEqual([
    {
      op: 'cancelled-keys',
      keys: ['worse'],
      reason: 'it depends on lost, which is neither in the graph nor known to the scheduler',
    },
  ]);
  expect(env.states).toEqual({ good: 'processing w1' });
});

it('tasks that only a lost key needs are not made', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: [], b: ['a', 'lost'] });
  expect(env.takeClient()).toEqual(['cancelled-keys b']);
  expect(env.states).toEqual({});
  env.expectEmpty();
});

it('a known task that only a lost key needs is not computed again', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: [], b: ['a'] });
  env.finishAll('a', 'b');
  expect(env.state('a')).toBe('released');
  env.ignoreMessages();
  env.submit({ late: ['a', 'lost'] });
  expect(env.takeClient()).toEqual(['cancelled-keys late']);
  expect(env.states).toEqual({ a: 'released', b: 'memory w1' });
  env.expectEmpty();
});

it('an unknown requested key is cancelled', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: [] }, { keys: ['a', 'nobody'] });
  expect(env.takeClient()).toEqual(['cancelled-keys nobody']);
});

it('an unknown task without a run spec is lost, not waited for', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: { runSpec: undefined }, b: ['a'] });
  expect(env.takeClient()).toEqual(['cancelled-keys b']);
  expect(env.states).toEqual({});
});

it('a cycle fails the requested keys and names the cycle', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: ['c'], b: ['a'], c: ['b'], d: ['c'] }, { keys: ['d'] });
  const [message] = env.takeClientMessages() as [TaskErredMessage];
  expect(message).toMatchObject({ op: 'task-erred', key: 'd' });
  expect(message.failure.exception).toMatchObject({ code: 'ERR_GRAPH_CYCLE' });
  expect(message.failure.exceptionText).toContain('c -> b -> a -> c');
  expect(env.states).toEqual({});
  env.expectEmpty();
});

it('a task that depends on itself is a cycle', () => {
  const env = new SchedulerEnv();
  env.submit({ a: ['a'] }, { keys: ['a'] });
  const [message] = env.takeClientMessages() as [TaskErredMessage];
  expect(message.failure.exceptionText).toContain('a -> a');
});

it('a cycle that no requested key needs is culled', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: ['b'], b: ['a'], c: [] }, { keys: ['c'] });
  expect(env.states).toEqual({ c: 'processing w1' });
});

it('a dependency may be known to the cluster only', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: [] });
  env.finish('a');
  env.submit({ b: ['a'] });
  expect(env.states).toEqual({ a: 'memory w1', b: 'processing w1' });
});

it('a dependency that is named twice counts once', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: [], b: ['a', 'a'] });
  env.finish('a');
  expect(env.takeWorker('w1')).toEqual(['compute-task a', 'compute-task b (a on w1)']);
});

it('a known key keeps its first definition, and the collision is reported', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: [], b: ['a'] });
  env.submit({ other: [], b: ['other'] });
  expect(env.task('b').dependencies.map(({ key }) => key)).toEqual(['a']);
  expect(env.takeEvents()).toMatchObject([
    { topic: 'scheduler', message: { action: 'key-collision', key: 'b' } },
  ]);
  expect(Object.keys(env.states)).toEqual(['a', 'b']);
});

it('a result that is read from a store needs no inputs, so that it is no collision without them', () => {
  const persist = { store: { folder: '/results' }, key: 'hash' };
  const computed = { runSpec: { persist } };
  const kept = { runSpec: { persist: { ...persist, isKept: true } } };
  for (const [first, second] of [
    [{ a: [], b: { deps: ['a'], ...computed } }, { b: { deps: [], ...kept } }],
    [{ b: { deps: [], ...kept } }, { a: [], b: { deps: ['a'], ...computed } }],
  ] as const) {
    const env = new SchedulerEnv();
    env.addWorkers(1);
    env.submit(first);
    env.submit(second);
    expect(env.takeEvents()).toEqual([]);
  }
});

it('the same definition once more is no collision', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: [], b: ['a'] });
  env.submit({ a: [], b: ['a'] });
  expect(env.takeEvents()).toEqual([]);
  expect(env.takeWorker('w1')).toEqual(['compute-task a']);
});

it('a key that is in memory already is reported at once and not computed again', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: [] });
  env.finish('a');
  env.ignoreMessages();
  env.submit({ a: [] }, { client: 'd' });
  expect(env.takeClient('d')).toEqual(['key-in-memory a on w1']);
  env.expectEmpty();
});

it('a key that failed already is reported at once', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: [], b: ['a'] });
  env.fail('a');
  env.ignoreMessages();
  env.submit({ a: [], b: ['a'] }, { client: 'd' });
  expect(env.takeClient('d')).toEqual(['task-erred b because of a']);
  env.expectEmpty();
});

it('a new task on top of a failed one fails at once with the same blame', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: [] });
  env.fail('a');
  env.ignoreMessages();
  env.submit({ b: ['a'], c: ['b'] });
  expect(env.takeClient()).toEqual(['task-erred c because of a']);
  expect(env.states).toEqual({ a: 'erred', b: 'erred', c: 'erred' });
});

it('data in memory stays data when a graph defines its key', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.scatter({ x: ['w1'] });
  env.submit({ x: { runSpec: 'recompute x' } });
  expect(env.states).toEqual({ x: 'memory w1' });
  expect(env.task('x').runSpec).toBeUndefined();
  expect(env.takeWorker('w1')).toEqual([]);
});

it('a released task is computed again when a client wants it', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: [], b: ['a'] });
  env.finishAll('a', 'b');
  expect(env.state('a')).toBe('released');
  env.ignoreMessages();
  env.submit({ a: [] });
  expect(env.takeWorker('w1')).toEqual(['compute-task a']);
});

it('restrictions are read: an entry with a colon is an address, another one a name', () => {
  const env = new SchedulerEnv();
  const graph = { a: { workers: ['tcp://w1:1', 'h'], hosts: ['i'], resources: { gpu: 2 } } };
  env.submit(graph);
  expect(env.task('a').restrictions).toEqual({
    workers: new Set(['tcp://w1:1']),
    names: new Set(['h']),
    hosts: new Set(['i']),
    resources: new Map([['gpu', 2]]),
    loose: false,
  });
});

it('empty restrictions are none', () => {
  const env = new SchedulerEnv();
  env.submit({ a: { workers: [], resources: {} } });
  expect(env.task('a').restrictions).toBeUndefined();
});

it('annotations travel with the task', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: { annotations: { colour: 'red' } } });
  expect(env.takeWorkerMessages('w1')).toMatchObject([{ annotations: { colour: 'red' } }]);
});

it('an empty graph is nothing', () => {
  const env = new SchedulerEnv();
  env.submit({});
  expect(env.states).toEqual({});
  env.expectEmpty();
});

it('a chain of 20 000 tasks is taken without recursion', () => {
  const env = new SchedulerEnv({ kernel: { validate: false } });
  env.addWorkers(1);
  const chain = Object.entries(numbered('k', 20_000)).map(([key], index): [string, string[]] => [
    key,
    index === 0 ? [] : [`k-${index - 1}`],
  ]);
  env.submit(Object.fromEntries(chain));
  expect(env.takeWorker('w1')).toEqual(['compute-task k-0']);
  env.cancel(['k-19999']);
  expect(env.cluster.tasks.size).toBe(0);
});

it('what was started for a task that cannot be computed is given up', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ bad: [] });
  env.fail('bad');
  env.ignoreMessages();
  env.submit({ a: [], b: { deps: ['a', 'bad'], userPriority: 1 } });
  expect(env.takeClient()).toEqual(['task-erred b because of bad']);
  expect(env.states).toEqual({ bad: 'erred', a: 'released', b: 'erred' });
});

it('a refused graph does not fail a key that its client already gets', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: [], b: [] });
  env.finish('b');
  env.ignoreMessages();
  env.submit({ c: ['d'], d: ['c'] }, { keys: ['a', 'b', 'c'] });
  expect(env.takeClient()).toEqual(['key-in-memory b on w1', 'task-erred c because of c']);
  env.finish('a');
  expect(env.takeClient()).toEqual(['key-in-memory a on w1']);
});

it('a graph that names a taken key twice leaves nothing of itself, and loses only what needs that key', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  const task = (key: string, definition: string, dependencies: string[] = []) => ({
    key,
    dependencies,
    runSpec: { definition },
  });
  env.send({ op: 'update-graph', client: 'c', tasks: [task('a', 'first')], keys: ['a'] });
  env.ignoreMessages();
  const tasks = [
    task('a', 'other'),
    task('b', 'mine', ['a']),
    task('free', 'mine'),
    task('a', 'other'),
  ];
  env.send({ op: 'update-graph', client: 'd', tasks, keys: ['a', 'b', 'free', 'a'] });
  expect(env.takeClientMessages('d')).toMatchObject([
    { op: 'cancelled-keys', keys: ['a'], taken: 'a' },
    { op: 'cancelled-keys', keys: ['b'], taken: 'a' },
    { op: 'cancelled-keys', keys: ['a'], taken: 'a' },
  ]);
  expect(Object.keys(env.states)).toEqual(['a', 'free']);
  env.release('a');
  env.send({ op: 'remove-client', client: 'd' });
  expect(env.states).toEqual({});
});

it('a client that submits a taken key does not want any more what it wanted of that key', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  const graphOf = (definition: string) => [{ key: 'a', dependencies: [], runSpec: { definition } }];
  env.send({ op: 'update-graph', client: 'd', tasks: graphOf('first'), keys: ['a'] });
  env.desire('a');
  env.send({ op: 'update-graph', client: 'c', tasks: graphOf('other'), keys: ['a'] });
  expect(env.takeClientMessages()).toMatchObject([{ op: 'cancelled-keys', taken: 'a' }]);
  env.send({ op: 'remove-client', client: 'd' });
  expect(env.states).toEqual({});
});
