import assert from 'node:assert/strict';
import {
  type Connection,
  type ConnectionHandlers,
  type ErrorCode,
  type Listener,
  type Transport,
  type WireMessage,
  YardmasterError,
} from '../../core/api/index.ts';
import { inBackground } from '../../core/shared/timers.ts';
import { show } from '../../core/shared/words.ts';
import { SystemClock } from '../clocks/index.ts';
import { type Clauses, registerClauses, type TestRunner, Unproven } from './clauses.ts';

/**
 * Registers one test for each clause of the contract in `Transport` and `Connection`. The author of
 * a transport runs it in their project:
 *
 *     import { describe, it } from 'vitest';
 *     transportConformance('my-quic', () => ({ transport, listenAddress, vacantAddress }), { describe, it });
 *
 * @param makeHarness - called for each clause
 * @throws YardmasterError `ERR_CONFIG` when it is no function, or the runner is missing
 */
export function transportConformance(
  name: string,
  makeHarness: () => TransportHarness | Promise<TransportHarness>,
  runner: TestRunner,
): void {
  registerClauses(SUITE, name, makeHarness, runner);
}

/** Listening and connecting. */
const ADDRESSES_CLAUSES: Clauses<Bench> = {
  async 'connecting to an address without a listener fails with ERR_CONNECT that names the address'(
    bench,
  ) {
    const { transport, vacantAddress } = bench.harness;
    await bench.refused((open) => transport.connect(vacantAddress, open), vacantAddress);
  },

  async 'an address that makes no sense is ERR_CONNECT'(bench) {
    const { transport } = bench.harness;
    const address = `${transport.scheme}://a:b:c`;
    await bench.refused((open) => transport.connect(address, open));
    await bench.refused((open) => transport.listen(address, open));
  },

  async '"local:0" is any free address: workers and clusters listen there'(bench) {
    const { transport, listenAddress } = bench.harness;
    const [scheme] = listenAddress.split(':');
    // Of these, workers listen under the host by which they reach their scheduler.
    if (scheme === 'tcp' || scheme === 'tls') return;
    const address = `${scheme}://local:0`;
    const listener = await bench.settled(transport.listen(address, () => DEAF));
    assert.notEqual(listener.address, address);
    await bench.settled(listener.close());
  },

  async 'an address can be listened on once at a time'(bench) {
    const listener = await bench.listen();
    const { transport } = bench.harness;
    await bench.refused((open) => transport.listen(listener.address, open));
    await bench.settled(listener.close());
    const again = await bench.settled(transport.listen(listener.address, () => DEAF));
    assert.equal(again.address, listener.address);
    await bench.settled(again.close());
  },

  async 'two listeners have two addresses and their own connections'(bench) {
    const first: End[] = [];
    const second: End[] = [];
    const one = await bench.listen(first);
    const two = await bench.listen(second);
    assert.notEqual(one.address, two.address);
    const client = await bench.connect(two);
    client.connection.send({ to: 'two' });
    await bench.until(() => second[0]?.messages.length === 1);
    assert.equal(first.length, 0);
  },

  async '50 connections of one listener do not mix'(bench) {
    const listener = await bench.listen();
    const clients: End[] = [];
    for (let number = 0; number < 50; number++) clients.push(await bench.connect(listener));
    clients.forEach(({ connection }, number) => {
      for (let count = 0; count < 20; count++) connection.send({ number, count });
    });
    await bench.until(() => bench.accepted.every((end) => end.messages.length === 20));
    assert.equal(bench.accepted.length, 50);
    const numbers = bench.accepted.map((end) => {
      assert.deepEqual(end.each('count'), countTo(20));
      const [number, ...others] = new Set(end.each('number'));
      assert.deepEqual(others, []);
      return number;
    });
    assert.equal(new Set(numbers).size, 50);
  },

  async 'a closed listener accepts no connections, and its open ones stay'(bench) {
    const listener = await bench.listen();
    const client = await bench.connect(listener);
    const server = await bench.nextAccepted(0);
    await bench.settled(listener.close());
    await bench.settled(listener.close());
    const { transport } = bench.harness;
    await bench.refused((open) => transport.connect(listener.address, open));
    await bench.roundTrips(client, server);
    assert.equal(client.isOver || server.isOver, false);
  },
};

