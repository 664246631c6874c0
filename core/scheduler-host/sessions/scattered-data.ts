import { YardmasterError } from '../../api/errors.ts';
import { NAMES_BYTES_MAX, tooManyNames } from './names-limit.ts';

interface Size {
  /** Of the data. */
  readonly nbytes: number;
  /** Of its key and fingerprint. */
  readonly namesBytes: number;
}

/** What one client has there, and the sums of that. */
interface Share {
  readonly sizes: Map<string, Size>;
  nbytes: number;
  namesBytes: number;
}

/** What each client has put on workers or is about to put there, by the sizes that it states. */
export class ScatteredData {
  private readonly shares = new Map<string, Share>();

  /** @param bytesMax - for each client */
  constructor(private readonly bytesMax: number) {}

  /**
   * All or none. Data that the client has there already is not counted twice.
   * @throws YardmasterError `ERR_QUOTA`
   */
  reserve(
    client: string,
    keys: readonly string[],
    fingerprints: readonly string[],
    sizes: readonly number[],
  ): void {
    const share = this.shares.get(client) ?? { sizes: new Map(), nbytes: 0, namesBytes: 0 };
    const added = new Map<string, Size>();
    let [nbytes, namesBytes] = [0, 0];
    keys.forEach((key, index) => {
      if (share.sizes.has(key) || added.has(key)) return;
      const fingerprint = fingerprints[index] ?? '';
      const size = { nbytes: sizes[index] ?? 0, namesBytes: key.length + fingerprint.length };
      added.set(key, size);
      nbytes += size.nbytes;
      namesBytes += size.namesBytes;
    });
    if (share.nbytes + nbytes > this.bytesMax) throw tooMuch(client, share, nbytes, this.bytesMax);
    if (share.namesBytes + namesBytes > NAMES_BYTES_MAX) {
      throw tooManyNames(client, 'of data that was scattered');
    }
    if (added.size === 0) return;
    this.shares.set(client, share);
    for (const [key, size] of added) share.sizes.set(key, size);
    share.nbytes += nbytes;
    share.namesBytes += namesBytes;
  }

  /** The client does not keep it any more. Keys of other things do no harm. O(keys). */
  release(client: string, keys: readonly string[]): void {
    const share = this.shares.get(client);
    if (share === undefined) return;
    for (const key of keys) {
      const size = share.sizes.get(key);
      if (size === undefined) continue;
      share.nbytes -= size.nbytes;
      share.namesBytes -= size.namesBytes;
      share.sizes.delete(key);
    }
    if (share.sizes.size === 0) this.shares.delete(client);
  }

  /** The client is gone. */
  leave(client: string): void {
    this.shares.delete(client);
  }

  /** Nothing is stored any more. */
  clear(): void {
    this.shares.clear();
  }
}

function tooMuch(
  client: string,
  { nbytes: usedBytes }: Share,
  nbytes: number,
  limitBytes: number,
): YardmasterError {
  return new YardmasterError(
    'ERR_QUOTA',
    `the client ${client} cannot put another ${nbytes} bytes on workers: it has ${usedBytes} of ${limitBytes} bytes there; release what is not needed, have tasks load the data, or raise scheduler.limits.scattered`,
    { client, nbytes, usedBytes, limitBytes },
  );
}
