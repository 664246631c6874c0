import { type Bridge, type Clock, YardmasterError } from '../../core/api/index.ts';
import { EVENT_BYTES_MAX } from '../../core/shared/limits.ts';
import { approximateBytes } from '../../core/util/bytes.ts';
import type { DisconnectCleanup } from './scope.ts';
import {
  type Budget,
  entryBytes,
  LinkedQueue,
  refused,
  WaitQueue,
  type WaitScope,
} from './wait-queue.ts';

/** Events that are kept for a client which does not fetch them; older ones are dropped, and counted. */
const KEPT_MAX = 10_000;
/** The approximate size that they may occupy. */
const KEPT_BYTES_MAX = 64 * 1024 * 1024;
/** Events in one answer. */
const BATCH_MAX = 500;

/** Something that was logged under a topic. */
interface TopicEvent {
  readonly topic: string;
  readonly message: unknown;
  /** The scheduler's clock. */
  readonly atMs: number;
}

/** The events that a client fetches. */
interface EventBatch {
  readonly events: readonly TopicEvent[];
  /** Events before these that the client was too slow for. */
  readonly missed: number;
  /** The client has no topics any more: nothing will follow. */
  readonly done: boolean;
}

interface KeptEvent {
  readonly event: TopicEvent;
  readonly nbytes: number;
}

interface Subscriber {
  readonly topics: Set<string>;
  readonly events: LinkedQueue<KeptEvent>;
  /** Their size in bytes. */
  nbytes: number;
  missed: number;
  readonly line: WaitQueue<EventBatch>;
  readonly withdraw: () => void;
}

/** The services that topics use. */
interface TopicScope extends WaitScope {
  readonly clock: Clock;
  readonly budget: Budget;
  readonly departures: DisconnectCleanup;
}

/**
 * Subscriptions of clients to topics. Clients fetch the messages: a slow client delays no other
 * one, and the messages kept for it are bounded. Without subscribers there is no overhead.
 */
export class Topics {
  private readonly subscribers = new Map<string, Subscriber>();
  private readonly byTopic = new Map<string, Set<Subscriber>>();
  private stop: (() => void) | undefined;

  constructor(
    private readonly scope: TopicScope,
    private readonly observe: Bridge['observe'],
  ) {}

  subscribe(client: string, topic: string): void {
    const subscriber = this.subscribers.get(client) ?? this.add(client);
    if (subscriber.topics.has(topic)) return;
    try {
      this.scope.budget.charge(entryBytes(topic), `a subscription to "${topic}"`);
    } catch (error) {
      if (subscriber.topics.size === 0) this.remove(client, subscriber);
      throw error;
    }
    subscriber.topics.add(topic);
    const others = this.byTopic.get(topic);
    if (others === undefined) this.byTopic.set(topic, new Set([subscriber]));
    else others.add(subscriber);
  }

  /** No-op for a topic that the client is not subscribed to. */
  unsubscribe(client: string, topic: string): void {
    const subscriber = this.subscribers.get(client);
    if (subscriber === undefined) return;
    this.leaveTopic(subscriber, topic);
    if (subscriber.topics.size === 0) this.remove(client, subscriber);
  }

  /** Waits until there are some. One call of a client at a time. */
  fetch(client: string): EventBatch | Promise<EventBatch> {
    const subscriber = this.subscribers.get(client);
    if (subscriber === undefined) return { events: [], missed: 0, done: true };
    if (subscriber.line.size > 0) {
      throw refused('busy', `the client ${client} is fetching events already`, { client });
    }
    if (subscriber.events.size > 0) return takeBatch(subscriber);
    const request = { client, timeoutMs: Infinity, what: 'an event' };
    return subscriber.line.wait(request, undefined);
  }

  close(): void {
    this.stop?.();
  }

