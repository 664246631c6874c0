import {
  asError,
  type Clock,
  type Connection,
  type ConnectionHandlers,
  defineTransport,
  type Listener,
  type OptionsOf,
  type Transport,
  type TransportDefinition,
  type WireMessage,
  YardmasterError,
} from '../../core/api/index.ts';
import { Deferred, Waiters } from '../../core/util/promises.ts';
import { FRAME_BYTES_MAX, MsgpackCodec } from '../codecs/msgpack.ts';

/** The services that all connections of a network share. */
export interface NetworkServices {
  readonly clock: Clock;
  readonly codec: MsgpackCodec;
  /** Time that a packet takes. */
  readonly delayMs: number;
  /** `drained` waits while more than this is on the way. */
  readonly highWaterBytes: number;
  /** Messages are checked, not encoded, and arrive as the very objects that were sent. */
  readonly byReference: boolean;
  /** Delivers them later in the same turn. */
  readonly soon: SameTurnScheduler;
}

/**
 * Messages that the package makes for each task, of keys, numbers, bytes, and options that clients check when they are given.
 * By reference they are not looked through again.
 */
const CHECKED_BEFORE: ReadonlySet<unknown> = new Set([
  'update-graph',
  'compute-task',
  'task-finished',
  'key-in-memory',
  'free-keys',
  'release-worker-data',
  'client-releases-keys',
]);

/** A packet from one end to the other; packets arrive in order, each exactly once. */
type Packet =
  | { readonly kind: 'welcome' }
  | { readonly kind: 'batch'; readonly messages: readonly Uint8Array[]; readonly nbytes: number }
  | { readonly kind: 'objects'; readonly messages: readonly WireMessage[] }
  | { readonly kind: 'goodbye' }
  | { readonly kind: 'cut'; readonly reason: string };

/** One end of a connection within this process. */
export class InMemoryConnection implements Connection {
  private peer: InMemoryConnection | undefined;
  private handlers: ConnectionHandlers | undefined;
  private state: 'open' | 'closing' | 'over' = 'open';
  private outgoing: Uint8Array[] = [];
  /** Instead of `outgoing`, by reference. */
  private outgoingObjects: WireMessage[] = [];
  private outgoingBytes = 0;
  private onTheWayBytes = 0;
  private readonly arriving: Packet[] = [];
  private arrivingHead = 0;
  private readonly drainWaiters = new Waiters();
  private readonly over = new Deferred();

  /** @param onWelcome - for the end that connects: the other end accepted it */
  constructor(
    readonly peerAddress: string,
    private readonly services: NetworkServices,
    private readonly onWelcome?: () => void,
  ) {}

  get bufferedBytes(): number {
    return this.outgoingBytes + this.onTheWayBytes;
  }

  get messageBytesMax(): number {
    const { byReference, codec } = this.services;
    return byReference ? Infinity : codec.messageBytesMax;
  }

  get sharesMemory(): boolean {
    return this.services.byReference;
  }

  /** Called once on each end, before anything is sent. */
  join(peer: InMemoryConnection): void {
    this.peer = peer;
  }

  /** Directs all callbacks to these handlers from now on. */
  attach(handlers: ConnectionHandlers): void {
    this.handlers = handlers;
  }

  /** Sends the other end, as its first message, that it was accepted. */
  welcome(): void {
    this.transmit({ kind: 'welcome' });
  }

  send(...messages: readonly WireMessage[]): void {
    if (this.state !== 'open' || messages.length === 0) return;
    if (this.services.byReference) {
      this.sendObjects(messages);
      return;
    }
    const { codec, clock } = this.services;
    const encoded = codec.encodeAll(messages);
    if (this.outgoing.length === 0) {
      clock.setTimer(0, () => {
        this.flush();
      });
    }
    for (const bytes of encoded) {
      this.outgoing.push(bytes);
      this.outgoingBytes += bytes.length;
    }
  }

  private sendObjects(messages: readonly WireMessage[]): void {
    const { codec, soon } = this.services;
    for (const message of messages) {
      if (!CHECKED_BEFORE.has(message['op'])) codec.check(message);
    }
    if (this.outgoingObjects.length === 0) soon.call(() => this.flushObjects());
    for (const message of messages) this.outgoingObjects.push(message);
  }

  private flushObjects(): void {
    const { peer, outgoingObjects: messages } = this;
    if (peer === undefined || messages.length === 0) return;
    this.outgoingObjects = [];
    const packet: Packet = { kind: 'objects', messages };
    if (peer.arriving.length > 0) this.transmit(packet);
    else if (peer.state !== 'over') peer.receive(packet);
  }

  drained(): Promise<void> {
    if (this.bufferedBytes <= this.services.highWaterBytes) return Promise.resolve();
    return this.drainWaiters.wait();
  }

  close(): Promise<void> {
    this.beginClose();
    return this.over.promise;
  }

