import { type OnReadOpts, Socket, type SocketConstructorOpts } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { type Clock, YardmasterError } from '../../../core/api/index.ts';
import { connectError } from '../../transports/tcp/errors.ts';
import type { RenewedFiles } from '../../transports/certificate-layer.ts';
import type { FrameLimits } from './frames.ts';

/** Certificates, as their files have them at present. */
export type TlsCredentials = RenewedFiles<PemCredentials>;

/** Certificates, as PEM. Both sides show one, and both check that of the other. */
interface PemCredentials {
  /** The certificates of the authorities that signed the peers' certificates. */
  readonly ca: string;
  /** Our own certificate, with its chain. */
  readonly cert: string;
  readonly key: string;
  /** In OpenSSL's form; default: Node's own choice. */
  readonly ciphers?: string;
  /** Default TLSv1.2. */
  readonly minVersion?: 'TLSv1.2' | 'TLSv1.3';
  readonly maxVersion?: 'TLSv1.2' | 'TLSv1.3';
}

export interface SocketOptions {
  readonly clock: Clock;
  /** Until the connection stands. Default 30 s. */
  readonly timeoutMs?: number;
  /** For `tls://`. */
  readonly tls?: TlsCredentials;
  /** The attempt ends when the signal is aborted. */
  readonly signal?: AbortSignal;
}

/**
 * A connected socket. For `tls://` the certificate of the peer must be signed by the given authority;
 * its host name is not compared, as with Dask.
 * @throws YardmasterError `ERR_CONNECT`, `ERR_TIMEOUT`, `ERR_CLOSED`
 */
export async function openSocket(address: string, options: SocketOptions): Promise<Socket> {
  const { timeoutMs = 30_000, clock, signal } = options;
  if (signal?.aborted === true) throw abortedError(address);
  const { socket, event } = startSocket(address, options);
  return new Promise((resolve, reject) => {
    const timer = clock.setTimer(timeoutMs, () => {
      end(timeoutError(address, timeoutMs));
    });
    const onAbort = (): void => {
      end(abortedError(address));
    };
    const onError = (cause: Error): void => {
      end(connectError(address, cause));
    };
    const stopWaiting = (): void => {
      timer.cancel();
      signal?.removeEventListener('abort', onAbort);
      socket.off('error', onError);
    };
    const end = (error: Error): void => {
      stopWaiting();
      socket.on('error', () => undefined); // What comes after the end says nothing new.
      socket.destroy();
      reject(error);
    };
    signal?.addEventListener('abort', onAbort, { once: true });
    socket.once('error', onError);
    socket.once(event, () => {
      stopWaiting();
      resolve(socket);
    });
  });
}

/** The option for certificates, if there are any. */
export function withTls(tls: TlsCredentials | undefined): { readonly tls?: TlsCredentials } {
  return tls === undefined ? {} : { tls };
}

/** The address of our side of a socket. */
export function localAddressOf(socket: Socket, scheme: 'tcp' | 'tls'): string {
  const { localAddress = '', localPort = 0 } = socket;
  return formatDaskAddress({ scheme, host: localAddress, port: localPort });
}

/** @throws YardmasterError `ERR_CONNECT` for an address that cannot be called, `ERR_ACCESS` without certificates for it */
function startSocket(address: string, { tls }: SocketOptions): { socket: Socket; event: string } {
  const { scheme, host, port } = parseDaskAddress(address);
  const where = { host: host === '' ? '127.0.0.1' : host, port };
  if (scheme === 'tcp') return { socket: new DirectSocket().connect(where), event: 'connect' };
  if (tls === undefined) {
    throw new YardmasterError(
      'ERR_ACCESS',
      `cannot connect to ${address}: no certificates are configured; give ca-file, cert and key`,
      { address },
    );
  }
  const socket = connectTls({ ...where, ...tls.current, checkServerIdentity: () => undefined });
  return { socket, event: 'secureConnect' };
}

function timeoutError(address: string, timeoutMs: number): YardmasterError {
  return new YardmasterError(
    'ERR_TIMEOUT',
    `cannot connect to ${address}: no answer within ${timeoutMs} ms; check that the process runs and that no firewall is in the way`,
    { address, timeoutMs },
  );
}

function abortedError(address: string): YardmasterError {
  return new YardmasterError('ERR_CLOSED', `gave up to connect to ${address}`, { address });
}

/** The most bytes that one read of a socket brings, unless the receiver has memory for more. */
const SHARED_BYTES = 64 * 1024;

/** Every read is handled before the next one, of whichever socket: one buffer serves all. */
const shared = Buffer.allocUnsafeSlow(SHARED_BYTES);

/** Node's types leave out what its documentation has for sockets to be connected, and its servers use. */
type DirectSocketOptions = SocketConstructorOpts & {
  readonly handle: object | undefined;
  readonly onread: OnReadOpts;
};

/** Takes what a {@link DirectSocket} reads. */
interface DirectReceiver {
  /** Memory into which the next bytes are to be read; undefined when they are to come as a chunk. */
  space(): Uint8Array | undefined;
  /** So many bytes were read into the memory that `space` returned last. */
  filled(nbytes: number): void;
  /** @param chunk - belongs to the receiver */
  take(chunk: Buffer): void;
}

