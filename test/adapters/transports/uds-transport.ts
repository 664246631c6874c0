import { randomInt } from 'node:crypto';
import { mkdirSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type Clock,
  type Connection,
  type ConnectionHandlers,
  defineTransport,
  type Listener,
  MsgpackCodec,
  type Transport,
  type WireMessage,
  YardmasterError,
  type Timer,
} from '../../../adapters/app/entries/transport.ts';

export interface UdsOptions {
  /** Folder of the sockets. Default: `yardmaster-uds` in the folder for temporary files. */
  readonly folder?: string;
  readonly frameBytesMax?: number;
  readonly connectTimeoutMs?: number;
  readonly closeTimeoutMs?: number;
}

type Open = (connection: Connection) => ConnectionHandlers;

const HELLO = Buffer.from('yardmaster-uds/1\n');
const HEADER_BYTES = 4;
/** The header of a msgpack array: one byte, and the number of items. */
const ARRAY_32 = 0xdd;
const HIGH_WATER_BYTES = 1024 * 1024;
/** Beyond this, what is sent in one turn leaves in several frames. */
const FRAME_SOFT_BYTES = 1024 * 1024;

/** Unix domain sockets: `uds://name:number`, number 0 takes a free one. For processes of one machine. */
export class UdsTransport implements Transport {
  readonly scheme = 'uds';
  private readonly folder: string;
  private readonly connectTimeoutMs: number;
  private readonly services: Services;

  constructor(
    private readonly clock: Clock,
    options: UdsOptions = {},
  ) {
    this.folder = options.folder ?? join(tmpdir(), 'yardmaster-uds');
    this.connectTimeoutMs = options.connectTimeoutMs ?? 10_000;
    const codec = new MsgpackCodec(options.frameBytesMax);
    this.services = { clock, codec, closeTimeoutMs: options.closeTimeoutMs ?? 5000 };
  }

  async listen(address: string, accept: Open): Promise<Listener> {
    const { name, number } = parse(address);
    const bound = `uds://${name}:${number === 0 ? randomInt(1, 2 ** 47) : number}`;
    const path = this.pathOf(bound);
    mkdirSync(this.folder, { recursive: true });
    if (!(await isAlive(path))) rmSync(path, { force: true }); // Left by a process that was killed.
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      const connection = new UdsConnection(socket, `${bound}#peer`, this.services);
      const timer = this.clock.setTimer(this.connectTimeoutMs, () => {
        connection.abort(
          closedError(connection.peerAddress, 'it did not introduce itself in time'),
        );
      });
      connection.attach(accept(connection), () => timer.cancel());
    });
    await new Promise<void>((resolve, reject) => {
      server.once('error', (cause) => reject(connectError(address, cause.message, cause)));
      server.listen(path, resolve);
    });
    return { address: bound, close: () => closeServer(server) };
  }

  connect(
    address: string,
    open: Open,
    { timeoutMs = this.connectTimeoutMs }: { readonly timeoutMs?: number } = {},
  ): Promise<Connection> {
    return new Promise((resolve, reject) => {
      parse(address);
      const socket = connect({ path: this.pathOf(address), allowHalfOpen: true });
      const connection = new UdsConnection(socket, address, this.services);
      const timer = this.clock.setTimer(timeoutMs, () => fail(`no answer within ${timeoutMs} ms`));
      const fail = (reason: string, cause?: Error): void => {
        timer.cancel();
        const error = connectError(address, reason, cause);
        reject(error);
        connection.abort(error);
      };
      const early: ConnectionHandlers = {
        onMessages: () => undefined,
        onClose: (error) => fail(error?.message ?? 'the peer closed it at once', error),
      };
      connection.attach(early, () => {
        timer.cancel();
        try {
          connection.attach(open(connection));
          resolve(connection);
        } catch (thrown) {
          fail(String(thrown), thrown as Error);
        }
      });
    });
  }

  private pathOf(address: string): string {
    const { name, number } = parse(address);
    return join(this.folder, `${name}-${number}.sock`);
  }
}

interface Services {
  readonly clock: Clock;
  readonly codec: MsgpackCodec;
  readonly closeTimeoutMs: number;
}

