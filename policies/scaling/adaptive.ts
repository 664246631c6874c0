import type { ClosableWorkers, ClusterView, TaskView, WorkerView } from '../../core/api/index.ts';

/** A step towards the wanted number of workers. */
type ScalingStep =
  | { readonly kind: 'none' }
  /** Start this many more workers. */
  | { readonly kind: 'up'; readonly count: number }
  /** Close these. */
  | { readonly kind: 'down'; readonly names: readonly string[] };

/** Bounds and patience of adaptive scaling. */
interface AdaptivePlanOptions {
  readonly minimum: number;
  /** May be Infinity. */
  readonly maximum: number;
  /** A worker is closed after it was closable in this many consecutive checks. */
  readonly waitCount: number;
}

const NOTHING: ScalingStep = { kind: 'none' };

/**
 * Decides how many workers there should be: more at once, fewer only after some patience. It
 * remembers which workers were closable in the last checks. Dask's `Adaptive`.
 */
export class AdaptivePlan {
  private readonly looks = new Map<string, number>();

  constructor(private readonly options: AdaptivePlanOptions) {}

  /**
   * @param target - workers that the present work could use
   * @param current - workers that are running or being started
   * @param closable - returns the names of the workers to close so that `leave` workers remain
   */
  next(
    target: number,
    current: number,
    closable: (leave: number) => readonly string[],
  ): ScalingStep {
    const { minimum, maximum, waitCount } = this.options;
    const wanted = Math.max(minimum, Math.min(maximum, target));
    if (wanted >= current) {
      this.looks.clear();
      return wanted === current ? NOTHING : { kind: 'up', count: wanted - current };
    }
    const candidates = new Set(closable(wanted));
    for (const name of this.looks.keys()) if (!candidates.has(name)) this.looks.delete(name);
    const names: string[] = [];
    for (const name of candidates) {
      const looks = (this.looks.get(name) ?? 0) + 1;
      this.looks.set(name, looks);
      if (looks >= waitCount) names.push(name);
    }
    for (const name of names) this.looks.delete(name);
    return names.length === 0 ? NOTHING : { kind: 'down', names };
  }
}

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
