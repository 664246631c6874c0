import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Client, type Graph, ref, task } from '../../../adapters/client/index.ts';
import { Outgoing } from '../../../adapters/client/outgoing.ts';
import { SystemClock } from '../../../adapters/clocks/index.ts';
import { MsgpackCodec } from '../../../adapters/codecs/msgpack.ts';
import { InMemoryTransport } from '../../../adapters/transports/memory.ts';
import { LocalCluster } from '../../../adapters/app/local-cluster.ts';
import { type ClientReport, YardmasterError } from '../../../core/api/index.ts';
import { bytes, inc, total } from './tasks.ts';
import type { VirtualCluster } from '../../kit/virtual-cluster.ts';
import { startCluster } from '../../kit/virtual-cluster.ts';

const HALF = '\ud800';

class Money {
  amount = 1;
}

function cyclic(): object {
  const node: Record<string, unknown> = {};
  node['self'] = { node };
  return node;
}

let cluster: VirtualCluster;
beforeEach(async () => {
  cluster = await startCluster(1);
});
/** The error of what is called; that the client still works afterwards. */
async function errorOf(call: () => unknown): Promise<unknown> {
  let error: unknown;
  try {
    await cluster.passing(Promise.resolve(call()));
  } catch (thrown) {
    error = thrown;
  }
  await nextTurn();
  expect(await cluster.passing(cluster.client.submit(inc, 1).result())).toBe(2);
  return error;
}

describe('what stands for a result is no data', () => {
  test.each<[string, (client: Client) => unknown, string]>([
    ['a future that is scattered', (client) => client.scatter([client.submit(inc, 1)]), 'Future'],
    [
      'a future in a value that is scattered',
      (client) => client.scatter({ data: { a: [client.submit(inc, 1)] } }),
      'Future',
    ],
    [
      'a future for a function on workers',
      (client) => client.run(inc, client.submit(inc, 1) as never),
      'Future',
    ],
    ['a ref outside of a graph', (client) => client.submit(inc, ref('a') as never), 'Ref'],
    ['a ref that is scattered', (client) => client.scatter([ref('a')]), 'Ref'],
  ])('%s', async (_what, call, name) => {
    expect(await errorOf(() => call(cluster.client))).toMatchObject({
      code: 'ERR_NOT_SERIALISABLE',
      message: expect.stringContaining(`an instance of ${name}`) as string,
    });
  });
});

