import { readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { LocalCluster, type LocalClusterOptions } from '../../../adapters/app/local-cluster.ts';
import {
  all,
  type Client,
  ref,
  type ResultStoreOption,
  task,
  type TaskOptions,
} from '../../../adapters/client/index.ts';
import type { TaskFunction } from '../../../adapters/tasks/index.ts';
import { eventually } from '../../kit/eventually.ts';
import { eachInKeptFolder, takenFrom } from './kept.ts';

type Tasks = Record<'load' | 'double', TaskFunction<[log: string, value: number], number>> & {
  readonly sum: TaskFunction<[log: string, ...values: number[]], number>;
  readonly strip: TaskFunction<[log: string, text: string], string>;
};
const { load, double, sum, strip } = (await import(
  new URL('./fixtures/kept-tasks.mjs', import.meta.url).href
)) as Tasks;

let folder: string;
let log: string;
let store: string;
eachInKeptFolder((kept) => ({ folder, log, store } = kept));
afterEach(() => {
  vi.restoreAllMocks();
});

const taken = (): string[] => takenFrom(log);

/** Runs with a client of a new cluster. */
async function inCluster<T>(
  run: (client: Client) => Promise<T>,
  resultStore: ResultStoreOption = store,
): Promise<T> {
  await using cluster = await LocalCluster.start({ mode: 'inline', workers: 2 });
  return await run(await cluster.client({ resultStore }));
}

/** 2 × 3 + 2 × 4. */
const graph = () => ({
  a: task(load, log, 3),
  b: task(load, log, 4),
  a2: task(double, log, ref<number>('a')),
  b2: task(double, log, ref<number>('b')),
  all: task(sum, log, ref<number>('a2'), ref<number>('b2')),
});
const wholeGraph = ['double 3', 'double 4', 'load 3', 'load 4', 'sum'];

/** The files of the store: small results are packed. */
const files = (): string[] => readdirSync(store).map((name) => join(store, name));
/** How many results the files have: records after a header of 56 bytes that are no traces. */
const keptCount = (): number =>
  files().reduce(
    (count, file) =>
      count + [...readFileSync(file, 'latin1').matchAll(/YMP1.{52}(?!trace)/gs)].length,
    0,
  );

describe('a result that persists', () => {
  test('is that of a chunk, unless one of its items has failed', async () => {
    const run = (): Promise<unknown[]> =>
      inCluster(async (client) => {
        const keeping = client.with({ persist: true });
        const results: unknown[] = [];
        const stripped = keeping.map(strip, all(log), ['a', 'b', 'c', 'fail'], {
          ...{ chunk: 2, errors: 'return' },
        });
        for await (const result of stripped) results.push(result);
        return results;
      });
    const outcome = ['a', 'b', 'c', { message: 'it fails', data: { index: 3 } }];
    expect(await run()).toMatchObject(outcome);
    expect(taken()).toEqual(['strip a', 'strip b', 'strip c', 'strip fail']);
    expect(await run()).toMatchObject(outcome);
    expect(taken()).toEqual(['strip c', 'strip fail']);
  });

  test('is read by another cluster, with nothing that it was computed of', async () => {
    const compute = (client: Client): Promise<number> =>
      client.with({ persist: true }).compute(graph(), 'all').result();
    expect(await inCluster(compute)).toBe(14);
    expect(taken()).toEqual(wholeGraph);
    expect(await inCluster(compute)).toBe(14);
    expect(taken()).toEqual([]);
    expect(keptCount()).toBe(5);
  });

  test('is computed again from what else persists when it alone is forgotten', async () => {
    await inCluster(async (client) => {
      const future = client.with({ persist: true }).compute(graph(), 'all');
      await future.result();
      await client.forgetResults(future);
    });
    taken();
    await inCluster((client) => client.with({ persist: true }).compute(graph(), 'all').result());
    expect(taken()).toEqual(['sum']);
  });

  test('is one of the requested results alone with graph-outputs', async () => {
    const compute = (client: Client): Promise<readonly number[]> =>
      client.gather(client.with({ persist: 'graph-outputs' }).compute(graph(), ['a2', 'all']));
    expect(await inCluster(compute)).toEqual([6, 14]);
    expect(keptCount()).toBe(2);
    taken();
    expect(await inCluster(compute)).toEqual([6, 14]);
    expect(taken()).toEqual([]);
  });

  test('is read when the worker that reported it has died, and what is computed of it goes on', async () => {
    const config = { scheduler: { validate: true } };
    await using cluster = await LocalCluster.start({ mode: 'processes', workers: 2, config });
    const client = await cluster.client({ resultStore: store });
    const kept = client.with({ persist: true });
    const values = Array.from({ length: 60 }, (_, index) => index);
    const futures = kept.map(load, Array<string>(60).fill(log), values);
    const doubles = kept.map(double, Array<string>(60).fill(log), futures);
    expect(await client.gather(doubles)).toEqual(values.map((value) => 2 * value));
    for (const pid of [...cluster.pids]) {
      process.kill(pid, 'SIGKILL');
      await eventually(() => expect(cluster.pids).not.toContain(pid));
    }
    await eventually(() => expect(cluster.workerCount).toBe(2));
    expect(await client.gather(doubles)).toEqual(values.map((value) => 2 * value));
    expect(await client.gather(futures)).toEqual(values);
    expect(taken()).toHaveLength(120);
  });

  test('is read although its limit lets nothing start', async () => {
    const load3 = (client: Client, options: TaskOptions): Promise<number[]> =>
      client.gather(client.with({ persist: true, ...options }).map(load, all(log), [1, 2, 3]));
    await inCluster((client) => load3(client, {}));
    const limit = { name: 'api', max: 1, rate: '1/h', maxQueued: 0 } as const;
    expect(await inCluster((client) => load3(client, { limit }))).toEqual([1, 2, 3]);
  });

  test('is read where no worker has the resources that computing it took', async () => {
    const options: LocalClusterOptions = { mode: 'inline', workers: 1, resultStore: store };
    const loadOnGpu = (client: Client): Promise<number> =>
      client
        .with({ persist: true, resources: { GPU: 1 } })
        .submit(load, log, 1)
        .result();
    {
      await using cluster = await LocalCluster.start({ ...options, resources: { GPU: 1 } });
      await loadOnGpu(await cluster.client());
    }
    await using cluster = await LocalCluster.start(options);
    expect(await loadOnGpu(await cluster.client())).toBe(1);
  });

  test('may be that of one task of a graph', async () => {
    const marked = () => ({ ...graph(), a2: graph().a2.with({ persist: true }) });
    const compute = (client: Client): Promise<number> => client.compute(marked(), 'all').result();
    await inCluster(compute);
    taken();
    expect(await inCluster(compute)).toBe(14);
    expect(taken()).toEqual(['double 4', 'load 4', 'sum']);
  });

  test('is found for tasks that were submitted one by one, and computed for other arguments', async () => {
    const submit = async (client: Client, value: number): Promise<number> => {
      const kept = client.with({ persist: true });
      return kept.submit(double, log, kept.submit(load, log, value)).result();
    };
    await inCluster((client) => submit(client, 5));
    taken();
    expect(await inCluster((client) => submit(client, 5))).toBe(10);
    expect(taken()).toEqual([]);
    expect(await inCluster((client) => submit(client, 6))).toBe(12);
    expect(taken()).toEqual(['double 6', 'load 6']);
  });

  test('may follow from scattered values, not from futures that do not persist', async () => {
    await inCluster(async (client) => {
      const kept = client.with({ persist: true });
      const [seven] = await client.scatter([7]);
      expect(await kept.submit(double, log, seven as never).result()).toBe(14);
      const loose = client.submit(load, log, 8);
      expect(() => kept.submit(double, log, loose)).toThrow(
        `its input "${loose.key}" may be another one next time`,
      );
      expect(() => client.with({ persist: true, pure: false }).submit(load, log, 9)).toThrow(
        'cannot be kept: it is not pure (pure: false)',
      );
    });
  });

  test('is computed again when its file is damaged, which is said', async () => {
    const submit = (client: Client): Promise<number> =>
      client.with({ persist: true }).submit(load, log, 1).result();
    await inCluster(submit);
    taken();
    const [file = ''] = files();
    const bytes = readFileSync(file);
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
    writeFileSync(file, bytes);
    utimesSync(file, 1, 1); // Otherwise it may be one that is still being written.
    const warned = vi.spyOn(process, 'emitWarning').mockReturnValue();
    expect(await inCluster(submit)).toBe(1);
    expect(taken()).toEqual(['load 1']);
    expect(warned).toHaveBeenCalledWith(
      `${file} is damaged at byte 0; the result there was removed, and is computed again`,
      'YardmasterResultStore',
    );
    expect(await inCluster(submit)).toBe(1);
    expect(taken()).toEqual([]);
  });

  test('may be in a store of another kind', async () => {
    const use = new URL('./fixtures/memory-results.mjs', import.meta.url).href;
    const submit = (client: Client): Promise<number> =>
      client.with({ persist: true }).submit(load, log, 2).result();
    const other = { use, options: { name: store } };
    await inCluster(submit, other);
    expect(taken()).toEqual(['load 2']);
    expect(await inCluster(submit, other)).toBe(2);
    expect(taken()).toEqual([]);
  });

  test('is not kept where a file is', async () => {
    const file = join(folder, 'file');
    writeFileSync(file, '');
    await using cluster = await LocalCluster.start({ mode: 'inline', workers: 1 });
    const says = `results cannot be kept in ${file}, where a file is: give resultStore a folder`;
    await expect(cluster.client({ resultStore: file })).rejects.toThrow(says);
    const client = await cluster.client();
    expect(() => client.with({ resultStore: { folder: file } })).toThrow(says);
  });

  test('needs a store', async () => {
    await using cluster = await LocalCluster.start({ mode: 'inline', workers: 1 });
    const client = await cluster.client();
    expect(() => client.with({ persist: true }).submit(load, log, 1)).toThrow(
      'persist must be given with resultStore',
    );
  });
});

test('what is kept in a folder is read without a thread', async () => {
  const threads: unknown[] = [];
  const note = (thread: unknown): void => void threads.push(thread);
  const run = async (): Promise<number[]> => {
    await using cluster = await LocalCluster.start({ mode: 'threads', workers: 1, threads: 1 });
    const client = await cluster.client({ resultStore: store });
    const kept = client.with({ persist: true });
    return await client.gather(kept.map(load, [log, log, log], [1, 2, 3]));
  };
  process.on('worker', note);
  try {
    const values = await run();
    expect(threads).toHaveLength(1);
    expect(await run()).toEqual(values);
    expect(threads).toHaveLength(1);
    expect(taken()).toEqual(['load 1', 'load 2', 'load 3']);
  } finally {
    process.off('worker', note);
  }
});
