/** The fields that every stimulus carries. */
import type { Name } from '../util/values.ts';

/** Something that happens to the scheduler. */
export interface Caused {
  /** Unique name of the event: `task-finished-17`. */
  readonly stimulusId: string;
}

/** It comes from a worker. */
export interface FromWorker extends Caused {
  /** Address of the sender. */
  readonly worker: Name;
}

/** It comes from a client. */
export interface FromClient extends Caused {
  /** Key of the sender. */
  readonly client: Name;
}

/** A message on its way to the scheduler, before its host stamps it with the sender. */
export type Unstamped<T, Stamp extends string> = T extends unknown ? Omit<T, Stamp> : never;
