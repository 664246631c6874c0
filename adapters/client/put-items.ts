import type { Peers } from '../peers/peers.ts';

/** Values that travel in one message unless one alone has more bytes. */
const BATCH_BYTES_MAX = 32 * 1024 * 1024;

/** A value that is to be put on workers. */
export interface Item {
  readonly key: string;
  readonly bytes: Uint8Array;
  readonly type: string;
  readonly definition: string;
  /** Addresses. */
  readonly workers: string[];
}

/** The outcome of putting items on workers. */
interface PutOutcome {
  /** The items, each with the workers that have taken it. */
  readonly placed: readonly Item[];
  /** The items that were refused somewhere, each with the workers that have not taken it. */
  readonly left: readonly Item[];
  /** The error of one worker; undefined: all have taken everything. */
  readonly failed: Error | undefined;
}

/** Puts each item on its workers, which are tried independently. Never rejects. */
export async function putItems(
  peers: Peers,
  items: readonly Item[],
  messageBytesMax: number,
): Promise<PutOutcome> {
  const byWorker = new Map<string, Map<string, Uint8Array>>();
  for (const { key, bytes, workers } of items) {
    for (const address of workers) {
      let values = byWorker.get(address);
      values ??= new Map<string, Uint8Array>();
      byWorker.set(address, values);
      values.set(key, bytes);
    }
  }
  const bytesMax = Math.min(BATCH_BYTES_MAX, messageBytesMax / 2);
  let failed: Error | undefined;
  await Promise.all(
    [...byWorker].map(async ([address, values]) => {
      try {
        for (const batch of inBatches(values, bytesMax)) {
          await peers.putData(address, batch);
          for (const key of batch.keys()) values.delete(key);
        }
      } catch (error) {
        failed ??= error as Error;
      }
    }),
  );
  const isLeft = (key: string, address: string): boolean =>
    byWorker.get(address)?.has(key) === true;
  const placed = items.map((item) => ({
    ...item,
    workers: item.workers.filter((address) => !isLeft(item.key, address)),
  }));
  const left = items.map((item) => ({
    ...item,
    workers: item.workers.filter((address) => isLeft(item.key, address)),
  }));
  return { placed, left: left.filter(({ workers }) => workers.length > 0), failed };
}

/** Splits the values into messages of at most this many bytes. */
function inBatches(
  values: ReadonlyMap<string, Uint8Array>,
  bytesMax: number,
): Map<string, Uint8Array>[] {
  const batches: Map<string, Uint8Array>[] = [];
  let batch = new Map<string, Uint8Array>();
  let nbytes = 0;
  for (const [key, bytes] of values) {
    if (batch.size > 0 && nbytes + bytes.byteLength > bytesMax) {
      batches.push(batch);
      batch = new Map();
      nbytes = 0;
    }
    batch.set(key, bytes);
    nbytes += bytes.byteLength;
  }
  if (batch.size > 0) batches.push(batch);
  return batches;
}
