import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ClusterMode, LocalCluster } from '../../../adapters/app/local-cluster.ts';
import { Client, ref, task } from '../../../adapters/client/index.ts';
import { SystemClock } from '../../../adapters/clocks/index.ts';
import type { ActorHandle } from '../../../adapters/tasks/index.ts';
import { InMemoryTransport } from '../../../adapters/transports/memory.ts';
import { type Transport, YardmasterError } from '../../../core/api/index.ts';
import { Counter, type CounterClass, Mailbox, tasks } from './fixtures/actors.mjs';
import { eventually } from '../../kit/eventually.ts';

const MODES: readonly ClusterMode[] = ['inline', 'threads', 'processes'];
const config = { scheduler: { validate: true } };

describe.each(MODES)('an actor (%s)', (mode) => {
  let cluster: LocalCluster;
  let client: Client;
  let counter: ActorHandle<CounterClass>;
  beforeAll(async () => {
    cluster = await LocalCluster.start({ mode, workers: 1, threads: 1, config });
    client = await cluster.client();
    counter = await client.submitActor(Counter, 10).result();
  });
  afterAll(() => cluster.close());

  test('keeps its state between calls, and shows its properties', async () => {
    expect(await counter.increment()).toBe(11);
    expect(await counter.increment(4)).toBe(15);
    expect(await counter.n).toBe(15);
    expect(await counter.twice).toBe(30);
    expect(await counter.hello()).toBe('hello from CounterClass');
    expect(inspect(counter)).toMatch(/^<Actor CounterClass Counter-/);
  });

  test('is called in order, also by calls that wait', async () => {
    const fresh = await client.submitActor(Counter).result();
    const answers = [fresh.slowly(30, 'a'), fresh.slowly(1, 'b'), fresh.increment(), fresh.n];
    expect(await Promise.all(answers)).toEqual(['a', 'b', 1, 1]);
    expect(await fresh.log).toEqual(['a begins', 'a ends', 'b begins', 'b ends']);
  });

  test('of a class that allows it serves several calls at once', async () => {
    const mailbox = await client.submitActor(Mailbox).result();
    const first = mailbox.get();
    await mailbox.put('letter');
    expect(await first).toBe('letter');
  });

  test('throws what its methods throw, and lives on', async () => {
    await expect(counter.fails('on purpose')).rejects.toMatchObject({
      name: 'RangeError',
      message: 'on purpose',
      data: { shelf: 7 },
    });
    await expect(counter.gives()).rejects.toMatchObject({ code: 'ERR_NOT_SERIALISABLE' });
    const loose = counter as unknown as { nothing: PromiseLike<unknown> };
    await expect(loose.nothing).rejects.toMatchObject({ code: 'ERR_FUNCTION_MISSING' });
    await expect(client.submitActor(Counter, -1).result()).rejects.toMatchObject({
      name: 'RangeError',
    });
    expect(await counter.hello()).toContain('hello');
  });

  test('cannot be written to from afar', () => {
    expect(() => {
      (counter as unknown as { n: number }).n = 1;
    }).toThrow(/cannot be set from afar/);
  });

  test('is a new object each time', async () => {
    const [a, b] = await client.gather([client.submitActor(Counter), client.submitActor(Counter)]);
    await a.increment();
    expect([await a.n, await b.n]).toEqual([1, 0]);
  });

  test('is used by tasks, as a future, as a handle and in a graph', async () => {
    const future = client.submitActor(Counter);
    const handle = await future.result();
    expect(await client.submit(tasks.useCounter, future, 3).result()).toEqual([3, 3]);
    expect(await client.submit(tasks.useCounter, handle, 2).result()).toEqual([5, 5]);
    const graph = {
      c: task(Counter, 100),
      used: task(tasks.useCounter, ref<ActorHandle<CounterClass>>('c'), 2),
    };
    expect(await client.compute(graph, 'used').result()).toEqual([102, 102]);
  });

  test('is made and used inside a task', async () => {
    expect(await client.submit(tasks.makeOne).result()).toBe(7);
  });

  test('uses another actor', async () => {
    const other = await client.submitActor(Counter, 1000).result();
    const mine = await client.submitActor(Counter, 1).result();
    expect(await mine.addTo(other, 5)).toBe(1006);
    expect(await other.n).toBe(1005);
  });

  test('submits tasks, while the task that waits for it holds no thread', async () => {
    expect(await client.submit(tasks.waitFor, counter, [1, 2, 3]).result()).toBe(14);
  });

  test('connects tasks that wait for each other', async () => {
    const mailbox = client.submitActor(Mailbox);
    const read = client.submit(tasks.readMail, mailbox);
    const sent = client.submit(tasks.sendMail, mailbox, 'over here');
    expect(await read.result()).toBe('over here');
    await sent.result();
  });

  test('gives and takes large values', async () => {
    expect((await counter.large(2_000_000)).byteLength).toBe(2_000_000);
  });

  test('takes no futures, and says so', async () => {
    const future = client.submit(tasks.square, 3);
    await expect(counter.increment(future as unknown as number)).rejects.toMatchObject({
      code: 'ERR_GRAPH_INVALID',
      message: expect.stringContaining('await its result') as string,
    });
  });

  test('ends when its last handle is released, and its handles say so', async () => {
    const future = client.submitActor(Counter);
    const handle = await future.result();
    await handle.increment();
    future.release();
    expect(await handle.n).toBe(1); // The handle holds it.
    handle[Symbol.dispose]();
    await eventually(() => expect(cluster.scheduler.cluster.tasks.has(future.key)).toBe(false));
    await expect(handle.increment()).rejects.toMatchObject({ code: 'ERR_CANCELLED' });
  });

  test('is known to another client by its handle in a variable', async () => {
    const future = client.submitActor(Counter, 3);
    await client.variable(`shared-${mode}`).set(future);
    const other = await cluster.client();
    const got = (await other.variable(`shared-${mode}`).get()) as typeof future;
    const handle = await got.result();
    expect(await handle.increment()).toBe(4);
    await other.close();
    await expect(handle.increment()).rejects.toMatchObject({ code: 'ERR_CLOSED' });
  });
});

