import { expect, test } from 'vitest';
import { whyText } from '../../../adapters/cli/commands/why.ts';
import { definePolicy } from '../../../core/api/index.ts';
import { add, inc, slow, total } from './tasks.ts';
import type { VirtualCluster } from '../../kit/virtual-cluster.ts';
import { startCluster } from '../../kit/virtual-cluster.ts';

/** Ranks as given, which is an order as long as graphs list dependencies first. */
const asListed = definePolicy('ordering', {
  name: 'as-listed',
  apiVersion: 1,
  create: () => ({ order: (tasks) => tasks.map((_task, index) => index) }),
});

const start = (scheduler: object = {}): Promise<VirtualCluster> => startCluster(3, { scheduler });

/** Of workers that have nothing to do. */
function slotsPerThread({ local }: VirtualCluster): number[] {
  return [...local.scheduler.cluster.workers.values()].map(
    (one) => one.openSlots / one.threadCount,
  );
}

test('every slot can be given to every built-in policy while tasks run, and no task is lost', async () => {
  const cluster = await start();
  const { client } = cluster;
  const replacements = {
    workerSelection: ['balanced', 'locality-first', 'earliest-start'],
    queuing: ['family', 'co-assign', 'direct', 'root-ish'],
    ordering: ['dask', 'mars', 'fifo', 'best', 'depth-first'],
    fairness: ['fifo'],
    stealing: ['calm', 'dask'],
  } as const;
  for (const [slot, names] of Object.entries(replacements)) {
    for (const name of names) {
      const numbers = Array.from({ length: 40 }, (_, n) => n);
      const futures = client.with({ pure: false }).map(inc, numbers);
      const sum = client.with({ pure: false }).submit(total, futures);
      await cluster.passing(client.policies.replace(slot as 'ordering', name));
      expect((await cluster.passing(client.policies.current()))[slot as 'ordering']).toBe(name);
      expect(await cluster.passing(sum.result())).toBe(820);
    }
  }
});

test('a client can name built-in policies only, and the error lists them', async () => {
  const cluster = await start();
  const { client } = cluster;
  await expect(cluster.passing(client.policies.replace('ordering', './evil.js'))).rejects.toThrow(
    /"\.\/evil\.js" is none.*scheduler\.replacePolicy/,
  );
  await expect(cluster.passing(client.policies.replace('ordering', 'dusk'))).rejects.toThrow(
    /did you mean "dask"/,
  );
  await expect(
    cluster.passing(client.policies.replace('ordring' as 'ordering', 'dask')),
  ).rejects.toThrow(/no policy slot "ordring"; did you mean "ordering"/);
  await expect(
    cluster.passing(client.policies.startShadow('ordering', 'balanced')),
  ).rejects.toThrow(/workerSelection/);
  await expect(cluster.passing(client.policies.recordDecisions(-1))).rejects.toThrow(
    /keep must be a whole number from 0 to 100000/,
  );
});

test('a client promotes the shadow that the operator configured, and restores what was configured', async () => {
  const cluster = await start({ shadows: { ordering: asListed } });
  const { policies } = cluster.client;
  const sum = cluster.client.submit(total, cluster.client.map(inc, [1, 2, 3]));
  expect(await cluster.passing(sum.result())).toBe(9);
  const report = await cluster.passing(policies.promote('ordering'));
  expect(report).toMatchObject({ slot: 'ordering', shadow: 'as-listed', active: 'depth-first' });
  expect((await cluster.passing(policies.current())).ordering).toBe('as-listed');
  expect(await cluster.passing(cluster.client.shadow('ordering'))).toBeUndefined();
  await expect(cluster.passing(policies.promote('ordering'))).rejects.toThrow(
    /slot ordering has no shadow to promote; start one with startShadow/,
  );
  await cluster.passing(policies.restore('ordering'));
  expect((await cluster.passing(policies.current())).ordering).toBe('depth-first');
});

test('a client promotes the shadow that it started, with its options', async () => {
  const cluster = await start();
  const { policies } = cluster.client;
  await cluster.passing(policies.startShadow('queuing', 'root-ish', { workerSaturation: 3 }));
  await cluster.passing(policies.promote('queuing'));
  expect(slotsPerThread(cluster)).toEqual([3, 3, 3]);
  await cluster.passing(policies.stopShadow('queuing'));
  await expect(cluster.passing(policies.promote('queuing'))).rejects.toThrow(/no shadow/);
});

test('a client can name the policies that the operator offers, with options over the configured ones', async () => {
  const cluster = await start({
    clientPolicies: {
      ordering: { last: asListed },
      queuing: { wide: { use: 'root-ish', options: { workerSaturation: 3 } } },
    },
  });
  const { policies } = cluster.client;
  await cluster.passing(policies.replace('ordering', 'last'));
  expect((await cluster.passing(policies.current())).ordering).toBe('as-listed');
  await cluster.passing(policies.replace('queuing', 'wide'));
  expect(slotsPerThread(cluster)).toEqual([3, 3, 3]);
  await cluster.passing(policies.replace('queuing', 'wide', { workerSaturation: 5 }));
  expect(slotsPerThread(cluster)).toEqual([5, 5, 5]);
  await cluster.passing(policies.startShadow('ordering', 'last'));
  await expect(cluster.passing(policies.replace('queuing', 'lst'))).rejects.toThrow(
    /scheduler\.clientPolicies\.queuing offers \(wide\), and "lst" is none of them/,
  );
});

