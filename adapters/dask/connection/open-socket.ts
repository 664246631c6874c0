import type { Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

import { type Clock, YardmasterError } from '../../../core/api/index.ts';
import { connectError } from '../../transports/tcp/errors.ts';
import type { RenewedFiles } from '../../transports/tls/renewed-files.ts';
import { formatDaskAddress, parseDaskAddress } from './address.ts';
import { DirectSocket } from './direct-socket.ts';

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

/** How to open a socket. */
export interface SocketOptions {
  readonly clock: Clock;
  /** Until the connection stands. Default 30 s. */
  readonly timeoutMs?: number;
  /** For `tls://`. */
  readonly tls?: TlsCredentials;
  /** When it is aborted, the attempt ends. */
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

/** @throws YardmasterError `ERR_CONNECT` for an address that cannot be called */
function startSocket(address: string, { tls }: SocketOptions): { socket: Socket; event: string } {
  const { scheme, host, port } = parseDaskAddress(address);
  const where = { host: host === '' ? '127.0.0.1' : host, port };
  if (scheme === 'tcp') return { socket: new DirectSocket().connect(where), event: 'connect' };
  if (tls === undefined) {
    throw new YardmasterError(
      'ERR_CONNECT',
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
