import {
  type Clock,
  type Connection,
  type ConnectionHandlers,
  type IncomingLimits,
  type Listener,
  type Transport,
  type WireMessage,
  YardmasterError,
} from '../../core/api/index.ts';
import { inBackground } from '../../core/shared/timers.ts';
import { Waiters } from '../../core/util/promises.ts';
import { SystemClock } from '../clocks/system-clock.ts';
import { randomBytes } from 'node:crypto';
import {
  connect,
  createServer,
  type ListenOptions,
  type NetConnectOpts,
  type Socket,
} from 'node:net';

type Open = (connection: Connection) => ConnectionHandlers;

/** Chooses connections by the address that was connected to. Default: all. */
export type AddressFilter = (address: string) => boolean;

/** A message on its way over a connection that was made through the transport. */
export interface MessageOnItsWay {
  readonly message: WireMessage;
  /** The address that was connected to. */
  readonly address: string;
  /** The end that has sent it: the one that connected, or the one that listened. */
  readonly from: 'connecting' | 'listening';
}

/**
 * The fate of a message: the connection breaks instead, the message is lost, it comes twice, or it comes so many
 * milliseconds later, behind those that were sent after it.
 */
export type MessageFate = 'cut' | 'drop' | 'duplicate' | { readonly delayMs: number };

interface FateRule {
  readonly fits: (sent: MessageOnItsWay) => boolean;
  readonly fate: MessageFate;
  timesLeft: number;
}

const ALL: AddressFilter = () => true;

/**
 * Wraps any transport in a network that fails on request: connections are cut, refused, or stand still, and single
 * messages are lost, doubled or late, which the contract of transports forbids.
 */
export class FaultyTransport implements Transport {
  private readonly wires = new Set<Wire>();
  private refused: AddressFilter = () => false;
  private stalled: AddressFilter = () => false;
  private rules: FateRule[] = [];

  /** @param clock - by which messages are late */
  constructor(
    private readonly inner: Transport,
    private readonly clock: Clock = new SystemClock(),
  ) {}

  get scheme(): string {
    return this.inner.scheme;
  }

  /** Connections that were made through it and are not over. */
  get connectionCount(): number {
    return this.wires.size;
  }

  listen(address: string, accept: Open): Promise<Listener> {
    return this.inner.listen(address, accept);
  }

  async connect(
    address: string,
    open: Open,
    options?: { readonly timeoutMs?: number },
  ): Promise<Connection> {
    if (this.refused(address)) {
      const message = `cannot reach ${address}: the network is down, as the test wants it; call restore()`;
      throw new YardmasterError('ERR_CONNECT', message, { address });
    }
    let wire: Wire | undefined;
    const opened: Open = (connection) => {
      const made = new Wire(connection, address, this.clock, (sent) => this.fateOf(sent));
      wire = made;
      this.wires.add(made);
      made.isStalled = this.stalled(address);
      return made.serve(open(made), () => this.wires.delete(made));
    };
    const connection = await this.inner.connect(address, opened, options);
    return wire ?? connection;
  }

  /** Breaks connections, without a goodbye. */
  cut(filter: AddressFilter = ALL): void {
    for (const wire of [...this.wires]) if (filter(wire.address)) wire.cut();
  }

  /** From now on these addresses cannot be connected to. Connections stay: see {@link cut}. */
  refuse(filter: AddressFilter = ALL): void {
    this.refused = filter;
  }

  /** From now on nothing comes through to either end of these connections, which stay open. */
  stall(filter: AddressFilter = ALL): void {
    this.stalled = filter;
    for (const wire of this.wires) if (filter(wire.address)) wire.isStalled = true;
  }

  /**
   * Decides what becomes of messages, in both directions. The first rule that fits counts.
   * @param times - that the rule fits; `Infinity`: until {@link restore}. Default 1
   */
  tamper(fits: FateRule['fits'], fate: MessageFate, times = 1): void {
    this.rules.push({ fits, fate, timesLeft: times });
  }

  /** Ends all faults. What was held back by {@link stall} is delivered, in order. */
  restore(): void {
    this.refused = () => false;
    this.stalled = () => false;
    this.rules = [];
    for (const wire of [...this.wires]) wire.resume();
  }

