import { token, type Token } from '../../api/plugin.ts';
import type {
  GatherReply,
  GetDataReply,
  OfferedParts,
  WhoHasReply,
  WhoHasRequest,
} from '../../messages/protocol.ts';
import { inject } from '../../plugin-host/injection/di.ts';
import type { ClusterState } from '../../state/cluster.ts';
import { CLUSTER } from '../tokens.ts';
import type { PartsRelay } from './parts-relay.ts';
import { WORKER_CHANNELS, type WorkerChannels } from './worker-channels.ts';

export const GATHERER: Token<Gatherer> = token('gatherer');

/** A worker that does not answer within this counts as one that does not have the results. */
const ANSWER_TIMEOUT_MS = 60_000;

/** What a gathering has found so far. */
interface Found {
  readonly values: Map<string, Uint8Array>;
  readonly parts: OfferedParts[];
  readonly relay: PartsRelay | undefined;
}

/** Finds results, and fetches them from workers on behalf of clients that cannot reach them. */
export class Gatherer {
  constructor(
    @inject(CLUSTER) private readonly cluster: ClusterState,
    @inject(WORKER_CHANNELS) private readonly channels: WorkerChannels,
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

  /** Whether all of them came, or were offered. */
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