describe('an option that cannot be sent is an error of the call', () => {
  const deep = { a: [{ when: new Date() }] };
  test.each([
    ['a Date', { when: new Date() }, 'annotations.when'],
    ['a nested Date', deep, 'annotations.a[0].when'],
    ['a bigint', { n: 10n }, 'annotations.n'],
    ['a function', { f: () => 1 }, 'annotations.f'],
    ['a symbol', { s: Symbol('x') }, 'annotations.s'],
    ['a Map', { m: new Map() }, 'annotations.m'],
    ['an instance', { m: new Money() }, 'annotations.m'],
    ['a cycle', cyclic(), 'annotations'],
    ['half a surrogate pair', { s: HALF }, 'annotations.s'],
    ['half a surrogate pair as a name', { [HALF]: 1 }, 'annotations'],
    ['an integer that loses digits', { n: 2 ** 60 }, 'annotations.n'],
    ['__proto__', JSON.parse('{"__proto__": 1}') as object, 'annotations'],
  ])('annotations with %s', async (_what, annotations, place) => {
    const given = annotations as Record<string, unknown>;
    const error = await errorOf(() => cluster.client.with({ annotations: given }).submit(inc, 5));
    expect(error).toMatchObject({ code: 'ERR_NOT_SERIALISABLE' });
    expect((error as Error).message).toContain(place);
    expect(
      await errorOf(() =>
        cluster.client.compute({ x: task(inc, 1).with({ annotations: given }) }, 'x'),
      ),
    ).toMatchObject({ code: 'ERR_NOT_SERIALISABLE' });
  });

  test.each<[string, object]>([
    ['resources with __proto__', { resources: JSON.parse('{"__proto__": 1}') as object }],
    ['resources with half a pair', { resources: { [HALF]: 1 } }],
    ['resources that are NaN', { resources: { GPU: NaN } }],
    ['resources that lose digits', { resources: { GPU: 2 ** 60 } }],
    ['resources in a list', { resources: [1] }],
    ['a priority of NaN', { priority: NaN }],
    ['a priority that loses digits', { priority: 2 ** 60 }],
    ['a priority as text', { priority: '5' }],
    ['retries that lose digits', { retries: 2 ** 60 }],
    ['replicas that lose digits', { replicas: 2 ** 60 }],
    ['workers with half a pair', { workers: [HALF] }],
    ['a key with half a pair', { key: HALF }],
    ['annotations as text', { annotations: 'x' }],
    ['annotations in a list', { annotations: [1] }],
    ['allowOtherWorkers as text', { allowOtherWorkers: 'yes' }],
    ['pure as text', { pure: 'no' }],
    ['a fifoTimeoutMs of NaN', { fifoTimeoutMs: NaN }],
    ['a fifoTimeoutMs that loses digits', { fifoTimeoutMs: 2 ** 60 }],
    ['a signal that is none', { signal: {} }],
  ])('%s', async (_what, options) => {
    const error = await errorOf(() => cluster.client.with(options).submit(inc, 5));
    expect(YardmasterError.is(error), String(error)).toBe(true);
  });

  test('what is changed after the call does not matter', async () => {
    const annotations: Record<string, unknown> = { a: 1 };
    const future = cluster.client.with({ annotations }).submit(inc, 5);
    annotations['a'] = () => 1;
    expect(await cluster.passing(future.result())).toBe(6);
  });
});

describe('an argument of a call that cannot be sent is an error of the call', () => {
  test.each<[string, () => unknown]>([
    [
      'the reason of a cancellation',
      () => cluster.client.cancel(cluster.client.submit(inc, 7), { reason: HALF }),
    ],
    [
      'killTimeoutMs',
      () => cluster.client.cancel(cluster.client.submit(inc, 7), { killTimeoutMs: 2 ** 60 }),
    ],
    ['a priority', () => cluster.client.setPriority(cluster.client.submit(inc, 7), 2 ** 60)],
    ['a priority of NaN', () => cluster.client.setPriority(cluster.client.submit(inc, 7), NaN)],
    ['a name that is scattered', () => cluster.client.scatter({ [HALF]: 1 })],
    ['broadcast NaN', () => cluster.client.scatter([1], { broadcast: NaN })],
    ['broadcast -1', () => cluster.client.scatter([1], { broadcast: -1 })],
    ['a key of a graph', () => cluster.client.compute({ [HALF]: task(inc, 1) } as Graph, HALF)],
    [
      'a namespace',
      () => cluster.client.with({ namespace: HALF }).compute({ x: task(inc, 1) }, 'x'),
    ],
    ['parameters of a command', () => cluster.client.command('identity', { when: new Date() })],
    ['the name of a command', () => cluster.client.command(HALF)],
    ['a message', () => cluster.client.logEvent('topic', { when: new Date() })],
    ['a topic', () => cluster.client.logEvent(HALF, 1)],
    ['the name of a variable', () => cluster.client.variable(HALF).set(1)],
    ['the name of a queue', () => cluster.client.queue(HALF).put(1)],
    ['an item of a queue', () => cluster.client.queue('q').put(() => 1)],
    ['a published value', () => cluster.client.publish('x', () => 1)],
    ['a published name', () => cluster.client.publish(HALF, 1)],
  ])('%s', async (_what, call) => {
    const error = await errorOf(call);
    expect(YardmasterError.is(error), String(error)).toBe(true);
  });

  test('a signal that is aborted with anything cancels', async () => {
    for (const reason of [HALF, Object.create(null), Symbol('x'), { toString: 1 }] as unknown[]) {
      const controller = new AbortController();
      const future = cluster.client.with({ signal: controller.signal, pure: false }).submit(inc, 5);
      controller.abort(reason);
      expect(await errorOf(() => future.result())).toMatchObject({ code: 'ERR_CANCELLED' });
    }
  });

  class Order {
    at = 0;
    site = new URL('http://a/');
  }
  test.each<[string, () => unknown, string]>([
    [
      'an argument',
      () => cluster.client.submit(total, new URL('http://a/') as never),
      'arguments[0]',
    ],
    [
      'a part of one',
      () => cluster.client.submit(total, [{ site: new URL('http://a/') }] as never),
      'arguments[0][0].site',
    ],
    [
      'a part beside a future',
      () =>
        cluster.client.submit(total, [
          cluster.client.submit(inc, 2),
          new URL('http://a/'),
        ] as never),
      'arguments[0][1]',
    ],
    [
      'an argument of a call that is not pure',
      () =>
        cluster.client
          .with({ pure: false })
          .submit(total, new Map([['k', new URL('http://a/')]]) as never),
      'arguments[0].get("k")',
    ],
    [
      'a part of an instance',
      () => cluster.client.submit(total, new Order() as never),
      'arguments[0].site',
    ],
    [
      'a scattered value',
      () => cluster.client.scatter([{ site: new URL('http://a/') }]),
      'values[0].site',
    ],
    ['a named value', () => cluster.client.scatter({ sites: [new URL('http://a/')] }), 'sites[0]'],
  ])('%s that would arrive empty is refused, with its path', async (_what, call, path) => {
    expect(await errorOf(call)).toMatchObject({
      code: 'ERR_NOT_SERIALISABLE',
      message: expect.stringContaining(`${path} is an instance of URL`) as string,
    });
  });

  test('the class of a scattered value may have any name', async () => {
    const Odd = {
      [HALF]: class {
        x = 1;
      },
    }[HALF] as new () => object;
    expect(await errorOf(() => cluster.client.scatter([new Odd()]))).toBeUndefined();
  });
});

