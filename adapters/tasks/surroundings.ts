import type { Clock, Transport } from '../../core/api/index.ts';

/** What tasks need to reach the cluster that they run on. */
export interface ClusterReach {
  /** Address of the scheduler. */
  readonly scheduler: string;
  /** Of the worker. */
  readonly transports: readonly Transport[];
}

/** How the tasks of a worker reach the cluster that they run on. One for each thread. */
export interface TaskSurroundings extends ClusterReach {
  readonly clock: Clock;
  /** Adds something to do when the worker closes. In a thread that is ended it is not called. */
  onClose(close: () => void): void;
}

/** The surroundings of tasks that run in the thread of their worker. */
export class LocalSurroundings implements TaskSurroundings {
  private readonly closers = new Set<() => void>();

  constructor(
    readonly scheduler: string,
    readonly transports: readonly Transport[],
    readonly clock: Clock,
  ) {}

  onClose(close: () => void): void {
    this.closers.add(close);
  }

  /** The worker closes. */
  close(): void {
    for (const close of this.closers) close();
    this.closers.clear();
  }
}
