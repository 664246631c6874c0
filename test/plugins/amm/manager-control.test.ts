import { describe, expect, it } from 'vitest';
import {
  ACTIVE_MEMORY_MANAGER,
  type ActiveMemoryManager,
  ActiveMemoryManagerPolicy,
  type AmmRound,
  type AmmStatus,
  definePlugin,
  drop,
  type SuggestionGenerator,
} from '../../../core/api/index.ts';
import { EnsureBroadcast } from '../../../policies/amm/ensure-broadcast.ts';
import { RetireWorker } from '../../../policies/amm/retire-worker.ts';
import type { TestHost } from '../../kit/test-host.ts';
import { startHost } from '../../kit/test-host.ts';

const start = (activeMemoryManager: object = {}, scheduler: object = {}): Promise<TestHost> =>
  startHost({ activeMemoryManager, ...scheduler });

/** Two workers, and a result of 5 MB on each, as copies. */
async function withCopies(host: TestHost): Promise<void> {
  const workers = ['inmemory://w1', 'inmemory://w2'];
  for (const address of workers) await host.worker(address);
  const client = await host.client();
  await client.send({ op: 'update-data', items: [{ key: 'x', nbytes: 5e6, workers }] });
}

const copies = (host: TestHost): number => host.scheduler.cluster.tasks.get('x')?.whoHas.size ?? 0;
const names = ({ scheduler }: TestHost): string[] =>
  scheduler.amm.listPolicies().map(({ name }) => name);

class DropAll extends ActiveMemoryManagerPolicy {
  override *run(): SuggestionGenerator {
    for (const task of this.manager.scheduler.replicated) yield drop(task);
  }
}

