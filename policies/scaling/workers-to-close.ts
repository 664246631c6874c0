import type { ClosableWorkers, ClusterView, WorkerView } from '../../core/api/index.ts';

interface Group {
  readonly workers: WorkerView[];
  isIdle: boolean;
  /** A task has seceded on one of its workers: it would have to begin anew elsewhere. */
  mustStay: boolean;
  nbytes: number;
  limitBytes: number;
}

/**
 * The workers that the cluster can best do without: idle ones first, and those that hold the least.
 * Workers that are leaving already do not count; a group of which a worker has a task that has seceded stays as a whole. Dask's
 * `workers_to_close`. O(workers log workers).
 */
export function workersToClose(cluster: ClusterView, options: ClosableWorkers = {}): WorkerView[] {
  const staying = [...cluster.workers.values()].filter(({ status }) => !status.startsWith('clos'));
  const { minimum = 0 } = options;
  const n = numberOf(options, staying.length);
  const memoryRatio = options.memoryRatio ?? (n === undefined ? 2 : undefined);
  const isAllBusy = staying.every(({ processing }) => processing.size > 0);
  if (staying.length === 0 || ((n ?? 0) === 0 && isAllBusy)) return [];
  const target = n === undefined ? 0 : staying.length - n;
  const groups = groupsOf(staying, options.key ?? ((worker) => worker.address));
  const totalBytes = groups.reduce((sum, { nbytes }) => sum + nbytes, 0);
  const chosen: WorkerView[] = [];
  for (const [index, group] of groups.entries()) {
    const left = staying.length - chosen.length - group.workers.length;
    if (left < minimum || (n === undefined && !group.isIdle)) break;
    const isAskedFor = n !== undefined && left >= target;
    const isRoomLeft =
      memoryRatio !== undefined && limitOf(groups, index) >= memoryRatio * totalBytes;
    if (!isAskedFor && !isRoomLeft) break;
    chosen.push(...group.workers);
  }
  return chosen;
}

function numberOf({ n, target }: ClosableWorkers, count: number): number | undefined {
  if (n !== undefined) return Math.min(count, Math.max(0, n));
  return target === undefined ? undefined : Math.max(0, count - target);
}

/** Those that go first come first. */
function groupsOf(workers: readonly WorkerView[], keyOf: (worker: WorkerView) => string): Group[] {
  const groups = new Map<string, Group>();
  for (const worker of workers) {
    const key = keyOf(worker);
    let group = groups.get(key);
    if (group === undefined) {
      group = { workers: [], isIdle: true, mustStay: false, nbytes: 0, limitBytes: 0 };
      groups.set(key, group);
    }
    group.workers.push(worker);
    group.mustStay ||= worker.longRunning.size > 0;
    group.isIdle &&= worker.processing.size === 0;
    group.nbytes += worker.nbytes;
    // 0 is no limit.
    group.limitBytes += worker.memoryLimitBytes > 0 ? worker.memoryLimitBytes : Infinity;
  }
  return [...groups.values()]
    .filter(({ mustStay }) => !mustStay)
    .sort(
      (a, b) => Number(b.isIdle) - Number(a.isIdle) || a.nbytes - b.nbytes || rankOf(b) - rankOf(a),
    );
}

/** Memory of the groups after this one. */
function limitOf(groups: readonly Group[], index: number): number {
  let bytes = 0;
  for (let next = index + 1; next < groups.length; next++) bytes += groups[next]?.limitBytes ?? 0;
  return bytes;
}

/** Among equals the youngest goes first. */
function rankOf({ workers }: Group): number {
  return workers[0]?.rank ?? -1;
}