/** A transport and what the clauses need to know about it. */
export interface TransportHarness {
  readonly transport: Transport;
  /** An address at which it can listen any number of times: with port 0, or what means the same. */
  readonly listenAddress: string;
  /** A valid address at which no listener is. */
  readonly vacantAddress: string;
  /**
   * Lets time pass until the predicate holds; rejects when it does not come to hold. Default: real
   * time. With a virtual clock: `(holds) => clock.runUntil(holds)`.
   */
  until?(predicate: () => boolean): Promise<void>;
  /** Milliseconds of real time that one clause may take. Default 4000: less than test runners allow. */
  readonly clauseMs?: number;
  /**
   * The same transport with a low limit, for the clauses about large messages. They are skipped
   * without it.
   */
  readonly small?: {
    readonly transport: Transport;
    /** Its limit in bytes: a few thousand. */
    readonly frameBytesMax: number;
    /** `transport` reaches its listeners, so that a frame can be too large for the receiver alone. */
    readonly isReachable?: boolean;
  };
  /**
   * An address at which connecting neither succeeds nor fails: something listens and never answers. The clause about
   * connect time-outs is skipped without it.
   */
  readonly silentAddress?: string;
  /**
   * Puts a proxy between a listener and its callers, for the clauses about peers and networks that
   * fail; see `SocketProxy`. Without it these clauses are skipped. Closing must end within
   * `clauseMs` even when the peer stands still.
   */
  proxy?(address: string): Promise<FaultProxy>;
  /** After each clause. */
  close?(): void | Promise<void>;
}

/** Stands between a listener and those that connect. */
export interface FaultProxy {
  /** To connect to instead of the listener's. */
  readonly address: string;
  /** Reads nothing any more from the side that connected. */
  freeze(): void;
  /** Resumes after `freeze`. */
  thaw(): void;
  /** Breaks the connections, without a goodbye. */
  cut(): void;
  /** Sends bytes that mean nothing to both sides. */
  corrupt(): void;
  close(): Promise<void> | void;
}

/** vitest gives a test five seconds, mocha two: with mocha, set `clauseMs`. */
const CLAUSE_MS = 4000;
const CLOSE_MS = 500;
/** Messages of one end that a failed clause shows. */
const SHOWN_MAX = 5;

interface ProxiedPair {
  readonly client: End;
  readonly server: End;
  readonly proxy: FaultProxy;
  readonly listener: Listener;
}

/** Handlers of an owner that ignores everything. */
const DEAF: ConnectionHandlers = {
  onMessages: () => undefined,
  onClose: () => undefined,
};

const countTo = (length: number): number[] => Array.from({ length }, (_, number) => number);

/** For `assert.rejects` and `assert.throws`. */
const isError =
  (code: ErrorCode, text = '') =>
  (error: unknown): boolean => {
    assert(YardmasterError.is(error, code), String(error));
    assert(error.message.includes(text), error.message);
    return true;
  };

/** One end of a connection, with everything that it received. */
class End implements ConnectionHandlers {
  readonly batches: WireMessage[][] = [];
  readonly messages: WireMessage[] = [];
  readonly closes: (Error | undefined)[] = [];
  /** Things that may never happen. */
  readonly breaches: string[] = [];
  private depth = 0;

  constructor(readonly connection: Connection) {}

  onMessages(batch: readonly WireMessage[]): void {
    if (this.closes.length > 0) this.breaches.push('messages came after onClose');
    if (batch.length === 0) this.breaches.push('a batch was empty');
    this.enter('onMessages');
    this.batches.push([...batch]);
    this.messages.push(...batch);
    this.depth--;
  }

  onClose(error?: Error): void {
    if (this.closes.length > 0) this.breaches.push('onClose was called more than once');
    this.enter('onClose');
    this.closes.push(error);
    this.depth--;
  }

  /** Runs an action of the owner; a callback during it is a breach. */
  act<T>(action: (connection: Connection) => T): T {
    this.depth++;
    const result = action(this.connection);
    this.depth--;
    return result;
  }

  get isOver(): boolean {
    return this.closes.length > 0;
  }

  /** This field of each message. */
  each(name: string): unknown[] {
    return this.messages.map((message) => message[name]);
  }

  private enter(what: string): void {
    if (this.depth++ > 0) this.breaches.push(`${what} was called from within another call`);
  }
}

/** Says at any time whether a promise is settled. */
function watched(promise: Promise<unknown>): { readonly isOver: boolean } {
  const state = { isOver: false };
  const end = (): void => void (state.isOver = true);
  promise.then(end, end);
  return state;
}

/** The bench on which a clause is tried. */
class Bench {
  readonly accepted: End[] = [];
  private readonly opened: End[] = [];
  private readonly listeners: Listener[] = [];
  private readonly proxies: FaultProxy[] = [];
  private readonly clock = new SystemClock();
  private readonly clauseMs: number;
  private deadlineMs: number;

