import { Worker } from 'node:worker_threads';
import type { ClusterReach } from '../../tasks/index.ts';
import type { ThreadData } from './messages.ts';
import { threadEntry } from './thread-entry.ts';

/** What a thread is started with. */
export interface SpawnSettings {
  /** Megabytes of the heap of each thread; undefined: Node's default. */
  readonly heapLimitMb: number | undefined;
  /** Bytes that its tasks may leave behind; undefined: the engine does as it likes. */
  readonly tidyBytes: number | undefined;
  /** What its tasks reach; undefined: nothing. */
  readonly cluster: ClusterReach | undefined;
}

/**
 * Starts a thread that runs `thread-main.ts`.
 * @param begun - of `StartedRuns`, when it runs tasks
 */
export function spawnThread(
  name: string,
  { heapLimitMb, tidyBytes, cluster }: SpawnSettings,
  begun?: SharedArrayBuffer,
): Worker {
  const workerData: ThreadData = {
    ...(begun && { begun }),
    ...(tidyBytes === undefined ? {} : { tidyBytes }),
    ...(cluster && {
      cluster: {
        scheduler: cluster.scheduler,
        schemes: cluster.transports.map(({ scheme }) => scheme),
        ...(cluster.modules === undefined ? {} : { moduleFolders: cluster.modules.folders }),
      },
    }),
  };
  return new Worker(threadEntry(), {
    name,
    workerData,
    ...(heapLimitMb === undefined
      ? {}
      : { resourceLimits: { maxOldGenerationSizeMb: heapLimitMb } }),
  });
}
