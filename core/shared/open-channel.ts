import { Channel, type ChannelHandlers } from '../api/channel.ts';
import type { Clock } from '../api/clock.ts';
import { YardmasterError } from '../api/errors.ts';
import type { Transport } from '../api/transport.ts';
import { VERSION } from '../api/version.ts';
import { type HelloReply, PROTOCOL, type Role } from '../messages/protocol.ts';

/** Where to connect, and as what. */
interface ChannelTarget {
  readonly transport: Transport;
  readonly address: string;
  readonly role: Role;
  readonly clock: Clock;
  /** Milliseconds for the connection to be made, and for it to be answered. */
  readonly timeoutMs: number;
  /** Called with the answer to the introduction. */
  readonly onHello?: (reply: HelloReply) => void;
  /** Called after all messages that came together were handled. */
  readonly onBatchEnd?: () => void;
}

/**
 * Connects with a scheduler or worker, and introduces this side.
 * @throws YardmasterError `ERR_CONNECT`, `ERR_TIMEOUT`, `ERR_PROTOCOL`, `ERR_CLOSED`
 */
export async function openChannel(
  { transport, address, role, clock, timeoutMs, onHello, onBatchEnd }: ChannelTarget,
  handlers: ChannelHandlers,
): Promise<Channel> {
  const opened: { channel?: Channel } = {};
  await transport.connect(
    address,
    (connection) => {
      const channel = (opened.channel = new Channel(connection, clock, handlers));
      if (onBatchEnd === undefined) return channel;
      return {
        onMessages: (batch) => {
          channel.onMessages(batch);
          onBatchEnd();
        },
        onClose: (error) => channel.onClose(error),
      };
    },
    { timeoutMs, role },
  );
  const { channel } = opened;
  if (channel === undefined) {
    throw new YardmasterError('ERR_CONNECT', `nothing was opened by connecting to ${address}`);
  }
  try {
    const reply = await sayHello(channel, role, timeoutMs);
    onHello?.(reply);
    return channel;
  } catch (error) {
    channel.abort(error as Error);
    throw error;
  }
}

/**
 * Introduces this side: the first request on each connection.
 * @param timeoutMs - default: as long as the connection lives
 * @throws YardmasterError `ERR_PROTOCOL` when the peer speaks another version of the protocol
 */
export async function sayHello(
  channel: Channel,
  role: Role,
  timeoutMs = Infinity,
): Promise<HelloReply> {
  const hello = { protocol: PROTOCOL, role, version: VERSION };
  const reply = await channel.request<HelloReply>('hello', hello, timeoutMs);
  if (reply.protocol === PROTOCOL) return reply;
  throw new YardmasterError(
    'ERR_PROTOCOL',
    `${channel.peerAddress} speaks ${reply.protocol} (version ${reply.version}), this ${role} ${PROTOCOL} (version ${VERSION}); install the same version on both sides`,
    { theirs: reply.protocol, ours: PROTOCOL },
  );
}
