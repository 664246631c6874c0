import { Channel, type ChannelHandlers } from '../api/channel.ts';
import type { Clock } from '../api/clock.ts';
import { YardmasterError } from '../api/errors.ts';
import {
  type GatherReply,
  type GetDataReply,
  type OfferedParts,
  PROTOCOL,
} from '../messages/protocol.ts';
import type { ClusterState } from '../state/cluster.ts';
import type { PartsRelay } from './parts-relay.ts';
import type { TransportTable } from '../host/transport-table.ts';
import { VERSION } from '../api/version.ts';

/** Time for a connection to a worker to be made and answered. */
const CONNECT_TIMEOUT_MS = 10_000;

/** A worker that does not answer within this counts as one that does not have the results. */
const ANSWER_TIMEOUT_MS = 60_000;

/** What a gathering has found so far. */
interface Found {
  readonly values: Map<string, Uint8Array>;
  readonly parts: OfferedParts[];
  readonly relay: PartsRelay | undefined;
}

/**
 * Fetches results from workers on behalf of clients that cannot reach them. Connections are kept
 * until their worker leaves, which ends what waits for it.
 */
export class Gatherer {
  private readonly channels = new Map<string, Promise<Channel>>();
  private isClosed = false;

  constructor(
    private readonly cluster: ClusterState,
    private readonly clock: Clock,
    private readonly transports: TransportTable,
  ) {}

  /** Connections to workers that are open, or being opened. */
  get connectionCount(): number {
    return this.channels.size;
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
    const channel = await this.channelTo(address);
    const { executing } = await channel.request<{ executing?: readonly string[] }>(
      'identity',
      {},
      ANSWER_TIMEOUT_MS,
    );
    return executing ?? [];
  }

  /** A worker left: whatever waits for it fails now. */
  drop(address: string): void {
    const opening = this.channels.get(address);
    this.channels.delete(address);
    const gone = new YardmasterError('ERR_CLOSED', `the worker ${address} left`, {
      worker: address,
    });
    opening?.then(
      (channel) => channel.abort(gone),
      () => undefined, // Its users handle the rejection.
    );
  }

  close(): void {
    this.isClosed = true;
    for (const address of [...this.channels.keys()]) this.drop(address);
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
      const channel = await this.channelTo(address);
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

  private channelTo(address: string): Promise<Channel> {
    if (this.isClosed) {
      return Promise.reject(new YardmasterError('ERR_CLOSED', 'the scheduler is closed'));
    }
    const known = this.channels.get(address);
    if (known !== undefined) return known;
    const forget = (): void => {
      if (this.channels.get(address) === opening) this.channels.delete(address);
    };
    const opening = this.open(address, forget);
    this.channels.set(address, opening);
    opening.catch(forget);
    return opening;
  }

  private async open(address: string, onClose: () => void): Promise<Channel> {
    const handlers: ChannelHandlers = {
      onMessage: () => undefined,
      onRequest: (method) => {
        throw new YardmasterError('ERR_PROTOCOL', `a peer does not answer "${method}"`, { method });
      },
      onClose,
    };
    const transport = await this.transports.for(address);
    let channel: Channel | undefined;
    await transport.connect(
      address,
      (connection) => (channel = new Channel(connection, this.clock, handlers)),
      { timeoutMs: CONNECT_TIMEOUT_MS },
    );
    const opened = channel as unknown as Channel;
    try {
      const hello = { protocol: PROTOCOL, role: 'peer', version: VERSION };
      await opened.request('hello', hello, CONNECT_TIMEOUT_MS);
    } catch (error) {
      opened.abort(error as Error);
      throw error;
    }
    return opened;
  }
}
