import type { Channel } from '../../api/channel.ts';
import { token, type Token } from '../../api/plugin.ts';
import type { WireMessage } from '../../api/transport.ts';
import type { SessionSecret } from './session-secret.ts';

export const SESSIONS: Token<Sessions> = token('sessions');

/** A connection to the scheduler, as everything but its session sees it. */
export interface Peer {
  readonly channel: Channel;
  /** Of the peer, once it is registered. Undefined: nothing can take the place of its connection. */
  readonly secret: SessionSecret | undefined;
  send(message: WireMessage): void;
  /** Sends what is queued, then closes. */
  end(): void;
  /** Tells a client that wants to know it that its reports up to this number are in the journal. */
  commit?(upTo: number): void;
  /** Tells such a client that its later reports will be in no journal. */
  endCommits?(): void;
}

/** The connections to a scheduler. */
export class Sessions {
  readonly all = new Set<Peer>();
  /** Registered workers by address. */
  readonly workers = new Map<string, Peer>();
  /** Registered clients by key. */
  readonly clients = new Map<string, Peer>();
  /** Largest message in bytes that passes on all connections; Infinity: no limit. */
  messageBytesMax = Infinity;
  /** Whether shared memory stays shared on all connections, so that all peers are in this process. */
  sharesMemory = true;
  /** Where the scheduler listens, with the real ports. */
  readonly addresses: string[] = [];

  /** The connection of a worker. */
  channelOf(address: string): Channel | undefined {
    return this.workers.get(address)?.channel;
  }
}
