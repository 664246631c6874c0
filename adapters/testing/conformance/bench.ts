import assert from 'node:assert/strict';

import type {
  Connection,
  ConnectionHandlers,
  Listener,
  Transport,
  WireMessage,
} from '../../../core/api/index.ts';
import { SystemClock } from '../../clock/index.ts';

/** A transport and what the clauses need to know about it. */
export interface TransportHarness {
  readonly transport: Transport;
  /** Where it can listen any number of times: with port 0, or what means the same. */
  readonly listenAddress: string;
  /** Of the right form, but nobody listens there. */
  readonly vacantAddress: string;
  /**
   * Lets time pass until the predicate holds; rejects when it does not come to hold. Default: real
   * time, ten seconds. With a virtual clock: `(holds) => clock.runUntil(holds)`.
   */
  until?(predicate: () => boolean): Promise<void>;
  /** After each clause. */
  close?(): void | Promise<void>;
}

/** A clause of the contract: its name is the sentence, its body the proof. */
export type Clauses = Readonly<Record<string, (bench: Bench) => Promise<void>>>;

/** Handlers of somebody who does not listen. */
export const DEAF: ConnectionHandlers = {
  onMessages: () => undefined,
  onClose: () => undefined,
};

/** One end of a connection, with all that it was told. */
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

  /** Runs what its owner does; being told something meanwhile is a breach. */
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
  private readonly clock = new SystemClock();

  constructor(readonly harness: TransportHarness) {}

  async listen(accepted = this.accepted): Promise<Listener> {
    const { transport, listenAddress } = this.harness;
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

  async connect(listener: Listener): Promise<End> {
    const found: End[] = [];
    await this.settled(
      this.harness.transport.connect(listener.address, (connection) => {
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
  async pair(): Promise<readonly [client: End, server: End]> {
    const client = await this.connect(await this.listen());
    await this.until(() => this.accepted.length === 1);
    const [server] = this.accepted;
    assert(server !== undefined);
    return [client, server];
  }

  until(predicate: () => boolean): Promise<void> {
    return this.harness.until?.(predicate) ?? this.realTimeUntil(predicate);
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

  async close(): Promise<void> {
    for (const end of this.opened) {
      if (!end.isOver) end.connection.abort(new Error('the clause is over'));
    }
    await this.until(() => this.opened.every((end) => end.isOver));
    for (const listener of this.listeners) await this.settled(listener.close());
    await this.harness.close?.();
    assert.deepEqual(
      this.opened.flatMap((end) => end.breaches),
      [],
    );
  }

  private realTimeUntil(predicate: () => boolean): Promise<void> {
    const deadlineMs = this.clock.nowMs() + 10_000;
    return new Promise((resolve, reject) => {
      const look = (): void => {
        if (predicate()) resolve();
        else if (this.clock.nowMs() > deadlineMs) {
          reject(new Error(`did not come to hold within 10 s: ${predicate.toString()}`));
        } else this.clock.setTimer(0, look);
      };
      look();
    });
  }
}
