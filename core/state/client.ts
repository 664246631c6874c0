import { SmallSet } from '../util/small-set.ts';
import type { TaskState } from './task.ts';

/** The pseudo-client whose wishes end when a task reaches memory or fails. */
export const FIRE_AND_FORGET = 'fire-and-forget';

/** Somebody who wants results: a connected client, or a service such as a published data set. */
export class ClientState {
  /** The set of clients that has this one as its only member; shared by the tasks that it wants. */
  readonly alone: SmallSet<ClientState> = SmallSet.of<ClientState>(this);
  /** Scheduler's clock in milliseconds. */
  lastSeenMs: number;

  constructor(
    readonly key: string,
    nowMs: number,
    readonly versions: Readonly<Record<string, string>> = {},
    /** Nobody is there to be told anything. */
    readonly isMute = false,
    readonly wantsWhat: Set<TaskState> = new Set<TaskState>(),
  ) {
    this.lastSeenMs = nowMs;
  }

  toString(): string {
    return `<Client ${this.key}>`;
  }
}
