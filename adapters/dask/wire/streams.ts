import type { Clock } from '../../../core/api/index.ts';
import type { Socket } from 'node:net';
import { TurnEnd } from '../../../core/shared/turn.ts';
import { WriteQueue } from '../../transports/tcp/connection.ts';
import { Encoder } from './codec.ts';
import { LARGE_FRAME_BYTES, preludeBytes, writePrelude } from './frames.ts';

// What arrives on a connection of Dask, and what leaves on it.

/** A source of messages that can be paused and resumed. */
interface Flow {
  pause(): void;
  resume(): void;
}

/** Number of unread messages at which the source is paused. */
const INBOX_MAX = 64;

/** Bytes of unread messages at which the source is paused. */
const INBOX_BYTES_MAX = 16 * 1024 * 1024;

/**
 * A message as it arrived, and its bytes for receivers that forward it without reading it. Neither
 * may be changed.
 */
export interface IncomingMessage {
  readonly message: unknown;
  readonly frames: readonly Uint8Array[];
}

interface Reader {
  resolve(incoming: IncomingMessage): void;
  reject(error: Error): void;
}

/**
 * The messages that arrive on a connection. Each goes to the oldest reader that waits for a
 * message, or else to the consumer of the stream, or else into an inbox. A full inbox pauses the
 * source, so that the peer meets back-pressure.
 */
export class Incoming {
  /** The consumer of the stream; set by `Comm.attach`. */
  private consume: ((incoming: IncomingMessage) => void) | undefined;
  private readonly inbox: IncomingMessage[] = [];
  private inboxBytes = 0;
  private readonly readers: Reader[] = [];
  private isPaused = false;
  private isHeldBack = false;
  private isSourcePaused = false;
  private isEnding = false;

  constructor(
    private readonly source: Flow,
    private readonly clock: Clock,
  ) {}

  /** A message has come. */
  take(incoming: IncomingMessage): void {
    const reader = this.readers.shift();
    if (reader !== undefined) reader.resolve(incoming);
    else if (this.consume !== undefined && !this.isHeld() && this.inbox.length === 0) {
      this.consume(incoming);
    } else {
      this.inbox.push(incoming);
      this.inboxBytes += bytesOf(incoming);
      this.updateFlow();
    }
  }

  /** Takes the oldest unread message. */
  shift(): IncomingMessage | undefined {
    const next = this.inbox.shift();
    if (next === undefined) return undefined;
    this.inboxBytes -= bytesOf(next);
    this.updateFlow();
    return next;
  }

  /** The next message that comes. @param silent - called when none has within that time */
  next(timeoutMs: number, silent: () => void): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const timer = timeoutMs === Infinity ? undefined : this.clock.setTimer(timeoutMs, silent);
      this.readers.push({
        resolve(incoming) {
          timer?.cancel();
          resolve(incoming);
        },
        reject(error) {
          timer?.cancel();
          reject(error);
        },
      });
    });
  }

  /** From now on messages go there, first those in the inbox. @throws what `consume` throws */
  attach(consume: (incoming: IncomingMessage) => void): void {
    this.consume = consume;
    this.deliver();
  }

  pause(): void {
    this.isPaused = true;
  }

  /** @throws what the consumer throws */
  resume(): void {
    if (!this.isPaused) return;
    this.isPaused = false;
    this.deliver();
  }

  /** As `pause` and `resume`, for a second reason. @throws what the consumer throws */
  hold(isHeld: boolean): void {
    if (this.isHeldBack === isHeld) return;
    this.isHeldBack = isHeld;
    if (!isHeld) this.deliver();
  }

  /** No reason to stop the source any more: its end has to be seen. */
  end(): void {
    this.isEnding = true;
    this.resumeSource();
  }

  /** Rejects all readers that wait for a message. */
  fail(error: Error): void {
    for (const reader of this.readers.splice(0)) reader.reject(error);
  }

  private deliver(): void {
    const { consume, inbox } = this;
    if (consume === undefined) return;
    try {
      while (inbox.length > 0 && !this.isHeld()) {
        const next = inbox.shift() as IncomingMessage;
        this.inboxBytes -= bytesOf(next);
        consume(next);
      }
    } finally {
      this.updateFlow();
    }
  }

  /** Asked anew for each message, as a consumer may pause. */
  private isHeld(): boolean {
    return this.isPaused || this.isHeldBack;
  }

  private updateFlow(): void {
    const fill = Math.max(this.inbox.length / INBOX_MAX, this.inboxBytes / INBOX_BYTES_MAX);
    if (fill >= 1 && !this.isSourcePaused && !this.isEnding) {
      this.isSourcePaused = true;
      this.source.pause();
    } else if (fill < 0.5) this.resumeSource();
  }

  private resumeSource(): void {
    if (!this.isSourcePaused) return;
    this.isSourcePaused = false;
    this.source.resume();
  }
}

