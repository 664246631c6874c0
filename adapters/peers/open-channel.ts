import {
  Channel,
  type ChannelHandlers,
  type Clock,
  type HelloReply,
  PROTOCOL,
  type Role,
  type Transport,
  YardmasterError,
  VERSION,
} from '../../core/api/index.ts';

/** Ways to reach others, and how long to try. */
export interface Network {
  readonly clock: Clock;
  /** By scheme. Default: `tcp`, loaded when first needed. */
  readonly transports: readonly Transport[];
  /** Milliseconds for a connection to be made and answered. */
  readonly timeoutMs: number;
}

/**
 * Connects and introduces itself.
 * @throws YardmasterError `ERR_CONNECT`, `ERR_TIMEOUT`, `ERR_PROTOCOL`
 */
export async function openChannel(
  address: string,
  role: Role,
  { clock, transports, timeoutMs }: Network,
  handlers: ChannelHandlers,
): Promise<Channel> {
  const transport = await transportFor(address, transports, clock);
  const opened: { channel?: Channel } = {};
  await transport.connect(
    address,
    (connection) => {
      opened.channel = new Channel(connection, clock, handlers);
      return opened.channel;
    },
    { timeoutMs },
  );
  const { channel } = opened;
  if (channel === undefined) {
    throw new YardmasterError('ERR_CONNECT', `nothing was opened by connecting to ${address}`);
  }
  try {
    await greet(channel, role, timeoutMs);
    return channel;
  } catch (error) {
    channel.abort(error as Error);
    throw error;
  }
}

async function greet(channel: Channel, role: Role, timeoutMs: number): Promise<void> {
  const reply = await channel.request<HelloReply>(
    'hello',
    { protocol: PROTOCOL, role, version: VERSION },
    timeoutMs,
  );
  if (reply.protocol !== PROTOCOL) {
    throw new YardmasterError(
      'ERR_PROTOCOL',
      `${channel.peerAddress} speaks ${reply.protocol} (version ${reply.version}), this client ${PROTOCOL}`,
      { theirs: reply.protocol, ours: PROTOCOL },
    );
  }
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
  const known = [...transports.map((transport) => transport.scheme), 'tcp'].join(', ');
  throw new YardmasterError(
    'ERR_CONNECT',
    `"${address}" is not an address that this client can reach; use one like tcp://127.0.0.1:8786 (schemes: ${known})`,
    { address },
  );
}
