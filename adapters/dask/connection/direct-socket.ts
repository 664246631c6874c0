import { type OnReadOpts, Socket, type SocketConstructorOpts } from 'node:net';

/** What one read of a socket brings at most, unless the receiver has memory for more. */
const SHARED_BYTES = 64 * 1024;

/** Every read is handled before the next one, of whichever socket: one buffer serves all. */
const shared = Buffer.allocUnsafeSlow(SHARED_BYTES);

/** Node's types leave out what its documentation has for sockets to be connected, and its servers use. */
type SocketOptions = SocketConstructorOpts & {
  readonly handle: object | undefined;
  readonly onread: OnReadOpts;
};

/** Takes what a {@link DirectSocket} reads. */
export interface DirectReceiver {
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
    super({ handle, onread: reads.onread } as SocketOptions);
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
