import { fetchData } from '../../core/shared/fetch-data.ts';
import { KeptChannels } from '../../core/shared/kept-channels.ts';
import type { ScatteredValue } from '../tasks/index.ts';
import { type Network, openChannelTo } from './open-channel.ts';

/** A serialised result. */
export type Serialised = Uint8Array | ScatteredValue;

type Allocate = (key: string, nbytes: number) => Serialised;
type Fetched = ReadonlyMap<string, Serialised>;

/** A worker that does not answer within this counts as gone. */
const ANSWER_TIMEOUT_MS = 60_000;

/** The connections of a client to workers. */
export class Peers extends KeptChannels {
  constructor(network: Network) {
    super('the client', (address, handlers) => openChannelTo(address, 'peer', network, handlers));
  }

  /**
   * The serialised results that the worker has of these.
   * @param allocate - as for {@link fetchData}
   * @throws YardmasterError `ERR_CONNECT`, `ERR_TIMEOUT`, `ERR_CLOSED`
   */
  async getData(address: string, keys: readonly string[], allocate: Allocate): Promise<Fetched> {
    const channel = await this.to(address);
    const options = { timeoutMs: ANSWER_TIMEOUT_MS, allocate };
    return (await fetchData(channel, keys, options)).values;
  }

  /** Gives serialised values to a worker. Errors as for {@link getData}. */
  async putData(address: string, values: ReadonlyMap<string, Uint8Array>): Promise<void> {
    const channel = await this.to(address);
    await channel.request(
      'put-data',
      { keys: [...values.keys()], values: [...values.values()] },
      ANSWER_TIMEOUT_MS,
    );
  }
}
