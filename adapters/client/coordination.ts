import { inspect, types } from 'node:util';
import { type Clock, YardmasterError } from '../../core/api/index.ts';
import { inBackground } from '../../core/shared/timers.ts';
import { ANY, checkTopics, DURATION, FLAG } from '../../core/shared/schema.ts';
import { packArguments, unpackWith } from '../tasks/index.ts';
import { Future, holdingOfFuture } from './future.ts';
import { type GrantedLease, type Lease, LeaseKeeper } from './leases.ts';
import { allocateWithin, checkFits } from './message-limit.ts';
import { checkOptions, type SubmitOptions } from './options.ts';
import type { Session } from './session.ts';
import { futuresIn } from './structure.ts';
import { WorkerAccess } from './worker-access.ts';

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

  protected constructor(session: Session, options: SubmitOptions) {
    super(session, options);
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
    checkOptions('client.queue', options, { maxSize: ANY });
    return new Queue(name, options, this.coordinator);
  }

  /** The lock of this name. */
  lock(name: string): Lock {
    return new Lock(name, this.coordinator, this.leases);
  }

  /** The semaphore of this name. */
  semaphore(name: string, options: SemaphoreOptions): Semaphore {
    checkOptions('client.semaphore', options, { leases: ANY });
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
    const { override = false } = checkOptions('client.publish', options, { override: FLAG });
    await this.coordinator.send('publish', value, { name, override });
  }

  /**
   * The value that was published under the name, with futures of this client in it.
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
    checkTopics(topics, message);
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
  /** The number of messages that each topic has ever had. */
  getEvents(): Promise<ReadonlyMap<string, number>>;
  async getEvents(topic?: string): Promise<unknown> {
    if (topic !== undefined) return this.command('events', { topic });
    return new Map(await this.command<[string, number][]>('events'));
  }
}

/** Something that has happened or not, for all clients, by its name. */
export class EventFlag {
  /** @internal `client.event(name)` makes them. */
  constructor(
    readonly name: string,
    private readonly coordinator: Coordinator,
  ) {}

  /**
   * Sets the flag: all waiting callers continue, and later ones do not wait until it is cleared.
   */
  async set(): Promise<void> {
    await this.coordinator.call('setEvent', { name: this.name });
  }

  async clear(): Promise<void> {
    await this.coordinator.call('clearEvent', { name: this.name });
  }

  isSet(): Promise<boolean> {
    return this.coordinator.call('isEventSet', { name: this.name });
  }

  /** @throws RemoteError `ERR_TIMEOUT` */
  async wait(limit: WaitLimit = {}): Promise<void> {
    await this.coordinator.call('waitForEvent', { name: this.name, ...waitParameters(limit) });
  }
}

/** The options of a queue. */
export interface QueueOptions {
  /** Capacity in items. Default: the capacity that another client has set, otherwise unlimited. */
  readonly maxSize?: number;
}

/**
 * A queue that all clients share by its name, first in, first out. Items may be or contain futures,
 * whose results are kept alive while they are in it.
 *
 * A queue exists while it has items, or while a client that has used it is connected.
 */
export class Queue<T = unknown> {
  /** @internal `client.queue(name)` makes them. */
  constructor(
    readonly name: string,
    private readonly options: QueueOptions,
    private readonly coordinator: Coordinator,
  ) {}

  /**
   * Adds an item; waits while the queue is full.
   * @throws YardmasterError `ERR_NOT_SERIALISABLE`; RemoteError `ERR_TIMEOUT`, `ERR_COORDINATION`
   */
  async put(item: T, limit: WaitLimit = {}): Promise<void> {
    await this.coordinator.send('putQueue', item, this.parameters(waitParameters(limit)));
  }

  /**
   * Takes the oldest item; waits while the queue is empty.
   * @throws RemoteError `ERR_TIMEOUT`, `ERR_COORDINATION`
   */
  async get(limit: WaitLimit = {}): Promise<T> {
    const parameters = this.parameters(waitParameters(limit));
    const given = await this.coordinator.call<GivenValue>('getQueue', parameters);
    return this.coordinator.receive(given);
  }

  /** Takes the items that are there now, oldest first, and no more than `countMax`. Does not wait. */
  async getAll(countMax = Infinity): Promise<T[]> {
    const count = countMax === Infinity ? {} : { count: countMax };
    const parameters = this.parameters(count);
    const given = await this.coordinator.call<GivenValue[]>('getQueueItems', parameters);
    return given.map((item) => this.coordinator.receive<T>(item));
  }

  /** Items that are there now. */
  size(): Promise<number> {
    return this.coordinator.call('queueSize', this.parameters({}));
  }

  /** Drops all items. Waiting calls fail with `ERR_COORDINATION`. */
  async delete(): Promise<void> {
    await this.coordinator.call('deleteQueue', { name: this.name });
  }

