import type { Role } from '../messages/protocol.ts';
import type { Clock } from './clock.ts';
import {
  checkDefinition,
  type MadeDefinition,
  type NoOptions,
  type OptionsOf,
  type WrittenDefinition,
} from './definition.ts';
import type { UseEntry } from './plugin.ts';

/**
 * A message: plain data that msgpack can carry (objects, arrays, strings, numbers, booleans,
 * null, `Uint8Array`). `undefined` fields are dropped.
 */
export type WireMessage = Readonly<Record<string, unknown>>;

/**
 * Callbacks to the owner of a connection. Each is called from the event loop, never re-entrantly.
 */
export interface ConnectionHandlers {
  /**
   * One or more messages, in the order in which the peer sent them. They belong to the receiver:
   * the transport keeps no reference to them.
   */
  onMessages(batch: readonly WireMessage[]): void;
  /**
   * The connection is over; nothing follows. Called exactly once, also after the owner's own
   * `close` or `abort`. `error` is set unless one of both sides closed it in good order.
   */
  onClose(error?: Error): void;
}

/** Whose key a peer has proved to have. `data` opens the data ports of workers. */
export type PeerRole = 'worker' | 'client' | 'admin' | 'viewer' | 'data';

/** The options of a connection. */
export interface TransportConnectOptions {
  /** Milliseconds for the connection to be made. */
  readonly timeoutMs?: number;
  /** The role as which the connecting side will introduce itself: it chooses the key. Default `client`. */
  readonly role?: Role;
}

/** Bounds of what a peer may send, checked before memory is taken for it. */
export interface IncomingLimits {
  /** Largest frame in bytes. */
  readonly frameBytesMax: number;
  /** Values in one frame; an object or array counts as {@link CONTAINER_VALUES}, plus what is in it. */
  readonly valuesMax: number;
}

/** The weight of an object or array in {@link IncomingLimits.valuesMax}: it takes that much more memory. */
export const CONTAINER_VALUES = 4;

/** One ordered, reliable, two-way stream of messages. */
export interface Connection {
  /** The address of the peer, for messages to people. */
  readonly peerAddress: string;
  /** The role that the peer has proved; undefined: the transport does not ask. */
  readonly peerRole?: PeerRole;
  /** Bytes that were sent and have not left this process. Senders of bulk data wait while it is large. */
  readonly bufferedBytes: number;
  /**
   * Largest encoded message in bytes that `send` takes; a larger one makes it throw `ERR_FRAME`. Clients
   * refuse larger arguments when they are submitted. Default: no limit.
   */
  readonly messageBytesMax?: number;
  /**
   * True when the byte arrays of a message arrive as the very objects that were sent, so that shared memory stays shared.
   * Default false.
   */
  readonly sharesMemory?: boolean;
  /** Ways beside the stream for large byte arrays between two processes of one machine. Default: none. */
  readonly memoryFiles?: MemoryFiles;
  /**
   * Queues messages; they leave together at the end of this turn of the event loop. Never throws on
   * account of the peer: a failure arrives once, through `onClose`. After `close` it is a no-op.
   */
  send(...messages: readonly WireMessage[]): void;
  /**
   * As `send`, in the same order, for messages without a waiting receiver: they may stay a few
   * milliseconds, until an urgent message is sent. A transport without it sends at once.
   */
  sendLater?(...messages: readonly WireMessage[]): void;
  /**
   * The receiver has copied a byte array of a message, and nothing refers to the array any more: its memory may hold
   * what comes next. A transport without it leaves the memory to the garbage collector.
   * @returns whether the memory will be used again
   */
  giveBack?(bytes: Uint8Array): boolean;
  /**
   * Resolves when bulk data may be sent again because little is buffered, or when the connection is
   * over.
   */
  drained(): Promise<void>;
  /**
   * Bounds what the peer may send, from its next frame on; a peer that exceeds them loses the connection.
   * Hosts set tight limits until the peer has introduced itself. Default: the transport has its own limits.
   * @param limits - undefined: the transport's own limits again
   */
  limitIncoming?(limits: IncomingLimits | undefined): void;
  /**
   * Stops reading from the peer, or continues, so that a peer that does not read its answers meets
   * back-pressure. Messages that have arrived may still be delivered. Default: reading never stops.
   */
  holdIncoming?(isHeld: boolean): void;
  /** Sends what is queued, then closes. Resolves when the connection is over. */
  close(): Promise<void>;
  /** Closes at once and drops what is queued. */
  abort(reason: Error): void;
}

