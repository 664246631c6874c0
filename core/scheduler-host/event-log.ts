import type { Config } from '../config/types.ts';
import { collaborator, inject } from '../plugin-host/injection.ts';
import { CONFIG } from '../host/tokens.ts';
import { approximateBytes } from '../util/bytes.ts';
import { nextInRing } from '../util/collections.ts';

interface LoggedMessage {
  readonly atMs: number;
  readonly message: unknown;
}

/** Topics that are kept; the one that was silent for longest goes first. */
const TOPICS_MAX = 10_000;

/** Part of the limit that is left when it was exceeded, so that the next events cost nothing. */
const LEFT_RATIO = 0.9;

interface Topic {
  /** Ever published. */
  total: number;
  messages: LoggedMessage[];
  /** Bytes of each message, roughly. */
  sizes: number[];
  /** The index of the next message once the ring is full. */
  next: number;
  /** Of the name and all messages. */
  nbytes: number;
}

/** The latest messages of each topic. */
@collaborator
export class EventLog {
  private readonly topics = new Map<string, Topic>();
  private nbytes = 0;

  /** Messages that are kept for each topic. */
  private readonly lengthMax: number;
  private readonly bytesMax: number;

  constructor(@inject(CONFIG) { scheduler }: Config) {
    this.lengthMax = scheduler.eventLogLength;
    this.bytesMax = scheduler.limits.events;
  }

  /** O(values of the message). When the log is full: O(topics), and half of the largest topic is forgotten. */
  publish(name: string, message: unknown, atMs: number): void {
    const topic = this.topics.get(name) ?? this.newTopic(name);
    // Re-inserting keeps the topics in the order of their latest message.
    this.topics.delete(name);
    this.topics.set(name, topic);
    topic.total++;
    if (this.lengthMax > 0) this.keep(topic, { atMs, message });
    if (this.topics.size > TOPICS_MAX) {
      const [oldest] = this.topics.keys();
      this.forget(oldest as string);
    }
    if (this.nbytes > this.bytesMax) this.shrink();
  }

  /** Oldest first; empty for a topic without messages. */
  of(name: string): readonly LoggedMessage[] {
    const topic = this.topics.get(name);
    return topic === undefined ? [] : inOrder(topic.messages, topic.next);
  }

  /** All topics with the number of messages ever published. */
  summary(): (readonly [topic: string, total: number])[] {
    return [...this.topics].map(([name, { total }]) => [name, total] as const);
  }

  private newTopic(name: string): Topic {
    this.nbytes += name.length;
    return { total: 0, messages: [], sizes: [], next: 0, nbytes: name.length };
  }

  private keep(topic: Topic, logged: LoggedMessage): void {
    const { messages, sizes, next } = topic;
    const nbytes = approximateBytes(logged.message, this.bytesMax);
    let freed = 0;
    if (messages.length < this.lengthMax) {
      messages.push(logged);
      sizes.push(nbytes);
    } else {
      freed = sizes[next] as number;
      messages[next] = logged;
      sizes[next] = nbytes;
      topic.next = nextInRing(next, this.lengthMax);
    }
    topic.nbytes += nbytes - freed;
    this.nbytes += nbytes - freed;
  }

  private shrink(): void {
    while (this.nbytes > LEFT_RATIO * this.bytesMax) {
      let largest: readonly [string, Topic] | undefined;
      for (const entry of this.topics) {
        if (entry[1].nbytes > (largest?.[1].nbytes ?? -1)) largest = entry;
      }
      if (largest === undefined) return;
      const [name, topic] = largest;
      if (topic.messages.length === 0) this.forget(name);
      else this.halve(topic);
    }
  }

  private halve(topic: Topic): void {
    const { messages, sizes, next } = topic;
    const count = Math.ceil(messages.length / 2);
    const gone = inOrder(sizes, next).slice(0, count);
    topic.messages = inOrder(messages, next).slice(count);
    topic.sizes = inOrder(sizes, next).slice(count);
    topic.next = 0;
    const nbytes = gone.reduce((sum, size) => sum + size, 0);
    topic.nbytes -= nbytes;
    this.nbytes -= nbytes;
  }

  private forget(name: string): void {
    this.nbytes -= this.topics.get(name)?.nbytes ?? 0;
    this.topics.delete(name);
  }
}

/** A ring from its oldest item on. */
function inOrder<T>(ring: readonly T[], next: number): T[] {
  return [...ring.slice(next), ...ring.slice(0, next)];
}
