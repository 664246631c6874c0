import { expect, test, onTestFinished } from 'vitest';
// What a cluster imports when it starts: no time shall pass while modules are read.
import '../../../adapters/executors/inline.ts';
import '../../../plugins/active-memory-manager.ts';
import '../../../plugins/coordination.ts';
import '../../../policies/amm/reduce-replicas.ts';
import '../../../policies/ordering/depth-first.ts';
import '../../../policies/queuing/root-ish.ts';
import '../../../policies/worker-selection/earliest-start.ts';
import type { RunningScheduler } from '../../../adapters/app/start-scheduler.ts';
import { startScheduler } from '../../kit/start-scheduler.ts';
import { startWorker } from '../../../adapters/app/start-worker.ts';
import { Client, type ConnectOptions, type Reconnected } from '../../../adapters/client/index.ts';
import { VirtualClock } from '../../../adapters/clocks/index.ts';
import { InMemoryTransport } from '../../../adapters/transports/memory.ts';
import { MemoryLog } from '../../bad-input/memory-log.ts';
import { BreakableTransport } from '../../kit/breakable-transport.ts';
import { calls, count, inc } from './tasks.ts';

const ADDRESS = 'inmemory://scheduler';

/** A scheduler that can go, one worker, and clients that come back. */
class World {
  readonly clock = new VirtualClock(1_000_000);
  readonly network = new InMemoryTransport(this.clock);
  readonly log = new MemoryLog();
  readonly returns: Reconnected[] = [];
  running!: RunningScheduler;

  async startScheduler(config: object = {}): Promise<void> {
    const { clock, log, network } = this;
    this.running = await this.passing(
      startScheduler(
        {
          config: { scheduler: { validate: true, ...config } },
          clock,
          log,
          transports: [network],
        },
        ADDRESS,
      ),
    );
    onTestFinished(() => this.passing(this.running.close()));
  }

  async startWorker(): Promise<BreakableTransport> {
    const { clock, log } = this;
    const line = new BreakableTransport(this.network);
    const worker = await this.passing(
      startWorker(ADDRESS, {
        name: 'alice',
        executor: 'inline',
        onSchedulerLost: 'reconnect',
        transports: [line],
        clock,
        log,
        validate: true,
      }),
    );
    onTestFinished(() => this.passing(worker.close()));
    return line;
  }

  async client(
    options: ConnectOptions = {},
  ): Promise<{ client: Client; line: BreakableTransport }> {
    const { clock } = this;
    const line = new BreakableTransport(this.network);
    const client = await this.passing(
      Client.connect(ADDRESS, {
        onSchedulerLost: 'reconnect',
        onReconnected: (event) => this.returns.push(event),
        ...options,
        transports: [line],
        clock,
      }),
    );
    onTestFinished(() => this.passing(client.close()));
    return { client, line };
  }

  /** Lets virtual time pass until it is settled; tasks and modules take real time, too. */
  async passing<T>(promise: Promise<T>): Promise<T> {
    const state = { isSettled: false };
    const settle = (): void => void (state.isSettled = true);
    promise.then(settle, settle);
    const limitMs = this.clock.nowMs() + 1_000_000;
    while (!state.isSettled) {
      await new Promise((resolve) => setImmediate(resolve));
      const { nextTimerMs } = this.clock;
      if (nextTimerMs === undefined) continue;
      if (nextTimerMs > limitMs) throw new Error('what the test waits for does not happen');
      await this.clock.advanceToAsync(nextTimerMs);
    }
    return promise;
  }

  pass(ms: number): Promise<void> {
    return this.clock.advanceAsync(ms);
  }

  get taskCount(): number {
    return this.running.scheduler.cluster.tasks.size;
  }
}

test('a broken connection costs nothing: finished tasks stay, open ones continue', async () => {
  const world = new World();
  await world.startScheduler();
  const { client, line } = await world.client();
  const waiting = client.submit(inc, 1);
  await world.pass(10);
  line.cut();
  await world.pass(1);
  expect([client.isConnected, client.isClosed]).toEqual([false, false]);
  await world.pass(1000);
  expect(client.isConnected).toBe(true);
  expect(world.returns).toMatchObject([{ attempts: 1, lost: [] }]);
  expect(waiting.status).toBe('pending');
  await world.startWorker();
  expect(await world.passing(waiting.result())).toBe(2);
  line.cut();
  // Waits for the connection, and asks again.
  expect(await world.passing(waiting.result())).toBe(2);
  expect(await world.passing(client.submit(inc, waiting).result())).toBe(3);
});

test('what the client gave up while its connection broke is given up when it is back', async () => {
  const world = new World();
  await world.startScheduler();
  const { client, line } = await world.client();
  const [kept, released, cancelled] = [1, 2, 3].map((value) => client.submit(inc, value));
  await world.pass(10);
  released!.release();
  cancelled!.cancel();
  // The reports have left, and the scheduler never gets them.
  await new Promise<void>((resolve) => {
    process.nextTick(() => process.nextTick(resolve));
  });
  line.cut();
  await world.pass(1000);
  expect(world.returns).toMatchObject([{ lost: [] }]);
  expect([...world.running.scheduler.cluster.tasks.keys()]).toEqual([kept!.key]);
});

