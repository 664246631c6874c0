import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import {
  ActiveMemoryManagerPolicy,
  type ClusterView,
  definePlugin,
  definePolicy,
  drop,
  type GraphLinks,
  type GraphTask,
  type HookTable,
  type PluginContext,
  type SuggestionGenerator,
  type TaskView,
  type WorkerView,
  type YardmasterError,
} from '../../../core/api/index.ts';
import { add, inc, total } from './tasks.ts';
import type { VirtualCluster } from '../../kit/virtual-cluster.ts';
import { startCluster } from '../../kit/virtual-cluster.ts';

/** What an author writes who forgets that it is the state of the scheduler: `target.name = value`. */
function assign(target: unknown, name: string, value: unknown): void {
  (target as Record<string, unknown>)[name] = value;
}

/** `target.name(...args)`, whatever the type says. */
function call(target: unknown, name: string, ...args: readonly unknown[]): void {
  (target as Record<string, (...given: readonly unknown[]) => unknown>)[name]!(...args);
}

async function start(
  scheduler: object = {},
): Promise<{ cluster: VirtualCluster; errors: YardmasterError[] }> {
  const cluster = await startCluster(3, {
    // Where every invariant is checked, a policy that misbehaves ends the scheduler.
    scheduler: { validate: false, ...scheduler },
  });
  const errors: YardmasterError[] = [];
  cluster.local.scheduler.events.on('error', (error) => errors.push(error));
  return { cluster, errors };
}

/** Fifty sums of three, whose arguments tell at once when tasks are mixed up. */
async function sums(cluster: VirtualCluster): Promise<void> {
  const client = cluster.client.with({ pure: false });
  const futures = Array.from({ length: 50 }, (_, n) =>
    client.submit(add, client.submit(inc, n), 1000 * n),
  );
  expect(await cluster.passing(cluster.client.gather(futures))).toEqual(
    Array.from({ length: 50 }, (_, n) => n + 1 + 1000 * n),
  );
  expect(await cluster.passing(client.submit(total, futures).result())).toBe(
    50 + 1001 * ((49 * 50) / 2),
  );
}

type Order = (tasks: readonly GraphTask[], keys: readonly string[], links: GraphLinks) => unknown;

const ORDERS: readonly (readonly [string, Order, RegExp])[] = [
  [
    'sorts the list',
    (tasks) => call(tasks, 'sort', (a: GraphTask, b: GraphTask) => (a.key < b.key ? 1 : -1)),
    /tried to set "\d+" of the list that it was given/,
  ],
  ['pops a task', (tasks) => call(tasks, 'pop'), /tried to delete "\d+" of the list/],
  [
    'reverses dependencies',
    (tasks) => {
      for (const { dependencies } of tasks) call(dependencies, 'push', 'x');
    },
    /tried to set "\d+" of dependencies of the entry "/,
  ],
  [
    'writes into what the task runs',
    (tasks) => {
      for (const { runSpec } of tasks) assign(runSpec, 'args', []);
    },
    /tried to set "args" of runSpec of the entry "/,
  ],
  ['empties the keys', (_tasks, keys) => assign(keys, 'length', 0), /set "length"/],
];

describe('an ordering policy cannot change the graph that it orders', () => {
  const vandal = (order: Order): object =>
    definePolicy('ordering', {
      name: 'vandal',
      apiVersion: 1,
      create: () => ({
        order: (tasks, keys, links) => {
          order(tasks, keys, links as GraphLinks);
          return tasks.map((_task, index) => index);
        },
      }),
    });

  test.each(ORDERS)('in charge: one that %s', async (_what, order, message) => {
    const { cluster, errors } = await start({ policies: { ordering: { use: vandal(order) } } });
    await sums(cluster);
    expect(errors[0]?.code).toBe('ERR_POLICY');
    expect(errors[0]?.message).toMatch(/policy "vandal" of slot ordering threw: it /);
    expect(errors[0]?.message).toMatch(message);
  });

  test.each(ORDERS)('in the shadow: one that %s', async (_what, order, message) => {
    const { cluster } = await start({ shadows: { ordering: { use: vandal(order) } } });
    await sums(cluster);
    const report = await cluster.passing(cluster.client.shadow('ordering'));
    expect(report?.failures).toBeGreaterThan(0);
    expect(report?.lastFailure).toMatch(message);
  });

  test('links that it writes into are its own', async () => {
    const overwrite: Order = (_tasks, _keys, { offsets, targets }) => {
      offsets.fill(0);
      targets.fill(-1);
    };
    const { cluster, errors } = await start({
      policies: { ordering: { use: vandal(overwrite) } },
      shadows: { ordering: { use: vandal(overwrite) } },
    });
    await sums(cluster);
    expect(errors).toEqual([]);
  });
});

