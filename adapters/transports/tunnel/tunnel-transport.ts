import { MessageChannel, type MessagePort } from 'node:worker_threads';
import {
  type Connection,
  type ConnectionHandlers,
  type ErrorPayload,
  type Listener,
  RemoteError,
  type Role,
  type Transport,
  type TransportConnectOptions,
  type WireMessage,
  YardmasterError,
} from '../../../core/api/index.ts';
import { FRAME_BYTES_MAX, MsgpackCodec } from '../../codecs/msgpack/index.ts';
import type { IntoTunnel, OutOfTunnel } from './messages.ts';
import { refer, referencesIn } from './references.ts';

/** Asks another thread of this process to connect, and to answer through the port. */
type OpenTunnel = (request: TunnelRequest) => void;

/** What the other thread is asked for; see `relayConnection`. */
export interface TunnelRequest {
  readonly address: string;
  readonly timeoutMs: number;
  /** What the connecting side is. */
  readonly role: Role;
  readonly port: MessagePort;
}

/**
 * Connections for a thread, made by another thread of the process with its own transport. So a task
 * reaches whatever its worker reaches, in memory too. Messages are moved between the threads, not
 * copied. It cannot listen.
 */
export class TunnelTransport implements Transport {
  /** @param scheme - that of the transport at the other end */
  constructor(
    readonly scheme: string,
    private readonly openTunnel: OpenTunnel,
  ) {}

  listen(address: string): Promise<Listener> {
    const message = `a task cannot listen at ${address}; its worker listens for it`;
    return Promise.reject(new YardmasterError('ERR_CONNECT', message, { address }));
  }

  connect(
    address: string,
    open: (connection: Connection) => ConnectionHandlers,
    { timeoutMs = Infinity, role = 'client' }: TransportConnectOptions = {},
  ): Promise<Connection> {
    const { port1, port2 } = new MessageChannel();
    return new Promise((resolve, reject) => {
      port1.once('message', (answer: OutOfTunnel) => {
        if (answer.op !== 'opened') {
          port1.close();
          reject(failure(address, answer.op === 'failed' ? answer.error : undefined));
          return;
        }
        const connection = new TunnelConnection(answer.peerAddress, answer.sharesMemory, port1);
        try {
          connection.attach(open(connection));
          resolve(connection);
        } catch (thrown) {
          const error = thrown instanceof Error ? thrown : new Error(String(thrown));
          connection.abort(error);
          reject(error);
        }
      });
      this.openTunnel({ address, timeoutMs, role, port: port2 });
    });
  }
}

/** The error with the class and code that it had in the other thread. */
function failure(address: string, payload: ErrorPayload | undefined): Error {
  if (payload === undefined) {
    return new YardmasterError('ERR_CONNECT', `${address} cannot be reached`, { address });
  }
  const { code, message, data } = payload;
  return code === 'ERR_CONNECT'
    ? new YardmasterError('ERR_CONNECT', message, data)
    : new RemoteError(payload);
}

/** Bytes under way beyond which `drained` waits. */
const HIGH_WATER_BYTES = 1024 * 1024;

class TunnelConnection implements Connection {
  /** Sent, and not known to have left the other thread. */
  private underWayBytes = 0;
  private readonly drainWaiters: (() => void)[] = [];
  private readonly codec = new MsgpackCodec(FRAME_BYTES_MAX, { isSharing: true });
  private handlers: ConnectionHandlers | undefined;
  private state: 'open' | 'closing' | 'over' = 'open';
  private readonly over: Promise<void>;
  private resolveOver!: () => void;

  constructor(
    readonly peerAddress: string,
    readonly sharesMemory: boolean,
    private readonly port: MessagePort,
  ) {
    this.over = new Promise((resolve) => {
      this.resolveOver = resolve;
    });
  }

  /** Directs all callbacks to these handlers from now on. */
  attach(handlers: ConnectionHandlers): void {
    this.handlers = handlers;
    const { port } = this;
    port.on('message', (message: OutOfTunnel) => this.receive(message));
    port.on('close', () => this.finish(this.cut('the thread of the worker is gone')));
  }

  send(...messages: readonly WireMessage[]): void {
    if (this.state !== 'open' || messages.length === 0) return;
    const encoded = messages.map((message) => {
      const shared = this.codec.encodeMessage(message);
      return this.codec.keep(shared) ? shared : shared.slice();
    });
    for (const { byteLength } of encoded) this.underWayBytes += byteLength;
    const references = referencesIn(messages);
    this.post({ op: 'send', messages: encoded, references }, buffersOf(encoded));
  }

  get bufferedBytes(): number {
    return this.underWayBytes;
  }

  drained(): Promise<void> {
    if (this.underWayBytes <= HIGH_WATER_BYTES || this.state === 'over') return Promise.resolve();
    return new Promise((resolve) => {
      this.drainWaiters.push(resolve);
    });
  }

  close(): Promise<void> {
    if (this.state === 'open') {
      this.state = 'closing';
      this.post({ op: 'close' });
    }
    return this.over;
  }

  abort(reason: Error): void {
    if (this.state === 'over') return;
    this.state = 'over';
    this.post({ op: 'abort', reason: reason.message });
    // Not from within this call.
    setImmediate(() => this.end(reason));
  }

  private receive(message: OutOfTunnel): void {
    if (this.state === 'over') return;
    if (message.op === 'closed') {
      const { error } = message;
      this.finish(error === undefined ? undefined : this.cut(error.message));
    } else if (message.op === 'taken') {
      this.take(message.nbytes);
    } else if (message.op === 'messages') {
      this.take(message.taken);
      try {
        const batch = message.messages.map(
          (bytes) => this.codec.decode(bytes, true) as WireMessage,
        );
        refer(batch, message.references);
        this.handlers?.onMessages(batch);
      } catch (thrown) {
        this.abort(thrown instanceof Error ? thrown : new Error(`thrown: ${String(thrown)}`));
      }
    }
  }

  private take(nbytes: number): void {
    this.underWayBytes -= nbytes;
    if (this.underWayBytes <= HIGH_WATER_BYTES) this.releaseWaiters();
  }

  private post(message: IntoTunnel, moved: ArrayBuffer[] = []): void {
    this.port.postMessage(message, moved);
  }

  private cut(why: string): YardmasterError {
    const { peerAddress: peer } = this;
    return new YardmasterError('ERR_CLOSED', `connection with ${peer}: ${why}`, { peer });
  }

  private finish(error: Error | undefined): void {
    if (this.state === 'over') return;
    const isAsked = this.state === 'closing';
    this.state = 'over';
    this.end(isAsked ? undefined : error);
  }

  private end(error: Error | undefined): void {
    this.port.close();
    this.releaseWaiters();
    this.resolveOver();
    if (error === undefined) this.handlers?.onClose();
    else this.handlers?.onClose(error);
  }

  private releaseWaiters(): void {
    for (const resolve of this.drainWaiters.splice(0)) resolve();
  }
}

/** To be moved with the message. */
export function buffersOf(encoded: readonly Uint8Array[]): ArrayBuffer[] {
  return encoded.map(({ buffer }) => buffer as ArrayBuffer);
}
