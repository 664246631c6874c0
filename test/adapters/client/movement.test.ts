import { describe, expect, test } from 'vitest';
import {
  ActiveMemoryManagerPolicy,
  replicate,
  type SuggestionGenerator,
} from '../../../core/api/index.ts';
import { bytes, fail, inc, never, slow, total } from './tasks.ts';
import type { VirtualCluster } from '../../kit/virtual-cluster.ts';
import { startCluster } from '../../kit/virtual-cluster.ts';

/** Options that say: on this worker. */
function there(cluster: VirtualCluster, name: string): { readonly workers: readonly string[] } {
  return { workers: [cluster.worker(name).address] };
}

/** Ten results of one kilobyte on the first worker. */
async function withResults(cluster: VirtualCluster, count = 10) {
  const { client } = cluster;
  const on = client.with({ ...there(cluster, 'worker-0'), pure: false });
  const futures = Array.from({ length: count }, () => on.submit(bytes, 1000));
  await cluster.passing(client.gather(futures));
  await cluster.clock.advanceAsync(1000); // A heartbeat tells of the memory.
  return futures;
}

describe('retiring', () => {
  test('ends with an error when the memory manager is removed, and the worker works on', async () => {
    const cluster = await startCluster(2);
    await withResults(cluster);
    const worker = cluster.worker('worker-0');
    const retiring = cluster.client.retireWorkers({ workers: [worker.address] });
    retiring.catch(() => undefined);
    await cluster.until(() => worker.status === 'closing-gracefully');
    await cluster.passing(cluster.local.scheduler.removePlugin('amm'));
    await expect(cluster.passing(retiring)).rejects.toMatchObject({ code: 'ERR_CLOSED' });
    await cluster.until(() => worker.status === 'running');
  });

  test('a worker moves its results away, then closes', async () => {
    const cluster = await startCluster(3);
    const { client } = cluster;
    const futures = await withResults(cluster);
    const [address] = [cluster.worker('worker-0').address];
    const result = await cluster.passing(client.retireWorkers({ workers: [address] }));
    expect(result).toEqual({ retired: [{ address, name: 'worker-0' }], kept: [] });
    expect(cluster.names).toEqual(['worker-1', 'worker-2']);
    // Evenly, and nothing is computed anew.
    const held = ['worker-1', 'worker-2'].map((name) => cluster.worker(name).hasWhat.size);
    expect(held).toEqual([5, 5]);
    expect(await cluster.passing(client.gather(futures))).toHaveLength(10);
    await cluster.until(() => cluster.local.workerCount === 2);
  });

  test('a worker that is emptied, and is then asked to close as well, closes', async () => {
    const cluster = await startCluster(2);
    await withResults(cluster);
    const names = ['worker-0'];
    const emptying = cluster.client.retireWorkers({ names, close: false });
    await cluster.until(() => cluster.worker('worker-0').status === 'closing-gracefully');
    await cluster.passing(Promise.all([emptying, cluster.client.retireWorkers({ names })]));
    expect(cluster.names).toEqual(['worker-1']);
  });

  test('takes names as well, and several workers at once', async () => {
    const cluster = await startCluster(4);
    const futures = await withResults(cluster);
    const { client } = cluster;
    const names = ['worker-0', 'worker-2'];
    const { retired } = await cluster.passing(client.retireWorkers({ names }));
    expect(retired.map(({ name }) => name)).toEqual(names);
    expect(cluster.names).toEqual(['worker-1', 'worker-3']);
    expect(await cluster.passing(client.gather(futures))).toHaveLength(10);
  });

  test('keeps a worker that is the only one, which works on', async () => {
    const cluster = await startCluster(1);
    const { client } = cluster;
    const [future] = await withResults(cluster, 1);
    const { address } = cluster.worker('worker-0');
    const result = await cluster.passing(client.retireWorkers({ workers: [address] }));
    expect(result).toEqual({ retired: [], kept: [{ worker: address, reason: 'no-recipients' }] });
    expect(cluster.worker('worker-0').status).toBe('running');
    expect(await cluster.passing(client.submit(inc, 1).result())).toBe(2);
    expect(await cluster.passing(future!.result())).toHaveLength(1000);
  });

  test('lets the only worker go when it holds nothing', async () => {
    const cluster = await startCluster(1);
    const { client } = cluster;
    const { retired } = await cluster.passing(client.retireWorkers({ names: ['worker-0'] }));
    expect(retired).toHaveLength(1);
    expect(cluster.names).toEqual([]);
  });

  test('all workers at once keeps the one whose results no other worker can take', async () => {
    const cluster = await startCluster(3);
    const futures = await withResults(cluster, 3);
    const { client } = cluster;
    const names = ['worker-0', 'worker-1', 'worker-2'];
    const { retired, kept } = await cluster.passing(client.retireWorkers({ names }));
    expect(retired.map(({ name }) => name)).toEqual(['worker-1', 'worker-2']);
    expect(kept.map(({ reason }) => reason)).toEqual(['no-recipients']);
    expect(cluster.names).toEqual(['worker-0']);
    expect(await cluster.passing(client.gather(futures))).toHaveLength(3);
  });

  test('an unknown worker is reported, and the others retire', async () => {
    const cluster = await startCluster(2);
    const { client } = cluster;
    const workers = ['nobody', 'worker-1', 'tcp://10.0.0.1:1'];
    const result = await cluster.passing(client.retireWorkers({ workers }));
    expect(result.retired.map(({ name }) => name)).toEqual(['worker-1']);
    expect(result.kept).toEqual([
      { worker: 'nobody', reason: 'unknown' },
      { worker: 'tcp://10.0.0.1:1', reason: 'unknown' },
    ]);
    expect(await cluster.passing(client.retireWorkers({ names: [] }))).toEqual({
      retired: [],
      kept: [],
    });
  });

  test('the same worker twice retires it once; both calls are answered alike', async () => {
    const cluster = await startCluster(2);
    const { client } = cluster;
    await withResults(cluster);
    const { address } = cluster.worker('worker-0');
    const calls = [
      client.retireWorkers({ workers: [address, 'worker-0'] }),
      client.retireWorkers({ names: ['worker-0'] }),
    ];
    const [first, second] = await cluster.passing(Promise.all(calls));
    expect(first).toEqual({ retired: [{ address, name: 'worker-0' }], kept: [] });
    expect(second).toEqual(first);
    const third = await cluster.passing(client.retireWorkers({ names: ['worker-0'] }));
    expect(third).toEqual({ retired: [], kept: [{ worker: 'worker-0', reason: 'unknown' }] });
  });

  test('a worker that holds an actor is refused', async () => {
    const cluster = await startCluster(2);
    const { scheduler } = cluster.local;
    const worker = cluster.worker('worker-0');
    const task = { key: 'actor', dependencies: [], runSpec: 1, actor: true };
    scheduler.enqueue({
      op: 'update-graph',
      client: 'other',
      keys: ['actor'],
      tasks: [{ ...task, workers: [worker.address] }],
    });
    const { kept } = await cluster.passing(
      cluster.client.retireWorkers({ workers: [worker.address] }),
    );
    expect(kept).toEqual([{ worker: worker.address, reason: 'no-recipients' }]);
  });

  test('happens when the memory manager is off, by a separate one, which then ends', async () => {
    const cluster = await startCluster(2, { scheduler: { activeMemoryManager: { start: false } } });
    const { client } = cluster;
    const futures = await withResults(cluster);
    const { retired } = await cluster.passing(client.retireWorkers({ names: ['worker-0'] }));
    expect(retired).toHaveLength(1);
    expect(await cluster.passing(client.amm.running())).toBe(false);
    expect(await cluster.passing(client.gather(futures))).toHaveLength(10);
  });

  test('continues when the memory manager is stopped meanwhile', async () => {
    const cluster = await startCluster(2);
    const { client } = cluster;
    const running = client
      .with({ ...there(cluster, 'worker-0'), key: 'late' })
      .submit(never, 'late');
    const retiring = client.retireWorkers({ names: ['worker-0'] });
    await cluster.passing(client.amm.stop());
    const { retired } = await cluster.passing(retiring);
    expect(retired).toHaveLength(1);
    running.cancel();
  });

  test('without removing leaves the worker there, empty and out of service', async () => {
    const cluster = await startCluster(2);
    const { client } = cluster;
    await withResults(cluster);
    const { retired } = await cluster.passing(
      client.retireWorkers({ names: ['worker-0'], close: false }),
    );
    expect(retired).toHaveLength(1);
    await cluster.passing(client.amm.runOnce());
    const worker = cluster.worker('worker-0');
    expect([worker.status, worker.hasWhat.size]).toEqual(['closing-gracefully', 0]);
    const futures = Array.from({ length: 4 }, (_, n) => client.submit(inc, n));
    await cluster.passing(client.gather(futures));
    expect(worker.hasWhat.size).toBe(0);
  });

  test('a task that runs there begins anew elsewhere, and is not suspicious', async () => {
    const cluster = await startCluster(2);
    const { client } = cluster;
    const mine = client.with({
      ...there(cluster, 'worker-0'),
      allowOtherWorkers: true,
      key: 'runs',
    });
    const future = mine.submit(never, 'retired');
    await cluster.until(() => cluster.worker('worker-0').processing.size === 1);
    await cluster.passing(client.retireWorkers({ names: ['worker-0'] }));
    await cluster.until(() => cluster.worker('worker-1').processing.size === 1);
    expect(cluster.local.scheduler.cluster.tasks.get('runs')?.suspicious).toBe(0);
    future.cancel();
  });

  test('by number takes idle workers that hold the least', async () => {
    const cluster = await startCluster(3);
    const { client } = cluster;
    await withResults(cluster);
    const toClose = await cluster.passing(client.workersToClose({ n: 2 }));
    expect(toClose.map(({ name }) => name)).toEqual(['worker-2', 'worker-1']);
    const { retired } = await cluster.passing(client.retireWorkers({ target: 1 }));
    expect(retired.map(({ name }) => name)).toEqual(['worker-2', 'worker-1']);
    expect(cluster.names).toEqual(['worker-0']);
  });

  test('is refused with contradictory or unknown parameters', async () => {
    const cluster = await startCluster(1);
    const { client } = cluster;
    const refused = [
      client.retireWorkers({ workers: ['a'], names: ['b'] }),
      client.retireWorkers({ names: ['b'], n: 1 }),
      client.retireWorkers({ workers: 'worker-0' as never }),
      client.retireWorkers({ worker: ['worker-0'] } as never),
      client.workersToClose({ n: -1 }),
      client.workersToClose({ key: 'colour' as never }),
    ].map((call) => call.catch((error: unknown) => (error as { code: string }).code));
    expect(await cluster.passing(Promise.all(refused))).toEqual(Array(6).fill('ERR_PROTOCOL'));
  });

  test('reports it in events', async () => {
    const cluster = await startCluster(2);
    const { address } = cluster.worker('worker-0');
    await cluster.passing(cluster.client.retireWorkers({ workers: [address] }));
    const events = (topic: string): Promise<unknown> =>
      cluster.passing(cluster.client.command('events', { topic }));
    expect(JSON.stringify(await events(address))).toContain('"retired"');
    expect(JSON.stringify(await events('all'))).toContain('"retire-workers"');
  });

  test('fails when the scheduler closes before', async () => {
    const cluster = await startCluster(2, { scheduler: { activeMemoryManager: { start: false } } });
    const { client } = cluster;
    await withResults(cluster);
    const retiring = client.retireWorkers({ names: ['worker-0'] });
    const outcome = retiring.catch((error: unknown) => (error as { code: string }).code);
    await cluster.clock.advanceAsync(1);
    await cluster.passing(cluster.local.scheduler.close());
    expect(await cluster.passing(outcome)).toBe('ERR_CLOSED');
  });
});