  constructor(readonly harness: TransportHarness) {
    this.clauseMs = harness.clauseMs ?? CLAUSE_MS;
    this.deadlineMs = this.clock.nowMs() + this.clauseMs;
  }

  /** A part of the harness. @throws Unproven when there is none */
  need<Name extends 'small' | 'silentAddress'>(name: Name): NonNullable<TransportHarness[Name]> {
    const part = this.harness[name];
    if (part === undefined) throw new Unproven(`the harness has no "${name}"`);
    return part;
  }

  /** A listener whose connections have these handlers. It is closed with the bench. */
  async listenWith(
    accept: (connection: Connection) => ConnectionHandlers,
    transport = this.harness.transport,
  ): Promise<Listener> {
    const listener = await this.settled(transport.listen(this.harness.listenAddress, accept));
    this.listeners.push(listener);
    return listener;
  }

  listen(accepted = this.accepted, transport?: Transport): Promise<Listener> {
    return this.listenWith((connection) => this.open(connection, accepted), transport);
  }

  async connect(
    { address }: Pick<Listener, 'address'>,
    transport: Transport = this.harness.transport,
  ): Promise<End> {
    const found: End[] = [];
    await this.settled(transport.connect(address, (connection) => this.open(connection, found)));
    const [end] = found;
    assert(end !== undefined, 'connect resolved without having called `open`');
    return end;
  }

  private open(connection: Connection, ends: End[]): End {
    const end = new End(connection);
    ends.push(end);
    this.opened.push(end);
    return end;
  }

  /** The end that was accepted after so many others. */
  async nextAccepted(before: number): Promise<End> {
    await this.until(() => this.accepted.length > before);
    return this.accepted[before] as End;
  }

  /** A listener with one connection: the end that connected, and the one that was accepted. */
  async pair(transport?: Transport): Promise<readonly [client: End, server: End]> {
    const client = await this.connect(await this.listen(this.accepted, transport), transport);
    return [client, await this.nextAccepted(0)];
  }

  /**
   * As `pair`, with a proxy between.
   * @throws Unproven when the harness has none
   */
  async proxiedPair(): Promise<ProxiedPair> {
    const { harness } = this;
    if (harness.proxy === undefined) throw new Unproven('the harness has no "proxy"');
    const listener = await this.listen();
    const proxy = await harness.proxy(listener.address);
    this.proxies.push(proxy);
    const client = await this.connect(proxy);
    return { client, server: await this.nextAccepted(0), proxy, listener };
  }

  /**
   * An attempt to connect or listen fails with `ERR_CONNECT`, and opens no connection.
   * @param text - that the message has
   */
  async refused(
    attempt: (open: () => ConnectionHandlers) => Promise<unknown>,
    text?: string,
  ): Promise<void> {
    let isOpened = false;
    const trying = attempt(() => {
      isOpened = true;
      return DEAF;
    });
    await assert.rejects(this.settled(trying), isError('ERR_CONNECT', text));
    assert.equal(isOpened, false);
  }

  /** Lets some turns of the event loop pass, in real time. */
  async turns(count: number): Promise<void> {
    for (let turn = 0; turn < count; turn++) {
      await new Promise<void>((resolve) => this.clock.setTimer(1, resolve));
    }
  }

  async until(predicate: () => boolean): Promise<void> {
    try {
      await (this.harness.until?.(predicate) ?? this.realTimeUntil(predicate));
    } catch (cause) {
      const { message } = cause as Error;
      const text = `${message}\nwaited for: ${predicate.toString()}\nuntil then: ${this.seen()}`;
      throw new Error(text, { cause });
    }
  }

  /** The events that each end has seen so far, for the message of a clause that fails. */
  private seen(): string {
    if (this.opened.length === 0) return 'no connection';
    const ends = this.opened.map((end) => {
      const side = this.accepted.includes(end) ? 'the end that accepted' : 'the end that connected';
      const { messages, closes } = end;
      const shown = messages.slice(-SHOWN_MAX).map((message) => show(message));
      const last = messages.length > SHOWN_MAX ? `, the last ${SHOWN_MAX}` : '';
      const got =
        messages.length === 0
          ? 'no message'
          : `${messages.length} messages${last}: ${shown.join(' ')}`;
      const [error] = closes;
      const reason = error === undefined ? 'in good order' : `with ${error.message}`;
      return `${side} got ${got}${closes.length === 0 ? '' : `, and was closed ${reason}`}`;
    });
    return ends.join('; ');
  }

  /** Awaits it while time passes. */
  async settled<T>(promise: Promise<T>): Promise<T> {
    const settling = watched(promise);
    await this.until(() => settling.isOver);
    return promise;
  }

