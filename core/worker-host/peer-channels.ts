import { Channel, type ChannelHandlers } from '../api/channel.ts';
import { token, type Token } from '../api/plugin.ts';
import type { Clock } from '../api/clock.ts';
import { inject } from '../plugin-host/injection/di.ts';
import { YardmasterError } from '../api/errors.ts';
import type { Transport } from '../api/transport.ts';
import { type HelloReply, PROTOCOL, type Role } from '../messages/protocol.ts';
import { VERSION } from '../api/version.ts';

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

/**
 * Connects and introduces itself.
 * @param onBatchEnd - called after all messages that came together were handled
 * @throws YardmasterError `ERR_CONNECT`, `ERR_TIMEOUT`, `ERR_PROTOCOL`, `ERR_CLOSED`
 */
export async function openChannel(
  network: Network,
  to: {
    readonly address: string;
    readonly role: Role;
    /** Who answered. */
    readonly onHello?: (reply: HelloReply) => void;
  },
  handlers: ChannelHandlers,
  onBatchEnd?: () => void,
): Promise<Channel> {
  const { address, role } = to;
  const timeoutMs = network.connectTimeoutMs;
  const made: { channel?: Channel } = {};
  await transportFor(network, address).connect(
    address,
    (connection) => {
      const opened = new Channel(connection, network.clock, handlers);
      made.channel = opened;
      if (onBatchEnd === undefined) return opened;
      return {
        onMessages: (batch) => {
          opened.onMessages(batch);
          onBatchEnd();
        },
        onClose: (error) => opened.onClose(error),
      };
    },
    { timeoutMs },
  );
  const opened = made.channel;
  if (opened === undefined) {
    throw new YardmasterError('ERR_CONNECT', `nothing was opened by connecting to ${address}`);
  }
  try {
    const hello = { protocol: PROTOCOL, role, version: VERSION };
    const reply = await opened.request<HelloReply>('hello', hello, timeoutMs);
    if (reply.protocol === PROTOCOL) {
      to.onHello?.(reply);
      return opened;
    }
    throw new YardmasterError(
      'ERR_PROTOCOL',
      `${address} speaks ${reply.protocol} (version ${reply.version}), this worker ${PROTOCOL} (version ${VERSION}); install the same version on both sides`,
      { theirs: reply.protocol, ours: PROTOCOL },
    );
  } catch (error) {
    opened.abort(error as Error);
    throw error;
  }
}

/** Connections to other workers: opened when first needed, then kept until the peer leaves. */
export class PeerChannels {
  private readonly channels = new Map<string, Promise<Channel>>();
  private isClosed = false;

  constructor(@inject(NETWORK) private readonly network: Network) {}

  /** Connections that are open, or being opened. */
  get count(): number {
    return this.channels.size;
  }

  /** @throws YardmasterError as {@link openChannel} */
  to(address: string): Promise<Channel> {
    if (this.isClosed) return Promise.reject(gone(address, 'this worker closes'));
    const known = this.channels.get(address);
    if (known !== undefined) return known;
    const forget = (): void => {
      if (this.channels.get(address) === opening) this.channels.delete(address);
    };
    const opening = openChannel(
      this.network,
      { address, role: 'peer' },
      {
        onMessage: () => undefined,
        onRequest: (method) => {
          throw new YardmasterError('ERR_PROTOCOL', `the fetching side does not answer ${method}`);
        },
        onClose: forget,
      },
    );
    this.channels.set(address, opening);
    opening.catch(forget);
    return opening;
  }

  /** Ends what waits for a peer that is gone. */
  drop(address: string, why = 'the scheduler says that it is gone'): void {
    const opening = this.channels.get(address);
    this.channels.delete(address);
    opening?.then(
      (channel) => channel.abort(gone(address, why)),
      () => undefined, // Its users handle the rejection.
    );
  }

  close(): void {
    this.isClosed = true;
    for (const address of [...this.channels.keys()]) this.drop(address, 'this worker closes');
  }
}

function gone(address: string, why: string): YardmasterError {
  return new YardmasterError('ERR_CLOSED', `the connection to ${address} ended: ${why}`, {
    peer: address,
  });
}
