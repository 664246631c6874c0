import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Client, type Future, type Graph, ref, task } from '../../adapters/client/index.ts';
import { type ClusterMode, LocalCluster } from '../../adapters/app/local-cluster.ts';
import { bad } from './fixtures/bad-tasks.js';
import { MemoryLog } from './memory-log.ts';

/** A busy machine may take long to start a process: only the limit of the test ends that. */
const PATIENT = { timeoutMs: 280_000 };
const MODES: readonly ClusterMode[] = ['inline', 'threads', 'processes'];

describe.each(MODES)('with %s, a task', (mode) => {
  const log = new MemoryLog();
  let cluster: LocalCluster;
  let client: Client;

  beforeAll(async () => {
    cluster = await LocalCluster.start({ ...PATIENT, mode, workers: 1, log });
    client = await cluster.client();
  });
  afterAll(() => cluster.close());

  test.each([
    ['string', '"text"'],
    ['number', '42'],
    ['null', 'null'],
    ['undefined', 'undefined'],
    ['loop', '{"name":"loop","self":"[Circular]"}'],
  ])('that throws no Error but %s fails and shows it', async (kind, shown) => {
    await expect(client.submit(bad.throwThing, kind).result()).rejects.toMatchObject({
      name: 'NonError',
      message: `something that is not an Error was thrown: ${shown}`,
    });
  });

  test('that throws a revoked proxy fails, and the next task runs', async () => {
    await expect(client.submit(bad.throwRevoked).result()).rejects.toMatchObject({
      message: expect.stringContaining('cannot be described') as string,
    });
    expect(await client.submit(bad.echo, mode).result()).toBe(mode);
  });

  test('whose result cannot travel fails with the path of what is in the way', async () => {
    await expect(client.submit(bad.returnFunction).result()).rejects.toMatchObject({
      code: 'ERR_NOT_SERIALISABLE',
      message: expect.stringContaining('result.rows[0].format is a function') as string,
    });
    await expect(client.submit(bad.returnDeep).result()).rejects.toMatchObject({
      code: 'ERR_NOT_SERIALISABLE',
      message: expect.stringContaining('nested too deeply') as string,
    });
  });

  // In the thread of the user, an error that nothing catches is the user's own.
  test.each(
    mode === 'inline'
      ? []
      : ([
          ['exit', 'ended with exit code 3 before the task returned'],
          ['throwOutside', 'died of an error that nothing caught: in a callback'],
          ['rejectUnseen', 'died of an error that nothing caught: nobody awaits me'],
        ] as const),
  )('that takes its thread down (%s) fails alone', async (name, says) => {
    const task = bad[name];
    await expect(client.submit(task).result()).rejects.toMatchObject({
      code: 'ERR_TASK',
      message: expect.stringContaining(says) as string,
    });
    expect(await client.submit(bad.echo, name).result()).toBe(name);
    expect(cluster.workerCount).toBe(1);
  });

  test('gets an argument of 100 MB', async () => {
    const bytes = new Uint8Array(100_000_000);
    expect(await client.submit(bad.lengthOf, bytes).result()).toBe(bytes.length);
  });
});

test('a hundred thousand tasks are submitted at once, and closing ends those that are left', async () => {
  const cluster = await LocalCluster.start({ mode: 'inline', workers: 1, log: new MemoryLog() });
  const client = await cluster.client();
  const items = Array.from({ length: 100_000 }, (_, index) => index);
  const futures = client.map(bad.echo, items);
  expect(await futures[0]!.result()).toBe(0);
  expect(cluster.scheduler.cluster.tasks.size).toBe(items.length);
  const last = futures.at(-1)!.error();
  await cluster.close();
  expect(await last).toMatchObject({ code: 'ERR_CLOSED' });
});

test('of a graph, what kills each worker is blamed with its dependents, and the rest is computed', async () => {
  const log = new MemoryLog();
  const cluster = await LocalCluster.start({ ...PATIENT, mode: 'processes', workers: 2, log });
  try {
    const client = await cluster.client();
    const items = Array.from({ length: 40 }, (_, index) => index);
    const graph: Graph = {
      killer: task(bad.killWorker),
      after: task(bad.echo, ref('killer')),
      ...Object.fromEntries(items.map((item) => [`e${item}`, task(bad.echo, item)])),
      all: task(
        bad.echo,
        items.map((item) => ref(`e${item}`)),
      ),
    };
    const [after, all] = client.compute(graph, ['after', 'all']) as readonly Future<unknown>[];
    expect(await all!.result()).toEqual(items);
    await expect(after!.result()).rejects.toMatchObject({
      code: 'ERR_KILLED_WORKER',
      data: { allowedFailures: 3, blame: 'killer' },
    });
    expect(log.lines.filter((line) => line.includes('is gone without a goodbye'))).toHaveLength(4);
  } finally {
    await cluster.close();
  }
});

test('a task that kills each worker is blamed in the end, and the others continue', async () => {
  const log = new MemoryLog();
  const config = { scheduler: { allowedFailures: 1 } };
  const cluster = await LocalCluster.start({
    ...PATIENT,
    mode: 'processes',
    workers: 2,
    log,
    config,
  });
  try {
    const client = await cluster.client();
    await expect(client.submit(bad.killWorker).result()).rejects.toMatchObject({
      code: 'ERR_KILLED_WORKER',
    });
    const gone =
      /worker worker-\d \(tls:.*\) is gone without a goodbye; .* 1 task it had \(killWorker-/;
    expect(log.lines.filter((line) => gone.test(line))).toHaveLength(2);
    expect(await client.submit(bad.echo, 5).result()).toBe(5);
  } finally {
    await cluster.close();
  }
});
