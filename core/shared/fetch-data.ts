import type {
  GetDataReply,
  GetPartReply,
  GetPartRequest,
  OfferedParts,
  ShareFileReply,
  ShareFileRequest,
} from '../messages/protocol.ts';
import type { Channel } from '../api/channel.ts';
import { YardmasterError } from '../api/errors.ts';
import type { MemoryFiles } from '../api/transport.ts';

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
  const places = method === 'get-data' ? await sharedPlaces(channel, timeoutMs) : undefined;
  await new PartsFetch(channel, options, { values, lost }, places).fetch(reply.parts);
  return { isBusy: false, values, runIds, type, lost };
}

/** Parts of one channel that lie in the memory file at the same time; further ones come through the channel. */
const PLACES_MAX = 4 * PARTS_UNDER_WAY;

/** Places for parts in the memory file of this side, which the peer of a channel has opened. */
class SharedPlaces {
  private readonly free: number[] = [];
  private count = 0;
  /** For parts that are not read to where they belong at once. */
  private scratch: Uint8Array | undefined;

  constructor(private readonly files: MemoryFiles) {}

  /** Undefined: all are taken. The one that was freed last is likely to be in the cache of the processor. */
  take(): number | undefined {
    const place = this.free.pop();
    if (place !== undefined || this.count === PLACES_MAX) return place;
    return ++this.count * PART_BYTES;
  }

  /** Brings a part that the peer has written at a place to where it belongs. */
  read(place: number, nbytes: number, target: PartsTarget, from: number): void {
    const isMemory = target instanceof Uint8Array;
    const part = isMemory
      ? target.subarray(from, from + nbytes)
      : (this.scratch ??= new Uint8Array(PART_BYTES)).subarray(0, nbytes);
    this.files.read(place, part);
    if (!isMemory) target.set(part, from);
  }

  /** To be called when the peer has answered, and only then: else it may still write there. */
  giveBack(place: number): void {
    this.free.push(place);
    if (this.free.length < this.count) return;
    this.free.length = this.count = 0;
    this.files.clear();
  }
}

const places = new WeakMap<Channel, Promise<SharedPlaces | undefined>>();

/** Of a channel. Undefined: the peer is on another machine, or the system has no memory files. Asks the peer once. */
function sharedPlaces(channel: Channel, timeoutMs: number): Promise<SharedPlaces | undefined> {
  let found = places.get(channel);
  if (found === undefined) places.set(channel, (found = shareFile(channel, timeoutMs)));
  return found;
}

async function shareFile(channel: Channel, timeoutMs: number): Promise<SharedPlaces | undefined> {
  const { memoryFiles } = channel;
  const name = memoryFiles?.offer();
  if (memoryFiles === undefined || name === undefined) return undefined;
  const { path, proof } = name;
  try {
    const request = { path, proof } satisfies ShareFileRequest;
    const reply = await channel.request<ShareFileReply>('share-file', request, timeoutMs);
    return reply.isShared ? new SharedPlaces(memoryFiles) : undefined;
  } catch {
    return undefined; // Whatever is wrong with the channel, the next request tells it.
  }
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
    private readonly places: SharedPlaces | undefined,
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

  private ask(part: OfferedParts, target: PartsTarget, from: number): void {
    const { channel, places } = this;
    const { key, handle } = part;
    const nbytes = Math.min(PART_BYTES, part.nbytes - from);
    const at = places?.take();
    const request = {
      handle,
      nbytes,
      ...(at === undefined ? {} : { at }),
    } satisfies GetPartRequest;
    const asked = channel
      .request<GetPartReply | undefined>('get-part', request, this.options.timeoutMs)
      .then((reply) => {
        const { bytes, written } = typeof reply === 'object' ? reply : { bytes: NO_BYTES };
        if (bytes === undefined && written === undefined) this.found.lost.add(key);
        else if (bytes === undefined && written === nbytes && at !== undefined) {
          places?.read(at, nbytes, target, from);
        } else if (bytes instanceof Uint8Array && bytes.byteLength === nbytes) {
          target.set(bytes, from);
          if (!channel.giveBack(bytes)) this.options.onGarbage?.(nbytes);
        } else {
          throw nonsense(channel, `answered get-part with something else than ${nbytes} bytes`);
        }
        if (at !== undefined) places?.giveBack(at);
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
