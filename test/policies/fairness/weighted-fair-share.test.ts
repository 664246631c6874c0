import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { GraphTask } from '../../../core/api/index.ts';
import type { Queuing } from '../../../core/api/policies.ts';
import { weightedFairShare } from '../../../policies/fairness/weighted-fair-share.ts';
import { direct } from '../../../policies/queuing/direct.ts';
import { family } from '../../../policies/queuing/family.ts';
import { rootish } from '../../../policies/queuing/root-ish.ts';
import { SchedulerEnv } from '../../kit/env.ts';
import { graphTasks, numbered } from '../../kit/graph.ts';
import { SimulatedCluster } from '../../kit/simulated-cluster.ts';
import { made } from '../../kit/made.ts';

const PER_TASK = { cost: 'tasks', ageing: 0 } as const;

/** A cluster of single threads on which every task takes 100 ms. */
function simulated(
  options: Partial<Parameters<typeof weightedFairShare.create>[0]>,
  workers = 4,
  queuing: Queuing = made(rootish),
): SimulatedCluster {
  const policies = { fairness: made(weightedFairShare, options), queuing };
  return new SimulatedCluster({ policies, workers: Array<number>(workers).fill(1) });
}

function submit(cluster: SimulatedCluster, client: string, count: number, batch = 0): void {
  cluster.submit(graphTasks(numbered(`${client}${batch}`, count)), { client });
}

/** How many of the tasks that were executed so far are whose. */
function servedBy(cluster: SimulatedCluster, client: string): number {
  return cluster.executed.filter((key) => key.startsWith(client)).length;
}