test('what another scheduler does not know fails with ERR_LOST, and new work is computed', async () => {
  const world = new World();
  await world.startScheduler();
  await world.startWorker();
  const { client } = await world.client();
  const done = client.submit(inc, 1);
  const failing = world.passing(done.result());
  await failing;
  const open = client.with({ workers: ['nobody'] }).submit(inc, 2);
  const waiting = Promise.allSettled([open.result(), client.gather([open])]);
  await world.pass(10);
  await world.passing(world.running.close());
  await world.startScheduler();
  const outcomes = await world.passing(waiting);
  for (const outcome of outcomes) {
    expect(outcome).toMatchObject({ reason: { code: 'ERR_LOST', data: { key: open.key } } });
  }
  expect(new Set(world.returns[0]?.lost)).toEqual(new Set([done.key, open.key]));
  await expect(world.passing(done.result())).rejects.toThrow(/was lost: .* submit it again/);
  expect([done.status, open.status]).toEqual(['cancelled', 'cancelled']);
  expect(await world.passing(client.submit(inc, 1).result())).toBe(2);
  expect(client.isClosed).toBe(false);
});

test('what is submitted and asked meanwhile waits', async () => {
  const world = new World();
  await world.startScheduler();
  await world.startWorker();
  const { client, line } = await world.client();
  line.isDown = true;
  line.cut();
  await world.pass(1);
  const future = client.submit(inc, 41);
  const dropped = client.submit(inc, 99);
  dropped.release();
  const identity = client.identity();
  await world.pass(5000);
  expect(future.status).toBe('pending');
  line.isDown = false;
  expect(await world.passing(future.result())).toBe(42);
  expect(await world.passing(identity)).toMatchObject({ workers: [{ name: 'alice' }] });
  expect(world.returns[0]).toMatchObject({ lost: [] });
  expect(world.returns[0]!.attempts).toBeGreaterThan(3);
  expect(world.taskCount).toBe(1);
});

test('what depends on a task that the client cancels meanwhile is cancelled, not lost', async () => {
  const world = new World();
  await world.startScheduler();
  const { client, line } = await world.client();
  const root = client.submit(inc, 1);
  const child = client.submit(inc, root);
  await world.pass(10);
  line.isDown = true;
  line.cut();
  await world.pass(1);
  client.cancel([root], { reason: 'no longer needed' });
  line.isDown = false;
  await expect(world.passing(child.result())).rejects.toMatchObject({
    code: 'ERR_CANCELLED',
    data: { key: child.key, reason: 'no longer needed' },
  });
  expect(world.returns).toMatchObject([{ lost: [] }]);
});

test('what another client cancels by force meanwhile is cancelled, not lost', async () => {
  const world = new World();
  await world.startScheduler();
  const { client, line } = await world.client();
  const other = await world.client();
  const root = client.submit(inc, 1);
  const child = client.submit(inc, root);
  const wanted = other.client.submit(inc, 1);
  await world.pass(10);
  line.isDown = true;
  line.cut();
  await world.pass(1);
  const message = 'for all of us '.repeat(1000);
  other.client.cancel([wanted], { force: true, reason: 'no longer needed', message });
  await world.pass(10);
  expect(world.taskCount).toBe(0);
  line.isDown = false;
  const kept = `${message.slice(0, 1000)}… (13000 more characters)`;
  await expect(world.passing(child.result())).rejects.toMatchObject({
    code: 'ERR_CANCELLED',
    data: { key: child.key, reason: 'no longer needed', message: kept },
  });
  expect(world.returns).toMatchObject([{ lost: [] }]);
});

test('worker and client lose the scheduler at once, and nothing that is done is computed again', async () => {
  const world = new World();
  await world.startScheduler();
  const workers = await world.startWorker();
  const { client, line } = await world.client();
  calls.delete('both');
  const futures = client.map(count, ['both', 'both-2']);
  await world.passing(client.gather(futures));
  workers.cut();
  line.cut();
  await world.pass(1);
  expect(world.running.scheduler.cluster.workers.size).toBe(0);
  // From the worker, which has lost the scheduler just as well.
  expect(await world.passing(client.gather(futures))).toEqual([1, 1]);
  await world.pass(5000);
  expect(world.returns[0]?.lost).toEqual([]);
  expect(await world.passing(client.gather(futures, { direct: false }))).toEqual([1, 1]);
  expect(calls.get('both')).toBe(1);
});

