import fc from 'fast-check';
import { expect, it } from 'vitest';
import { direct } from '../../../policies/queuing/direct.ts';
import { localityFirst } from '../../../policies/worker-selection/locality-first.ts';
import { SchedulerEnv } from '../../kit/env.ts';
import { numbered, type TerseGraph } from '../../kit/graph.ts';
import { made } from '../../kit/made.ts';

function cluster(
  workers: number,
  options: Partial<Parameters<typeof localityFirst.create>[0]> = {},
): SchedulerEnv {
  const workerSelection = made(localityFirst, { sources: 'ranges', ...options });
  const env = new SchedulerEnv({ policies: { workerSelection, queuing: made(direct) } });
  env.addWorkers(workers);
  return env;
}

/** Names of the workers of numbered tasks. */
function where(env: SchedulerEnv, prefix: string, count: number): string {
  return Array.from(
    { length: count },
    (_, n) => env.task(`${prefix}-${n}`).processingOn?.name,
  ).join(' ');
}

it('a task goes to the worker with the most bytes of its inputs, however busy it is', () => {
  const env = cluster(3);
  env.scatter({ x: ['w1'], y: ['w2'], z: ['w2'] });
  for (let n = 0; n < 9; n++) env.submit({ [`load${n}-x`]: { workers: ['w2'] } });
  env.submit({ a: ['x', 'y', 'z'] });
  expect(env.states).toMatchObject({ a: 'processing w2' });
});

it('a faster worker takes a task when it gains more than twice the time of the transfer', () => {
  const place = (nbytes: number): string => {
    const env = cluster(2);
    for (let count = 0; count < 20; count++) env.worker('w1').pacing.learn(Math.log(3));
    env.scatter({ x: ['w1'] }, 'c', nbytes);
    env.submit({ a: ['x'] });
    return env.states['a'] as string;
  };
  // A task of half a second takes a second longer on the slow one, and 100 MB take a second.
  expect(place(40e6)).toBe('processing w2');
  expect(place(60e6)).toBe('processing w1');
});

it('a task leaves the holder of its inputs when it is fuller than that is worth', () => {
  const place = (held: number): string => {
    const env = cluster(0);
    for (const name of ['w1', 'w2']) env.addWorker(name, { memoryLimitBytes: 100e6 });
    env.scatter({ x: ['w1'] }, 'c', 10e6);
    env.scatter({ y: ['w1'] }, 'c', held);
    env.submit({ a: ['x'] });
    return env.states['a'] as string;
  };
  // Twice the way of 10 MB costs less than what is held beyond 60 MB.
  expect(place(69e6)).toBe('processing w1');
  expect(place(72e6)).toBe('processing w2');
});

it('equal bytes go to the least busy worker by threads, then to the first', () => {
  const env = cluster(1);
  env.addWorker('w2', { threads: 4 });
  env.addWorker('w3', { threads: 4 });
  env.scatter({ x: ['w1', 'w2', 'w3'] });
  env.submit({ a: ['x'] });
  expect(env.states).toMatchObject({ a: 'processing w1' });
  env.submit({ b: ['x'] });
  expect(env.states).toMatchObject({ b: 'processing w2' });
});

it('sources that meet downstream share a worker', () => {
  const env = cluster(2);
  // In the order of submission the partners are far from each other.
  const pairs: TerseGraph = Object.fromEntries(
    Array.from({ length: 4 }, (_, n) => [`pair-${n}`, [`s-${n}`, `s-${n + 4}`]]),
  );
  env.submit({ ...numbered('s', 8), ...pairs });
  const workers = where(env, 's', 8).split(' ');
  for (let n = 0; n < 4; n++) expect(workers[n]).toBe(workers[n + 4]);
  expect(workers.filter((name) => name === 'w1')).toHaveLength(4);
});

it('a chain of overlaps is cut into one piece for each worker', () => {
  const env = cluster(3);
  const overlaps: TerseGraph = Object.fromEntries(
    Array.from({ length: 8 }, (_, n) => [`o-${n}`, [`s-${n}`, `s-${n + 1}`]]),
  );
  env.submit({ ...numbered('s', 9), ...overlaps });
  expect(where(env, 's', 9)).toBe('w1 w1 w1 w2 w2 w2 w3 w3 w3');
});

