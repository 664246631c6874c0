import { describe, expect, it } from 'vitest';

import { VirtualClock } from '../../../adapters/clocks/index.ts';
import { InMemoryTransport } from '../../../adapters/testing/index.ts';
import {
  Channel,
  type ChannelHandlers,
  type Connection,
  RemoteError,
  type RequestHandler,
  type WireMessage,
  YardmasterError,
} from '../../../core/api/index.ts';

/** One side of a channel, with everything that it received. */
class Side implements ChannelHandlers {
  readonly messages: WireMessage[] = [];
  readonly closes: (Error | undefined)[] = [];
  channel!: Channel;
  connection!: Connection;

  constructor(readonly onRequest: RequestHandler = () => 'unexpected') {}

  onMessage(message: WireMessage): void {
    this.messages.push(message);
  }

  onClose(error?: Error): void {
    this.closes.push(error);
  }

  open(connection: Connection, clock: VirtualClock): Channel {
    this.connection = connection;
    this.channel = new Channel(connection, clock, this);
    return this.channel;
  }
}

/** A client and a server whose channels meet; one way takes 5 ms. */
async function aPair(onRequest?: RequestHandler): Promise<{
  clock: VirtualClock;
  client: Side;
  server: Side;
}> {
  const clock = new VirtualClock();
  const network = new InMemoryTransport(clock, { delayMs: 5 });
  const client = new Side();
  const server = new Side(onRequest);
  const listener = await network.listen('inmemory://server', (connection) =>
    server.open(connection, clock),
  );
  const connecting = network.connect(listener.address, (connection) =>
    client.open(connection, clock),
  );
  await clock.advanceAsync(10);
  await connecting;
  return { clock, client, server };
}

/** The error that a promise rejects with. */
async function errorOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    (value) => {
      throw new Error(`resolved with ${JSON.stringify(value)}`);
    },
    (error: unknown) => error,
  );
}

/** The same once time has passed; attaches at once, so that no rejection is unhandled. */
async function errorAfter(
  clock: VirtualClock,
  promise: Promise<unknown>,
  ms = 100,
): Promise<unknown> {
  const error = errorOf(promise);
  await clock.advanceAsync(ms);
  return error;
}

describe('a request', () => {
  it('is answered with what the handler returns, after one way there and one back', async () => {
    const { clock, client } = await aPair((method, parameters) => ({ method, parameters }));
    let answer: unknown;
    void client.channel.request('add', { a: 1 }).then((value) => (answer = value));
    await clock.advanceAsync(9);
    expect(answer).toBeUndefined();
    await clock.advanceAsync(1);
    expect(answer).toEqual({ method: 'add', parameters: { a: 1 } });
  });

  it('is answered with what the promise of the handler resolves to', async () => {
    const { clock, client } = await aPair(() => Promise.resolve(new Uint8Array([1, 2])));
    const answer = client.channel.request('get');
    await clock.advanceAsync(10);
    expect(await answer).toEqual(new Uint8Array([1, 2]));
  });

  it('may be answered with nothing', async () => {
    const { clock, client } = await aPair(() => undefined);
    const answer = client.channel.request('note');
    await clock.advanceAsync(10);
    expect(await answer).toBeUndefined();
  });

  it('takes an answer that has a field named then as a value', async () => {
    const { clock, client } = await aPair(() => ({ then: 'and now' }));
    const answers: unknown[] = [];
    client.channel.request('get').then(
      (value) => answers.push(value),
      (error: unknown) => answers.push(error),
    );
    await clock.advanceAsync(10);
    expect(answers).toEqual([{ then: 'and now' }]);
  });

  it('can be made by both sides, also from within the handler of another', async () => {
    const { clock, client, server } = await aPair(async () => {
      const name = await server.channel.request<string>('who');
      return `hello ${name}`;
    });
    Object.assign(client, { onRequest: () => 'Ada' });
    const answer = client.channel.request('greet');
    await clock.advanceAsync(20);
    expect(await answer).toBe('hello Ada');
  });

  it('gets its own answer when answers come in another order', async () => {
    const open: (() => void)[] = [];
    const { clock, client } = await aPair(
      (method) => new Promise((resolve) => open.push(() => resolve(`to ${method}`))),
    );
    const answers = ['a', 'b', 'c'].map((method) => client.channel.request(method));
    await clock.advanceAsync(5);
    for (const resolve of open.reverse()) resolve();
    await clock.advanceAsync(5);
    expect(await Promise.all(answers)).toEqual(['to a', 'to b', 'to c']);
  });

  it('keeps its place among the messages before and after it', async () => {
    const seen: string[] = [];
    const { clock, client, server } = await aPair((method) => seen.push(method));
    Object.assign(server, {
      onMessage: (message: WireMessage) => seen.push(message['op'] as string),
    });
    client.channel.send({ op: 'before' });
    const answer = client.channel.request('between');
    client.channel.send({ op: 'after' });
    await clock.advanceAsync(10);
    await answer;
    expect(seen).toEqual(['before', 'between', 'after']);
  });

  it('whose parameters cannot travel rejects, and leaves nothing behind', async () => {
    const { clock, client } = await aPair();
    const error = await errorOf(client.channel.request('do', { how: () => 1 }, 50));
    expect(error).toMatchObject({
      code: 'ERR_NOT_SERIALISABLE',
      data: { path: 'parameters.how' },
    });
    expect(clock.timerCount).toBe(0);
  });
});

