import { collaborator } from '../plugin-host/injection.ts';
import type { Channel } from '../api/channel.ts';
import { asError, YardmasterError } from '../api/errors.ts';
import type { Connection, ConnectionHandlers, WireMessage } from '../api/transport.ts';
import { Deferred } from '../util/promises.ts';
import type { SessionSecret } from './membership.ts';

/** A connection to the scheduler, as everything but its session sees it. */
export interface Peer {
  readonly channel: Channel;
  /** Of the peer, once it is registered. Undefined: nothing can take the place of its connection. */
  readonly secret: SessionSecret | undefined;
  send(message: WireMessage): void;
  /** Number of the last report of this client that was handled; undefined: none was. */
  handledReport?: number | undefined;
  /** Sends what is queued, then closes. */
  end(): void;
  /** Tells a client that wants to know it that its reports up to this number are in the journal. */
  commit?(upTo: number): void;
  /** Tells such a client that its later reports will be in no journal. */
  endCommits?(): void;
}

/** The connections to a scheduler. */
@collaborator
export class Sessions {
  readonly all = new Set<Peer>();
  /** Registered workers by address. */
  readonly workers = new Map<string, Peer>();
  /** Registered clients by key. */
  readonly clients = new Map<string, Peer>();
  /** Largest message in bytes that passes on all connections; Infinity: no limit. */
  messageBytesMax = Infinity;
  /** True when shared memory stays shared on all connections, so that all peers are in this process. */
  sharesMemory = true;
  /** The addresses at which the scheduler listens, with the real ports. */
  readonly addresses: string[] = [];

  /** The connection of a worker. */
  channelOf(address: string): Channel | undefined {
    return this.workers.get(address)?.channel;
  }
}

/**
 * One end of a connection within a process whose messages pass by reference: no codec, no copy. The
 * plugin gives away what it sends, and must not change what it gets, which others may get as well. All
 * else is as the contract of `Connection` says: a batch for each turn, in order, never from within
 * another call.
 */
export class LocalConnection implements Connection {
  readonly bufferedBytes = 0;
  private peer!: LocalConnection;
  private handlers: ConnectionHandlers | undefined;
  private state: 'open' | 'closing' | 'over' = 'open';
  private outgoing: WireMessage[] = [];
  private isFlushing = false;
  private readonly over = new Deferred();

  private constructor(readonly peerAddress: string) {}

  /**
   * Two ends that are joined.
   * @param addresses - of the first and of the second end; each end reports the other one as its
   *   peer
   */
  static pair(addresses: readonly [string, string]): readonly [LocalConnection, LocalConnection] {
    const [first, second] = addresses;
    const here = new LocalConnection(second);
    const there = new LocalConnection(first);
    here.peer = there;
    there.peer = here;
    return [here, there];
  }

  /**
   * Directs all callbacks to these handlers; called in the event-loop turn in which the pair was
   * made.
   */
  attach(handlers: ConnectionHandlers): void {
    this.handlers = handlers;
  }

  send(...messages: readonly WireMessage[]): void {
    if (this.state !== 'open' || messages.length === 0) return;
    for (const message of messages) this.outgoing.push(message);
    if (this.isFlushing) return;
    this.isFlushing = true;
    queueMicrotask(() => this.flush());
  }

  drained(): Promise<void> {
    return Promise.resolve();
  }

  close(): Promise<void> {
    if (this.state === 'open') {
      this.flush();
      this.end(undefined);
      // What the other side had queued still arrives here.
      this.peer.closedUpon();
    }
    return this.over.promise;
  }

  abort(reason: Error): void {
    if (this.state === 'over') return;
    this.outgoing = [];
    this.state = 'over';
    queueMicrotask(() => this.finish(reason));
    const error = new YardmasterError(
      'ERR_CLOSED',
      `connection with ${this.peer.peerAddress}: the peer dropped it: ${reason.message}`,
      { peer: this.peer.peerAddress },
    );
    this.peer.dropped(error);
  }

  private flush(): void {
    this.isFlushing = false;
    const batch = this.outgoing;
    if (batch.length === 0) return;
    this.outgoing = [];
    this.peer.deliver(batch);
  }

  /** In a separate microtask, because the sender may be in a call of its owner. */
  private deliver(batch: readonly WireMessage[]): void {
    queueMicrotask(() => {
      if (this.state === 'over') return;
      try {
        this.handlers?.onMessages(batch);
      } catch (thrown) {
        this.abort(asError(thrown));
      }
    });
  }

  private closedUpon(): void {
    if (this.state !== 'open') return;
    this.flush();
    this.end(undefined);
  }

  private dropped(error: Error): void {
    if (this.state === 'over') return;
    this.outgoing = [];
    // After what was delivered before, which is on its way.
    queueMicrotask(() => {
      if (this.state === 'over') return;
      this.state = 'over';
      this.finish(error);
    });
  }

  /** In good order: what is on its way to here comes first. */
  private end(error: Error | undefined): void {
    this.state = 'closing';
    queueMicrotask(() => {
      queueMicrotask(() => {
        if (this.state === 'over') return;
        this.state = 'over';
        this.finish(error);
      });
    });
  }

  private finish(error: Error | undefined): void {
    this.over.resolve();
    this.handlers?.onClose(error);
  }
}
