import {
  type Clock,
  type Connection,
  type ConnectionHandlers,
  type WireMessage,
  YardmasterError,
} from '../../../core/api/index.ts';
import type { MsgpackCodec } from '../../codecs/msgpack/index.ts';
import type { SameTurnScheduler } from './same-turn-scheduler.ts';

/** What all connections of a network share. */
export interface NetworkServices {
  readonly clock: Clock;
  readonly codec: MsgpackCodec;
  /** Time that a packet takes. */
  readonly delayMs: number;
  /** `drained` waits while more than this is on the way. */
  readonly highWaterBytes: number;
  /** Messages are checked, not encoded, and arrive as the very objects that were sent. */
  readonly byReference: boolean;
  /** When they arrive then. */
  readonly soon: SameTurnScheduler;
}

/**
 * Messages that the package makes for each task, of keys, numbers, bytes, and what came in a message that was checked.
 * By reference they are not looked through again.
 */
const CHECKED_BEFORE: ReadonlySet<unknown> = new Set([
  'compute-task',
  'task-finished',
  'key-in-memory',
  'free-keys',
  'release-worker-data',
  'client-releases-keys',
]);

/** What travels from one end to the other; in order, each exactly once. */
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
  private readonly drainWaiters: (() => void)[] = [];
  private readonly over: Promise<void>;
  private resolveOver!: () => void;

  /** @param onWelcome - for the end that connects: the other end accepted it */
  constructor(
    readonly peerAddress: string,
    private readonly services: NetworkServices,
    private readonly onWelcome?: () => void,
  ) {
    this.over = new Promise((resolve) => {
      this.resolveOver = resolve;
    });
  }

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
    // All are encoded before one is queued, so that one that cannot travel holds back all.
    const encoded = messages.map((message) => {
      const shared = codec.encodeMessage(message);
      return codec.keep(shared) ? shared : shared.slice();
    });
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
    return new Promise((resolve) => {
      this.drainWaiters.push(resolve);
    });
  }

  close(): Promise<void> {
    this.beginClose();
    return this.over;
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
      this.abort(thrown instanceof Error ? thrown : new Error(`thrown: ${String(thrown)}`));
    }
  }

  /** The peer took what was on the way. */
  private onTaken(nbytes: number): void {
    this.onTheWayBytes -= nbytes;
    if (this.bufferedBytes <= this.services.highWaterBytes) this.releaseDrainWaiters();
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
    this.releaseDrainWaiters();
    this.resolveOver();
    if (error === undefined) this.handlers?.onClose();
    else this.handlers?.onClose(error);
  }

  private releaseDrainWaiters(): void {
    for (const resolve of this.drainWaiters.splice(0)) resolve();
  }
}
