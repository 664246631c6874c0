import assert from 'node:assert/strict';

import type {
  Connection,
  ConnectionHandlers,
  Listener,
  Transport,
  WireMessage,
} from '../../../core/api/index.ts';
import { show } from '../../../core/shared/words.ts';
import { SystemClock } from '../../clocks/index.ts';

/** A transport and what the clauses need to know about it. */
export interface TransportHarness {
  readonly transport: Transport;
  /** Where it can listen any number of times: with port 0, or what means the same. */
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
   * Where connecting neither succeeds nor fails: something listens and never answers. The clause about
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

/** Thrown by a clause that the harness gives nothing to prove with: it is skipped. */
export class Unproven extends Error {
  /** @param part - of the harness */
  constructor(part: string) {
    super(`the harness has no "${part}" to prove this with`);
    this.name = 'Unproven';
  }
}

/** A clause of the contract: its name is the sentence, its body the proof. */
export type Clauses = Readonly<Record<string, (bench: Bench) => Promise<void>>>;

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
export const DEAF: ConnectionHandlers = {
  onMessages: () => undefined,
  onClose: () => undefined,
};

/** One end of a connection, with everything that it received. */
export class End implements ConnectionHandlers {
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
  act(action: (connection: Connection) => void): void {
    this.depth++;
    action(this.connection);
    this.depth--;
  }

  get isOver(): boolean {
    return this.closes.length > 0;
  }

  private enter(what: string): void {
    if (this.depth++ > 0) this.breaches.push(`${what} was called from within another call`);
  }
}

/** What a clause works with. */
export class Bench {
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

  async listen(
    accepted = this.accepted,
    transport: Transport = this.harness.transport,
  ): Promise<Listener> {
    const { listenAddress } = this.harness;
    const listener = await this.settled(
      transport.listen(listenAddress, (connection) => {
        const end = new End(connection);
        accepted.push(end);
        this.opened.push(end);
        return end;
      }),
    );
    this.listeners.push(listener);
    return listener;
  }

  async connect(
    listener: Pick<Listener, 'address'>,
    transport: Transport = this.harness.transport,
  ): Promise<End> {
    const found: End[] = [];
    await this.settled(
      transport.connect(listener.address, (connection) => {
        const end = new End(connection);
        found.push(end);
        this.opened.push(end);
        return end;
      }),
    );
    const [end] = found;
    assert(end !== undefined, 'connect resolved without having called `open`');
    return end;
  }

  /** A listener with one connection: the end that connected, and the one that was accepted. */
  async pair(transport?: Transport): Promise<readonly [client: End, server: End]> {
    const client = await this.connect(await this.listen(this.accepted, transport), transport);
    await this.until(() => this.accepted.length === 1);
    const [server] = this.accepted;
    assert(server !== undefined);
    return [client, server];
  }

  /**
   * As `pair`, with a proxy between.
   * @throws Unproven when the harness has none
   */
  async proxiedPair(): Promise<ProxiedPair> {
    const { harness } = this;
    if (harness.proxy === undefined) throw new Unproven('proxy');
    const listener = await this.listen();
    const proxy = await harness.proxy(listener.address);
    this.proxies.push(proxy);
    const client = await this.connect(proxy);
    await this.until(() => this.accepted.length === 1);
    const [server] = this.accepted;
    assert(server !== undefined);
    return { client, server, proxy, listener };
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

  /** What each end has seen so far, for the message of a clause that fails. */
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
    let isSettled = false;
    const mark = (): void => {
      isSettled = true;
    };
    promise.then(mark, mark);
    await this.until(() => isSettled);
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