function bytesOf({ frames }: IncomingMessage): number {
  let nbytes = 0;
  for (const { byteLength } of frames) nbytes += byteLength;
  return nbytes;
}

/** A batch is sent before the end of the turn when it reaches this many bytes or frames. */
const EARLY_FLUSH_BYTES = 256 * 1024;
const EARLY_FLUSH_FRAMES = 4096;
/** `drained` waits while more than this is buffered. */
const HIGH_WATER_BYTES = 16 * 1024 * 1024;

const TURN_END = new TurnEnd();

/** The messages that leave on a connection: single messages at once, those of a stream in batches. */
export class Outgoing {
  /** Between two batches at least; see `Comm.batchIntervalMs`. */
  intervalMs = 0;
  /** Grows when the system has taken something. */
  sentCount = 0;
  private batchedMs = -Infinity;
  private isPlanned = false;
  private state: 'open' | 'stopped' | 'over' = 'open';
  private readonly writer = new MessageWriter();
  private readonly queue: WriteQueue;
  private readonly drainWaiters: { readonly nbytes: number; resolve(): void }[] = [];

  constructor(
    socket: Socket,
    private readonly clock: Clock,
    private readonly highWaterBytes = HIGH_WATER_BYTES,
  ) {
    this.queue = new WriteQueue(socket, () => {
      this.sentCount++;
      this.releaseDrainWaiters();
    });
  }

  /** Bytes that the system has not taken. */
  get nbytes(): number {
    return this.state === 'over' ? 0 : this.writer.nbytes + this.queue.nbytes;
  }

  /** One message, at once, behind what was added before. */
  write(message: unknown): void {
    this.flush();
    for (const chunk of this.writer.single(message)) this.queue.push(chunk);
    this.queue.pump();
  }

  /** Adds a message to the batch that is being made. */
  add(message: unknown): void {
    const { writer } = this;
    writer.add(message);
    if (writer.nbytes >= EARLY_FLUSH_BYTES || writer.frameCount >= EARLY_FLUSH_FRAMES) this.flush();
    else if (!this.isPlanned) {
      this.isPlanned = true;
      TURN_END.add(() => {
        this.flushWhenDue();
      });
    }
  }

  /** Resolves when what is buffered is at most this many bytes, or all is over. */
  drained(nbytes = this.highWaterBytes): Promise<void> {
    if (this.nbytes <= nbytes) return Promise.resolve();
    return new Promise((resolve) => {
      this.drainWaiters.push({ nbytes, resolve });
    });
  }

  /** Sends what is buffered, and then that nothing more comes. */
  end(): void {
    this.flush();
    this.state = 'stopped';
    this.queue.end();
  }

  /** The peer takes no more batches: the one that is being made is lost. */
  stop(): void {
    if (this.state === 'open') this.state = 'stopped';
  }

  /**
   * Ends the writer: buffered messages are lost, and callers that wait for it to drain continue.
   */
  drop(): void {
    this.state = 'over';
    this.queue.clear();
    this.releaseDrainWaiters();
  }

