/** What every stimulus carries. */

/** Something that happens to the scheduler. */
export interface Caused {
  /** Unique name of the event: `task-finished-17`. */
  readonly stimulusId: string;
}

/** It comes from a worker. */
export interface FromWorker extends Caused {
  /** Address of the sender. */
  readonly worker: string;
}

/** It comes from a client. */
export interface FromClient extends Caused {
  /** Key of the sender. */
  readonly client: string;
}

/** A message on its way to the scheduler, before its host stamps it with the sender. */
export type Unstamped<T, Stamp extends string> = T extends unknown ? Omit<T, Stamp> : never;