  private parameters(more: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
    const { maxSize } = this.options;
    return { name: this.name, maxSize, ...more };
  }
}

/** The options of a semaphore. */
export interface SemaphoreOptions {
  /** The number of leases that may be held at once; the same for all clients that use the name. */
  readonly leases: number;
}

/** The state of a semaphore. */
export interface SemaphoreState {
  /** Leases that are held. */
  readonly held: number;
  /** Calls that wait for one. */
  readonly waiting: number;
}

type Ask = (limit: { timeoutMs?: number }) => Promise<GrantedLease>;

/** The common part of a lock and a semaphore. */
abstract class Leased {
  private mine: Lease[] = [];

  /** @internal */
  protected constructor(
    /** The name that all clients use. */
    readonly name: string,
    private readonly what: string,
    private readonly keeper: LeaseKeeper,
    private readonly ask: Ask,
  ) {}

  /**
   * Waits for its turn, first come, first served. The lease is renewed until it is released; should
   * this client go, or be unable to renew it, the next has it.
   * @throws RemoteError `ERR_TIMEOUT`
   */
  async acquire(limit: WaitLimit = {}): Promise<Lease> {
    const parameters = waitParameters(limit);
    const lease = await this.keeper.acquire(this.name, () => this.ask(parameters));
    this.forgetReleased();
    this.mine.push(lease);
    return lease;
  }

  /**
   * Calls a function with a lease, and gives the lease back when it has ended, also when it fails.
   * @param work - gets the lease, whose signal is aborted when it is lost
   * @returns what the function returns
   * @throws RemoteError `ERR_TIMEOUT`; what the function throws
   */
  async run<T>(work: (lease: Lease) => T | Promise<T>, limit: WaitLimit = {}): Promise<T> {
    const lease = await this.acquire(limit);
    let result: T;
    try {
      result = await work(lease);
    } catch (error) {
      // It failed first: whether the lease was lost as well matters less.
      await lease.release().catch(() => undefined);
      throw error;
    }
    await lease.release();
    return result;
  }

  /**
   * Gives the oldest lease back that was acquired through this object.
   * @throws YardmasterError `ERR_COORDINATION` when there is none, or it was lost
   */
  async release(): Promise<void> {
    const lease = this.mine.find((candidate) => !candidate.isReleased);
    if (lease === undefined) {
      throw new YardmasterError(
        'ERR_COORDINATION',
        `the ${this.what} "${this.name}" is not held through this object, so it cannot be released`,
        { name: this.name, reason: 'not-held' },
      );
    }
    const released = lease.release();
    this.forgetReleased();
    await released;
  }

  /** Gives back all leases that were acquired through this object. */
  async [Symbol.asyncDispose](): Promise<void> {
    const held = this.mine.filter((lease) => !lease.isReleased);
    await Promise.all(held.map((lease) => lease.release()));
    this.forgetReleased();
  }

  private forgetReleased(): void {
    this.mine = this.mine.filter((lease) => !lease.isReleased);
  }
}

/**
 * A lock that all clients share by its name. One at a time holds it:
 * `await using held = await client.lock('index').acquire();`
 */
export class Lock extends Leased {
  /** @internal `client.lock(name)` makes them. */
  constructor(
    name: string,
    private readonly coordinator: Coordinator,
    keeper: LeaseKeeper,
  ) {
    super(name, 'lock', keeper, (limit) => coordinator.call('acquireLock', { name, ...limit }));
  }

  /** True when any client holds it. */
  async isLocked(): Promise<boolean> {
    const { name } = this;
    const { held } = await this.coordinator.call<SemaphoreState>('lockState', { name });
    return held > 0;
  }
}

/** A semaphore that all clients share by its name. It has a limited number of leases. */
export class Semaphore extends Leased {
  /** @internal `client.semaphore(name, { leases })` makes them. */
  constructor(
    name: string,
    { leases }: SemaphoreOptions,
    private readonly coordinator: Coordinator,
    keeper: LeaseKeeper,
  ) {
    super(name, 'semaphore', keeper, (limit) =>
      coordinator.call('acquireLease', { name, leases, ...limit }),
    );
  }

  /** Leases that are held now, and calls that wait for one. */
  state(): Promise<SemaphoreState> {
    return this.coordinator.call('semaphoreState', { name: this.name });
  }
}

/** An event that was logged under a topic. */
export interface TopicEvent {
  readonly topic: string;
  readonly message: unknown;
  /** The scheduler's clock, in milliseconds. */
  readonly atMs: number;
}

/** Is called with each event, in order. What it throws is reported as a warning of the process. */
export type TopicHandler = (
  message: unknown,
  event: TopicEvent & {
    /** Events before this one that this client was too slow for. */
    readonly missed: number;
  },
) => void;

