import type { Clock, Transport } from '../../core/api/index.ts';
import type { ActorCaller } from './actors/handle.ts';
import type { RunContext } from './context.ts';

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
  /** How handles reach their actors that this run has received. */
  actorCaller(run: RunContext): ActorCaller;
}
