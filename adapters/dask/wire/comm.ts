import type { Socket } from 'node:net';
import { MessageChannel } from 'node:worker_threads';
import { asError, type Clock, type Timer, YardmasterError } from '../../../core/api/index.ts';
import { UNREAD_BYTES_MAX } from '../../../core/shared/limits.ts';
import { Deferred } from '../../../core/util/promises.ts';
import { TurnBudget } from '../../../core/shared/turn.ts';
import { PacedReads } from '../../transports/tcp/connection.ts';
import { brokenError, ofPeer, stalledFrameError, stuckError } from '../../transports/tcp/errors.ts';
import { FRAME_STALL_MS, FrameDeadline } from '../../transports/tcp/frame-deadline.ts';
import { Incoming, type IncomingMessage, Outgoing } from './streams.ts';
import { decodeMessage, Opaque } from './codec.ts';
import { throwIfUncaught } from './py-errors.ts';
import {
  CALLER_LIMITS,
  FRAME_LIMITS,
  type FrameLimits,
  FrameReader,
  LARGE_FRAME_BYTES,
} from './frames.ts';
import {
  checkHandshake,
  DirectSocket,
  formatDaskAddress,
  HANDSHAKE,
  HANDSHAKE_LIMITS,
  localAddressOf,
  openSocket,
  parseDaskAddress,
  type PeerInfo,
  type SocketOptions,
} from './sockets.ts';

/** Receiver of the messages of a connection. */
export interface CommHandlers {
  /**
   * @param message - one message as it arrived; on a stream usually a list of messages
   * @param frames - its bytes, for receivers that forward it without reading it; they must not be
   *   changed
   */
  onMessage(message: unknown, frames: readonly Uint8Array[]): void;
  /** Once, and last. @param error - set when the connection did not end in good order */
  onClose(error?: Error): void;
}

export interface CommOptions {
  readonly clock: Clock;
  /** Until the peer has introduced itself. Default 30 s, as with Dask. */
  readonly handshakeTimeoutMs?: number;
  /** A close ends by force when nothing moves for this long. Default 5 s. */
  readonly closeTimeoutMs?: number;
  /** `drained` waits while more than this is buffered, in bytes. Default 16 MiB. */
  readonly highWaterBytes?: number;
  /** A peer that has more than this to read is disconnected. Default 1 GiB. */
  readonly unreadBytesMax?: number;
}

/** The time for which a message of a registered peer may stand still: they send large ones, and many at once over one link. */
const TRUSTED_STALL_MS = 5 * 60_000;

export interface ConnectOptions extends CommOptions, SocketOptions {}

/**
 * One connection with a Dask peer: first a sequence of requests and answers (`read`, `write`, `call`),
 * or from some moment on a stream of batches (`attach`, `send`).
 *
 * All ways to its end go through `fail` or the socket's own end, then the socket's `close` event.
 */
export class Comm {
  /** The description that the peer gave of itself; known when `introduced` has resolved. */
  peer: PeerInfo = { pickleProtocol: 4 };
  private readonly reader: FrameReader;
  private readonly deadline: FrameDeadline;
  private readonly reads: PacedReads;
  private readonly incoming: Incoming;
  private readonly outgoing: Outgoing;
  private handlers: CommHandlers | undefined;
  /** True when the first message of the peer has come. */
  private isIntroduced = false;
  /** Tells whether the peer may send as much as registered ones. */
  private isTrusted: () => boolean = () => false;
  private state: 'open' | 'closing' | 'over' = 'open';
  private error: Error | undefined;
  private closeTimer: Timer | undefined;
  private readonly end = new Deferred<Error | undefined>();
  /** Resolves when it is over, whatever the reason. */
  readonly closed = this.end.promise;

  constructor(
    private readonly socket: Socket,
    /** Of the form `tcp://host:port`. */
    readonly peerAddress: string,
    readonly localAddress: string,
    private readonly options: CommOptions,
  ) {
    this.deadline = new FrameDeadline(options.clock, {
      underWay: () => this.reader.messageUnderWay,
      stallMs: () => (this.isTrusted() ? TRUSTED_STALL_MS : FRAME_STALL_MS),
      onStalled: (nbytes, withinMs) => {
        this.fail(stalledFrameError(peerAddress, nbytes, withinMs));
      },
    });
    this.reads = new PacedReads(socket, TurnBudget.of(options.clock), (chunk) => {
      this.push(chunk);
    });
    if (socket instanceof DirectSocket) this.readDirectly(socket);
    this.incoming = new Incoming(
      {
        pause: () => {
          this.deadline.hold(true);
          this.reads.pause();
        },
        resume: () => {
          this.deadline.hold(false);
          this.reads.resume();
        },
      },
      options.clock,
    );
    this.outgoing = new Outgoing(socket, options.clock, options.highWaterBytes);
    this.reader = new FrameReader(
      (frames) => this.receive(frames),
      () => this.limitsNow(),
    );
    this.listen();
  }

