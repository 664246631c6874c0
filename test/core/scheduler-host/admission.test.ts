/** Plugins that refuse graphs before their tasks exist. */
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { openScheduler } from '../../../adapters/app/start-scheduler.ts';
import { replayRecording } from '../../../adapters/app/past.ts';
import { ref, task } from '../../../adapters/client/index.ts';
import { definePlugin, type NewStimulus } from '../../../core/api/index.ts';
import { MemoryLog } from '../../bad-input/memory-log.ts';
import { bad } from '../../bad-input/fixtures/bad-tasks.js';
import { startHost } from '../../kit/test-host.ts';
import { VirtualCluster } from '../../kit/virtual-cluster.ts';

/** Refuses graphs with which a client would want more results than it may. */
const quota = definePlugin({
  name: 'quota',
  apiVersion: 1,
  optionsSchema: {
    type: 'object',
    properties: { results: { type: 'integer', minimum: 0, default: 2 } },
  },
  setup: ({ cluster }, { results }) => ({
    admit({ client, keys }) {
      const wanted = (cluster.clients.get(client)?.wantsWhat.size ?? 0) + keys.length;
      return wanted <= results || { refuse: `${wanted} results are more than ${results}` };
    },
  }),
});

const graph = (...keys: string[]): Extract<NewStimulus, { op: 'update-graph' }> => ({
  op: 'update-graph',
  client: 'alice',
  tasks: keys.map((key) => ({ key, dependencies: [], runSpec: key })),
  keys,
});

it('a client is told which plugin refuses its graph, and why; no task of it is made', async () => {
  const seen: string[] = [];
  const witness = definePlugin({
    name: 'witness',
    apiVersion: 1,
    setup: () => ({
      graphUpdated: ({ tasks }) => seen.push(`${tasks.length} tasks`),
      taskTransition: ({ prefix }) => void seen.push(prefix.name),
      eventLogged: (topic, message) => {
        if (topic === 'scheduler') refused.push(message);
      },
    }),
  });
  const refused: unknown[] = [];
  const plugins = [{ use: quota }, { use: witness }];
  const cluster = await VirtualCluster.start(1, { scheduler: { plugins } });
  const { client } = cluster;
  const futures = client.compute(
    { a: task(bad.echo, 1), b: task(bad.echo, ref('a')), c: task(bad.echo, 3) },
    ['a', 'b', 'c'],
  );
  for (const [index, key] of ['a', 'b', 'c'].entries()) {
    await expect(cluster.passing(futures[index]!.result())).rejects.toMatchObject({
      code: 'ERR_REFUSED',
      message: `"${key}" was refused by the plugin "quota" of the scheduler: 3 results are more than 2`,
      data: { key, plugin: 'quota', reason: '3 results are more than 2' },
    });
  }
  expect(seen).toEqual([]);
  expect(refused).toMatchObject([
    { action: 'graph-refused', keys: ['a', 'b', 'c'], keyCount: 3, plugin: 'quota' },
  ]);
  expect(await cluster.passing(client.gather(client.map(bad.echo, [1, 2])))).toEqual([1, 2]);
});

it('what a client wants besides stays wanted, and what it wants of the refused graph is no news', async () => {
  const host = await startHost({ plugins: [{ use: quota }] });
  const client = await host.client('alice');
  await client.send({ ...graph('a'), client: undefined });
  await client.send({ ...graph('a', 'b', 'c'), client: undefined });
  expect(client.received.filter(({ op }) => op === 'cancelled-keys')).toEqual([
    expect.objectContaining({ keys: ['b', 'c'], plugin: 'quota' }),
  ]);
  expect([...host.scheduler.kernel.cluster.tasks.keys()]).toEqual(['a']);
});

it('the first plugin that refuses is named; one of a lower order is not asked then', async () => {
  const asked: string[] = [];
  const refusing = (name: string, order?: 'pre') => {
    const admit = (): { refuse: string } => {
      asked.push(name);
      return { refuse: `${name} says no` };
    };
    const hook = order === undefined ? admit : { order, handler: admit };
    return definePlugin({ name, apiVersion: 1, setup: () => ({ admit: hook }) });
  };
  const plugins = [refusing('late'), refusing('early', 'pre')].map((use) => ({ use }));
  const host = await startHost({ plugins });
  const client = await host.client('alice');
  await client.send({ ...graph('a'), client: undefined });
  expect(asked).toEqual(['early']);
  expect(client.received.at(-1)).toMatchObject({ plugin: 'early', reason: 'early says no' });
});

it.each<[what: string, admit: () => unknown, says: RegExp]>([
  ['throws', () => { throw new Error('oops'); }, /the hook admit of plugin "odd" threw: oops/], // prettier-ignore
  [
    'answers nothing',
    () => undefined,
    /odd.* its answer is nothing instead of true or \{ refuse: 'why' \}/,
  ],
  ['answers false', () => false, /odd.* its answer is false/],
  ['is async', () => Promise.resolve(true), /the hook admit of plugin "odd" returned a promise/],
])('an admit that %s admits, and is reported', async (_what, admit, says) => {
  const odd = definePlugin({ name: 'odd', apiVersion: 1, setup: (): object => ({ admit }) });
  const host = await startHost({ plugins: [{ use: odd }] });
  const client = await host.client('alice');
  await client.send({ ...graph('a'), client: undefined });
  expect(host.log.messages.join('\n')).toMatch(says);
  expect(host.scheduler.kernel.cluster.tasks.has('a')).toBe(true);
});

it('a journal replays without the plugin, and what it admitted stays when it would be refused now', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'yardmaster-admission-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const log = new MemoryLog();
  const journal = join(folder, 'journal');
  const configOf = (results: number): object => ({
    scheduler: { plugins: [{ use: quota, options: { results } }] },
  });
  const first = await openScheduler({ journal, log, config: configOf(2) });
  first.scheduler.enqueue({ op: 'register-client', client: 'alice', secretHash: 'hash' });
  first.scheduler.enqueue(graph('a', 'b'));
  first.scheduler.enqueue(graph('c'));
  await new Promise(setImmediate);
  const left = join(folder, 'left');
  cpSync(journal, left, { recursive: true, filter: (file) => !file.includes('lock') });
  await first.close();
  const replayed = await replayRecording(left, { validate: true });
  expect(replayed).toMatchObject({ difference: undefined, damage: undefined });
  expect([...replayed.kernel.cluster.tasks.keys()]).toEqual(['a', 'b']);
  const second = await openScheduler({ journal: left, log, config: configOf(0) });
  expect([...second.scheduler.kernel.cluster.tasks.keys()]).toEqual(['a', 'b']);
  await second.close();
});
