import { inspect, types } from 'node:util';
import { type Clock, YardmasterError } from '../../../core/api/index.ts';
import { inBackground } from '../../../core/shared/background.ts';
import type { Coordinator } from './values.ts';

/** What was logged under a topic. */
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
export class TopicFeed {
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
