import type { ErrorPayload } from '../messages/protocol.ts';
import { isPromise } from '../util/values.ts';
import type { Clock, Timer } from './clock.ts';
import { isObject, RemoteError, toErrorPayload, YardmasterError } from './errors.ts';
import type { Connection, ConnectionHandlers, MemoryFiles, WireMessage } from './transport.ts';

/** Messages that one call takes. */
const SLICE_MESSAGES = 1000;

/** Requests of a peer that may wait for their answers at the same time. */
const OPEN_ANSWERS_MAX = 100_000;

/** Answers the requests of a peer. What it throws reaches the peer as an error of its request. */
export type RequestHandler = (method: string, parameters: WireMessage) => unknown;

/** Callbacks to the owner of a channel. */
export interface ChannelHandlers {
  /** A message that is not part of a request. */
  onMessage(message: WireMessage): void;
  onRequest: RequestHandler;
  /** Called exactly once; requests that were open have failed before. */
  onClose(error?: Error): void;
}

interface PendingRequest {
  readonly method: string;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
  readonly timer: Timer | undefined;
}

/**
 * A connection on which both sides may send messages and ask questions.
 *
 * Messages keep their order among themselves and relative to requests. A request always ends: with
 * the answer, the peer's error, `ERR_TIMEOUT`, or `ERR_CLOSED` when the connection goes. A peer that
 * breaks this protocol loses its connection with `ERR_PROTOCOL`.
 *
 * Messages with `op` "request" and "reply" are the channel's own.
 */
export class Channel implements ConnectionHandlers {
  private nextId = 0;
  private readonly pending = new Map<number, PendingRequest>();
  private closed = false;
  /** Requests of the peer that have no answer yet. */
  private openAnswers = 0;

  constructor(
    private readonly connection: Connection,
    private readonly clock: Clock,
    private readonly handlers: ChannelHandlers,
  ) {}

  get peerAddress(): string {
    return this.connection.peerAddress;
  }

  /** Largest encoded message in bytes that can be sent. */
  get messageBytesMax(): number {
    return this.connection.messageBytesMax ?? Infinity;
  }

  /** True when byte arrays arrive as the very objects that were sent. */
  get sharesMemory(): boolean {
    return this.connection.sharesMemory ?? false;
  }

  /** See {@link Connection.memoryFiles}. */
  get memoryFiles(): MemoryFiles | undefined {
    return this.connection.memoryFiles;
  }

  /** It is over, or was aborted. */
  get isClosed(): boolean {
    return this.closed;
  }

  send(...messages: readonly WireMessage[]): void {
    this.connection.send(...messages);
  }

  /** Sends a list of any length, in slices, because a call takes at most some 100 000 arguments. */
  sendAll(messages: readonly WireMessage[]): void {
    for (let from = 0; from < messages.length; from += SLICE_MESSAGES) {
      this.connection.send(...messages.slice(from, from + SLICE_MESSAGES));
    }
  }

  /**
   * As `send`, in the same order, for messages without a waiting receiver: they are sent with the
   * next urgent message, or after a few milliseconds.
   */
  sendLater(...messages: readonly WireMessage[]): void {
    const { connection } = this;
    if (connection.sendLater === undefined) connection.send(...messages);
    else connection.sendLater(...messages);
  }

  /**
   * @param timeoutMs - Infinity waits for as long as the connection lives
   * @throws RemoteError what the peer's handler threw
   * @throws YardmasterError `ERR_TIMEOUT`, `ERR_CLOSED`, `ERR_NOT_SERIALISABLE`
   */
  request<T = unknown>(
    method: string,
    parameters: WireMessage = {},
    timeoutMs = Infinity,
  ): Promise<T> {
    if (this.closed) return Promise.reject(this.closedError(method));
    const id = this.nextId++;
    return new Promise<T>((resolve, reject) => {
      // First, because it throws when the parameters cannot travel; then nothing is left behind.
      this.connection.send({ op: 'request', id, method, parameters });
      const timer = Number.isFinite(timeoutMs)
        ? this.clock.setTimer(timeoutMs, () => {
            this.pending.delete(id);
            reject(this.timeoutError(method, timeoutMs));
          })
        : undefined;
      this.pending.set(id, { method, resolve: resolve as (value: unknown) => void, reject, timer });
    });
  }

  /** Sends what is queued, then closes. */
  close(): Promise<void> {
    return this.connection.close();
  }

  /** Closes at once. The owner gets `onClose` and no other callback. */
  abort(reason: Error): void {
    this.closed = true;
    this.connection.abort(reason);
  }

  /** See {@link Connection.giveBack}. */
  giveBack(bytes: Uint8Array): boolean {
    return this.connection.giveBack?.(bytes) ?? false;
  }