test('a client whose scheduler does not come back closes after its time, and says so', async () => {
  const world = new World();
  await world.startScheduler();
  const { client } = await world.client({ reconnectTimeoutMs: 10_000 });
  const future = client.submit(inc, 1);
  const asked = client.hasWhat();
  await world.passing(asked);
  await world.passing(world.running.close());
  const late = client.hasWhat();
  const outcomes = await world.passing(Promise.allSettled([future.result(), late]));
  for (const outcome of outcomes) {
    expect(outcome).toMatchObject({ reason: { code: 'ERR_CLOSED' } });
  }
  await expect(future.result()).rejects.toThrow(/was not back within 10 s/);
  expect(client.isClosed).toBe(true);
  expect(() => client.submit(inc, 2)).toThrow(expect.objectContaining({ code: 'ERR_CLOSED' }));
});

test('a client can be closed while it is away', async () => {
  const world = new World();
  await world.startScheduler();
  const { client, line } = await world.client({ reconnectTimeoutMs: Infinity });
  const future = client.submit(inc, 1);
  await world.pass(10);
  line.isDown = true;
  line.cut();
  await world.pass(500);
  await world.passing(client.close());
  await expect(future.result()).rejects.toMatchObject({ code: 'ERR_CLOSED' });
  line.isDown = false;
  await world.pass(120_000);
  expect(world.running.scheduler.cluster.clients.has(client.id)).toBe(false);
  expect(world.returns).toEqual([]);
});

test('a client that is closed while it comes back leaves nothing behind', async () => {
  for (const turns of Array.from({ length: 40 }, (_, index) => index + 2)) {
    const world = new World();
    await world.startScheduler();
    const { client, line } = await world.client();
    client.submit(inc, 1);
    await world.pass(10);
    line.cut();
    await world.pass(1);
    world.clock.advance(150);
    for (let turn = 0; turn < turns; turn++) await Promise.resolve();
    await world.passing(client.close());
    await world.pass(5000);
    expect([turns, world.taskCount]).toEqual([turns, 0]);
  }
});

test('a client that may come back is waited for, for as long as the scheduler wants', async () => {
  const world = new World();
  await world.startScheduler({ clientGrace: '20s' });
  const { client, line } = await world.client({ reconnectTimeoutMs: 100_000 });
  const future = client.submit(inc, 1);
  await world.pass(10);
  line.isDown = true;
  line.cut();
  await world.pass(19_000);
  expect(world.taskCount).toBe(1);
  await world.pass(2000);
  expect(world.taskCount).toBe(0);
  line.isDown = false;
  await expect(world.passing(future.result())).rejects.toMatchObject({ code: 'ERR_LOST' });
});

test('a client that closes in good order, or does not come back, is not waited for', async () => {
  const world = new World();
  await world.startScheduler();
  const { client } = await world.client();
  client.submit(inc, 1);
  await world.pass(10);
  await world.passing(client.close());
  await world.pass(10);
  expect(world.taskCount).toBe(0);
  const other = await world.client({ onSchedulerLost: 'close' });
  other.client.submit(inc, 1);
  await world.pass(10);
  other.line.cut();
  await world.pass(10);
  expect(world.taskCount).toBe(0);
  expect(other.client.isClosed).toBe(true);
});

test('a client that comes back before the scheduler has noticed takes its own place', async () => {
  const world = new World();
  await world.startScheduler();
  const { client, line } = await world.client();
  const names = [...world.running.scheduler.cluster.clients.keys()];
  expect(names).toContain(client.id);
  for (let round = 0; round < 3; round++) {
    line.cut();
    await world.pass(110);
    expect(client.isConnected).toBe(true);
    expect([...world.running.scheduler.cluster.clients.keys()]).toEqual(names);
  }
});

test('topics continue, with another scheduler as well', async () => {
  const world = new World();
  await world.startScheduler();
  const { client } = await world.client();
  const heard: unknown[] = [];
  await world.passing(client.subscribeTopic('news', (message) => heard.push(message)));
  await world.passing(client.logEvent('news', 'one'));
  await world.pass(10);
  await world.passing(world.running.close());
  await world.startScheduler();
  await world.pass(10_000);
  await world.passing(client.logEvent('news', 'two'));
  await world.pass(10);
  expect(heard).toEqual(['one', 'two']);
});

test('a lock is lost with the scheduler that gave it, and its holder is notified', async () => {
  const world = new World();
  await world.startScheduler();
  const { client } = await world.client();
  const lease = await world.passing(client.lock('door').acquire());
  await world.passing(world.running.close());
  await world.startScheduler();
  await world.pass(60_000);
  expect(lease.signal.aborted).toBe(true);
});

test('a lock is kept when the connection breaks while it is being renewed', async () => {
  const world = new World();
  await world.startScheduler();
  const { client, line } = await world.client();
  const lease = await world.passing(client.lock('door').acquire());
  world.clock.setTimer(10_000, () => line.cut());
  await world.pass(60_000);
  expect(world.returns).toHaveLength(1);
  expect(lease.signal.aborted).toBe(false);
  await world.passing(lease.release());
});