describe('replicating', () => {
  test('makes copies on all workers, also on one that comes later, and they stay', async () => {
    const cluster = await startCluster(5);
    const { client } = cluster;
    const [future] = await withResults(cluster, 1);
    const copies = await cluster.passing(client.replicate(future));
    expect(copies).toEqual(new Map([[future!.key, 5]]));
    await cluster.passing(cluster.local.scaleTo(6));
    await cluster.clock.advanceAsync(5000);
    expect(cluster.holders(future!.key)).toHaveLength(6);
  });

  test('makes the requested number of copies, and drops further ones', async () => {
    const cluster = await startCluster(4);
    const { client } = cluster;
    const [future] = await withResults(cluster, 1);
    const count = async (n: number): Promise<number | undefined> =>
      (await cluster.passing(client.replicate([future], { n }))).get(future!.key);
    expect(await count(3)).toBe(3);
    expect(await count(1)).toBe(1);
    expect(await count(100)).toBe(4);
  });

  test('uses the named workers alone', async () => {
    const cluster = await startCluster(4);
    const { client } = cluster;
    const [future] = await withResults(cluster, 1);
    const workers = ['worker-2', 'worker-3'];
    await cluster.passing(client.replicate(future, { workers }));
    expect(cluster.holders(future!.key)).toEqual(['worker-0', 'worker-2', 'worker-3']);
    await expect(
      cluster.passing(client.replicate(future, { workers: ['nobody'] })),
    ).rejects.toMatchObject({ code: 'ERR_NO_WORKER' });
  });

  test('waits for results, and fails with what they fail with', async () => {
    const cluster = await startCluster(2);
    const { client } = cluster;
    const late = client.submit(slow, 20, 1);
    expect(await cluster.passing(client.replicate(late, { n: 2 }))).toEqual(
      new Map([[late.key, 2]]),
    );
    await expect(
      cluster.passing(client.replicate(client.submit(fail, 'no copies of this'))),
    ).rejects.toThrow('no copies of this');
  });

  test('is refused for less than one copy', async () => {
    const cluster = await startCluster(1);
    const [future] = await withResults(cluster, 1);
    await expect(cluster.passing(cluster.client.replicate(future, { n: 0 }))).rejects.toMatchObject(
      { code: 'ERR_PROTOCOL' },
    );
  });

  test('a task can ask for copies itself, and a lost one is made anew', async () => {
    const cluster = await startCluster(3);
    const { client } = cluster;
    const safe = client.with({ key: 'safe', replicas: 2, ...there(cluster, 'worker-0') });
    const future = safe.submit(bytes, 100);
    await cluster.passing(future.result());
    await cluster.clock.advanceAsync(4000);
    expect(cluster.holders('safe')).toEqual(['worker-0', 'worker-1']);
    await cluster.passing(client.retireWorkers({ names: ['worker-1'] }));
    await cluster.clock.advanceAsync(4000);
    expect(cluster.holders('safe')).toEqual(['worker-0', 'worker-2']);
    for (const replicas of [0, 1.5, '2' as never]) {
      expect(() => client.with({ replicas })).toThrow('replicas must be');
      expect(() => client.with({ annotations: { replicas } })).toThrow('annotations.replicas');
    }
  });

  test('what was scattered to all stays there', async () => {
    const cluster = await startCluster(3);
    const { client } = cluster;
    const everywhere = await cluster.passing(client.scatter({ all: 1 }, { broadcast: true }));
    const twice = await cluster.passing(client.scatter({ two: 2 }, { broadcast: 2 }));
    await cluster.clock.advanceAsync(10_000);
    expect(cluster.holders('all')).toHaveLength(3);
    expect(cluster.holders('two')).toHaveLength(2);
    everywhere.all.release();
    twice.two.release();
  });
});