  /** Two messages there and back again: what was under way has arrived, and a turn has passed. */
  async roundTrips(from: End, to: End): Promise<void> {
    for (let round = 0; round < 2; round++) {
      const counts = [to.messages.length, from.messages.length] as const;
      from.connection.send({ op: 'ping' });
      await this.until(() => to.messages.length > counts[0]);
      to.connection.send({ op: 'pong' });
      await this.until(() => from.messages.length > counts[1]);
    }
  }

  /** Ends everything. Has a second more than the clause, so that it need not hide what the clause found. */
  async close(): Promise<void> {
    this.deadlineMs = Math.max(this.deadlineMs, this.clock.nowMs()) + CLOSE_MS;
    for (const end of this.opened) {
      if (!end.isOver) end.connection.abort(new Error('the clause is over'));
    }
    try {
      await this.until(() => this.opened.every((end) => end.isOver));
      for (const listener of this.listeners) await this.settled(listener.close());
    } finally {
      for (const proxy of this.proxies) await proxy.close();
      await this.harness.close?.();
    }
    assert.deepEqual(
      this.opened.flatMap((end) => end.breaches),
      [],
    );
  }

  private realTimeUntil(predicate: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        if (predicate()) resolve();
        else if (this.clock.nowMs() > this.deadlineMs) {
          reject(new Error(`what the clause waits for did not happen within ${this.clauseMs} ms`));
        } else this.clock.setTimer(0, look);
      };
      look();
    });
  }
}

/** All sorts of values that have to arrive as they were sent. */
const VALUES: WireMessage = {
  op: 'values',
  text: 'größer, 東京, 🚂, \u0000, "quoted"\n',
  empty: '',
  long: 'x'.repeat(100_000),
  nothing: null,
  yes: true,
  no: false,
  integers: [0, 1, -1, 127, 128, -32, -33, 255, 65_536, 2 ** 31, -(2 ** 31), 2 ** 32, -(2 ** 32)],
  largest: [Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, 2 ** 53, -(2 ** 53)],
  fractions: [0.1, -1e-300, 1e300, Number.MAX_VALUE, Infinity, -Infinity, NaN],
  bytes: new Uint8Array([0, 1, 254, 255]),
  noBytes: new Uint8Array(0),
  nested: { list: [[], [[{}]], { deep: { bytes: new Uint8Array([7]) } }] },
  'a key with spaces': 1,
  '': 'the empty name',
};

const DATA_CLAUSES: Clauses<Bench> = {
  async 'all kinds of plain data arrive as they were sent'(bench) {
    const [client, server] = await bench.pair();
    client.connection.send(VALUES);
    await bench.until(() => server.messages.length === 1);
    assert.deepStrictEqual(server.messages[0], VALUES);
  },

  async 'undefined fields are dropped, and a Buffer arrives as Uint8Array'(bench) {
    const [client, server] = await bench.pair();
    const list = [undefined, -0];
    client.connection.send({ kept: 1, dropped: undefined, list, bytes: Buffer.from('ab') });
    await bench.until(() => server.messages.length === 1);
    assert.deepStrictEqual(server.messages[0], {
      kept: 1,
      list: [null, 0],
      bytes: new Uint8Array([97, 98]),
    });
  },

  async 'messages are copied: changing one after it was sent changes nothing'(bench) {
    const [client, server] = await bench.pair();
    const message = { op: 'before', list: [1, 2], bytes: new Uint8Array([1, 2]) };
    client.connection.send(message);
    message.op = 'after';
    message.list.push(3);
    message.bytes.fill(9);
    await bench.until(() => server.messages.length === 1);
    const [received] = server.messages;
    assert.deepStrictEqual(received, { op: 'before', list: [1, 2], bytes: new Uint8Array([1, 2]) });
    received['list'].push(4);
    assert.deepEqual(message.list, [1, 2, 3]);
  },

  async 'received bytes stay as they are when more arrives'(bench) {
    const [client, server] = await bench.pair();
    client.connection.send({ bytes: new Uint8Array(1000).fill(1) });
    await bench.until(() => server.messages.length === 1);
    for (let fill = 2; fill < 20; fill++) {
      client.connection.send({ bytes: new Uint8Array(1000).fill(fill) });
      await bench.until(() => server.messages.length === fill);
    }
    const fills = server.messages.map((message) => new Set(message['bytes'] as Uint8Array));
    assert.deepEqual(
      fills,
      Array.from({ length: 19 }, (_, index) => new Set([index + 1])),
    );
  },

  async 'what cannot travel is refused at once, naming where it is, and nothing of that call is sent'(
    bench,
  ) {
    const [client, server] = await bench.pair();
    const refused: readonly (readonly [unknown, string])[] = [
      [() => undefined, 'tasks[1].value'],
      [10n, 'tasks[1].value'],
      [Symbol('s'), 'tasks[1].value'],
      [new Map(), 'tasks[1].value'],
      [new Date(0), 'tasks[1].value'],
      [new Float64Array(2), 'tasks[1].value'],
      [2 ** 53 + 2, 'tasks[1].value'],
      ['half of a pair: \ud83d', 'tasks[1].value'],
      [new Error('an instance of a class'), 'tasks[1].value'],
      [JSON.parse('{ "__proto__": 1 }'), 'tasks[1].value.__proto__'],
      [{ 'odd key': [new Set()] }, 'tasks[1].value["odd key"][0]'],
    ];
    for (const [value, path] of refused) {
      assert.throws(
        () => {
          client.connection.send({ op: 'good' }, { tasks: [{}, { value }] });
        },
        (error: unknown) =>
          YardmasterError.is(error, 'ERR_NOT_SERIALISABLE') && error.data['path'] === path,
        `${typeof value} at ${path}`,
      );
    }
    await bench.roundTrips(client, server);
    assert.deepEqual(server.messages, [{ op: 'ping' }, { op: 'ping' }]);
  },
};