describe('a request that fails', () => {
  it('rejects with name, message, stack, code, data and causes of what the handler threw', async () => {
    const cause = new TypeError('the root');
    const thrown = new YardmasterError('ERR_SLOT', 'no provider', { slot: 'stealing' }, { cause });
    const { clock, client } = await aPair(() => {
      throw thrown;
    });
    const error = (await errorAfter(clock, client.channel.request('x'))) as RemoteError;
    expect(error).toBeInstanceOf(RemoteError);
    expect(error).toMatchObject({
      name: 'YardmasterError',
      message: 'no provider',
      code: 'ERR_SLOT',
      data: { slot: 'stealing' },
      stack: thrown.stack,
    });
    expect(error.cause).toMatchObject({
      name: 'TypeError',
      message: 'the root',
      stack: cause.stack,
    });
    expect(YardmasterError.is(error, 'ERR_SLOT')).toBe(true);
  });

  it('rejects with what the promise of the handler rejected with', async () => {
    const { clock, client } = await aPair(() => Promise.reject(new RangeError('too far')));
    expect(await errorAfter(clock, client.channel.request('x'))).toMatchObject({
      name: 'RangeError',
      message: 'too far',
    });
  });

  it('says what was thrown when it was not an Error', async () => {
    const { clock, client } = await aPair((method) => {
      // eslint-disable-next-line @typescript-eslint/only-throw-error
      throw method === 'text' ? 'just text' : undefined;
    });
    expect(await errorAfter(clock, client.channel.request('text'))).toMatchObject({
      name: 'NonError',
      message: 'something that is not an Error was thrown: "just text"',
      data: { thrown: 'just text' },
    });
    expect(await errorAfter(clock, client.channel.request('nothing'))).toMatchObject({
      name: 'NonError',
      data: { thrown: 'undefined' },
    });
  });

  it.each([
    ['at once', () => ({ value: 10n })],
    ['later', () => Promise.resolve({ value: 10n })],
  ])('says so when the answer, given %s, cannot travel', async (_when, onRequest) => {
    const { clock, client } = await aPair(onRequest);
    expect(await errorAfter(clock, client.channel.request('x'))).toMatchObject({
      code: 'ERR_NOT_SERIALISABLE',
      data: { path: 'value.value' },
    });
  });

  it('keeps what can travel of an error whose fields cannot', async () => {
    const circular: unknown[] = [];
    circular.push(circular);
    const { clock, client } = await aPair(() => {
      throw Object.assign(new Error('cut in an emoji: \ud83d'), {
        fine: 1,
        circular,
        big: 2 ** 60,
        handler: () => 1,
      });
    });
    expect(await errorAfter(clock, client.channel.request('x'))).toMatchObject({
      message: 'cut in an emoji: \ufffd',
      data: { fine: 1 },
    });
  });

  it('reports an error that throws when it is inspected', async () => {
    const { clock, client } = await aPair(() => {
      throw Object.defineProperty(new Error('odd'), 'trap', {
        enumerable: true,
        get() {
          throw new Error('do not look');
        },
      });
    });
    expect(await errorAfter(clock, client.channel.request('x'))).toMatchObject({
      message: 'odd',
      data: { notSent: 'do not look' },
    });
  });
});

