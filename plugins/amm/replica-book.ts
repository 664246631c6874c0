import type { ClusterView, PendingReplicas, TaskView, WorkerView } from '../../core/api/index.ts';
import { NO_WORKERS, WorkerList } from './worker-list.ts';
import type { WorkerLoad, WorkerLoads } from './worker-loads.ts';

/** Time that every copy has to arrive, besides twice that of the transfer. */
const GRACE_MS = 30_000;

/** Copies of one task that were asked for. */
interface Request {
  readonly task: TaskView;
  workers: WorkerList;
  /** Number of workers, from the front, that were requested before this round. */
  openAtStart: number;
  /** Of these, what was suggested again in this round: all before the position, and some behind it. */
  claimedBefore: number;
  claimed: Set<WorkerView> | undefined;
  /** When they count as lost on their way. */
  expiresMs: number;
}

/** What the time of a transfer is reckoned from. */
export interface TransferTime {
  readonly nowMs: number;
  /** Bytes per second. */
  readonly bandwidth: number;
}

/**
 * The workers that will receive or lose copies, by task: within a round all accepted suggestions,
 * between rounds the requested copies that have not arrived. So a request that takes longer than
 * the interval is neither repeated nor given to another worker as well. The managers of a scheduler
 * share one; only one of them runs at a time.
 *
 * A round may drop a copy of every task there is, so drops are kept by the dense ids of tasks,
 * without an object or a hash for each.
 */
export class ReplicaBook implements ReadonlyMap<TaskView, PendingReplicas> {
  /** By the ids of tasks. */
  private readonly requests = new Map<number, Request>();
  /** By the ids of tasks; undefined everywhere between rounds. */
  private drops: (WorkerList | undefined)[] = [];
  private readonly dropped: TaskView[] = [];

  /** Workers that will receive a copy. */
  coming(task: TaskView): WorkerList {
    if (this.requests.size === 0) return NO_WORKERS;
    const request = this.requests.get(task.id);
    return request?.task === task ? request.workers : NO_WORKERS;
  }

  /** Workers that will lose theirs. */
  going(task: TaskView): WorkerList {
    return this.drops[task.id] ?? NO_WORKERS;
  }

  /** A copy was asked for. It has twice the time that all that this worker waits for needs. */
  addReplicate(task: TaskView, load: WorkerLoad, { nowMs, bandwidth }: TransferTime): void {
    load.queuedBytes += Math.max(0, task.nbytes);
    const expiresMs = nowMs + GRACE_MS + (2000 * load.queuedBytes) / bandwidth;
    const known = this.requests.get(task.id);
    if (known?.task === task) {
      known.workers = withWorker(known.workers, load);
      known.expiresMs = Math.max(known.expiresMs, expiresMs);
    } else {
      // The entry is of a forgotten task, whose id this task has got.
      const unclaimed = { openAtStart: 0, claimedBefore: 0, claimed: undefined };
      this.requests.set(task.id, { task, workers: load.alone, ...unclaimed, expiresMs });
    }
  }

  /**
   * A copy is suggested that was asked for in an earlier round and is still under way. Each counts once
   * a round. O(1) without candidates, else O(candidates + copies under way).
   *
   * @returns the worker that it is under way to; undefined when there is none (left)
   */
  claim(task: TaskView, candidates: readonly WorkerView[] | undefined): WorkerView | undefined {
    if (this.requests.size === 0) return undefined;
    const request = this.requests.get(task.id);
    if (request?.task !== task) return undefined;
    const { openAtStart, claimed, workers } = request;
    while (request.claimedBefore < openAtStart) {
      const worker = workers.items[request.claimedBefore] as WorkerView;
      if (claimed?.has(worker) !== true) break;
      request.claimedBefore++;
    }
    const named = candidates === undefined ? undefined : new Set(candidates);
    for (let index = request.claimedBefore; index < openAtStart; index++) {
      const worker = workers.items[index] as WorkerView;
      if (claimed?.has(worker) === true || named?.has(worker) === false) continue;
      if (candidates === undefined) request.claimedBefore = index + 1;
      else (request.claimed ??= new Set()).add(worker);
      return worker;
    }
    return undefined;
  }

  addDrop(task: TaskView, load: WorkerLoad): void {
    if (task.id >= this.drops.length) this.grow(task.id + 1);
    const known = this.drops[task.id];
    if (known === undefined) this.dropped.push(task);
    this.drops[task.id] = withWorker(known ?? NO_WORKERS, load);
  }

  /**
   * Begins a round: forgets requests that have arrived, that have lost their senders or recipients,
   * or that are late, and counts the others as memory of their recipients. O(requests under way).
   *
   * @param loads - called when requests are under way
   */
  beginRound({ running }: ClusterView, nowMs: number, loads: () => WorkerLoads): void {
    for (const [id, request] of this.requests) {
      const { task, workers, expiresMs } = request;
      const isOpen = (worker: WorkerView): boolean =>
        running.has(worker) && !worker.hasWhat.has(task);
      const open = task.state === 'memory' && nowMs < expiresMs ? workers.items.filter(isOpen) : [];
      if (open.length === 0) this.requests.delete(id);
      else if (open.length < workers.size) request.workers = new WorkerList(open);
      request.openAtStart = open.length;
      request.claimedBefore = 0;
      request.claimed = undefined;
      for (const worker of open) loads().expect(worker, task.nbytes);
    }
  }

  /** The drops of the round are done; requests stay. */
  endRound(): void {
    for (const { id } of this.dropped) this.drops[id] = undefined;
    this.dropped.length = 0;
  }

  // ---- as policies see it --------------------------------------------------------------------

  get size(): number {
    let size = this.requests.size;
    for (const task of this.dropped) if (this.coming(task).size === 0) size++;
    return size;
  }

  get(task: TaskView): PendingReplicas | undefined {
    const replicate = this.coming(task);
    const drop = this.going(task);
    return replicate.size + drop.size === 0 ? undefined : { replicate, drop };
  }

  has(task: TaskView): boolean {
    return this.coming(task).size + this.going(task).size > 0;
  }

  *keys(): MapIterator<TaskView> {
    for (const { task } of this.requests.values()) yield task;
    for (const task of this.dropped) if (this.coming(task).size === 0) yield task;
  }

  *entries(): MapIterator<[TaskView, PendingReplicas]> {
    for (const task of this.keys()) {
      yield [task, { replicate: this.coming(task), drop: this.going(task) }];
    }
  }

  *values(): MapIterator<PendingReplicas> {
    for (const [, pending] of this.entries()) yield pending;
  }

  forEach(
    callback: (
      pending: PendingReplicas,
      task: TaskView,
      book: ReadonlyMap<TaskView, PendingReplicas>,
    ) => void,
  ): void {
    for (const [task, pending] of this.entries()) callback(pending, task, this);
  }

  [Symbol.iterator](): MapIterator<[TaskView, PendingReplicas]> {
    return this.entries();
  }

  /** Without holes, or the array would become a hash table. */
  private grow(length: number): void {
    const grown = new Array<WorkerList | undefined>(Math.max(length, 2 * this.drops.length));
    grown.fill(undefined);
    for (const { id } of this.dropped) grown[id] = this.drops[id];
    this.drops = grown;
  }
}

function withWorker(list: WorkerList, load: WorkerLoad): WorkerList {
  if (list.size === 0) return load.alone;
  // Lists of one are shared.
  if (list.size === 1) return new WorkerList([...list.items, load.worker]);
  list.add(load.worker);
  return list;
}