describe('the manager where the scheduler runs', () => {
  it('says how it is set, and starts and stops', async () => {
    const host = await start({ start: false, interval: '3s', measure: 'managed' });
    const { amm } = host.scheduler;
    expect(amm).toMatchObject({ running: false, intervalMs: 3000, measure: 'managed' });
    amm.start();
    amm.start();
    expect(amm.running).toBe(true);
    await withCopies(host);
    await host.clock.advanceAsync(3_000);
    expect(copies(host)).toBe(1);
    amm.stop();
    expect(amm.running).toBe(false);
  });

  it('counts the copies and drops of each policy', async () => {
    const host = await start({ start: false });
    await withCopies(host);
    const { amm } = host.scheduler;
    const moves = async (): Promise<unknown> =>
      ((await host.scheduler.command('amm.status')) as AmmStatus).moves;
    expect(await moves()).toEqual([]);
    amm.runOnce();
    const none = { copies: 0, copiedBytes: 0, drops: 0, droppedBytes: 0 };
    const dropped = { ...none, policy: 'ReduceReplicas', drops: 1, droppedBytes: 5e6 };
    expect(await moves()).toEqual([dropped]);
    await amm.addPolicy('ensure-broadcast', { key: 'x' });
    amm.runOnce();
    expect(await moves()).toEqual([
      dropped,
      { ...none, policy: 'EnsureBroadcast', copies: 1, copiedBytes: 5e6 },
    ]);
  });

  it('takes another interval at once, and refuses what is none', async () => {
    const host = await start({ interval: '1h' });
    await withCopies(host);
    const { amm } = host.scheduler;
    amm.intervalMs = 100;
    await host.clock.advanceAsync(100);
    expect(copies(host)).toBe(1);
    for (const value of [0, -1, NaN, Infinity, '2s' as never]) {
      expect(() => (amm.intervalMs = value)).toThrow(
        'must be a number of milliseconds, at least 1',
      );
    }
    expect(amm.intervalMs).toBe(100);
  });

  it('takes another measure from the next round on, and refuses what is none', async () => {
    const host = await start({ start: false, policies: [] });
    await withCopies(host);
    const { amm } = host.scheduler;
    const seen: (number | undefined)[] = [];
    class Look extends ActiveMemoryManagerPolicy {
      // eslint-disable-next-line require-yield
      override *run(): SuggestionGenerator {
        const { workersMemory, scheduler } = this.manager;
        seen.push(workersMemory.get(scheduler.workers.get('inmemory://w1')!));
      }
    }
    await amm.addPolicy(Look);
    amm.runOnce();
    amm.measure = 'spilled';
    amm.runOnce();
    // No worker has sent a heartbeat yet: what it holds counts all the same.
    expect(seen).toEqual([5e6, 0]);
    expect(() => (amm.measure = 'rss' as never)).toThrow(
      'measure of the memory manager must be one of process, managed, managedTotal',
    );
  });

  it('takes policies by object, class, name with options, and name of Dask, and lists them', async () => {
    const host = await start({ start: false, policies: [] });
    const { amm } = host.scheduler;
    const instance = new EnsureBroadcast({ key: 'y' });
    expect(await amm.addPolicy(instance)).toEqual({
      id: 'EnsureBroadcast-1',
      name: 'EnsureBroadcast',
    });
    await amm.addPolicy(DropAll);
    expect(await amm.addPolicy('ensure-broadcast', { key: 'z' })).toEqual({
      id: 'ensure-broadcast-1',
      name: 'ensure-broadcast',
      options: { key: 'z' },
    });
    await amm.addPolicy('distributed.active_memory_manager.ReduceReplicas');
    amm.policies.add(new EnsureBroadcast({ key: 'y' }));
    expect(amm.listPolicies().map(({ id }) => id)).toEqual([
      'keep-replicas-1',
      'EnsureBroadcast-1',
      'DropAll-1',
      'ensure-broadcast-1',
      'distributed.active_memory_manager.ReduceReplicas-1',
      'EnsureBroadcast-2',
    ]);
    expect(amm.policies.has(instance)).toBe(true);
  });

  it('runs what was added, and no more what was removed, by object, id or name', async () => {
    const host = await start({ start: false, policies: [] });
    await withCopies(host);
    const { amm } = host.scheduler;
    const instance = new DropAll({});
    await amm.addPolicy(instance);
    const { id } = await amm.addPolicy(DropAll);
    await amm.addPolicy('reduce-replicas');
    amm.removePolicy(instance);
    expect(amm.removePolicy(id)).toEqual([{ id: 'DropAll-2', name: 'DropAll', options: {} }]);
    amm.removePolicy('reduce-replicas');
    expect(names(host)).toEqual(['keep-replicas']);
    expect(amm.runOnce()).toMatchObject({ suggested: 0 });
    await amm.addPolicy('reduce-replicas');
    expect(amm.runOnce()).toMatchObject({ suggested: 1, accepted: 1 });
  });

  it.each<[string, (amm: ActiveMemoryManager) => unknown, string]>([
    [
      'an unknown id',
      (amm) => amm.removePolicy('nope'),
      'has no policy "nope"; it has keep-replicas-1',
    ],
    ['its own policy', (amm) => amm.removePolicy('keep-replicas'), 'cannot be removed'],
    ['no policy', (amm) => amm.addPolicy({} as never), 'has no method run'],
    ['no policy in the set', (amm) => amm.policies.add({} as never), 'has no method run'],
    ['a class in the set', (amm) => amm.policies.add(DropAll as never), 'which is no instance'],
    ['wrong options', (amm) => amm.addPolicy('ensure-broadcast', { kee: 1 }), 'did you mean "key"'],
    [
      'a constructor that throws',
      (amm) =>
        amm.addPolicy(
          class Broken extends DropAll {
            constructor() {
              super({});
              throw new Error('on purpose');
            }
          },
        ),
      'the constructor of Broken',
    ],
  ])('refuses %s', async (_what, call, message) => {
    const host = await start();
    const before = names(host);
    await expect(Promise.resolve().then(() => call(host.scheduler.amm))).rejects.toThrow(message);
    expect(names(host)).toEqual(before);
  });

  it('is a service for other plugins, and gone with its own', async () => {
    const rounds: AmmRound[] = [];
    const user = definePlugin({
      name: 'user',
      apiVersion: 1,
      requires: ['amm'],
      setup: (context) => {
        context.command('round', () => {
          rounds.push(context.get(ACTIVE_MEMORY_MANAGER).runOnce());
        });
      },
    });
    const host = await start({}, { plugins: [user] });
    await withCopies(host);
    host.scheduler.command('user.round');
    expect(rounds).toMatchObject([{ accepted: 1 }]);
    await host.scheduler.removePlugin('user');
    await host.scheduler.removePlugin('amm');
    expect(() => host.scheduler.amm).toThrow('no plugin provides');
  });

  it('refuses the class of retire-worker in a configuration', async () => {
    const policies = [new RetireWorker({ address: 'a' })];
    await expect(start({ policies })).rejects.toThrow(
      'the policy retire-worker does not belong in a configuration: retireWorkers adds it',
    );
  });
});

