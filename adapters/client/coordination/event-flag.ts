import type { Coordinator } from './values.ts';
import { type WaitLimit, waitParameters } from './values.ts';

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