/** Everything that can be reached from a task, a worker and the cluster. */
const WRITES: readonly (readonly [
  string,
  (task: TaskView, worker: WorkerView | undefined, cluster: ClusterView) => unknown,
  RegExp,
])[] = [
  ['a state', (task) => assign(task, 'state', 'memory'), /set "state" of the task "/],
  ['a group', (task) => assign(task.group, 'name', 'x'), /set "name" of the group "/],
  ['counts', (task) => assign(task.prefix.states, 'memory', 9), /set "memory" of states/],
  ['holders', (task) => assign(task.whoHas.items, 'length', 0), /"length" of items of whoHas/],
  [
    'dependencies',
    (task) => call(task.dependencies, 'push', 1),
    /set "\d+" of dependencies of the task/,
  ],
  ['a worker', (_t, worker) => assign(worker, 'status', 'closed'), /set "status" of the worker "/],
  [
    'its identity',
    (_t, worker) => assign(worker?.identity, 'threadCount', 9),
    /set "threadCount" of/,
  ],
  [
    'its metrics',
    (_t, worker) => assign(worker?.metrics, 'memoryBytes', 9),
    /set "memoryBytes" of/,
  ],
  [
    'its resources',
    (_t, worker) => call(worker?.usedResources, 'clear'),
    /clear\(\) on usedResources/,
  ],
  ['its tasks', (_t, worker) => call(worker?.hasWhat, 'add', _t), /tried to/],
  [
    'the table of tasks',
    (_t, _w, cluster) => call(cluster.tasks, 'clear'),
    /clear\(\) on tasks of/,
  ],
  [
    'of workers',
    (_t, _w, cluster) => call(cluster.workers, 'delete', 'x'),
    /delete\(\) on workers/,
  ],
  [
    'of clients',
    (_t, _w, cluster) => call([...cluster.clients.values()][0]?.wantsWhat, 'clear'),
    /clear\(\)/,
  ],
  ['the cluster', (_t, _w, cluster) => assign(cluster, 'tasks', new Map()), /set "tasks"/],
  ['costs', (_t, _w, cluster) => assign(cluster.costs, 'bandwidth', 1), /set "bandwidth" of costs/],
  [
    'what runs',
    (_t, _w, cluster) => call(cluster.running, 'delete', [...cluster.running][0]),
    /tried to/,
  ],
];

describe('nothing that is shown can be changed', () => {
  test.each(WRITES)('by a policy: %s', async (_what, write, message) => {
    const policy = definePolicy('workerSelection', {
      name: 'vandal',
      apiVersion: 1,
      create: () => ({
        select: (task, candidates, missingBytes, cluster) => {
          const [first] = candidates;
          expect(missingBytes(first as WorkerView)).toBeGreaterThanOrEqual(0);
          write(task, first, cluster);
          return first;
        },
      }),
    });
    const { cluster, errors } = await start({ policies: { workerSelection: { use: policy } } });
    await sums(cluster);
    expect(errors[0]?.message).toMatch(
      /policy "vandal" of slot workerSelection threw: it tried to/,
    );
    expect(errors[0]?.message).toMatch(message);
  });

  test.each(WRITES)('by a hook: %s', async (_what, write, message) => {
    let context: PluginContext | undefined;
    const plugin = definePlugin({
      name: 'vandal',
      apiVersion: 1,
      setup: (given): HookTable => {
        context = given;
        return {
          taskTransition: (task) => {
            const { cluster } = given;
            write(task, [...cluster.workers.values()][0], cluster);
          },
        };
      },
    });
    const { cluster, errors } = await start({ plugins: [{ use: plugin }] });
    await sums(cluster);
    expect(context).toBeDefined();
    expect(errors[0]?.code).toBe('ERR_PLUGIN_HOOK');
    expect(errors[0]?.message).toMatch(
      /the hook taskTransition of plugin "vandal" threw: it tried/,
    );
    expect(errors[0]?.message).toMatch(message);
  });
});

test('a policy that uses what it is shown as documented decides as one that sees the state itself', async () => {
  const seen = new Map<WorkerView, number>();
  const policy = definePolicy('workerSelection', {
    name: 'reader',
    apiVersion: 1,
    create: () => ({
      reach: 'all',
      select: (task, candidates, _missingBytes, cluster) => {
        const worker = candidates.toSorted(
          (a, b) => (seen.get(a) ?? 0) - (seen.get(b) ?? 0) || a.occupancyS - b.occupancyS,
        )[0] as WorkerView;
        seen.set(worker, (seen.get(worker) ?? 0) + 1);
        expect(cluster.workers.get(worker.address)).toBe(worker);
        expect(cluster.tasks.get(task.key)).toBe(task);
        expect([...cluster.running]).toContain(worker);
        expect(cluster.running.has(worker)).toBe(true);
        expect(cluster.suits(task, worker)).toBe('well');
        for (const dependency of task.dependencies) {
          expect(dependency.whoHas.has(dependency.whoHas.items[0] as WorkerView)).toBe(true);
          expect([...dependency.whoHas][0]?.hasWhat.has(dependency)).toBe(true);
          expect([...(dependency.whoHas.items[0] as WorkerView).hasWhat]).toContain(dependency);
          expect(dependency.dependents.includes(task)).toBe(true);
        }
        for (const [key, known] of cluster.tasks) expect(known.key).toBe(key);
        expect(task.group.prefix).toBe(task.prefix);
        expect(Object.keys(worker.metrics).length).toBeGreaterThan(0);
        return worker;
      },
    }),
  });
  const { cluster, errors } = await start({
    policies: { workerSelection: { use: policy }, queuing: { use: 'direct' } },
  });
  await sums(cluster);
  expect(errors.map(({ message }) => message)).toEqual([]);
  expect(seen.size).toBe(3);
});

/** What a hook finds when the sum of two increments is in memory. */
async function look<Found>(
  at: (task: TaskView, worker: WorkerView, cluster: ClusterView) => Found,
): Promise<{ found: Found | undefined; key: string }> {
  const { cluster, errors } = await start();
  let found: Found | undefined;
  const plugin = definePlugin({
    name: 'curious',
    apiVersion: 1,
    setup: (given): HookTable => ({
      taskTransition: (task, _start, finish) => {
        if (finish !== 'memory' || task.dependencies.length === 0) return;
        found = at(task, task.whoHas.items[0] as WorkerView, given.cluster);
      },
    }),
  });
  await cluster.local.scheduler.addPlugin(plugin);
  const { client } = cluster;
  const future = client.submit(add, client.submit(inc, 1), client.submit(inc, 5));
  expect(await cluster.passing(future.result())).toBe(8);
  expect(errors.map(({ message }) => message)).toEqual([]);
  return { found, key: future.key };
}

test('a view has what its type names and no more, and takes nothing', async () => {
  const { found } = await look((task, worker) => {
    expect(() => assign(task, 'stat', 1)).toThrow('it tried to add "stat" to the task');
    expect(() => Object.defineProperty(task, 'state', { value: 'x' })).toThrow(TypeError);
    expect(() => assign(Object.getPrototypeOf(task), 'state', 1)).toThrow();
    return 'occupyAll' in worker;
  });
  expect(found).toBe(false);
});

test('a view says what it shows, to console.log, as JSON and in a loop over its names', async () => {
  const { found, key } = await look((task, worker, cluster) => {
    const names: string[] = [];
    for (const name in task) names.push(name);
    return {
      names,
      dependencies: task.dependencies.map((dependency) => dependency.key),
      printed: inspect(task),
      task: JSON.parse(JSON.stringify(task)) as Record<string, unknown>,
      worker: JSON.parse(JSON.stringify(worker)) as Record<string, unknown>,
      cluster: JSON.parse(JSON.stringify(cluster)) as Record<string, unknown>,
      states: Object.keys(task.group.states),
      metrics: Object.keys({ ...worker.metrics }),
    };
  });
  expect(found?.names).toContain('whoHas');
  expect(found?.printed).toContain(`key: '${key}'`);
  expect(found?.task).toMatchObject({ key, state: 'memory', group: 'add' });
  expect(found?.task['dependencies']).toEqual(found?.dependencies);
  expect(found?.worker['hasWhat']).toContain(key);
  expect(found?.cluster['workers']).toBeDefined();
  expect(found?.states).toContain('memory');
  expect(found?.metrics).toContain('memoryBytes');
});

test('a list is read by all methods that do not change it, and a task is the same object in each', async () => {
  const { found } = await look((task, worker, cluster) => {
    const reversed = task.dependencies.toReversed();
    expect(task.dependencies.indexOf(reversed[0] as TaskView)).toBe(1);
    expect(cluster.tasks.get(task.key)).toBe(task);
    expect(new Set(cluster.workers.values()).has(worker)).toBe(true);
    return reversed.map((dependency) => dependency.dependents.includes(task));
  });
  expect(found).toEqual([true, true]);
});

test('a policy of the memory manager cannot empty the list of holders, and is named', async () => {
  class Vandal extends ActiveMemoryManagerPolicy {
    *run({ cluster }: { cluster: ClusterView }): SuggestionGenerator {
      for (const task of cluster.tasks.values()) {
        if (task.whoHas.size > 1) yield drop(task, task.whoHas);
      }
      for (const task of cluster.tasks.values()) assign(task.whoHas.items, 'length', 0);
    }
  }
  const { cluster, errors } = await start({
    activeMemoryManager: { start: false, policies: [{ use: Vandal }] },
  });
  const { client } = cluster;
  const future = client.submit(inc, 1);
  await cluster.passing(client.replicate(future, { n: 3 }));
  const holders = (): number =>
    cluster.local.scheduler.cluster.tasks.get(future.key)?.whoHas.size ?? 0;
  await cluster.until(() => holders() > 1);
  await cluster.passing(client.command('amm.runOnce'));
  expect(errors[0]?.message).toMatch(
    /policy "Vandal" of the Active Memory Manager threw: it tried to set "length" of items of whoHas of the task/,
  );
  expect(holders()).toBeGreaterThan(0);
  expect(await cluster.passing(future.result())).toBe(2);
});

test('listeners of events cannot change what they are told', async () => {
  const { cluster, errors } = await start();
  cluster.local.scheduler.events.on('client-added', (client) => {
    assign(client, 'key', 'x');
  });
  await cluster.passing(cluster.local.client());
  const messages = errors.map(({ message }) => message).join('\n');
  expect(messages).toMatch(/a listener of the event "client-added" threw: it tried to set "key"/);
});
