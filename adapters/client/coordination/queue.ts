import type { Coordinator, GivenValue } from './values.ts';
import { type WaitLimit, waitParameters } from './values.ts';

/** What a queue is like. */
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
    return { name: this.name, ...(maxSize === undefined ? {} : { maxSize }), ...more };
  }
}
