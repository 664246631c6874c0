import type { Socket } from 'node:net';

import type {
  Clock,
  Connection,
  ConnectionHandlers,
  YardmasterError,
} from '../../../core/api/index.ts';
import { seemsDask } from './preamble.ts';

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

/** How to deal with peers that speak another protocol. */
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
export const SILENT_PROTOCOL = 'Dask';

/**
 * A caller that sends nothing for this long seems to expect that the listener speaks first, as peers of
 * Dask before 2024 do. Our own callers send their preamble as soon as they are connected.
 */
export const SILENCE_MS = 1000;

/**
 * Reads no further than the first bytes of a caller, and then passes the socket on, with all of its bytes.
 * A caller that leaves before is dropped.
 * @param onOurs - for callers of ours, and of protocols that are not answered
 */
export function tellApart(
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
