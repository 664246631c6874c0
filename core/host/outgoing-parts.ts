import { PART_BYTES } from '../shared/fetch-data.ts';
import { YardmasterError } from '../api/errors.ts';
import type { ValueReader } from '../api/executor.ts';
import type { WireMessage } from '../api/transport.ts';
import type { GetPartReply } from '../messages/protocol.ts';

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

  /** @throws YardmasterError `ERR_PROTOCOL` */
  read({ handle, nbytes }: WireMessage): GetPartReply {
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
    if (offer.remainingBytes <= 0) this.end(handle);
    return { bytes };
  }

  /** What a peer gave up. */
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

function violation(what: string): YardmasterError {
  return new YardmasterError('ERR_PROTOCOL', `the peer sent ${what}`, { what });
}
