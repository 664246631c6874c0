/** Schedulers that are killed and started again with their journal, over real sockets and processes. */
import { cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openScheduler } from '../../../../adapters/app/start-scheduler.ts';
import { Client, ref, type Reconnected, task } from '../../../../adapters/client/index.ts';
import { SystemClock } from '../../../../adapters/clocks/index.ts';
import { openChannel } from '../../../../adapters/dask/wire/comm-pool.ts';
import {
  BRIDGE,
  type Channel,
  definePlugin,
  type PluginDefinition,
  type Transport,
} from '../../../../core/api/index.ts';
import { TcpTransport } from '../../../../adapters/transports/tcp/index.ts';
import { sayHello } from '../../../../core/shared/channels.ts';
import { BreakableTransport } from '../../../kit/breakable-transport.ts';
import type { Run } from '../../../kit/runs.ts';
import { useLive } from '../../../kit/live.ts';
import { failing, lateParent, leaf, parent, sum } from './fixtures/tasks.js';

const { folder, runs, stops } = useLive('journal');

const ignore = (): void => undefined;
const SILENT = { debug: ignore, info: ignore, warn: ignore, error: ignore };

/** A scheduler that can be killed, and started again at its address. */
class Killable {
  private constructor(
    private run: Run,
    readonly address: string,
    private readonly args: readonly string[],
  ) {}

  static async start(journal: string, ...more: string[]): Promise<Killable> {
    const args = ['scheduler', '--journal', journal, '--no-dashboard', ...more];
    const run = runs.yardmaster(...args, '--port', '0');
    return new Killable(run, await run.firstLine(), args);
  }

  /** @param afterMs - for which the scheduler stays away */
  async killAndStart({ afterMs = 0 } = {}): Promise<void> {
    this.run.child.kill('SIGKILL');
    await this.run.exit;
    await new Promise((resolve) => setTimeout(resolve, afterMs));
    const { port } = new URL(this.address.replace('tcp:', 'http:'));
    this.run = runs.yardmaster(...this.args, '--port', port);
    await this.run.firstLine();
  }

  get stderr(): string {
    return this.run.stderr;
  }
}

async function startWorkers(address: string, count: number): Promise<Run[]> {
  const config = join(folder, 'worker.yaml');
  writeFileSync(
    config,
    'worker: { onSchedulerLost: reconnect, reconnectTimeout: 60s, threads: 2, nanny: false }',
  );
  const args = ['worker', address, '--config', config, '--log-level', 'error'];
  const workers = Array.from({ length: count }, () => runs.yardmaster(...args));
  await Promise.all(workers.map((worker) => worker.firstLine()));
  return workers;
}

async function connect(
  address: string,
  returns: Reconnected[] = [],
  transports: readonly Transport[] = [],
): Promise<Client> {
  const client = await Client.connect(address, {
    onSchedulerLost: 'reconnect',
    onReconnected: (event) => returns.push(event),
    transports,
  });
  stops.push(() => client.close());
  return client;
}

function linesOf(file: string): string[] {
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
}

test('a scheduler that is killed three times in a graph computes no task twice', async () => {
  const scheduler = await Killable.start(join(folder, 'three'));
  await startWorkers(scheduler.address, 2);
  const returns: Reconnected[] = [];
  const client = await connect(scheduler.address, returns);
  const file = join(folder, 'three.txt');
  const leaves = Array.from({ length: 120 }, (_, x) => client.submit(leaf, file, 40, x));
  const sums = Array.from({ length: 12 }, (_, index) =>
    client.submit(sum, file, String(index), 40, leaves.slice(10 * index, 10 * index + 10)),
  );
  const total = client.submit(sum, file, 'all', 10, sums);
  await client.committed();
  for (const done of [10, 50, 100]) {
    await until(() => linesOf(file).length >= done);
    await scheduler.killAndStart();
  }
  expect(await total.result()).toBe((119 * 120) / 2);
  const lines = linesOf(file);
  expect(new Set(lines).size).toBe(133);
  expect(lines).toHaveLength(133);
  expect(returns.flatMap(({ lost }) => lost)).toEqual([]);
});

