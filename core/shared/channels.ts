import { Channel, type ChannelHandlers } from '../api/channel.ts';
import type { Clock, Timer } from '../api/clock.ts';
import { named, YardmasterError } from '../api/errors.ts';
import { VERSION } from '../api/plugin.ts';
import type { Connection, ConnectionHandlers, Listener, Transport } from '../api/transport.ts';
import { type HelloReply, PROTOCOL, type Role } from '../messages/protocol.ts';
import { setAwakeTimer } from './timers.ts';
import { show } from './words.ts';

/** The address of a connection, and the role of the connecting side. */
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

/** Listens by a transport. @throws YardmasterError `ERR_CONNECT`, which names it */
export function listenBy(
  transport: Transport,
  address: string,
  accept: (connection: Connection) => ConnectionHandlers,
): Promise<Listener> {
  const failed = `the transport "${transport.scheme}" could not listen at ${address}`;
  return named(failed, 'ERR_CONNECT', async () => {
    const listener = (await transport.listen(address, accept)) as Listener | undefined;
    if (typeof listener?.address === 'string') return listener;
    throw new TypeError(`it gave ${show(listener)} instead of a listener, { address, close }`);
  });
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
  const open = (connection: Connection): ConnectionHandlers => {
    const channel = (opened.channel = new Channel(connection, clock, handlers));
    if (onBatchEnd === undefined) return channel;
    return {
      onMessages: (batch) => {
        channel.onMessages(batch);
        onBatchEnd();
      },
      onClose: (error) => channel.onClose(error),
    };
  };
  const failed = `the transport "${transport.scheme}" could not connect with ${address}`;
  const channel = await named(failed, 'ERR_CONNECT', async () => {
    await transport.connect(address, open, { timeoutMs, role });
    if (opened.channel !== undefined) return opened.channel;
    throw new TypeError('it has not called open(connection), which comes first');
  });
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

/** Connections to workers: each is opened when first needed, and kept until its worker leaves. */
export class KeptChannels {
  private readonly channels = new Map<string, Promise<Channel>>();
  private isClosed = false;

  /**
   * @param owner - which side opens them, for errors: `the scheduler`
   * @param open - connects and introduces the owner
   */
  constructor(
    private readonly owner: string,
    private readonly open: (address: string, handlers: ChannelHandlers) => Promise<Channel>,
  ) {}

  /** Connections that are open, or being opened. */
  get count(): number {
    return this.channels.size;
  }

  /**
   * The shared connection to a worker.
   * @throws YardmasterError `ERR_CONNECT`, `ERR_TIMEOUT`, `ERR_PROTOCOL`, `ERR_CLOSED`
   */
  to(address: string): Promise<Channel> {
    if (this.isClosed) return Promise.reject(closed(address, `${this.owner} is closed`));
    const known = this.channels.get(address);
    if (known !== undefined) return known;
    const forget = (): void => {
      if (this.channels.get(address) === opening) this.channels.delete(address);
    };
    const opening = this.open(address, {
      onMessage: () => undefined,
      onRequest: (method) => {
        throw new YardmasterError('ERR_PROTOCOL', `${this.owner} does not answer "${method}"`, {
          method,
        });
      },
      onClose: forget,
    });
    this.channels.set(address, opening);
    opening.catch(forget);
    return opening;
  }

  /** Closes the connection to a worker at once: requests that wait on it fail. */
  drop(address: string, why: string): void {
    const opening = this.channels.get(address);
    this.channels.delete(address);
    opening?.then(
      (channel) => channel.abort(closed(address, why)),
      () => undefined, // The caller of `to` has the error.
    );
  }

  /** Drops all connections, and opens no more. */
  abort(): void {
    this.isClosed = true;
    for (const address of [...this.channels.keys()]) this.drop(address, `${this.owner} is closed`);
  }

  /** Sends what is queued, then closes all connections. */
  async close(): Promise<void> {
    this.isClosed = true;
    const opened = [...this.channels.values()];
    this.channels.clear();
    await Promise.all(
      opened.map((opening) =>
        opening.then(
          (channel) => channel.close(),
          () => undefined, // The caller of `to` has the error.
        ),
      ),
    );
  }
}

function closed(address: string, why: string): YardmasterError {
  return new YardmasterError('ERR_CLOSED', `the connection to ${address} ended: ${why}`, {
    peer: address,
  });
}

/** Milliseconds from one answer to the next question. */
const INTERVAL_MS = 10_000;

/** Time without an answer after which a scheduler counts as gone, if nothing else is configured. */
export const SCHEDULER_TTL_MS = 300_000;

/** The time for which a peer may be silent, and the listener that learns of it. */
export interface AnswerRules {
  /** Milliseconds; Infinity: for ever. */
  readonly ttlMs: number;
  /** Called once for each silence, when it has lasted for this many milliseconds. */
  readonly onSilent?: (silentMs: number) => void;
}

/**
 * Asks the peer regularly whether it answers, and aborts the channel when it has not for `ttlMs`. So a
 * peer is noticed that stands still, whose machine hangs, or that a network does not reach any more:
 * its connection looks as if it were in order. Time in which this process stands still does not count.
 */
export function watchAnswers(channel: Channel, clock: Clock, rules: AnswerRules): Timer {
  const { ttlMs, onSilent } = rules;
  const intervalMs = Math.min(INTERVAL_MS, Math.ceil(ttlMs / 3));
  let timers: readonly Timer[] = [];
  const cancel = (): void => {
    for (const timer of timers) timer.cancel();
    timers = [];
  };
  const ask = (): void => {
    timers = [
      setAwakeTimer(clock, intervalMs, () => onSilent?.(intervalMs)),
      setAwakeTimer(clock, ttlMs, () => channel.abort(silentError(channel, ttlMs))),
    ];
    const asked = timers;
    const onAnswer = (): void => {
      if (timers !== asked) return; // It was cancelled.
      cancel();
      if (!channel.isClosed) timers = [clock.setTimer(intervalMs, ask)];
    };
    channel.request('ping').then(onAnswer, onAnswer);
  };
  // A peer in the same process stands still with this one.
  const isHere = channel.peerAddress.startsWith('inmemory:');
  if (ttlMs !== Infinity && !isHere) timers = [clock.setTimer(intervalMs, ask)];
  return { cancel };
}

function silentError({ peerAddress }: Channel, ttlMs: number): YardmasterError {
  return new YardmasterError(
    'ERR_TIMEOUT',
    `${peerAddress} has not answered for ${ttlMs / 1000} s; its process stands still, or the network does not reach it`,
    { peer: peerAddress, timeoutMs: ttlMs },
  );
}
