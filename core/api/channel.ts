import type { ErrorPayload } from '../messages/payload.ts';
import type { Clock, Timer } from './clock.ts';
import { RemoteError, toErrorPayload, YardmasterError } from './errors.ts';
import type { Connection, ConnectionHandlers, WireMessage } from './transport.ts';

/** Answers the requests of a peer. What it throws reaches the peer as an error of its request. */
export type RequestHandler = (method: string, parameters: WireMessage) => unknown;

/** What the owner of a channel gets told. */
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
 * the answer, the peer's error, `ERR_TIMEOUT`, or `ERR_CLOSED` when the connection goes.
 */
export class Channel implements ConnectionHandlers {
  private nextId = 0;
  private readonly pending = new Map<number, PendingRequest>();
  private closed = false;

  constructor(
    private readonly connection: Connection,
    private readonly clock: Clock,
    private readonly handlers: ChannelHandlers,
  ) {}

  get peerAddress(): string {
    return this.connection.peerAddress;
  }

  get isClosed(): boolean {
    return this.closed;
  }

  send(...messages: readonly WireMessage[]): void {
    this.connection.send(...messages);
  }

  /**
   * @param timeoutMs - Infinity waits for as long as the connection lives
   * @throws RemoteError what the peer's handler threw
   * @throws YardmasterError `ERR_TIMEOUT`, `ERR_CLOSED`
   */
  request<T = unknown>(
    method: string,
    parameters: WireMessage = {},
    timeoutMs = Infinity,
  ): Promise<T> {
    if (this.closed) return Promise.reject(this.closedError(method));
    const id = this.nextId++;
    return new Promise<T>((resolve, reject) => {
      const timer = Number.isFinite(timeoutMs)
        ? this.clock.setTimer(timeoutMs, () => {
            this.pending.delete(id);
            reject(
              new YardmasterError(
                'ERR_TIMEOUT',
                `${this.peerAddress} did not answer "${method}" within ${timeoutMs} ms`,
                { method, timeoutMs, peer: this.peerAddress },
              ),
            );
          })
        : undefined;
      this.pending.set(id, { method, resolve: resolve as (value: unknown) => void, reject, timer });
      this.connection.send({ op: 'request', id, method, parameters });
    });
  }

  /** Sends what is queued, then closes. */
  close(): Promise<void> {
    return this.connection.close();
  }

  abort(reason: Error): void {
    this.connection.abort(reason);
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
    const { id, method, parameters } = message as unknown as {
      id: number;
      method: string;
      parameters?: WireMessage;
    };
    const fail = (thrown: unknown): void => {
      this.connection.send({ op: 'reply', id, ok: false, error: toErrorPayload(thrown) });
    };
    try {
      const value = this.handlers.onRequest(method, parameters ?? {});
      if (!isPromise(value)) {
        this.connection.send({ op: 'reply', id, ok: true, value });
        return;
      }
      value.then((settled) => {
        this.connection.send({ op: 'reply', id, ok: true, value: settled });
      }, fail);
    } catch (thrown) {
      fail(thrown);
    }
  }

  private settle(message: WireMessage): void {
    const id = message['id'] as number;
    const request = this.pending.get(id);
    if (request === undefined) return; // It timed out before.
    this.pending.delete(id);
    request.timer?.cancel();
    if (message['ok'] === true) request.resolve(message['value']);
    else request.reject(new RemoteError(message['error'] as ErrorPayload));
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

function isPromise(value: unknown): value is Promise<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value;
}