  private readonly onEvent = (topic: string, message: unknown): void => {
    const subscribers = this.byTopic.get(topic);
    if (subscribers === undefined) return;
    const event = { topic, message, atMs: this.scope.clock.nowMs() };
    const nbytes = approximateBytes(message, KEPT_BYTES_MAX);
    for (const subscriber of subscribers) {
      subscriber.events.push({ event, nbytes });
      subscriber.nbytes += nbytes;
      while (subscriber.events.size > KEPT_MAX || subscriber.nbytes > KEPT_BYTES_MAX) {
        take(subscriber);
        subscriber.missed++;
      }
      if (subscriber.line.size > 0) subscriber.line.serve(() => takeBatch(subscriber));
    }
  };

  private add(client: string): Subscriber {
    this.scope.budget.charge(entryBytes(client), 'a subscriber');
    if (this.subscribers.size === 0) this.stop = this.observe({ eventLogged: this.onEvent });
    const subscriber: Subscriber = {
      topics: new Set(),
      events: new LinkedQueue(),
      nbytes: 0,
      missed: 0,
      line: new WaitQueue(this.scope, () => undefined),
      withdraw: this.scope.departures.add(client, () => this.remove(client, subscriber)),
    };
    this.subscribers.set(client, subscriber);
    return subscriber;
  }

  private remove(client: string, subscriber: Subscriber): void {
    for (const topic of [...subscriber.topics]) this.leaveTopic(subscriber, topic);
    this.subscribers.delete(client);
    subscriber.withdraw();
    this.scope.budget.free(entryBytes(client));
    subscriber.line.serve(() => ({ ...takeBatch(subscriber), done: true }));
    if (this.subscribers.size === 0) this.stop?.();
  }

  private leaveTopic(subscriber: Subscriber, topic: string): void {
    if (!subscriber.topics.delete(topic)) return;
    this.scope.budget.free(entryBytes(topic));
    const others = this.byTopic.get(topic);
    others?.delete(subscriber);
    if (others?.size === 0) this.byTopic.delete(topic);
  }
}

/** Its oldest event. */
function take(subscriber: Subscriber): TopicEvent | undefined {
  const kept = subscriber.events.shift();
  subscriber.nbytes -= kept?.nbytes ?? 0;
  return kept?.event;
}

function takeBatch(subscriber: Subscriber): EventBatch {
  const events: TopicEvent[] = [];
  while (events.length < BATCH_MAX) {
    const event = take(subscriber);
    if (event === undefined) break;
    events.push(event);
  }
  const { missed } = subscriber;
  subscriber.missed = 0;
  return { events, missed, done: false };
}

/** Different topics under which one client may log. */
const TOPICS_MAX = 1000;

/** Under which topics each client has logged events, and how large they may be. */
export class PublishedTopics {
  private readonly byClient = new Map<string, Set<string>>();

  constructor(private readonly scope: Pick<TopicScope, 'budget' | 'departures'>) {}

  /** @throws YardmasterError `ERR_QUOTA`; `ERR_COORDINATION` when the space for names is used up */
  check(client: string, topics: readonly string[], message: unknown): void {
    if (approximateBytes(message, EVENT_BYTES_MAX) > EVENT_BYTES_MAX) {
      throw new YardmasterError(
        'ERR_QUOTA',
        `an event of the client ${client} is larger than ${EVENT_BYTES_MAX} bytes; log where the data is`,
        { client, limitBytes: EVENT_BYTES_MAX },
      );
    }
    const known = this.byClient.get(client) ?? this.added(client);
    for (const topic of topics) if (!known.has(topic)) this.add(client, known, topic);
  }

  private added(client: string): Set<string> {
    const topics = new Set<string>();
    this.byClient.set(client, topics);
    this.scope.departures.add(client, () => {
      this.byClient.delete(client);
      for (const topic of topics) this.scope.budget.free(entryBytes(topic));
    });
    return topics;
  }

  private add(client: string, known: Set<string>, topic: string): void {
    if (known.size >= TOPICS_MAX) {
      throw new YardmasterError(
        'ERR_QUOTA',
        `the client ${client} has logged events under ${TOPICS_MAX} topics; use one of them again`,
        { client, topics: TOPICS_MAX },
      );
    }
    this.scope.budget.charge(entryBytes(topic), `the topic "${topic.slice(0, 100)}"`);
    known.add(topic);
  }
}
