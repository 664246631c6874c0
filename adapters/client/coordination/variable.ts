import type { Coordinator, GivenValue } from './values.ts';
import { type WaitLimit, waitParameters } from './values.ts';

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
