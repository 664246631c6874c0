import { token, type Token } from '../api/plugin.ts';
import type { Config } from '../config/types.ts';
import { inject } from '../plugin-host/injection/di.ts';
import { CONFIG } from '../plugin-host/injection/tokens.ts';
import { nextInRing } from '../util/collections/ring.ts';

export const EVENT_LOG: Token<EventLog> = token('event-log');

/** One published message. */
interface LoggedMessage {
  readonly atMs: number;
  readonly message: unknown;
}

/** Topics that are kept; the one that was silent for longest goes first. */
const TOPICS_MAX = 10_000;

interface Topic {
  /** Ever published. */
  total: number;
  readonly messages: LoggedMessage[];
  /** Where the next message goes once the ring is full. */
  next: number;
}

/** What was published under which topic: the latest messages of each. */
export class EventLog {
  private readonly topics = new Map<string, Topic>();

  /** Messages that are kept for each topic. */
  private readonly lengthMax: number;

  constructor(@inject(CONFIG) { scheduler }: Config) {
    this.lengthMax = scheduler.eventLogLength;
  }

  publish(name: string, message: unknown, atMs: number): void {
    const topic = this.topics.get(name) ?? { total: 0, messages: [], next: 0 };
    // Re-inserting keeps the topics in the order of their latest message.
    this.topics.delete(name);
    this.topics.set(name, topic);
    topic.total++;
    const { lengthMax } = this;
    if (topic.messages.length < lengthMax) topic.messages.push({ atMs, message });
    else if (lengthMax > 0) {
      topic.messages[topic.next] = { atMs, message };
      topic.next = nextInRing(topic.next, lengthMax);
    }
    if (this.topics.size > TOPICS_MAX) {
      const [oldest] = this.topics.keys();
      this.topics.delete(oldest as string);
    }
  }

  /** Oldest first; empty for a topic without messages. */
  of(name: string): readonly LoggedMessage[] {
    const topic = this.topics.get(name);
    if (topic === undefined) return [];
    return [...topic.messages.slice(topic.next), ...topic.messages.slice(0, topic.next)];
  }

  /** All topics with the number of messages ever published. */
  summary(): (readonly [topic: string, total: number])[] {
    return [...this.topics].map(([name, { total }]) => [name, total] as const);
  }
}
