import type { ClusterView, WorkerView } from '../../core/api/index.ts';

/** Which workers could go. Without `n`, `target` and `memoryRatio`: as with a `memoryRatio` of 2. */
export interface WorkersToCloseOptions {
  /** Close this many workers, busy ones if there are not enough idle ones. */
  readonly n?: number | undefined;
  /** Close workers until this many remain. */
  readonly target?: number | undefined;
  /**
   * Close idle workers while the memory of the others is at least this many times the stored bytes.
   */
  readonly memoryRatio?: number | undefined;
  /** Leave at least this many workers. */
  readonly minimum?: number | undefined;
  /** Which workers go together. Default: each by itself. */
  readonly groupBy?: ((worker: WorkerView) => string) | undefined;
}

interface Group {
  readonly workers: WorkerView[];
  isIdle: boolean;
  nbytes: number;
  limitBytes: number;
}

/**
 * The workers that the cluster can best do without: idle ones first, and those that hold the least.
 * Workers that are leaving already do not count; workers with a task that has seceded stay. Dask's
 * `workers_to_close`. O(workers log workers).
 */
export function workersToClose(
  cluster: ClusterView,
  options: WorkersToCloseOptions = {},
): WorkerView[] {
  const staying = [...cluster.workers.values()].filter(({ status }) => !status.startsWith('clos'));
  const { minimum = 0 } = options;
  const n = numberOf(options, staying.length);
  const memoryRatio = options.memoryRatio ?? (n === undefined ? 2 : undefined);
  const isAllBusy = staying.every(({ processing }) => processing.size > 0);
  if (staying.length === 0 || ((n ?? 0) === 0 && isAllBusy)) return [];
  const target = n === undefined ? 0 : staying.length - n;
  const groups = groupsOf(staying, options.groupBy ?? ((worker) => worker.address));
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

function numberOf({ n, target }: WorkersToCloseOptions, count: number): number | undefined {
  if (n !== undefined) return Math.min(count, Math.max(0, n));
  return target === undefined ? undefined : Math.max(0, count - target);
}

/** Those that go first come first. */
function groupsOf(workers: readonly WorkerView[], keyOf: (worker: WorkerView) => string): Group[] {
  const groups = new Map<string, Group>();
  for (const worker of workers) {
    if (worker.longRunning.size > 0) continue;
    const key = keyOf(worker);
    let group = groups.get(key);
    if (group === undefined) {
      groups.set(key, (group = { workers: [], isIdle: true, nbytes: 0, limitBytes: 0 }));
    }
    group.workers.push(worker);
    group.isIdle &&= worker.processing.size === 0;
    group.nbytes += worker.nbytes;
    // 0 is no limit.
    group.limitBytes += worker.memoryLimitBytes > 0 ? worker.memoryLimitBytes : Infinity;
  }
  return [...groups.values()].sort(
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