  private fateOf(sent: MessageOnItsWay): MessageFate | undefined {
    const rule = this.rules.find(({ fits }) => fits(sent));
    if (rule === undefined) return undefined;
    if (--rule.timesLeft <= 0) this.rules = this.rules.filter((other) => other !== rule);
    return rule.fate;
  }
}

/** One connection, at the end that connected. */
class Wire implements Connection {
  isStalled = false;
  private handlers: ConnectionHandlers | undefined;
  /** Callbacks and messages that are held while the connection stands still. */
  private held: (() => void)[] = [];
  private readonly waiters = new Waiters();
  private isEnding = false;
  /** The connection has ended, which its owner does not know yet, because it stands still. */
  private isEndHeld = false;
  private onOver: () => void = () => undefined;

  constructor(
    private readonly inner: Connection,
    readonly address: string,
    private readonly clock: Clock,
    private readonly fateOf: (sent: MessageOnItsWay) => MessageFate | undefined,
  ) {}

  get peerAddress(): string {
    return this.inner.peerAddress;
  }

  get messageBytesMax(): number {
    return this.inner.messageBytesMax ?? Infinity;
  }

  get sharesMemory(): boolean {
    return this.inner.sharesMemory ?? false;
  }

  get bufferedBytes(): number {
    return this.inner.bufferedBytes;
  }

  /** The handlers that the inner connection calls. */
  serve(handlers: ConnectionHandlers, onOver: () => void): ConnectionHandlers {
    this.handlers = handlers;
    this.onOver = onOver;
    return {
      onMessages: (batch) =>
        this.carry('listening', batch, (messages) => this.handlers?.onMessages(messages)),
      onClose: (error) => {
        this.isEndHeld = true;
        this.orHold(() => this.over(error));
      },
    };
  }

  send(...messages: readonly WireMessage[]): void {
    this.carry('connecting', messages, (carried) => this.inner.send(...carried));
  }

  limitIncoming(limits: IncomingLimits | undefined): void {
    this.inner.limitIncoming?.(limits);
  }

  holdIncoming(isHeld: boolean): void {
    this.inner.holdIncoming?.(isHeld);
  }

  async drained(): Promise<void> {
    if (this.isStalled) await this.waiters.wait();
    await this.inner.drained();
  }

  close(): Promise<void> {
    const closeInner = (): void => {
      inBackground(this.inner.close(), (error) => this.inner.abort(error));
    };
    if (this.isStalled) this.held.push(closeInner);
    else return this.inner.close();
    return new Promise((resolve) => {
      const { onOver } = this;
      this.onOver = () => {
        onOver();
        resolve();
      };
    });
  }

  abort(reason: Error): void {
    this.isEnding = true;
    this.isStalled = false;
    this.held = [];
    this.waiters.release();
    if (!this.isEndHeld) this.inner.abort(reason);
    else queueMicrotask(() => this.over(reason));
    this.isEndHeld = false;
  }

  cut(): void {
    const message = `connection with ${this.address}: the network failed, as the test wants it`;
    this.abort(new YardmasterError('ERR_CLOSED', message, { peer: this.address }));
  }

  resume(): void {
    this.isStalled = false;
    for (const step of this.held.splice(0)) step();
    this.waiters.release();
  }

  private carry(
    from: MessageOnItsWay['from'],
    messages: readonly WireMessage[],
    deliver: (messages: readonly WireMessage[]) => void,
  ): void {
    const carried: WireMessage[] = [];
    for (const message of messages) {
      if (this.isEnding) return;
      const fate = this.fateOf({ message, address: this.address, from });
      if (fate === 'cut') {
        this.cut();
        return;
      }
      if (fate === 'drop') continue;
      if (typeof fate === 'object') {
        this.clock.setTimer(fate.delayMs, () => {
          if (!this.isEnding) this.orHold(() => deliver([message]));
        });
        continue;
      }
      carried.push(message);
      // Each receiver may change what it gets.
      if (fate === 'duplicate') carried.push(structuredClone(message));
    }
    if (carried.length > 0) this.orHold(() => deliver(carried));
  }

  private orHold(step: () => void): void {
    if (this.isStalled) this.held.push(step);
    else step();
  }

  private over(error: Error | undefined): void {
    this.isEndHeld = false;
    this.onOver();
    this.handlers?.onClose(error);
  }
}

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