describe('with weighted-fair-share', () => {
  it('ten tasks that come later do not wait for ten thousand', () => {
    const cluster = simulated(PER_TASK);
    submit(cluster, 'a', 10_000);
    cluster.run(5000);
    const before = cluster.executed.length;
    submit(cluster, 'b', 10);
    cluster.run(6500);
    expect(servedBy(cluster, 'b')).toBe(10);
    // Half of what was done meanwhile, and what had been sent before.
    expect(cluster.executed.length - before).toBeLessThan(70);
    expect(cluster.executed.length).toBeLessThan(300);
  });

  it('so it is on the workers when nothing is queued on the scheduler', () => {
    const cluster = simulated(PER_TASK, 4, made(direct));
    submit(cluster, 'a', 1000);
    cluster.run(2000);
    submit(cluster, 'b', 10);
    cluster.run(3000);
    expect(servedBy(cluster, 'b')).toBe(10);
    expect(servedBy(cluster, 'a')).toBeGreaterThan(80);
  });

  it('so it is with families, which do not hold up other clients', () => {
    const cluster = simulated(PER_TASK, 4, made(family));
    submit(cluster, 'a', 1000);
    cluster.run(2000);
    submit(cluster, 'b', 10);
    cluster.run(3500);
    expect(servedBy(cluster, 'b')).toBe(10);
  });

  it('without it, first come is first served', () => {
    const cluster = new SimulatedCluster({ workers: [1, 1, 1, 1] });
    submit(cluster, 'a', 1000);
    cluster.run(2000);
    submit(cluster, 'b', 10);
    cluster.run(3000);
    expect(servedBy(cluster, 'b')).toBe(0);
  });

  it('shares of busy clients converge to their weights', () => {
    const client = fc.record({
      weight: fc.integer({ min: 1, max: 8 }),
      startMs: fc.integer({ min: 0, max: 2000 }),
    });
    fc.assert(
      fc.property(
        fc.array(client, { minLength: 2, maxLength: 4 }),
        fc.integer({ min: 1, max: 4 }),
        (clients, workers) => {
          const weights = Object.fromEntries(clients.map(({ weight }, n) => [`c${n}x`, weight]));
          const cluster = simulated({ ...PER_TASK, weights }, workers);
          const byStart = clients
            .map((one, n) => ({ ...one, name: `c${n}x` }))
            .sort((a, b) => a.startMs - b.startMs);
          for (const { name, startMs } of byStart) {
            cluster.run(startMs);
            cluster.nowMs = Math.max(cluster.nowMs, startMs);
            submit(cluster, name, 600);
          }
          cluster.run(2500);
          const before = clients.map((_, n) => servedBy(cluster, `c${n}x`));
          cluster.run(10_000);
          const served = clients.map((_, n) => servedBy(cluster, `c${n}x`) - before[n]!);
          const total = served.reduce((sum, count) => sum + count, 0);
          const totalWeight = clients.reduce((sum, { weight }) => sum + weight, 0);
          const lightest = Math.min(...clients.map(({ weight }) => weight));
          clients.forEach(({ weight }, n) => {
            const share = (total * weight) / totalWeight;
            // A few tasks of any client are on a worker already, and in virtual time two clients
            // differ by a task of each: the lightest one's task is worth several of a heavy one.
            const slack = 2 * workers + 2 + weight / lightest;
            expect(Math.abs(served[n]! - share)).toBeLessThanOrEqual(slack);
          });
        },
      ),
      { numRuns: 25 },
    );
  });

  it('no client starves, whatever the others keep submitting', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 100 }), fc.integer({ min: 1, max: 3 }), (heavy, n) => {
        const weights = { a: heavy, b: 1 };
        const cluster = simulated({ ...PER_TASK, weights }, n);
        submit(cluster, 'b', 5);
        // The other has 30 tasks waiting at any time.
        for (let batch = 0; batch < 60; batch++) {
          submit(cluster, 'a', 30, batch);
          cluster.run((batch + 1) * Math.floor(3000 / n));
        }
        expect(servedBy(cluster, 'b')).toBe(Math.min(5, 1 + Math.floor(1800 / (heavy + 1))));
      }),
      { numRuns: 15 },
    );
  });

  it('ageing lets a light client overtake what a heavy one submits much later', () => {
    const run = (ageing: number): number => {
      const weights = { a: 1000, b: 1 };
      const cluster = simulated({ cost: 'tasks', ageing, weights }, 1);
      submit(cluster, 'a', 60);
      submit(cluster, 'b', 3);
      for (let batch = 1; batch < 30; batch++) {
        cluster.run(batch * 3000);
        cluster.nowMs = batch * 3000;
        submit(cluster, 'a', 60, batch);
      }
      return servedBy(cluster, 'b');
    };
    expect(run(0)).toBe(1);
    // The distance is one task of weight 1; waiting for 20 s is worth that much.
    expect(run(0.05)).toBe(3);
  });

  it('who was idle has saved nothing up', () => {
    const cluster = simulated(PER_TASK, 1);
    submit(cluster, 'a', 400);
    submit(cluster, 'b', 1);
    cluster.run(10_000);
    submit(cluster, 'b', 100, 1);
    const before = servedBy(cluster, 'a');
    cluster.run(15_000);
    expect(servedBy(cluster, 'a') - before).toBeGreaterThan(20);
    expect(servedBy(cluster, 'b1')).toBeGreaterThan(20);
  });

  it('what is cancelled is not paid for', () => {
    const cluster = simulated(PER_TASK, 1);
    submit(cluster, 'a', 1000);
    submit(cluster, 'b', 1000);
    cluster.run(2000);
    const keys = Object.keys(numbered('a0', 1000));
    cluster.stimulate({ op: 'cancel-keys', client: 'a', keys, force: false });
    submit(cluster, 'a', 20, 1);
    const before = cluster.executed.length;
    cluster.run(6500);
    expect(servedBy(cluster, 'a1')).toBe(20);
    expect(cluster.executed.length - before).toBeLessThan(50);
  });

  it('clients of one name can have one share together', () => {
    const id = (n: number): string => `team-00000000-0000-4000-8000-00000000000${n}`;
    const options = { ...PER_TASK, by: 'name', weights: { team: 2 } } as const;
    const cluster = simulated(options, 1);
    cluster.submit(graphTasks(numbered('one', 200)), { client: id(1) });
    cluster.submit(graphTasks(numbered('two', 200)), { client: id(2) });
    submit(cluster, 'b', 200);
    cluster.run(9500);
    const [b, one, two] = ['b', 'one', 'two'].map((name) => servedBy(cluster, name));
    expect(b).toBeGreaterThan(28);
    expect(b).toBeLessThan(35);
    expect(one! + two!).toBeGreaterThan(58);
  });

  it('tenants share, whichever clients call on their behalf, and so do clients without one', () => {
    const options = { ...PER_TASK, by: 'tenant', weights: { acme: 3 } } as const;
    const cluster = simulated(options, 1);
    const of = (tenant: string): object => ({ annotations: { tenant } });
    cluster.submit(graphTasks(numbered('acme', 600, of('acme'))), { client: 'web' });
    const tiny = graphTasks(numbered('tiny', 200, of('tiny')));
    cluster.submit(tiny.slice(0, 100), { client: 'web' });
    cluster.submit(tiny.slice(100), { client: 'other' });
    submit(cluster, 'nightly', 200);
    cluster.run(10_000);
    const served = ['acme', 'tiny', 'nightly'].map((name) => servedBy(cluster, name));
    const shares = served.map((count) => Math.round((5 * count) / cluster.executed.length));
    expect(shares).toEqual([3, 1, 1]);
  });

  it('what a task of a tenant submits is paid for by the tenant', () => {
    const options = { ...PER_TASK, by: 'tenant' } as const;
    const env = new SchedulerEnv({ policies: { fairness: made(weightedFairShare, options) } });
    env.addWorkers(1, { threads: 50 });
    const acme = { annotations: { tenant: 'acme' } };
    env.submit({ parent: acme });
    env.submit({ child: {} }, { submittingTask: 'parent' });
    env.submit({ next: acme, other: {} });
    const date = (key: string): number => env.task(key).generation;
    expect(date('child')).toBe(date('parent'));
    expect([date('next'), date('other')]).toEqual([date('parent') + 2, date('parent')]);
  });

  it('by default a share is one of time: long tasks are dearer than short ones', () => {
    const cluster = new SimulatedCluster({
      policies: { fairness: made(weightedFairShare), queuing: made(rootish) },
      workers: [1],
      durationMs: (key) => (key.startsWith('long') ? 300 : 100),
    });
    // The first of each teaches how long they take.
    for (const client of ['long', 'short']) {
      cluster.submit(graphTasks(numbered(client, 4)), { client });
    }
    cluster.run();
    const startMs = cluster.nowMs;
    for (const client of ['long', 'short']) {
      const graph = Object.fromEntries(
        Array.from({ length: 200 }, (_, n) => [`${client}-${100 + n}`, []]),
      );
      cluster.submit(graphTasks(graph), { client });
    }
    cluster.run(startMs + 12_000);
    const [long, short] = [servedBy(cluster, 'long') - 4, servedBy(cluster, 'short') - 4];
    expect(short / long).toBeGreaterThan(2.5);
    expect(short / long).toBeLessThan(3.5);
  });

  it('what was submitted before anything was known has the share of what comes later', () => {
    const cluster = new SimulatedCluster({
      policies: { fairness: made(weightedFairShare), queuing: made(rootish) },
      workers: [1],
      durationMs: () => 10,
    });
    submit(cluster, 'a', 400);
    cluster.run(200);
    submit(cluster, 'b', 400);
    const before = servedBy(cluster, 'a');
    cluster.run(4200);
    const [a, b] = [servedBy(cluster, 'a') - before, servedBy(cluster, 'b')];
    expect(a / b).toBeGreaterThan(0.8);
    expect(a / b).toBeLessThan(1.25);
  });

  it('tasks are paid for by what they take, when those of one function take more for one than for another', () => {
    const cluster = new SimulatedCluster({
      policies: { fairness: made(weightedFairShare), queuing: made(rootish) },
      workers: [1],
      durationMs: (key) => (key.startsWith('f-a') ? 100 : 10),
    });
    const call = (client: string): GraphTask[] =>
      graphTasks(
        Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`f-${client}${n}`, []])),
      );
    cluster.submit(call('a'), { client: 'a' });
    cluster.submit(call('b'), { client: 'b' });
    cluster.run(8000);
    const times = { a: 100 * servedBy(cluster, 'f-a'), b: 10 * servedBy(cluster, 'f-b') };
    expect(times.a / times.b).toBeGreaterThan(0.7);
    expect(times.a / times.b).toBeLessThan(1.5);
  });

  it('a backlog that waits for a rate is no reason to begin anew', () => {
    const env = new SchedulerEnv({ policies: { fairness: made(weightedFairShare, PER_TASK) } });
    env.addWorkers(1);
    const limited = { limit: { name: 'l', intervalMs: 1000 } };
    env.submit(Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`a-${n}`, limited])));
    env.finish('a-0');
    env.submit({ b: limited }, { client: 'b' });
    expect(env.task('b').generation).toBeLessThan(env.task('a-2').generation);
  });

  it('a backlog has its share when it takes over from another policy, and comes first when it is replaced', () => {
    const env = new SchedulerEnv();
    env.addWorkers(1);
    env.submit(Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`a-${n}`, []])));
    const { kernel } = env;
    const before = kernel['scope'].ports;
    const fairness = { name: 'shares', policy: made(weightedFairShare, PER_TASK) };
    kernel.replacePorts({ ...before, fairness });
    env.submit(Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`b-${n}`, []])), {
      client: 'b',
    });
    const dates = (client: string): number[] =>
      Array.from({ length: 20 }, (_, n) => env.task(`${client}-${n}`).generation);
    expect(dates('b')).toEqual(dates('a'));
    kernel.replacePorts(before);
    env.send({ op: 'policies-replaced' });
    env.advance(1000).submit({ late: [] });
    expect(env.task('late').generation).toBeGreaterThan(env.task('b-19').generation);
  });

  it('accounts of tenants that come once are forgotten on a cluster that is never idle', () => {
    const policy = made(weightedFairShare, { by: 'tenant' });
    const env = new SchedulerEnv({ policies: { fairness: policy } });
    env.addWorkers(1, { threads: 2 });
    env.submit({ long: {} });
    for (let n = 0; n < 1000; n++) {
      env.submit({ [`t-${n}`]: { annotations: { tenant: `t${n}` } } });
      env.finish(`t-${n}`);
    }
    const { names } = policy.snapshot?.(env.cluster) as { names: readonly string[] };
    expect(names.length).toBeLessThan(350);
  });

  it('the user’s own priority comes before all shares', () => {
    const cluster = simulated(PER_TASK, 1);
    submit(cluster, 'a', 50);
    cluster.submit(graphTasks(numbered('urgent', 20, { userPriority: 1 })), { client: 'a' });
    submit(cluster, 'b', 20);
    cluster.run(2500);
    expect(servedBy(cluster, 'urgent')).toBe(20);
  });

  it('the tasks that a task submits continue at its date', () => {
    const env = new SchedulerEnv({
      policies: { fairness: made(weightedFairShare, PER_TASK) },
    });
    env.addWorkers(1, { threads: 50 });
    env.submit(Object.fromEntries(['p-0', 'q-0', 'r-0'].map((key) => [key, []])));
    env.submit({ child: [], other: [] }, { submittingTask: 'q-0' });
    env.submit({ late: [] });
    const date = (key: string): number => env.task(key).generation;
    expect(date('child')).toBe(date('q-0'));
    expect(date('other')).toBe(date('q-0') + 1);
    // And is paid for.
    expect(date('late')).toBe(date('r-0') + 3);
  });

  it('tasks of a policy that was in place before come first', () => {
    const env = new SchedulerEnv();
    env.addWorkers(1, { threads: 50 });
    for (const key of ['a', 'b', 'c']) env.advance(1000).submit({ [key]: [] });
    const { kernel } = env;
    const fairness = { name: 'shares', policy: made(weightedFairShare) };
    kernel.replacePorts({ ...kernel['scope'].ports, fairness });
    env.advance(1000).submit({ d: [] });
    expect(env.task('d').generation).toBeGreaterThan(env.task('c').generation);
  });
});