const DELIVERY_CLAUSES: Clauses<Bench> = {
  async 'messages reach the other side, both ways'(bench) {
    const [client, server] = await bench.pair();
    client.act((connection) => connection.send({ op: 'hello', from: 'client' }));
    server.act((connection) => connection.send({ op: 'hello', from: 'server' }));
    await bench.until(() => client.messages.length === 1 && server.messages.length === 1);
    assert.deepEqual(server.messages, [{ op: 'hello', from: 'client' }]);
    assert.deepEqual(client.messages, [{ op: 'hello', from: 'server' }]);
  },

  async 'the scheme is that of its addresses'(bench) {
    const { transport, listenAddress } = bench.harness;
    const listener = await bench.listen();
    assert(listenAddress.startsWith(`${transport.scheme}://`), listenAddress);
    assert(listener.address.startsWith(`${transport.scheme}://`), listener.address);
    assert.notEqual(listener.address, '');
  },

  async 'the end that connects knows the address of its peer'(bench) {
    const listener = await bench.listen();
    const client = await bench.connect(listener);
    assert.equal(client.connection.peerAddress, listener.address);
  },

  async 'accept is called before any message of the connection'(bench) {
    const events: string[] = [];
    const { address } = await bench.listenWith(() => {
      events.push('accept');
      return { onMessages: () => events.push('messages'), onClose: () => events.push('close') };
    });
    const connection = await bench.settled(
      bench.harness.transport.connect(address, (opened) => {
        opened.send({ op: 'from within open' });
        return DEAF;
      }),
    );
    await bench.until(() => events.includes('messages'));
    await bench.settled(connection.close());
    await bench.until(() => events.includes('close'));
    assert.deepEqual(events, ['accept', 'messages', 'close']);
  },

  async 'what accept sends at once reaches the end that connects'(bench) {
    const listener = await bench.listenWith((connection) => {
      connection.send({ op: 'welcome' });
      return DEAF;
    });
    const client = await bench.connect(listener);
    await bench.until(() => client.messages.length === 1);
    assert.deepEqual(client.messages, [{ op: 'welcome' }]);
  },

  async '10 000 small messages arrive in order'(bench) {
    const [client, server] = await bench.pair();
    for (let number = 0; number < 10_000; number++) {
      client.connection.send({ op: 'count', number });
      if (number % 1000 === 0) await bench.until(() => true);
    }
    await bench.until(() => server.messages.length === 10_000);
    assert.deepEqual(server.each('number'), countTo(10_000));
  },

  async 'messages sent in one turn arrive as one batch'(bench) {
    const [client, server] = await bench.pair();
    client.act((connection) => {
      connection.send({ n: 1 }, { n: 2 });
      connection.send({ n: 3 });
    });
    await bench.until(() => server.messages.length === 3);
    assert.deepEqual(server.batches, [[{ n: 1 }, { n: 2 }, { n: 3 }]]);
  },

  async 'what may be sent later keeps its place, and comes when nothing else is sent'(bench) {
    const [client, server] = await bench.pair();
    client.act((connection) => {
      sendLater(connection, { n: 1 });
      connection.send({ n: 2 });
      sendLater(connection, { n: 3 });
    });
    await bench.until(() => server.messages.length === 3);
    client.act((connection) => sendLater(connection, { n: 4 }));
    await bench.until(() => server.messages.length === 4);
    assert.deepEqual(server.messages, [{ n: 1 }, { n: 2 }, { n: 3 }, { n: 4 }]);
  },

  async 'what may be sent later is sent before a close'(bench) {
    const [client, server] = await bench.pair();
    client.act((connection) => {
      sendLater(connection, { n: 1 });
      inBackground(connection.close(), (error) => connection.abort(error));
    });
    await bench.until(() => server.closes.length === 1);
    assert.deepEqual(server.messages, [{ n: 1 }]);
  },

  async 'sending nothing sends nothing'(bench) {
    const [client, server] = await bench.pair();
    client.connection.send();
    await bench.roundTrips(client, server);
    assert.deepEqual(server.messages, [{ op: 'ping' }, { op: 'ping' }]);
  },

  async 'a message of 32 MiB passes intact'(bench) {
    const [client, server] = await bench.pair();
    const bytes = new Uint8Array(32 * 1024 * 1024);
    for (let index = 0; index < bytes.length; index += 4093) bytes[index] = index & 0xff;
    client.connection.send({ op: 'before' }, { op: 'large', bytes }, { op: 'after' });
    await bench.until(() => server.messages.length === 3);
    assert.deepEqual(server.each('op'), ['before', 'large', 'after']);
    const received = server.messages[1]?.['bytes'] as Uint8Array;
    assert.equal(Buffer.compare(received, bytes), 0);
  },

  async 'buffered bytes are counted, and drained resolves when they have left'(bench) {
    const [client, server] = await bench.pair();
    await bench.until(() => client.connection.bufferedBytes === 0);
    const bytes = new Uint8Array(1024 * 1024);
    for (let count = 0; count < 16; count++) client.connection.send({ bytes });
    assert(client.connection.bufferedBytes > 1024 * 1024, 'nothing is buffered');
    const drained = client.connection.drained();
    const draining = watched(drained);
    // Nothing leaves before the turn ends, so it cannot have resolved by then.
    for (let jobs = 0; jobs < 50; jobs++) await Promise.resolve();
    assert.equal(draining.isOver, false, 'drained resolved before anything had left');
    const bufferedBytes = client.connection.bufferedBytes;
    await bench.settled(drained);
    assert(
      client.connection.bufferedBytes < bufferedBytes,
      'drained resolved, and nothing has left',
    );
    await bench.until(() => server.messages.length === 16);
    await bench.until(() => client.connection.bufferedBytes === 0);
    await bench.settled(client.connection.drained());
  },

  async 'drained resolves when the connection ends'(bench) {
    const [client] = await bench.pair();
    for (let count = 0; count < 16; count++) {
      client.connection.send({ bytes: new Uint8Array(1024 * 1024) });
    }
    const drained = client.connection.drained();
    client.connection.abort(new Error('enough'));
    await bench.settled(drained);
    await bench.settled(client.connection.drained());
  },
};

