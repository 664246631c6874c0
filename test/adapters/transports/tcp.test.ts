import { once } from 'node:events';
import { connect as connectSocket, createServer, type Server, type Socket } from 'node:net';

import { encode as encodeMsgpack } from '@msgpack/msgpack';
import { describe, expect, it, onTestFinished } from 'vitest';

import { SystemClock, VirtualClock } from '../../../adapters/clocks/index.ts';
import {
  type ForeignCaller,
  tcp,
  type TcpOptions,
  TcpTransport,
} from '../../../adapters/transports/tcp/index.ts';
import { GOODBYE, PREAMBLE } from '../../../adapters/transports/tcp/framing.ts';
import type {
  Clock,
  Connection,
  ConnectionHandlers,
  Listener,
  WireMessage,
} from '../../../core/api/index.ts';

/** One of our ends, with everything that it received. */
class End implements ConnectionHandlers {
  readonly messages: WireMessage[] = [];
  readonly closes: (Error | undefined)[] = [];
  private readonly waiters: (() => void)[] = [];

  constructor(readonly connection: Connection) {}

  onMessages(batch: readonly WireMessage[]): void {
    this.messages.push(...batch);
    this.notify();
  }

  onClose(error?: Error): void {
    this.closes.push(error);
    this.notify();
  }

  async until(predicate: () => boolean): Promise<void> {
    while (!predicate()) await new Promise<void>((resolve) => this.waiters.push(resolve));
  }

  /** The error with which it ended. */
  async end(): Promise<Error | undefined> {
    await this.until(() => this.closes.length > 0);
    return this.closes[0];
  }

  private notify(): void {
    for (const resolve of this.waiters.splice(0)) resolve();
  }
}

/** A listener of ours, and what it accepted. */
class Bench {
  private constructor(
    readonly transport: TcpTransport,
    readonly listener: Listener,
    readonly ends: End[],
    private readonly waiters: (() => void)[],
  ) {}

  static async open(options: TcpOptions = {}, clock: Clock = new SystemClock()): Promise<Bench> {
    const transport = new TcpTransport(clock, options);
    const ends: End[] = [];
    const waiters: (() => void)[] = [];
    const listener = await transport.listen('tcp://127.0.0.1:0', (connection) => {
      const end = new End(connection);
      ends.push(end);
      for (const resolve of waiters.splice(0)) resolve();
      return end;
    });
    onTestFinished(() => {
      for (const end of ends) end.connection.abort(new Error('the test is over'));
      void listener.close();
    });
    return new Bench(transport, listener, ends, waiters);
  }

  get port(): number {
    return Number(this.listener.address.split(':').at(-1));
  }

  /** A bare socket to it, and our end of it. */
  async raw(): Promise<readonly [Socket, End]> {
    const count = this.ends.length;
    const socket = connectSocket({ port: this.port, host: '127.0.0.1', allowHalfOpen: true });
    socket.on('error', () => undefined);
    onTestFinished(() => void socket.destroy());
    while (this.ends.length === count) {
      await new Promise<void>((resolve) => this.waiters.push(resolve));
    }
    return [socket, this.ends[count]!];
  }

  /** One of ours to it. */
  async connect(): Promise<End> {
    let end: End | undefined;
    await this.transport.connect(this.listener.address, (connection) => {
      end = new End(connection);
      return end;
    });
    return end!;
  }

  /** Proves that it still serves. */
  async servesOthers(): Promise<void> {
    const count = this.ends.length;
    const client = await this.connect();
    client.connection.send({ op: 'hello' });
    const server = this.ends[count]!;
    await server.until(() => server.messages.length === 1);
    await client.connection.close();
  }
}

function frame(payload: Uint8Array): Buffer {
  const header = Buffer.alloc(4);
  header.writeUInt32BE(payload.length);
  return Buffer.concat([header, payload]);
}