it('workers get sources in proportion to their threads, less what they have to do already', () => {
  const env = cluster(1);
  env.addWorker('w2', { threads: 3 });
  env.submit(numbered('a', 8));
  expect(where(env, 'a', 8)).toBe('w2 w2 w2 w2 w2 w2 w1 w1');
  env.addWorker('w3', { threads: 4 });
  env.submit(numbered('b', 8));
  expect(where(env, 'b', 8)).toBe('w3 w3 w3 w3 w3 w3 w3 w3');
});

it('a source whose worker is gone goes elsewhere', () => {
  const env = cluster(2);
  env.submit({ gate: [], ...numbered('s', 4) });
  env.removeWorker('w2');
  expect(where(env, 's', 4)).toBe('w1 w1 w1 w1');
});

it('without ranges sources go to the least occupied worker', () => {
  const env = cluster(2, { sources: 'turns' });
  const graph = { ...numbered('s', 4), left: ['s-0', 's-1'], right: ['s-2', 's-3'] };
  env.submit(graph);
  expect(where(env, 's', 4)).toBe('w1 w2 w1 w2');
});

it('a policy that is put into place later knows the graphs that are there', () => {
  const env = new SchedulerEnv({ policies: { queuing: made(direct) } });
  const graph = { ...numbered('s', 4), left: ['s-0', 's-3'], right: ['s-1', 's-2'] };
  env.submit({ gate: { workers: ['w9'] }, ...numbered('t', 2, ['gate']) });
  env.submit(graph);
  const { ports } = env.kernel['scope'];
  const workerSelection = { name: 'locality-first', policy: made(localityFirst) };
  env.kernel.replacePorts({ ...ports, workerSelection });
  env.addWorkers(2);
  expect(env.policyFailures).toEqual([]);
  expect(['s-0', 's-1', 's-2', 's-3'].map((key) => env.state(key))).not.toContain('no-worker');
});

it('every source of any graph is placed, and no worker gets more than its share', () => {
  const edges = fc.array(fc.array(fc.nat(40), { maxLength: 3 }), { minLength: 2, maxLength: 40 });
  fc.assert(
    fc.property(edges, fc.integer({ min: 1, max: 7 }), (graph, workers) => {
      const env = cluster(workers);
      const tasks = graph.map((targets, index): [string, string[]] => [
        `k${index}x`,
        [...new Set(targets)].filter((n) => n < index).map((n) => `k${n}x`),
      ]);
      env.submit(Object.fromEntries(tasks), { keys: tasks.map(([key]) => key) });
      const sources = tasks.filter(([, dependencies]) => dependencies.length === 0);
      const counts = new Map<string, number>();
      for (const [key] of sources) {
        const name = env.task(key).processingOn!.name;
        counts.set(name, (counts.get(name) ?? 0) + 1);
      }
      const share = Math.ceil(sources.length / workers);
      expect(Math.max(...counts.values())).toBeLessThanOrEqual(share);
    }),
    { numRuns: 50 },
  );
});

it('a hub of 20 000 sources and 20 000 single ones are divided evenly', () => {
  const env = new SchedulerEnv({
    kernel: { validate: false },
    policies: { workerSelection: made(localityFirst), queuing: made(direct) },
  });
  env.addWorkers(50);
  const hub = Object.keys(numbered('s', 20_000));
  env.kernel.handle(
    {
      op: 'update-graph',
      stimulusId: 'one',
      client: 'c',
      keys: ['hub', ...Object.keys(numbered('t', 20_000))],
      tasks: [
        ...[...hub, ...Object.keys(numbered('t', 20_000))].map((key) => {
          return { key, dependencies: [], runSpec: 0 };
        }),
        { key: 'hub', dependencies: hub, runSpec: 0 },
      ],
    },
    0,
  );
  const sizes = [...env.cluster.running].map((worker) => worker.processing.size);
  expect(new Set(sizes)).toEqual(new Set([800]));
});
