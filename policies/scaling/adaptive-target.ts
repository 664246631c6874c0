import type { ClusterView, TaskView } from '../../core/api/index.ts';
import { workersToClose } from './workers-to-close.ts';

/** Waiting tasks whose durations are looked at; of more of them, the sum is extrapolated. */
const SAMPLE_SIZE = 100;
/** More of the memory than this in use: twice the workers. */
const MEMORY_FRACTION = 0.6;

/**
 * The number of workers that the present work could use: as many as finish it within the given time, twice as
 * many when memory gets short, and fewer than there are only by workers that can go. Workers that are
 * leaving do not count. Dask's `adaptive_target`. O(workers log workers).
 *
 * @param targetDurationS - seconds; positive
 */
export function adaptiveTarget(cluster: ClusterView, targetDurationS = 5): number {
  const workers = [...cluster.workers.values()].filter(({ status }) => !status.startsWith('clos'));
  const waiting = cluster.queued.size + cluster.unrunnable.size;
  let cpu = Math.ceil(
    (cluster.totalOccupancyS + waitingSeconds(cluster, waiting)) / targetDurationS,
  );
  cpu = Math.min(cpu, tasksUpTo(cpu, waiting, workers));
  const threads = workers.reduce((sum, { threadCount }) => sum + threadCount, 0);
  if (threads > 0) cpu = Math.ceil((cpu / threads) * workers.length);
  else if (waiting > 0) cpu = Math.max(1, cpu);

  const limit = workers.reduce((sum, { memoryLimitBytes }) => sum + memoryLimitBytes, 0);
  const nbytes = workers.reduce((sum, worker) => sum + worker.nbytes, 0);
  const isMemoryShort = limit > 0 && nbytes > MEMORY_FRACTION * limit;
  const target = Math.max(cpu, isMemoryShort ? 2 * workers.length : 0);
  if (target >= workers.length) return target;
  return workers.length - workersToClose(cluster).length;
}

/** Seconds that the waiting tasks are expected to take. */
function waitingSeconds(cluster: ClusterView, waiting: number): number {
  let seconds = 0;
  let count = 0;
  for (const task of waitingTasks(cluster)) {
    if (count === SAMPLE_SIZE) break;
    seconds += task.prefix.durationEstimateS;
    count++;
  }
  return count === 0 ? 0 : (seconds * waiting) / count;
}

function* waitingTasks({ queued, unrunnable }: ClusterView): Generator<TaskView> {
  yield* queued;
  yield* unrunnable.keys();
}

/** Tasks that there are, as far as they are fewer than that. */
function tasksUpTo(
  enough: number,
  waiting: number,
  workers: Iterable<{ readonly processing: { readonly size: number } }>,
): number {
  let count = waiting;
  for (const { processing } of workers) {
    if (count > enough) break;
    count += processing.size;
  }
  return count;
}