const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const deaf = (): ConnectionHandlers => ({ onMessages: () => undefined, onClose: () => undefined });

describe('a listener that is sent', () => {
  const abuses: readonly (readonly [string, readonly (string | Uint8Array)[], string, string])[] = [
    ['garbage', [Buffer.from([1, 2, 3, 255])], 'ERR_PROTOCOL', 'does not speak the protocol'],
    ['an HTTP request', ['GET / HTTP/1.1\r\n\r\n'], 'ERR_PROTOCOL', 'seems to speak HTTP'],
    ['half a preamble', [PREAMBLE.subarray(0, 7)], 'ERR_PROTOCOL', 'after 7 bytes of the preamble'],
    ['nothing at all', [], 'ERR_CLOSED', 'left without a word'],
    ['a preamble only', [PREAMBLE], 'ERR_CLOSED', 'without a goodbye'],
    [
      'half a length',
      [PREAMBLE, Buffer.from([0, 0])],
      'ERR_FRAME',
      'ended within a header: 2 of 4 bytes',
    ],
    [
      'a truncated frame',
      [PREAMBLE, frame(encodeMsgpack([{ a: 1 }])).subarray(0, 7)],
      'ERR_FRAME',
      'ended within a frame: 3 of 5 bytes',
    ],
    [
      'a length over the limit',
      [PREAMBLE, Buffer.from([0xff, 0xff, 0xff, 0xff])],
      'ERR_FRAME',
      'announced a frame of 4294967295 bytes; the limit is 1073741824',
    ],
    ['a frame that is not msgpack', [PREAMBLE, frame(Buffer.of(0xc1))], 'ERR_FRAME', 'not msgpack'],
    [
      'a frame with more than one value',
      [PREAMBLE, frame(Buffer.of(0x90, 0x90))],
      'ERR_FRAME',
      'not msgpack',
    ],
    [
      'a frame that is not an array',
      [PREAMBLE, frame(encodeMsgpack({ a: 1 }))],
      'ERR_PROTOCOL',
      'not an array of messages',
    ],
    [
      'an array of things that are not objects',
      [PREAMBLE, frame(encodeMsgpack([{ a: 1 }, 'text']))],
      'ERR_PROTOCOL',
      'not an array of messages',
    ],
    [
      'more after a goodbye',
      [PREAMBLE, GOODBYE, frame(encodeMsgpack([{ a: 1 }]))],
      'ERR_PROTOCOL',
      'more after its goodbye',
    ],
  ];

  it.each(abuses)(
    '%s ends that connection with an error, and lives on',
    async (_what, parts, code, text) => {
      const bench = await Bench.open();
      const [socket, end] = await bench.raw();
      for (const part of parts) socket.write(part);
      socket.end();
      const error = await end.end();
      expect(error).toMatchObject({ code, data: { peer: end.connection.peerAddress } });
      expect(error?.message).toContain(text);
      expect(error?.message).toContain(end.connection.peerAddress);
      await bench.servesOthers();
      expect(end.closes).toHaveLength(1);
      expect(end.messages).toEqual([]);
    },
  );

  it('another protocol answers at once, without waiting for the end of the stream', async () => {
    const bench = await Bench.open();
    const [socket, end] = await bench.raw();
    socket.resume();
    const ended = once(socket, 'end');
    socket.write('G');
    expect(await end.end()).toMatchObject({ code: 'ERR_PROTOCOL' });
    await ended;
  });

  it('a reset reports it once', async () => {
    const bench = await Bench.open();
    const [socket, end] = await bench.raw();
    socket.write(PREAMBLE);
    socket.write(frame(encodeMsgpack([{ n: 1 }])));
    await end.until(() => end.messages.length === 1);
    socket.resetAndDestroy();
    const error = await end.end();
    expect(error).toMatchObject({ code: 'ERR_CLOSED', data: { cause: 'ECONNRESET' } });
    await bench.servesOthers();
    expect(end.closes).toHaveLength(1);
  });

  it('valid frames byte by byte delivers them, then what is wrong ends it', async () => {
    const bench = await Bench.open();
    const [socket, end] = await bench.raw();
    socket.setNoDelay(true);
    const messages = [{ n: 1, text: 'ö' }, { n: 2 }];
    const good = Buffer.concat([PREAMBLE, ...messages.map((each) => frame(encodeMsgpack([each])))]);
    for (const byte of good) {
      socket.write(Uint8Array.of(byte));
      await tick();
    }
    await end.until(() => end.messages.length === 2);
    expect(end.messages).toEqual(messages);
    socket.write(frame(Buffer.of(0xc1)));
    expect(await end.end()).toMatchObject({ code: 'ERR_FRAME' });
  });

  it('an empty batch takes it as nothing', async () => {
    const bench = await Bench.open();
    const [socket, end] = await bench.raw();
    socket.resume();
    socket.end(Buffer.concat([PREAMBLE, frame(encodeMsgpack([])), GOODBYE]));
    expect(await end.end()).toBeUndefined();
    expect(end.messages).toEqual([]);
  });

  it('no preamble within the time-out ends that connection', async () => {
    const clock = new VirtualClock();
    const bench = await Bench.open({ connectTimeoutMs: 500 }, clock);
    const [socket, end] = await bench.raw();
    socket.write(PREAMBLE.subarray(0, 3));
    clock.advance(499);
    await tick();
    expect(end.closes).toEqual([]);
    clock.advance(1);
    expect(await end.end()).toMatchObject({ code: 'ERR_PROTOCOL', data: { timeoutMs: 500 } });
  });

  it('frames beyond its own limit refuses them, and the sender refuses at its limit', async () => {
    const bench = await Bench.open({ frameBytesMax: 2048 });
    const client = await bench.connect();
    expect(() => client.connection.send({ bytes: new Uint8Array(2048) })).toThrow(
      expect.objectContaining({ code: 'ERR_FRAME' }),
    );
    client.connection.send({ op: 'small' });
    const generous = new TcpTransport(new SystemClock());
    let end: End | undefined;
    const connection = await generous.connect(bench.listener.address, (opened) => {
      end = new End(opened);
      return end;
    });
    connection.send({ bytes: new Uint8Array(2048) });
    const server = bench.ends[1]!;
    expect(await server.end()).toMatchObject({
      code: 'ERR_FRAME',
      message: expect.stringContaining('the limit is 2048 (frameBytesMax)') as string,
    });
    expect(await end!.end()).toMatchObject({ code: 'ERR_CLOSED' });
    expect(bench.ends[0]!.messages).toEqual([{ op: 'small' }]);
    await client.connection.close();
  });
});

