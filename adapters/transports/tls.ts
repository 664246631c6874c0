import { constants } from 'node:crypto';
import { existsSync, rmSync } from 'node:fs';
import { createServer as createPlainServer, type Server, type Socket } from 'node:net';
import { dirname } from 'node:path';
import {
  connect as connectTls,
  createServer as createTlsServer,
  type TlsOptions,
  type TLSSocket,
} from 'node:tls';

import {
  type Clock,
  defineTransport,
  type PeerRole,
  type Role,
  type TransportDefinition,
  YardmasterError,
} from '../../core/api/index.ts';
import { FailureCount, isReported } from '../../core/util/failure-count.ts';
import {
  defaultConnectionsMax,
  type HostAndPort,
  limitConnections,
  parseAddress,
  tcp,
  type TcpOptions,
  TcpTransport,
} from './tcp/index.ts';
import {
  connectPlain,
  type OnSocket,
  SOCKET_OPTIONS,
  type SocketLayer,
} from './tcp/socket-layer.ts';
import {
  type Access,
  type AccessFile,
  accessFileFor,
  accessFolder,
  HANDSHAKE_TIMEOUT_MS,
  KEYS_OF,
  OPENED_BY,
  type Serves,
} from './access.ts';
import {
  type CertificateFiles,
  CertificateLayer,
  certificatesOfEnvironment,
} from './certificate-layer.ts';
import { socketPath } from './local-sockets.ts';

export {
  type Access,
  ACCESS_ROLES,
  accessOfRole,
  formatAccess,
  KEY_NAMES,
  newAccess,
} from './access.ts';
export { AccessFile, accessFileFor, accessFolder } from './access.ts';
export type { CertificateFiles } from './certificate-layer.ts';

export interface TlsTransportOptions extends TcpOptions {
  /** Path of the access file. Default: of the environment, else what a scheduler left for the port. */
  readonly access?: string;
  /** True when the environment may name other keys (`YARDMASTER_ACCESS`, `YARDMASTER_TLS_…`). Default true. */
  readonly environment?: boolean;
  /** The kind of the listener: a scheduler, which makes the access file if there is none, or the data port of a worker. */
  readonly serves?: Serves;
  /**
   * Certificates of one's own in the place of an access file. Default: of the environment (`YARDMASTER_TLS_CA_FILE`,
   * `YARDMASTER_TLS_CERT`, `YARDMASTER_TLS_KEY`) unless `access` is given, else an access file.
   */
  readonly certificates?: CertificateFiles;
  /** Address of the scheduler, by which a worker finds its access file. */
  readonly scheduler?: string;
}

/**
 * TLS in which both sides prove that they have the key of a role, before any byte of the protocol is read. Only
 * TLS 1.2 has such ciphers in Node. The ephemeral exchange of keys keeps recorded traffic secret when the
 * access file leaks later; the cipher authenticates what it encrypts.
 */
const SECURITY = {
  minVersion: 'TLSv1.2',
  maxVersion: 'TLSv1.2',
  ciphers: 'ECDHE-PSK-CHACHA20-POLY1305',
  // A resumed session would not name its role again.
  secureOptions: constants.SSL_OP_NO_TICKET,
} as const;

/** Address of all peers that come through the Unix socket of a data port. */
const LOCAL_PEER = 'tls://127.0.0.1:0';

/** Messages over TLS, between peers that have keys of the same access file, or certificates of the same authority. */
export class TlsTransport extends TcpTransport {
  constructor(
    clock: Clock,
    private readonly options: TlsTransportOptions = {},
  ) {
    const { certificates, access, environment = true } = options;
    const isNamed = certificates !== undefined || access !== undefined || !environment;
    const files = isNamed ? certificates : certificatesOfEnvironment();
    const layer =
      files === undefined
        ? new TlsLayer(options)
        : new CertificateLayer(files, options.serves ?? 'scheduler');
    super(clock, options, {}, layer);
  }

  /** The same for a worker, whose listener is a data port. @param scheduler - by whose address it finds its keys */
  forWorker(scheduler: string): TlsTransport {
    return new TlsTransport(this.clock, { ...this.options, serves: 'data', scheduler });
  }
}

class TlsLayer implements SocketLayer {
  readonly scheme = 'tls';
  private served: AccessFile | undefined;
  /** The address listened on, with the port that the system has chosen. */
  private address = '';
  /** Of a data port: takes peers of this machine, which need no encryption. */
  private local: Server | undefined;
  /** The access file ends with the listener. */
  private isTemporary = false;
  private readonly failures = new FailureCount();

  constructor(private readonly options: TlsTransportOptions) {}

