import { expect, it } from 'vitest';
import type { GraphTask } from '../../../core/messages/stimulus.ts';
import type { KnownPrefix } from '../../../core/state/groups.ts';
import { direct } from '../../../policies/queuing/direct.ts';
import { localityFirst } from '../../../policies/worker-selection/locality-first.ts';
import { mars as marsOrdering } from '../../../policies/ordering/mars.ts';
import { mars } from '../../../policies/queuing/mars.ts';
import { makePorts } from '../../kit/ports.ts';
import { SimulatedCluster } from '../../kit/simulated-cluster.ts';
import { made } from '../../kit/made.ts';

const UNIT_MS = 100;

function cluster(
  workers: readonly number[],
  options: Partial<Parameters<typeof mars.create>[0]> = {},
): SimulatedCluster {
  return new SimulatedCluster({
    workers,
    validate: true,
    durationMs: () => UNIT_MS,
    nbytes: () => 1000,
    policies: { queuing: made(mars, options), ordering: made(marsOrdering) },
  });
}

type Shape = Readonly<Record<string, readonly string[]>>;

function graph(shape: Shape, sizes: Readonly<Record<string, number>> = {}): GraphTask[] {
  return Object.entries(shape).map(([key, dependencies]) => ({
    key,
    dependencies,
    runSpec: key,
    ...(sizes[key] === undefined ? {} : { annotations: { outputBytes: sizes[key] } }),
  }));
}

/** Numbers that look random and are the same each time. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1664525 + 1013904223) % 2 ** 32;
    return state / 2 ** 32;
  };
}

function randomGraph(seed: number, count: number): GraphTask[] {
  const random = randomFrom(seed);
  const keys = Array.from({ length: count }, (_, index) => `t${index}`);
  return keys.map((key, index) => {
    const wanted = random() < 0.3 ? 0 : Math.floor(1 + 3 * random());
    const inputs = Array.from({ length: Math.min(wanted, index) }, () => {
      return keys[Math.floor(index * random())]!;
    });
    const annotations = { outputBytes: Math.floor(5 * random()) };
    return { key, dependencies: [...new Set(inputs)], runSpec: key, annotations };
  });
}

/** The rules as the document states them: smaller runs earlier. */
function rulesOf(tasks: readonly GraphTask[]): Map<string, readonly number[]> {
  const depths = new Map<string, number>();
  const deepest = new Map<string, number>();
  for (const { key, dependencies } of tasks) {
    const depth = Math.max(0, ...dependencies.map((input) => 1 + depths.get(input)!));
    depths.set(key, depth);
    for (const input of dependencies) {
      deepest.set(input, Math.max(deepest.get(input) ?? 0, depth));
    }
  }
  return new Map(
    tasks.map(({ key, annotations }) => [
      key,
      [-depths.get(key)!, -(deepest.get(key) ?? 0), (annotations?.['outputBytes'] ?? 0) as number],
    ]),
  );
}

function compare(a: readonly number[], b: readonly number[]): number {
  const at = a.findIndex((value, index) => value !== b[index]);
  return at < 0 ? 0 : a[at]! - b[at]!;
}

/** Tasks that were sent while one that is better by the rules was ready. */
function breaches(tasks: readonly GraphTask[], sent: readonly string[]): string[] {
  const rules = rulesOf(tasks);
  const done = new Set<string>();
  return sent.filter((key) => {
    const ready = tasks.filter((task) => {
      return !done.has(task.key) && task.dependencies.every((input) => done.has(input));
    });
    done.add(key);
    return ready.some((task) => compare(rules.get(task.key)!, rules.get(key)!) < 0);
  });
}

it.each([
  ...[1, 2, 3, 4, 5, 6].map((seed) => [seed, 'turns'] as const),
  ...[7, 8].map((seed) => [seed, 'ranges'] as const),
])(
  'on one worker of one thread every pick of graph %i obeys the rules, with sources by %s',
  (seed, sources) => {
    const tasks = randomGraph(seed, 168);
    const simulation = cluster([1], { sources });
    simulation.submit(tasks, { keys: tasks.map(({ key }) => key) });
    simulation.run();
    expect(simulation.executed).toHaveLength(168);
    expect(breaches(tasks, simulation.executed)).toEqual([]);
  },
);

/** The figure of the document: pairs of eight chunks are reduced to one. */
const TREE: Shape = {
  ...Object.fromEntries(Array.from({ length: 8 }, (_, index) => [`a${index}`, []])),
  ...Object.fromEntries(
    Array.from({ length: 4 }, (_, n) => [`b${n}`, [`a${2 * n}`, `a${2 * n + 1}`]]),
  ),
  c0: ['b0', 'b1'],
  c1: ['b2', 'b3'],
  d: ['c0', 'c1'],
};

/** Results that are stored when this many tasks have run. */
function stored(simulation: SimulatedCluster, executed: number): number {
  let atMs = 0;
  while (simulation.executed.length < executed) simulation.run(++atMs);
  simulation.run(atMs + 20);
  return [...simulation.kernel.cluster.tasks.values()].filter(({ state }) => state === 'memory')
    .length;
}

it('after five units on two workers two chunks of the tree are stored, not six', () => {
  const simulation = cluster([1, 1]);
  simulation.submit(graph(TREE));
  expect(stored(simulation, 10)).toBe(2);
});

