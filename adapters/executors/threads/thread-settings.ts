import type { Clock, YardmasterError } from '../../../core/api/index.ts';
import type { ClusterReach } from '../../tasks/index.ts';
import type { Job } from './job.ts';

/** What a thread `T` needs of its pool. */
export interface ThreadSettings<T> {
  readonly clock: Clock;
  /** Megabytes of the heap of each thread; undefined: Node's default. */
  readonly heapLimitMb: number | undefined;
  /** Bytes that its tasks may leave behind; undefined: the engine does as it likes. */
  readonly tidyBytes: number | undefined;
  /** Milliseconds for an aborted task to end. */
  readonly abortGraceMs: number;
  /** What its tasks reach; undefined: nothing. */
  readonly cluster: ClusterReach | undefined;
  /** Called when the thread stops or starts to count among those that take runs. */
  readonly onSlotChange: (thread: T) => void;
  /** Runs have ended, or wait. */
  readonly onProgress: (thread: T) => void;
  /** Called when the thread has ended. */
  readonly onGone: (thread: T, end: ThreadEnd) => void;
}

/** What the end of a thread means for others. */
export interface ThreadEnd {
  /** Undefined if the thread was closed, or if a run has received the error. */
  readonly error: YardmasterError | undefined;
  /** Runs that had not begun, or whose outcome was not reported. */
  readonly left: readonly Job[];
  /** Runs that had begun, and are not the cause. */
  readonly interrupted: readonly Job[];
}

/** What a thread runs. */
export interface Running {
  readonly threadId: number;
  /** Of the task. */
  readonly key: string;
  readonly isWaiting: boolean;
  /** Milliseconds for which its event loop has been busy. */
  readonly busyMs: () => number;
}
