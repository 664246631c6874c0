import type { Socket } from 'node:net';
import {
  asError,
  type Clock,
  type Connection,
  type ConnectionHandlers,
  type IncomingLimits,
  type PeerRole,
  type Timer,
  type WireMessage,
  YardmasterError,
} from '../../../core/api/index.ts';
import { Deferred, Waiters } from '../../../core/util/promises.ts';
import type { TurnBudget, TurnEnd } from '../../../core/shared/turn.ts';
import type { MsgpackCodec } from '../../codecs/msgpack.ts';
import { brokenError, ofPeer, stalledFrameError, stuckError } from './errors.ts';
import { FrameDeadline } from './frame-deadline.ts';
import { FrameReader, FrameWriter, GOODBYE, PREAMBLE } from './framing.ts';
import { SystemMemoryFiles } from './memory-files.ts';
import { keptChunk } from './socket-layer.ts';

/** The services that all connections of a transport share. */
export interface ConnectionServices {
  readonly clock: Clock;
  readonly codec: MsgpackCodec;
  readonly turnEnd: TurnEnd;
  /** The budget within which data that was read is handled. */
  readonly turn: TurnBudget;
  /** `drained` waits while more than this is buffered. */
  readonly highWaterBytes: number;
  /** A connection that closes ends when nothing moves for this long. */
  readonly closeTimeoutMs: number;
}

/** Milliseconds for which what is not urgent waits for something that is. */
const COMPANY_MS = 10;

/** Beyond this, frames are given to the socket before the end of the turn. */
const EARLY_WRITE_BYTES = 256 * 1024;

/** Times that `closeTimeoutMs` may pass in which a peer sends, but does not say goodbye. */
const CLOSE_ROUNDS_MAX = 12;

/**
 * A connection over a socket that was opened with `allowHalfOpen`.
 *
 * All ways to its end go through `fail` or the socket's own end, then its `close` event, which is
 * the only place that calls `onClose`.
 */
export class TcpConnection implements Connection {
  /** Set by its transport before it is used. */
  peerRole: PeerRole | undefined;
  readonly memoryFiles = new SystemMemoryFiles();
  private readonly writer: FrameWriter;
  private readonly reader: FrameReader;
  private readonly reads: PacedReads;
  private readonly queue: WriteQueue;
  private handlers: ConnectionHandlers;
  private state: 'open' | 'closing' | 'over' = 'open';
  private flushing = false;
  private error: Error | undefined;
  private closeTimer: Timer | undefined;
  /** Set while something may wait that is not urgent. */
  private companyTimer: Timer | undefined;
  /**
   * Increase when bytes are sent or received; they distinguish a slow peer from one that is stuck.
   */
  private sentCount = 0;
  private receivedCount = 0;
  private readonly deadline: FrameDeadline;
  private readonly drainWaiters = new Waiters();
  private readonly over = new Deferred();

  /**
   * Starts at once: sends the preamble and reads.
   * @param onPreamble - the peer speaks our protocol; called before any of its messages
   * @param valuesMax - values that the peer may send in one frame
   */
  constructor(
    private readonly socket: Socket,
    readonly peerAddress: string,
    private readonly services: ConnectionServices,
    firstHandlers: ConnectionHandlers,
    onPreamble: () => void,
    valuesMax = Infinity,
  ) {
    this.handlers = firstHandlers;
    this.writer = new FrameWriter(services.codec);
    const { memory } = services.codec;
    this.queue = new WriteQueue(
      socket,
      () => {
        this.onProgress();
      },
      (frame) => memory.giveBack(frame),
    );
    const sink = {
      onPreamble,
      onBatch: (batch: readonly WireMessage[]): void => this.deliver(batch),
      onGoodbye: (): void => this.beginClose(),
    };
    this.reader = new FrameReader(services.codec, sink, valuesMax);
    this.deadline = new FrameDeadline(services.clock, {
      underWay: () => this.reader.frameUnderWay,
      onStalled: (nbytes, withinMs) => {
        this.fail(stalledFrameError(peerAddress, nbytes, withinMs));
      },
    });
    this.reads = new PacedReads(socket, services.turn, (chunk) => {
      this.receive(chunk);
    });
    this.listen();
    this.queue.push(PREAMBLE);
    this.queue.pump();
  }

  get bufferedBytes(): number {
    return this.state === 'over' ? 0 : this.writer.nbytes + this.queue.nbytes;
  }

  get messageBytesMax(): number {
    return this.services.codec.messageBytesMax;
  }

  /** The peer has shown that it speaks our protocol. */
  get isIntroduced(): boolean {
    return this.reader.isOpen;
  }

  /** Directs all callbacks to these handlers from now on. */
  attach(handlers: ConnectionHandlers): void {
    this.handlers = handlers;
  }

  send(...messages: readonly WireMessage[]): void {
    if (this.state !== 'open') return;
    this.writer.add(messages);
    if (this.writer.nbytes >= EARLY_WRITE_BYTES) this.flush();
    else if (!this.flushing && this.writer.nbytes > 0) {
      this.flushing = true;
      this.services.turnEnd.add(() => {
        this.flushing = false;
        this.flush();
      });
    }
  }