describe('a request without an answer', () => {
  const never = (): Promise<never> => new Promise(() => undefined);

  it('times out with ERR_TIMEOUT that names method and peer', async () => {
    const { clock, client } = await aPair(never);
    const answer = client.channel.request('slow', {}, 50);
    const error = errorOf(answer);
    await clock.advanceAsync(49);
    expect(clock.timerCount).toBe(1);
    await clock.advanceAsync(1);
    expect(await error).toMatchObject({
      code: 'ERR_TIMEOUT',
      message: 'inmemory://server did not answer "slow" within 50 ms',
    });
  });

  it('ignores an answer that comes after the time-out, and later requests work', async () => {
    const open: ((value: string) => void)[] = [];
    const { clock, client } = await aPair(
      () => new Promise<string>((resolve) => open.push(resolve)),
    );
    expect(await errorAfter(clock, client.channel.request('slow', {}, 50))).toMatchObject({
      code: 'ERR_TIMEOUT',
    });
    open[0]!('late');
    const second = client.channel.request('again');
    await clock.advanceAsync(5);
    open[1]!('in time');
    await clock.advanceAsync(5);
    expect(await second).toBe('in time');
    expect(client.closes).toEqual([]);
  });

  it('leaves no timer behind when the answer comes', async () => {
    const { clock, client } = await aPair(() => 1);
    const answer = client.channel.request('fast', {}, 50_000);
    await clock.advanceAsync(10);
    expect(await answer).toBe(1);
    expect(clock.timerCount).toBe(0);
  });

  it('fails with ERR_CLOSED when the connection closes', async () => {
    const { clock, client, server } = await aPair(never);
    const events: string[] = [];
    Object.assign(client, { onClose: () => events.push('onClose') });
    const answer = client.channel.request('slow', {}, 50_000);
    const error = errorOf(answer);
    await clock.advanceAsync(5);
    void server.channel.close();
    await clock.advanceAsync(20);
    expect(await error).toMatchObject({
      code: 'ERR_CLOSED',
      message: 'the connection to inmemory://server closed before "slow" was answered',
    });
    expect(events).toEqual(['onClose']);
    expect([client.channel.isClosed, server.channel.isClosed]).toEqual([true, true]);
    expect(clock.timerCount).toBe(0);
  });

  it('fails with the reason as its cause when the connection breaks', async () => {
    const { clock, client, server } = await aPair(never);
    const answer = client.channel.request('slow');
    const error = errorOf(answer);
    await clock.advanceAsync(5);
    server.channel.abort(new Error('out of memory'));
    await clock.advanceAsync(20);
    const closed = (await error) as Error;
    expect(closed).toMatchObject({ code: 'ERR_CLOSED' });
    expect(closed.cause).toBe(client.closes[0]);
    expect(String(closed.cause)).toContain('out of memory');
  });

  it('fails at once on a channel that is closed', async () => {
    const { clock, client } = await aPair();
    const closing = client.channel.close();
    await clock.advanceAsync(20);
    await closing;
    expect(await errorOf(client.channel.request('x'))).toMatchObject({ code: 'ERR_CLOSED' });
    expect(client.closes).toEqual([undefined]);
  });
});

describe('a peer that breaks the protocol', () => {
  it.each<[string, WireMessage]>([
    ['a request without an id', { op: 'request', method: 'x' }],
    ['a request with a negative id', { op: 'request', id: -1, method: 'x' }],
    ['a request without a method', { op: 'request', id: 1 }],
    ['a request with a list of parameters', { op: 'request', id: 1, method: 'x', parameters: [] }],
    ['a reply to nothing', { op: 'reply', id: 0, ok: true }],
    ['a reply without an id', { op: 'reply', ok: true }],
  ])('loses its connection: %s', async (_what, message) => {
    const { clock, client, server } = await aPair();
    client.connection.send(message, { op: 'not processed any more' });
    await clock.advanceAsync(50);
    expect(server.closes).toHaveLength(1);
    expect(server.closes[0]).toMatchObject({ code: 'ERR_PROTOCOL' });
    expect(server.messages).toEqual([]);
    expect(client.closes).toHaveLength(1);
  });

  it('loses its connection: a reply with neither value nor error', async () => {
    const { clock, client, server } = await aPair(() => new Promise(() => undefined));
    const error = errorOf(client.channel.request('x'));
    server.connection.send({ op: 'reply', id: 0, ok: false });
    await clock.advanceAsync(50);
    expect(await error).toMatchObject({ code: 'ERR_CLOSED', cause: { code: 'ERR_PROTOCOL' } });
  });

  it('loses its connection when its message makes the owner throw', async () => {
    const { clock, client, server } = await aPair();
    const bug = new TypeError('message.keys is not iterable');
    Object.assign(server, {
      onMessage: () => {
        throw bug;
      },
    });
    client.channel.send({ op: 'odd' });
    await clock.advanceAsync(50);
    expect(server.closes).toEqual([bug]);
    expect(client.closes).toHaveLength(1);
  });
});

it('more messages than a call has arguments are sent in their order', async () => {
  const { clock, client, server } = await aPair();
  client.channel.sendAll(Array.from({ length: 150_000 }, (_, number) => ({ op: 'n', number })));
  await clock.advanceAsync(10);
  expect(server.messages).toHaveLength(150_000);
  expect(server.messages.every(({ number }, index) => number === index)).toBe(true);
});
