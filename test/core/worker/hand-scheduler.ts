import { VirtualClock } from '../../../adapters/clocks/index.ts';
import { InlineExecutor } from '../../../adapters/executors/inline.ts';
import { MemoryStore } from '../../../adapters/stores/index.ts';
import { packArguments, type TaskFunction } from '../../../adapters/tasks/index.ts';
import { InMemoryTransport } from '../../../adapters/transports/memory.ts';
import {
  Channel,
  type Connection,
  type Listener,
  type Logger,
  PROTOCOL,
  type ToWorkerMessage,
  type WireMessage,
  type YardmasterError,
} from '../../../core/api/index.ts';
import {
  createWorker,
  type HostedWorker,
  type WorkerHostOptions,
} from '../../../core/worker-host/create-worker.ts';
import { tasks } from '../../adapters/fixtures/sample-tasks.mjs';
import { type Locations, locations } from './builders.ts';

export const SCHEDULER = 'inmemory://scheduler:1';
/** How far ahead the scheduler's clock is. */
export const CLOCK_AHEAD_MS = 1_000_000;

const functions = tasks as unknown as Record<string, TaskFunction>;

/** Stands for the result of another task in the arguments of a test. */
export class Ref {
  constructor(readonly key: string) {}
}

interface Registered {
  readonly channel: Channel;
  readonly reports: WireMessage[];
}

/** A network with the scheduler's end of every connection in the hands of the test. */
export class Bench {
  readonly clock = new VirtualClock(5000);
  readonly transport: InMemoryTransport;
  readonly logged: string[] = [];
  readonly workers = new Map<string, Registered>();
  readonly requests: WireMessage[] = [];
  refuse: YardmasterError | undefined;
  /** To other requests than those of the registration. */
  readonly answers = new Map<string, (parameters: WireMessage) => unknown>();
  /** Sent in the same packet as the answer to the registration. */
  atOnce: ToWorkerMessage[] = [];
  protocol: string = PROTOCOL;
  /** Of the scheduler process. */
  serverId = 'scheduler';
  private listener: Listener | undefined;
  private runId = 0;

  constructor(delayMs = 0) {
    this.transport = new InMemoryTransport(this.clock, { delayMs });
  }

  async listen(): Promise<this> {
    this.listener = await this.transport.listen(SCHEDULER, (connection) => this.accept(connection));
    return this;
  }

  /** The scheduler dies: its listener closes, and all connections break. */
  async goDown(): Promise<void> {
    await this.listener?.close();
    for (const { channel } of this.workers.values()) channel.abort(new Error('crash'));
    this.workers.clear();
  }

  /** Lets time pass; what has no timer happens at once. */
  async pass(ms = 0): Promise<void> {
    await this.clock.advanceAsync(ms);
  }

  /** Waits for something that takes no more than a second of virtual time. */
  async settle<T>(promise: Promise<T>): Promise<T> {
    const state = { isDone: false };
    const mark = (): void => {
      state.isDone = true;
    };
    promise.then(mark, mark);
    for (let round = 0; round < 1000 && !state.isDone; round++) await this.pass(1);
    if (!state.isDone) throw new Error('it did not settle');
    return promise;
  }

  startWorker(name: string, more: Partial<WorkerHostOptions> = {}): Promise<HostedWorker> {
    const { clock } = this;
    return this.settle(
      createWorker({
        schedulerAddress: SCHEDULER,
        listenAddress: `inmemory://${name}:0`,
        name,
        transports: new Map([['inmemory', this.transport]]),
        executor: new InlineExecutor({ clock, threadCount: 2 }),
        store: new MemoryStore(),
        clock,
        log: this.log,
        validate: true,
        ...more,
      }),
    );
  }

  /** Sends and gives what the worker reports until nothing happens any more. */
  async send(worker: HostedWorker, ...messages: ToWorkerMessage[]): Promise<WireMessage[]> {
    this.workers.get(worker.name)!.channel.send(...(messages as unknown as WireMessage[]));
    await this.pass(5);
    return this.take(worker);
  }

  /** The reports since the last time. */
  take(worker: HostedWorker): WireMessage[] {
    return this.workers.get(worker.name)!.reports.splice(0);
  }

  compute(
    key: string,
    name: string,
    args: readonly unknown[],
    where: Locations = {},
  ): ToWorkerMessage {
    const { module, version } = functions[name]!;
    const packed = packArguments(args, (value) => (value instanceof Ref ? value.key : undefined));
    return {
      op: 'compute-task',
      key,
      runId: ++this.runId,
      priority: [0, 1, this.runId],
      runSpec: { module, name, version, args: packed.bytes },
      dependencies: locations(where),
      durationS: 1,
      stimulusId: `compute-${key}`,
    };
  }

  /** A connection of a peer, as another worker or a client would open it. */
  async connect(worker: HostedWorker): Promise<Channel> {
    let channel: Channel | undefined;
    await this.settle(
      this.transport.connect(worker.address, (connection) => {
        channel = new Channel(connection, this.clock, {
          onMessage: () => undefined,
          onRequest: () => undefined,
          onClose: () => undefined,
        });
        return channel;
      }),
    );
    return channel!;
  }

  async peer(worker: HostedWorker): Promise<Channel> {
    const channel = await this.connect(worker);
    await this.settle(channel.request('hello', { protocol: PROTOCOL, role: 'peer', version: 'x' }));
    return channel;
  }

  private accept(connection: Connection): Channel {
    let name = '';
    const channel: Channel = new Channel(connection, this.clock, {
      onMessage: (message) => void this.workers.get(name)?.reports.push(message),
      onRequest: (method, parameters) => {
        this.requests.push({ method, ...parameters });
        if (method === 'hello') {
          return { protocol: this.protocol, version: 'x', serverId: this.serverId };
        }
        const answer = this.answers.get(method);
        if (answer !== undefined) return answer(parameters);
        if (this.refuse !== undefined) throw this.refuse;
        name = (parameters['identity'] as { name: string }).name;
        this.workers.set(name, { channel, reports: [] });
        const messages = this.atOnce.splice(0) as unknown as WireMessage[];
        queueMicrotask(() => channel.send(...messages));
        return { heartbeatIntervalMs: 500, nowMs: this.clock.nowMs() + CLOCK_AHEAD_MS };
      },
      onClose: () => undefined,
    });
    return channel;
  }

  private get log(): Logger {
    const write = (_fields: object, message = ''): void => void this.logged.push(message);
    return { debug: write, info: write, warn: write, error: write };
  }
}
