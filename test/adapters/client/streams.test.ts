import { setImmediate as turn } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { LocalCluster } from '../../../adapters/app/local-cluster.ts';
import { all, asCompleted, type Client, type Future } from '../../../adapters/client/index.ts';
import { add, calls, count, fail, inc, never, total } from './tasks.ts';

/** Numbers one by one; how many were taken, and whether the source was closed. */
class Source implements AsyncIterable<number> {
  taken = 0;
  isClosed = false;

  constructor(
    private readonly length: number,
    private readonly failsAt = Infinity,
  ) {}

  async *[Symbol.asyncIterator](): AsyncGenerator<number> {
    try {
      for (let index = 0; index < this.length; index++) {
        if (index === this.failsAt) throw new Error('the source broke');
        this.taken++;
        yield index;
        await turn();
      }
    } finally {
      this.isClosed = true;
    }
  }
}

describe('words of the client', () => {
  let cluster: LocalCluster;
  let client: Client;
  beforeAll(async () => {
    cluster = await LocalCluster.start({ mode: 'inline', workers: 1, threads: 2 });
    client = await cluster.client();
  });
  afterAll(() => cluster.close());
  // Files of tests share the module, and the labels of others are not to be counted.
  beforeEach(() => calls.clear());
  const keysHeld = (): number =>
    cluster.scheduler.cluster.clients.get(client.id)?.wantsWhat.size ?? 0;

  test('reduce combines parts in a tree, whose calls get no more than fanIn parts each', async () => {
    const parts = Array.from({ length: 100 }, (_, index) => index + 1);
    expect(await client.reduce(total, parts, { fanIn: 4 }).result()).toBe(5050);
    const futures = client.map(inc, parts);
    const future = client.reduce(total, futures);
    expect(await future.result()).toBe(5150);
    const groups = [...cluster.scheduler.cluster.tasks.values()].filter(({ key }) => {
      return key.startsWith('total-');
    });
    for (const { dependencies } of groups) expect(dependencies.length).toBeLessThanOrEqual(8);
  });

  test('reduce of one part calls the function too, and of none is refused', async () => {
    expect(await client.reduce(total, [7]).result()).toBe(7);
    expect(() => client.reduce(total, [])).toThrow(/no parts/);
    expect(() => client.reduce(total, [1], { fanIn: 1 })).toThrow(/fanIn/);
  });

  test('a failure and a break do not wait for the next item of a source that has none', async () => {
    async function* endless<T>(first: T): AsyncGenerator<T> {
      yield first;
      await new Promise(() => undefined);
    }
    await expect(client.map(fail, endless('it fails')).next()).rejects.toThrow('it fails');
    for await (const one of client.map(inc, endless(1))) {
      expect(one).toBe(2);
      break;
    }
  });

  test('all(value) is the same argument for every call of a map', async () => {
    expect(await client.gather(client.map(add, [1, 2, 3], all(10)))).toEqual([11, 12, 13]);
    expect(() => client.map(add, all(1), all(2))).toThrow(/at least one sequence/);
    expect(() => client.map(add, [1, 2], [1])).toThrow(/same length, got 2, 1/);
  });

  test('a map over items that come one by one says that they are its only arguments', () => {
    const items = new Source(2);
    const map = (...columns: unknown[]): unknown =>
      Reflect.apply(client.map, client, [add, ...columns]);
    for (const columns of [
      [items, all(10)],
      [all(10), items],
      [[1, 2], items],
      [items, [1, 2]],
    ]) {
      expect(() => map(...columns)).toThrow(
        /^map over an AsyncIterable calls the function with one item and takes no other arguments; put all that a call needs into each item/,
      );
    }
    expect(items.taken).toBe(0);
    expect(() => map(items, { inflight: 2 })).toThrow(/inflight is not known/);
  });

  test('all(value) outside of a map is refused, where it would not end', async () => {
    const wrong = /all\(value\) is for map only, beside a sequence/;
    expect(() => client.reduce(total, all(1))).toThrow(wrong);
    await expect(client.forEach(inc, all(1), { inFlight: 1 })).rejects.toThrow(wrong);
    expect(() => [...all(1)]).toThrow(wrong);
  });

  test('a map over items that come one by one gives the results in order', async () => {
    const results: number[] = [];
    for await (const result of client.map(inc, new Source(40), { inFlight: 5 })) {
      results.push(result);
    }
    expect(results).toEqual(Array.from({ length: 40 }, (_, index) => index + 1));
  });

  test('while results are not read, no more items are taken than may be in flight', async () => {
    const source = new Source(1000);
    const results = client.map(inc, source, { inFlight: 5 });
    expect((await results.next()).value).toBe(1);
    for (let turns = 0; turns < 50; turns++) await turn();
    expect(source.taken).toBeLessThanOrEqual(6);
    await results.return();
    expect(source.isClosed).toBe(true);
  });

  test('a source that fails ends the map after the results before it', async () => {
    const results: number[] = [];
    const read = async (): Promise<void> => {
      for await (const result of client.map(inc, new Source(10, 3))) results.push(result);
    };
    await expect(read()).rejects.toThrow('the source broke');
    expect(results).toEqual([1, 2, 3]);
  });

  test('forEach runs every item once, says how many there were, and keeps no results', async () => {
    const before = keysHeld();
    const labels = Array.from({ length: 30 }, (_, index) => `each-${index}`);
    expect(await client.forEach(count, labels, { inFlight: 4 })).toBe(30);
    for (const label of labels) expect(calls.get(label)).toBe(1);
    await client.submit(inc, 0.5).result();
    expect(keysHeld()).toBeLessThanOrEqual(before + 1);
  });

  test('a source is closed when what it gives cannot be submitted', async () => {
    let isClosed = false;
    const source = (async function* (): AsyncGenerator<number> {
      try {
        yield await Promise.resolve((() => 1) as unknown as number);
        yield 2;
      } finally {
        isClosed = true;
      }
    })();
    await expect(client.forEach(inc, source)).rejects.toThrow('cannot be serialised');
    expect(isClosed).toBe(true);
  });

  test('the end of the client ends a stream that waits for its source', async () => {
    const other = await cluster.client();
    const source = (async function* (): AsyncGenerator<number> {
      yield 1;
      await new Promise(() => undefined);
    })();
    const results = other.map(inc, source);
    expect((await results.next()).value).toBe(2);
    const failure = expect(results.next()).rejects.toThrow('the client was closed');
    await turn();
    await other.close();
    await failure;
  });

  test('a signal ends a stream that waits for its source', async () => {
    const silent = async function* (): AsyncGenerator<number> {
      yield 1;
      await new Promise(() => undefined);
    };
    const stop = new AbortController();
    const limited = client.with({ signal: stop.signal });
    const results = limited.map(inc, silent());
    expect((await results.next()).value).toBe(2);
    const failure = expect(results.next()).rejects.toMatchObject({
      ...{ code: 'ERR_CANCELLED', cause: { message: 'enough' } },
      message: 'the signal was aborted while a stream took items',
    });
    await turn();
    stop.abort(new Error('enough'));
    await failure;
  });

  test('a stream that is read after the end of its client takes no item', async () => {
    const other = await cluster.client();
    const source = new Source(3);
    const results = other.map(inc, source);
    await other.close();
    await expect(results.next()).rejects.toThrow('the client was closed');
    expect(source.taken).toBe(0);
  });

  test('forEach takes the letters of a text, as map does', async () => {
    expect(await client.forEach(count, 'aü')).toBe(2);
    expect([calls.get('a'), calls.get('ü')]).toEqual([1, 1]);
  });

  test('forEach fails with the first failure, and closes its source', async () => {
    const source = (async function* (): AsyncGenerator<string> {
      yield await Promise.resolve('no good');
      yield 'not reached';
    })();
    await expect(client.forEach(fail, source, { inFlight: 1 })).rejects.toThrow('no good');
    expect((await source.next()).done).toBe(true);
  });

  test('asCompleted leaves cancelled futures out when it is told to', async () => {
    const futures: Future<unknown>[] = [client.submit(inc, 1), client.submit(never, 'skipped')];
    futures[1]!.cancel();
    const given: string[] = [];
    for await (const future of asCompleted(futures, { cancelled: 'skip' }))
      given.push(future.status);
    expect(given).toEqual(['finished']);
  });

  test('asCompleted gives futures that were added while it runs, and ends when none is left', async () => {
    const first = client.submit(inc, 20);
    const completed = asCompleted([first]);
    const results: number[] = [];
    for await (const future of completed) {
      results.push(await future.result());
      // Those it has had already come no second time.
      if (results.length < 3) completed.add([client.submit(inc, 20 + results.length), future]);
    }
    expect(results).toEqual([21, 22, 23]);
    expect(() => completed.add([first])).toThrow(/has ended/);
  });

  test('a future that is added while asCompleted waits is given before those that take longer', async () => {
    const slow = client.submit(never, 'waits');
    const completed = asCompleted<Future<unknown>>([slow]);
    const next = completed.next();
    const quick = client.submit(inc, 30);
    completed.add([quick]);
    expect((await next).value).toBe(quick);
    await completed.return();
    slow.cancel();
  });

  test('race gives the first result or error, and cancels the others when it is asked to', async () => {
    const slow = client.submit(never, 'loses');
    expect(await client.race([slow, client.submit(inc, 40)])).toBe(41);
    expect(slow.status).toBe('pending');
    const failing = client.submit(fail, 'first');
    await expect(client.race([slow, failing], { others: 'cancel' })).rejects.toThrow('first');
    expect(slow.status).toBe('cancelled');
    await expect(client.race([])).rejects.toThrow(/race wants at least one future/);
  });

  test('any gives the first result, and fails with all errors when there is none', async () => {
    const slow = client.submit(never, 'needless');
    const failing = client.submit(fail, 'any');
    await failing.settled();
    const found = await client.any([failing, slow, client.submit(inc, 50)], { others: 'cancel' });
    expect(found).toBe(51);
    expect(slow.status).toBe('cancelled');
    const error: unknown = await client.any([failing, slow]).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(AggregateError);
    expect((error as AggregateError).errors).toMatchObject([
      { message: 'any' },
      { code: 'ERR_CANCELLED' },
    ]);
    await expect(client.any([])).rejects.toBeInstanceOf(AggregateError);
  });
});
