import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { LocalCluster, type LocalClusterOptions } from '../../../adapters/app/local-cluster.ts';
import { type Client, ref, task, type TaskNode } from '../../../adapters/client/index.ts';
import type { ByResult } from '../../../adapters/client/content-keys.ts';
import { entryOfFuture } from '../../../adapters/client/future.ts';
import { Draw } from '../../../adapters/simulator/random.ts';
import { openResultStore } from '../../../adapters/stores/open-result-store.ts';
import { digestKey, type TaskFunction } from '../../../adapters/tasks/index.ts';
import { eachInKeptFolder, takenFrom } from './kept.ts';

interface Tasks {
  readonly strip: TaskFunction<[log: string, text: string], string>;
  readonly double: TaskFunction<[log: string, value: string], number>;
  readonly meet: TaskFunction<[log: string, value: number], number>;
  readonly sum: TaskFunction<[log: string, ...values: number[]], number>;
}
const { strip, double, sum, meet } = (await import(
  new URL('./fixtures/kept-tasks.mjs', import.meta.url).href
)) as Tasks;

let folder: string;
let log: string;
let store: string;
eachInKeptFolder((kept) => ({ folder, log, store } = kept));

const taken = (): string[] => takenFrom(log);

/** Runs with a client of a new cluster. */
async function inCluster<T>(
  run: (client: Client) => Promise<T>,
  options: LocalClusterOptions = { mode: 'inline' },
): Promise<T> {
  await using cluster = await LocalCluster.start({ workers: 2, ...options });
  return await run(await cluster.client({ resultStore: store }));
}

/** Two texts without their comments, each doubled, and both together. */
const graph = (a: string, b: string) => ({
  a: task(strip, log, a).with({ contentKey: 'result' }),
  b: task(strip, log, b).with({ contentKey: 'result' }),
  a2: task(double, log, ref<string>('a')),
  b2: task(double, log, ref<string>('b')),
  all: task(sum, log, ref<number>('a2'), ref<number>('b2')),
});
const compute = (a: string, b: string) => (client: Client) =>
  client.with({ persist: true }).compute(graph(a, b), 'all').result();

describe('a task with contentKey result', () => {
  test('is the only task that is computed again when its result stays equal', async () => {
    await inCluster(compute('1 # one', '2 # two'));
    expect(taken()).toEqual(['double 1', 'double 2', 'strip 1 # one', 'strip 2 # two', 'sum']);
    expect(await inCluster(compute('1 # uno', '2 # two'))).toBe(6);
    expect(taken()).toEqual(['strip 1 # uno']);
    expect(await inCluster(compute('1 # uno', '2 # two'))).toBe(6);
    expect(taken()).toEqual([]);
  });

  test('has the dependents computed again that follow from its result when that changes', async () => {
    await inCluster(compute('1', '2'));
    taken();
    expect(await inCluster(compute('3', '2'))).toBe(10);
    expect(taken()).toEqual(['double 3', 'strip 3', 'sum']);
    // Back to what was there before.
    expect(await inCluster(compute('1 # again', '2'))).toBe(6);
    expect(taken()).toEqual(['strip 1 # again']);
  });

  test('cuts off wherever the equal result is held in another form by the engine', async () => {
    await inCluster(compute('12345678901234567 # one', '2'));
    taken();
    // The rest of a text with wide characters has two bytes for each of its characters.
    await inCluster(compute('12345678901234567 # \u4e00', '2'));
    expect(taken()).toEqual(['strip 12345678901234567 # \u4e00']);
  });

  test('cuts off for tasks that were submitted one by one, in threads', async () => {
    const submit = (text: string) => async (client: Client) => {
      const kept = client.with({ persist: true });
      const stripped = kept.with({ contentKey: 'result' }).submit(strip, log, text);
      await stripped.result();
      return kept.submit(double, log, stripped).result();
    };
    const threads: LocalClusterOptions = { mode: 'threads' };
    expect(await inCluster(submit('4 # four'), threads)).toBe(8);
    taken();
    expect(await inCluster(submit('4 # vier'), threads)).toBe(8);
    expect(taken()).toEqual(['strip 4 # vier']);
  });

  test('is kept with what follows from it when only the requested results of a graph are', async () => {
    const outputs = (a: string) => (client: Client) =>
      client.with({ persist: 'graph-outputs' }).compute(graph(a, '2'), 'all').result();
    await inCluster(outputs('1 # one'));
    taken();
    await inCluster(outputs('1 # uno'));
    expect(taken()).toEqual(['strip 1 # uno']);
  });

  test('that fails ends its dependents, and what they had is found when it succeeds again', async () => {
    await inCluster(compute('1', '2'));
    taken();
    await expect(inCluster(compute('fail', '2'))).rejects.toThrow('it fails');
    expect(taken()).toEqual(['strip fail']);
    expect(await inCluster(compute('1 # fine', '2'))).toBe(6);
    expect(taken()).toEqual(['strip 1 # fine']);
  });

  test('is refused with another value', async () => {
    await inCluster((client) => {
      expect(() => client.with({ contentKey: 'input' as 'result' })).toThrow(
        "contentKey must be 'result'",
      );
      return Promise.resolve();
    });
  });
});