test('an offered policy that cannot be loaded is a problem of the configuration', async () => {
  const clientPolicies = { queuing: { wide: { use: 'root-ish', options: { saturation: 3 } } } };
  await expect(start({ clientPolicies })).rejects.toThrow(
    /scheduler\.clientPolicies\.queuing\.wide.*saturation is not known/,
  );
});

test('a shadow reports to the client, and decides nothing', async () => {
  const cluster = await start();
  const { client } = cluster;
  expect(await cluster.passing(client.shadow('ordering'))).toBeUndefined();
  await cluster.passing(client.policies.startShadow('ordering', 'fifo'));
  const sum = client.submit(total, client.map(inc, [1, 2, 3, 4]));
  expect(await cluster.passing(sum.result())).toBe(14);
  expect(await cluster.passing(client.shadow('ordering'))).toMatchObject({
    slot: 'ordering',
    shadow: 'fifo',
    active: 'depth-first',
    failures: 0,
  });
  expect(
    (await cluster.passing(client.policies.stopShadow('ordering')))?.decisions,
  ).toBeGreaterThan(0);
  expect(await cluster.passing(client.shadow('ordering'))).toBeUndefined();
});

test('the configuration can start shadows and the recording of decisions', async () => {
  const cluster = await start({
    decisionLogLength: 100,
    shadows: { workerSelection: { use: 'balanced', options: { others: 2 } } },
  });
  const { client } = cluster;
  const two = client.submit(inc, 1);
  expect(await cluster.passing(client.submit(inc, two).result())).toBe(3);
  expect(await cluster.passing(client.why(two))).toMatchObject({
    state: 'memory',
    isRecording: true,
  });
  expect((await cluster.passing(client.why(two))).decisions).toHaveLength(1);
  expect(await cluster.passing(client.shadow('workerSelection'))).toMatchObject({
    shadow: 'balanced',
    decisions: 1,
  });
  expect(cluster.local.scheduler.bootReport()).toContain(
    'workerSelection: locality-first (in its shadow: balanced)',
  );
});

test('why reads as a text: the present, then decisions and transitions in their order', async () => {
  const cluster = await start();
  const { client } = cluster;
  await cluster.passing(client.policies.recordDecisions(100));
  const numbers = [client.submit(inc, 1), client.submit(inc, 2)] as const;
  await cluster.passing(client.gather(numbers));
  const sum = client.submit(add, ...numbers);
  await cluster.passing(sum.result());
  const text = whyText(await cluster.passing(client.why(sum)));
  expect(text.split('\n')[0]).toBe(`${sum.key} is memory`);
  expect(text).toMatch(/released -> waiting/);
  const decision = text.indexOf('placement by locality-first');
  expect(decision).toBeGreaterThan(text.indexOf('released -> waiting'));
  expect(decision).toBeLessThan(text.indexOf('waiting -> processing'));
  expect(text).toMatch(/among 3 workers that hold inputs or have little to do/);
  expect(whyText(await cluster.passing(client.why('nothing')))).toMatch(/^nothing is unknown\n/);
});

test('why says when transitions are no longer remembered', async () => {
  const cluster = await start({ transitionLogLength: 12 });
  const { client } = cluster;
  const first = client.submit(inc, 1);
  await cluster.passing(first.result());
  const [data] = await cluster.passing(client.scatter([5]));
  const textOf = async (key: unknown): Promise<string> =>
    whyText(await cluster.passing(client.why(key as typeof first)));
  expect(await textOf(first)).not.toContain('remembered');
  expect(await textOf(data)).not.toContain('remembered');
  await cluster.passing(client.gather(client.map(inc, [2, 3, 4, 5, 6, 7])));
  expect(await textOf(first)).toContain(
    'Story\n  older transitions are no longer remembered; scheduler.transitionLogLength says how many are',
  );
});

test('what plugins decide is explained as well: copies, and tasks that change workers', async () => {
  const cluster = await start({
    decisionLogLength: 1000,
    workStealing: { start: false },
  });
  const { client } = cluster;
  const two = client.submit(inc, 1);
  await cluster.passing(client.replicate(two, { n: 2 }));
  const copies = (await cluster.passing(client.why(two))).decisions;
  expect(copies).toMatchObject([
    { kind: 'placement' },
    {
      kind: 'replicate',
      policy: 'SpreadReplicas',
      rule: 'one more copy: the least memory of 2 workers without one',
      candidateCount: 2,
    },
  ]);

  const here = { workers: [cluster.worker('worker-0').address], allowOtherWorkers: true };
  const futures = Array.from({ length: 30 }, (_, n) =>
    client.with({ ...here, pure: false }).submit(slow, 50, n),
  );
  await cluster.until(() => cluster.worker('worker-0').processing.size === 30);
  await cluster.passing(client.command('work-stealing.runOnce'));
  const whys = await Promise.all(futures.map((future) => cluster.passing(client.why(future.key))));
  const steals = whys.flatMap(({ decisions }) => decisions).filter(({ kind }) => kind === 'steal');
  expect(steals.length).toBeGreaterThan(0);
  expect(steals[0]?.policy).toBe('calm');
  expect(steals[0]?.rule).toMatch(/^asked for from .*, cost level 0: 0\.5 s of computation/);
});
