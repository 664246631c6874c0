import { Channel, type ChannelHandlers } from '../../api/channel.ts';
import { YardmasterError } from '../../api/errors.ts';
import { token, type Token } from '../../api/plugin.ts';
import type { Clock } from '../../api/clock.ts';
import { VERSION } from '../../api/version.ts';
import type { TransportTable } from '../../host/transport-table.ts';
import { PROTOCOL } from '../../messages/protocol.ts';
import { inject } from '../../plugin-host/injection/di.ts';
import { CLOCK } from '../../plugin-host/injection/tokens.ts';
import { TRANSPORTS } from '../tokens.ts';

export const WORKER_CHANNELS: Token<WorkerChannels> = token('worker-channels');

/** Time for a connection to a worker to be made and answered. */
const CONNECT_TIMEOUT_MS = 10_000;

/**
 * Connections that the scheduler opens to workers, as their peer. Each is kept until its worker leaves, which
 * fails the requests that wait on it.
 */
export class WorkerChannels {
  private readonly channels = new Map<string, Promise<Channel>>();
  private isClosed = false;

  constructor(
    @inject(CLOCK) private readonly clock: Clock,
    @inject(TRANSPORTS) private readonly transports: TransportTable,
  ) {}

  /** Connections that are open, or being opened. */
  get count(): number {
    return this.channels.size;
  }

  /** @throws YardmasterError `ERR_CONNECT`, `ERR_TIMEOUT`, `ERR_CLOSED` */
  to(address: string): Promise<Channel> {
    if (this.isClosed) {
      return Promise.reject(new YardmasterError('ERR_CLOSED', 'the scheduler is closed'));
    }
    const known = this.channels.get(address);
    if (known !== undefined) return known;
    const forget = (): void => {
      if (this.channels.get(address) === opening) this.channels.delete(address);
    };
    const opening = this.open(address, forget);
    this.channels.set(address, opening);
    opening.catch(forget);
    return opening;
  }

  /** A worker left: requests to it fail now. */
  drop(address: string): void {
    const opening = this.channels.get(address);
    this.channels.delete(address);
    const gone = new YardmasterError('ERR_CLOSED', `the worker ${address} left`, {
      worker: address,
    });
    opening?.then(
      (channel) => channel.abort(gone),
      () => undefined, // The caller of `to` has the error.
    );
  }

  close(): void {
    this.isClosed = true;
    for (const address of [...this.channels.keys()]) this.drop(address);
  }

  private async open(address: string, onClose: () => void): Promise<Channel> {
    const handlers: ChannelHandlers = {
      onMessage: () => undefined,
      onRequest: (method) => {
        throw new YardmasterError('ERR_PROTOCOL', `a peer does not answer "${method}"`, { method });
      },
      onClose,
    };
    const transport = await this.transports.for(address);
    let channel: Channel | undefined;
    await transport.connect(
      address,
      (connection) => (channel = new Channel(connection, this.clock, handlers)),
      { timeoutMs: CONNECT_TIMEOUT_MS },
    );
    const opened = channel as unknown as Channel;
    try {
      const hello = { protocol: PROTOCOL, role: 'peer', version: VERSION };
      await opened.request('hello', hello, CONNECT_TIMEOUT_MS);
    } catch (error) {
      opened.abort(error as Error);
      throw error;
    }
    return opened;
  }
}