  /**
   * Calls a Dask process and exchanges introductions.
   * @param address - `tcp://host:port`, or `tls://host:port` with certificates
   * @throws YardmasterError `ERR_CONNECT`, `ERR_TIMEOUT`, `ERR_PROTOCOL`
   */
  static async connect(address: string, options: ConnectOptions): Promise<Comm> {
    const socket = await openSocket(address, options);
    const { scheme } = parseDaskAddress(address);
    const comm = new Comm(socket, address, localAddressOf(socket, scheme), options);
    const { signal } = options;
    const onAbort = (): void => comm.abort(asError(signal?.reason));
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      await comm.introduce(false);
    } finally {
      signal?.removeEventListener('abort', onAbort);
    }
    comm.trust();
    return comm;
  }

  /**
   * Exchanges introductions with who has called us.
   * @param scheme - `tls` for a socket that is encrypted
   * @throws YardmasterError `ERR_PROTOCOL`, `ERR_TIMEOUT`, `ERR_CLOSED`; then the socket is closed
   */
  static async accept(
    socket: Socket,
    options: CommOptions,
    scheme: 'tcp' | 'tls' = 'tcp',
  ): Promise<Comm> {
    const { remoteAddress = 'unknown', remotePort = 0 } = socket;
    const peerAddress = formatDaskAddress({ scheme, host: remoteAddress, port: remotePort });
    const comm = new Comm(socket, peerAddress, localAddressOf(socket, scheme), options);
    await comm.introduce(true);
    return comm;
  }

  /** It is closing, or over. */
  get isClosed(): boolean {
    return this.state !== 'open';
  }

  /** Bytes that were given to `write` or `send` and that the system has not taken. */
  get bufferedBytes(): number {
    return this.outgoing.nbytes;
  }

  /**
   * Batches leave no faster than this, so that a busy stream takes few writes; one after a pause leaves
   * at the end of the turn. 0, as it is at first: always at the end of the turn.
   */
  set batchIntervalMs(ms: number) {
    this.outgoing.intervalMs = ms;
  }

  /**
   * Exchanges introductions; call it once, before anything else.
   * @param isListener - the peer called us; Dask has the listener speak first
   * @throws YardmasterError `ERR_PROTOCOL`, `ERR_TIMEOUT`, `ERR_CLOSED`
   */
  async introduce(isListener: boolean): Promise<void> {
    const timeoutMs = this.options.handshakeTimeoutMs ?? 30_000;
    try {
      if (isListener) this.write(HANDSHAKE);
      this.peer = checkHandshake(await this.readNext(timeoutMs));
      if (!isListener) this.write(HANDSHAKE);
    } catch (thrown) {
      const error = YardmasterError.is(thrown) ? ofPeer(this.peerAddress, thrown) : asError(thrown);
      this.fail(error);
      throw error;
    }
  }

  /**
   * The next message, for request and answer.
   * @param timeoutMs - then the comm is of no more use and is given up
   * @throws YardmasterError `ERR_CLOSED` and others that ended the connection, `ERR_TIMEOUT`
   */
  async read(timeoutMs = Infinity): Promise<unknown> {
    return this.readNext(timeoutMs);
  }

  /** As `read`, with the bytes of the message. */
  async readFrames(timeoutMs = Infinity): Promise<IncomingMessage> {
    const next = this.incoming.shift();
    if (next !== undefined) return next;
    if (this.state === 'over') throw this.closedError();
    return this.incoming.next(timeoutMs, () => {
      this.fail(silentError(this.peerAddress, timeoutMs));
    });
  }

  /**
   * From now on the peer may send as much as registered peers may, and not only what callers may.
   * @param when - asked with each message until it says so once; default: at once
   */
  trust(when: () => boolean = () => true): void {
    this.isTrusted = () => {
      if (!when()) return false;
      this.isTrusted = () => true;
      return true;
    };
  }

  /** Directs all messages to these handlers from now on, unread messages first. */
  attach(handlers: CommHandlers): void {
    this.handlers = handlers;
    this.failIfThrows(() => {
      this.incoming.attach(({ message, frames }) => {
        handlers.onMessage(message, frames);
      });
    });
    if (this.state === 'over') this.tellClose();
  }

  /**
   * As `pause` and `resume`, for a reason that is independent of the reader. Messages flow only
   * when neither of them holds.
   */
  hold(isHeld: boolean): void {
    this.failIfThrows(() => this.incoming.hold(isHeld));
  }

  /** Delivers no further message until `resume`, so that the peer meets back-pressure. */
  pause(): void {
    this.incoming.pause();
  }

  resume(): void {
    this.failIfThrows(() => {
      this.incoming.resume();
    });
  }

  /**
   * Writes one message at once. On a closed connection it is lost; see `closed`.
   * @throws YardmasterError `ERR_NOT_SERIALISABLE`
   */
  write(message: unknown): void {
    if (this.admits()) this.outgoing.write(message);
  }

  /**
   * Messages of a stream. All of a turn of the event loop leave as one list.
   * @throws YardmasterError `ERR_NOT_SERIALISABLE`; the messages before that one are sent
   */
  send(...messages: readonly unknown[]): void {
    if (!this.admits()) return;
    for (const message of messages) this.outgoing.add(message);
  }

  /**
   * A request and its answer. One at a time: calls of a comm must not overlap.
   * @param parameters - undefined ones are left out
   * @throws PythonError when the handler of the peer raised; YardmasterError as `read` does
   */
  async call(
    op: string,
    parameters: Readonly<Record<string, unknown>> = {},
    { timeoutMs = Infinity }: { readonly timeoutMs?: number } = {},
  ): Promise<unknown> {
    if (this.state !== 'open') throw this.closedError();
    this.write({ op, ...parameters, reply: true });
    const answer = await this.readNext(timeoutMs);
    throwIfUncaught(answer, `${op} of ${this.peerAddress}`);
    return answer;
  }

  /**
   * Resolves when what is buffered is at most this many bytes, or the comm is over.
   * @param nbytes - default: the high-water mark
   */
  drained(nbytes?: number): Promise<void> {
    return this.outgoing.drained(nbytes);
  }

  /** Sends what is buffered, then ends. */
  async close(): Promise<void> {
    if (this.state === 'open') {
      this.state = 'closing';
      this.outgoing.end();
      this.incoming.end();
      this.watchClose();
    }
    await this.closed;
  }

  /** Ends it now; what is buffered is lost. */
  abort(reason: Error): void {
    this.fail(reason);
  }

  private async readNext(timeoutMs: number): Promise<unknown> {
    return (await this.readFrames(timeoutMs)).message;
  }

  private listen(): void {
    const { socket } = this;
    socket.setNoDelay(true);
    socket.setKeepAlive(true, 7_500);
    socket.on('end', () => {
      this.reads.finish();
      const error = this.reader.endError();
      if (error !== undefined) this.fail(ofPeer(this.peerAddress, error));
      else if (this.state === 'open') {
        this.state = 'closing';
        this.outgoing.stop();
      }
    });
    socket.on('error', (cause: NodeJS.ErrnoException) => {
      this.reads.finish();
      this.fail(brokenError(this.peerAddress, cause));
    });
    socket.on('close', () => {
      this.finish();
    });
  }

  /** Large frames go straight to their place, unless chunks before them still wait. */
  private readDirectly(socket: DirectSocket): void {
    socket.attach({
      space: () => (this.reads.isEmpty ? this.reader.space() : undefined),
      filled: (nbytes) => {
        this.filled(nbytes);
      },
      take: (chunk) => {
        this.reads.take(chunk);
      },
    });
  }

  private filled(nbytes: number): void {
    if (this.state === 'over') return;
    try {
      this.reader.filled(nbytes);
      this.deadline.received(nbytes);
    } catch (error) {
      this.failReading(error);
    }
  }

  private push(chunk: Buffer): void {
    if (this.state === 'over') return;
    try {
      this.reader.push(chunk);
      this.deadline.received(chunk.length);
    } catch (error) {
      this.failReading(error);
    }
  }

  private failReading(error: unknown): void {
    this.fail(YardmasterError.is(error) ? ofPeer(this.peerAddress, error) : asError(error));
  }

  private receive(frames: readonly Uint8Array[]): void {
    if (this.state === 'over') return;
    const message = decodeMessage(frames, this.limitsNow().valuesMax);
    this.isIntroduced = true;
    this.incoming.take({ message, frames });
  }

  private limitsNow(): FrameLimits {
    if (!this.isIntroduced) return HANDSHAKE_LIMITS;
    return this.isTrusted() ? FRAME_LIMITS : CALLER_LIMITS;
  }

  /** False when it is not open, or its peer does not read, for which it ends. */
  private admits(): boolean {
    if (this.state !== 'open') return false;
    const { unreadBytesMax = UNREAD_BYTES_MAX } = this.options;
    const nbytes = this.bufferedBytes;
    if (nbytes <= unreadBytesMax) return true;
    const peer = this.peerAddress;
    const message = `${peer} was disconnected: it has ${nbytes} bytes to read`;
    this.fail(new YardmasterError('ERR_TIMEOUT', message, { peer }));
    return false;
  }

  private failIfThrows(run: () => void): void {
    try {
      run();
    } catch (error) {
      this.fail(asError(error));
    }
  }

  /** A peer that does not read, or does not end its side, cannot hold the close for ever. */
  private watchClose(): void {
    const { clock, closeTimeoutMs = 5_000 } = this.options;
    const { sentCount } = this.outgoing;
    this.closeTimer = clock.setTimer(closeTimeoutMs, () => {
      const { outgoing } = this;
      if (outgoing.sentCount !== sentCount) this.watchClose();
      else if (outgoing.nbytes === 0) this.socket.destroy();
      else this.fail(stuckError(this.peerAddress, closeTimeoutMs, outgoing.nbytes));
    });
  }

  private fail(reason: Error): void {
    if (this.state === 'over') return;
    this.state = 'over';
    this.error ??= reason;
    this.outgoing.drop();
    this.socket.destroy();
    this.incoming.fail(this.closedError());
  }

  private finish(): void {
    this.state = 'over';
    this.deadline.end();
    this.closeTimer?.cancel();
    this.outgoing.drop();
    this.incoming.fail(this.closedError());
    this.end.resolve(this.error);
    this.tellClose();
  }

  private tellClose(): void {
    const { handlers } = this;
    if (handlers === undefined || !this.socket.closed) return;
    this.handlers = undefined;
    if (this.error === undefined) handlers.onClose();
    else handlers.onClose(this.error);
  }

  private closedError(): Error {
    return (
      this.error ??
      new YardmasterError('ERR_CLOSED', `connection with ${this.peerAddress}: it is closed`, {
        peer: this.peerAddress,
      })
    );
  }
}