it('a worker gets a task when a thread is free, and not before', () => {
  const simulation = cluster([2, 1]);
  simulation.submit(graph(TREE));
  const workers = [...simulation.kernel.cluster.workers.values()];
  const most = workers.map(() => 0);
  for (let atMs = 0; simulation.executed.length < 15; atMs++) {
    simulation.run(atMs);
    workers.forEach(({ processing }, index) => {
      most[index] = Math.max(most[index]!, processing.size);
    });
  }
  expect(most).toEqual([2, 1]);
});

it('a priority that changes while the task is queued counts', () => {
  const simulation = cluster([1]);
  simulation.submit(graph({ a: [], b: [], c: [], d: [] }));
  simulation.run(50);
  simulation.stimulate({
    op: 'set-priority',
    client: 'c',
    keys: ['c', 'b'],
    userPriorities: [5, -1],
  });
  simulation.run();
  expect(simulation.executed).toEqual(['a', 'c', 'd', 'b']);
});

it('a dependent that is submitted later makes its queued input come earlier', () => {
  const simulation = cluster([1]);
  simulation.submit(graph({ a: [], b: [], c: [] }));
  simulation.run(50);
  simulation.submit([{ key: 'd', dependencies: ['c'], runSpec: 'd' }], { fifoTimeoutMs: 1000 });
  simulation.run();
  expect(simulation.executed).toEqual(['a', 'c', 'd', 'b']);
});

it('comes into place while tasks are queued, and takes them over', () => {
  const simulation = new SimulatedCluster({ workers: [1], validate: true });
  const tasks = graph({ a: [], b: [], c: [], d: [], e: [] }, { e: 1, d: 2, c: 3 });
  simulation.submit(tasks.map((task) => ({ ...task, group: 'root', prefix: 'root' })));
  simulation.run(50);
  const { kernel } = simulation;
  const queued = [...kernel.cluster.queued].map(({ key }) => key);
  expect(queued.length).toBeGreaterThan(1);
  const policies = { queuing: made(mars) };
  kernel.replacePorts(makePorts({ policies }));
  simulation.run();
  expect(simulation.executed.slice(-queued.length)).toEqual(queued.toSorted().toReversed());
});

/** Chunks of 1 MB that are reduced in pairs. */
function reduction(chunks: number): GraphTask[] {
  const shape: Record<string, string[]> = {};
  for (let n = 0; n < chunks; n++) shape[`a-${n}`] = [];
  let level = Array.from({ length: chunks }, (_, n) => `a-${n}`);
  for (let depth = 0; level.length > 1; depth++) {
    level = Array.from({ length: level.length / 2 }, (_, n) => {
      const key = `${'bcdefg'[depth]}-${n}`;
      shape[key] = [level[2 * n]!, level[2 * n + 1]!];
      return key;
    });
  }
  return graph(shape);
}

it.each([
  ['the same durations', () => UNIT_MS],
  [
    'different durations',
    (key: string) => UNIT_MS + ((key.length * 37 + key.charCodeAt(2) * 53) % 97),
  ],
])(
  'the sources of a graph are divided beforehand, so that little is moved: %s',
  (_, durationMs) => {
    const moved = (policies: object): number => {
      const simulation = new SimulatedCluster({
        workers: [1, 1, 1, 1],
        validate: true,
        durationMs,
        nbytes: () => 1_000_000,
        policies,
      });
      const tasks = reduction(64);
      simulation.submit(tasks, { keys: ['g-0'] });
      simulation.run();
      expect(simulation.executed).toHaveLength(127);
      return simulation.movedBytes;
    };
    const localityFirstMoves = moved({
      queuing: made(direct),
      workerSelection: made(localityFirst, { sources: 'ranges' }),
    });
    const moves = (['ranges', 'turns'] as const).map((sources) =>
      moved({ queuing: made(mars, { sources }), ordering: made(marsOrdering) }),
    );
    expect(moves[0]).toBeLessThanOrEqual(localityFirstMoves);
    expect(moves[1]).toBeGreaterThan(3 * localityFirstMoves);
  },
);

it('sizes are learnt: of tasks that are alike those with the smaller results run earlier, in a next run from the first on', () => {
  const shape: Record<string, string[]> = {};
  for (let n = 0; n < 4; n++) {
    shape[`large-${n}`] = [];
    shape[`small-${n}`] = [];
    shape[`use-${n}`] = [`large-${n}`];
    shape[`take-${n}`] = [`small-${n}`];
  }
  const run = (prefixes: readonly KnownPrefix[]) => {
    const simulation = new SimulatedCluster({
      workers: [1],
      validate: true,
      durationMs: () => UNIT_MS,
      nbytes: (key) => (key.startsWith('large') ? 5_000_000 : 1000),
      policies: { queuing: made(mars), ordering: made(marsOrdering) },
    });
    const { kernel } = simulation;
    kernel.handle({ op: 'recall-prefixes', prefixes, stimulusId: 'known' }, 0);
    simulation.submit(graph(shape), { keys: Object.keys(shape) });
    simulation.run();
    const roots = simulation.executed.filter((key) => /^(large|small)/.test(key));
    return { roots: roots.map((key) => key.slice(0, 5)), known: kernel.cluster.knowledge() };
  };
  const first = run([]);
  const [small, large] = [
    ['small', 'small', 'small'],
    ['large', 'large', 'large'],
  ];
  // Of both something has to be seen first.
  expect(first.roots.slice(2)).toEqual([...small, ...large]);
  expect(run(first.known).roots).toEqual(['small', ...small, 'large', ...large]);
});