  drained(): Promise<void> {
    return this.connection.drained();
  }

  onMessages(batch: readonly WireMessage[]): void {
    for (const message of batch) {
      if (this.closed) return;
      if (message['op'] === 'request') this.answer(message);
      else if (message['op'] === 'reply') this.settle(message);
      else this.handlers.onMessage(message);
    }
  }

  onClose(error?: Error): void {
    this.closed = true;
    for (const request of this.pending.values()) {
      request.timer?.cancel();
      request.reject(this.closedError(request.method, error));
    }
    this.pending.clear();
    this.handlers.onClose(error);
  }

  private answer(message: WireMessage): void {
    const { id, method, parameters = {} } = message;
    if (!isRequestId(id) || typeof method !== 'string' || !isObject(parameters)) {
      this.breach('a request without id, method or parameters');
      return;
    }
    if (this.openAnswers >= OPEN_ANSWERS_MAX) {
      this.breach(`more than ${OPEN_ANSWERS_MAX} requests without waiting for an answer`);
      return;
    }
    const succeed = (value: unknown): void => {
      if (!this.closed) this.connection.send({ op: 'reply', id, ok: true, value });
    };
    const fail = (thrown: unknown): void => {
      // A peer that is gone may have left very many, and to describe an error is not cheap.
      if (!this.closed) this.sendFailure(id, thrown);
    };
    try {
      const value = this.handlers.onRequest(method, parameters);
      // An answer that cannot travel makes `succeed` throw, which is then the answer.
      if (!isPromise(value)) succeed(value);
      else {
        this.openAnswers++;
        const over = (): void => {
          this.openAnswers--;
        };
        Promise.resolve(value).then(succeed).catch(fail).then(over, over);
      }
    } catch (thrown) {
      fail(thrown);
    }
  }

  private sendFailure(id: number, thrown: unknown): void {
    try {
      this.connection.send({ op: 'reply', id, ok: false, error: toErrorPayload(thrown) });
    } catch (refusal) {
      // The error itself cannot travel; its text and the reason can.
      this.connection.send({ op: 'reply', id, ok: false, error: describeError(thrown, refusal) });
    }
  }

  private settle(message: WireMessage): void {
    const { id, ok, value, error } = message;
    if (!isRequestId(id) || id >= this.nextId) {
      this.breach('a reply to a request that was never made');
      return;
    }
    const request = this.pending.get(id);
    if (request === undefined) return; // It timed out before.
    if (ok !== true && !isErrorPayload(error)) {
      this.breach('a reply with neither a value nor an error');
      return;
    }
    this.pending.delete(id);
    request.timer?.cancel();
    if (ok === true) request.resolve(value);
    else request.reject(new RemoteError(error as ErrorPayload));
  }

  private breach(what: string): void {
    this.abort(
      new YardmasterError(
        'ERR_PROTOCOL',
        `${this.peerAddress} sent ${what}; it runs another version, or is broken`,
        { peer: this.peerAddress },
      ),
    );
  }

  private timeoutError(method: string, timeoutMs: number): YardmasterError {
    return new YardmasterError(
      'ERR_TIMEOUT',
      `${this.peerAddress} did not answer "${method}" within ${timeoutMs} ms`,
      { method, timeoutMs, peer: this.peerAddress },
    );
  }

  private closedError(method: string, cause?: Error): YardmasterError {
    return new YardmasterError(
      'ERR_CLOSED',
      `the connection to ${this.peerAddress} closed before "${method}" was answered`,
      { method, peer: this.peerAddress },
      cause === undefined ? {} : { cause },
    );
  }
}

function isRequestId(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isErrorPayload(value: unknown): boolean {
  return (
    isObject(value) && typeof value['name'] === 'string' && typeof value['message'] === 'string'
  );
}

/** Describes an error whose fields, or whose text, cannot travel. */
function describeError(thrown: unknown, refusal: unknown): ErrorPayload {
  const { name, message, code } = (thrown instanceof Error ? thrown : {}) as {
    readonly name?: unknown;
    readonly message?: unknown;
    readonly code?: unknown;
  };
  return {
    name: plainText(name, 'Error'),
    message: plainText(message, 'an error that cannot be sent'),
    ...(typeof code === 'string' ? { code: plainText(code, '') } : {}),
    data: { notSent: plainText((refusal as Error | undefined)?.message, String(refusal)) },
  };
}

/** Text with nothing in it that an encoding could refuse. */
function plainText(value: unknown, otherwise: string): string {
  return (typeof value === 'string' ? value : otherwise).replace(/\p{Surrogate}/gu, '\uFFFD');
}
