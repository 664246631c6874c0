import {
  type Connection,
  type ConnectionHandlers,
  type Listener,
  type Transport,
  type WireMessage,
  YardmasterError,
} from '../../core/api/index.ts';
import { inBackground } from '../../core/shared/timers.ts';

type Open = (connection: Connection) => ConnectionHandlers;

/** Chooses connections by the address that was connected to. Default: all. */
export type AddressFilter = (address: string) => boolean;

/** Chooses messages on their way out. */
export type MessageFilter = (message: WireMessage, address: string) => boolean;

const ALL: AddressFilter = () => true;

/**
 * Wraps any transport in a network that fails on request: connections are cut, refused, or stand
 * still. No message is lost while its connection lives, as the contract of transports requires.
 */
export class FaultyTransport implements Transport {
  private readonly wires = new Set<Wire>();
  private refused: AddressFilter = () => false;
  private stalled: AddressFilter = () => false;
  private cutOn: MessageFilter = () => false;

  constructor(private readonly inner: Transport) {}

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
      const made = new Wire(connection, address, (message) => this.cutOn(message, address));
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

  /** Cuts a connection when a message that fits is about to be sent by the end that connected, once. */
  cutWhen(fits: MessageFilter): void {
    this.cutOn = (message, address) => {
      if (!fits(message, address)) return false;
      this.cutOn = () => false;
      return true;
    };
  }

  /** Ends all faults. What was held back by {@link stall} is delivered, in order. */
  restore(): void {
    this.refused = () => false;
    this.stalled = () => false;
    this.cutOn = () => false;
    for (const wire of [...this.wires]) wire.resume();
  }
}

/** One connection, at the end that connected. */
class Wire implements Connection {
  isStalled = false;
  private handlers: ConnectionHandlers | undefined;
  /** Callbacks and messages that are held while the connection stands still. */
  private held: (() => void)[] = [];
  private waiters: (() => void)[] = [];
  private isEnding = false;
  /** The connection has ended, which its owner does not know yet, because it stands still. */
  private isEndHeld = false;
  private onOver: () => void = () => undefined;

  constructor(
    private readonly inner: Connection,
    readonly address: string,
    private readonly isCutBy: (message: WireMessage) => boolean,
  ) {}

  get peerAddress(): string {
    return this.inner.peerAddress;
  }

  get bufferedBytes(): number {
    return this.inner.bufferedBytes;
  }

  /** The handlers that the inner connection calls. */
  serve(handlers: ConnectionHandlers, onOver: () => void): ConnectionHandlers {
    this.handlers = handlers;
    this.onOver = onOver;
    return {
      onMessages: (batch) => this.orHold(() => this.handlers?.onMessages(batch)),
      onClose: (error) => {
        this.isEndHeld = true;
        this.orHold(() => this.over(error));
      },
    };
  }

  send(...messages: readonly WireMessage[]): void {
    if (this.isEnding) return;
    if (messages.some((message) => this.isCutBy(message))) this.cut();
    else if (this.isStalled) this.held.push(() => this.inner.send(...messages));
    else this.inner.send(...messages);
  }

  async drained(): Promise<void> {
    if (this.isStalled) await new Promise<void>((resolve) => this.waiters.push(resolve));
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
    this.release();
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
    this.release();
  }

  private release(): void {
    for (const resolve of this.waiters.splice(0)) resolve();
  }

  private orHold(step: () => void): void {
    if (this.isStalled) this.held.push(step);
    else step();
  }

  private over(error: Error | undefined): void {
    this.isEndHeld = false;
    this.onOver();
    if (error === undefined) this.handlers?.onClose();
    else this.handlers?.onClose(error);
  }
}
