import { describe, expect, test } from 'vitest';
import { AdaptivePlan } from '../../../policies/scaling/adaptive.ts';
import { bytes, never } from '../client/tasks.ts';
import type { VirtualCluster } from '../../kit/virtual-cluster.ts';
import { startCluster } from '../../kit/virtual-cluster.ts';

/** This many tasks that run until they are cancelled. */
function work(cluster: VirtualCluster, count: number): () => void {
  const labels = Array.from({ length: count }, (_, n) => `adaptive ${n}`);
  const futures = cluster.client.with({ pure: false }).map(never, labels);
  return () => cluster.client.cancel(futures);
}

describe('a cluster that adapts', () => {
  test('starts with the minimum, grows with the work, and shrinks when it is done', async () => {
    const cluster = await startCluster(undefined, { adapt: { minimum: 1, maximum: 4 } });
    expect(cluster.local.workerCount).toBe(1);
    const done = work(cluster, 100);
    await cluster.until(() => cluster.names.length === 4);
    done();
    await cluster.until(() => cluster.names.length === 1);
    await cluster.until(() => cluster.local.workerCount === 1);
    await cluster.clock.advanceAsync(20_000);
    expect(cluster.local.workerCount).toBe(1);
  });

  test('starts the first worker when there is work, and can do without any', async () => {
    const cluster = await startCluster(undefined, { adapt: {} });
    expect(cluster.local.workerCount).toBe(0);
    const done = work(cluster, 1);
    await cluster.until(() => cluster.names.length === 1);
    done();
    await cluster.until(() => cluster.local.workerCount === 0);
  });

  test('loses no result when it shrinks', async () => {
    const cluster = await startCluster(undefined, { workers: 4, memoryLimitBytes: 1e6 });
    const { client } = cluster;
    const each = [...cluster.local.scheduler.cluster.workers.keys()].map((address) =>
      client.with({ workers: [address], pure: false }).submit(bytes, 1000),
    );
    await cluster.passing(client.gather(each));
    const computed: string[] = [];
    await cluster.local.scheduler.addPlugin({
      name: 'watch',
      taskTransition: (task: { key: string }, _start: string, finish: string) => {
        if (finish === 'processing') computed.push(task.key);
      },
    });
    await cluster.passing(cluster.local.adapt({ minimum: 1 }));
    await cluster.until(() => cluster.local.workerCount === 1);
    expect(await cluster.passing(client.gather(each))).toHaveLength(4);
    expect(computed).toEqual([]);
  });

  test('waits before it closes a worker', async () => {
    const cluster = await startCluster(undefined, { workers: 2 });
    await cluster.passing(cluster.local.adapt({ waitCount: 5, intervalMs: 100 }));
    await cluster.clock.advanceAsync(450);
    expect(cluster.local.workerCount).toBe(2);
    await cluster.until(() => cluster.local.workerCount === 0);
  });

  test('stops adapting when it is scaled by hand', async () => {
    const cluster = await startCluster(undefined, { adapt: { minimum: 1 } });
    await cluster.passing(cluster.local.scaleTo(3));
    await cluster.clock.advanceAsync(30_000);
    expect(cluster.local.workerCount).toBe(3);
  });

  test('of calls that overlap the last one holds', async () => {
    const cluster = await startCluster(undefined, { workers: 1 });
    const { local } = cluster;
    await cluster.passing(Promise.all([local.adapt({ minimum: 3 }), local.adapt({ minimum: 2 })]));
    await cluster.until(() => local.workerCount === 2);
    await cluster.clock.advanceAsync(30_000);
    expect(local.workerCount).toBe(2);
    await cluster.passing(Promise.all([local.adapt({ minimum: 3 }), local.scaleTo(1)]));
    await cluster.clock.advanceAsync(30_000);
    expect(local.workerCount).toBe(1);
  });

  test('closes while a worker retires', async () => {
    const cluster = await startCluster(undefined, {
      workers: 2,
      scheduler: { activeMemoryManager: { start: false } },
    });
    await cluster.passing(cluster.local.adapt({ waitCount: 1, intervalMs: 10 }));
    await cluster.clock.advanceAsync(15);
    await cluster.passing(cluster.local.close());
    await expect(cluster.local.adapt()).rejects.toMatchObject({ code: 'ERR_CLOSED' });
  });

  test.each<[adapt: object, message: string]>([
    [{ minimum: -1 }, 'minimum must be a whole number'],
    [{ minimum: 3, maximum: 2 }, 'maximum must be'],
    [{ maximum: 0 }, 'maximum must be'],
    [{ waitCount: 0 }, 'waitCount must be'],
    [{ intervalMs: 0 }, 'intervalMs must be a number above 0 and finite (got 0)'],
    [
      { targetDurationMs: Infinity },
      'targetDurationMs must be a number above 0 and finite (got Infinity)',
    ],
    [{ max: 3 }, 'max is not known; did you mean "maximum"?'],
  ])('refuses %o', async (adapt, message) => {
    const cluster = await startCluster(undefined, { workers: 0 });
    await expect(cluster.local.adapt(adapt)).rejects.toMatchObject({
      code: 'ERR_CONFIG',
      message: expect.stringContaining(message) as string,
    });
  });

  test('says that it cannot grow, more and more rarely, and continues', async () => {
    const cluster = await startCluster(undefined, { workers: 0 });
    const { local, log } = cluster;
    const broken = { starter: () => Promise.reject(new Error('no more processes')) };
    Object.assign(local, broken);
    await cluster.passing(local.adapt({ minimum: 1, intervalMs: 10 }));
    await cluster.clock.advanceAsync(205);
    const told = log.lines.filter((line) => JSON.stringify(line).includes('no more processes'));
    expect(told).toHaveLength(5);
  });
});

describe('the plan', () => {
  const plan = (minimum = 0, maximum = 10): AdaptivePlan =>
    new AdaptivePlan({ minimum, maximum, waitCount: 3 });
  const names = ['a', 'b', 'c', 'd'];
  const closable = (leave: number): readonly string[] => names.slice(leave);

  test('grows at once, within its bounds', () => {
    expect(plan().next(5, 2, closable)).toEqual({ kind: 'up', count: 3 });
    expect(plan().next(50, 2, closable)).toEqual({ kind: 'up', count: 8 });
    expect(plan(3).next(0, 2, closable)).toEqual({ kind: 'up', count: 1 });
    expect(plan().next(2, 2, closable)).toEqual({ kind: 'none' });
  });

  test('shrinks when the same workers could go three times in a row', () => {
    const { next } = bound(plan());
    const steps = [2, 2, 2].map((target) => next(target, 4, closable));
    expect(steps).toEqual([
      { kind: 'none' },
      { kind: 'none' },
      { kind: 'down', names: ['c', 'd'] },
    ]);
  });

  test('begins to count again when work comes, or a worker is needed after all', () => {
    const { next } = bound(plan());
    next(2, 4, closable);
    next(2, 4, closable);
    next(4, 4, closable);
    expect(next(2, 4, closable)).toEqual({ kind: 'none' });
    next(3, 4, closable); // Only d could go.
    expect(next(2, 4, closable)).toEqual({ kind: 'down', names: ['d'] });
  });

  function bound(of: AdaptivePlan): Pick<AdaptivePlan, 'next'> {
    return { next: (target, current, list) => of.next(target, current, list) };
  }
});
