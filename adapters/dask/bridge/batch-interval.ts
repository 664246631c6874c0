import type { ClusterView } from '../../../core/api/index.ts';

/** Dask's value. */
const INTERVAL_MS = 2;
const BACKLOG_INTERVAL_MS = 10;
/** Queued tasks for each thread that keep workers busy for so long. */
const BACKLOG_TASKS = 10;

/**
 * Upper bound of the delay of messages to a client while there are many of them. A message by itself
 * costs scheduler and client far more than one among others; and while many tasks are queued, no worker
 * waits for what the client does with a result.
 */
export function batchIntervalMs({
  queued,
  totalThreads,
}: {
  readonly queued: Pick<ClusterView['queued'], 'size'>;
  readonly totalThreads: number;
}): number {
  return queued.size > BACKLOG_TASKS * totalThreads ? BACKLOG_INTERVAL_MS : INTERVAL_MS;
}
