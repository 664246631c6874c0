import { beforeEach, expect, test } from 'vitest';
import { type Client, type Future, ref, task } from '../../../adapters/client/index.ts';
import { definePlugin } from '../../../core/api/index.ts';
import { calls, count, gates, inc, slow, total } from './tasks.ts';
import type { VirtualCluster } from '../../kit/virtual-cluster.ts';
import { startCluster } from '../../kit/virtual-cluster.ts';

// What ends wants on its way to a client meets what the client has asked for in the meantime.

let cluster: VirtualCluster;
let client: Client;
let other: Client;
beforeEach(async () => {
  calls.clear();
  gates.clear();
  cluster = await startCluster(1);
  client = cluster.client;
  other = await cluster.passing(cluster.local.client());
});
const graph = {
  a: task(slow, 20, 1),
  b: task(total, [ref<number>('a')]),
  c: task(total, [ref<number>('b')]),
};

async function isRunning(key: string): Promise<void> {
  await cluster.until(() => cluster.local.scheduler.cluster.tasks.get(key)?.state === 'processing');
}

async function nothingIsHeld(): Promise<void> {
  await cluster.until(() => cluster.local.scheduler.cluster.tasks.size === 0);
}

test('a cancellation of an input leaves what is submitted after it', async () => {
  const [a, b] = client.compute(graph, ['a', 'b']);
  await isRunning('a');
  client.cancel(a);
  const again = client.compute(graph, 'b');
  expect(await cluster.passing(again.result())).toBe(1);
  for (const future of [a, b, again]) future.release();
  await nothingIsHeld();
});

test('of several submissions and cancellations in a row the last one counts', async () => {
  const futures: Future<number>[] = [];
  for (let round = 0; round < 3; round++) {
    const future = client.submit(count, 'x');
    if (round < 2) future.cancel();
    else expect(await cluster.passing(future.result())).toBeDefined();
    futures.push(future);
  }
  client.cancel(futures);
  await nothingIsHeld();
});

test('a forced cancellation by another client leaves a graph that is submitted after it', async () => {
  const [mine, theirs] = [client.compute(graph, 'a'), other.compute(graph, 'a')];
  await isRunning('a');
  theirs.cancel({ force: true });
  const again = client.compute(graph, 'a');
  await cluster.passing(again.settled());
  for (const future of [mine, again]) future.release();
  await nothingIsHeld();
});

test('a restart leaves what another client submits before it hears of it', async () => {
  const before = other.compute(graph, 'b');
  await isRunning('a');
  await cluster.passing(client.restart());
  const after = other.compute(graph, 'b');
  await cluster.passing(after.settled());
  for (const future of [before, after]) future.release();
  await nothingIsHeld();
});

test('a key that is given up and submitted again has the result of its present arguments', async () => {
  let onResult: () => void = () => undefined;
  const plugin = definePlugin({
    name: 'at-the-result',
    apiVersion: 1,
    setup: () => ({
      taskTransition: (_task, _start, finish) => {
        if (finish === 'memory') onResult();
      },
    }),
  });
  await cluster.local.scheduler.addPlugin(plugin);
  const thing = client.with({ key: 'thing' });
  for (const way of ['release', 'cancel'] as const) {
    const first = thing.submit(inc, 1);
    // The news of the first result leaves after this, and arrives when the client has submitted the second.
    const second = await cluster.passing(
      new Promise<Future<number>>((resolve) => {
        onResult = () => {
          onResult = () => undefined;
          first[way]();
          resolve(thing.submit(inc, 2));
        };
      }),
    );
    expect(await cluster.passing(second.result())).toBe(3);
    second.release();
    await nothingIsHeld();
  }
});

test('whatever crosses, each future settles, and nothing is held when all are released', async () => {
  let seed = 2727;
  const draw = (n: number): number => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
    return (seed >>> 16) % n;
  };
  const keys = ['a', 'b', 'c'] as const;
  for (let round = 0; round < 80; round++) {
    const futures: Future<number>[] = [];
    for (let step = 0; step < 12; step++) {
      const one = draw(2) === 0 ? client : other;
      const what = draw(8);
      const chosen = futures[draw(Math.max(1, futures.length))];
      if (what < 4 || chosen === undefined) futures.push(one.compute(graph, keys[draw(3)]!));
      else if (what === 4) chosen.cancel({ force: draw(2) === 0 });
      else if (what === 5) chosen.release();
      else if (what === 6 && draw(6) === 0) await cluster.passing(one.restart());
      else await cluster.clock.advanceToAsync(cluster.clock.nowMs() + draw(15));
    }
    await cluster.passing(Promise.all(futures.map((future) => future.settled())));
    for (const future of futures) future.release();
    await nothingIsHeld();
  }
});
