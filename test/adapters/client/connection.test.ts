import { describe, expect, test, onTestFinished } from 'vitest';
import { startScheduler } from '../../kit/start-scheduler.ts';
import { MemoryLog } from '../../bad-input/memory-log.ts';
import { Client, Future, wait } from '../../../adapters/client/index.ts';
import { VirtualClock } from '../../../adapters/clocks/index.ts';
import { InMemoryTransport } from '../../../adapters/transports/memory.ts';
import { add, inc, total } from './tasks.ts';

/** A real scheduler without workers, in virtual time. */
async function start(config: object = {}) {
  const clock = new VirtualClock();
  const transport = new InMemoryTransport(clock);
  const running = await startScheduler(
    {
      config: { scheduler: { validate: true, ...config } },
      clock,
      transports: [transport],
      log: new MemoryLog(), // Most of these schedulers have no worker, and say so.
    },
    'inmemory://scheduler',
  );
  onTestFinished(() => passing(clock, running.close()));
  const connect = async (): Promise<Client> => {
    const client = await passing(
      clock,
      Client.connect(running.address, { transports: [transport], clock }),
    );
    onTestFinished(() => passing(clock, client.close()));
    return client;
  };
  return { clock, running, connect, transport };
}

/** Lets virtual time pass until a promise is settled. */
async function passing<T>(clock: VirtualClock, promise: Promise<T>): Promise<T> {
  let isSettled = false;
  const settle = (): void => void (isSettled = true);
  promise.then(settle, settle);
  await clock.runUntil(() => isSettled);
  return promise;
}

