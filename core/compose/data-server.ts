import { Channel, type ChannelHandlers } from '../api/channel.ts';
import type { Clock } from '../api/clock.ts';
import { YardmasterError } from '../api/errors.ts';
import type { DataStore } from '../api/executor.ts';
import type { Connection, ConnectionHandlers, WireMessage } from '../api/transport.ts';
import {
  type GetDataReply,
  type HelloReply,
  PROTOCOL,
  type PutDataReply,
} from '../messages/protocol.ts';
import { VERSION } from '../api/version.ts';

/** What peers and clients are served by. */
export interface DataServerOptions {
  readonly serverId: string;
  readonly clock: Clock;
  readonly store: DataStore;
  /** Answers to workers under way, beyond which these are told to come back. */
  readonly outgoingMax: () => number;
  /** Takes in what a client has sent. @throws YardmasterError when it refuses */
  readonly onPutData: (keys: readonly string[], values: readonly Uint8Array[]) => void;
  readonly identity: () => WireMessage;
}

/** The side of a worker that gives results to others. */
export class DataServer {
  private readonly channels = new Set<Channel>();
  /** Answers that have not left this process. */
  private outgoingCount = 0;

  constructor(private readonly options: DataServerOptions) {}

  accept(connection: Connection): ConnectionHandlers {
    let isGreeted = false;
    const handlers: ChannelHandlers = {
      onMessage: () => undefined, // Peers have nothing to say but requests.
      onRequest: (method, parameters) => {
        if (method === 'hello') {
          const reply = this.hello(parameters);
          isGreeted = true;
          return reply;
        }
        if (!isGreeted) throw violation(`"${method}" before hello`);
        return this.answer(channel, method, parameters);
      },
      onClose: () => {
        this.channels.delete(channel);
      },
    };
    const channel = new Channel(connection, this.options.clock, handlers);
    this.channels.add(channel);
    return channel;
  }

  /** Ends all connections. */
  async close(): Promise<void> {
    await Promise.allSettled([...this.channels].map((channel) => channel.close()));
  }

  /** Drops all connections. */
  abort(reason: Error): void {
    for (const channel of this.channels) channel.abort(reason);
  }

  private hello({ protocol, version }: WireMessage): HelloReply {
    if (protocol === PROTOCOL) {
      return { protocol: PROTOCOL, version: VERSION, serverId: this.options.serverId };
    }
    throw new YardmasterError(
      'ERR_PROTOCOL',
      `the peer speaks ${String(protocol)} (version ${String(version)}), this worker ${PROTOCOL} (version ${VERSION}); install the same version on both sides`,
      { theirs: protocol, ours: PROTOCOL },
    );
  }

  private answer(channel: Channel, method: string, parameters: WireMessage): unknown {
    switch (method) {
      case 'get-data':
        return this.getData(channel, parameters);
      case 'put-data':
        return this.putData(parameters);
      case 'identity':
        return this.options.identity();
      default:
        throw violation(`the request "${method}", which workers do not answer`);
    }
  }

  private getData(channel: Channel, { keys, mayBeBusy }: WireMessage): GetDataReply {
    checkKeys('get-data', keys);
    const isBusy = this.outgoingCount >= this.options.outgoingMax();
    if (isBusy && mayBeBusy === true) return { keys: [], values: [], busy: true };
    const found: string[] = [];
    const values: Uint8Array[] = [];
    for (const key of keys) {
      const value = this.options.store.get(key);
      if (value === undefined) continue;
      found.push(key);
      values.push(value);
    }
    this.outgoingCount++;
    const release = (): void => {
      this.outgoingCount--;
    };
    // The channel sends the answer when this returns; it counts until it has left.
    queueMicrotask(() => void channel.drained().then(release, release));
    return { keys: found, values };
  }

  private putData({ keys, values }: WireMessage): PutDataReply {
    checkKeys('put-data', keys);
    const isComplete =
      Array.isArray(values) &&
      values.length === keys.length &&
      values.every((value) => value instanceof Uint8Array);
    if (!isComplete) throw violation('a put-data whose values do not match its keys');
    const given: readonly Uint8Array[] = values;
    this.options.onPutData(keys, given);
    return { nbytes: given.map((value) => value.byteLength) };
  }
}

function checkKeys(method: string, keys: unknown): asserts keys is readonly string[] {
  if (Array.isArray(keys) && keys.every((key) => typeof key === 'string')) return;
  throw violation(`a ${method} without keys`);
}

function violation(what: string): YardmasterError {
  return new YardmasterError('ERR_PROTOCOL', `the peer sent ${what}`, { what });
}