describe('rebalancing', () => {
  const even = { measure: 'managed', senderMin: 0, recipientMax: 1, gap: 0 } as const;

  test('moves results until the workers hold the same, and nothing is computed anew', async () => {
    const cluster = await startCluster(2);
    const { client } = cluster;
    const futures = await withResults(cluster);
    const { moved, stayed, missing } = await cluster.passing(client.rebalance(undefined, even));
    expect([moved.length, stayed, missing]).toEqual([5, [], []]);
    const sizes = ['worker-0', 'worker-1'].map((name) => cluster.worker(name).hasWhat.size);
    expect(sizes).toEqual([5, 5]);
    expect(await cluster.passing(client.gather(futures))).toHaveLength(10);
    await cluster.clock.advanceAsync(1000);
    expect((await cluster.passing(client.rebalance(undefined, even))).moved).toEqual([]);
  });

  test('goes by the configuration where the call does not say', async () => {
    const { gap: senderRecipientGap, ...rest } = even;
    const rebalance = { ...rest, senderRecipientGap };
    const cluster = await startCluster(2, { scheduler: { rebalance } });
    const { client } = cluster;
    await withResults(cluster);
    const never = await cluster.passing(client.rebalance(undefined, { recipientMax: 0 }));
    expect(never.moved).toHaveLength(5); // Workers without a limit have room for everything.
    const other = await startCluster(2, {
      scheduler: { rebalance: { ...rebalance, measure: 'spilled' } },
    });
    await withResults(other);
    expect((await other.passing(other.client.rebalance())).moved).toEqual([]);
    const measured = other.client.rebalance(undefined, { measure: 'managed' });
    expect((await other.passing(measured)).moved).toHaveLength(5);
  });

  test('moves these results alone, and waits for them', async () => {
    const cluster = await startCluster(2);
    const { client } = cluster;
    const futures = await withResults(cluster);
    const [first, second] = futures;
    const { moved } = await cluster.passing(client.rebalance([first, second], even));
    expect(moved).toEqual([first!.key, second!.key]);
  });

  test('leaves alone what a running task reads', async () => {
    const cluster = await startCluster(2);
    const { client } = cluster;
    const futures = await withResults(cluster);
    const here = client.with(there(cluster, 'worker-0'));
    const readers = futures.map((future) => here.submit(never, future as never));
    await cluster.until(() => cluster.worker('worker-0').processing.size === 10);
    const { moved, stayed } = await cluster.passing(client.rebalance(undefined, even));
    expect(moved).toEqual([]);
    expect(stayed).toHaveLength(5);
    expect(cluster.worker('worker-0').hasWhat.size).toBe(10);
    client.cancel(readers);
  });

  test('is safe while tasks run', async () => {
    const cluster = await startCluster(3);
    const { client } = cluster;
    const futures = await withResults(cluster, 30);
    const work = Array.from({ length: 5 }, (_, round) =>
      client.map(
        inc,
        Array.from({ length: 20 }, (_, n) => round * 100 + n),
      ),
    );
    const sums = work.map((numbers) => client.submit(total, numbers));
    const rebalances = [0, 1, 2].map(() => client.rebalance(undefined, even));
    const reading = client.with({ pure: false });
    const lengths = futures.map((future) => reading.submit(slow, 1, future as never));
    await cluster.passing(Promise.all(rebalances));
    expect(await cluster.passing(client.gather(sums))).toEqual([210, 2210, 4210, 6210, 8210]);
    expect(await cluster.passing(client.gather(lengths))).toHaveLength(30);
    expect(await cluster.passing(client.gather(futures))).toHaveLength(30);
  });

  test('moves nothing when a key is nowhere', async () => {
    const cluster = await startCluster(2);
    await withResults(cluster);
    const result = await cluster.passing(
      cluster.client.command('amm.rebalance', { ...even, keys: ['nowhere'] }),
    );
    expect(result).toEqual({ moved: [], senders: [], stayed: [], missing: ['nowhere'] });
  });

  test('refuses workers and measures that do not exist', async () => {
    const cluster = await startCluster(1);
    const { client } = cluster;
    await expect(
      cluster.passing(client.rebalance(undefined, { workers: ['nobody'] })),
    ).rejects.toMatchObject({ code: 'ERR_NO_WORKER' });
    await expect(
      cluster.passing(client.rebalance(undefined, { measure: 'weight' as never })),
    ).rejects.toThrow('measure must be one of process, managed');
  });
});