/** As a channel does it: a transport need not know the difference. */
function sendLater(connection: Connection, message: WireMessage): void {
  if (connection.sendLater === undefined) connection.send(message);
  else connection.sendLater(message);
}

/** Clauses about the end of connections. */
const ENDINGS_CLAUSES: Clauses<Bench> = {
  async 'close sends what is queued, then both sides see a close in good order'(bench) {
    const [client, server] = await bench.pair();
    const bytes = new Uint8Array(1024 * 1024);
    client.connection.send({ n: 1, bytes }, { n: 2, bytes }, { n: 3 });
    await bench.settled(client.act((connection) => connection.close()));
    assert(client.isOver, 'close resolved before the connection was over');
    await bench.until(() => server.isOver);
    assert.deepEqual(server.each('n'), [1, 2, 3]);
    assert.deepEqual([client.closes, server.closes], [[undefined], [undefined]]);
  },

  async 'the side that is closed upon sends what it had queued'(bench) {
    const [client, server] = await bench.pair();
    server.connection.send({ op: 'last words', bytes: new Uint8Array(300_000) });
    await bench.settled(client.connection.close());
    await bench.until(() => client.isOver && server.isOver);
    assert.deepEqual(client.each('op'), ['last words']);
    assert.deepEqual([client.closes, server.closes], [[undefined], [undefined]]);
  },

  async 'both sides may close at the same time, and twice'(bench) {
    const [client, server] = await bench.pair();
    client.connection.send({ from: 'client' });
    server.connection.send({ from: 'server' });
    const closes = [client, server].flatMap(({ connection }) => [
      connection.close(),
      connection.close(),
    ]);
    await bench.settled(Promise.all(closes));
    await bench.until(() => client.isOver && server.isOver);
    assert.deepEqual(
      [client.messages, server.messages],
      [[{ from: 'server' }], [{ from: 'client' }]],
    );
    assert.deepEqual([client.closes, server.closes], [[undefined], [undefined]]);
    await bench.settled(client.connection.close());
  },

  async 'send after close does nothing'(bench) {
    const [client, server] = await bench.pair();
    const closed = client.connection.close();
    client.connection.send({ op: 'too late' });
    await bench.settled(closed);
    client.connection.send({ op: 'much too late' });
    await bench.until(() => server.isOver);
    server.connection.send({ op: 'to a closed connection' });
    assert.deepEqual([server.messages, client.messages], [[], []]);
  },

  async 'abort drops what is queued and reports its reason to its owner'(bench) {
    const [client, server] = await bench.pair();
    const reason = new Error('the worker is not wanted any more');
    client.act((connection) => {
      connection.send({ op: 'never arrives' });
      connection.abort(reason);
      connection.send({ op: 'neither' });
    });
    await bench.until(() => client.isOver && server.isOver);
    assert.deepEqual(server.messages, []);
    assert.equal(client.closes[0], reason);
    const [error] = server.closes;
    assert(error instanceof Error, 'the other side received an orderly close');
    assert(YardmasterError.is(error, 'ERR_CLOSED'), `the other side got ${error.message}`);
  },

  async 'abort after close still ends it once'(bench) {
    const [client, server] = await bench.pair();
    const closed = client.connection.close();
    client.connection.abort(new Error('too slow'));
    client.connection.abort(new Error('again'));
    await bench.settled(closed);
    await bench.until(() => client.isOver && server.isOver);
    assert.equal(client.closes.length, 1);
    client.connection.abort(new Error('after the end'));
  },

  async 'send never throws on account of the peer; its end arrives once, through onClose'(bench) {
    const [client, server] = await bench.pair();
    server.connection.abort(new Error('gone'));
    for (let count = 0; count < 50; count++) {
      client.connection.send({ bytes: new Uint8Array(100_000) });
      if (count % 10 === 0) await bench.until(() => true);
    }
    await bench.until(() => client.isOver);
    client.connection.send({ op: 'after the end' });
    assert.equal(client.closes.length, 1);
    assert(client.closes[0] instanceof Error);
  },

  async 'nothing is delivered after an abort from within onMessages'(bench) {
    const events: string[] = [];
    const listener = await bench.listenWith((connection) => ({
      onMessages: () => {
        events.push('messages');
        connection.abort(new Error('stop'));
      },
      onClose: (error) => events.push(`close: ${String(error?.message)}`),
    }));
    const client = await bench.connect(listener);
    for (let count = 0; count < 20; count++) {
      client.connection.send({ count, bytes: new Uint8Array(200_000) });
    }
    await bench.until(() => client.isOver && events.length >= 2);
    assert.deepEqual(events, ['messages', 'close: stop']);
  },

  async 'a handler that throws ends its own connection with that error, and no other'(bench) {
    const errors: (Error | undefined)[] = [];
    const thrown = new Error('field missing');
    const listener = await bench.listenWith(() => ({
      onMessages: () => {
        throw thrown;
      },
      onClose: (error) => errors.push(error),
    }));
    const bad = await bench.connect(listener);
    const other = await bench.connect(listener);
    bad.connection.send({ op: 'bad' });
    await bench.until(() => bad.isOver && errors.length > 0);
    assert.deepEqual(errors, [thrown]);
    assert.equal(other.isOver, false);
  },
};