  abort(reason: Error): void {
    if (this.state === 'over') return;
    this.cut(reason);
    // The owner gets `onClose` as for any other end, but not from within this call.
    this.services.clock.setTimer(0, () => {
      this.finish(reason);
    });
  }

  private flush(): void {
    if (this.outgoingObjects.length > 0) {
      const messages = this.outgoingObjects;
      this.outgoingObjects = [];
      this.transmit({ kind: 'objects', messages });
    }
    if (this.outgoing.length === 0) return;
    const packet: Packet = {
      kind: 'batch',
      messages: this.outgoing,
      nbytes: this.outgoingBytes,
    };
    this.outgoing = [];
    this.outgoingBytes = 0;
    this.onTheWayBytes += packet.nbytes;
    this.transmit(packet);
  }

  private transmit(packet: Packet): void {
    const { peer } = this;
    if (peer === undefined) return;
    peer.arriving.push(packet);
    // Each timer takes the oldest packet, so that order does not depend on the clock's.
    this.services.clock.setTimer(this.services.delayMs, () => {
      peer.takeNext();
    });
  }

  private takeNext(): void {
    const packet = this.arriving[this.arrivingHead++];
    if (this.arrivingHead === this.arriving.length) {
      this.arriving.length = 0;
      this.arrivingHead = 0;
    }
    if (packet === undefined) return;
    if (packet.kind === 'batch') this.peer?.onTaken(packet.nbytes);
    if (this.state !== 'over') this.receive(packet);
  }

  private receive(packet: Packet): void {
    switch (packet.kind) {
      case 'welcome':
        this.onWelcome?.();
        return;
      case 'batch':
        this.deliver(() => this.decoded(packet.messages));
        return;
      case 'objects':
        this.deliver(() => packet.messages);
        return;
      case 'goodbye':
        this.beginClose();
        this.state = 'over';
        this.finish();
        return;
      case 'cut':
        this.state = 'over';
        this.dropOutgoing();
        this.finish(
          new YardmasterError(
            'ERR_CLOSED',
            `connection with ${this.peerAddress}: the peer dropped it: ${packet.reason}`,
            { peer: this.peerAddress },
          ),
        );
        return;
    }
  }

  private decoded(messages: readonly Uint8Array[]): readonly WireMessage[] {
    const { codec } = this.services;
    return messages.map((bytes) => codec.decode(bytes, true) as WireMessage);
  }

  private deliver(batch: () => readonly WireMessage[]): void {
    try {
      this.handlers?.onMessages(batch());
    } catch (thrown) {
      this.abort(asError(thrown));
    }
  }

  /** The peer took what was on the way. */
  private onTaken(nbytes: number): void {
    this.onTheWayBytes -= nbytes;
    if (this.bufferedBytes <= this.services.highWaterBytes) this.drainWaiters.release();
  }

  /** Both ends come here, the second one when it reads the goodbye of the first. */
  private beginClose(): void {
    if (this.state !== 'open') return;
    this.flush();
    this.state = 'closing';
    this.transmit({ kind: 'goodbye' });
  }

  private cut(reason: Error): void {
    this.state = 'over';
    this.dropOutgoing();
    this.transmit({ kind: 'cut', reason: reason.message });
  }

  private dropOutgoing(): void {
    this.outgoing = [];
    this.outgoingObjects = [];
    this.outgoingBytes = 0;
  }

  /** Called once, from a timer. */
  private finish(error?: Error): void {
    this.drainWaiters.release();
    this.over.resolve();
    this.handlers?.onClose(error);
  }
}

const optionsSchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    delayMs: { type: 'number', minimum: 0, description: 'Time that messages take. Default 0.' },
    frameBytesMax: {
      type: 'integer',
      minimum: 2 * 1024 * 1024,
      maximum: 2 ** 32 - 1,
      description:
        'Largest message in bytes. Default 1 GiB; at least 2 MiB, since an answer with results may have 1 MiB.',
    },
    highWaterBytes: {
      type: 'integer',
      minimum: 0,
      description: 'Bulk senders wait while more than this is on the way. Default 1 MiB.',
    },
    byReference: {
      type: 'boolean',
      description:
        'Messages are checked as if they were encoded, but not copied: nobody may change them. For a cluster within one process. Default false.',
    },
  },
} as const;

/** Options of the transport in memory. */
export type InMemoryOptions = OptionsOf<typeof optionsSchema>;

type Accept = (connection: Connection) => ConnectionHandlers;

const ADDRESS = /^inmemory:\/\/(?<host>[^:/]*)(?::(?<port>\d+))?$/;

/**
 * A network within this process: all users of one instance can reach each other. Addresses are
 * `inmemory://name` or `inmemory://name:port`; port 0 chooses a free one.
 *
 * Messages pass through the codec of the wire, so values that TCP would refuse or change are
 * refused or changed here as well; `byReference` refuses the same values and changes none. All
 * waiting goes through the clock: with a `VirtualClock` nothing happens until time is advanced, and
 * the same program gives the same run.
 */