  sendLater(...messages: readonly WireMessage[]): void {
    if (this.state !== 'open') return;
    this.writer.add(messages);
    if (this.writer.nbytes >= EARLY_WRITE_BYTES) this.flush();
    // Not cancelled when something urgent leaves first: there will be more, and a timer has its cost.
    else this.companyTimer ??= this.services.clock.setTimer(COMPANY_MS, () => this.endWait());
  }

  giveBack(bytes: Uint8Array): boolean {
    return this.services.codec.memory.giveBack(bytes);
  }

  drained(): Promise<void> {
    if (this.bufferedBytes <= this.services.highWaterBytes) return Promise.resolve();
    return this.drainWaiters.wait();
  }

  limitIncoming(limits: IncomingLimits | undefined): void {
    this.reader.limit(limits);
  }

  holdIncoming(isHeld: boolean): void {
    if (this.state === 'over') return;
    this.deadline.hold(isHeld);
    if (isHeld) this.reads.pause();
    else this.reads.resume();
  }

  close(): Promise<void> {
    this.beginClose();
    return this.over.promise;
  }

  abort(reason: Error): void {
    this.fail(reason);
  }

  /** Ends the connection now. The owner gets the first reason. */
  fail(reason: Error): void {
    if (this.state === 'over') return;
    this.state = 'over';
    this.error ??= reason;
    this.queue.clear();
    this.socket.destroy();
  }

  private listen(): void {
    const { socket, reads } = this;
    socket.on('end', () => {
      reads.finish();
      const error = this.reader.endError();
      if (error !== undefined) this.fail(ofPeer(this.peerAddress, error));
    });
    socket.on('error', (cause: NodeJS.ErrnoException) => {
      reads.finish();
      this.fail(brokenError(this.peerAddress, cause));
    });
    socket.on('close', () => {
      this.finish();
    });
  }

  private receive(chunk: Buffer): void {
    if (this.state === 'over') return;
    this.receivedCount++;
    try {
      this.reader.push(chunk);
      this.deadline.received(chunk.length);
    } catch (error) {
      this.fail(YardmasterError.is(error) ? ofPeer(this.peerAddress, error) : asError(error));
    }
  }

  private deliver(batch: readonly WireMessage[]): void {
    // Not when a handler aborted while the rest of its chunk was still to be read.
    if (this.state === 'over') return;
    try {
      this.handlers.onMessages(batch);
    } catch (error) {
      this.fail(asError(error));
    }
  }

  private flush(): void {
    if (this.state === 'over') return;
    for (const frame of this.writer.take()) this.queue.push(frame);
    this.queue.pump();
  }

  private endWait(): void {
    this.companyTimer = undefined;
    if (!this.flushing) this.flush();
  }

  private onProgress(): void {
    this.sentCount++;
    if (this.bufferedBytes <= this.services.highWaterBytes) this.drainWaiters.release();
  }

  /** Both sides come here, the second one when it reads the goodbye of the first. */
  private beginClose(): void {
    if (this.state !== 'open') return;
    this.flush();
    this.state = 'closing';
    this.queue.push(GOODBYE);
    this.queue.end();
    this.watchClose();
  }

  /**
   * A peer that does not read, or never answers the goodbye, cannot hold the close for ever.
   * @param rounds - how often it was seen that all is sent, and that the peer still sends
   */
  private watchClose(rounds = 0): void {
    const { clock, closeTimeoutMs } = this.services;
    const { sentCount, receivedCount } = this;
    this.closeTimer = clock.setTimer(closeTimeoutMs, () => {
      const isSent = this.queue.nbytes === 0;
      if (this.sentCount !== sentCount) this.watchClose();
      else if (isSent && this.receivedCount !== receivedCount && rounds < CLOSE_ROUNDS_MAX) {
        this.watchClose(rounds + 1);
      } else this.fail(stuckError(this.peerAddress, closeTimeoutMs, this.bufferedBytes));
    });
  }

  private finish(): void {
    this.state = 'over';
    this.deadline.end();
    this.closeTimer?.cancel();
    this.companyTimer?.cancel();
    this.queue.clear();
    this.memoryFiles.close();
    this.drainWaiters.release();
    this.over.resolve();
    this.handlers.onClose(this.error);
  }
}

/** Largest piece that is given to the socket at once, in bytes. */
const PIECE_BYTES = 1024 * 1024;

/** Bytes that the socket may hold before it gets more: enough to keep the kernel's buffer full. */
const SOCKET_BYTES_MAX = 1024 * 1024;

/**
 * A piece of this size waits until the socket has taken all that came before. An encrypted socket copies what it
 * gets while it writes into one new buffer, which costs more than to encrypt it.
 */
const LARGE_PIECE_BYTES = 64 * 1024;

const NO_BYTES = new Uint8Array(0);

