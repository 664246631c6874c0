import { connect as connectSocket, createServer, type Server, type Socket } from 'node:net';

import { type PeerRole, type Role, YardmasterError } from '../../../core/api/index.ts';
import type { HostAndPort } from './address.ts';

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

/** How sockets are made: plain, or encrypted between peers that have proved who they are. */
export interface SocketLayer {
  readonly scheme: string;
  /** Emitted by a socket when bytes can be exchanged. */
  readonly readyEvent: 'connect' | 'secureConnect';
  /**
   * @param onSocket - for each peer whose bytes may be read
   * @throws YardmasterError `ERR_ACCESS` when it must not listen there
   */
  createServer(
    address: string,
    target: HostAndPort,
    onSocket: (socket: Socket, role: PeerRole | undefined) => void,
  ): Server;
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

/** Whether only this machine reaches a host. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^(::ffff:)?127\.\d+\.\d+\.\d+$/.test(host);
}

/** Sockets without encryption or authentication: within one machine, or on networks that are trusted. */
export class PlainLayer implements SocketLayer {
  readonly scheme = 'tcp';
  readonly readyEvent = 'connect';

  constructor(private readonly isInsecure: boolean | undefined) {}

  createServer(
    address: string,
    { host }: HostAndPort,
    onSocket: (socket: Socket, role: PeerRole | undefined) => void,
  ): Server {
    checkPlainListener(address, host, this.isInsecure);
    return createServer(SOCKET_OPTIONS, (socket) => {
      onSocket(socket, undefined);
    });
  }

  connect(target: HostAndPort): Socket {
    return connectSocket({ ...target, ...SOCKET_OPTIONS });
  }
}