  private flushWhenDue(): void {
    const leftMs =
      this.intervalMs === 0 ? 0 : this.batchedMs + this.intervalMs - this.clock.nowMs();
    if (leftMs <= 0 || this.state !== 'open') this.endBatch();
    else this.clock.setTimer(leftMs, () => this.endBatch());
  }

  private endBatch(): void {
    this.isPlanned = false;
    if (this.intervalMs > 0) this.batchedMs = this.clock.nowMs();
    this.flush();
  }

  private flush(): void {
    if (this.state !== 'open' || this.writer.count === 0) return;
    for (const chunk of this.writer.takeBatch()) this.queue.push(chunk);
    this.queue.pump();
  }

  private releaseDrainWaiters(): void {
    if (this.drainWaiters.length === 0) return;
    const { nbytes } = this;
    for (const waiter of this.drainWaiters.splice(0)) {
      if (nbytes <= waiter.nbytes) waiter.resolve();
      else this.drainWaiters.push(waiter);
    }
  }
}

/** Space in front of a message for its prelude with up to six frames and the header of a batch. */
const HEADROOM_BYTES = preludeBytes(6) + 5;

/**
 * Packs messages for a stream: single ones, and batches, which are lists of messages that grow until
 * they are taken.
 */
class MessageWriter {
  private readonly encoder = new Encoder();
  private batchCount = 0;

  /** Messages in the batch. */
  get count(): number {
    return this.batchCount;
  }

  /** Bytes of the batch, without those of opaque values. */
  get nbytes(): number {
    return this.batchCount === 0 ? 0 : this.encoder.length - HEADROOM_BYTES;
  }

  /** Frames of opaque values in the batch. */
  get frameCount(): number {
    return this.batchCount === 0 ? 0 : this.encoder.frameCount;
  }

  /**
   * Encodes at once, so that later changes do not matter; bytes of opaque values are not copied yet.
   * @throws YardmasterError `ERR_NOT_SERIALISABLE`; then the batch is as it was
   */
  add(message: unknown): void {
    if (this.batchCount === 0) this.encoder.reset(HEADROOM_BYTES);
    this.encoder.write(message);
    this.batchCount++;
  }

  /** The batch so far as chunks for a socket, whose memory is the caller's. */
  takeBatch(): Uint8Array[] {
    if (this.batchCount === 0) return [];
    const count = this.batchCount;
    this.batchCount = 0;
    const { memory: bytes } = this.encoder;
    let start = HEADROOM_BYTES;
    if (count < 16) bytes[--start] = 0x90 | count;
    else {
      start -= 5;
      bytes[start] = 0xdd;
      new DataView(bytes.buffer, bytes.byteOffset).setUint32(start + 1, count);
    }
    return this.pack(start);
  }

  /**
   * One message by itself. The batch must have been taken before.
   * @throws YardmasterError `ERR_NOT_SERIALISABLE`
   */
  single(message: unknown): Uint8Array[] {
    this.encoder.reset(HEADROOM_BYTES);
    this.encoder.write(message);
    return this.pack(HEADROOM_BYTES);
  }

  /** @param start - where frame 0 begins in the memory of the encoder */
  private pack(start: number): Uint8Array[] {
    const { encoder } = this;
    const frames = encoder.takeFrames();
    const lengths = [encoder.length - start];
    for (const { length } of frames) lengths.push(length);
    const prelude = preludeBytes(lengths.length);
    const chunks: Uint8Array[] = [];
    let from = start - prelude;
    if (from >= 0) writePrelude(encoder.memory, from, lengths);
    else {
      const apart = new Uint8Array(prelude);
      writePrelude(apart, 0, lengths);
      chunks.push(apart);
      from = start;
    }
    for (const frame of frames) {
      if (frame.length < LARGE_FRAME_BYTES) encoder.raw(frame);
      else {
        if (encoder.length > from) chunks.push(encoder.copy(from));
        chunks.push(frame);
        from = encoder.length;
      }
    }
    if (encoder.length > from) chunks.push(encoder.copy(from));
    return chunks;
  }
}