  createServer(address: string, { port }: HostAndPort, onSocket: OnSocket): Server {
    const { serves = 'scheduler', scheduler = address } = this.options;
    this.isTemporary = serves === 'scheduler' && port === 0;
    const file = this.fileToServe(address, scheduler);
    if (serves === 'data') {
      this.local = createPlainServer(SOCKET_OPTIONS, (socket) => {
        onSocket(socket, 'data', LOCAL_PEER);
      });
    }
    const roles = new WeakMap<object, PeerRole>();
    const options: TlsOptions = {
      ...SOCKET_OPTIONS,
      ...SECURITY,
      handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
      pskCallback: (socket: TLSSocket, identity: string) => {
        const role = OPENED_BY[serves].find((name) => name === identity);
        const key = role === undefined ? undefined : this.keyFrom(file, role);
        if (role === undefined || key === undefined) return null;
        roles.set(socket, role);
        return key;
      },
    };
    const server = createTlsServer(options, (socket) => {
      const role = roles.get(socket);
      if (role === undefined) socket.destroy();
      else onSocket(socket, role);
    });
    // A peer without a key, one that does not speak TLS, or one that says nothing: Node leaves the last open.
    server.on('tlsClientError', (_, socket) => {
      socket.destroy();
    });
    return server;
  }

  listening(address: string): void {
    this.address = address;
    if (this.options.serves === 'data') {
      this.listenLocally(address);
      return;
    }
    const file = this.served ?? this.fileFor(address);
    // Nothing finds the file of a port that the system has chosen when the scheduler is gone.
    this.isTemporary &&=
      (!file.exists || file.isAbandoned) && dirname(file.path) === accessFolder();
    if (this.isTemporary) file.makeTemporary();
    else file.ensure();
    const before = file.announce(address);
    if (before !== undefined) {
      process.emitWarning(
        `${file.path} was of a scheduler at ${before}; that of ${address} uses the same keys, and commands without an address find ${address}`,
      );
    }
    this.served = file;
  }

  private listenLocally(address: string): void {
    const { local } = this;
    const file = this.fileFor(this.options.scheduler ?? address);
    const path = socketPath(file, parseAddress(address, '', this.scheme));
    if (local === undefined || path === undefined) return;
    rmSync(path, { force: true }); // Of a killed worker that had the port before.
    limitConnections(local, address, this.options.connectionsMax ?? defaultConnectionsMax());
    local.listen(path);
  }

  closed(): void {
    this.local?.close();
    if (this.isTemporary) this.served?.remove();
  }

  connect(target: HostAndPort, address: string, role: Role): Socket {
    const file = this.served ?? this.fileFor(this.options.scheduler ?? address);
    const [identity, key] = firstKey(file, KEYS_OF[role], role);
    const path = role === 'peer' ? socketPath(file, target) : undefined;
    if (path !== undefined && existsSync(path)) return connectPlain({ path });
    return connectTls({
      ...target,
      ...SOCKET_OPTIONS,
      ...SECURITY,
      // There are no certificates: the key proves who the peer is.
      checkServerIdentity: () => undefined,
      pskCallback: () => ({ identity, psk: key }),
    });
  }

  /** With port 0 the file of a scheduler has its name only when the port is known. */
  private fileToServe(address: string, scheduler: string): () => Access {
    if (this.options.serves === 'data') {
      const file = this.fileFor(scheduler);
      file.read();
      return () => file.read();
    }
    return () => {
      const file = this.served;
      if (file === undefined) throw new Error(`${address} has no access file yet`);
      return file.read();
    };
  }

  /** Undefined, with a warning for the 1st, 2nd, 4th, 8th and so on, when the file cannot be used at present. */
  private keyFrom(file: () => Access, role: PeerRole): Buffer | undefined {
    try {
      return keyOf(file(), role);
    } catch (error) {
      const { message } = error as Error;
      if (isReported(this.failures.add(message))) {
        process.emitWarning(`a peer could not connect to ${this.address}: ${message}`);
      }
      return undefined;
    }
  }

  private fileFor(address: string): AccessFile {
    const { access, environment = true } = this.options;
    return accessFileFor(address, access, environment);
  }
}

function firstKey(
  file: AccessFile,
  names: readonly PeerRole[],
  role: Role,
): readonly [PeerRole, Buffer] {
  const access = file.read();
  for (const name of names) {
    const key = keyOf(access, name);
    if (key !== undefined) return [name, key];
  }
  throw new YardmasterError(
    'ERR_ACCESS',
    `${file.path} has no key to connect as ${role === 'peer' ? 'a peer of workers' : `a ${role}`}; ask for a file of that role ("yardmaster access show --role …")`,
    { file: file.path, role },
  );
}

function keyOf({ keys }: Access, name: PeerRole): Buffer | undefined {
  const key = keys[name];
  return key === undefined ? undefined : Buffer.from(key, 'base64url');
}

/** The definition that a config file names: `transport: { use: tls }`. */
export const tls: TransportDefinition<TlsTransportOptions> = defineTransport({
  name: 'tls',
  apiVersion: 1,
  optionsSchema: {
    ...tcp.optionsSchema,
    properties: {
      ...(tcp.optionsSchema as { readonly properties: object }).properties,
      access: {
        type: 'string',
        minLength: 1,
        description: 'Path of the access file. Default: what the scheduler left for its port.',
      },
      certificates: {
        type: 'object',
        required: ['ca', 'cert', 'key'],
        additionalProperties: false,
        properties: {
          ca: { type: 'string', minLength: 1 },
          cert: { type: 'string', minLength: 1 },
          key: { type: 'string', minLength: 1 },
        },
        description: 'Paths of certificates (PEM) in the place of an access file.',
      },
    },
  },
  create: ({ clock }, options: TlsTransportOptions) => new TlsTransport(clock, options),
});

export default tls;
