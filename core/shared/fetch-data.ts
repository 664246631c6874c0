import type { GetDataReply, GetPartReply, OfferedParts } from '../messages/protocol.ts';
import type { Channel } from '../api/channel.ts';
import { YardmasterError } from '../api/errors.ts';

/** Bytes of one part of a large result. */
export const PART_BYTES = 512 * 1024;

/** Of no part: those that are asked for have at least one byte. */
const NO_BYTES = new Uint8Array(0);

/** Parts that are asked for before the first of them has come. */
const PARTS_UNDER_WAY = 4;

/** The target in which a result that comes in parts is collected; a `Uint8Array` is one. */
export interface PartsTarget {
  /** Copies some bytes of it. They come in their order. @throws Error when there is no memory for it */
  set(bytes: Uint8Array, at: number): void;
}

export interface FetchDataOptions<Target extends PartsTarget = Uint8Array> {
  /**
   * True when the peer may answer that it is busy, in which case the caller tries again. Default
   * false.
   */
  readonly mayBeBusy?: boolean;
  /** Milliseconds within which each answer, and each part, has to come. Default Infinity. */
  readonly timeoutMs?: number;
  /**
   * Allocates memory for a result that arrives in parts, which are written directly into it.
   * Default: a new `ArrayBuffer`. @throws Error when there is no memory
   */
  readonly allocate?: (key: string, nbytes: number) => Target;
  /** Called with the number of bytes of received frames that nothing refers to any more. */
  readonly onGarbage?: (nbytes: number) => void;
  /** True when results of a peer in this process are taken as they are, in the memory of the peer. Default false. */
  readonly byReference?: boolean;
  /** The name of the request: `gather` asks a scheduler. Default `get-data`. */
  readonly method?: 'get-data' | 'gather';
}

/** The outcome of a request for results. */
interface FetchedData<Target extends PartsTarget = Uint8Array> {
  /** Nothing came, because the peer is sending too much already. */
  readonly isBusy: boolean;
  /** Serialised results; those that the peer does not have are left out. */
  readonly values: ReadonlyMap<string, Uint8Array | Target>;
  /** Of the runs that computed the results, as far as the peer says it. */
  readonly runIds: ReadonlyMap<string, number>;
  /** Of all results, as far as the peer says it. */
  readonly type?: string | undefined;
  /** Keys of results that the peer offered, but could not give to the end. */
  readonly lost: ReadonlySet<string>;
}

/**
 * Fetches results over a channel. Large ones come in parts, a few of which are under way at a time: a
 * sender never has more than that in its buffers, and each part goes straight to where it belongs.
 *
 * @throws YardmasterError `ERR_PROTOCOL` when the answer is nonsense, `ERR_TIMEOUT`, `ERR_CLOSED`
 * @throws RemoteError what the peer answered
 */
export async function fetchData<Target extends PartsTarget = Uint8Array>(
  channel: Channel,
  keys: readonly string[],
  options: FetchDataOptions<Target> = {},
): Promise<FetchedData<Target>> {
  const { mayBeBusy = false, timeoutMs = Infinity, method = 'get-data' } = options;
  const inParts = options.byReference !== true || !channel.sharesMemory;
  const reply = await channel.request<GetDataReply>(
    method,
    { keys, mayBeBusy, inParts },
    timeoutMs,
  );
  checkReply(channel, reply);
  const values = new Map<string, Uint8Array | Target>();
  const lost = new Set<string>();
  const runIds = new Map<string, number>();
  if (reply.busy === true) return { isBusy: true, values, runIds, lost };
  const wanted = new Set(keys);
  for (const [index, key] of reply.keys.entries()) {
    const value = reply.values[index];
    if (wanted.has(key) && value !== undefined) values.set(key, value);
    runIds.set(key, reply.runIds?.[index] ?? -1);
  }
  const { type } = reply;
  if (reply.parts === undefined) return { isBusy: false, values, runIds, type, lost };
  for (const { key, runId = -1 } of reply.parts) {
    runIds.set(key, runId);
    if (!wanted.has(key)) throw nonsense(channel, `offered "${key}", which was not requested`);
  }
  await new PartsFetch(channel, options, { values, lost }).fetch(reply.parts);
  return { isBusy: false, values, runIds, type, lost };
}

/** One transfer of results that come in parts. */
class PartsFetch<Target extends PartsTarget> {
  private readonly underWay: Promise<void>[] = [];

  constructor(
    private readonly channel: Channel,
    private readonly options: FetchDataOptions<Target>,
    private readonly found: {
      readonly values: Map<string, Uint8Array | Target>;
      readonly lost: Set<string>;
    },
  ) {}

  async fetch(parts: readonly OfferedParts[]): Promise<void> {
    const { allocate = newBytes } = this.options;
    const { values, lost } = this.found;
    try {
      for (const part of parts) {
        const { key, nbytes } = part;
        const target = allocate(key, nbytes);
        for (let at = 0; at < nbytes && !lost.has(key); at += PART_BYTES) {
          if (this.underWay.length >= PARTS_UNDER_WAY) await this.underWay.shift();
          this.ask(part, target, at);
        }
        values.set(key, target);
      }
      await Promise.all(this.underWay);
    } catch (error) {
      // The peer keeps parts until they are fetched, so it is informed of those that will not be.
      this.channel.send({ op: 'drop-parts', handles: parts.map(({ handle }) => handle) });
      throw error;
    }
    for (const key of lost) values.delete(key);
  }

  private ask(part: OfferedParts, target: PartsTarget, at: number): void {
    const { key, handle } = part;
    const nbytes = Math.min(PART_BYTES, part.nbytes - at);
    const asked = this.channel
      .request<GetPartReply | undefined>('get-part', { handle, nbytes }, this.options.timeoutMs)
      .then((reply) => {
        const bytes = typeof reply === 'object' ? reply.bytes : NO_BYTES;
        if (bytes === undefined) {
          this.found.lost.add(key);
          return;
        }
        if (!(bytes instanceof Uint8Array) || bytes.byteLength !== nbytes) {
          throw nonsense(
            this.channel,
            `answered get-part with something else than ${nbytes} bytes`,
          );
        }
        target.set(bytes, at);
        if (!this.channel.giveBack(bytes)) this.options.onGarbage?.(nbytes);
      });
    asked.catch(() => undefined); // The first failure is reported, later ones are not.
    this.underWay.push(asked);
  }
}

function newBytes(_key: string, nbytes: number): Uint8Array {
  return new Uint8Array(nbytes);
}

function checkReply(channel: Channel, reply: unknown): asserts reply is GetDataReply {
  const { keys, values, type = '', parts = [] } = (reply ?? {}) as Partial<Record<string, unknown>>;
  const isSound =
    Array.isArray(keys) &&
    Array.isArray(values) &&
    keys.length === values.length &&
    keys.every((key) => typeof key === 'string') &&
    values.every((value) => value instanceof Uint8Array) &&
    typeof type === 'string' &&
    Array.isArray(parts) &&
    parts.every(isOffer);
  if (!isSound) throw nonsense(channel, 'answered get-data without results');
}

function isOffer(given: unknown): boolean {
  const { key, nbytes, handle } = (given ?? {}) as Partial<Record<string, unknown>>;
  return typeof key === 'string' && isCount(nbytes) && isCount(handle);
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function nonsense({ peerAddress }: Channel, what: string): YardmasterError {
  return new YardmasterError('ERR_PROTOCOL', `${peerAddress} ${what}; it may be broken`, {
    peer: peerAddress,
  });
}
