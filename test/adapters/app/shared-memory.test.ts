import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { collectGarbage } from '../../../adapters/executors/collect-garbage.ts';
import { type ClusterMode, LocalCluster } from '../../../adapters/app/local-cluster.ts';
import { type Client, type Future, ref, task } from '../../../adapters/client/index.ts';
import { Board, shared } from './fixtures/shared-tasks.mjs';
import { eventually } from '../../kit/eventually.ts';

const WITHIN: readonly ClusterMode[] = ['inline', 'threads'];

function counters(length = 2): Int32Array<SharedArrayBuffer> {
  return new Int32Array(new SharedArrayBuffer(4 * length));
}

/** Not in a variable of the caller, which would hold it. */
async function memoryOf(future: Future<Int32Array>): Promise<WeakRef<ArrayBufferLike>> {
  return new WeakRef((await future.result()).buffer);
}

describe.each(WITHIN)('shared memory in a cluster within the process (%s)', (mode) => {
  let cluster: LocalCluster;
  let client: Client;
  beforeAll(async () => {
    const config = { scheduler: { validate: true } };
    cluster = await LocalCluster.start({ mode, workers: 2, threads: 1, config });
    client = await cluster.client();
  });
  afterAll(() => cluster.close());

  test('that is an argument is the memory of the program', async () => {
    const mine = counters();
    expect(await client.submit(shared.add, mine, 1, 5).result()).toBe(0);
    expect(mine[1]).toBe(5);
    await client.submit(shared.addBare, mine.buffer, 7).result();
    expect([...mine]).toEqual([7, 5]);
  });

  test('that is a result is the memory of all who read it, on every worker', async () => {
    const made = client.with({ workers: ['worker-0'] }).submit(shared.counters, 2);
    const adds = ['worker-0', 'worker-1'].map((name, index) =>
      client.with({ workers: [name] }).submit(shared.add, made, 0, 2 + 2 * index),
    );
    await client.gather(adds);
    const [first, second] = [await made.result(), await made.result()];
    expect([first[0], second[0]]).toEqual([6, 6]);
    first[1] = 9;
    expect(second[1]).toBe(9);
    expect(await client.submit(shared.add, made, 1, 0).result()).toBe(9);
  });

  test('stays one memory under all views of it in a value', async () => {
    const future = client.submit(shared.nested);
    await client.submit(shared.addInside, future, 513).result();
    const { memory, views, list, text } = await future.result();
    expect(memory).toBeInstanceOf(SharedArrayBuffer);
    expect(list[0]?.has(memory)).toBe(true);
    expect(text).toHaveLength(100);
    const all = views.get('all') as Int32Array;
    const tail = views.get('tail') as DataView;
    const bytes = views.get('bytes') as Buffer;
    expect(all.buffer).toBe(memory);
    expect([all.length, tail.byteOffset, tail.byteLength, bytes.length]).toEqual([6, 4, 4, 3]);
    expect(Buffer.isBuffer(bytes)).toBe(true);
    expect(tail.getInt32(0, true)).toBe(513);
    all[2] = 0x010203;
    expect([...bytes]).toEqual([3, 2, 1]);
  });

  test('that came as an argument and is returned is the same memory still', async () => {
    const mine = counters();
    const theirs = await client.submit(shared.same, mine).result();
    theirs[0] = 11;
    expect(mine[0]).toBe(11);
  });

  test('makes every call run, for it may have changed since the last one', async () => {
    const mine = counters();
    await client.submit(shared.add, mine, 0, 1).result();
    await client.submit(shared.add, mine, 0, 1).result();
    const [other, another] = [counters(), counters()];
    await client.gather([
      client.submit(shared.add, other, 0, 1),
      client.submit(shared.add, another, 0, 1),
    ]);
    expect([mine[0], other[0], another[0]]).toEqual([2, 1, 1]);
  });

  test('is a task of its own under one key, and another memory is refused under it', async () => {
    const mine = counters();
    const named = client.with({ key: `named-${mode}` });
    const future = named.submit(shared.add, mine, 0, 1);
    const again = named.submit(shared.add, mine, 0, 1);
    expect(again.key).toBe(future.key);
    expect(() => named.submit(shared.add, counters(), 0, 1)).toThrow(
      expect.objectContaining({ code: 'ERR_KEY_TAKEN' }),
    );
    await client.gather([future, again]);
    expect(mine[0]).toBe(1);
  });

  test('is scattered without a copy, and known again', async () => {
    const [mine, other] = [counters(), counters()];
    const [first, again, another] = await client.scatter([mine, mine, other]);
    expect(again?.key).toBe(first?.key);
    expect(another?.key).not.toBe(first?.key);
    await client.submit(shared.add, first as never, 0, 4).result();
    expect([mine[0], other[0]]).toEqual([4, 0]);
  });

  test('keeps what a failed attempt has written', async () => {
    const mine = counters();
    const future = client.with({ retries: 3 }).submit(shared.failOnce, mine, `once-${mode}`);
    expect(await future.result()).toBe(mine[0]);
    expect(mine[0]).toBeGreaterThan(1);
  });

  test('goes through a graph', async () => {
    const mine = counters();
    const graph = {
      [`made-${mode}`]: task(shared.same, mine),
      [`added-${mode}`]: task(shared.add, ref<Int32Array>(`made-${mode}`), 1, 8),
    };
    await client.compute(graph, `added-${mode}`).result();
    expect(mine[1]).toBe(8);
  });

  test('is shared by a task with those that it submits', async () => {
    expect(await client.submit(shared.parent).result()).toEqual([1, 2, 3, 4]);
  });

  test('is shared with an actor', async () => {
    const board = await client.submitActor(Board).result();
    const mine = counters();
    const theirs = await board.write(mine, 6);
    theirs[0] = 7;
    expect([mine[0], ...(await board.memory)]).toEqual([6, 7, 6]);
  });

  test('counts with all its bytes', async () => {
    const future = client.submit(shared.counters, 25_000);
    await future.settled();
    const nbytes = await client.nbytes([future]);
    expect(nbytes.get(future.key)).toBeGreaterThanOrEqual(100_000);
  });
});

