import { createSocket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { readFileSync } from 'node:fs';
import type { Server, Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import {
  asError,
  type Clock,
  type Connection,
  type ConnectionHandlers,
  defineTransport,
  type Listener,
  type OptionsOf,
  type PeerRole,
  type Role,
  type Transport,
  type TransportConnectOptions,
  type TransportDefinition,
  YardmasterError,
} from '../../../core/api/index.ts';
import { TurnBudget, TurnEnd } from '../../../core/shared/turn.ts';
import { FailureCount, isReported } from '../../../core/util/failure-count.ts';
import { isLoopback } from '../../../core/util/hosts.ts';
import { FRAME_BYTES_MAX, MsgpackCodec } from '../../codecs/msgpack.ts';
import { type ConnectionServices, TcpConnection } from './connection.ts';
import { connectError, connectTimeoutError, listenError, silentError } from './errors.ts';
import { seemsDask } from './framing.ts';
import { PlainLayer, type SocketLayer, tuneSocket } from './socket-layer.ts';

export const TCP_OPTIONS_SCHEMA = {
  type: 'object',
  additionalProperties: false,
  properties: {
    frameBytesMax: {
      type: 'integer',
      minimum: 2 * 1024 * 1024,
      maximum: 2 ** 32 - 1,
      description:
        'Largest frame, and so message, in bytes, in both directions. Default 1 GiB; at least 2 MiB, since an answer with results may have 1 MiB.',
    },
    valuesMax: {
      type: 'integer',
      minimum: 1024,
      description:
        'Values (numbers, texts, objects) in a frame that a listener takes; an object or array counts as four. Default 4 000 000, about 100 MB.',
    },
    connectionsMax: {
      type: 'integer',
      minimum: 1,
      description:
        'Connections of a listener at once; further ones are closed. Default: by the open files, at most 65 536.',
    },
    connectTimeoutMs: {
      type: 'number',
      exclusiveMinimum: 0,
      description: 'Time to connect and for the peer to introduce itself. Default 10 s.',
    },
    closeTimeoutMs: {
      type: 'number',
      exclusiveMinimum: 0,
      description: 'A closing connection ends when its peer stands still this long. Default 5 s.',
    },
    highWaterBytes: {
      type: 'integer',
      minimum: 0,
      description: 'Bulk senders wait while more than this is buffered. Default 1 MiB.',
    },
    host: {
      type: 'string',
      minLength: 1,
      description: 'Host of addresses that name none. Default 127.0.0.1.',
    },
    contactHost: {
      type: 'string',
      minLength: 1,
      description:
        'Host that listeners announce to their peers (in a container, say). Default: the one they listen on; for 0.0.0.0 and :: the first outer address.',
    },
    insecure: {
      type: 'boolean',
      description:
        'Permits listening where other machines can connect, although nothing is encrypted and nobody is asked for credentials. Default false, or true after --insecure.',
    },
  },
} as const;

export type TcpOptions = OptionsOf<typeof TCP_OPTIONS_SCHEMA>;

const VALUES_MAX = 4_000_000;

/**
 * Messages over TCP. By default without encryption or authentication: between processes of one machine, or on
 * networks that are trusted.
 */
export class TcpTransport implements Transport {
  readonly scheme: string;
  private readonly services: ConnectionServices;
  private readonly connectTimeoutMs: number;
  private readonly host: string;
  private readonly valuesMax: number;
  private readonly contactHost: string | undefined;
  private readonly connectionsMax: number;

  /**
   * @param clock - for time-outs only
   * @param foreign - deals with peers that speak another protocol. Default: they are refused
   * @param layer - makes the sockets. Default: plain ones
   */
  constructor(
    protected readonly clock: Clock,
    options: TcpOptions = {},
    private readonly foreign: ForeignPeers = {},
    private readonly layer: SocketLayer = new PlainLayer(options.insecure),
  ) {
    this.scheme = layer.scheme;
    this.services = {
      clock,
      codec: new MsgpackCodec(options.frameBytesMax ?? FRAME_BYTES_MAX),
      turnEnd: new TurnEnd(),
      turn: TurnBudget.of(clock),
      highWaterBytes: options.highWaterBytes ?? 1024 * 1024,
      closeTimeoutMs: options.closeTimeoutMs ?? 5000,
    };
    this.connectTimeoutMs = options.connectTimeoutMs ?? 10_000;
    this.valuesMax = options.valuesMax ?? VALUES_MAX;
    this.host = options.host ?? '127.0.0.1';
    this.contactHost = options.contactHost;
    this.connectionsMax = options.connectionsMax ?? defaultConnectionsMax();
  }

  async listen(
    address: string,
    accept: (connection: Connection) => ConnectionHandlers,
  ): Promise<Listener> {
    const { layer } = this;
    const target = parseAddress(address, this.host, layer.scheme);
    const server = layer.createServer(address, target, (socket, role, given) => {
      tuneSocket(socket);
      const peer = given ?? addressOf(socket, layer.scheme);
      const { clock } = this;
      const { answer } = this.foreign;
      const onOurs = (): void => {
        this.accept(socket, peer, role, accept);
      };
      if (answer === undefined) onOurs();
      else tellApart(socket, peer, clock, { onForeign: answer, onOurs });
    });
    await new Promise<void>((resolve, reject) => {
      server.once('error', (cause) => {
        reject(listenError(address, cause));
      });
      server.listen(target, resolve);
    });
    server.removeAllListeners('error');
    limitConnections(server, address, this.connectionsMax);
    const listener = new TcpListener(server, this.contactHost, this.services.codec, layer);
    try {
      layer.listening?.(listener.address);
    } catch (error) {
      await listener.close();
      throw error;
    }
    return listener;
  }

  async connect(
    address: string,
    open: (connection: Connection) => ConnectionHandlers,
    options: TransportConnectOptions = {},
  ): Promise<Connection> {
    const { timeoutMs = this.connectTimeoutMs, role = 'client' } = options;
    const startMs = this.clock.nowMs();
    try {
      return await this.connectOurs(address, open, timeoutMs, role);
    } catch (error) {
      // A listener of ours takes a caller for foreign that was silent because its process stood still.
      const wasSilent = this.clock.nowMs() - startMs >= SILENCE_MS / 2;
      const mayBeOurs = wasSilent && protocolIn(error) === SILENT_PROTOCOL;
      if (!mayBeOurs) return this.connectForeign(error, { address, open, timeoutMs });
    }
    return this.connectOurs(address, open, timeoutMs, role).catch((error: unknown) =>
      this.connectForeign(error, { address, open, timeoutMs }),
    );
  }

  /** @throws the refusal, unless there is a connection all the same */
  private async connectForeign(
    refusal: unknown,
    listener: Pick<ForeignListener, 'address' | 'open' | 'timeoutMs'>,
  ): Promise<Connection> {
    const protocol = protocolIn(refusal);
    const { connect } = this.foreign;
    if (protocol === undefined || connect === undefined) throw refusal;
    return connect({ ...listener, protocol, refusal: refusal as YardmasterError });
  }

  private connectOurs(
    address: string,
    open: (connection: Connection) => ConnectionHandlers,
    timeoutMs: number,
    role: Role,
  ): Promise<Connection> {
    const { layer } = this;
    const target = parseAddress(address, this.host, layer.scheme);
    const socket = layer.connect(target, address, role);
    tuneSocket(socket);
    return new Promise<Connection>((resolve, reject) => {
      let connection: TcpConnection | undefined;
      const timer = this.clock.setTimer(timeoutMs, () => {
        giveUp(connectTimeoutError(address, timeoutMs));
      });
      // Also ends what was made so far. A promise keeps the first outcome, so all may call it.
      const giveUp = (error: Error): void => {
        timer.cancel();
        reject(error);
        if (connection === undefined) socket.destroy();
        else connection.fail(error);
      };
      const onPreamble = (): void => {
        timer.cancel();
        if (connection === undefined) return;
        try {
          connection.attach(open(connection));
          resolve(connection);
        } catch (error) {
          giveUp(asError(error));
        }
      };
      const onEarlyError = (cause: Error): void => {
        giveUp(connectError(address, cause));
      };
      socket.once('error', onEarlyError);
      socket.once('encrypted' in socket ? 'secureConnect' : 'connect', () => {
        socket.off('error', onEarlyError);
        const handlers = beforeOpen((error) => {
          giveUp(beforeOpenError(address, error));
        });
        connection = new TcpConnection(socket, address, this.services, handlers, onPreamble);
      });
    });
  }

  private accept(
    socket: Socket,
    peer: string,
    role: PeerRole | undefined,
    accept: (connection: Connection) => ConnectionHandlers,
  ): void {
    const { connectTimeoutMs } = this;
    const timer = this.clock.setTimer(connectTimeoutMs, () => {
      if (!connection.isIntroduced) connection.fail(silentError(connectTimeoutMs));
    });
    const onPreamble = (): void => {
      timer.cancel();
    };
    const { services, valuesMax } = this;
    const connection = new TcpConnection(socket, peer, services, IGNORE_ALL, onPreamble, valuesMax);
    connection.peerRole = role;
    socket.once('close', () => {
      timer.cancel();
    });
    try {
      connection.attach(accept(connection));
    } catch (error) {
      connection.fail(asError(error));
      throw error;
    }
  }
}

/**
 * Handlers that ignore everything, for a connection whose owner threw when it got the connection.
 */
const IGNORE_ALL: ConnectionHandlers = {
  onMessages: () => undefined,
  onClose: () => undefined,
};

/** The protocol that a peer seems to speak that was refused because it does not speak ours. */
function protocolIn(error: unknown): string | undefined {
  if (!YardmasterError.is(error, 'ERR_PROTOCOL')) return undefined;
  return error.data['seems'] as string | undefined;
}

function addressOf({ remoteAddress = '?', remotePort = 0 }: Socket, scheme: string): string {
  return formatAddress({ host: remoteAddress, port: remotePort }, scheme);
}

/** The error of `connect` when the connection ended before the peer introduced itself. */
function beforeOpenError(address: string, error: Error | undefined): Error {
  if (YardmasterError.is(error, 'ERR_PROTOCOL') || YardmasterError.is(error, 'ERR_CONNECT')) {
    return error;
  }
  const cause = error?.cause instanceof Error ? error.cause : error;
  return connectError(address, cause ?? new Error('the peer closed it at once'));
}

/** Until the peer is known to speak our protocol. */
function beforeOpen(onClose: (error?: Error) => void): ConnectionHandlers {
  return { onMessages: () => undefined, onClose };
}

class TcpListener implements Listener {
  readonly address: string;
  readonly messageBytesMax: number;

  constructor(
    private readonly server: Server,
    contactHost: string | undefined,
    { messageBytesMax }: MsgpackCodec,
    private readonly layer: SocketLayer,
  ) {
    this.messageBytesMax = messageBytesMax;
    const bound = server.address();
    if (bound === null || typeof bound === 'string') throw new Error('the server has no port');
    const host = contactHost ?? reachableHost(bound.address);
    this.address = formatAddress({ host, port: bound.port }, layer.scheme);
  }

  /** The port is free when it returns. Does not wait for the connections, which stay. */
  close(): Promise<void> {
    this.server.close();
    this.layer.closed?.();
    return Promise.resolve();
  }
}

/** The definition that a config file names: `transport: { use: tcp }`. */
export const tcp: TransportDefinition<TcpOptions> = defineTransport({
  name: 'tcp',
  apiVersion: 1,
  optionsSchema: TCP_OPTIONS_SCHEMA,
  create: ({ clock }, options) => new TcpTransport(clock, options),
});

export default tcp;

/** The address to which a socket connects, or at which it listens. */
export interface HostAndPort {
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
}

const LOCAL_HOST = '127.0.0.1';
const ADDRESS = /^t(?:cp|ls):\/\/(?:\[(?<v6>[^\]]+)\]|(?<name>[^:/[\]]*)):(?<port>\d{1,5})\/?$/;

/**
 * Reads `tcp://127.0.0.1:8786`, `tcp://[::1]:8786`, `tcp://localhost:0`, `tcp://:8786`.
 *
 * @param defaultHost - for an address that names none
 * @throws YardmasterError `ERR_CONNECT` when it has another form
 */
export function parseAddress(address: string, defaultHost: string, scheme = 'tcp'): HostAndPort {
  const groups = address.startsWith(`${scheme}:`) ? ADDRESS.exec(address)?.groups : undefined;
  const port = Number(groups?.['port'] ?? NaN);
  if (groups === undefined || !(port <= 65_535)) {
    throw new YardmasterError(
      'ERR_CONNECT',
      `${JSON.stringify(address)} is not an address of the form ${scheme}://host:port (${scheme}://127.0.0.1:8786, ${scheme}://[::1]:8786)`,
      { address },
    );
  }
  const host = groups['v6'] ?? groups['name'] ?? '';
  return { host: host === '' ? defaultHost : host, port };
}

/** IPv6 hosts in brackets; IPv4 addresses that come as IPv6 in their usual form. */
function formatAddress({ host, port }: HostAndPort, scheme = 'tcp'): string {
  const plain = host.startsWith('::ffff:') && host.includes('.') ? host.slice(7) : host;
  return `${scheme}://${plain.includes(':') ? `[${plain}]` : plain}:${port}`;
}

/** A wildcard is nothing that a peer could connect to: then the machine's first outer address. */
export function reachableHost(boundHost: string): string {
  if (boundHost !== '0.0.0.0' && boundHost !== '::') return boundHost;
  const outer = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .find(({ family, internal }) => family === 'IPv4' && !internal);
  return outer?.address ?? LOCAL_HOST;
}

/**
 * The address of this machine from which the system reaches a peer, and so the one under which others on the way to that
 * peer reach this machine; 127.0.0.1 when the peer is on this machine, or cannot be reached now. Nothing is sent: a
 * connected UDP socket only has the system choose the route.
 *
 * @param address - `scheme://host:port` of the peer
 * @throws YardmasterError `ERR_CONNECT` when it has another form
 */
export async function hostTowards(address: string, scheme: string): Promise<string> {
  const target = parseAddress(address, LOCAL_HOST, scheme);
  if (isLoopback(target.host)) return LOCAL_HOST;
  try {
    const { address: host, family } = await lookup(target.host);
    const socket = createSocket(family === 6 ? 'udp6' : 'udp4');
    try {
      await new Promise<void>((resolve, reject) => {
        socket.once('error', reject);
        socket.connect(target.port, host, resolve);
      });
      const own = socket.address().address;
      return isLoopback(own) ? LOCAL_HOST : own;
    } finally {
      socket.close();
    }
  } catch {
    return LOCAL_HOST; // The attempt to connect says what is wrong.
  }
}

const CONNECTIONS_MAX = 65_536;

/** Open files that are left for everything else than connections. */
const OTHER_FILES = 128;

/**
 * Connections that the open files of this process allow: beyond that, the system accepts none, and files,
 * threads and connections to others fail as well.
 */
export function defaultConnectionsMax(): number {
  const filesMax = openFilesMax();
  const reserve = Math.min(OTHER_FILES, Math.ceil(filesMax / 2));
  return Math.min(CONNECTIONS_MAX, filesMax - reserve);
}

/** Closes connections beyond the limit, and warns of the 1st, 2nd, 4th, 8th and so on. */
export function limitConnections(server: Server, address: string, connectionsMax: number): void {
  const failures = new FailureCount();
  const warn = (kind: string, what: string): void => {
    const count = failures.add(kind);
    if (isReported(count)) process.emitWarning(`${address}: ${what} (${count} so far)`);
  };
  server.maxConnections = connectionsMax;
  server.on('drop', () => {
    warn('drop', `a connection was refused, because ${connectionsMax} are open`);
  });
  server.on('error', (cause) => {
    // One connection could not be accepted (too many open files, say); the next one may.
    warn('error', `a connection was not accepted: ${cause.message}`);
  });
}

/** The limit of open files (`ulimit -n`); Infinity where the system does not say. */
function openFilesMax(): number {
  try {
    const limits = readFileSync('/proc/self/limits', 'utf8');
    const soft = /^Max open files\s+(\d+)/m.exec(limits)?.[1];
    return soft === undefined ? Infinity : Number(soft);
  } catch {
    return Infinity;
  }
}

/** A caller of a listener that does not speak our protocol. */
export interface ForeignCaller {
  /**
   * Paused, with all that the caller sent still in it; the handler resumes it once it listens, and closes
   * it. Errors of it need no listener.
   */
  readonly socket: Socket;
  /** Of the form `tcp://host:port`. */
  readonly peerAddress: string;
  /** The protocol that its first bytes show; undefined when it sent nothing for {@link SILENCE_MS}. */
  readonly protocol: 'Dask' | undefined;
}

/** A listener that does not speak our protocol. */
export interface ForeignListener {
  readonly address: string;
  /** The protocol that its first bytes show. */
  readonly protocol: string;
  readonly open: (connection: Connection) => ConnectionHandlers;
  readonly timeoutMs: number;
  /** To be thrown when there is no way to connect. */
  readonly refusal: YardmasterError;
}

/** The treatment of peers that speak another protocol. */
export interface ForeignPeers {
  /**
   * Answers callers in their own protocol, so that they end with an error that says where to go.
   * Must not throw. Default: they are refused.
   */
  readonly answer?: (caller: ForeignCaller) => void;
  /** Speaks the protocol of the listener on behalf of the connection. Default: throws the refusal. */
  readonly connect?: (listener: ForeignListener) => Promise<Connection>;
}

/** Silent callers are taken for peers of this protocol. */
const SILENT_PROTOCOL = 'Dask';

/**
 * A caller that sends nothing for this long seems to expect that the listener speaks first, as peers of
 * Dask before 2024 do. Our own callers send their preamble as soon as they are connected.
 */
const SILENCE_MS = 1000;

/**
 * Reads no further than the first bytes of a caller, and then passes the socket on, with all of its bytes.
 * A caller that leaves before is dropped.
 * @param onOurs - for callers of ours, and of protocols that are not answered
 */
function tellApart(
  socket: Socket,
  peerAddress: string,
  clock: Clock,
  {
    onForeign,
    onOurs,
  }: { readonly onForeign: (caller: ForeignCaller) => void; readonly onOurs: () => void },
): void {
  const pass = (owner: () => void): void => {
    timer.cancel();
    socket.off('data', onData).off('end', drop).off('error', drop);
    socket.pause();
    owner();
  };
  const passToForeign = (protocol: ForeignCaller['protocol']): void => {
    pass(() => {
      socket.on('error', () => undefined);
      onForeign({ socket, peerAddress, protocol });
    });
  };
  const drop = (): void => {
    timer.cancel();
    socket.destroy();
  };
  const onData = (chunk: Buffer): void => {
    socket.pause();
    socket.unshift(chunk);
    if (seemsDask(chunk)) passToForeign('Dask');
    else {
      pass(onOurs);
      socket.resume();
    }
  };
  const timer = clock.setTimer(SILENCE_MS, () => {
    passToForeign(undefined);
  });
  socket.on('data', onData).on('end', drop).on('error', drop);
}
