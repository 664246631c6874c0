import { expect, it } from 'vitest';

import { serialise } from '../../../adapters/tasks/index.ts';
import { Channel, type SpillArea, type WireMessage } from '../../../core/api/index.ts';
import type { HostedWorker } from '../../../core/worker-host/create-worker.ts';
import { locations } from '../worker/builders.ts';
import { Bench, Ref } from '../worker/hand-scheduler.ts';

const EVIL = 'inmemory://evil:1';
const LARGE = 3_000_000;

/** A peer that holds every result, and answers as the test says. */
async function listen(
  bench: Bench,
  answer: (method: string, channel: Channel) => unknown,
): Promise<{ closed: number }> {
  const seen = { closed: 0 };
  await bench.settle(
    bench.transport.listen(EVIL, (connection) => {
      const channel: Channel = new Channel(connection, bench.clock, {
        onMessage: () => undefined,
        onRequest: (method) =>
          method === 'hello'
            ? { protocol: 'yardmaster/1', version: 'x', serverId: 'evil' }
            : answer(method, channel),
        onClose: () => {
          seen.closed++;
        },
      });
      return channel;
    }),
  );
  return seen;
}

const offer = { keys: [], values: [], parts: [{ key: 'x', nbytes: LARGE, handle: 1 }] };
const half = { bytes: new Uint8Array(512 * 1024) };

const peers: [name: string, answer: (method: string, channel: Channel) => unknown][] = [
  ['never answers', () => new Promise(() => undefined)],
  ['answers with garbage', () => ({ keys: 'all', values: 7 })],
  [
    'offers a result and then says nothing',
    (method) => (method === 'get-data' ? offer : new Promise(() => undefined)),
  ],
  ['gives parts that are garbage', (method) => (method === 'get-data' ? offer : { bytes: 'x' })],
  [
    'goes away in the middle of a result',
    (method, channel) => {
      if (method === 'get-data') return offer;
      queueMicrotask(() => channel.abort(new Error('it died')));
      return half;
    },
  ],
];

it.each(peers)('an input is fetched from another holder when its peer %s', async (_, answer) => {
  const bench = await new Bench().listen();
  const seen = await listen(bench, answer);
  const [alice, bob] = await Promise.all([bench.startWorker('alice'), bench.startWorker('bob')]);
  const client = await bench.peer(bob);
  const value = serialise(new Uint8Array(LARGE).fill(7));
  await bench.settle(client.request('put-data', { keys: ['x'], values: [value] }));
  await bench.send(alice, bench.compute('y', 'echo', [new Ref('x')], { x: [EVIL] }));
  const reports: WireMessage[] = [];
  for (let second = 0; second < 70; second++) {
    await bench.pass(1000);
    reports.push(...bench.take(alice));
    if (!reports.some(({ op }) => op === 'request-refresh-who-has')) continue;
    const replicas = locations({ x: { at: [bob.address], nbytes: LARGE } });
    const refresh = { op: 'refresh-who-has', replicas, stimulusId: 'refresh' } as const;
    reports.push(...(await bench.send(alice, refresh)));
    break;
  }
  await bench.pass(1000);
  reports.push(...bench.take(alice));
  expect(reports).toContainEqual(expect.objectContaining({ op: 'task-finished', key: 'y' }));
  expect(seen.closed).toBe(1);
  expect(bench.logged).toContain('a transfer failed');
});

/** A disk that takes nothing, so that memory cannot shrink. */
const full: SpillArea = {
  nbytes: 0,
  write: () => {
    throw new Error('no space left on device');
  },
  read: () => {
    throw new Error('there is nothing');
  },
  delete: () => undefined,
  close: () => undefined,
};

it('two workers that need the data of each other while both are paused continue, one step at a time', async () => {
  const bench = await new Bench().listen();
  const process = { nbytes: 1000 };
  const start = (name: string): Promise<HostedWorker> =>
    bench.startWorker(name, {
      memoryLimitBytes: 10_000,
      measureMemory: () => process.nbytes,
      memory: { disk: full, thresholds: { terminate: 0 } },
    });
  const [alice, bob] = await Promise.all([start('alice'), start('bob')]);
  await bench.send(alice, bench.compute('a', 'zeros', [500]));
  await bench.send(bob, bench.compute('b', 'zeros', [500]));
  process.nbytes = 9000;
  await bench.pass(1000);
  expect(bench.take(alice)).toContainEqual(expect.objectContaining({ status: 'paused' }));
  expect(bench.take(bob)).toContainEqual(expect.objectContaining({ status: 'paused' }));
  const where = { a: [alice.address], b: [bob.address] };
  for (const [worker, keys] of [
    [alice, ['c', 'd']],
    [bob, ['e', 'f']],
  ] as const) {
    for (const key of keys) {
      await bench.send(worker, bench.compute(key, 'echo', [[new Ref('a'), new Ref('b')]], where));
    }
  }
  await bench.pass(10_000);
  const done = [...bench.take(alice), ...bench.take(bob)].filter(
    ({ op }) => op === 'task-finished',
  );
  expect(done.map(({ key }) => key).sort()).toEqual(['c', 'd', 'e', 'f']);
});
