import type { Channel, ChannelHandlers } from '../api/channel.ts';
import { YardmasterError } from '../api/errors.ts';

/** Connections to workers: each is opened when first needed, and kept until its worker leaves. */
export class KeptChannels {
  private readonly channels = new Map<string, Promise<Channel>>();
  private isClosed = false;

  /**
   * @param owner - which side opens them, for errors: `the scheduler`
   * @param open - connects and introduces the owner
   */
  constructor(
    private readonly owner: string,
    private readonly open: (address: string, handlers: ChannelHandlers) => Promise<Channel>,
  ) {}

  /** Connections that are open, or being opened. */
  get count(): number {
    return this.channels.size;
  }

  /**
   * The shared connection to a worker.
   * @throws YardmasterError `ERR_CONNECT`, `ERR_TIMEOUT`, `ERR_PROTOCOL`, `ERR_CLOSED`
   */
  to(address: string): Promise<Channel> {
    if (this.isClosed) return Promise.reject(closed(address, `${this.owner} is closed`));
    const known = this.channels.get(address);
    if (known !== undefined) return known;
    const forget = (): void => {
      if (this.channels.get(address) === opening) this.channels.delete(address);
    };
    const opening = this.open(address, {
      onMessage: () => undefined,
      onRequest: (method) => {
        throw new YardmasterError('ERR_PROTOCOL', `${this.owner} does not answer "${method}"`, {
          method,
        });
      },
      onClose: forget,
    });
    this.channels.set(address, opening);
    opening.catch(forget);
    return opening;
  }

  /** Closes the connection to a worker at once: requests that wait on it fail. */
  drop(address: string, why: string): void {
    const opening = this.channels.get(address);
    this.channels.delete(address);
    opening?.then(
      (channel) => channel.abort(closed(address, why)),
      () => undefined, // The caller of `to` has the error.
    );
  }

  /** Drops all connections, and opens no more. */
  abort(): void {
    this.isClosed = true;
    for (const address of [...this.channels.keys()]) this.drop(address, `${this.owner} is closed`);
  }

  /** Sends what is queued, then closes all connections. */
  async close(): Promise<void> {
    this.isClosed = true;
    const opened = [...this.channels.values()];
    this.channels.clear();
    await Promise.all(
      opened.map((opening) =>
        opening.then(
          (channel) => channel.close(),
          () => undefined, // The caller of `to` has the error.
        ),
      ),
    );
  }
}

function closed(address: string, why: string): YardmasterError {
  return new YardmasterError('ERR_CLOSED', `the connection to ${address} ended: ${why}`, {
    peer: address,
  });
}