describe('shared memory of results', () => {
  test('is free when they are released, and the threads have dropped it', async () => {
    await using cluster = await LocalCluster.start({ mode: 'threads', workers: 2, threads: 1 });
    const client = await cluster.client();
    const made = client.submit(shared.counters, 1000);
    const sum = client.with({ workers: ['worker-1'] }).submit(shared.add, made, 0, 1);
    await sum.result();
    const weak = await memoryOf(made);
    expect(weak.deref() === undefined).toBe(false);
    made.release();
    sum.release();
    await eventually(() => {
      collectGarbage();
      // An error that has the value would hold it.
      expect(weak.deref() === undefined).toBe(true);
    });
  });

  test('is kept as a copy in a store of results, and not when it is bare', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'yardmaster-shared-'));
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    try {
      for (const isShared of [true, false]) {
        await using cluster = await LocalCluster.start({ mode: 'inline', workers: 1 });
        const client = (await cluster.client({ resultStore: folder })).with({ persist: true });
        const view = await client.submit(shared.counters, 3).result();
        expect(view).toHaveLength(3);
        expect(view.buffer instanceof SharedArrayBuffer).toBe(isShared);
        expect(await client.submit(shared.bare, 4).result()).toBeInstanceOf(SharedArrayBuffer);
        expect(() => client.submit(shared.add, counters(), 0, 1)).toThrow(
          'shared memory is among its arguments',
        );
      }
      expect(warned).toHaveBeenCalledTimes(2);
      expect(warned.mock.calls[0]?.[0]).toContain('only threads of one process can share');
    } finally {
      vi.restoreAllMocks();
      rmSync(folder, { recursive: true });
    }
  });
});

describe('shared memory in a cluster of processes', () => {
  let cluster: LocalCluster;
  let client: Client;
  beforeAll(async () => {
    cluster = await LocalCluster.start({ mode: 'processes', workers: 2, threads: 2 });
    client = await cluster.client();
  });
  afterAll(() => cluster.close());

  test('arrives as a copy of what a typed array shows', async () => {
    const mine = counters();
    expect(await client.submit(shared.isShared, mine).result()).toBe(false);
    const wide = new Int32Array(new SharedArrayBuffer(2 ** 20), 2 ** 19, 2).fill(3);
    const back = await client.submit(shared.same, wide).result();
    expect([...back]).toEqual([3, 3]);
    back[0] = 4;
    expect(wide[0]).toBe(3);
  });

  test('by itself is refused as an argument when it is submitted', () => {
    expect(() => client.submit(shared.addBare, new SharedArrayBuffer(8), 1)).toThrow(
      expect.objectContaining({
        code: 'ERR_NOT_SERIALISABLE',
        message: expect.stringContaining('is a SharedArrayBuffer') as string,
      }),
    );
  });

  test('that is a result is shared by the tasks of its worker, and copied for others', async () => {
    const here = client.with({ workers: ['worker-0'] });
    const made = here.submit(shared.counters, 2);
    await here.submit(shared.add, made, 0, 5).result();
    const copy = await made.result();
    expect(copy[0]).toBe(5);
    expect(copy.buffer).toBeInstanceOf(ArrayBuffer);
    const there = client.with({ workers: ['worker-1'] });
    expect(await there.submit(shared.isShared, made).result()).toBe(false);
    expect(await here.with({ pure: false }).submit(shared.isShared, made).result()).toBe(true);
  });

  test('by itself cannot be read by another process', async () => {
    const here = client.with({ workers: ['worker-0'] });
    const made = here.submit(shared.bare, 8);
    await here.submit(shared.addBare, made, 5).result();
    expect(await here.submit(shared.addBare, made, 1).result()).toBe(5);
    await expect(made.result()).rejects.toMatchObject({ code: 'ERR_NOT_SERIALISABLE' });
    const there = client.with({ workers: ['worker-1'] }).submit(shared.addBare, made, 2);
    await expect(there.result()).rejects.toMatchObject({
      message: expect.stringContaining('only threads of one process can share') as string,
    });
  });
});
