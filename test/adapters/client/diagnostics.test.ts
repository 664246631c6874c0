import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startWorker } from '../../../adapters/app/start-worker.ts';
import { Client } from '../../../adapters/client/index.ts';
import { VERSION } from '../../../core/api/index.ts';
import { MemoryLog, TestHost } from '../../kit/test-host.ts';
import { fail, inc } from './tasks.ts';

const SILENT = ['inmemory://silent-1', 'inmemory://silent-2'];
const own = { yardmaster: VERSION, node: process.versions.node };

let host: TestHost;
let client: Client;
let worker: Awaited<ReturnType<typeof startWorker>>;
let folder: string;

/** Lets time pass until the promise is settled. */
async function passing<T>(promise: Promise<T>): Promise<T> {
  const state = { isSettled: false };
  const settle = (): void => void (state.isSettled = true);
  promise.then(settle, settle);
  while (!state.isSettled) {
    await new Promise((resolve) => setImmediate(resolve));
    const { nextTimerMs } = host.clock;
    if (nextTimerMs !== undefined) await host.clock.advanceToAsync(nextTimerMs);
  }
  return promise;
}

/** A worker that answers, and two that never do. */
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'yardmaster-dump-'));
  host = await TestHost.start();
  const network = { clock: host.clock, transports: [host.transport] };
  worker = await passing(
    startWorker(host.address, {
      ...network,
      executor: 'inline',
      name: 'lively',
      services: { metrics: 'http://127.0.0.1:9' },
      extra: { zone: 'b' },
      log: new MemoryLog(),
    }),
  );
  client = await passing(Client.connect(host.address, network));
});
afterEach(async () => {
  await passing(client.close());
  await passing(worker.close());
  await host.close();
  await rm(folder, { recursive: true });
});

async function addSilentWorkers(): Promise<void> {
  for (const address of SILENT) {
    const peer = await host.worker(address);
    peer.answers.set('inspect', () => new Promise(() => undefined));
  }
}

test('versions of every process are returned', async () => {
  const versions = await passing(client.getVersions());
  expect(versions.client).toEqual(own);
  expect(versions.scheduler).toEqual(own);
  expect(versions.workers).toEqual(new Map([[worker.address, own]]));
  expect(versions.clients.get(client.id)).toEqual({ node: process.versions.node });
});

test('the newest lines of every log are returned, oldest first', async () => {
  const stranger = await host.peer();
  await stranger.send({ op: 'nonsense' }); // The scheduler complains of it.
  const logs = await passing(client.getLogs());
  expect(logs.scheduler.at(-1)).toMatchObject({
    level: 'error',
    message: expect.stringContaining('before registration') as string,
    fields: expect.stringContaining('ERR_PROTOCOL') as string,
  });
  expect(logs.workers.get(worker.address)).toEqual([
    expect.objectContaining({ level: 'info', message: 'worker registered' }),
  ]);
  await expect(passing(client.getLogs({ count: 0 }))).rejects.toThrow(
    'count must be a whole number of at least 1',
  );
});

test('the lines of logs are chosen by worker, time, level and number', async () => {
  const stranger = await host.peer();
  await stranger.send({ op: 'nonsense' });
  const first = await passing(client.getLogs({ workers: ['lively'], newestFirst: true, count: 2 }));
  expect(first.scheduler[0]).toMatchObject({ level: 'error' });
  expect([...first.workers.keys()]).toEqual([worker.address]);
  const errors = await passing(client.getLogs({ level: 'error', workers: ['lively'] }));
  expect(errors.scheduler.map(({ level }) => level)).toEqual(['error']);
  expect(errors.workers.get(worker.address)).toEqual([]);
  const later = new Date(host.clock.nowMs() + 1);
  const none = await passing(client.getLogs({ since: later }));
  expect(none.scheduler).toEqual([]);
});

test('options of logs that do not exist are refused, and so are workers', async () => {
  const misspelt = { cuont: 3 } as object;
  await expect(passing(client.getLogs(misspelt))).rejects.toThrow('did you mean "count"?');
  const level = { level: 'debug' } as object;
  await expect(passing(client.getLogs(level))).rejects.toThrow('one of info, warn, error');
  await expect(passing(client.getLogs({ workers: ['livly'] }))).rejects.toMatchObject({
    code: 'ERR_NO_WORKER',
  });
});