describe('a store that has lost a part', () => {
  /** The content key of `a`, when all is kept. */
  async function keyOfFirst(client: Client): Promise<string> {
    const kept = client.with({ persist: true });
    const [a, all] = kept.compute(graph('1', '2'), ['a', 'all']);
    await client.gather([a, all]);
    return (entryOfFuture(a).contentKey as ByResult).key;
  }

  test('is asked for what is left: a digest alone is written again', async () => {
    const a = await inCluster(keyOfFirst);
    taken();
    const opened = await openResultStore({ folder: store });
    await opened.delete(digestKey(a));
    expect(await inCluster(compute('1', '2'))).toBe(6);
    expect(taken()).toEqual([]);
    expect(await opened.has(digestKey(a))).toBe(true);
  });

  test('has the result without its digest computed again only when something needs it', async () => {
    const a = await inCluster(keyOfFirst);
    taken();
    await (await openResultStore({ folder: store })).delete(a);
    expect(await inCluster(compute('1', '2'))).toBe(6);
    expect(taken()).toEqual([]);
    expect(await inCluster(compute('1', '3'))).toBe(8);
    expect(taken()).toEqual(['double 3', 'strip 3', 'sum']);
  });

  test('forgets a result with its digest', async () => {
    await inCluster(async (client) => {
      const futures = client.with({ persist: true }).compute(graph('1', '2'), ['a', 'all']);
      await client.gather(futures);
      await client.forgetResults(futures);
    });
    taken();
    expect(await inCluster(compute('1', '2'))).toBe(6);
    expect(taken()).toEqual(['strip 1', 'sum']);
  });
});