interface Batch {
  readonly events: readonly TopicEvent[];
  readonly missed: number;
  readonly done: boolean;
}

const CLOSING_MS = 100;

function warnOf(topic: string, error: unknown): void {
  const text = error instanceof Error ? String(error) : inspect(error);
  process.emitWarning(`a handler of the topic "${topic}" threw: ${text}`, 'YardmasterTopic');
}

function pause(clock: Clock): Promise<void> {
  return new Promise((resolve) => void clock.setTimer(CLOSING_MS, resolve));
}

/** The subscriptions of one client. It fetches events as fast as its handlers are. */
class TopicFeed {
  private readonly handlers = new Map<string, Set<TopicHandler>>();
  private isFetching = false;

  constructor(private readonly coordinator: Coordinator) {}

  async subscribe(topic: string, handler: TopicHandler): Promise<void> {
    if (typeof handler !== 'function') {
      throw new TypeError(`the handler of the topic "${topic}" must be a function`);
    }
    const known = this.handlers.get(topic);
    // Before the call, because events may come before its answer.
    if (known === undefined) this.handlers.set(topic, new Set([handler]));
    else known.add(handler);
    try {
      await this.coordinator.call('subscribe', { name: topic });
    } catch (error) {
      this.drop(topic, handler);
      throw error;
    }
    if (!this.isFetching) inBackground(this.fetchAll(), 'events of topics could not be fetched');
  }

  /** @param handler - undefined: all of the topic */
  async unsubscribe(topic: string, handler: TopicHandler | undefined): Promise<void> {
    const isKnown = handler === undefined ? this.handlers.has(topic) : this.has(topic, handler);
    if (!isKnown) {
      throw new YardmasterError(
        'ERR_COORDINATION',
        `this client is not subscribed to "${topic}" in this way, so there is nothing to end`,
        { topic, reason: 'unknown' },
      );
    }
    if (handler === undefined) this.handlers.delete(topic);
    else this.drop(topic, handler);
    if (!this.handlers.has(topic)) await this.coordinator.call('unsubscribe', { name: topic });
  }

  /** Runs while there are subscriptions, and ends with the connection. */
  private async fetchAll(): Promise<void> {
    const { session } = this.coordinator;
    this.isFetching = true;
    try {
      while (!session.isClosed) {
        const batch = await this.nextBatch();
        if (batch === undefined) continue;
        batch.events.forEach((event, index) => this.deliver(event, index === 0 ? batch.missed : 0));
        // Subscribed anew since it was asked? Then there is more to come.
        if (batch.done && this.handlers.size === 0) break;
      }
    } catch (error) {
      if (!session.isClosed) {
        process.emitWarning(`no more events come: ${(error as Error).message}`, 'YardmasterTopic');
      }
    } finally {
      this.isFetching = false;
    }
  }

  /** Undefined when the scheduler was lost meanwhile; once it is back, what was subscribed is so again. */
  private async nextBatch(): Promise<Batch | undefined> {
    const { coordinator, handlers } = this;
    const { session } = coordinator;
    try {
      return await coordinator.call<Batch>('nextEvents', {});
    } catch (error) {
      // A scheduler that closes says so first; then the connection ends.
      const isClosing = YardmasterError.is(error, 'ERR_CLOSED') && session.mayComeBack;
      if (session.isClosed || (session.isConnected && !isClosing)) throw error;
      if (session.isConnected) await pause(session.clock);
      await session.connected();
      await Promise.all(
        [...handlers.keys()].map((name) => coordinator.call('subscribe', { name })),
      );
      return undefined;
    }
  }

  private deliver(event: TopicEvent, missed: number): void {
    for (const handler of [...(this.handlers.get(event.topic) ?? [])]) {
      // It may be an async function.
      const call: (...args: Parameters<TopicHandler>) => unknown = handler;
      try {
        const returned = call(event.message, { ...event, missed });
        if (!types.isPromise(returned)) continue;
        returned.catch((error: unknown) => {
          warnOf(event.topic, error);
        });
      } catch (error) {
        warnOf(event.topic, error);
      }
    }
  }

  private has(topic: string, handler: TopicHandler): boolean {
    return this.handlers.get(topic)?.has(handler) ?? false;
  }

  private drop(topic: string, handler: TopicHandler): void {
    const handlers = this.handlers.get(topic);
    handlers?.delete(handler);
    if (handlers?.size === 0) this.handlers.delete(topic);
  }
}

/** A value as it travels to the scheduler. */
interface PackedValue {
  readonly value: Uint8Array;
  /** Of the futures inside. */
  readonly keys: readonly string[];
}

/** A value as it comes from the scheduler. */
interface GivenValue extends PackedValue {
  /** To be confirmed once the futures are held. */
  readonly handover?: number;
}