test('the identity of a worker has its services, its folder and the extra properties', async () => {
  const { workers } = await passing(client.identity());
  expect(workers[0]).toMatchObject({
    services: { metrics: 'http://127.0.0.1:9' },
    extra: { zone: 'b' },
    localDirectory: tmpdir(),
  });
});

test('the host of workers stands for all of them', async () => {
  const { workers } = await passing(client.identity());
  const { host: where, address } = workers[0]!;
  expect([...(await passing(client.getLogs({ workers: [where] }))).workers.keys()]).toEqual([
    address,
  ]);
  const value = await passing(client.scatter([1], { workers: [where] }));
  expect(await passing(value[0]!.result())).toBe(1);
  const options = { errors: 'return' } as const;
  expect(await passing(client.restartWorkers([where, 'nobody'], options))).toEqual({
    restarted: [],
    kept: [{ address, name: 'lively' }],
    missing: [],
    unknown: ['nobody'],
  });
  await expect(passing(client.rebalance(undefined, { workers: [where] }))).resolves.toMatchObject({
    moved: [],
  });
  const { kept } = await passing(client.retireWorkers({ workers: [where, 'nobody'] }));
  expect(kept.filter(({ reason }) => reason === 'unknown')).toEqual([
    { worker: 'nobody', reason: 'unknown' },
  ]);
});

test('the reason of a cancellation and its message for people stay apart', async () => {
  const future = client.submit(inc, 41);
  const other = await passing(
    Client.connect(host.address, { clock: host.clock, transports: [host.transport] }),
  );
  const same = other.submit(inc, 41);
  await passing(Promise.all([future.settled(), same.settled()]));
  future.cancel({ reason: 'budget', message: 'ask Ada', force: true });
  for (const each of [future, same]) {
    await passing(each.settled());
    await expect(passing(each.result())).rejects.toMatchObject({
      code: 'ERR_CANCELLED',
      message: `"${future.key}" was cancelled: budget: ask Ada`,
      data: { reason: 'budget', message: 'ask Ada' },
    });
  }
  await passing(other.close());
});

test('the state of all that answer is written, and those that did not are listed', async () => {
  const one = client.submit(inc, 1);
  const failed = client.submit(fail, 'no');
  await passing(one.result());
  await passing(failed.settled());
  await addSilentWorkers();
  const path = join(folder, 'state.json');
  expect(await passing(client.dumpClusterState(path, { timeoutMs: 700 }))).toEqual(SILENT);

  const dump = JSON.parse(await readFile(path, 'utf8')) as {
    scheduler: Record<'tasks' | 'workers' | 'story' | 'clients', Record<string, unknown>[]>;
    workers: Record<string, { error?: string; tasks?: { key: string; state: string }[] }>;
  };
  const tasks = new Map(dump.scheduler.tasks.map((task) => [task['key'], task]));
  expect(tasks.get(one.key)).toMatchObject({ state: 'memory', whoHas: [worker.address] });
  expect(tasks.get(failed.key)).toMatchObject({
    state: 'erred',
    blame: failed.key,
    whoWants: [client.id],
  });
  expect(dump.scheduler.workers).toHaveLength(3);
  expect(dump.scheduler.story.some(({ key }) => key === one.key)).toBe(true);
  expect(dump.workers[worker.address]?.tasks).toContainEqual(
    expect.objectContaining({ key: one.key, state: 'memory' }),
  );
  for (const address of SILENT) {
    expect(dump.workers[address]?.error).toContain('did not answer "inspect" within 700 ms');
  }
});

test('a time that makes no sense is refused, and a missing folder is reported', async () => {
  for (const timeoutMs of [0, -1, Infinity, 'soon' as never]) {
    await expect(passing(client.getVersions({ timeoutMs }))).rejects.toThrow('timeoutMs must be ');
  }
  await expect(
    passing(client.dumpClusterState(join(folder, 'nowhere', 'state.json'))),
  ).rejects.toThrow('ENOENT');
});