const MIB = 1024 * 1024;

/** Clauses about faults of the peer, the network or a message. Each needs a part of the harness. */
const FAULTS_CLAUSES: Clauses<Bench> = {
  async 'a message larger than a frame may be is refused with ERR_FRAME, and nothing of that call is sent'(
    bench,
  ) {
    const small = bench.need('small');
    const [client, server] = await bench.pair(small.transport);
    const bytes = new Uint8Array(small.frameBytesMax + 1);
    assert.throws(
      () => client.connection.send({ op: 'good' }, { op: 'large', bytes }),
      isError('ERR_FRAME'),
      'send did not throw ERR_FRAME',
    );
    await bench.roundTrips(client, server);
    assert.deepEqual(server.messages, [{ op: 'ping' }, { op: 'ping' }]);
  },

  async 'messages of one turn that each fit into a frame arrive, also when they do not fit together'(
    bench,
  ) {
    const small = bench.need('small');
    const [client, server] = await bench.pair(small.transport);
    const bytes = new Uint8Array(small.frameBytesMax * 0.7);
    client.connection.send({ n: 1, bytes }, { n: 2, bytes });
    client.connection.send({ n: 3, bytes });
    await bench.until(() => server.messages.length === 3 || server.isOver);
    assert.deepEqual(server.each('n'), [1, 2, 3]);
  },

  async 'a frame larger than the receiver takes ends the connection with ERR_FRAME there, and no other'(
    bench,
  ) {
    const { small, transport } = bench.harness;
    if (small?.isReachable !== true)
      throw new Unproven('the harness does not say small.isReachable');
    const listener = await bench.listen(bench.accepted, small.transport);
    const client = await bench.connect(listener, transport);
    const other = await bench.connect(listener, transport);
    await bench.until(() => bench.accepted.length === 2);
    client.connection.send({ op: 'large', bytes: new Uint8Array(small.frameBytesMax * 4) });
    await bench.until(() => client.isOver && bench.accepted.some((end) => end.isOver));
    const reported = bench.accepted.flatMap((end) => end.closes);
    assert.equal(reported.length, 1);
    assert(YardmasterError.is(reported[0], 'ERR_FRAME'), `the receiver got ${String(reported[0])}`);
    assert(client.closes[0] instanceof Error, 'the sender received an orderly close');
    assert.deepEqual([other.isOver, client.messages], [false, []]);
  },

  async 'connecting to a peer that never answers fails with ERR_CONNECT within the time'(bench) {
    const { transport } = bench.harness;
    const silentAddress = bench.need('silentAddress');
    const options = { timeoutMs: 100 };
    await bench.refused((open) => transport.connect(silentAddress, open, options), silentAddress);
  },

  async 'drained waits while the peer reads nothing, and resolves when it reads again'(bench) {
    const { client, server, proxy } = await bench.proxiedPair();
    proxy.freeze();
    for (let count = 0; count < 32; count++) {
      client.connection.send({ bytes: new Uint8Array(MIB) });
    }
    const drained = client.connection.drained();
    const draining = watched(drained);
    await bench.turns(20);
    assert.equal(draining.isOver, false, 'drained resolved although the peer reads nothing');
    assert(client.connection.bufferedBytes > MIB, 'nothing is buffered');
    proxy.thaw();
    await bench.settled(drained);
    await bench.until(() => server.messages.length === 32);
  },

  async 'a peer that stands still cannot hold a close for ever'(bench) {
    const { client, proxy } = await bench.proxiedPair();
    proxy.freeze();
    client.connection.send({ op: 'unread', bytes: new Uint8Array(16 * MIB) });
    await bench.settled(client.connection.close());
    await bench.until(() => client.isOver);
    assert.equal(client.closes.length, 1);
  },

  async 'a connection that is cut is ERR_CLOSED on both sides, and others live on'(bench) {
    const { client, server, proxy, listener } = await bench.proxiedPair();
    proxy.cut();
    await bench.until(() => client.isOver && server.isOver);
    for (const [error] of [client.closes, server.closes]) {
      assert(YardmasterError.is(error, 'ERR_CLOSED'), `reported ${String(error)}`);
    }
    await worksStill(bench, listener);
  },

  async 'a peer that breaks the protocol is ERR_PROTOCOL or ERR_FRAME, and others live on'(bench) {
    const { client, server, proxy, listener } = await bench.proxiedPair();
    proxy.corrupt();
    await bench.until(() => client.isOver && server.isOver);
    const codes = [client, server].map(({ closes: [error], messages }) => {
      assert.deepEqual(messages, []);
      assert(YardmasterError.is(error), `reported ${String(error)}`);
      return error.code;
    });
    const isOfProtocol = (code: ErrorCode): boolean => /^ERR_(PROTOCOL|FRAME)$/.test(code);
    assert(codes.some(isOfProtocol), codes.join());
    // The side that sees it second may see the end of the other one first.
    assert(
      codes.every((code) => isOfProtocol(code) || code === 'ERR_CLOSED'),
      codes.join(),
    );
    await worksStill(bench, listener);
  },
};

async function worksStill(bench: Bench, listener: Listener): Promise<void> {
  const before = bench.accepted.length;
  const client = await bench.connect(listener);
  await bench.roundTrips(client, await bench.nextAccepted(before));
}

const SUITE = {
  usage:
    "transportConformance('quic', () => ({ transport, listenAddress, vacantAddress }), { describe, it })",
  what: 'a transport',
  clauses: {
    ...DELIVERY_CLAUSES,
    ...DATA_CLAUSES,
    ...ENDINGS_CLAUSES,
    ...ADDRESSES_CLAUSES,
    ...FAULTS_CLAUSES,
  },
  benchOf: (harness: TransportHarness) => new Bench(harness),
};
