import type { Channel } from '../api/channel.ts';
import type {
  DropParts,
  GatherReply,
  GetDataReply,
  GetPartReply,
  GetPartRequest,
  OfferedParts,
  WhoHasReply,
  WhoHasRequest,
} from '../messages/protocol.ts';
import { collaborator } from '../plugin-host/injection.ts';
import { PART_BYTES } from '../shared/fetch-data.ts';
import { ClusterState } from '../state/cluster.ts';
import { WorkerChannels } from './worker-channels.ts';

/** A worker that does not answer within this counts as one that does not have the results. */
const ANSWER_TIMEOUT_MS = 60_000;

/** The results that a gathering has found so far. */
interface Found {
  readonly values: Map<string, Uint8Array>;
  readonly parts: OfferedParts[];
  readonly relay: PartsRelay | undefined;
}

/** Finds results, and fetches them from workers on behalf of clients that cannot reach them. */
@collaborator
export class Gatherer {
  constructor(
    private readonly cluster: ClusterState,
    private readonly channels: WorkerChannels,
  ) {}

  /** The addresses of the workers that have each key. */
  whoHas({ keys }: WhoHasRequest): WhoHasReply {
    const { tasks } = this.cluster;
    const holdersOf = (key: string): string[] =>
      (tasks.get(key)?.whoHas.items ?? []).map(({ address }) => address);
    return { keys, whoHas: keys.map(holdersOf) };
  }

  /**
   * Keys that no holder gives are left out of the answer.
   * @param relay - what workers rather send in parts is offered through it. Default: all is in the answer
   */
  async gather(keys: readonly string[], relay?: PartsRelay): Promise<GatherReply> {
    const values = new Map<string, Uint8Array>();
    const parts: OfferedParts[] = [];
    const found = { values, parts, relay };
    const failed = new Set<string>();
    let missing = [...new Set(keys)];
    while (missing.length > 0) {
      const plan = this.plan(missing, failed);
      if (plan.size === 0) break;
      const fetches = [...plan].map(([address, wanted]) => this.fetch(address, wanted, found));
      const complete = await Promise.all(fetches);
      [...plan.keys()].forEach((address, index) => {
        if (complete[index] !== true) failed.add(address);
      });
      const offered = new Set(parts.map(({ key }) => key));
      missing = missing.filter((key) => !values.has(key) && !offered.has(key));
    }
    const offers = parts.length === 0 ? {} : { parts };
    return { keys: [...values.keys()], values: [...values.values()], ...offers };
  }

  /**
   * Keys of the tasks that occupy a thread of a worker, cancelled ones included; none when it is gone.
   * @throws YardmasterError `ERR_CONNECT`, `ERR_TIMEOUT` when it does not answer
   */
  async executingOn(address: string): Promise<readonly string[]> {
    if (!this.cluster.workers.has(address)) return [];
    const channel = await this.channels.to(address);
    const { executing } = await channel.request<{ executing?: readonly string[] }>(
      'identity',
      {},
      ANSWER_TIMEOUT_MS,
    );
    return executing ?? [];
  }

  /** Which worker to ask for which keys: the first holder that has not failed. */
  private plan(keys: readonly string[], failed: ReadonlySet<string>): Map<string, string[]> {
    const plan = new Map<string, string[]>();
    for (const key of keys) {
      const holders = this.cluster.tasks.get(key)?.whoHas.items ?? [];
      const holder = holders.find(({ address }) => !failed.has(address));
      if (holder === undefined) continue;
      const wanted = plan.get(holder.address) ?? [];
      plan.set(holder.address, wanted);
      wanted.push(key);
    }
    return plan;
  }

  /** True when all of them came, or were offered. */
  private async fetch(
    address: string,
    keys: readonly string[],
    { values, parts, relay }: Found,
  ): Promise<boolean> {
    try {
      const channel = await this.channels.to(address);
      const request = { keys, inParts: relay !== undefined };
      const reply = await channel.request<GetDataReply>('get-data', request, ANSWER_TIMEOUT_MS);
      reply.keys.forEach((key, index) => {
        const value = reply.values[index];
        if (value !== undefined) values.set(key, value);
      });
      for (const part of reply.parts ?? []) {
        if (relay !== undefined) parts.push(relay.add(channel, part, ANSWER_TIMEOUT_MS));
      }
      return reply.keys.length + (reply.parts?.length ?? 0) === keys.length;
    } catch {
      return false; // Another holder is tried; a key without a value is missing in the answer.
    }
  }
}

interface Relayed {
  readonly channel: Channel;
  readonly handle: number;
  readonly timeoutMs: number;
  remainingBytes: number;
}

/**
 * Hands on parts of results from workers to a client that cannot reach them. Holds no more of a result
 * than the parts that the client has asked for.
 */
export class PartsRelay {
  private readonly relayed = new Map<number, Relayed>();
  private lastHandle = 0;
  private isClosed = false;

  /**
   * @param timeoutMs - within which the worker has to answer
   * @returns the offer as it is made to the client
   */
  add(channel: Channel, { key, nbytes, handle }: OfferedParts, timeoutMs: number): OfferedParts {
    const own = ++this.lastHandle;
    this.relayed.set(own, { channel, handle, timeoutMs, remainingBytes: nbytes });
    if (this.isClosed) this.end(own);
    return { key, nbytes, handle: own };
  }

  /** Never rejects: a worker that is gone has lost the result. */
  async read({ handle, nbytes }: GetPartRequest): Promise<GetPartReply> {
    const relayed = this.relayed.get(handle);
    if (relayed === undefined) return {};
    const { channel, timeoutMs } = relayed;
    const request = { handle: relayed.handle, nbytes: Math.min(nbytes, PART_BYTES) };
    try {
      const reply = await channel.request<GetPartReply>('get-part', request, timeoutMs);
      relayed.remainingBytes -= reply.bytes?.byteLength ?? Infinity;
      if (relayed.remainingBytes <= 0) this.relayed.delete(handle);
      return reply;
    } catch {
      this.relayed.delete(handle);
      return {};
    }
  }

  /** Drops the results that the client gave up. */
  drop({ handles }: DropParts): void {
    for (const handle of handles) this.end(handle);
  }

  /** The client is gone. What workers offer to it from now on is dropped at once. */
  close(): void {
    this.isClosed = true;
    for (const handle of [...this.relayed.keys()]) this.end(handle);
  }

  private end(own: number): void {
    const relayed = this.relayed.get(own);
    if (relayed === undefined) return;
    this.relayed.delete(own);
    const { channel, handle } = relayed;
    if (!channel.isClosed) channel.send({ op: 'drop-parts', handles: [handle] });
  }
}
