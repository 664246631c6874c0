import type { ClusterView, TaskView, WorkerView } from '../../core/api/index.ts';

/** Time that every copy has to arrive, besides twice that of the transfer. */
const GRACE_MS = 30_000;

interface Request {
  readonly worker: WorkerView;
  readonly nbytes: number;
  readonly expiresMs: number;
}

/**
 * Copies that were asked for and have not arrived. They are remembered beyond their round: a request
 * that takes longer than the interval is not repeated, nor given to another worker as well.
 */
export class InFlight {
  private readonly requests = new Map<TaskView, Request[]>();
  private readonly bytesByWorker = new Map<WorkerView, number>();

  /** Tasks of which copies are under way, as of the last {@link prune}. */
  get size(): number {
    return this.requests.size;
  }

  has(task: TaskView, worker: WorkerView): boolean {
    return this.requests.get(task)?.some((request) => request.worker === worker) === true;
  }

  /** A copy was asked for. It has the time that all that this worker waits for needs, twice. */
  add(task: TaskView, worker: WorkerView, { nowMs, bandwidth }: TransferTime): void {
    const nbytes = Math.max(0, task.nbytes);
    const queued = (this.bytesByWorker.get(worker) ?? 0) + nbytes;
    this.bytesByWorker.set(worker, queued);
    const expiresMs = nowMs + GRACE_MS + (2000 * queued) / bandwidth;
    const request = { worker, nbytes, expiresMs };
    const others = this.requests.get(task);
    if (others === undefined) this.requests.set(task, [request]);
    else others.push(request);
  }

  /**
   * Forgets what has arrived, what nobody can send or receive any more, and what is late.
   * O(requests).
   */
  prune(cluster: ClusterView, nowMs: number): void {
    for (const [task, requests] of this.requests) {
      const open = requests.filter(({ worker, expiresMs }) => {
        const isSent = task.state === 'memory' && cluster.running.has(worker);
        return isSent && nowMs < expiresMs && !worker.hasWhat.has(task);
      });
      if (open.length === requests.length) continue;
      for (const request of requests) if (!open.includes(request)) this.forget(request);
      if (open.length === 0) this.requests.delete(task);
      else this.requests.set(task, open);
    }
  }

  /** What is under way, by task. */
  *all(): Generator<readonly [task: TaskView, worker: WorkerView]> {
    for (const [task, requests] of this.requests) {
      for (const { worker } of requests) yield [task, worker];
    }
  }

  clear(): void {
    this.requests.clear();
    this.bytesByWorker.clear();
  }

  private forget({ worker, nbytes }: Request): void {
    const left = (this.bytesByWorker.get(worker) ?? 0) - nbytes;
    if (left > 0) this.bytesByWorker.set(worker, left);
    else this.bytesByWorker.delete(worker);
  }
}

/** What the time of a transfer is reckoned from. */
export interface TransferTime {
  readonly nowMs: number;
  /** Bytes per second. */
  readonly bandwidth: number;
}