describe('with a limit of 64 KiB for a message', () => {
  let small: LocalCluster;
  const SIZE = 100_000;
  beforeEach(async () => {
    const transport = new InMemoryTransport(new SystemClock(), { frameBytesMax: 64 * 1024 });
    small = await LocalCluster.start({ mode: 'inline', workers: 1, transport });
  });
  afterEach(async () => {
    await small.close();
  });

  test.each<[string, () => unknown]>([
    [
      'an argument',
      async () => (await small.client()).submit(total, new Array<number>(SIZE).fill(0.5)),
    ],
    [
      'bytes',
      async () => (await small.client()).map(bytes, [new Uint8Array(SIZE) as unknown as number]),
    ],
    [
      'a task of a graph',
      async () =>
        (await small.client()).compute({ x: task(total, new Array<number>(SIZE).fill(0.5)) }, 'x'),
    ],
    ['a scattered value', async () => (await small.client()).scatter([new Uint8Array(SIZE)])],
    ['an item of a queue', async () => (await small.client()).queue('q').put(new Uint8Array(SIZE))],
    ['a variable', async () => (await small.client()).variable('v').set('x'.repeat(SIZE))],
    ['a published value', async () => (await small.client()).publish('x', new Uint8Array(SIZE))],
    ['parameters', async () => (await small.client()).command('identity', { x: 'x'.repeat(SIZE) })],
  ])('%s above it is refused with its size and the limit', async (_what, call) => {
    const error = await Promise.resolve(call()).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).toMatchObject({
      code: 'ERR_FRAME',
      data: { nbytes: expect.any(Number) as number },
    });
    expect((error as Error).message).toMatch(/\d{6} bytes.*6\d{4} bytes/);
    expect(await (await small.client()).submit(inc, 1).result()).toBe(2);
  });

  test('annotations above it fail the future and nothing else', async () => {
    const client = await small.client();
    const large = client.with({ annotations: { x: 'x'.repeat(SIZE) } }).submit(inc, 3);
    const other = client.with({ fifoTimeoutMs: 1 }).submit(inc, 4);
    await expect(large.result()).rejects.toMatchObject({ code: 'ERR_FRAME' });
    expect(await other.result()).toBe(5);
    expect(await client.submit(inc, 3).result()).toBe(4);
  });

  test.each([
    ['before', true],
    ['after', false],
  ])('a task that a graph %s it computes has its result', async (_when, isBefore) => {
    const client = await small.client();
    const shared = { shared: task(inc, 6) };
    const before = isBefore ? [client.compute(shared, 'shared')] : [];
    if (isBefore) await nextTurn();
    const large = client
      .with({ annotations: { x: 'x'.repeat(SIZE) } })
      .compute({ ...shared, large: task(inc, 7) }, ['shared', 'large']);
    const after = isBefore ? [] : [client.with({ fifoTimeoutMs: 1 }).compute(shared, 'shared')];
    await expect(large[1].result()).rejects.toMatchObject({ code: 'ERR_FRAME' });
    for (const future of [...before, ...after, large[0]]) expect(await future.result()).toBe(7);
  });

  test('many tasks or values that together exceed it go in several messages', async () => {
    const client = await small.client();
    const sums = client.map(
      total,
      Array.from({ length: 20 }, () => new Array<number>(500).fill(1.5)),
    );
    expect(await client.gather(sums)).toEqual(new Array(20).fill(750));
    const many = client.map(
      inc,
      Array.from({ length: 2000 }, (_, index) => index),
    );
    expect((await client.gather(many)).length).toBe(2000);
    const values = Array.from({ length: 4 }, (_, index) => new Uint8Array(40_000).fill(index));
    const futures = await client.scatter(values);
    expect(await client.gather(futures)).toEqual(values);
  });
});

