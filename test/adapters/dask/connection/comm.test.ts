import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

import { afterEach, describe, expect, test } from 'vitest';

import { SystemClock, VirtualClock } from '../../../../adapters/clocks/index.ts';
import { encodeMessage, Opaque } from '../../../../adapters/dask/wire/codec.ts';
import { CommPool } from '../../../../adapters/dask/wire/comm-pool.ts';
import { Comm, type CommHandlers, type CommOptions } from '../../../../adapters/dask/wire/comm.ts';
import { packFrames } from '../../../../adapters/dask/wire/frames.ts';
import { DaskListener } from '../../../../adapters/dask/wire/listener.ts';
import { PythonException, uncaughtAnswer } from '../../../../adapters/dask/wire/py-errors.ts';

const clock = new SystemClock();
const ends: (() => unknown)[] = [];

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** Both sides of a connection. */
async function pair(options: Partial<CommOptions> = {}): Promise<{ ours: Comm; peer: Comm }> {
  const accepted: ((comm: Comm) => void)[] = [];
  const peer = new Promise<Comm>((resolve) => accepted.push(resolve));
  const listener = await listen((comm) => accepted[0]?.(comm), options);
  const ours = await Comm.connect(listener.address, { clock, ...options });
  return { ours, peer: await peer };
}

async function listen(
  onComm: (comm: Comm) => void,
  options: Partial<CommOptions> & { onRefused?(error: Error): void } = {},
): Promise<DaskListener> {
  const listener = await DaskListener.listen('tcp://127.0.0.1:0', { clock, ...options }, (comm) => {
    comm.trust();
    onComm(comm);
  });
  ends.push(() => listener.close());
  return listener;
}

function collect(comm: Comm): { messages: unknown[]; next(): Promise<unknown>; error?: Error } {
  const messages: unknown[] = [];
  const waiters: ((message: unknown) => void)[] = [];
  const handlers: CommHandlers = {
    onMessage(message) {
      const waiter = waiters.shift();
      if (waiter === undefined) messages.push(message);
      else waiter(message);
    },
    onClose: () => undefined,
  };
  comm.attach(handlers);
  return {
    messages,
    next: () =>
      messages.length > 0
        ? Promise.resolve(messages.shift())
        : new Promise((resolve) => waiters.push(resolve)),
  };
}

function opaque(...frames: Uint8Array[]): Opaque {
  const header = encodeMessage({ serializer: 'pickle', 'num-sub-frames': frames.length })[0]!;
  return new Opaque('serialized', header, frames);
}