/** Commands that may take as long as other clients want. */
const MAY_WAIT: ReadonlySet<string> = new Set([
  'acquireLease',
  'acquireLock',
  'getQueue',
  'getVariable',
  'putQueue',
  'waitForEvent',
]);

/** Commands after which the scheduler remembers nothing of the client but leases that it holds and calls that wait. */
const LEAVES_NOTHING: ReadonlySet<string> = new Set([
  'acquireLease',
  'acquireLock',
  'release',
  'renew',
  'lockState',
  'semaphoreState',
  'setEvent',
  'clearEvent',
  'isEventSet',
  'waitForEvent',
  'logEvent',
]);

/** The services for the parts of coordination: the session, and a way to call the scheduler. */
export class Coordinator {
  constructor(readonly session: Session) {}

  /** Calls a command of the plugin `coordination`. */
  call<T = unknown>(command: string, parameters: Readonly<Record<string, unknown>>): Promise<T> {
    const { session } = this;
    if (!LEAVES_NOTHING.has(command)) session.mustLeave = true;
    session.bonds++;
    const answer = session.request<T>('command', {
      command: `coordination.${command}`,
      parameters,
    });
    // A subscription stays.
    const end = (): void => {
      session.bonds--;
    };
    if (command !== 'subscribe') answer.then(end, end);
    return MAY_WAIT.has(command) ? session.waiting(answer) : answer;
  }

  /**
   * Stores a value with a call. Its futures are held until the scheduler does.
   * @throws YardmasterError `ERR_NOT_SERIALISABLE`; `ERR_FRAME` when it does not fit into one message
   */
  async send<T>(
    command: string,
    value: unknown,
    parameters: Readonly<Record<string, unknown>>,
  ): Promise<T> {
    this.session.checkOpen();
    const entries = futuresIn(value).map((future) => holdingOfFuture(future).entry);
    const { messageBytesMax } = this.session;
    const what = `the value for "${command}"`;
    const { bytes, dependencies } = packArguments(
      [value],
      (part) => (part instanceof Future ? part.key : undefined),
      allocateWithin(messageBytesMax, what),
    );
    checkFits(bytes.byteLength, messageBytesMax, what);
    for (const entry of entries) entry.references++;
    try {
      const packed: PackedValue = { value: bytes, keys: dependencies };
      return await this.call<T>(command, { ...parameters, ...packed });
    } finally {
      for (const entry of entries) this.session.releaseEntry(entry);
    }
  }

  /** The value, with futures of this client where futures were. */
  receive<T>({ value, handover }: GivenValue): T {
    this.session.checkOpen();
    const [received] = unpackWith(value, (key) => this.futureOf(key));
    if (handover !== undefined) {
      // Sent after the report that this client wants the keys. If the connection ends, the
      // hand-over ends too.
      this.call('received', { handover }).catch(() => undefined);
    }
    return received as T;
  }

  private futureOf(key: string): Future<unknown> {
    const { table } = this.session;
    const isHeld = table.get(key) !== undefined;
    const entry = table.add(key, undefined);
    if (!isHeld) table.desire([key]);
    return new Future(this.session, entry);
  }
}

/** The limit of a wait. */
export interface WaitLimit {
  /** Milliseconds; then the call fails with `ERR_TIMEOUT`. 0: not at all. Default: for ever. */
  readonly timeoutMs?: number;
}

/** The parameter of a command, left out when it is for ever. */
function waitParameters(limit: WaitLimit): { timeoutMs?: number } {
  const { timeoutMs = Infinity } = checkOptions('wait', limit, { timeoutMs: DURATION });
  return timeoutMs === Infinity ? {} : { timeoutMs };
}

/**
 * A value that all clients share by its name. It may be or contain futures, whose results are kept
 * alive while it is set.
 */
export class Variable<T = unknown> {
  /** @internal `client.variable(name)` makes them. */
  constructor(
    readonly name: string,
    private readonly coordinator: Coordinator,
  ) {}

  /**
   * Replaces the value; callers that wait for a value get it.
   * @throws YardmasterError `ERR_NOT_SERIALISABLE`; RemoteError `ERR_COORDINATION` when the space
   *   for values is used up
   */
  async set(value: T): Promise<void> {
    await this.coordinator.send('setVariable', value, { name: this.name });
  }

  /**
   * The value; waits until there is one.
   * @throws RemoteError `ERR_TIMEOUT`
   */
  async get(limit: WaitLimit = {}): Promise<T> {
    const parameters = { name: this.name, ...waitParameters(limit) };
    const given = await this.coordinator.call<GivenValue>('getVariable', parameters);
    return this.coordinator.receive(given);
  }

  /** Forgets the value. No-op when it is not set. */
  async delete(): Promise<void> {
    await this.coordinator.call('deleteVariable', { name: this.name });
  }
}
