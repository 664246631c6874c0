import { X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import type { Server, Socket } from 'node:net';
import {
  connect as connectTls,
  createSecureContext,
  createServer as createTlsServer,
  type PeerCertificate,
  type SecureContextOptions,
  type Server as TlsServer,
} from 'node:tls';
import { type PeerRole, type Role, YardmasterError } from '../../core/api/index.ts';
import type { HostAndPort } from './tcp/index.ts';
import { type OnSocket, SOCKET_OPTIONS, type SocketLayer } from './tcp/socket-layer.ts';
import {
  CERTIFICATE_VARIABLES,
  HANDSHAKE_TIMEOUT_MS,
  KEYS_OF,
  OPENED_BY,
  type Serves,
} from './access.ts';

/** Paths of certificates (PEM), which take the place of an access file. */
export interface CertificateFiles {
  /** Of the authority that has signed those of all peers. */
  readonly ca: string;
  /** Own certificate. The organisational units (OU) of its subject are its roles. */
  readonly cert: string;
  /** Its private key. */
  readonly key: string;
}

/** Roles in certificates that may fetch and give data. Those of schedulers and viewers may not. */
const MAY_HAVE_DATA = ['worker', 'client', 'admin'];

/** Roles in the certificate of what listens. */
const SERVED_AS: Readonly<Record<Serves, string>> = { scheduler: 'scheduler', data: 'worker' };

/**
 * The files that the environment names; undefined when it names none.
 * @throws YardmasterError `ERR_CONFIG` when one of them is missing
 */
export function certificatesOfEnvironment(): CertificateFiles | undefined {
  const { env } = process;
  const {
    ca = '',
    cert = '',
    key = '',
  } = {
    ca: env[CERTIFICATE_VARIABLES.ca],
    cert: env[CERTIFICATE_VARIABLES.cert],
    key: env[CERTIFICATE_VARIABLES.key],
  };
  if (ca === '' && cert === '' && key === '') return undefined;
  if (ca !== '' && cert !== '' && key !== '') return { ca, cert, key };
  throw new YardmasterError(
    'ERR_CONFIG',
    'certificates need three files: --tls-ca-file, --tls-cert and --tls-key (YARDMASTER_TLS_CA_FILE, YARDMASTER_TLS_CERT, YARDMASTER_TLS_KEY)',
  );
}

/**
 * TLS with certificates of one's own on both sides. The connecting side names its role in the handshake (ALPN), and its
 * certificate must have that role. Names of hosts are not checked: the role is what counts.
 */
export class CertificateLayer implements SocketLayer {
  readonly scheme = 'tls';

  constructor(
    private readonly files: CertificateFiles,
    private readonly serves: Serves,
  ) {}

  createServer(_address: string, _target: HostAndPort, onSocket: OnSocket): Server {
    const { files, serves } = this;
    const renewed = new RenewedFiles([files.ca, files.cert, files.key], () => {
      const context = readFiles(files);
      checkRole(rolesIn(context.cert), SERVED_AS[serves], files.cert);
      return { ...context, minVersion: 'TLSv1.2' } as const;
    });
    const roles = OPENED_BY[serves];
    const server = createTlsServer(
      {
        ...renewed.current,
        ...SOCKET_OPTIONS,
        requestCert: true,
        rejectUnauthorized: true,
        handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
        ALPNProtocols: [...roles],
      },
      (socket) => {
        const role = roles.find((name) => name === socket.alpnProtocol);
        if (role !== undefined && hasRole(unitsOf(socket.getPeerCertificate()), role)) {
          onSocket(socket, role);
        } else socket.destroy();
      },
    );
    server.on('tlsClientError', (_, socket) => {
      socket.destroy();
    });
    renewed.renew(server);
    return server;
  }

  connect(target: HostAndPort, _address: string, role: Role): Socket {
    const { files } = this;
    const context = readFiles(files);
    const own = rolesIn(context.cert);
    const wanted = KEYS_OF[role];
    const used = wanted.find((name) => hasRole(own, name));
    if (used === undefined) {
      throw new YardmasterError(
        'ERR_ACCESS',
        `the certificate ${files.cert} does not permit to connect as ${role}: its subject has OU ${own.join(', ') || 'none'}, and needs one of ${wanted.join(', ')}`,
        { file: files.cert, role },
      );
    }
    const serving = SERVED_AS[role === 'peer' ? 'data' : 'scheduler'];
    return connectTls({
      ...target,
      ...context,
      ...SOCKET_OPTIONS,
      minVersion: 'TLSv1.2',
      ALPNProtocols: [used],
      checkServerIdentity: (_, certificate) => {
        if (unitsOf(certificate).includes(serving)) return undefined;
        return new YardmasterError(
          'ERR_ACCESS',
          `its certificate is none of a ${serving} (OU of the subject)`,
        );
      },
    });
  }
}

function hasRole(units: readonly string[], role: PeerRole): boolean {
  return role === 'data'
    ? units.some((unit) => MAY_HAVE_DATA.includes(unit))
    : units.includes(role);
}

function checkRole(units: readonly string[], role: string, file: string): void {
  if (units.includes(role)) return;
  throw new YardmasterError(
    'ERR_ACCESS',
    `the certificate ${file} is none of a ${role}: its subject has OU ${units.join(', ') || 'none'}, and needs OU ${role}`,
    { file, role },
  );
}

function unitsOf({ subject }: PeerCertificate): readonly string[] {
  // Several units are an array, which the types of Node do not know.
  return [(subject as { readonly OU?: string | readonly string[] } | undefined)?.OU ?? []].flat();
}

function rolesIn(pem: Buffer): readonly string[] {
  const { subject } = new X509Certificate(pem);
  return [...subject.matchAll(/^OU=(.*)$/gm)].map(([, unit]) => unit as string);
}

/** @throws YardmasterError `ERR_ACCESS` */
function readFiles(files: CertificateFiles): SecureContextOptions & { readonly cert: Buffer } {
  const read = (file: string): Buffer => {
    try {
      return readFileSync(file);
    } catch (cause) {
      throw new YardmasterError(
        'ERR_ACCESS',
        `the certificate file ${file} cannot be read: ${(cause as Error).message}`,
        { file },
        { cause },
      );
    }
  };
  return { ca: read(files.ca), cert: read(files.cert), key: read(files.key) };
}

/**
 * Certificates that are read again when one of their files has changed. What cannot be used, such as a certificate
 * whose key has not been written yet, is warned of, and the ones before stay.
 */
export class RenewedFiles<T extends SecureContextOptions> {
  private value: T;
  private stamp: string;

  /**
   * @param read - throws when the certificates cannot be used
   * @throws what `read` throws at first
   */
  constructor(
    private readonly files: readonly string[],
    private readonly read: () => T,
  ) {
    this.stamp = this.stampOfFiles();
    this.value = read();
  }

  /** The same object until the files have changed. */
  get current(): T {
    const stamp = this.stampOfFiles();
    if (stamp === this.stamp) return this.value;
    this.stamp = stamp;
    try {
      const next = this.read();
      createSecureContext(next);
      this.value = next;
    } catch (error) {
      process.emitWarning(
        `${this.files.join(', ')} have changed and cannot be used, so that the certificates before stay: ${(error as Error).message}`,
      );
    }
    return this.value;
  }

  /** Has a server use what is current at each next connection. Connections that are open stay. */
  renew(server: TlsServer): void {
    let used = this.current;
    server.prependListener('connection', () => {
      const { current } = this;
      if (current === used) return;
      used = current;
      server.setSecureContext(current);
    });
  }

  private stampOfFiles(): string {
    return this.files.map(stampOf).join(' ');
  }
}

function stampOf(file: string): string {
  const stats = statSync(file, { throwIfNoEntry: false });
  return stats === undefined ? 'none' : `${stats.ino}-${stats.mtimeMs}-${stats.size}`;
}
