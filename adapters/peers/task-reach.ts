/** The cluster, as the tasks of a worker reach it. */
import type { Clock } from '../../core/api/index.ts';
import type { ClusterReach, TaskSurroundings } from '../tasks/index.ts';
import type { TaskActors } from './task-actors.ts';

/** The surroundings of the tasks of one thread. What they rarely need is loaded when they do. */
export interface Reach extends TaskSurroundings {
  /** The worker closes. */
  close(): void;
}

/** Undefined when there is no cluster to reach. */
export function reachOf(cluster: ClusterReach | undefined, clock: Clock): Reach | undefined {
  if (cluster === undefined) return undefined;
  const closers = new Set<() => void>();
  let actors: Promise<TaskActors> | undefined;
  const loadActors = async (): Promise<TaskActors> => {
    const { TaskActors } = await import('./task-actors.ts');
    const loaded = new TaskActors({ clock, transports: cluster.transports });
    closers.add(() => loaded.close());
    return loaded;
  };
  return {
    ...cluster,
    clock,
    onClose: (close) => void closers.add(close),
    actorCaller: (run) => ({
      send: async (actor, request) => {
        actors ??= loadActors();
        return (await actors).send(run, actor, request);
      },
    }),
    close: () => {
      for (const close of closers) close();
      closers.clear();
    },
  };
}
