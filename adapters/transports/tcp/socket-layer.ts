import { connect as connectSocket, createServer, type Server, type Socket } from 'node:net';

import { type PeerRole, type Role, YardmasterError } from '../../../core/api/index.ts';
import { isLoopback } from '../../../core/util/hosts.ts';
import type { HostAndPort } from './index.ts';

/** The kernel asks a silent peer whether it still lives after this time. */
const KEEP_ALIVE_DELAY_MS = 30_000;

/** A socket that got all stays open for what is still to be sent. */
export const SOCKET_OPTIONS = { allowHalfOpen: true } as const;

/**
 * Sends what is written at once, and notices a peer that has vanished. Called for every socket: as options of
 * `tls.connect` both are ignored, and a small message would wait up to 40 ms for the acknowledgement of the one before.
 */
export function tuneSocket(socket: Socket): void {
  socket.setNoDelay(true);
  socket.setKeepAlive(true, KEEP_ALIVE_DELAY_MS);
}

/**
 * Called with a peer, and what it has proved to be.
 * @param peer - its address, where the socket does not know it
 */
export type OnSocket = (socket: Socket, role: PeerRole | undefined, peer?: string) => void;

/** The way of making sockets: plain, or encrypted between peers that have proved who they are. */
export interface SocketLayer {
  readonly scheme: string;
  /**
   * @param onSocket - for each peer whose bytes may be read
   * @throws YardmasterError `ERR_ACCESS` when it must not listen there
   */
  createServer(address: string, target: HostAndPort, onSocket: OnSocket): Server;
  /** The server listens, and peers reach it at this address. */
  listening?(address: string): void;
  /** The server listens no more. */
  closed?(): void;
  /** @throws YardmasterError `ERR_ACCESS` when it has no key */
  connect(target: HostAndPort, address: string, role: Role): Socket;
}

/** Set to 1 by `--insecure`, for this process and those that it starts. */
const INSECURE = 'YARDMASTER_INSECURE';

/** Permits plain listeners beyond this machine, in this process and those that it starts. */
export function permitInsecure(): void {
  process.env[INSECURE] = '1';
}

/**
 * Refuses an address that other machines reach and that neither encrypts nor asks who is there.
 * @param isPermitted - the configuration permits it
 * @throws YardmasterError `ERR_ACCESS`
 */
export function checkPlainListener(address: string, host: string, isPermitted = false): void {
  if (isPermitted || process.env[INSECURE] === '1' || isLoopback(host)) return;
  throw new YardmasterError(
    'ERR_ACCESS',
    `${address} would let all who reach it run code, without encryption or credentials; listen with tls:// instead of tcp://, or say --insecure if the network is trusted`,
    { address },
  );
}

/** Sockets without encryption or authentication: within one machine, or on networks that are trusted. */
export class PlainLayer implements SocketLayer {
  readonly scheme = 'tcp';

  constructor(private readonly isInsecure: boolean | undefined) {}

  createServer(address: string, { host }: HostAndPort, onSocket: OnSocket): Server {
    checkPlainListener(address, host, this.isInsecure);
    return createServer(SOCKET_OPTIONS, (socket) => {
      onSocket(socket, undefined);
    });
  }

  connect(target: HostAndPort): Socket {
    return connectPlain(target);
  }
}

/** Bytes that one read may bring: more than the buffers of a local socket hold. */
const READ_BYTES = 256 * 1024;

/** The buffer into which sockets read, one after the other: what one has read is handled before the next one reads. */
const readBuffer = Buffer.allocUnsafeSlow(READ_BYTES);

/**
 * Connects without encryption. A chunk of its event `data` is valid only until the handler returns, see `keptChunk`. On Windows,
 * where sockets read ahead, each has memory of its own.
 * @param target - host and port, or the path of a Unix socket
 */
export function connectPlain(target: HostAndPort | { readonly path: string }): Socket {
  const options = { ...target, ...SOCKET_OPTIONS };
  if (process.platform === 'win32') return connectSocket(options);
  const socket: Socket = connectSocket({
    ...options,
    onread: {
      buffer: readBuffer,
      callback: (nbytes) => socket.emit('data', readBuffer.subarray(0, nbytes)),
    },
  });
  return socket;
}

/** The chunk of a socket, in memory into which no socket reads. */
export function keptChunk(chunk: Buffer): Buffer {
  return chunk.buffer === readBuffer.buffer ? Buffer.from(chunk) : chunk;
}