describe("Dask's names of classes in a configuration", () => {
  it('of a built-in policy mean ours', async () => {
    const policies = [{ class: 'distributed.active_memory_manager.ReduceReplicas' }];
    const host = await start({ start: false, policies });
    await withCopies(host);
    expect(host.scheduler.amm.runOnce()).toMatchObject({ accepted: 1 });
  });

  it('of a class of Python are refused with the names of ours', async () => {
    const policies = [{ class: 'my_package.MyPolicy', arg1: 'foo' }];
    await expect(start({ policies })).rejects.toThrow(
      /my_package\.MyPolicy.*a class of Python cannot run here: use a built-in one \(reduce-replicas, .*balance-memory\), or write it in JavaScript and name it as \.\/file\.js#MyPolicy/,
    );
  });
});

describe('the manager by commands', () => {
  it('returns its status, and is configured', async () => {
    const { scheduler } = await start({ start: false });
    const status = { running: false, intervalMs: 2000, measure: 'optimistic' };
    expect(scheduler.command('amm.status')).toMatchObject({
      ...status,
      policies: [{ name: 'keep-replicas' }, { id: 'reduce-replicas-1', options: {} }],
    });
    const given = { intervalMs: 50, measure: 'managed' };
    expect(scheduler.command('amm.configure', given)).toMatchObject(given);
    for (const wrong of [{ measure: 'rss' }, { intervalMs: 0 }, { interval: 1 }]) {
      expect(() => scheduler.command('amm.configure', wrong)).toThrow();
    }
    expect(scheduler.command('amm.status')).toMatchObject(given);
  });

  it("adds what is built in or configured, under Dask's names, too, and no file", async () => {
    class Mine extends DropAll {}
    const host = await start({ policies: [Mine] });
    const add = (use: unknown, options?: object): Promise<unknown> =>
      Promise.resolve().then(() => host.scheduler.command('amm.addPolicy', { use, options }));
    for (const use of ['reduce-replicas', 'balance-memory', 'ReduceReplicas']) await add(use);
    await add('distributed.active_memory_manager.ReduceReplicas');
    expect(names(host)).toEqual([
      ...['keep-replicas', 'Mine', 'reduce-replicas', 'balance-memory'],
      ...['reduce-replicas', 'reduce-replicas'],
    ]);
    await expect(add('./evil.js')).rejects.toThrow('a client cannot add the policy "./evil.js"');
    await expect(add('tcp')).rejects.toThrow('there are reduce-replicas, keep-replicas');
    await expect(add('RetireWorker', { address: 'x' })).rejects.toThrow('added by retireWorkers');
    await expect(add('ensure-broadcast')).rejects.toThrow('options');
    expect(host.scheduler.command('amm.removePolicy', { policy: 'reduce-replicas' })).toHaveLength(
      3,
    );
  });
});