/** The way for another process of the machine to open a memory file, and to know that it is this one. */
export interface MemoryFileName {
  readonly path: string;
  /** Its first bytes, which nobody can guess. */
  readonly proof: Uint8Array;
}

/**
 * Two files in the memory of the machine, one of each side of a connection: the peer writes into the file of this side, and
 * this side reads. Bytes pass so without a socket, its encryption, and half of the copies. The files have no path that
 * outlives their processes, and are closed with the connection.
 */
export interface MemoryFiles {
  /** Makes the file of this side, or names the one that is there. Undefined: the system has none. */
  offer(): MemoryFileName | undefined;
  /** Opens the file of the peer. False: the peer is on another machine, or it is not its file. */
  accept(name: MemoryFileName): boolean;
  /** Writes into the file of the peer, from a place on. False: there is none, or no room; then they have to be sent. */
  write(at: number, bytes: Uint8Array): boolean;
  /** Fills the bytes from a place in the file of this side. @throws Error when it has fewer there */
  read(at: number, into: Uint8Array): void;
  /** Gives the memory of the file of this side back to the system: nothing in it is wanted any more. */
  clear(): void;
}

/** Something that listens at an address. */
export interface Listener {
  /** The address at which peers can reach it, with the real port. */
  readonly address: string;
  /** Of its connections, as {@link Connection.messageBytesMax}. Default: no limit. */
  readonly messageBytesMax?: number;
  /** Of its connections, as {@link Connection.sharesMemory}. Default false. */
  readonly sharesMemory?: boolean;
  /** Stops accepting; existing connections stay. */
  close(): Promise<void>;
}

/** A way to reach other processes, chosen by the scheme of an address (`tcp://…`). */
export interface Transport {
  readonly scheme: string;
  /**
   * @param address - `scheme://host:port`; port 0 chooses a free one
   * @param accept - called for each new connection, before any of its messages
   * @throws YardmasterError `ERR_CONNECT` when the address cannot be bound
   */
  listen(
    address: string,
    accept: (connection: Connection) => ConnectionHandlers,
  ): Promise<Listener>;
  /** @throws YardmasterError `ERR_CONNECT` when no peer answers within the time */
  connect(
    address: string,
    open: (connection: Connection) => ConnectionHandlers,
    options?: TransportConnectOptions,
  ): Promise<Connection>;
}

/** The context in which a transport is made. */
export interface TransportContext {
  readonly clock: Clock;
}

/** A transport that a config file can name. */
export type TransportDefinition<Options = Record<string, never>> = MadeDefinition<
  'transport',
  TransportContext,
  Transport,
  Options
>;

/** A transport as code gives it: an instance, or what makes one, as a configuration may name it. */
export type TransportInput = Transport | TransportDefinition<never> | UseEntry | string;

/**
 * Declares a transport; types its options.
 * @throws YardmasterError `ERR_PLUGIN_LOAD` when the definition is missing or empty
 */
export function defineTransport<const Schema extends object = NoOptions>(
  definition: WrittenDefinition<TransportContext, Transport, Schema>,
): TransportDefinition<OptionsOf<Schema>> {
  checkDefinition('defineTransport', definition, '{ name, apiVersion: 1, create }');
  return { kind: 'transport', ...definition };
}