describe('a client', () => {
  test('cannot connect where no process listens', async () => {
    const { clock, transport } = await start();
    const connecting = Client.connect('inmemory://vacant', { transports: [transport], clock });
    await expect(passing(clock, connecting)).rejects.toMatchObject({ code: 'ERR_CONNECT' });
    await expect(Client.connect('nonsense')).rejects.toMatchObject({ code: 'ERR_CONNECT' });
  });

  test('submits thousands of tasks with one message', async () => {
    const { clock, running, connect } = await start();
    const client = await connect();
    const graphs: number[] = [];
    running.scheduler.events.on('graph-submitted', (_client, count) => graphs.push(count));
    const futures = client.map(
      inc,
      Array.from({ length: 3000 }, (_, index) => index),
    );
    await clock.advanceAsync(10);
    expect(graphs).toEqual([3000]);
    expect(futures.every((future) => future.status === 'pending')).toBe(true);
  });

  test('gives the same call the same key, and runs it once', async () => {
    const { clock, running, connect } = await start();
    const client = await connect();
    const [one, same, other] = [
      client.submit(inc, 1),
      client.submit(inc, 1),
      client.submit(inc, 2),
    ];
    const impure = client.with({ pure: false });
    const [twin1, twin2] = [impure.submit(inc, 1), impure.submit(inc, 1)];
    expect(one.key).toBe(same.key);
    expect(one.key).toMatch(/^inc-[0-9a-f]{32}$/);
    expect(new Set([one, other, twin1, twin2].map(({ key }) => key)).size).toBe(4);
    await clock.advanceAsync(10);
    expect(running.scheduler.cluster.tasks.size).toBe(4);
  });

  test('has the same key however the engine holds its arguments', async () => {
    const { connect } = await start();
    const client = await connect();
    const computed = new Float64Array([7])[0]!;
    const keys = [
      client.submit(total, [7, 0, 0, 0]),
      client.submit(total, [computed, 0, 0, 0]),
      client.submit(total, Object.assign(new Array<number>(4).fill(0), [computed])),
    ].map(({ key }) => key);
    expect(new Set(keys).size).toBe(1);
  });

  test('has the same key for deeply nested arguments, however deep the stack is', async () => {
    const { connect } = await start();
    const client = await connect();
    let nested: unknown = [];
    for (let depth = 0; depth < 1000; depth++) nested = [nested];
    const submit = (depth: number): string =>
      depth === 0 ? client.submit(inc, nested as number).key : submit(depth - 1);
    expect(new Set([submit(0), submit(1000), submit(4000)]).size).toBe(1);
  });

  test('is not mistaken for a promise when it returns a future', async () => {
    const { connect } = await start();
    const client = await connect();
    const future = await Promise.resolve(client.submit(inc, 1));
    expect(future).toBeInstanceOf(Future);
    expect('then' in future).toBe(false);
    expect(future.toString()).toBe(`<Future ${future.key} pending>`);
  });

  test('passes options of a task on', async () => {
    const { clock, running, connect } = await start();
    const client = await connect();
    const options = { retries: 2, priority: 5, resources: { GPU: 1 }, annotations: { team: 'x' } };
    const future = client.with({ ...options, workers: ['left'], key: 'mine' }).submit(inc, 1);
    await clock.advanceAsync(10);
    const task = running.scheduler.cluster.tasks.get('mine');
    expect(future.key).toBe('mine');
    expect(task).toMatchObject({ retries: 2, annotations: { team: 'x' } });
    expect(task?.priority?.[0]).toBe(-5);
    expect(task?.restrictions?.resources?.get('GPU')).toBe(1);
  });

  test('refuses a second task under a key that is taken', async () => {
    const { connect } = await start();
    const client = await connect();
    const mine = client.with({ key: 'mine' });
    const first = mine.submit(inc, 1);
    expect(mine.submit(inc, 1).key).toBe('mine');
    expect(() => mine.submit(inc, 2)).toThrow(
      expect.objectContaining({ code: 'ERR_KEY_TAKEN', data: { key: 'mine' } }),
    );
    first.release();
  });

  test('refuses functions that workers cannot find, and bad arguments', async () => {
    const { connect } = await start();
    const client = await connect();
    const local = ((x: number) => x) as never;
    expect(() => client.submit(local, 1 as never)).toThrow('is not known to workers; define it');
    expect(() => client.submit(total, [(() => 1) as never])).toThrow(
      /task "total": arguments\[0\]\[0\] is a function/,
    );
    const key = 5 as unknown as string;
    expect(() => client.with({ key })).toThrow('a key must be a string, got number');
    expect(() => client.map(add, [1, 2], [1])).toThrow('sequences of the same length, got 2, 1');
  });

  test('refuses futures that cannot be arguments', async () => {
    const { connect } = await start();
    const [client, another] = [await connect(), await connect()];
    const future = client.submit(inc, 1);
    expect(() => another.submit(inc, future)).toThrow('belongs to another client');
    const cancelled = client.submit(inc, 2);
    cancelled.cancel();
    expect(() => client.submit(inc, cancelled)).toThrow('is cancelled');
    future.release();
    expect(() => client.submit(inc, future)).toThrow('was released');
  });

  test('forgets what is released, and the cluster with it', async () => {
    const { clock, running, connect } = await start();
    const client = await connect();
    const first = client.submit(inc, 1);
    const second = client.submit(inc, 1);
    await clock.advanceAsync(10);
    first.release();
    first.release();
    await clock.advanceAsync(10);
    expect(running.scheduler.cluster.tasks.size).toBe(1);
    second.release();
    await clock.advanceAsync(10);
    expect(running.scheduler.cluster.tasks.size).toBe(0);
    await expect(second.result()).rejects.toMatchObject({ code: 'ERR_CANCELLED' });
  });

  test('cancels tasks, with their dependents, for all waiting callers', async () => {
    const { clock, running, connect } = await start();
    const client = await connect();
    const base = client.submit(inc, 1);
    const dependent = client.submit(inc, base);
    const waiting = Promise.allSettled([base.result(), dependent.result()]);
    client.cancel(base, { reason: 'enough' });
    const outcomes = await passing(clock, waiting);
    expect(outcomes).toMatchObject([
      { reason: { code: 'ERR_CANCELLED', message: `"${base.key}" was cancelled: enough` } },
      { reason: { code: 'ERR_CANCELLED' } },
    ]);
    await clock.advanceAsync(10);
    expect(running.scheduler.cluster.tasks.size).toBe(0);
  });

  test('can submit again what it has just cancelled', async () => {
    const { clock, running, connect } = await start();
    const client = await connect();
    client.submit(inc, 1).cancel();
    const again = client.submit(inc, 1);
    await clock.advanceAsync(100);
    expect(again.status).toBe('pending');
    expect(running.scheduler.cluster.tasks.has(again.key)).toBe(true);
  });

  test('leaves alone what another client wants, unless it is forced', async () => {
    const { clock, connect } = await start();
    const [one, two] = [await connect(), await connect()];
    const mine = one.submit(inc, 1);
    const theirs = two.submit(inc, 1);
    await clock.advanceAsync(10);
    mine.cancel();
    await clock.advanceAsync(10);
    expect([mine.status, theirs.status]).toEqual(['cancelled', 'pending']);
    one.submit(inc, 1).cancel({ force: true });
    await clock.advanceAsync(10);
    expect(theirs.status).toBe('cancelled');
  });

  test('cancels what was submitted when the signal is aborted', async () => {
    const { connect } = await start();
    const client = await connect();
    const controller = new AbortController();
    const bound = client.with({ signal: controller.signal });
    const futures = bound.map(inc, [1, 2]);
    controller.abort(new Error('too late'));
    await expect(futures[0]?.result()).rejects.toThrow('was aborted (Error: too late)');
    expect(futures.map(({ status }) => status)).toEqual(['cancelled', 'cancelled']);
    expect(() => bound.submit(inc, 3)).toThrow(expect.objectContaining({ code: 'ERR_CANCELLED' }));
  });

  test('fails everything that is open with ERR_CLOSED when the scheduler goes', async () => {
    const { clock, running, connect } = await start();
    const client = await connect();
    const future = client.submit(inc, 1);
    const open = Promise.allSettled([
      future.result(),
      client.gather([future]),
      future.settled(),
      client.scatter([1]),
    ]);
    await clock.advanceAsync(10);
    await passing(clock, running.close());
    const outcomes = await passing(clock, open);
    expect(outcomes.map(({ status }) => status)).toEqual([
      'rejected',
      'rejected',
      'fulfilled',
      'rejected',
    ]);
    expect(outcomes[0]).toMatchObject({
      reason: { code: 'ERR_CLOSED', data: { key: future.key } },
    });
    expect(outcomes[3]).toMatchObject({ reason: { code: 'ERR_CLOSED' } });
    expect(client.isClosed).toBe(true);
    expect(() => client.submit(inc, 2)).toThrow(expect.objectContaining({ code: 'ERR_CLOSED' }));
    await expect(client.identity()).rejects.toMatchObject({ code: 'ERR_CLOSED' });
  });

  test('releases all it wanted when it closes', async () => {
    const { clock, running, connect } = await start();
    const client = await connect();
    const future = client.submit(inc, 1);
    await clock.advanceAsync(10);
    await passing(clock, client.close());
    await clock.advanceAsync(10);
    expect(running.scheduler.cluster.tasks.size).toBe(0);
    expect(running.scheduler.cluster.clients.has(client.id)).toBe(false);
    await expect(future.result()).rejects.toMatchObject({ code: 'ERR_CLOSED' });
  });

  test('gives up waiting after the time', async () => {
    const { clock, connect } = await start();
    const client = await connect();
    const futures = client.map(inc, [1, 2]);
    await expect(passing(clock, wait(futures, { timeoutMs: 50, clock }))).rejects.toMatchObject({
      code: 'ERR_TIMEOUT',
      data: { notDone: 2 },
    });
  });

  test('has tasks failed after the time for which there is no worker', async () => {
    const { clock, connect } = await start({ noWorkersTimeout: '2s' });
    const client = await connect();
    await expect(passing(clock, client.submit(inc, 1).result())).rejects.toMatchObject({
      code: 'ERR_NO_WORKER',
    });
    expect(clock.nowMs()).toBeLessThan(3000);
  });

  test('does not scatter without a worker', async () => {
    const { clock, connect } = await start();
    const client = await connect();
    await expect(passing(clock, client.scatter([1], { timeoutMs: 300 }))).rejects.toMatchObject({
      code: 'ERR_NO_WORKER',
    });
  });

  test('asks the scheduler by commands', async () => {
    const { clock, connect } = await start({ activeMemoryManager: { start: false } });
    const client = await connect();
    const future = client.submit(inc, 1);
    const identity = await passing(clock, client.identity());
    expect(identity).toMatchObject({ addresses: ['inmemory://scheduler'], workers: [] });
    const story = await passing(clock, client.story([future.key]));
    expect(story.at(0)).toMatchObject({ key: future.key, start: 'released', finish: 'waiting' });
    expect(story.at(-1)).toMatchObject({ key: future.key, finish: 'queued' });
    const states: boolean[] = [];
    states.push(await passing(clock, client.amm.running()));
    await passing(clock, client.amm.start());
    await passing(clock, client.amm.runOnce());
    states.push(await passing(clock, client.amm.running()));
    await passing(clock, client.amm.stop());
    states.push(await passing(clock, client.amm.running()));
    expect(states).toEqual([false, true, false]);
    await expect(passing(clock, client.command('nonsense'))).rejects.toMatchObject({
      code: 'ERR_PROTOCOL',
    });
    expect(client.isClosed).toBe(false);
  });

  test('reports now and then that it lives', async () => {
    const { clock, running, connect } = await start();
    const client = await connect();
    const seenMs = (): number =>
      running.scheduler.cluster.clients.get(client.id)?.lastSeenMs ?? NaN;
    const before = seenMs();
    await clock.advanceAsync(60_000);
    expect(seenMs()).toBeGreaterThan(before + 30_000);
  });
});
