import { YardmasterError } from '../../../core/api/index.ts';
import { show } from '../../../core/shared/words.ts';
import type { Session } from '../session/session.ts';
import { WorkerAccess } from '../access/worker-access.ts';
import { EventFlag } from './event-flag.ts';
import { LeaseKeeper } from './leases.ts';
import { Queue, type QueueOptions } from './queue.ts';
import { Lock, Semaphore, type SemaphoreOptions } from './semaphore.ts';
import { TopicFeed, type TopicHandler } from './topics.ts';
import { Coordinator, type GivenValue } from './values.ts';
import { Variable } from './variable.ts';
import { checkNames } from '../submission/options.ts';

/** One message of a topic, as the scheduler keeps it. */
export interface LoggedEvent {
  /** The scheduler's clock, in milliseconds. */
  readonly atMs: number;
  readonly message: unknown;
}

/** The part of a client that shares things with other clients, by name. */
export class CoordinationAccess extends WorkerAccess {
  private readonly coordinator: Coordinator;
  private readonly leases: LeaseKeeper;
  private readonly topics: TopicFeed;

  protected constructor(session: Session) {
    super(session);
    this.coordinator = new Coordinator(session);
    this.leases = new LeaseKeeper(this.coordinator);
    this.topics = new TopicFeed(this.coordinator);
  }

  /** The variable of this name. */
  variable<T = unknown>(name: string): Variable<T> {
    return new Variable(name, this.coordinator);
  }

  /** The queue of this name. */
  queue<T = unknown>(name: string, options: QueueOptions = {}): Queue<T> {
    checkNames(options, ['maxSize']);
    return new Queue(name, options, this.coordinator);
  }

  /** The lock of this name. */
  lock(name: string): Lock {
    return new Lock(name, this.coordinator, this.leases);
  }

  /** The semaphore of this name. */
  semaphore(name: string, options: SemaphoreOptions): Semaphore {
    checkNames(options, ['leases']);
    return new Semaphore(name, options, this.coordinator, this.leases);
  }

  /** The event of this name: something to wait for. */
  event(name: string): EventFlag {
    return new EventFlag(name, this.coordinator);
  }

  /**
   * Gives a value a name under which every client finds it. Results of futures in it are kept alive
   * until it is unpublished, also when this client goes.
   * @param options - `override`: replace what has the name
   * @throws RemoteError `ERR_COORDINATION` when the name is taken
   */
  async publish(
    name: string,
    value: unknown,
    options: { readonly override?: boolean } = {},
  ): Promise<void> {
    checkNames(options, ['override']);
    const { override = false } = options;
    await this.coordinator.send('publish', value, { name, override });
  }

  /**
   * What was published under the name, with futures of this client in it.
   * @throws RemoteError `ERR_COORDINATION` when there is none
   */
  async getPublished<T = unknown>(name: string): Promise<T> {
    return this.coordinator.receive(
      await this.coordinator.call<GivenValue>('getPublished', { name }),
    );
  }

  /** @throws RemoteError `ERR_COORDINATION` when there is none */
  async unpublish(name: string): Promise<void> {
    await this.coordinator.call('unpublish', { name });
  }

  /** Names of what is published, the oldest first. */
  listPublished(): Promise<readonly string[]> {
    return this.coordinator.call('listPublished', {});
  }

  /**
   * Logs a message under one or more topics, for subscribers, plugins and `getEvents`.
   * @param message - plain data
   */
  async logEvent(topic: string | readonly string[], message: unknown): Promise<void> {
    const topics = typeof topic === 'string' ? [topic] : topic;
    const areTopics = Array.isArray(topics) && topics.every((each) => typeof each === 'string');
    if (!areTopics || message === undefined) {
      const got = areTopics ? 'no message' : `the topic ${show(topic)}`;
      throw new YardmasterError(
        'ERR_GRAPH_INVALID',
        `logEvent wants a topic, or a list of them, and a message, got ${got}`,
      );
    }
    await this.coordinator.call('logEvent', { topics, message });
  }

  /** Has each message of a topic from now on handed to a function. */
  subscribeTopic(topic: string, handler: TopicHandler): Promise<void> {
    return this.topics.subscribe(topic, handler);
  }

  /**
   * Ends it, for this handler or for all.
   * @throws YardmasterError `ERR_COORDINATION` when there is no such subscription
   */
  unsubscribeTopic(topic: string, handler?: TopicHandler): Promise<void> {
    return this.topics.unsubscribe(topic, handler);
  }

  /** The latest thousand messages of a topic, oldest first. */
  getEvents(topic: string): Promise<readonly LoggedEvent[]>;
  /** How many messages each topic has ever had. */
  getEvents(): Promise<ReadonlyMap<string, number>>;
  async getEvents(topic?: string): Promise<unknown> {
    if (topic !== undefined) return this.command('events', { topic });
    return new Map(await this.command<[string, number][]>('events'));
  }
}
