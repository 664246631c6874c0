import type { Clock, Timer } from '../api/clock.ts';
import { YardmasterError } from '../api/errors.ts';
import type { ValueReader } from '../api/executor.ts';
import type { Connection, MemoryFiles, WireMessage } from '../api/transport.ts';
import type { GetPartReply } from '../messages/protocol.ts';
import { PART_BYTES } from '../shared/fetch-data.ts';
import { UNREAD_BYTES_MAX } from '../shared/limits.ts';
import { inBackground, setAwakeTimer } from '../shared/timers.ts';

interface Offer {
  readonly reader: ValueReader;
  readonly onEnd: () => void;
  remainingBytes: number;
}

/** The results that one peer fetches part by part. */
export class OutgoingParts {
  private readonly offers = new Map<number, Offer>();
  private lastHandle = 0;

  /** Nothing is on offer. */
  get isIdle(): boolean {
    return this.offers.size === 0;
  }

  /**
   * @param onEnd - called once: all of it was read, it cannot be read, or it is no longer wanted
   * @returns the handle by which the peer reads it
   */
  offer(reader: ValueReader, onEnd: () => void): number {
    const handle = ++this.lastHandle;
    this.offers.set(handle, { reader, onEnd, remainingBytes: reader.nbytes });
    return handle;
  }

  /**
   * @param files - to write the part where the peer wants it
   * @throws YardmasterError `ERR_PROTOCOL`
   */
  read({ handle, nbytes, at }: WireMessage, files?: MemoryFiles): GetPartReply {
    if (typeof handle !== 'number' || !Number.isSafeInteger(nbytes) || (nbytes as number) < 1) {
      throw violation('a get-part without handle or size');
    }
    const offer = this.offers.get(handle);
    // More parts may have been asked for before the peer learnt that there are none.
    if (offer === undefined) return {};
    let bytes: Uint8Array;
    try {
      bytes = offer.reader.read(Math.min(nbytes as number, PART_BYTES));
    } catch {
      this.end(handle); // The store has reported it; the peer tries another holder.
      return {};
    }
    offer.remainingBytes -= bytes.byteLength;
    const isWritten = typeof at === 'number' && files?.write(at, bytes) === true;
    if (offer.remainingBytes <= 0) this.end(handle);
    return isWritten ? { written: bytes.byteLength } : { bytes };
  }

  /** Drops the handles that a peer gave up. */
  drop(handles: unknown): void {
    if (!Array.isArray(handles)) return;
    for (const handle of handles as unknown[]) this.end(handle as number);
  }

  close(): void {
    for (const handle of [...this.offers.keys()]) this.end(handle);
  }

  private end(handle: number): void {
    const offer = this.offers.get(handle);
    if (offer === undefined) return;
    this.offers.delete(handle);
    offer.reader.close();
    offer.onEnd();
  }
}

/** @param what - "a message without op" */
export function violation(what: string): YardmasterError {
  return new YardmasterError('ERR_PROTOCOL', `the peer sent ${what}`, { what });
}

/** While more than this waits to be read by a client, its next messages are not handled. */
const ANSWERS_BYTES_MAX = 64 * 1024 * 1024;

/** A client that reads nothing for this long, though much waits for it, is disconnected. */
const STALLED_MS = 60_000;

/**
 * Handles the messages of a client in order, and no further ones while the client does not read the
 * answers: few bytes of requests can ask for very many bytes of answers.
 */
export class SlowReader {
  private waiting: readonly WireMessage[] = [];
  private isHeld = false;
  private timer: Timer | undefined;

  constructor(
    private readonly connection: Connection,
    private readonly clock: Clock,
    private readonly handle: (message: WireMessage) => void,
  ) {}

  /** Messages of the client, in order. */
  take(batch: readonly WireMessage[]): void {
    if (this.isHeld) {
      this.waiting = this.waiting.concat(batch);
      return;
    }
    for (let index = 0; index < batch.length; index++) {
      this.handle(batch[index] as WireMessage);
      if (this.connection.bufferedBytes <= ANSWERS_BYTES_MAX) continue;
      this.hold(batch.slice(index + 1));
      return;
    }
  }

  /** Something is to be sent that the client has not asked for. False when the client is disconnected. */
  admits(): boolean {
    const { bufferedBytes } = this.connection;
    if (bufferedBytes <= UNREAD_BYTES_MAX) return true;
    this.disconnect(`has ${bufferedBytes} bytes to read`);
    return false;
  }

  /** The connection is over. */
  close(): void {
    this.timer?.cancel();
    this.waiting = [];
  }

  private hold(rest: readonly WireMessage[]): void {
    this.isHeld = true;
    this.waiting = rest;
    this.connection.holdIncoming?.(true);
    this.watch(this.connection.bufferedBytes);
    const read = this.connection.drained().then(() => this.release());
    inBackground(read, 'the messages of a client that had been slow could not be handled');
  }

  private release(): void {
    this.timer?.cancel();
    const { waiting } = this;
    this.waiting = [];
    this.isHeld = false;
    this.connection.holdIncoming?.(false);
    this.take(waiting);
  }

  private watch(bytesBefore: number): void {
    this.timer = setAwakeTimer(this.clock, STALLED_MS, () => {
      const { bufferedBytes } = this.connection;
      if (bufferedBytes < bytesBefore) this.watch(bufferedBytes);
      else this.disconnect(`read nothing for ${STALLED_MS} ms while answers waited for it`);
    });
  }

  private disconnect(why: string): void {
    const { peerAddress } = this.connection;
    this.connection.abort(
      new YardmasterError('ERR_TIMEOUT', `${peerAddress} was disconnected: it ${why}`, {
        peer: peerAddress,
      }),
    );
  }
}
