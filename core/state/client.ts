import { SmallSet } from '../util/collections/small-set.ts';

/** The pseudo-client that stops wanting a task when the task reaches memory or fails. */
export const FIRE_AND_FORGET = 'fire-and-forget';

/**
 * A peer that wants results: a connected client, or a service such as a published data set. With `Task`
 * filled in it is the `ClientState` of `task.ts`.
 */
export class GenericClient<Task> {
  /** The set of clients that has this one as its only member; shared by the tasks that it wants. */
  readonly alone: SmallSet<GenericClient<Task>> = SmallSet.of<GenericClient<Task>>(this);
  /** Scheduler's clock in milliseconds. */
  lastSeenMs: number;

  constructor(
    readonly key: string,
    nowMs: number,
    readonly versions: Readonly<Record<string, string>> = {},
    /** No messages are sent to it. */
    readonly isMute = false,
    readonly wantsWhat: Set<Task> = new Set<Task>(),
  ) {
    this.lastSeenMs = nowMs;
  }

  toString(): string {
    return `<Client ${this.key}>`;
  }
}
