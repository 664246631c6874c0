import type { Socket } from 'node:net';

import type { Clock } from '../../../core/api/index.ts';
import { TurnEnd } from '../../../core/shared/turn.ts';
import { WriteQueue } from '../../transports/tcp/connection.ts';
import { MessageWriter } from '../connection/message-writer.ts';

/** A batch is sent before the end of the turn when it reaches this many bytes or frames. */
const EARLY_FLUSH_BYTES = 256 * 1024;
const EARLY_FLUSH_FRAMES = 4096;
/** `drained` waits while more than this is buffered. */
const HIGH_WATER_BYTES = 16 * 1024 * 1024;

const TURN_END = new TurnEnd();

/** What leaves on a connection: single messages at once, those of a stream in batches. */
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