describe('close', () => {
  it('of a peer that reads nothing ends when nothing moves for the time-out', async () => {
    const clock = new VirtualClock();
    const bench = await Bench.open({ closeTimeoutMs: 1000 }, clock);
    const [socket, end] = await bench.raw();
    socket.pause();
    socket.write(PREAMBLE);
    for (let count = 0; count < 32; count++) {
      end.connection.send({ bytes: new Uint8Array(1024 * 1024) });
    }
    const closed = end.connection.close();
    // The kernel takes what its buffers hold; from then on nothing moves.
    let before = -1;
    while (before !== end.connection.bufferedBytes) {
      before = end.connection.bufferedBytes;
      for (let turn = 0; turn < 20; turn++) await tick();
      clock.advance(1);
    }
    expect(before).toBeGreaterThan(1024 * 1024);
    for (let round = 0; round < 3; round++) {
      clock.advance(1000);
      await tick();
    }
    await closed;
    expect(end.closes).toHaveLength(1);
    expect(end.closes[0]).toMatchObject({ code: 'ERR_TIMEOUT' });
  });

  it('of a peer that never says goodbye ends after the time-out', async () => {
    const clock = new VirtualClock();
    const bench = await Bench.open({ closeTimeoutMs: 1000 }, clock);
    const [socket, end] = await bench.raw();
    socket.resume();
    socket.write(PREAMBLE);
    const closed = end.connection.close();
    await once(socket, 'end');
    expect(end.closes).toEqual([]);
    clock.advance(1000);
    clock.advance(1000);
    await closed;
    expect(end.closes[0]).toMatchObject({ code: 'ERR_TIMEOUT' });
    expect(clock.timerCount).toBe(0);
  });

  it('of a peer that only continues to send ends as well', async () => {
    const clock = new VirtualClock();
    const bench = await Bench.open({ closeTimeoutMs: 1000 }, clock);
    const [socket, end] = await bench.raw();
    socket.resume();
    socket.write(PREAMBLE);
    const closed = end.connection.close();
    let rounds = 0;
    while (end.closes.length === 0 && rounds < 50) {
      const count = end.messages.length;
      socket.write(frame(encodeMsgpack([{ rounds }])));
      await end.until(() => end.messages.length > count || end.closes.length > 0);
      clock.advance(1000);
      await tick();
      rounds++;
    }
    await closed;
    expect(end.closes[0]).toMatchObject({ code: 'ERR_TIMEOUT' });
    expect(rounds).toBeGreaterThan(5);
    expect(rounds).toBeLessThan(30);
  });

  it('leaves no timer behind', async () => {
    const clock = new VirtualClock();
    const bench = await Bench.open({}, clock);
    const client = await bench.connect();
    client.connection.send({ op: 'last' });
    await client.connection.close();
    const server = bench.ends[0]!;
    expect(await server.end()).toBeUndefined();
    expect(server.messages).toEqual([{ op: 'last' }]);
    clock.advance(0); // The turn in which that was read is over.
    expect(clock.timerCount).toBe(0);
  });

  it('ends without an error for a peer that dies after it said goodbye', async () => {
    const bench = await Bench.open();
    const [socket, end] = await bench.raw();
    socket.resume();
    socket.end(Buffer.concat([PREAMBLE, frame(encodeMsgpack([{ n: 1 }])), GOODBYE]));
    expect(await end.end()).toBeUndefined();
    expect(end.messages).toEqual([{ n: 1 }]);
  });
});

