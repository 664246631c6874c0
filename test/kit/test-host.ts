import { InMemoryTransport } from '../../adapters/transports/memory.ts';
import { VirtualClock } from '../../adapters/clocks/index.ts';
import {
  Channel,
  type Connection,
  type ConnectionHandlers,
  type Listener,
  type Logger,
  type PeerRole,
  PROTOCOL,
  type WireMessage,
} from '../../core/api/index.ts';
import {
  createScheduler,
  type CreateSchedulerOptions,
  type Scheduler,
} from '../../core/scheduler-host/create-scheduler.ts';
import type { RegisterClientRequest, RegisterWorkerRequest } from '../../core/messages/protocol.ts';
import type { WorkerIdentity } from '../../core/state/worker.ts';
import { builtins } from '../../adapters/app/builtin-extensions.ts';
import { type ConfigInput, configuration } from '../../adapters/app/config.ts';
import { onTestFinished } from 'vitest';

/** Log lines, to be looked at. */
export class MemoryLog implements Logger {
  readonly lines: { level: string; fields: object; message: string | undefined }[] = [];
  debug = (fields: object, message?: string): void => this.add('debug', fields, message);
  info = (fields: object, message?: string): void => this.add('info', fields, message);
  warn = (fields: object, message?: string): void => this.add('warn', fields, message);
  error = (fields: object, message?: string): void => this.add('error', fields, message);

  get messages(): (string | undefined)[] {
    return this.lines.map(({ message }) => message);
  }

  private add(level: string, fields: object, message: string | undefined): void {
    this.lines.push({ level, fields, message });
  }
}

/** A raw peer that speaks the protocol word by word, so that it can also break it. */
export class RawPeer {
  readonly received: WireMessage[] = [];
  /** Ops of everything that came, answers included, in the order of the wire. */
  readonly wire: unknown[] = [];
  closedWith: Error | 'in good order' | undefined;
  /** Answers to requests, by method. */
  readonly answers = new Map<string, (parameters: WireMessage) => unknown>([
    ['hello', () => ({ protocol: PROTOCOL, version: '0', serverId: 'raw' })],
  ]);
  channel!: Channel;

  constructor(
    private readonly transport: InMemoryTransport,
    private readonly clock: VirtualClock,
  ) {}

  async connect(address: string): Promise<this> {
    const connecting = this.transport.connect(address, (connection) => {
      const channel = this.makeChannel(connection);
      this.channel = channel;
      return {
        onMessages: (batch) => {
          this.wire.push(...batch.map(({ op }) => op));
          channel.onMessages(batch);
        },
        onClose: (error) => channel.onClose(error),
      };
    });
    await settle(this.clock);
    await connecting;
    return this;
  }

  /** Serves others, as a worker does. */
  async serve(address: string): Promise<void> {
    const listening = this.transport.listen(address, (connection) => this.makeChannel(connection));
    await settle(this.clock);
    await listening;
  }

  async request<T = unknown>(method: string, parameters: WireMessage = {}): Promise<T> {
    const answer = this.channel.request<T>(method, parameters);
    answer.catch(() => undefined); // Looked at below.
    await settle(this.clock);
    return answer;
  }

  async send(...messages: WireMessage[]): Promise<void> {
    this.channel.send(...messages);
    await settle(this.clock);
  }

  hello(role: string): Promise<unknown> {
    return this.request('hello', { protocol: PROTOCOL, role, version: '0' });
  }

  async close(): Promise<void> {
    const closing = this.channel.close();
    await settle(this.clock);
    await closing;
  }

  ops(): unknown[] {
    return this.received.map(({ op }) => op);
  }

  private makeChannel(connection: ConstructorParameters<typeof Channel>[0]): Channel {
    return new Channel(connection, this.clock, {
      onMessage: (message) => void this.received.push(message),
      onRequest: (method, parameters) => {
        const answer = this.answers.get(method);
        if (answer === undefined) throw new Error(`no answer to ${method}`);
        return answer(parameters);
      },
      onClose: (error) => (this.closedWith = error ?? 'in good order'),
    });
  }
}

/** Lets everything that is due now happen. */
export async function settle(clock: VirtualClock): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await clock.advanceAsync(0);
}

export function identityOf(address: string, more: Partial<WorkerIdentity> = {}): WorkerIdentity {
  return {
    address,
    serverId: `id of ${address}`,
    name: address,
    host: 'localhost',
    threadCount: 1,
    memoryLimitBytes: 0,
    resources: {},
    ...more,
  };
}

/** A network in which peers have keys. */
class KeyedTransport extends InMemoryTransport {
  /** The role of the key with which peers connect from now on. Default: there are no keys. */
  key: PeerRole | undefined;

  override listen(
    address: string,
    accept: (connection: Connection) => ConnectionHandlers,
  ): Promise<Listener> {
    return super.listen(address, (connection) => {
      return accept(Object.assign(connection, { peerRole: this.key }));
    });
  }
}

/** A scheduler over an in-memory network on a virtual clock. */
export class TestHost {
  readonly clock = new VirtualClock(1_000_000);
  readonly transport = new KeyedTransport(this.clock);
  readonly log = new MemoryLog();
  scheduler!: Scheduler;
  address!: string;

  static async start(
    options: Partial<Omit<CreateSchedulerOptions, 'config'>> & {
      config?: ConfigInput | string;
    } = {},
  ): Promise<TestHost> {
    const host = new TestHost();
    host.scheduler = await createScheduler({
      config: { scheduler: { validate: true } },
      configuration,
      builtins,
      clock: host.clock,
      transports: [host.transport],
      log: host.log,
      ...options,
    });
    const listening = host.scheduler.listen('inmemory://scheduler');
    await settle(host.clock);
    host.address = await listening;
    return host;
  }

  peer(): Promise<RawPeer> {
    return new RawPeer(this.transport, this.clock).connect(this.address);
  }

  /** @param more - of its registration besides its identity */
  async worker(
    address: string,
    identity: Partial<WorkerIdentity> = {},
    more: Partial<RegisterWorkerRequest> = {},
  ): Promise<RawPeer> {
    const peer = await this.peer();
    await peer.hello('worker');
    await peer.request('register-worker', {
      identity: identityOf(address, identity),
      status: 'running',
      ...more,
    });
    return peer;
  }

  /** @param more - of its registration besides its name */
  async client(client = 'client-1', more: Partial<RegisterClientRequest> = {}): Promise<RawPeer> {
    const peer = await this.peer();
    await peer.hello('client');
    await peer.request('register-client', { client, ...more });
    return peer;
  }

  async settle(): Promise<void> {
    await settle(this.clock);
  }

  async close(): Promise<void> {
    const closing = this.scheduler.close();
    await settle(this.clock);
    await closing;
  }
}

/** A host whose invariants are checked after each stimulus; the end of the test closes it. */
export async function startHost(
  scheduler: object = {},
  options: Partial<Omit<CreateSchedulerOptions, 'config'>> & { config?: ConfigInput | string } = {},
): Promise<TestHost> {
  const config = { scheduler: { validate: true, ...scheduler } };
  const host = await TestHost.start({ config, ...options });
  onTestFinished(() => host.close());
  return host;
}
