import { randomBytes } from 'node:crypto';
import {
  connect,
  createServer,
  type ListenOptions,
  type NetConnectOpts,
  type Socket,
} from 'node:net';

/**
 * Stands between two peers that speak over sockets, and behaves as networks and processes do when they
 * fail: it stops reading, cuts, or sends nonsense.
 */
export class SocketProxy {
  private readonly server = createServer({ allowHalfOpen: true }, (socket) => this.join(socket));
  private readonly pairs: (readonly [near: Socket, far: Socket])[] = [];

  private constructor(private readonly target: NetConnectOpts) {}

  /**
   * @param target - where the real listener is
   * @param at - where the proxy listens: `{ host, port: 0 }` or `{ path }`
   */
  static async start(target: NetConnectOpts, at: ListenOptions): Promise<SocketProxy> {
    const proxy = new SocketProxy(target);
    await new Promise<void>((resolve, reject) => {
      proxy.server.once('error', reject);
      proxy.server.listen(at, resolve);
    });
    return proxy;
  }

  /** Of the proxy; 0 for a path. */
  get port(): number {
    const bound = this.server.address();
    return typeof bound === 'object' && bound !== null ? bound.port : 0;
  }

  /** Reads nothing any more from the side that connected, as a process that stands still. */
  freeze(): void {
    for (const [near, far] of this.pairs) {
      near.unpipe(far);
      near.pause();
    }
  }

  /** Resumes after `freeze`. */
  thaw(): void {
    for (const [near, far] of this.pairs) near.pipe(far);
  }

  /** Breaks all connections in both directions. */
  cut(): void {
    for (const sockets of this.pairs.splice(0)) for (const socket of sockets) socket.destroy();
  }

  /** Sends bytes that mean nothing to both sides. */
  corrupt(): void {
    const nonsense = Buffer.concat([Buffer.alloc(64, 0xff), randomBytes(64)]);
    for (const sockets of this.pairs) for (const socket of sockets) socket.write(nonsense);
  }

  /** Cuts everything and stops listening. */
  close(): Promise<void> {
    this.cut();
    return new Promise((resolve) => this.server.close(() => resolve()));
  }

  private join(near: Socket): void {
    const far = connect({ ...this.target, allowHalfOpen: true });
    this.pairs.push([near, far]);
    // What breaks one side breaks the other.
    near.on('error', () => far.destroy());
    far.on('error', () => near.destroy());
    near.pipe(far);
    far.pipe(near);
  }
}