/**
 * Writes to a socket piece by piece, so that queued bytes and sent bytes can be distinguished and a
 * message of a gigabyte does not block the event loop.
 */
export class WriteQueue {
  private chunks: Uint8Array[] = [];
  private head = 0;
  /** The bytes of the first chunk that are written. */
  private headOffset = 0;
  private queuedBytes = 0;
  private inSocketBytes = 0;
  private ending = false;

  /**
   * @param onProgress - some of it left, or the end was reached
   * @param onWritten - a large chunk is not needed any more
   */
  constructor(
    private readonly socket: Socket,
    private readonly onProgress: () => void,
    private readonly onWritten?: (chunk: Uint8Array) => unknown,
  ) {}

  /** Bytes that were pushed and that the kernel has not taken. */
  get nbytes(): number {
    return this.queuedBytes + this.inSocketBytes;
  }

  /** @param chunk - belongs to the queue from now on */
  push(chunk: Uint8Array): void {
    this.chunks.push(chunk);
    this.queuedBytes += chunk.length;
  }

  /** Gives to the socket what it can take. */
  pump(): void {
    if (this.socket.destroyed) return;
    while (this.queuedBytes > 0 && this.takesMore()) this.writeNext();
    if (this.ending && this.queuedBytes === 0) {
      this.ending = false;
      this.socket.end();
    }
  }

  /** Ends the stream when all that was pushed is written. */
  end(): void {
    this.ending = true;
    this.pump();
  }

  clear(): void {
    this.chunks = [];
    this.head = 0;
    this.headOffset = 0;
    this.queuedBytes = 0;
    this.ending = false;
  }

  private takesMore(): boolean {
    if (this.inSocketBytes === 0) return true;
    const pieceBytes = this.first.length - this.headOffset;
    return pieceBytes < LARGE_PIECE_BYTES && this.inSocketBytes < SOCKET_BYTES_MAX;
  }

  private get first(): Uint8Array {
    return this.chunks[this.head] ?? NO_BYTES;
  }

  private writeNext(): void {
    const chunk = this.first;
    const end = Math.min(chunk.length, this.headOffset + PIECE_BYTES);
    const piece = chunk.subarray(this.headOffset, end);
    const isLast = end === chunk.length;
    if (isLast) this.dropFirst();
    else this.headOffset = end;
    this.inSocketBytes += piece.length;
    this.queuedBytes -= piece.length;
    this.socket.write(piece, (error) => {
      this.inSocketBytes -= piece.length;
      if (isLast && chunk.length >= LARGE_PIECE_BYTES && !error) this.onWritten?.(chunk);
      this.pump();
      this.onProgress();
    });
  }

  private dropFirst(): void {
    this.headOffset = 0;
    this.head++;
    if (this.head < this.chunks.length) return;
    this.chunks = [];
    this.head = 0;
  }
}

/** A socket of which this much waits to be handled is not read: what one read brings at most. */
const HELD_BYTES_MAX = 64 * 1024;

/**
 * Passes the chunks of a socket on in order, within the budget of the event-loop turn. Chunks that
 * exceed the budget are held for a later turn, and a peer that continues to send meets
 * back-pressure.
 */
export class PacedReads {
  private held: Buffer[] = [];
  private heldBytes = 0;
  private isFull = false;
  private isStopped = false;

  /**
   * @param socket - its chunks are taken from its event `data`; what else was read comes by `take`
   * @param onChunk - handles what was read; must not throw
   */
  constructor(
    private readonly socket: Socket,
    private readonly turn: TurnBudget,
    private readonly onChunk: (chunk: Buffer) => void,
  ) {
    socket.on('data', (chunk: Buffer) => this.take(chunk));
  }

  /** Nothing waits: the next chunk follows what was passed on last. */
  get isEmpty(): boolean {
    return this.held.length === 0;
  }

  /** A chunk was read. */
  take(chunk: Buffer): void {
    if (this.held.length === 0 && this.turn.admits()) this.onChunk(chunk);
    else this.hold(chunk);
  }

  /**
   * Called when the owner can accept no more for now. Bytes that have arrived are still passed on.
   */
  pause(): void {
    this.isStopped = true;
    this.socket.pause();
  }

  resume(): void {
    this.isStopped = false;
    if (!this.isFull) this.socket.resume();
  }

  /** Passes on what is held, because the connection ends. */
  finish(): void {
    const { held } = this;
    this.held = [];
    this.heldBytes = 0;
    for (const chunk of held) this.onChunk(chunk);
  }

  private hold(chunk: Buffer): void {
    this.heldBytes += chunk.length;
    if (this.held.push(keptChunk(chunk)) === 1) {
      this.turn.later(() => {
        this.goOn();
      });
    }
    if (this.heldBytes < HELD_BYTES_MAX || this.isFull) return;
    this.isFull = true;
    this.socket.pause();
  }

  private goOn(): void {
    this.finish();
    if (!this.isFull) return;
    this.isFull = false;
    if (!this.isStopped) this.socket.resume();
  }
}