test('a run that goes on while the scheduler is away is adopted, and its result counts', async () => {
  const scheduler = await Killable.start(join(folder, 'adopted'));
  await startWorkers(scheduler.address, 1);
  const client = await connect(scheduler.address);
  const file = join(folder, 'adopted.txt');
  const slow = client.submit(leaf, file, 3000, 7);
  const early = client.submit(leaf, file, 0, 1);
  expect(await early.result()).toBe(1);
  await scheduler.killAndStart();
  expect(await slow.result()).toBe(7);
  expect(linesOf(file)).toEqual(['leaf-1', 'leaf-7']);
});

test('a program that submits its graph again after a restart gets its results, and another one is refused', async () => {
  const scheduler = await Killable.start(join(folder, 'again'));
  await startWorkers(scheduler.address, 1);
  const file = join(folder, 'again.txt');
  const graph = (x: number) => ({ total: task(leaf, file, 0, x) });
  const first = await connect(scheduler.address);
  const total = first.compute(graph(7), 'total');
  expect(await total.result()).toBe(7);
  await scheduler.killAndStart();
  const [again, other] = await Promise.all([0, 1].map(() => connect(scheduler.address)));
  expect(await again!.compute(graph(7), 'total').result()).toBe(7);
  await expect(other!.compute(graph(8), 'total').result()).rejects.toMatchObject({
    code: 'ERR_KEY_TAKEN',
  });
  expect(await total.result()).toBe(7);
  expect(linesOf(file)).toEqual(['leaf-7']);
});

test('a failure is still known after a restart, and a retry computes the task again', async () => {
  const scheduler = await Killable.start(join(folder, 'failed'));
  await startWorkers(scheduler.address, 1);
  const client = await connect(scheduler.address);
  const file = join(folder, 'failed.txt');
  const future = client.submit(failing, file);
  await expect(future.result()).rejects.toThrow('as it was told');
  await scheduler.killAndStart();
  await expect(future.result()).rejects.toThrow('as it was told');
  expect(linesOf(file)).toEqual(['failing']);
  client.retry([future]);
  await expect(future.result()).rejects.toThrow('as it was told');
  expect(linesOf(file)).toEqual(['failing', 'failing']);
});

test('a client that was away hears after a restart that its task was cancelled', async () => {
  const scheduler = await Killable.start(join(folder, 'cancelled'));
  const line = new BreakableTransport(new TcpTransport(new SystemClock()));
  const [away, other] = await Promise.all([
    connect(scheduler.address, [], [line]),
    connect(scheduler.address),
  ]);
  const graph = { root: task(leaf, '', 0, 1), top: task(sum, '', 'top', 0, [ref('root')]) };
  const top = away.compute(graph, 'top');
  const root = other.compute(graph, 'root');
  await Promise.all([away.committed(), other.committed()]);
  line.isDown = true;
  line.cut();
  other.cancel([root], { force: true, reason: 'no longer needed' });
  await other.committed();
  await scheduler.killAndStart();
  line.isDown = false;
  await expect(top.result()).rejects.toMatchObject({
    code: 'ERR_CANCELLED',
    data: { reason: 'no longer needed' },
  });
});

test('tasks that submit tasks survive a restart, and neither they nor their children run twice', async () => {
  const scheduler = await Killable.start(join(folder, 'parents'));
  await startWorkers(scheduler.address, 2);
  const client = await connect(scheduler.address);
  const file = join(folder, 'parents.txt');
  const parents = Array.from({ length: 8 }, (_, x) => client.submit(parent, file, 300, x));
  await client.committed();
  for (const done of [4, 16]) {
    await until(() => linesOf(file).filter((line) => line.startsWith('leaf')).length >= done);
    await scheduler.killAndStart();
  }
  expect(await client.gather(parents)).toEqual(parents.map((_, x) => 30 * x + 3));
  const lines = linesOf(file);
  expect(lines).toHaveLength(new Set(lines).size);
  expect(lines).toHaveLength(8 + 24);
});

