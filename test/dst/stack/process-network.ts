import {
  type Connection,
  type ConnectionHandlers,
  type Listener,
  type Transport,
  YardmasterError,
} from '../../../core/api/index.ts';

type Open = (connection: Connection) => ConnectionHandlers;

/** The network as one process uses it, until it is killed. */
export class ProcessNetwork implements Transport {
  private readonly connections = new Set<Connection>();
  private readonly listeners = new Set<Listener>();
  private isDead = false;

  constructor(private readonly inner: Transport) {}

  get scheme(): string {
    return this.inner.scheme;
  }

  async listen(address: string, accept: Open): Promise<Listener> {
    this.checkAlive(address);
    const listener = await this.inner.listen(address, (connection) =>
      this.open(connection, accept),
    );
    this.listeners.add(listener);
    return listener;
  }

  connect(
    address: string,
    open: Open,
    options?: { readonly timeoutMs?: number },
  ): Promise<Connection> {
    this.checkAlive(address);
    return this.inner.connect(address, (connection) => this.open(connection, open), options);
  }

  /** Nothing leaves or reaches the process from now on. What has left it arrives, then its connections break. */
  async kill(): Promise<void> {
    this.isDead = true;
    const killed = new YardmasterError(
      'ERR_CLOSED',
      'the process was killed, as the trial wants it',
    );
    for (const connection of this.connections) connection.abort(killed);
    for (const listener of this.listeners) await listener.close();
  }

  private open(connection: Connection, open: Open): ConnectionHandlers {
    this.checkAlive(connection.peerAddress);
    this.connections.add(connection);
    const handlers = open(connection);
    return {
      onMessages: (batch) => {
        if (!this.isDead) handlers.onMessages(batch);
      },
      onClose: (error) => {
        this.connections.delete(connection);
        if (error === undefined) handlers.onClose();
        else handlers.onClose(error);
      },
    };
  }

  private checkAlive(address: string): void {
    if (!this.isDead) return;
    throw new YardmasterError('ERR_CONNECT', `cannot reach ${address}: this process was killed`);
  }
}
