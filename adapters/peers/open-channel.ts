import {
  type Channel,
  type ChannelHandlers,
  type Clock,
  type Role,
  type Transport,
  YardmasterError,
} from '../../core/api/index.ts';
import { openChannel } from '../../core/shared/open-channel.ts';

/** Ways to reach others, and how long to try. */
export interface Network {
  readonly clock: Clock;
  /** By scheme. Default: `tcp`, loaded when first needed. */
  readonly transports: readonly Transport[];
  /** Milliseconds for a connection to be made and answered. */
  readonly timeoutMs: number;
}

/**
 * Connects and introduces this side.
 * @throws YardmasterError `ERR_CONNECT`, `ERR_TIMEOUT`, `ERR_PROTOCOL`
 */
export async function openChannelTo(
  address: string,
  role: Role,
  { clock, transports, timeoutMs }: Network,
  handlers: ChannelHandlers,
): Promise<Channel> {
  const transport = await transportFor(address, transports, clock);
  return openChannel({ transport, address, role, clock, timeoutMs }, handlers);
}

async function transportFor(
  address: string,
  transports: readonly Transport[],
  clock: Clock,
): Promise<Transport> {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//.exec(address)?.[1];
  const found = transports.find((transport) => transport.scheme === scheme);
  if (found !== undefined) return found;
  if (scheme === 'tcp') {
    const { tcp } = await import('../dask/interop/tcp.ts');
    return tcp.create({ clock }, {});
  }
  if (scheme === 'tls') {
    const { tls } = await import('../transports/tls/index.ts');
    return tls.create({ clock }, {});
  }
  const known = [...transports.map((transport) => transport.scheme), 'tcp'].join(', ');
  throw new YardmasterError(
    'ERR_CONNECT',
    `"${address}" is not an address that this client can reach; use one like tcp://127.0.0.1:8786 (schemes: ${known})`,
    { address },
  );
}