class UdsConnection implements Connection {
  private handlers: ConnectionHandlers | undefined;
  private onHello: (() => void) | undefined;
  private state: 'open' | 'closing' | 'over' = 'open';
  private error: Error | undefined;
  private isGreeted = false;
  private queued: Uint8Array[] = [];
  private queuedBytes = 0;
  /** Joined when there is enough for the next step. */
  private chunks: Buffer[] = [];
  private receivedBytes = 0;
  private waiters: (() => void)[] = [];
  private closeTimer: Timer | undefined;
  private readonly over: Promise<void>;

  constructor(
    private readonly socket: Socket,
    readonly peerAddress: string,
    private readonly services: Services,
  ) {
    this.over = new Promise((resolve) => {
      socket.once('close', () => {
        this.finish();
        resolve();
      });
    });
    socket.on('data', (bytes: Buffer) => this.onData(bytes));
    socket.on('end', () => this.onEnd());
    socket.on('error', (cause) => (this.error ??= closedError(peerAddress, cause.message, cause)));
    socket.write(HELLO);
  }

  get bufferedBytes(): number {
    return this.state === 'over' ? 0 : this.queuedBytes + this.socket.writableLength;
  }

  /** @param onHello - the peer speaks this protocol; before any of its messages */
  attach(handlers: ConnectionHandlers, onHello?: () => void): void {
    this.handlers = handlers;
    this.onHello = onHello;
  }

  send(...messages: readonly WireMessage[]): void {
    if (this.state !== 'open' || messages.length === 0) return;
    const { codec, clock } = this.services;
    // All are encoded before one is queued: one that cannot travel holds back all of this call.
    const encoded = messages.map((message) => {
      const shared = codec.encodeMessage(message);
      return codec.keep(shared) ? shared : shared.slice();
    });
    if (this.queued.length === 0) clock.setTimer(0, () => this.flush());
    for (const bytes of encoded) {
      this.queued.push(bytes);
      this.queuedBytes += bytes.length;
    }
  }

  drained(): Promise<void> {
    if (this.bufferedBytes <= HIGH_WATER_BYTES) return Promise.resolve();
    return new Promise((resolve) => this.waiters.push(resolve));
  }

  close(): Promise<void> {
    this.beginClose();
    return this.over;
  }

  abort(reason: Error): void {
    if (this.state === 'over') return;
    this.state = 'over';
    this.error = reason;
    this.socket.destroy();
  }

  private flush(): void {
    if (this.state === 'over') return;
    const { queued } = this;
    const nbytesMax = Math.min(FRAME_SOFT_BYTES, this.services.codec.frameBytesMax);
    this.queued = [];
    this.queuedBytes = 0;
    for (let from = 0; from < queued.length;) {
      let nbytes = 5;
      let to = from;
      do nbytes += queued[to++]?.length ?? 0;
      while (to < queued.length && nbytes + (queued[to]?.length ?? 0) <= nbytesMax);
      const head = Buffer.alloc(HEADER_BYTES + 5);
      head.writeUInt32BE(nbytes, 0);
      head.writeUInt8(ARRAY_32, HEADER_BYTES);
      head.writeUInt32BE(to - from, HEADER_BYTES + 1);
      this.socket.write(head);
      for (const bytes of queued.slice(from, to)) this.socket.write(bytes, () => this.onWritten());
      from = to;
    }
  }

  /** Sends what is queued and an empty frame, the goodbye. Both ends come here. */
  private beginClose(): void {
    if (this.state !== 'open') return;
    this.flush();
    this.state = 'closing';
    this.socket.end(Buffer.alloc(HEADER_BYTES));
    this.closeTimer = this.services.clock.setTimer(this.services.closeTimeoutMs, () => {
      this.abort(closedError(this.peerAddress, 'it stands still and does not close'));
    });
  }

  private onWritten(): void {
    if (this.bufferedBytes > HIGH_WATER_BYTES) return;
    for (const resolve of this.waiters.splice(0)) resolve();
  }

  private onData(bytes: Buffer): void {
    this.chunks.push(bytes);
    this.receivedBytes += bytes.length;
    try {
      while (this.step());
    } catch (thrown) {
      this.abort(thrown instanceof Error ? thrown : new Error(String(thrown)));
    }
  }