function silentError(peer: string, timeoutMs: number): YardmasterError {
  return new YardmasterError(
    'ERR_TIMEOUT',
    `connection with ${peer}: nothing came within ${timeoutMs} ms`,
    { peer, timeoutMs },
  );
}

const { port1: closedPort } = new MessageChannel();
closedPort.close();

/**
 * Gives the memory of large frames back to the system now: a collection of garbage would do so at some
 * later time, or never in a process that has little to do. The frames are empty from then on. One leaves
 * in each turn of the event loop, because the system takes a millisecond for each few megabytes.
 * @param values - opaque values that were passed on, and to which nothing else refers
 */
export function releaseFrames(values: Iterable<unknown>, clock: Clock): void {
  const memory: ArrayBuffer[] = [];
  for (const value of values) if (value instanceof Opaque) memory.push(...largeFramesOf(value));
  const releaseNext = (): void => {
    const next = memory.pop();
    if (next === undefined) return;
    // What is transferred leaves this thread, and a closed port drops it.
    closedPort.postMessage(null, [next]);
    if (memory.length > 0) clock.setTimer(0, releaseNext);
  };
  releaseNext();
}

/** The memory of those that share it with nothing else. */
function largeFramesOf({ frames }: Opaque): ArrayBuffer[] {
  return frames.flatMap(({ buffer, length }) => {
    const isAlone = length >= LARGE_FRAME_BYTES && length === buffer.byteLength;
    return isAlone && buffer instanceof ArrayBuffer ? [buffer] : [];
  });
}

/** The result of a handler that has answered by itself. */
export const NO_REPLY: unique symbol = Symbol('no reply');
