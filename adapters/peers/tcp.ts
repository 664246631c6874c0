import { type Clock, defineTransport, type TransportDefinition } from '../../core/api/index.ts';
import {
  type ForeignListener,
  type ForeignPeers,
  tcp as plainTcp,
  type TcpOptions,
  TcpTransport,
} from '../transports/tcp/index.ts';

/**
 * The TCP transport, which also connects with workers of Dask: on such a connection their results can be
 * fetched.
 * @param answer - see `ForeignPeers`
 */
export function tcpWithDask(
  clock: Clock,
  options: TcpOptions = {},
  answer?: ForeignPeers['answer'],
): TcpTransport {
  const connect = async (listener: ForeignListener): ReturnType<TcpTransport['connect']> => {
    const { address, open, timeoutMs, protocol, refusal } = listener;
    if (protocol !== 'Dask') throw refusal;
    const { connectDaskPeer } = await import('../dask/dask-peer.ts');
    return connectDaskPeer(address, open, { clock, timeoutMs, refusal }).catch(() => {
      throw refusal;
    });
  };
  return new TcpTransport(clock, options, { connect, ...(answer && { answer }) });
}

/** The definition that a config file names: `transport: { use: tcp }`. */
export const tcp: TransportDefinition<TcpOptions> = defineTransport({
  ...plainTcp,
  create: ({ clock }, options: TcpOptions) => tcpWithDask(clock, options),
});