  /** Handles the greeting, or one frame. False when there is not enough for that. */
  private step(): boolean {
    if (this.isEnded()) return false;
    if (!this.isGreeted) {
      const hello = this.take(HELLO.length);
      if (hello === undefined) return false;
      if (!hello.equals(HELLO)) {
        throw new YardmasterError('ERR_PROTOCOL', `${this.peerAddress} speaks another protocol`);
      }
      this.isGreeted = true;
      this.onHello?.();
      return true;
    }
    const { codec } = this.services;
    const nbytes = this.peekLength();
    if (nbytes !== undefined && nbytes > codec.frameBytesMax) {
      const text = `${this.peerAddress} sent a frame of ${nbytes} bytes, more than ${codec.frameBytesMax}`;
      throw new YardmasterError('ERR_FRAME', text, { nbytes });
    }
    const frame = nbytes === undefined ? undefined : this.take(HEADER_BYTES + nbytes);
    if (frame === undefined) return false;
    if (frame.length > HEADER_BYTES) {
      this.handlers?.onMessages(codec.decodeBatch(frame.subarray(HEADER_BYTES)));
    } else this.beginClose();
    return true;
  }

  private peekLength(): number | undefined {
    if (this.receivedBytes < HEADER_BYTES) return undefined;
    if ((this.chunks[0]?.length ?? 0) < HEADER_BYTES) this.chunks = [Buffer.concat(this.chunks)];
    return this.chunks[0]?.readUInt32BE(0);
  }

  private take(nbytes: number): Buffer | undefined {
    if (this.receivedBytes < nbytes) return undefined;
    const joined = this.chunks.length === 1 ? this.chunks[0] : Buffer.concat(this.chunks);
    this.chunks = [joined?.subarray(nbytes) ?? Buffer.alloc(0)];
    this.receivedBytes -= nbytes;
    return joined?.subarray(0, nbytes);
  }

  /** A function, because handlers may end the connection between two frames. */
  private isEnded(): boolean {
    return this.state === 'over';
  }

  /** A stream that ends without a goodbye was cut. */
  private onEnd(): void {
    if (this.state !== 'open') return;
    this.abort(closedError(this.peerAddress, 'the peer dropped it'));
  }

  private finish(): void {
    this.closeTimer?.cancel();
    this.error ??=
      this.state === 'open' ? closedError(this.peerAddress, 'the peer dropped it') : undefined;
    this.state = 'over';
    for (const resolve of this.waiters.splice(0)) resolve();
    this.handlers?.onClose(this.error);
  }
}

function parse(address: string): { name: string; number: number } {
  const [, name, number] = /^uds:\/\/([\w.-]+)(?::(\d+))?$/.exec(address) ?? [];
  if (name !== undefined) return { name, number: Number(number ?? 1) };
  throw connectError(address, 'it is not of the form uds://name:number');
}

function isAlive(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect({ path }, () => {
      probe.destroy();
      resolve(true);
    });
    probe.once('error', () => resolve(false));
  });
}

/** Takes the socket's file away; connections stay. */
function closeServer(server: Server): Promise<void> {
  server.close();
  return Promise.resolve();
}

function connectError(address: string, reason: string, cause?: Error): YardmasterError {
  const message = `cannot reach ${address}: ${reason}; check the address, and that the peer runs`;
  return new YardmasterError('ERR_CONNECT', message, { address }, { cause });
}

function closedError(peer: string, reason: string, cause?: Error): YardmasterError {
  return new YardmasterError(
    'ERR_CLOSED',
    `connection with ${peer}: ${reason}`,
    { peer },
    { cause },
  );
}

export default defineTransport({
  name: 'uds',
  apiVersion: 1,
  optionsSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      folder: { type: 'string', minLength: 1 },
      frameBytesMax: { type: 'integer', minimum: 1024 },
      connectTimeoutMs: { type: 'number', exclusiveMinimum: 0 },
      closeTimeoutMs: { type: 'number', exclusiveMinimum: 0 },
    },
  },
  create: ({ clock }, options) => new UdsTransport(clock, options),
});
