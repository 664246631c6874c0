import type { Clock } from '../../../core/api/index.ts';

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