test('of several reports only the one that cannot be sent is lost', () => {
  const sent: string[] = [];
  const lost: string[] = [];
  const deliver = (reports: readonly ClientReport[]): void => {
    if (reports.some(({ op }) => op === 'retry')) throw new RangeError('no memory');
    sent.push(...reports.map(({ op }) => op));
  };
  const outgoing = new Outgoing('me', deliver, ({ op }, { code }) => lost.push(`${op} ${code}`));
  outgoing.report({ op: 'heartbeat-client' });
  outgoing.report({ op: 'retry', keys: [] });
  outgoing.report({ op: 'client-desires-keys', keys: [] });
  outgoing.flush();
  expect(sent).toEqual(['heartbeat-client', 'client-desires-keys']);
  expect(lost).toEqual(['retry ERR_NOT_SERIALISABLE']);
});

test('a message far above the limit is refused before memory is taken for it', () => {
  const codec = new MsgpackCodec(1024);
  const message = { op: 'x', values: Array.from({ length: 50 }, () => new Uint8Array(2 ** 26)) };
  const before = process.memoryUsage().arrayBuffers;
  const nbytes = expect.any(Number) as number;
  expect(() => codec.encodeMessage(message)).toThrow(
    expect.objectContaining({ code: 'ERR_FRAME', data: { nbytes, frameBytesMax: 1024, op: 'x' } }),
  );
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(2 ** 26);
  expect(codec.encodeMessage({ op: 'x' }).length).toBeGreaterThan(0);
});

describe('of a call for many items of which one cannot be sent, nothing is left', () => {
  const items = [...Array.from({ length: 10 }, (_, item) => item), () => 1] as number[];
  test.each([
    ['map', () => cluster.client.with({ pure: false }).map(inc, items)],
    ['reduce', () => cluster.client.reduce(total, items, { fanIn: 2 })],
  ])('%s', async (_what, call) => {
    expect(await errorOf(call)).toMatchObject({ code: 'ERR_NOT_SERIALISABLE' });
    // The one is the call that was made after it.
    expect([...cluster.local.scheduler.cluster.tasks.values()]).toMatchObject([
      { prefix: { name: 'inc' } },
    ]);
  });
});