test('a task that asks for its client while the scheduler is away gets it when that is back', async () => {
  const scheduler = await Killable.start(join(folder, 'late'));
  await startWorkers(scheduler.address, 1);
  const client = await connect(scheduler.address);
  const file = join(folder, 'late.txt');
  const future = client.submit(lateParent, file, 400, 1);
  await until(() => linesOf(file).length > 0);
  await scheduler.killAndStart({ afterMs: 1000 });
  expect(await future.result()).toBe(1);
  expect(linesOf(file)).toEqual(['late-1', 'leaf-1']);
});

test('a peer that enters by the door of a plugin is registered after the journal has been read', async () => {
  const journal = join(folder, 'door');
  const door = (enter: (channel: Channel) => Promise<void>): PluginDefinition =>
    definePlugin({
      name: 'door',
      apiVersion: 1,
      setup: (context) => ({
        start: () => {
          const quiet = {
            onMessage: () => undefined,
            onRequest: () => ({}),
            onClose: () => undefined,
          };
          const channel = openChannel({ ...context, ...context.get(BRIDGE) }, quiet);
          void enter(channel);
        },
      }),
    });
  const begin = async (path: string, enter: (channel: Channel) => Promise<void>) => {
    const config = { scheduler: { plugins: [{ use: door(enter) }] } };
    const open = await openScheduler({ journal: path, config, log: SILENT });
    stops.push(() => open.close());
    return open.scheduler;
  };
  const submit = async (channel: Channel, key: string): Promise<void> => {
    await sayHello(channel, 'client');
    await channel.request('register-client', { client: 'C' });
    channel.send({
      op: 'update-graph',
      tasks: [{ key, dependencies: [], runSpec: key }],
      keys: [key],
      stimulusId: '',
    });
    await channel.request('who-has', { keys: [] });
  };
  let isSubmitted = promiseOf();
  const first = await begin(journal, async (channel) => {
    await submit(channel, 'old');
    isSubmitted.resolve();
  });
  await isSubmitted.promise;
  expect([...first.cluster.tasks.keys()]).toEqual(['old']);
  // As it is when the scheduler is killed: a goodbye would be written.
  const killed = `${journal}-killed`;
  cpSync(journal, killed, { recursive: true, filter: (file) => !file.includes('lock') });
  isSubmitted = promiseOf();
  const second = await begin(killed, async (channel) => {
    await submit(channel, 'new');
    isSubmitted.resolve();
  });
  await isSubmitted.promise;
  expect([...second.cluster.clients.keys()]).toContain('C');
  expect([...second.cluster.tasks.keys()]).toEqual(['new']);
});

function promiseOf(): { promise: Promise<void>; resolve: () => void } {
  let resolve = (): void => undefined;
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

test('a lock that was held when the scheduler died is lost when its holder is back, and no two hold it', async () => {
  const config = join(folder, 'locked.yaml');
  // So a lease is renewed every five minutes.
  writeFileSync(config, 'scheduler: { coordination: { leaseTimeout: 15m } }');
  const scheduler = await Killable.start(join(folder, 'locked'), '--config', config);
  const [first, second] = [await connect(scheduler.address), await connect(scheduler.address)];
  const before = await first.lock('door').acquire();
  const other = await first.lock('window').acquire();
  await scheduler.killAndStart();
  const [after] = await Promise.all([
    second.lock('door').acquire(),
    new Promise((resolve) => before.signal.addEventListener('abort', resolve)),
    new Promise((resolve) => other.signal.addEventListener('abort', resolve)),
  ]);
  const again = await first.lock('window').acquire();
  expect([before, other, after, again].map(({ isHeld }) => isHeld)).toEqual([
    false,
    false,
    true,
    true,
  ]);
  await expect(before.release()).rejects.toMatchObject({ code: 'ERR_COORDINATION' });
  await Promise.all([after.release(), again.release()]);
});
