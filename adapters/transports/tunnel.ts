import { MessageChannel, type MessagePort } from 'node:worker_threads';
import {
  asError,
  type Connection,
  type ConnectionHandlers,
  type ErrorPayload,
  type Listener,
  RemoteError,
  type Role,
  toErrorPayload,
  type Transport,
  type TransportConnectOptions,
  type WireMessage,
  YardmasterError,
} from '../../core/api/index.ts';
import { inBackground } from '../../core/shared/timers.ts';
import { Deferred, Waiters } from '../../core/util/promises.ts';
import { sharedMemoryOf, usesSharedMemory } from '../../core/util/bytes.ts';
import { FRAME_BYTES_MAX, MsgpackCodec } from '../codecs/msgpack.ts';
import { withSharedMemory } from '../tasks/index.ts';

/** Encoded messages, each in separate memory. */
interface EncodedMessages {
  readonly messages: readonly Uint8Array[];
  /** The shared memory that bytes in them refer to. Default: none. */
  readonly references?: readonly Reference[];
}

/** From the thread that wants a connection. */
type IntoTunnel =
  | ({ readonly op: 'send' } & EncodedMessages)
  | { readonly op: 'close' }
  | { readonly op: 'abort'; readonly reason: string };

/** From the thread that has the connection. */
type OutOfTunnel =
  | { readonly op: 'opened'; readonly peerAddress: string; readonly sharesMemory: boolean }
  /** The connection could not be opened: nothing follows. */
  | { readonly op: 'failed'; readonly error: ErrorPayload }
  /** Number of bytes that have left since the last report, or nearly. */
  | { readonly op: 'taken'; readonly nbytes: number }
  /** @param taken - as `nbytes` of a report */
  | ({ readonly op: 'messages'; readonly taken: number } & EncodedMessages)
  /** It is over: nothing follows. */
  | { readonly op: 'closed'; readonly error?: ErrorPayload };

/** Bytes in messages that refer to shared memory: where they are, and to what. */
interface Reference {
  readonly path: readonly (string | number)[];
  readonly memories: readonly SharedArrayBuffer[];
}

/** The shared memory that goes from thread to thread along with the encoded messages; undefined: none. */
function referencesIn(messages: readonly WireMessage[]): readonly Reference[] | undefined {
  if (!usesSharedMemory()) return undefined;
  const found: Reference[] = [];
  const stack: [value: unknown, path: Reference['path']][] = [[messages, []]];
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    const [value, path] = next;
    if (typeof value !== 'object' || value === null) continue;
    if (value instanceof Uint8Array) {
      const memories = sharedMemoryOf(value)?.memories;
      if (memories !== undefined) found.push({ path, memories });
    } else if (Array.isArray(value)) {
      value.forEach((item, index) => stack.push([item, [...path, index]]));
    } else {
      for (const [name, field] of Object.entries(value)) stack.push([field, [...path, name]]);
    }
  }
  return found.length === 0 ? undefined : found;
}

/** Has the bytes of decoded messages refer to shared memory as those did that were encoded. */
function refer(
  messages: readonly WireMessage[],
  references: readonly Reference[] | undefined,
): void {
  for (const { path, memories } of references ?? []) {
    let value: unknown = messages;
    for (const step of path) value = (value as Readonly<Record<string | number, unknown>>)[step];
    withSharedMemory(value as Uint8Array, memories);
  }
}

/**
 * Opens a connection for another thread, and forwards messages in both directions. When the thread
 * ends, the connection ends too. Never throws: a failure to connect is reported through the port.
 *
 * @param transports - of the worker
 */
export function relayConnection(
  { address, timeoutMs, role, port }: TunnelRequest,
  transports: readonly Transport[],
): void {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//.exec(address)?.[1];
  const transport = transports.find((candidate) => candidate.scheme === scheme);
  let hasEnded = false;
  port.once('close', () => {
    hasEnded = true;
  });
  const open = (connection: Connection): Relay => {
    const relay = new Relay(connection, port);
    if (hasEnded) relay.onPortClosed();
    return relay;
  };
  const connecting =
    transport === undefined
      ? Promise.reject(noTransport(address, transports))
      : transport.connect(address, open, { timeoutMs, role });
  connecting.catch((error: unknown) => {
    port.postMessage({ op: 'failed', error: toErrorPayload(error) } satisfies OutOfTunnel);
    port.close();
  });
}

/** Bytes after which the other thread is sent a report at once. */
const REPORTED_BYTES = 64 * 1024;
/** Milliseconds for which fewer wait for a message that takes the report along, such as the answer to a request. */
const REPORT_DELAY_MS = 20;

class Relay {
  private readonly codec = new MsgpackCodec(FRAME_BYTES_MAX, { isSharing: true });
  private isOver = false;
  /** Bytes that have left since the last report. */
  private takenBytes = 0;
  private reportTimer: NodeJS.Timeout | undefined;

