import {
  type AddressInfo,
  createServer as createTcpServer,
  type Server,
  type Socket,
} from 'node:net';
import { networkInterfaces } from 'node:os';
import { createServer as createTlsServer } from 'node:tls';
import { asError, type Logger, YardmasterError } from '../../../core/api/index.ts';
import { Strangers } from '../../../core/shared/strangers.ts';
import { countText, FailureCount, isReported } from '../../../core/util/failure-count.ts';
import { listenError } from '../../transports/tcp/errors.ts';
import {
  defaultConnectionsMax,
  limitConnections,
  reachableHost,
} from '../../transports/tcp/index.ts';
import { checkPlainListener } from '../../transports/tcp/socket-layer.ts';
import { HANDSHAKE_TIMEOUT_MS } from '../../transports/access.ts';
import { Comm, type CommOptions } from './comm.ts';
import {
  DirectSocket,
  formatDaskAddress,
  parseDaskAddress,
  type TlsCredentials,
} from './sockets.ts';

/** The options of listening for Dask peers. */
interface ListenOptions extends CommOptions {
  /** For `tls://`. */
  readonly tls?: TlsCredentials;
  /** Connections that wait to be accepted. Default 2048. */
  readonly backlog?: number;
  /** Further connections are closed at once. Default: what the open files of the process allow. */
  readonly connectionsMax?: number;
  /** A caller that is no Dask process, or left before it said so. */
  onRefused?(error: Error): void;
}

/** Warns of refused callers: of each kind of error of the 1st, 2nd, 4th, 8th and so on. */
export function refusalsTo(log: Logger): (error: Error) => void {
  const failures = new FailureCount();
  return (error) => {
    const count = failures.add(YardmasterError.is(error) ? error.code : error.name);
    if (!isReported(count)) return;
    log.warn({ err: error }, `${error.message}${countText(count, 'kind')}`);
  };
}

/** Listens for Dask workers, nannies and clients. */
export class DaskListener {
  private readonly sockets = new Set<Socket>();
  private readonly strangers = new Strangers<Socket>((oldest) => void oldest.destroy());

  private constructor(
    private readonly server: Server,
    /** The address that peers use, with the real port. */
    readonly address: string,
  ) {}

  /**
   * @param address - `tcp://host:port` or `tls://host:port`; port 0 takes a free one
   * @param onComm - gets each peer that has introduced itself
   * @throws YardmasterError `ERR_CONNECT`, `ERR_CONFIG` when certificates are missing
   */
  static async listen(
    address: string,
    options: ListenOptions,
    onComm: (comm: Comm) => void,
  ): Promise<DaskListener> {
    const { scheme, host, port } = parseDaskAddress(address);
    if (scheme !== 'tls') checkPlainListener(address, host === '' ? '0.0.0.0' : host);
    const server =
      scheme === 'tls' ? tlsServer(address, options) : createTcpServer({ pauseOnConnect: true });
    const { backlog = 2048 } = options;
    await started(server, address, { host: host === '' ? '0.0.0.0' : host, port, backlog });
    const bound = server.address() as AddressInfo;
    const listener = new DaskListener(
      server,
      formatDaskAddress({ scheme, host: reachableHost(bound.address), port: bound.port }),
    );
    server.on(scheme === 'tls' ? 'secureConnection' : 'connection', (accepted: Socket) => {
      const socket = (scheme === 'tls' ? undefined : DirectSocket.of(accepted)) ?? accepted;
      listener.track(socket);
      const host = socket.remoteAddress ?? '';
      listener.strangers.add(socket, host);
      const introduced = Comm.accept(socket, options, scheme).finally(() =>
        listener.strangers.delete(socket, host),
      );
      introduced.then(onComm, (error: unknown) => {
        options.onRefused?.(asError(error));
      });
      socket.resume();
    });
    // Before it is encrypted, too.
    if (scheme === 'tls') server.on('connection', (socket: Socket) => listener.track(socket));
    limitConnections(server, address, options.connectionsMax ?? defaultConnectionsMax());
    server.on('tlsClientError', (cause: Error, socket: Socket) => {
      // Node leaves one open that says nothing.
      socket.destroy();
      options.onRefused?.(
        new YardmasterError(
          'ERR_PROTOCOL',
          `a caller failed to encrypt: ${cause.message}`,
          {},
          { cause },
        ),
      );
    });
    return listener;
  }

