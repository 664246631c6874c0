import { type Channel, type ChannelHandlers, YardmasterError } from '../../core/api/index.ts';
import { fetchData } from '../../core/shared/fetch-data.ts';
import type { ScatteredValue } from '../tasks/index.ts';
import { type Network, openChannel } from './open-channel.ts';

/** A serialised result. */
export type Serialised = Uint8Array | ScatteredValue;

type Allocate = (key: string, nbytes: number) => Serialised;
type Fetched = ReadonlyMap<string, Serialised>;

/** A worker that does not answer within this counts as gone. */
const ANSWER_TIMEOUT_MS = 60_000;

/** Connections to workers: opened when first needed, kept, and closed with the client. */
export class Peers {
  private readonly channels = new Map<string, Promise<Channel>>();
  private isClosed = false;

  constructor(private readonly network: Network) {}

  /**
   * The serialised results that the worker has of these.
   * @param allocate - as for {@link fetchData}
   * @throws YardmasterError `ERR_CONNECT`, `ERR_TIMEOUT`, `ERR_CLOSED`
   */
  async getData(address: string, keys: readonly string[], allocate: Allocate): Promise<Fetched> {
    const channel = await this.channelTo(address);
    const options = { timeoutMs: ANSWER_TIMEOUT_MS, allocate };
    return (await fetchData(channel, keys, options)).values;
  }

  /** Gives serialised values to a worker. Errors as for {@link getData}. */
  async putData(address: string, values: ReadonlyMap<string, Uint8Array>): Promise<void> {
    const channel = await this.channelTo(address);
    await channel.request(
      'put-data',
      { keys: [...values.keys()], values: [...values.values()] },
      ANSWER_TIMEOUT_MS,
    );
  }

  async close(): Promise<void> {
    this.isClosed = true;
    const opened = [...this.channels.values()];
    this.channels.clear();
    await Promise.all(
      opened.map((opening) =>
        opening.then(
          (channel) => channel.close(),
          () => undefined, // Its users handle the rejection.
        ),
      ),
    );
  }

  /**
   * The shared connection to a worker.
   * @throws YardmasterError `ERR_CONNECT`, `ERR_TIMEOUT`, `ERR_CLOSED`
   */
  async channelTo(address: string): Promise<Channel> {
    if (this.isClosed) {
      throw new YardmasterError('ERR_CLOSED', 'the client is closed', { peer: address });
    }
    const known = this.channels.get(address);
    if (known !== undefined) return known;
    const forget = (): void => {
      if (this.channels.get(address) === opening) this.channels.delete(address);
    };
    const handlers: ChannelHandlers = {
      onMessage: () => undefined,
      onRequest: (method) => {
        throw new YardmasterError('ERR_PROTOCOL', `a client does not answer "${method}"`);
      },
      onClose: forget,
    };
    const opening = openChannel(address, 'peer', this.network, handlers);
    this.channels.set(address, opening);
    opening.catch(forget);
    const channel = await opening;
    if (channel.isClosed) forget();
    return channel;
  }
}