describe('asking where data is', () => {
  test('gives the results of each worker, and their sizes', async () => {
    const cluster = await startCluster(2);
    const { client } = cluster;
    const [first, second] = await withResults(cluster, 2);
    const hasWhat = await cluster.passing(client.hasWhat());
    const address = cluster.worker('worker-0').address;
    expect(hasWhat.get(address)).toEqual([first!.key, second!.key]);
    expect(hasWhat.get(cluster.worker('worker-1').address)).toEqual([]);
    const sizes = await cluster.passing(client.nbytes(first));
    expect([...sizes.keys()]).toEqual([first!.key]);
    expect(sizes.get(first!.key)).toBeGreaterThan(999);
    expect((await cluster.passing(client.nbytes())).size).toBe(2);
    expect((await cluster.passing(client.nbytes([]))).size).toBe(0);
  });

  test('how many workers there should be', async () => {
    const cluster = await startCluster(1);
    const { client } = cluster;
    const futures = client.map(
      never,
      Array.from({ length: 30 }, (_, n) => `target ${n}`),
    );
    await cluster.until(() => cluster.local.scheduler.cluster.queued.size > 0);
    expect(await cluster.passing(client.adaptiveTarget())).toBe(3);
    expect(await cluster.passing(client.adaptiveTarget({ targetDurationMs: 1000 }))).toBe(15);
    client.cancel(futures);
  });
});