  /** Takes no more callers. @param dropComms - also ends those that are there */
  async close(dropComms = true): Promise<void> {
    const closed = new Promise<void>((resolve) => {
      this.server.close(() => {
        resolve();
      });
    });
    if (!dropComms) return;
    for (const socket of this.sockets) socket.destroy();
    await closed;
  }

  private track(socket: Socket): void {
    this.sockets.add(socket);
    socket.once('close', () => {
      this.sockets.delete(socket);
    });
  }
}

function tlsServer(address: string, { tls }: ListenOptions): Server {
  if (tls === undefined) {
    throw new YardmasterError(
      'ERR_CONFIG',
      `cannot listen on ${address}: no certificates are configured; give ca-file, cert and key`,
      { address },
    );
  }
  const server = createTlsServer({
    ...tls.current,
    requestCert: true,
    rejectUnauthorized: true,
    handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
  });
  tls.renew(server);
  return server;
}

function started(
  server: Server,
  address: string,
  where: { readonly host: string; readonly port: number; readonly backlog: number },
): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = (cause: Error): void => {
      reject(listenError(address, cause));
    };
    server.once('error', onError);
    server.listen(where, () => {
      server.off('error', onError);
      resolve();
    });
  });
}

/**
 * The address of a network interface of this machine: its first IPv4 address, else its first IPv6 one.
 * @throws YardmasterError `ERR_CONFIG` that names the interfaces there are
 */
export function hostOfInterface(name: string): string {
  const interfaces = networkInterfaces();
  const addresses = Object.hasOwn(interfaces, name) ? (interfaces[name] ?? []) : [];
  const found = addresses.find(({ family }) => family === 'IPv4') ?? addresses[0];
  if (found !== undefined) return found.address;
  const known = Object.keys(interfaces);
  throw new YardmasterError(
    'ERR_CONFIG',
    `there is no network interface "${name}" with an address; this machine has ${known.join(', ')}`,
    { interface: name, known },
  );
}

/** The addresses of all network interfaces of this machine. */
export function ownHosts(): string[] {
  return Object.values(networkInterfaces()).flatMap((own) => (own ?? []).map((one) => one.address));
}

/** Replaces the host of an address by the host of a network interface. */
export function onInterface(address: string, name: string | undefined): string {
  if (name === undefined) return address;
  return formatDaskAddress({ ...parseDaskAddress(address), host: hostOfInterface(name) });
}

/**
 * The address that is announced to peers.
 * @param contact - `tcp://host:port`, `host:port` or `host`; missing parts are taken from `bound`
 * @param bound - where the scheduler listens
 * @throws YardmasterError `ERR_CONFIG` when it has another form
 */
export function contactAddressOf(contact: string | undefined, bound: string): string {
  if (contact === undefined) return bound;
  const { scheme, port } = parseDaskAddress(bound);
  const groups =
    /^(?:(?<scheme>[a-z]+):\/\/)?(?<host>\[[^\]]+\]|[^:/]+)(?::(?<port>\d+))?\/?$/.exec(
      contact,
    )?.groups;
  if (groups === undefined) {
    throw new YardmasterError(
      'ERR_CONFIG',
      `the contact address "${contact}" is not of the form tcp://host:port, host:port or host`,
      { contactAddress: contact },
    );
  }
  return `${groups['scheme'] ?? scheme}://${groups['host']}:${groups['port'] ?? port}`;
}
