import { token, type Token } from '../api/plugin.ts';
import type { Clock } from '../api/clock.ts';
import { inject } from '../plugin-host/injection/di.ts';
import { YardmasterError } from '../api/errors.ts';
import type { Transport } from '../api/transport.ts';
import { KeptChannels } from '../shared/kept-channels.ts';
import { openChannel } from '../shared/open-channel.ts';

export const NETWORK: Token<Network> = token('network');
export const PEER_CHANNELS: Token<PeerChannels> = token('peer-channels');

/** How to reach others. */
export interface Network {
  readonly clock: Clock;
  readonly transports: ReadonlyMap<string, Transport>;
  /** Milliseconds for a connection to be made, and for it to be answered. */
  readonly connectTimeoutMs: number;
}

/** @throws YardmasterError `ERR_CONNECT` when none speaks the scheme of the address */
export function transportFor({ transports }: Network, address: string): Transport {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(address)?.[1]?.toLowerCase() ?? '';
  const transport = transports.get(scheme);
  if (transport !== undefined) return transport;
  const known = [...transports.keys()].map((name) => `${name}://`).join(', ');
  throw new YardmasterError(
    'ERR_CONNECT',
    `no transport speaks the scheme of ${JSON.stringify(address)}; this worker knows ${known}`,
    { address },
  );
}

/** Connections to other workers. */
export class PeerChannels extends KeptChannels {
  constructor(@inject(NETWORK) network: Network) {
    super('this worker', async (address, handlers) => {
      const transport = transportFor(network, address);
      const { clock, connectTimeoutMs: timeoutMs } = network;
      return openChannel({ transport, address, role: 'peer', clock, timeoutMs }, handlers);
    });
  }
}
