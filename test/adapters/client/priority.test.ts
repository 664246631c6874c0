import { beforeEach, expect, test } from 'vitest';
import { type Future, task } from '../../../adapters/client/index.ts';
import { inc, calls, count, total } from './tasks.ts';
import type { VirtualCluster } from '../../kit/virtual-cluster.ts';
import { startCluster } from '../../kit/virtual-cluster.ts';

let cluster: VirtualCluster;
beforeEach(async () => {
  calls.clear();
  cluster = await startCluster(1);
});
const labels = 'abcdefgh'.split('');

/**
 * Tasks that are submitted in this order. One thread computes them one after the other: a and b are
 * sent to the worker at once, the others are held back.
 */
function submitAll(): Future<number>[] {
  return cluster.client.map(count, labels);
}

async function orderOf(futures: unknown): Promise<string> {
  await cluster.passing(cluster.client.gather(futures));
  return [...calls.keys()].join('');
}

test('a raised future overtakes what has not begun, on the worker and in the queue', async () => {
  const futures = submitAll();
  const [, b, , , , , g] = futures;
  cluster.client.setPriority([g], 2);
  cluster.client.setPriority(b, 1);
  expect(await orderOf(futures)).toBe('bagcdefh');
});

test('an equal call with a higher priority raises the task, and one with a lower priority does not', async () => {
  const futures = cluster.client.with({ priority: 1 }).map(count, labels);
  const again = [
    cluster.client.with({ priority: 2 }).submit(count, 'g'),
    cluster.client.with({ priority: 0 }).submit(count, 'd'),
    cluster.client.submit(count, 'c'),
  ];
  expect(again.map(({ key }) => key)).toEqual([6, 3, 2].map((n) => futures[n]!.key));
  expect(await orderOf(futures)).toMatch(/^(gab|agb|abg)cdefh$/);
});

test('a graph that names a task again with a higher priority raises it', async () => {
  const graph = Object.fromEntries(labels.map((label) => [label, task(count, label)]));
  const futures = cluster.client.compute(graph, labels);
  const [g] = cluster.client.with({ priority: 2 }).compute({ g: task(count, 'g') }, ['g']);
  expect(g.key).toBe('g');
  expect(await orderOf(futures)).toMatch(/^(gab|agb|abg)cdefh$/);
});

test('tasks of an earlier compute precede those of a later one; single tasks within a moment share their turn', async () => {
  const { client, clock, local } = cluster;
  const { tasks } = local.scheduler.cluster;
  const momentLater = (): Promise<void> => clock.advanceToAsync(clock.nowMs() + 5);
  const first = client.compute({ early: task(inc, 1) }, 'early');
  await cluster.until(() => tasks.has('early'));
  await momentLater();
  const second = client.compute({ late: task(inc, 2) }, 'late');
  await cluster.until(() => tasks.has('late'));
  await momentLater();
  const single = client.submit(inc, 3);
  await cluster.until(() => tasks.has(single.key));
  const [early, late, alone] = ['early', 'late', single.key].map((key) => tasks.get(key)!);
  expect(early!.generation).toBeLessThan(late!.generation);
  expect(alone!.generation).toBe(late!.generation);
  expect(early!.arrival).toBeLessThan(late!.arrival);
  expect(late!.arrival).toBeLessThan(alone!.arrival);
  expect(await cluster.passing(client.gather([first, second, single]))).toEqual([2, 3, 4]);
});

test('a lowered future runs last', async () => {
  const futures = submitAll();
  cluster.client.setPriority(futures.slice(2, 4), -1);
  expect(await orderOf(futures)).toBe('abefghcd');
});

test('each future of a Map gets its own priority', async () => {
  const futures = submitAll();
  const backwards = new Map(futures.map((future, index) => [future, index]));
  cluster.client.setPriority(backwards);
  expect(await orderOf(futures)).toBe('bahgfedc');
});

test('what a future still needs is raised with it, unless it is to keep its place', async () => {
  const { client } = cluster;
  const futures = submitAll();
  const sum = client.submit(total, futures.slice(5));
  client.setPriority(sum, 1);
  expect(await orderOf([futures, sum])).toBe('abfghcde');
});

test('inputs that keep their place do so', async () => {
  const { client } = cluster;
  const futures = submitAll();
  const sum = client.submit(total, futures.slice(5));
  client.setPriority(sum, 1, { inputs: 'keep' });
  expect(await orderOf([futures, sum])).toBe('abcdefgh');
});

test('what has ended is left alone, and a priority must be a number', async () => {
  const { client } = cluster;
  const done = client.submit(inc, 1);
  await cluster.passing(done.result());
  client.setPriority(done, 5);
  await cluster.passing(client.identity());
  const task = cluster.local.scheduler.cluster.tasks.get(done.key);
  expect(task?.priority?.[0]).toBe(0);
  expect(() => client.setPriority(done, NaN)).toThrow(
    /priority must be a finite number \(got NaN\)/,
  );
  expect(() => client.setPriority(new Map([[done, Infinity]]))).toThrow(/finite/);
});

test('a clone keeps the result when the other future is released', async () => {
  const { client } = cluster;
  const future = client.submit(inc, 41);
  const other = future.clone();
  future.release();
  expect(await cluster.passing(other.result())).toBe(42);
  expect(() => future.clone()).toThrow(/was released/);
});