export class InMemoryTransport implements Transport {
  readonly scheme = 'inmemory';
  private readonly services: NetworkServices;
  private readonly listeners = new Map<string, Accept>();
  private portCount = 0;
  private connectionCount = 0;

  constructor(
    private readonly clock: Clock,
    options: InMemoryOptions = {},
  ) {
    this.services = {
      clock,
      codec: new MsgpackCodec(options.frameBytesMax ?? FRAME_BYTES_MAX),
      delayMs: options.delayMs ?? 0,
      highWaterBytes: options.highWaterBytes ?? 1024 * 1024,
      byReference: options.byReference ?? false,
      soon: new SameTurnScheduler(clock, options.delayMs ?? 0),
    };
  }

  listen(address: string, accept: Accept): Promise<Listener> {
    return new Promise((resolve) => {
      const bound = this.bind(address);
      this.listeners.set(bound, accept);
      const close = (): Promise<void> => {
        if (this.listeners.get(bound) === accept) this.listeners.delete(bound);
        return Promise.resolve();
      };
      const { byReference, codec } = this.services;
      const messageBytesMax = byReference ? Infinity : codec.messageBytesMax;
      resolve({ address: bound, messageBytesMax, sharesMemory: byReference, close });
    });
  }

  connect(
    address: string,
    open: (connection: Connection) => ConnectionHandlers,
    { timeoutMs = Infinity }: { readonly timeoutMs?: number } = {},
  ): Promise<Connection> {
    const { clock, services } = this;
    return new Promise((resolve, reject) => {
      let isLate = false;
      const deadline = clock.setTimer(timeoutMs, () => {
        isLate = true;
        reject(connectError(address, `no answer within ${timeoutMs} ms`));
      });
      const here = new InMemoryConnection(address, services, () => {
        deadline.cancel();
        if (isLate) {
          here.abort(connectError(address, `no answer within ${timeoutMs} ms`));
          return;
        }
        try {
          here.attach(open(here));
          resolve(here);
        } catch (thrown) {
          const error = asError(thrown);
          here.abort(error);
          reject(error);
        }
      });
      // As over TCP: one way to the listener, and one way back.
      clock.setTimer(services.delayMs, () => {
        if (this.accept(here, address)) return;
        deadline.cancel();
        reject(connectError(address, 'no listener is there'));
      });
    });
  }

  private accept(here: InMemoryConnection, address: string): boolean {
    const accept = this.listeners.get(address);
    if (accept === undefined) return false;
    const peerAddress = `inmemory://peer:${++this.connectionCount}`;
    const there = new InMemoryConnection(peerAddress, this.services);
    here.join(there);
    there.join(here);
    there.welcome();
    try {
      there.attach(accept(there));
    } catch (error) {
      there.abort(error as Error);
      throw error;
    }
    return true;
  }

  private bind(address: string): string {
    const groups = ADDRESS.exec(address)?.groups;
    if (groups === undefined) {
      throw connectError(address, 'it is not of the form inmemory://name or inmemory://name:port');
    }
    const { host = '', port } = groups;
    if (port === undefined || Number(port) !== 0) {
      if (!this.listeners.has(address)) return address;
      throw connectError(address, 'another listener has the address');
    }
    for (;;) {
      const chosen = `inmemory://${host === '' ? 'local' : host}:${++this.portCount}`;
      if (!this.listeners.has(chosen)) return chosen;
    }
  }
}

function connectError(address: string, reason: string): YardmasterError {
  return new YardmasterError(
    'ERR_CONNECT',
    `cannot reach ${address} in the in-memory network: ${reason}; check the address, and that both sides use the same instance of InMemoryTransport`,
    { address },
  );
}

/** The definition that a config file names: `transport: { use: inmemory }`. */
export const inMemory: TransportDefinition<InMemoryOptions> = defineTransport({
  name: 'inmemory',
  apiVersion: 1,
  optionsSchema,
  create: ({ clock }, options) => new InMemoryTransport(clock, options),
});

export default inMemory;

/** Upper bound of the time by which one event-loop turn is extended. */
const TURN_MS = 1;

/**
 * Calls back after the work that is under way in this event-loop turn, and still in the same turn:
 * the messages that one message causes pass scheduler, worker and client together, instead of
 * needing a turn for each hop. After {@link TURN_MS} it uses the next turn, so that timers, sockets
 * and threads are served.
 */
export class SameTurnScheduler {
  private turnEndsMs = 0;

  /** @param delayMs - more than 0: after that, by the clock */
  constructor(
    private readonly clock: Clock,
    private readonly delayMs: number,
  ) {}

  call(callback: () => void): void {
    if (this.delayMs > 0) {
      this.clock.setTimer(this.delayMs, callback);
      return;
    }
    const nowMs = performance.now();
    if (this.turnEndsMs === 0) {
      this.turnEndsMs = nowMs + TURN_MS;
      setImmediate(() => (this.turnEndsMs = 0));
    }
    if (nowMs < this.turnEndsMs) process.nextTick(callback);
    else setImmediate(callback);
  }
}