/**
 * A socket that reads large frames into the memory in which they stay. Sockets of Node read everything
 * into separate chunks of 64 KiB: for a frame of megabytes that is a second copy, and hundreds of
 * buffers that make V8 collect garbage again and again. It emits no event `data`.
 */
export class DirectSocket extends Socket {
  private readonly reads: DirectReads;

  /** @param handle - the connection; undefined: there is none yet */
  constructor(handle?: object, reads = new DirectReads()) {
    super({ handle, onread: reads.onread } as DirectSocketOptions);
    this.reads = reads;
  }

  /**
   * Takes over the connection of a socket that a server has accepted and that has not been read.
   * Such sockets can be had in no other way: the server makes them, without the option `onread`.
   * @returns undefined when this release of Node does not allow it
   */
  static of(accepted: Socket): DirectSocket | undefined {
    const lender = accepted as Socket & { _handle?: unknown };
    const { _handle: handle } = lender;
    if (typeof handle !== 'object' || handle === null || !('useUserBuffer' in handle)) {
      return undefined;
    }
    lender._handle = null;
    const socket = new DirectSocket(handle);
    // The server counts the sockets that it has made.
    socket.once('close', () => accepted.destroy());
    return socket;
  }

  /** From now on the receiver gets everything, first what has come already. */
  attach(receiver: DirectReceiver): void {
    this.reads.attach(receiver);
  }
}

/** The reads of one socket, which may begin before there is a receiver. */
class DirectReads {
  private receiver: DirectReceiver | undefined;
  private readonly early: Buffer[] = [];
  private target: Uint8Array = shared;

  readonly onread = {
    buffer: (): Uint8Array => {
      this.target = this.receiver?.space() ?? shared;
      return this.target;
    },
    callback: (nbytes: number): boolean => {
      const { receiver } = this;
      if (this.target !== shared) receiver?.filled(nbytes);
      else {
        const chunk = Buffer.from(shared.subarray(0, nbytes));
        if (receiver === undefined) this.early.push(chunk);
        else receiver.take(chunk);
      }
      return true;
    },
  };

  attach(receiver: DirectReceiver): void {
    this.receiver = receiver;
    for (const chunk of this.early.splice(0)) receiver.take(chunk);
  }
}

/**
 * Our side of the handshake. No compression, so that no peer compresses what it sends to us; payloads
 * that peers compressed for each other pass through.
 */
export const HANDSHAKE = {
  compression: null,
  python: [3, 11, 0],
  'pickle-protocol': 5,
} as const;

/** Small limits for peers that have not completed the handshake. */
export const HANDSHAKE_LIMITS: FrameLimits = {
  messageBytesMax: 64 * 1024,
  framesMax: 16,
  valuesMax: 512,
};

/** The description that a peer gives of itself. */
export interface PeerInfo {
  readonly pickleProtocol: number;
  /** Version of its Python: `[3, 11, 2]`. */
  readonly python?: readonly unknown[];
}

/** @throws YardmasterError `ERR_PROTOCOL` when it is no introduction of a Dask peer */
export function checkHandshake(message: unknown): PeerInfo {
  if (typeof message === 'object' && message !== null) {
    const { 'pickle-protocol': pickleProtocol, python } = message as Record<string, unknown>;
    if (typeof pickleProtocol === 'number') {
      return { pickleProtocol, ...(Array.isArray(python) ? { python } : {}) };
    }
  }
  throw new YardmasterError(
    'ERR_PROTOCOL',
    'the first message of the peer is no introduction of a Dask process with its pickle-protocol; it does not speak the protocol of Dask, or is older than 2020',
  );
}

/** The address at which a Dask peer listens. */
interface DaskAddress {
  readonly scheme: 'tcp' | 'tls';
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
}

const FORM =
  /^(?:(?<scheme>[a-z]+):\/\/)?(?:\[(?<v6>[^\]]+)\]|(?<name>[^:/[\]]*)):(?<port>\d{1,5})\/?$/;

/**
 * Reads `tcp://127.0.0.1:8786`, `tls://[::1]:8786`, `localhost:8786` (then it is tcp).
 * @throws YardmasterError `ERR_CONNECT` when it has another form
 */
export function parseDaskAddress(address: string): DaskAddress {
  const groups = FORM.exec(address)?.groups;
  const scheme = groups?.['scheme'] ?? 'tcp';
  const port = Number(groups?.['port'] ?? NaN);
  if ((scheme !== 'tcp' && scheme !== 'tls') || groups === undefined || !(port <= 65_535)) {
    throw new YardmasterError(
      'ERR_CONNECT',
      `${JSON.stringify(address)} is not an address of the form tcp://host:port or tls://host:port`,
      { address },
    );
  }
  return { scheme, host: groups['v6'] ?? groups['name'] ?? '', port };
}

/** The form that Dask itself uses. IPv4 addresses that come as IPv6 get their usual form. */
export function formatDaskAddress({ scheme, host, port }: DaskAddress): string {
  const plain = host.startsWith('::ffff:') && host.includes('.') ? host.slice(7) : host;
  return `${scheme}://${plain.includes(':') ? `[${plain}]` : plain}:${port}`;
}
