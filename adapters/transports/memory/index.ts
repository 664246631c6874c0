import {
  type Clock,
  type Connection,
  type ConnectionHandlers,
  defineTransport,
  type Listener,
  type Transport,
  type TransportDefinition,
  YardmasterError,
} from '../../../core/api/index.ts';
import { FRAME_BYTES_MAX, MsgpackCodec } from '../../codecs/msgpack/index.ts';
import { InMemoryConnection, type NetworkServices } from './connection.ts';
import { SameTurnScheduler } from './same-turn-scheduler.ts';

/** Options of the transport in memory. */
export interface InMemoryOptions {
  /** Time that messages take from one end to the other. Default 0: the next turn. */
  readonly delayMs?: number;
  /** As of the TCP transport. Default 1 GiB. */
  readonly frameBytesMax?: number;
  /** As of the TCP transport. Default 1 MiB. */
  readonly highWaterBytes?: number;
  /**
   * Messages are checked as if they were encoded, and passed on by reference: they must not be
   * changed any more. For a cluster within one process, which needs no copies. Default false.
   */
  readonly byReference?: boolean;
}

type Accept = (connection: Connection) => ConnectionHandlers;

const ADDRESS = /^inmemory:\/\/(?<host>[^:/]*)(?::(?<port>\d+))?$/;

/**
 * A network within this process: all users of one instance can reach each other. Addresses are
 * `inmemory://name` or `inmemory://name:port`; port 0 chooses a free one.
 *
 * Messages pass through the codec of the wire, so values that TCP would refuse or change are
 * refused or changed here as well; `byReference` refuses the same values and changes none. All
 * waiting goes through the clock: with a `VirtualClock` nothing happens until time is advanced, and
 * the same program gives the same run.
 */
export class InMemoryTransport implements Transport {
  readonly scheme = 'inmemory';
  private readonly services: NetworkServices;
  private readonly listeners = new Map<string, Accept>();
  private portCount = 0;
  private connectionCount = 0;

  constructor(
    private readonly clock: Clock,
    options: InMemoryOptions = {},
  ) {
    this.services = {
      clock,
      codec: new MsgpackCodec(options.frameBytesMax ?? FRAME_BYTES_MAX),
      delayMs: options.delayMs ?? 0,
      highWaterBytes: options.highWaterBytes ?? 1024 * 1024,
      byReference: options.byReference ?? false,
      soon: new SameTurnScheduler(clock, options.delayMs ?? 0),
    };
  }

  listen(address: string, accept: Accept): Promise<Listener> {
    return new Promise((resolve) => {
      const bound = this.bind(address);
      this.listeners.set(bound, accept);
      const close = (): Promise<void> => {
        if (this.listeners.get(bound) === accept) this.listeners.delete(bound);
        return Promise.resolve();
      };
      const { byReference, codec } = this.services;
      const messageBytesMax = byReference ? Infinity : codec.messageBytesMax;
      resolve({ address: bound, messageBytesMax, sharesMemory: byReference, close });
    });
  }

  connect(
    address: string,
    open: (connection: Connection) => ConnectionHandlers,
    { timeoutMs = Infinity }: { readonly timeoutMs?: number } = {},
  ): Promise<Connection> {
    const { clock, services } = this;
    return new Promise((resolve, reject) => {
      let isLate = false;
      const deadline = clock.setTimer(timeoutMs, () => {
        isLate = true;
        reject(connectError(address, `no answer within ${timeoutMs} ms`));
      });
      const here = new InMemoryConnection(address, services, () => {
        deadline.cancel();
        if (isLate) {
          here.abort(connectError(address, `no answer within ${timeoutMs} ms`));
          return;
        }
        try {
          here.attach(open(here));
          resolve(here);
        } catch (thrown) {
          const error = thrown instanceof Error ? thrown : new Error(`thrown: ${String(thrown)}`);
          here.abort(error);
          reject(error);
        }
      });
      // As over TCP: one way to the listener, and one way back.
      clock.setTimer(services.delayMs, () => {
        if (this.accept(here, address)) return;
        deadline.cancel();
        reject(connectError(address, 'no listener is there'));
      });
    });
  }

  private accept(here: InMemoryConnection, address: string): boolean {
    const accept = this.listeners.get(address);
    if (accept === undefined) return false;
    const peerAddress = `inmemory://peer:${++this.connectionCount}`;
    const there = new InMemoryConnection(peerAddress, this.services);
    here.join(there);
    there.join(here);
    there.welcome();
    try {
      there.attach(accept(there));
    } catch (error) {
      there.abort(error as Error);
      throw error;
    }
    return true;
  }

  private bind(address: string): string {
    const groups = ADDRESS.exec(address)?.groups;
    if (groups === undefined) {
      throw connectError(address, 'it is not of the form inmemory://name or inmemory://name:port');
    }
    const { host = '', port } = groups;
    if (port === undefined || Number(port) !== 0) {
      if (!this.listeners.has(address)) return address;
      throw connectError(address, 'another listener has the address');
    }
    for (;;) {
      const chosen = `inmemory://${host === '' ? 'local' : host}:${++this.portCount}`;
      if (!this.listeners.has(chosen)) return chosen;
    }
  }
}

function connectError(address: string, reason: string): YardmasterError {
  return new YardmasterError(
    'ERR_CONNECT',
    `cannot reach ${address} in the in-memory network: ${reason}; check the address, and that both sides use the same instance of InMemoryTransport`,
    { address },
  );
}

/** The definition that a config file names: `transport: { use: inmemory }`. */
export const inMemory: TransportDefinition<InMemoryOptions> = defineTransport<InMemoryOptions>({
  name: 'inmemory',
  optionsSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      delayMs: { type: 'number', minimum: 0, description: 'Time that messages take. Default 0.' },
      frameBytesMax: {
        type: 'integer',
        minimum: 2 * 1024 * 1024,
        maximum: 2 ** 32 - 1,
        description:
          'Largest message in bytes. Default 1 GiB; at least 2 MiB, since an answer with results may have 1 MiB.',
      },
      highWaterBytes: {
        type: 'integer',
        minimum: 0,
        description: 'Bulk senders wait while more than this is on the way. Default 1 MiB.',
      },
      byReference: {
        type: 'boolean',
        description: 'Messages are checked but not copied. Default false.',
      },
    },
  },
  create: ({ clock }, options) => new InMemoryTransport(clock, options),
});

export default inMemory;
