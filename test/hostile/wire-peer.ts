import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

import { encode } from '@msgpack/msgpack';

import { MsgpackCodec } from '../../adapters/codecs/msgpack.ts';
import { FrameReader, PREAMBLE } from '../../adapters/transports/tcp/framing.ts';
import { PROTOCOL, type WireMessage } from '../../core/api/index.ts';

/** A peer that writes the bytes of the protocol by hand, so that it can send any. */
export class WirePeer {
  readonly received: WireMessage[] = [];
  isClosed = false;
  private readonly waiters: (() => void)[] = [];
  private nextId = 0;

  private constructor(readonly socket: Socket) {
    const reader = new FrameReader(new MsgpackCodec(), {
      onPreamble: () => undefined,
      onBatch: (batch) => void this.received.push(...batch),
      onGoodbye: () => socket.destroy(),
    });
    socket.on('data', (chunk) => {
      reader.push(chunk);
      this.notify();
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.isClosed = true;
      this.notify();
    });
  }

  static async connect(address: string): Promise<WirePeer> {
    const { hostname, port } = new URL(address);
    const socket = connect({ host: hostname, port: Number(port) });
    await once(socket, 'connect');
    const peer = new WirePeer(socket);
    socket.write(PREAMBLE);
    return peer;
  }

  /** Says hello, and registers as a client under this name. */
  async enter(client: string): Promise<this> {
    await this.request('hello', { protocol: PROTOCOL, role: 'client', version: '0' });
    await this.request('register-client', { client });
    return this;
  }

  /** Sends a payload as it is. */
  write(payload: Uint8Array): void {
    const frame = Buffer.alloc(4 + payload.length);
    frame.writeUInt32BE(payload.length);
    frame.set(payload, 4);
    this.socket.write(frame);
  }

  send(...messages: readonly unknown[]): void {
    this.write(encode(messages, { ignoreUndefined: true }));
  }

  /** The reply, or undefined when the connection ends. */
  async request(method: string, parameters: unknown): Promise<WireMessage | undefined> {
    const id = this.nextId++;
    this.send({ op: 'request', id, method, parameters });
    const isReply = (message: WireMessage): boolean =>
      message['op'] === 'reply' && message['id'] === id;
    await this.until(() => this.received.some(isReply));
    return this.received.find(isReply);
  }

  /** Waits for the end of the connection, too. */
  async until(predicate: () => boolean): Promise<void> {
    while (!predicate() && !this.isClosed) {
      await new Promise<void>((resolve) => this.waiters.push(resolve));
    }
  }

  closed(): Promise<void> {
    return this.until(() => this.isClosed);
  }

  private notify(): void {
    for (const resolve of this.waiters.splice(0)) resolve();
  }
}
