import {
  type Connection,
  type ConnectionHandlers,
  defineTransport,
  type Listener,
  type Transport,
  type WireMessage,
} from '../../../adapters/app/entries/transport.ts';
import { InMemoryTransport } from '../../../adapters/testing/index.ts';

/** Any transport, with a count of what is sent. */
export class CountingTransport implements Transport {
  readonly scheme: string;
  sentCount = 0;

  constructor(private readonly inner: Transport) {
    this.scheme = inner.scheme;
  }

  listen(address: string, accept: (c: Connection) => ConnectionHandlers): Promise<Listener> {
    return this.inner.listen(address, (connection) => accept(this.counted(connection)));
  }

  async connect(
    address: string,
    open: (c: Connection) => ConnectionHandlers,
    options?: { readonly timeoutMs?: number },
  ): Promise<Connection> {
    let counted: Connection | undefined;
    const connection = await this.inner.connect(
      address,
      (opened) => open((counted = this.counted(opened))),
      options,
    );
    return counted ?? connection;
  }

  private counted(inner: Connection): Connection {
    return {
      peerAddress: inner.peerAddress,
      get bufferedBytes() {
        return inner.bufferedBytes;
      },
      send: (...messages: readonly WireMessage[]) => {
        inner.send(...messages);
        this.sentCount += messages.length;
      },
      drained: () => inner.drained(),
      close: () => inner.close(),
      abort: (reason) => inner.abort(reason),
    };
  }
}

export default defineTransport({
  name: 'counting',
  apiVersion: 1,
  optionsSchema: {
    type: 'object',
    additionalProperties: false,
    properties: { delayMs: { type: 'number', minimum: 0, description: 'Time under way.' } },
  },
  create: ({ clock }, options) => new CountingTransport(new InMemoryTransport(clock, options)),
});