describe('client.explain', () => {
  const why = async (client: Client, a: string, b: string) => {
    await compute(a, b)(client);
    const reasons = await client.explain(['a', 'a2', 'b2', 'all']);
    return reasons.map(({ isComputed, because, changed }) =>
      isComputed ? [because, ...changed].join(' ') : 'kept',
    );
  };

  test('says why results were computed and not read', async () => {
    const first = await inCluster((client) => why(client, '1', '2'));
    expect(first).toEqual(Array(4).fill('never computed'));
    const comment = await inCluster((client) => why(client, '1 # one', '2'));
    expect(comment).toEqual(['arguments', 'kept', 'kept', 'kept']);
    const change = await inCluster((client) => why(client, '3', '2'));
    expect(change).toEqual(['arguments', 'inputs a', 'kept', 'inputs a2']);
    rmSync(store, { recursive: true });
    const lost = await inCluster((client) => why(client, '3', '2'));
    expect(lost).toEqual(Array(4).fill('never computed'));
    const dropped = await inCluster(async (client) => {
      const future = client.with({ persist: true }).compute(graph('3', '2'), 'all');
      await future.result();
      await client.forgetResults(future);
      future.release();
      return why(client, '3', '2');
    });
    expect(dropped).toEqual(['kept', 'kept', 'kept', 'dropped']);
  });

  test('tells another version of the module, and another function, from other arguments', () => {
    const module = join(folder, 'versions.mjs');
    const source = (body: string): string =>
      `import { defineTasks } from 'yardmaster';
export const { f, g } = defineTasks(import.meta.url, { f: (x) => ${body}, g: (x) => x });`;
    const results: string[] = [];
    mkdirSync(join(folder, 'node_modules'));
    symlinkSync(
      new URL('../../..', import.meta.url).pathname,
      join(folder, 'node_modules/yardmaster'),
    );
    const program = `import { LocalCluster } from 'yardmaster';
import { f, g } from './versions.mjs';
const cluster = await LocalCluster.start({ mode: 'inline', workers: 1 });
const client = await cluster.client({ resultStore: ${JSON.stringify(store)} });
const [name, x] = process.argv.slice(2);
const future = client.with({ persist: true, key: 'only' }).submit({ f, g }[name], Number(x));
await future.result();
console.log((await client.explain(future))[0].because);
await cluster.close();`;
    writeFileSync(join(folder, 'main.mjs'), program);
    for (const [body, name, x] of [
      ['x', 'f', '1'],
      ['x + 0', 'f', '1'],
      ['x + 0', 'f', '2'],
      ['x + 0', 'g', '2'],
    ] as const) {
      writeFileSync(module, source(body));
      results.push(
        execFileSync(process.execPath, [join(folder, 'main.mjs'), name, x], {
          encoding: 'utf8',
        }).trim(),
      );
    }
    expect(results).toEqual(['never computed', 'version', 'arguments', 'function']);
  });

  test('tells each of two clusters that compute a result at the same time the same reason', async () => {
    const both = Array.from({ length: 2 }, () =>
      inCluster(async (client) => {
        await client.with({ persist: true, key: 'both' }).submit(meet, log, 1).result();
        appendFileSync(log, 'go');
        const [reason] = await client.explain(['both']);
        return [reason?.isComputed, reason?.because];
      }),
    );
    expect(await Promise.all(both)).toEqual([
      [true, 'never computed'],
      [true, 'never computed'],
    ]);
  });

  test('knows nothing of a task without a key of its own', async () => {
    const [reason] = await inCluster(async (client) => {
      const future = client.with({ persist: true }).submit(double, log, '1');
      await future.result();
      return client.explain(future);
    });
    expect(reason).toMatchObject({ isComputed: undefined, because: 'unknown', changed: [] });
  });
});

test('results are those of a computation without a store, whatever changes and whatever is lost of it', async () => {
  const draw = new Draw(31);
  const texts = Array.from({ length: 6 }, (_, at) => `${at}`);
  let read = 0;
  for (let round = 0; round < 20; round++) {
    texts[draw.below(6, 'text', round)] = `${draw.below(3, 'value', round)} # ${round}`;
    const packs = existsSync(store) ? readdirSync(store) : [];
    const lost = packs[draw.below(4 * packs.length, 'lost', round)];
    if (lost !== undefined) rmSync(join(store, lost));
    const graph: Record<string, TaskNode<unknown>> = {};
    const sums: number[] = [];
    for (const [at, text] of texts.entries()) {
      graph[`s${at}`] = task(strip, log, text).with(at % 3 === 0 ? {} : { contentKey: 'result' });
      graph[`d${at}`] = task(double, log, ref<string>(`s${at}`));
      const parts = [`d${at}`, `m${at - 1}`, `d${at - 2}`].filter((name) => name in graph);
      graph[`m${at}`] = task(sum, log, ...parts.map((name) => ref<number>(name)));
      const doubled = [at, at - 2].map((index) => 2 * Number.parseInt(texts[index] ?? '0'));
      sums.push(doubled[0]! + doubled[1]! + (sums[at - 1] ?? 0));
    }
    const found = await inCluster((client) =>
      client.gather(client.with({ persist: true }).compute(graph, ['m2', 'm5'])),
    );
    expect(found).toEqual([sums[2], sums[5]]);
    read += Object.keys(graph).length - taken().length;
  }
  expect(read).toBeGreaterThan(100);
});