describe('the memory manager from afar', () => {
  test('returns its status, is configured, and adds and removes policies', async () => {
    const cluster = await startCluster(2, { scheduler: { activeMemoryManager: { start: false } } });
    const { amm } = cluster.client;
    const key = 'model';
    const added = await cluster.passing(amm.addPolicy('ensure-broadcast', { key }));
    expect(added).toEqual({ id: 'ensure-broadcast-1', name: 'ensure-broadcast', options: { key } });
    await cluster.passing(amm.configure({ intervalMs: 100, measure: 'managed' }));
    expect(await cluster.passing(amm.status())).toMatchObject({
      running: false,
      intervalMs: 100,
      measure: 'managed',
      policies: [{ id: 'keep-replicas-1' }, { id: 'reduce-replicas-1' }, added],
    });
    expect(await cluster.passing(amm.removePolicy(added.id))).toEqual([added]);
    const refused = [amm.addPolicy('./evil.js'), amm.removePolicy('nope')].map((call) =>
      call.catch((error: unknown) => (error as { code: string }).code),
    );
    expect(await cluster.passing(Promise.all(refused))).toEqual(Array(2).fill('ERR_PLUGIN_LOAD'));
  });

  test('why a suggestion was refused is reported by the round and, once, by why', async () => {
    const cluster = await startCluster(1, { scheduler: { activeMemoryManager: { start: false } } });
    const { client } = cluster;
    await cluster.passing(client.policies.recordDecisions(100));
    const model = client.with({ key: 'model' }).submit(inc, 1);
    await cluster.passing(model.result());
    await cluster.passing(client.replicate([model], { n: 3 }));
    for (let count = 0; count < 3; count++) {
      const round = await cluster.passing(client.amm.runOnce());
      expect(round).toMatchObject({ suggested: 0, accepted: 0, refused: 0, failures: [] });
    }
    class Wrong extends ActiveMemoryManagerPolicy {
      override *run(): SuggestionGenerator {
        const task = this.manager.cluster.tasks.get('model')!;
        yield replicate(task, [this.manager.cluster.workers.get('nowhere')!]);
        throw new Error('on purpose');
      }
    }
    await cluster.local.scheduler.amm.addPolicy(Wrong);
    for (let count = 0; count < 3; count++) {
      expect(await cluster.passing(client.amm.runOnce())).toMatchObject({
        suggested: 1,
        accepted: 0,
        refusals: [{ reason: 'unknown-candidates', count: 1 }],
        failures: [{ policy: 'Wrong', message: expect.stringContaining('on purpose') as string }],
      });
    }
    const { decisions } = await cluster.passing(client.why('model'));
    const refused = decisions.filter(({ outcome }) => outcome === 'refused');
    expect(refused).toMatchObject([{ kind: 'replicate', policy: 'Wrong' }]);
    expect(refused[0]?.rule).toContain('none of its candidates is a worker of the cluster');
  });
});
