/** Messages from the scheduler to a client. One-to-one with Dask's messages. */
import type { TaskFailure } from '../state/task.ts';

/** A message about keys as the client wanted them then: what it has asked for since is not meant. */
interface AboutWants {
  /** Number of the last report of this client that was handled before. Absent: none was. */
  readonly after?: number;
}

/** A wanted key has a result. */
export interface KeyInMemory extends AboutWants {
  readonly op: 'key-in-memory';
  readonly key: string;
  readonly type?: string;
  readonly nbytes?: number;
  /** Addresses of the holders. */
  readonly workers: readonly string[];
  /** The result itself, serialised, when it is small and has just been computed. */
  readonly value?: Uint8Array;
}

/** The result of a wanted key is gone; the scheduler computes it again if it can. */
export interface LostData {
  readonly op: 'lost-data';
  readonly key: string;
}

/** A wanted key failed, itself or through a dependency. */
export interface TaskErredMessage extends AboutWants {
  readonly op: 'task-erred';
  readonly key: string;
  /** Key of the task that failed first. */
  readonly blame: string;
  readonly failure: TaskFailure;
}

/** A failed key is computed once more. */
export interface TaskRetried {
  readonly op: 'task-retried';
  readonly key: string;
}

/** The reason for the cancellation of keys that need lost data; clients tell it from other reasons by this text. */
export const LOST_INPUT = 'it depends on data that is lost';

/** The reason for the cancellation of keys that stand for nothing; clients tell it from other reasons by this text. */
export const UNKNOWN_KEY = 'the scheduler does not know it';

/** These keys will not have a result. */
export interface CancelledKeys extends AboutWants {
  readonly op: 'cancelled-keys';
  readonly keys: readonly string[];
  /** For people, except {@link LOST_INPUT} and {@link UNKNOWN_KEY}. */
  readonly reason: string;
  /** The message for people of the client that cancelled them. */
  readonly message?: string;
  /** The key that stands for another computation already, if that is why. */
  readonly taken?: string;
  /** Name of the plugin that has refused their graph, if that is why. */
  readonly plugin?: string;
}

/** Data that the client put on workers under these keys is dropped: other data is there already. */
export interface DataRefused {
  readonly op: 'data-refused';
  readonly keys: readonly string[];
  readonly reason: string;
}

/** All tasks were forgotten. */
export interface RestartMessage extends AboutWants {
  readonly op: 'restart';
}

/** All messages from the scheduler to clients. */
export type ToClientMessage =
  | KeyInMemory
  | LostData
  | TaskErredMessage
  | TaskRetried
  | CancelledKeys
  | DataRefused
  | RestartMessage;