describe('a comm', () => {
  test('introduces itself on both sides and answers calls in turn', async () => {
    const { ours, peer } = await pair();
    expect(ours.peer).toEqual({ pickleProtocol: 5, python: [3, 11, 0] });
    const answer = ours.call('identity', { keys: ['a'], nothing: undefined });
    expect(await peer.read()).toEqual({ op: 'identity', keys: ['a'], reply: true });
    peer.write(null);
    expect(await answer).toBeNull();
    const second = ours.call('ncores');
    await peer.read();
    peer.write({ 'tcp://x': 1 });
    expect(await second).toEqual({ 'tcp://x': 1 });
  });

  test('raises what the handler of the peer raised', async () => {
    const { ours, peer } = await pair();
    const answer = ours.call('gather');
    await peer.read();
    peer.write(uncaughtAnswer(new PythonException('ValueError', 'no such key')));
    await expect(answer).rejects.toMatchObject({
      name: 'PythonError',
      answer: { status: 'uncaught-error', exception_text: 'ValueError("no such key")' },
    });
  });

  test('sends what one turn of the event loop says as one list', async () => {
    const { ours, peer } = await pair();
    const inbox = collect(peer);
    ours.send({ op: 'a' }, { op: 'b', data: opaque(Buffer.from('b')) });
    ours.send({ op: 'c', data: opaque(Buffer.from('c1'), Buffer.from('c2')) });
    const batch = (await inbox.next()) as { op: string; data?: Opaque }[];
    expect(batch.map(({ op }) => op)).toEqual(['a', 'b', 'c']);
    expect(batch[2]?.data?.frames.map((each) => Buffer.from(each).toString())).toEqual([
      'c1',
      'c2',
    ]);
  });

  test('with an interval sends the first at once and the rest together, in order', async () => {
    const { ours, peer } = await pair();
    const inbox = collect(peer);
    ours.batchIntervalMs = 50;
    ours.send(0);
    expect(await inbox.next()).toEqual([0]);
    for (let index = 1; index <= 3; index++) {
      ours.send(index);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await inbox.next()).toEqual([1, 2, 3]);
    ours.send(4);
    await ours.close();
    expect(await inbox.next()).toEqual([4]);
  });

  test('keeps the order of single messages and of lists', async () => {
    const { ours, peer } = await pair();
    const inbox = collect(peer);
    ours.send('first');
    ours.write('second');
    ours.send('third');
    expect([await inbox.next(), await inbox.next(), await inbox.next()]).toEqual([
      ['first'],
      'second',
      ['third'],
    ]);
  });

  test('carries thousands of messages with their opaque values in few lists', async () => {
    const { ours, peer } = await pair();
    const seen: number[] = [];
    let lists = 0;
    const done = new Promise<void>((resolve) => {
      peer.attach({
        onMessage(message) {
          lists++;
          for (const each of message as { index: number; data: Opaque }[]) {
            expect(each.data.frames[0]?.[0]).toBe(each.index % 256);
            seen.push(each.index);
          }
          if (seen.length === 20_000) resolve();
        },
        onClose: () => undefined,
      });
    });
    for (let index = 0; index < 20_000; index++) {
      ours.send({ index, data: opaque(Uint8Array.of(index % 256)) });
    }
    await done;
    expect(seen).toEqual(Array.from({ length: 20_000 }, (_, index) => index));
    expect(lists).toBeLessThan(20);
  });

  test('carries 200 MB in frames of 64 MiB and gives the memory on as it is', async () => {
    const { ours, peer } = await pair();
    const shard = Buffer.allocUnsafeSlow(64 * 1024 * 1024).fill(7);
    ours.write({ data: opaque(shard, shard, shard, Buffer.from('end')) });
    expect(ours.bufferedBytes).toBeGreaterThan(3 * shard.length - 1024 * 1024);
    const { data } = (await peer.read()) as { data: Opaque };
    expect(data.nbytes).toBeGreaterThan(3 * shard.length);
    expect(Buffer.compare(data.frames[2]!, shard)).toBe(0);
    expect(data.frames[0]!.buffer.byteLength).toBe(shard.length);
    await ours.drained();
    expect(ours.bufferedBytes).toBeLessThan(16 * 1024 * 1024);
  });

  test('makes the peer wait while its messages are not read, and drained waits', async () => {
    const { ours, peer } = await pair({ highWaterBytes: 1024 * 1024 });
    const payload = Buffer.alloc(512 * 1024, 1);
    for (let count = 0; count < 200; count++) ours.write({ count, data: opaque(payload) });
    const drained = ours.drained().then(() => 'drained');
    const timer = new Promise((resolve) => setTimeout(resolve, 50, 'waits'));
    expect(await Promise.race([drained, timer])).toBe('waits');
    for (let count = 0; count < 200; count++) expect(await peer.read()).toMatchObject({ count });
    expect(await drained).toBe('drained');
  });

  test('flushes when it closes, and ends the other side', async () => {
    const { ours, peer } = await pair();
    ours.send({ op: 'last' });
    const closed = ours.close();
    expect(await peer.read()).toEqual([{ op: 'last' }]);
    await expect(peer.read()).rejects.toMatchObject({ code: 'ERR_CLOSED' });
    await closed;
    expect(await peer.closed).toBeUndefined();
    expect(peer.isClosed).toBe(true);
  });

  test('a peer that dies within a message ends reads with ERR_FRAME', async () => {
    const server = createServer((socket) => {
      socket.write(Buffer.concat(packFrames(encodeMessage(HELLO))));
      socket.once('data', () => {
        const message = Buffer.concat(packFrames(encodeMessage({ text: 'x'.repeat(1000) })));
        socket.end(message.subarray(0, 500));
      });
    });
    const comm = await Comm.connect(await start(server), { clock });
    await expect(comm.read()).rejects.toMatchObject({ code: 'ERR_FRAME' });
  });

  test('a message that cannot be read ends the comm', async () => {
    const { ours, peer } = await pair();
    const reading = peer.read();
    // Not msgpack, but well framed.
    (ours as unknown as { socket: Socket }).socket.write(
      Buffer.concat(packFrames([Buffer.from([0xc1])])),
    );
    await expect(reading).rejects.toMatchObject({ code: 'ERR_FRAME' });
    await ours.closed;
  });

  test('a call without an answer in time gives the comm up', async () => {
    const { ours } = await pair();
    await expect(ours.call('x', {}, { timeoutMs: 20 })).rejects.toMatchObject({
      code: 'ERR_TIMEOUT',
    });
    expect(ours.isClosed).toBe(true);
  });
});

const HELLO = { compression: 'lz4', python: [3, 8, 0], 'pickle-protocol': 5 };

