import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { VirtualCluster } from 'yardmaster/testing';
import audit from '../audit.js';
import { CopyCostly } from '../copy-costly.js';
import { EmptyFull } from '../empty-full.js';
import onGpu from '../on-gpu.js';
import { PinResults } from '../pin-results.js';
import quota from '../quota.js';
import { fail, square } from '../tasks.js';

const folder = mkdtempSync(join(tmpdir(), 'extensions-'));
after(() => rmSync(folder, { recursive: true }));

/** A cluster in virtual time, closed when the test is over. */
async function clusterWith(context, scheduler, options = {}) {
  const cluster = await VirtualCluster.start({ workers: 2, config: { scheduler }, ...options });
  context.after(() => cluster.close());
  return { cluster, client: await cluster.client() };
}

/** The names of the workers that hold each result. */
function holdersOf({ scheduler }) {
  const tasks = [...scheduler.cluster.tasks.values()];
  return Object.fromEntries(
    tasks.map(({ key, whoHas }) => [key, [...whoHas].map(({ name }) => name).toSorted()]),
  );
}

test('PinResults moves what has the prefix, and nothing else', async (context) => {
  const policies = [{ use: PinResults, options: { prefix: 'table-', worker: 'worker-1' } }];
  const { cluster, client } = await clusterWith(context, { activeMemoryManager: { policies } });
  await cluster.drive(client.scatter({ 'table-a': 1, 'table-b': 2, other: 3 }));
  await cluster.pass(20_000);
  const { other, ...tables } = holdersOf(cluster);
  assert.deepEqual(tables, { 'table-a': ['worker-1'], 'table-b': ['worker-1'] });
  assert.equal(other.length, 1);
});

test('CopyCostly keeps two copies of what took long, and one of data', async (context) => {
  // In virtual time a task takes none.
  const policies = [{ use: CopyCostly, options: { computedFor: 0 } }];
  const { cluster, client } = await clusterWith(context, { activeMemoryManager: { policies } });
  const future = client.submit(square, 3);
  await cluster.drive(Promise.all([future.result(), client.scatter({ data: 1 })]));
  await cluster.pass(20_000);
  const { data, [future.key]: copies } = holdersOf(cluster);
  assert.deepEqual([data.length, copies], [1, ['worker-0', 'worker-1']]);
});

test('EmptyFull takes results from a worker that is full', async (context) => {
  const policies = [{ use: EmptyFull, options: { above: 4.5 / 1024 } }];
  const scheduler = { activeMemoryManager: { policies, measure: 'managed' } };
  const { cluster, client } = await clusterWith(context, scheduler, {
    memoryLimitBytes: 2 ** 30,
  });
  const [full] = [...cluster.scheduler.cluster.workers.values()];
  const values = Object.fromEntries(
    ['a', 'b', 'c', 'd', 'e', 'f'].map((key) => [key, new Uint8Array(2 ** 20)]),
  );
  await cluster.drive(client.scatter(values, { workers: [full.address] }));
  assert.equal(full.hasWhat.size, 6);
  await cluster.pass(60_000);
  assert.equal(full.hasWhat.size, 4);
});

test('quota refuses a graph that asks for more than it may', async (context) => {
  const plugins = [{ use: quota, options: { results: 2 } }];
  const { cluster, client } = await clusterWith(context, { plugins });
  const [future] = client.map(square, [1, 2, 3]);
  await assert.rejects(cluster.drive(future.result()), {
    code: 'ERR_REFUSED',
    message: /more than 2 results/,
  });
  assert.deepEqual(await cluster.drive(client.gather(client.map(square, [4, 5]))), [16, 25]);
});

test('audit writes who submitted what, what was refused, and what failed', async () => {
  const file = join(folder, 'audit.jsonl');
  const plugins = [
    { use: quota, options: { results: 2 } },
    { use: audit, options: { file } },
  ];
  const cluster = await VirtualCluster.start({ workers: 1, config: { scheduler: { plugins } } });
  const client = await cluster.client();
  await assert.rejects(cluster.drive(client.gather(client.map(square, [1, 2, 3]))), /refused/);
  await assert.rejects(cluster.drive(client.submit(fail).result()), /as it was told/);
  await cluster.close();
  const lines = readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.deepEqual(
    lines.map(({ what }) => what),
    ['joined', 'refused', 'submitted', 'failed', 'left'],
  );
  assert.match(lines[1].reason, /more than 2 results/);
  assert.match(lines[3].why, /as it was told/);
});

test('on-gpu keeps tasks and GPUs together, and the others away', async (context) => {
  const policies = { rules: [{ use: onGpu, weight: 5 }] };
  const { cluster, client } = await clusterWith(context, { policies }, { workers: 1 });
  await cluster.startWorker({ name: 'with-gpu', resources: { GPU: 1 } });
  const onGpus = client.with({ annotations: { gpu: true } }).map(square, [1, 2, 3]);
  const others = client.map(square, [4, 5, 6]);
  await cluster.drive(client.gather([...onGpus, ...others]));
  const holders = holdersOf(cluster);
  for (const { key } of onGpus) assert.deepEqual(holders[key], ['with-gpu']);
  for (const { key } of others) assert.deepEqual(holders[key], ['worker-0']);
});

test('on-gpu says why a task waits', async (context) => {
  const policies = { rules: [onGpu] };
  const { cluster, client } = await clusterWith(context, { policies });
  const future = client.with({ annotations: { gpu: true } }).submit(square, 1);
  await cluster.until(() => cluster.scheduler.cluster.tasks.get(future.key)?.state === 'no-worker');
  const { now } = await cluster.drive(client.why(future));
  assert.equal(now[0], 'the rule on-gpu refuses 2 of 2 workers (it has no GPU)');
});