describe('an actor in a thread', () => {
  let cluster: LocalCluster;
  let client: Client;
  beforeAll(async () => {
    cluster = await LocalCluster.start({ mode: 'threads', workers: 1, threads: 2, config });
    client = await cluster.client();
  });
  afterAll(() => cluster.close());

  test('has a separate thread: it blocks no task, and no other actor blocks it', async () => {
    const [a, b] = await client.gather([client.submitActor(Counter), client.submitActor(Counter)]);
    const [, threadOfA, key] = await a.place();
    const [, threadOfB] = await b.place();
    expect(key).toMatch(/^Counter-/);
    expect(threadOfA).not.toBe(threadOfB);
    expect([threadOfA, threadOfB]).not.toContain(await client.submit(tasks.where).result());
    const folder = mkdtempSync(join(tmpdir(), 'yardmaster-actors-'));
    const blocked = a.blockUntil(join(folder, 'go'));
    await b.increment();
    await client.submit(tasks.square, 12).result();
    writeFileSync(join(folder, 'go'), '');
    expect(await blocked).toBe('done');
    rmSync(folder, { recursive: true });
  });

  test('shares a thread when there are many', async () => {
    const many = client.map(Counter, [1, 2, 3, 4, 5]);
    const places = await Promise.all((await client.gather(many)).map((each) => each.place()));
    expect(new Set(places.map(([, thread]) => thread)).size).toBe(2);
  });

  test('that ends its thread is lost, for its callers and for tasks that depend on it', async () => {
    const future = client.submitActor(Counter);
    const doomed = await future.result();
    await expect(doomed.dies()).rejects.toMatchObject({ code: 'ERR_ACTOR_LOST' });
    await expect(doomed.increment()).rejects.toMatchObject({ code: 'ERR_ACTOR_LOST' });
    await eventually(() => expect(future.status).toBe('error'));
    await expect(future.result()).rejects.toMatchObject({ code: 'ERR_ACTOR_LOST' });
    await expect(client.submit(tasks.useCounter, future, 1).result()).rejects.toMatchObject({
      code: 'ERR_ACTOR_LOST',
    });
    client.retry(future);
    const again = await future.result();
    expect(await again.increment()).toBe(1);
  });
});

test('an actor whose worker is killed is lost: open calls, later calls, and its future', async () => {
  await using cluster = await LocalCluster.start({
    mode: 'processes',
    workers: 1,
    nanny: false,
    config,
  });
  const client = await cluster.client();
  const future = client.submitActor(Counter);
  const counter = await future.result();
  const [pid] = await counter.place();
  const open = expect(counter.slowly(60_000, 'never')).rejects.toMatchObject({
    code: 'ERR_ACTOR_LOST',
    data: { key: future.key },
  });
  process.kill(pid, 'SIGKILL');
  await open;
  await expect(counter.increment()).rejects.toMatchObject({ code: 'ERR_ACTOR_LOST' });
  await eventually(() => expect(future.status).toBe('error'));
  await expect(future.error()).resolves.toMatchObject({ code: 'ERR_ACTOR_LOST' });
});

test('an actor is called by way of the scheduler when its worker cannot be reached', async () => {
  const clock = new SystemClock();
  const transport = new InMemoryTransport(clock);
  await using cluster = await LocalCluster.start({ workers: 1, transport, config });
  const behindWall: Transport = {
    scheme: transport.scheme,
    listen: (address, accept) => transport.listen(address, accept),
    connect: (address, open, options) =>
      address === cluster.address
        ? transport.connect(address, open, options)
        : Promise.reject(new YardmasterError('ERR_CONNECT', `${address} is behind a wall`)),
  };
  await using client = await Client.connect(cluster.address, { transports: [behindWall], clock });
  const future = client.submitActor(Counter);
  const counter = await future.result();
  expect(await Promise.all([counter.slowly(20, 'a'), counter.increment(), counter.n])).toEqual([
    'a',
    1,
    1,
  ]);
  await expect(counter.fails('behind')).rejects.toMatchObject({ name: 'RangeError' });
  await expect(cluster.scaleTo(0)).rejects.toMatchObject({ code: 'ERR_RETIRE' });
  expect(await counter.increment()).toBe(2);
  const { scheduler } = cluster;
  for (const worker of scheduler.cluster.workers.keys()) {
    scheduler.enqueue({ op: 'remove-worker', worker, expected: true, close: true });
  }
  await expect(counter.increment()).rejects.toMatchObject({ code: 'ERR_ACTOR_LOST' });
});

test('without a cluster a class makes objects, and actors in this process', async () => {
  const plain = new Counter(2);
  expect(plain.increment()).toBe(3);
  const local = Counter(2);
  expect(await local.increment()).toBe(3);
  expect(await local.n).toBe(3);
  await expect(local.fails('here')).rejects.toThrow('here');
});