describe('a frame that has begun', () => {
  /** A peer that has sent a part of a frame of 200 MB, and the clock of the listener. */
  async function begun(): Promise<{ clock: VirtualClock; socket: Socket; end: End }> {
    const clock = new VirtualClock();
    const bench = await Bench.open({}, clock);
    const [socket, end] = await bench.raw();
    socket.resume();
    const whole = encodeMsgpack([{ n: 1 }]);
    const [before, begin] = [Buffer.alloc(4), Buffer.alloc(4)];
    before.writeUInt32BE(whole.length);
    begin.writeUInt32BE(200 * 1024 * 1024);
    socket.write(Buffer.concat([PREAMBLE, before, whole, begin, Buffer.alloc(1000)]));
    await end.until(() => end.messages.length === 1);
    return { clock, socket, end };
  }

  /** Time passes until the frame has arrived and its deadline is over. */
  async function endOf({ clock, end }: { clock: VirtualClock; end: End }): Promise<unknown> {
    for (let passed = 0; end.closes.length === 0 && passed < 200; passed++) {
      clock.advance(3000);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    return end.closes[0];
  }

  it('and does not go on is ended with its connection', async () => {
    expect(await endOf(await begun())).toMatchObject({
      code: 'ERR_TIMEOUT',
      message: expect.stringMatching(
        /a frame has begun, and \d+ bytes of it came within 60 s/,
      ) as string,
    });
  });

  it('and of which a byte comes now and then is ended, too', async () => {
    const frame = await begun();
    const drip = setInterval(() => frame.socket.write('x'), 1);
    onTestFinished(() => clearInterval(drip));
    expect(await endOf(frame)).toMatchObject({ code: 'ERR_TIMEOUT' });
  });

  it('and that comes slowly, but comes, is waited for', async () => {
    const frame = await begun();
    for (let minute = 0; minute < 5; minute++) {
      frame.socket.write(Buffer.alloc(100_000));
      for (let passed = 0; passed < 20; passed++) {
        await new Promise((resolve) => setTimeout(resolve, 1));
        frame.clock.advance(2900);
      }
    }
    expect(frame.end.closes).toEqual([]);
  });
});

describe('connect', () => {
  const connectTo = (address: string, options: TcpOptions = {}, clock: Clock = new SystemClock()) =>
    new TcpTransport(clock, options).connect(address, deaf);

  /** A server that is not ours. */
  async function foreign(onSocket: (socket: Socket) => void): Promise<string> {
    const sockets: Socket[] = [];
    const server: Server = createServer((socket) => {
      sockets.push(socket);
      socket.on('error', () => undefined);
      onSocket(socket);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    const address = server.address();
    return `tcp://127.0.0.1:${(address as { port: number }).port}`;
  }

  it('tries again when the caller stood still until it was taken for a peer of Dask', async () => {
    const clock = new VirtualClock();
    let count = 0;
    const address = await foreign((socket) => {
      count++;
      if (count === 1) {
        clock.advance(1000);
        socket.write(Buffer.from(BigUint64Array.of(84n, 1n, 68n).buffer));
      } else socket.write(PREAMBLE);
    });
    const connection = await connectTo(address, {}, clock);
    expect(count).toBe(2);
    connection.abort(new Error('the test is over'));
  });

  it('says that it was refused, where, and what to do', async () => {
    await expect(connectTo('tcp://127.0.0.1:1')).rejects.toMatchObject({
      code: 'ERR_CONNECT',
      message:
        'cannot connect to tcp://127.0.0.1:1: the connection was refused, so no process listens there (ECONNREFUSED); start the process, or check the port',
      data: { address: 'tcp://127.0.0.1:1', cause: 'ECONNREFUSED' },
    });
  });

  it('says that it was refused when a name has several addresses', async () => {
    await expect(connectTo('tcp://localhost:1')).rejects.toMatchObject({
      code: 'ERR_CONNECT',
      message: expect.stringContaining('ECONNREFUSED') as string,
    });
  });

  it('says that a host is unknown', async () => {
    await expect(connectTo('tcp://no-such-host.invalid:1')).rejects.toMatchObject({
      code: 'ERR_CONNECT',
      message: expect.stringContaining('the name of the host is unknown') as string,
    });
  });

  it('says what the other side speaks', async () => {
    const address = await foreign((socket) => {
      socket.on('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    });
    await expect(connectTo(address)).rejects.toMatchObject({
      code: 'ERR_PROTOCOL',
      message: expect.stringContaining(`${address}: the peer seems to speak HTTP`) as string,
    });
  });

  it('fails when the other side closes at once, or resets', async () => {
    const closing = await foreign((socket) => socket.end());
    await expect(connectTo(closing)).rejects.toMatchObject({ code: 'ERR_CONNECT' });
    const resetting = await foreign((socket) => socket.resetAndDestroy());
    await expect(connectTo(resetting)).rejects.toMatchObject({
      code: 'ERR_CONNECT',
      message: expect.stringContaining('it was reset at once') as string,
    });
  });

  it('fails when the other side says nothing within the time-out', async () => {
    let isAccepted = (): void => undefined;
    const accepted = new Promise<void>((resolve) => (isAccepted = resolve));
    const address = await foreign((socket) => {
      socket.resume();
      isAccepted();
    });
    const clock = new VirtualClock();
    const attempt = connectTo(address, { connectTimeoutMs: 300 }, clock);
    const failure = expect(attempt).rejects.toMatchObject({
      code: 'ERR_CONNECT',
      message: expect.stringContaining('no answer within 300 ms') as string,
    });
    await accepted;
    clock.advance(300);
    await failure;
    expect(clock.timerCount).toBe(0);
  });

  it('takes a separate time-out', async () => {
    const address = await foreign((socket) => socket.resume());
    const clock = new VirtualClock();
    const attempt = new TcpTransport(clock).connect(address, deaf, { timeoutMs: 7 });
    const failure = expect(attempt).rejects.toMatchObject({ data: { timeoutMs: 7 } });
    clock.advance(7);
    await failure;
  });

  it('rejects with what `open` throws, and drops the connection', async () => {
    const bench = await Bench.open();
    const bug = new Error('a bug');
    await expect(
      bench.transport.connect(bench.listener.address, () => {
        throw bug;
      }),
    ).rejects.toBe(bug);
    expect(await bench.ends[0]!.end()).toMatchObject({ code: 'ERR_CLOSED' });
  });
});

describe('addresses', () => {
  const listenOn = async (address: string, options: TcpOptions = {}): Promise<string> => {
    const listener = await new TcpTransport(new SystemClock(), options).listen(address, deaf);
    await listener.close();
    return listener.address;
  };

  it('contain the real port and host of a listener', async () => {
    expect(await listenOn('tcp://127.0.0.1:0')).toMatch(/^tcp:\/\/127\.0\.0\.1:[1-9]\d+$/);
    expect(await listenOn('tcp://localhost:0')).toMatch(
      /^tcp:\/\/(127\.0\.0\.1|\[::1\]):[1-9]\d+$/,
    );
  });

  it('without a host mean the loopback, or the host of the options', async () => {
    expect(await listenOn('tcp://:0')).toMatch(/^tcp:\/\/127\.0\.0\.1:/);
    expect(await listenOn('tcp://:0', { host: 'localhost' })).toMatch(/127\.0\.0\.1|\[::1\]/);
  });

  it('of a wildcard name a host that peers can reach', async () => {
    expect(await listenOn('tcp://0.0.0.0:0', { insecure: true })).not.toContain('0.0.0.0');
    expect(await listenOn('tcp://0.0.0.0:0', { insecure: true, contactHost: 'node-7' })).toMatch(
      /^tcp:\/\/node-7:\d+$/,
    );
  });

  it('of IPv6 are in brackets, for both sides', async ({ skip }) => {
    const transport = new TcpTransport(new SystemClock());
    const ends: End[] = [];
    let listener: Listener;
    try {
      listener = await transport.listen('tcp://[::1]:0', (connection) => {
        const end = new End(connection);
        ends.push(end);
        return end;
      });
    } catch (error) {
      return skip(`this machine has no IPv6: ${String(error)}`);
    }
    expect(listener.address).toMatch(/^tcp:\/\/\[::1\]:\d+$/);
    const connection = await transport.connect(listener.address, deaf);
    expect(connection.peerAddress).toBe(listener.address);
    expect(ends[0]!.connection.peerAddress).toMatch(/^tcp:\/\/\[::1\]:\d+$/);
    await connection.close();
    await listener.close();
  });

  it.each([
    'tcp://127.0.0.1',
    'tcp://127.0.0.1:70000',
    'tcp://::1:80',
    'http://127.0.0.1:80',
    '127.0.0.1:80',
    '',
  ])('of another form are ERR_CONNECT: %j', async (address) => {
    const transport = new TcpTransport(new SystemClock());
    const expected = {
      code: 'ERR_CONNECT',
      message: expect.stringContaining('tcp://host:port') as string,
    };
    await expect(transport.connect(address, deaf)).rejects.toMatchObject(expected);
    await expect(transport.listen(address, deaf)).rejects.toMatchObject(expected);
  });

  it('that are taken are ERR_CONNECT and say so', async () => {
    const bench = await Bench.open();
    await expect(bench.transport.listen(bench.listener.address, deaf)).rejects.toMatchObject({
      code: 'ERR_CONNECT',
      message: expect.stringContaining('another process listens there (EADDRINUSE)') as string,
    });
  });
});

describe('a listener with a handler of foreign callers', () => {
  /** The first bytes of a message of Dask: its length, then one frame of 68 bytes. */
  const DASK = Buffer.from(BigUint64Array.of(84n, 1n, 68n).buffer);

  async function open(clock: Clock): Promise<{
    readonly port: number;
    readonly address: string;
    readonly foreign: ForeignCaller[];
    readonly ends: End[];
    next(): Promise<void>;
  }> {
    const foreign: ForeignCaller[] = [];
    const ends: End[] = [];
    const waiters: (() => void)[] = [];
    const wake = (): void => {
      for (const resolve of waiters.splice(0)) resolve();
    };
    const answer = (caller: ForeignCaller): void => {
      foreign.push(caller);
      onTestFinished(() => void caller.socket.destroy());
      wake();
    };
    const transport = new TcpTransport(clock, {}, { answer });
    const listener = await transport.listen('tcp://127.0.0.1:0', (connection) => {
      const end = new End(connection);
      ends.push(end);
      wake();
      return end;
    });
    onTestFinished(() => void listener.close());
    const port = Number(listener.address.split(':').at(-1));
    const next = (): Promise<void> => new Promise<void>((resolve) => waiters.push(resolve));
    return { port, address: listener.address, foreign, ends, next };
  }

  function call(port: number): Socket {
    const socket = connectSocket({ port, host: '127.0.0.1' });
    socket.on('error', () => undefined);
    onTestFinished(() => void socket.destroy());
    return socket;
  }

  it('hands over a caller that speaks Dask, with all of its bytes and before it was sent any', async () => {
    const { port, foreign, next, ends } = await open(new SystemClock());
    const socket = call(port);
    const handed = next();
    socket.write(DASK);
    await handed;
    const [caller] = foreign;
    expect(caller).toMatchObject({ protocol: 'Dask', peerAddress: expect.any(String) as string });
    const data = once(caller!.socket, 'data');
    caller!.socket.resume();
    const [bytes] = (await data) as [Buffer];
    expect(bytes).toEqual(DASK);
    caller!.socket.end('answer');
    expect(String((await once(socket, 'data'))[0])).toBe('answer');
    expect(ends).toEqual([]);
  });

  it('hands over a caller that is silent for a second', async () => {
    const clock = new VirtualClock();
    const { port, foreign, next } = await open(clock);
    const handed = next();
    const socket = call(port);
    await once(socket, 'connect');
    // The timer starts when the listener accepts.
    while (foreign.length === 0) {
      await tick();
      clock.advance(100);
    }
    await handed;
    expect(foreign[0]!.protocol).toBeUndefined();
    expect(clock.nowMs()).toBeGreaterThanOrEqual(1000);
  });

  it('serves callers of ours, and refuses other protocols as before', async () => {
    const { port, address, foreign, ends } = await open(new SystemClock());
    const connection = await new TcpTransport(new SystemClock()).connect(address, deaf);
    connection.send({ n: 1 });
    await ends[0]!.until(() => ends[0]!.messages.length === 1);
    await connection.close();
    const socket = call(port);
    socket.write('GET / HTTP/1.1\r\n\r\n');
    socket.resume();
    await once(socket, 'close');
    expect(await ends[1]!.end()).toMatchObject({ code: 'ERR_PROTOCOL', data: { seems: 'HTTP' } });
    expect(foreign).toEqual([]);
  });
});

describe('the definition of tcp', () => {
  it('makes a transport with the options of a config file', () => {
    const transport = tcp.create({ clock: new SystemClock() }, { frameBytesMax: 4096 });
    expect([tcp.kind, tcp.name, transport.scheme]).toEqual(['transport', 'tcp', 'tcp']);
  });
});
