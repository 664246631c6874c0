import type { Connection, ConnectionHandlers, Listener, Transport } from '../../core/api/index.ts';

type Open = (connection: Connection) => ConnectionHandlers;

/** A real transport whose connections can be cut, as by a network that fails. */
export class BreakableTransport implements Transport {
  private readonly opened = new Set<Connection>();
  /** No peer can be reached while it is down. */
  isDown = false;

  constructor(private readonly real: Transport) {}

  get scheme(): string {
    return this.real.scheme;
  }

  listen(address: string, accept: Open): Promise<Listener> {
    return this.real.listen(address, accept);
  }

  async connect(
    address: string,
    open: Open,
    options?: { readonly timeoutMs?: number },
  ): Promise<Connection> {
    if (this.isDown) throw new Error('the network is down');
    const connection = await this.real.connect(address, open, options);
    this.opened.add(connection);
    return connection;
  }

  /** Breaks all connections that were made through it. */
  cut(): void {
    for (const connection of this.opened) connection.abort(new Error('the network failed'));
    this.opened.clear();
  }
}
