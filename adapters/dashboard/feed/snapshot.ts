/** The cluster in a few tables. O(groups + workers), never O(tasks). */
import type { ClusterView } from '../../../core/api/index.ts';
import { clientCount } from '../metrics/cluster-figures.ts';
import type { PrefixNumbers } from './prefix-numbers.ts';
import type { Row } from './table-delta.ts';

/** Figures of the whole cluster. */
export type Totals = Readonly<Record<string, number>>;

/** Figures of the whole cluster. */
export function totalsOf(cluster: ClusterView): Totals {
  const { tasks, workers, queued, unrunnable } = cluster;
  let [finished, nbytes, cpuPercent] = [0, 0, 0];
  for (const { stateCounts } of cluster.prefixes.values()) finished += stateCounts.memory;
  for (const worker of workers.values()) {
    nbytes += worker.nbytes;
    cpuPercent += worker.metrics.cpuPercent ?? 0;
  }
  return {
    tasks: tasks.size,
    workers: workers.size,
    threads: cluster.totalThreads,
    clients: clientCount(cluster),
    queued: queued.size,
    unrunnable: unrunnable.size,
    occupancyS: rounded(cluster.totalOccupancyS),
    finished,
    nbytes,
    cpuPercent: Math.round(cpuPercent),
  };
}

/**
 * Rows: name, number, released, waiting, no-worker, queued, processing, memory, erred, tasks ever computed, seconds of
 * one task (-1: unknown), bytes.
 */
export function prefixRows({ prefixes }: ClusterView, numbers: PrefixNumbers): readonly Row[] {
  return Array.from(prefixes.values(), (prefix): Row => {
    const { name, states, stateCounts, durationAverageS, nbytesTotal } = prefix;
    return [
      ...([name, numbers.of(name), states.released, states.waiting, states['no-worker']] as const),
      ...[states.queued, states.processing, states.memory, states.erred, stateCounts.memory],
      ...[rounded(durationAverageS), nbytesTotal],
    ];
  });
}

/**
 * Rows: address, name, status, threads, tasks processing, results, CPU (-1: unknown), bytes of memory that are managed,
 * unmanaged, recently allocated, spilled, limit (0: none), occupancy in seconds, seconds since it was last heard of.
 */
export function workerRows({ workers }: ClusterView, nowMs: number): readonly Row[] {
  return Array.from(workers.values(), (worker): Row => {
    const { address, name, status, threadCount, processing, hasWhat, metrics, memory } = worker;
    const recent = Math.max(0, memory.process - memory.managed - memory.unmanagedOld);
    return [
      ...([address, name, status, threadCount, processing.size, hasWhat.size] as const),
      ...[Math.round(metrics.cpuPercent ?? -1), memory.managed, memory.unmanagedOld, recent],
      ...[memory.spilled, worker.memoryLimitBytes, rounded(worker.occupancyS)],
      Math.max(0, Math.round((nowMs - worker.lastSeenMs) / 1000)),
    ];
  });
}

/** To three digits: more would change in every frame. */
function rounded(seconds: number): number {
  return Number(seconds.toPrecision(3));
}