  constructor(
    private readonly connection: Connection,
    private readonly port: MessagePort,
  ) {
    port.on('message', (message: IntoTunnel) => this.pass(message));
    port.on('close', () => this.onPortClosed());
    const { peerAddress, sharesMemory = false } = connection;
    this.post({ op: 'opened', peerAddress, sharesMemory });
  }

  onMessages(batch: readonly WireMessage[]): void {
    const messages = batch.map((message) => this.codec.encode(message));
    const taken = this.takenBytes;
    this.takenBytes = 0;
    const references = referencesIn(batch);
    this.post({ op: 'messages', messages, taken, references }, buffersOf(messages));
  }

  onClose(error?: Error): void {
    this.isOver = true;
    this.post({ op: 'closed', ...(error === undefined ? {} : { error: toErrorPayload(error) }) });
    this.port.close();
  }

  private pass(message: IntoTunnel): void {
    const { connection } = this;
    if (this.isOver) return;
    if (message.op === 'send') this.send(message.messages, message.references);
    else if (message.op === 'close') {
      inBackground(connection.close(), (error) => connection.abort(error));
    } else connection.abort(new YardmasterError('ERR_CLOSED', message.reason));
  }

  private send(encoded: readonly Uint8Array[], references: readonly Reference[] | undefined): void {
    const { connection, codec } = this;
    const nbytes = encoded.reduce((sum, bytes) => sum + bytes.byteLength, 0);
    const messages = encoded.map((bytes) => codec.decode(bytes, true) as WireMessage);
    refer(messages, references);
    connection.send(...messages);
    const drained = connection.drained().then(() => {
      this.takenBytes += nbytes;
      if (this.takenBytes >= REPORTED_BYTES) this.reportTaken();
      else this.reportTimer ??= setTimeout(() => this.reportTaken(), REPORT_DELAY_MS).unref();
    });
    inBackground(drained, (error) => connection.abort(error));
  }

  private reportTaken(): void {
    this.reportTimer = undefined;
    const nbytes = this.takenBytes;
    this.takenBytes = 0;
    if (nbytes > 0 && !this.isOver) this.post({ op: 'taken', nbytes });
  }

  onPortClosed(): void {
    if (this.isOver) return;
    this.connection.abort(new YardmasterError('ERR_CLOSED', 'the thread of the task ended'));
  }

  private post(message: OutOfTunnel, moved: ArrayBuffer[] = []): void {
    this.port.postMessage(message, moved);
  }
}

function noTransport(address: string, transports: readonly Transport[]): YardmasterError {
  const known = transports.map(({ scheme }) => `${scheme}://`).join(', ');
  return new YardmasterError(
    'ERR_CONNECT',
    `this worker has no transport for ${address}; it has ${known}`,
    { address },
  );
}

/** Asks another thread of this process to connect, and to answer through the port. */
type OpenTunnel = (request: TunnelRequest) => void;

/** A request to the other thread; see `relayConnection`. */
export interface TunnelRequest {
  readonly address: string;
  readonly timeoutMs: number;
  /** The role of the connecting side. */
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
          const error = asError(thrown);
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
  private readonly drainWaiters = new Waiters();
  private readonly codec = new MsgpackCodec(FRAME_BYTES_MAX, { isSharing: true });
  private handlers: ConnectionHandlers | undefined;
  private state: 'open' | 'closing' | 'over' = 'open';
  private readonly over = new Deferred();

  constructor(
    readonly peerAddress: string,
    readonly sharesMemory: boolean,
    private readonly port: MessagePort,
  ) {}

  /** Directs all callbacks to these handlers from now on. */
  attach(handlers: ConnectionHandlers): void {
    this.handlers = handlers;
    const { port } = this;
    port.on('message', (message: OutOfTunnel) => this.receive(message));
    port.on('close', () => this.finish(this.cut('the thread of the worker is gone')));
  }

  send(...messages: readonly WireMessage[]): void {
    if (this.state !== 'open' || messages.length === 0) return;
    const encoded = this.codec.encodeAll(messages);
    for (const { byteLength } of encoded) this.underWayBytes += byteLength;
    const references = referencesIn(messages);
    this.post({ op: 'send', messages: encoded, references }, buffersOf(encoded));
  }

  get bufferedBytes(): number {
    return this.underWayBytes;
  }

  drained(): Promise<void> {
    if (this.underWayBytes <= HIGH_WATER_BYTES || this.state === 'over') return Promise.resolve();
    return this.drainWaiters.wait();
  }

  close(): Promise<void> {
    if (this.state === 'open') {
      this.state = 'closing';
      this.post({ op: 'close' });
    }
    return this.over.promise;
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
        this.abort(asError(thrown));
      }
    }
  }

  private take(nbytes: number): void {
    this.underWayBytes -= nbytes;
    if (this.underWayBytes <= HIGH_WATER_BYTES) this.drainWaiters.release();
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
    this.drainWaiters.release();
    this.over.resolve();
    this.handlers?.onClose(error);
  }
}

/** To be moved with the message. */
function buffersOf(encoded: readonly Uint8Array[]): ArrayBuffer[] {
  return encoded.map(({ buffer }) => buffer as ArrayBuffer);
}