async function start(server: ReturnType<typeof createServer>): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ends.push(() => server.close());
  return `tcp://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe('a peer', () => {
  test('that does not read is disconnected when much waits for it', async () => {
    const { ours, peer } = await pair({ unreadBytesMax: 1024 * 1024 });
    peer.pause();
    for (let count = 0; count < 300 && !ours.isClosed; count++) {
      ours.write({ bytes: new Uint8Array(1024 * 1024) });
    }
    expect(await ours.closed).toMatchObject({ code: 'ERR_TIMEOUT' });
  });

  test('that has not introduced itself is ended when more than 1024 others have not', async () => {
    const listener = await listen(() => undefined, { handshakeTimeoutMs: 600_000 });
    const { port } = new URL(listener.address.replace('tcp:', 'http:'));
    const call = (): Promise<Socket> =>
      new Promise((resolve) => {
        const socket = connect(Number(port), '127.0.0.1');
        socket.on('error', () => undefined);
        ends.push(() => socket.destroy());
        socket.once('data', () => resolve(socket));
      });
    const oldest = await call();
    const closed = new Promise<boolean>((resolve) => oldest.once('close', () => resolve(true)));
    await Promise.all(Array.from({ length: 1024 }, call));
    expect(await closed).toBe(true);
  });
});

describe('peers of another protocol', () => {
  test.each([
    ['an HTTP client', Buffer.from('GET / HTTP/1.1\r\n\r\n'), 'ERR_FRAME'],
    ['a greeting without pickle-protocol', frame({ python: [3] }), 'ERR_PROTOCOL'],
    ['a huge greeting', frame('x'.repeat(2_000_000)), 'ERR_FRAME'],
    ['half a greeting', frame(HELLO).subarray(0, 20), 'ERR_FRAME'],
  ])('%s is refused and reported', async (_, bytes, code) => {
    let refuse!: (error: Error) => void;
    const refused = new Promise<Error>((resolve) => (refuse = resolve));
    const listener = await listen(() => expect.unreachable(), { onRefused: (e) => refuse(e) });
    const socket = connect(Number(listener.address.split(':').pop()), '127.0.0.1');
    socket.on('error', () => undefined);
    socket.end(bytes);
    expect(await refused).toMatchObject({ code });
  });

  test('a caller that says nothing is given up', async () => {
    let refuse!: (error: Error) => void;
    const refused = new Promise<Error>((resolve) => (refuse = resolve));
    const listener = await listen(() => expect.unreachable(), {
      handshakeTimeoutMs: 20,
      onRefused: (e) => refuse(e),
    });
    const socket = connect(Number(listener.address.split(':').pop()), '127.0.0.1');
    socket.on('error', () => undefined);
    expect(await refused).toMatchObject({ code: 'ERR_TIMEOUT' });
  });

  test('an address without a listener is ERR_CONNECT at once', async () => {
    const server = createServer();
    const address = await start(server);
    await new Promise((resolve) => server.close(resolve));
    await expect(Comm.connect(address, { clock })).rejects.toMatchObject({ code: 'ERR_CONNECT' });
  });
});

describe('a message that has begun', () => {
  interface Begun {
    readonly clock: VirtualClock;
    readonly socket: Socket;
    readonly comm: Comm;
    error?: Error;
  }

  /** A peer that has greeted, and has sent so much of a message of a megabyte. */
  async function begun(nbytes: number, isTrusted = false): Promise<Begun> {
    const virtual = new VirtualClock();
    let accept!: (comm: Comm) => void;
    const accepted = new Promise<Comm>((resolve) => (accept = resolve));
    const listener = await DaskListener.listen('tcp://127.0.0.1:0', { clock: virtual }, accept);
    ends.push(() => listener.close());
    const socket = connect(Number(listener.address.split(':').pop()), '127.0.0.1');
    socket.on('error', () => undefined).resume();
    ends.push(() => socket.destroy());
    socket.write(Buffer.concat([frame(HELLO), frame({ n: 1 })]));
    const comm = await accepted;
    if (isTrusted) comm.trust();
    expect(await comm.read()).toEqual({ n: 1 });
    socket.write(frame(Buffer.alloc(1024 * 1024)).subarray(0, nbytes));
    const result: Begun = { clock: virtual, socket, comm };
    void comm.closed.then((error) => (result.error = error));
    await new Promise((resolve) => setTimeout(resolve, 20));
    return result;
  }

  /** So many minutes pass while the sockets work. */
  async function pass({ clock, comm }: Begun, minutes: number): Promise<void> {
    for (let round = 0; round < 20 * minutes && !comm.isClosed; round++) {
      clock.advance(3000);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }

  test.each([
    ['in its head', 10],
    ['in its first frame', 1000],
    ['in a large frame', 200_000],
  ])('and stands still %s is ended with its connection after a minute', async (_, nbytes) => {
    const begin = await begun(nbytes);
    await pass(begin, 2);
    expect(begin.error).toMatchObject({
      code: 'ERR_TIMEOUT',
      message: expect.stringMatching(
        /a frame has begun, and \d+ bytes of it came within 60 s/,
      ) as string,
    });
  });

  test('and of which a byte comes now and then is ended, too', async () => {
    const begin = await begun(1000);
    const drip = setInterval(() => begin.socket.write('x'), 1);
    ends.push(() => clearInterval(drip));
    await pass(begin, 3);
    expect(begin.error).toMatchObject({ code: 'ERR_TIMEOUT' });
  });

  test('and that comes slowly, but comes, is waited for', async () => {
    const begin = await begun(1000);
    for (let minute = 0; minute < 5; minute++) {
      begin.socket.write(Buffer.alloc(100_000));
      await new Promise((resolve) => setTimeout(resolve, 20));
      await pass(begin, 1);
    }
    expect(begin.comm.isClosed).toBe(false);
  });

  test('of a registered peer may stand still for five minutes', async () => {
    const begin = await begun(1000, true);
    await pass(begin, 4);
    expect(begin.comm.isClosed).toBe(false);
    await pass(begin, 2);
    expect(begin.error).toMatchObject({ code: 'ERR_TIMEOUT' });
  });
});

function frame(value: unknown): Buffer {
  return Buffer.concat(packFrames(encodeMessage(value)));
}

describe('a pool', () => {
  async function echo(): Promise<{ address: string; comms: Comm[] }> {
    const comms: Comm[] = [];
    const { address } = await listen((comm) => {
      comms.push(comm);
      comm.attach({
        onMessage(message) {
          const { op } = message as { op: string };
          if (op === 'fail') comm.write(uncaughtAnswer(new PythonException('KeyError', ['k'])));
          else if (op !== 'hang') comm.write(message);
        },
        onClose: () => undefined,
      });
    });
    return { address, comms };
  }

  function pool(idleMax = 4): CommPool {
    const created = new CommPool({ clock, idleMax });
    ends.push(() => created.close());
    return created;
  }

  test('uses a comm again, also after an exception of the peer', async () => {
    const { address, comms } = await echo();
    const calls = pool();
    await calls.call(address, 'a');
    await expect(calls.call(address, 'fail')).rejects.toMatchObject({ name: 'PythonError' });
    expect(await calls.call(address, 'b', { x: 1 })).toEqual({ op: 'b', x: 1, reply: true });
    expect(comms).toHaveLength(1);
  });

  test('opens more comms for calls at the same time and keeps some of them', async () => {
    const { address, comms } = await echo();
    const calls = pool(2);
    await Promise.all(['a', 'b', 'c'].map((op) => calls.call(address, op)));
    expect(comms).toHaveLength(3);
    expect(calls.openCount).toBe(2);
  });

  test('forgets a peer that has left', async () => {
    const { address, comms } = await echo();
    const calls = pool();
    await calls.call(address, 'a');
    const { peers } = calls as unknown as { readonly peers: ReadonlyMap<string, unknown> };
    expect(peers.size).toBe(1);
    await comms[0]?.close();
    await expect.poll(() => peers.size).toBe(0);
  });

  test('ends the introduction to a peer that says nothing when it closes', async () => {
    const server = createServer(() => undefined);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    ends.push(() => server.close());
    const connected = new Promise((resolve) => server.once('connection', resolve));
    const calls = pool();
    const { port } = server.address() as AddressInfo;
    const call = calls.call(`tcp://127.0.0.1:${port}`, 'a');
    const refused = expect(call).rejects.toMatchObject({ code: 'ERR_CLOSED' });
    await connected;
    await new Promise((resolve) => setTimeout(resolve, 50));
    calls.close();
    await refused;
  });

  test('ends calls to a peer that is dropped', async () => {
    const { address } = await echo();
    const calls = pool();
    const call = calls.call(address, 'hang');
    const gone = new Error('the worker left');
    calls.drop(address, gone); // It is still connecting.
    await expect(call).rejects.toBe(gone);
    const { address: other, comms } = await echo();
    const open = calls.call(other, 'hang');
    await expect.poll(() => comms.length).toBe(1);
    calls.drop(other, gone);
    await expect(open).rejects.toBe(gone);
    expect(await calls.call(address, 'again')).toMatchObject({ op: 'again' });
  });

  test('opens no connection once it is closed', async () => {
    const { address } = await echo();
    const calls = pool();
    calls.close();
    await expect(calls.call(address, 'a')).rejects.toMatchObject({ code: 'ERR_CLOSED' });
  });
});
