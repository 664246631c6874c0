import type { ClusterView, PendingReplicas, TaskView, WorkerView } from '../../core/api/index.ts';
import { NOBODY, WorkerList } from './worker-list.ts';
import type { WorkerLoad, WorkerLoads } from './worker-loads.ts';

/** Time that every copy has to arrive, besides twice that of the transfer. */
const GRACE_MS = 30_000;

/** What is in store for the copies of one task. */
export class TaskMoves implements PendingReplicas {
  /** Will receive a copy. */
  replicate = NOBODY;
  /** Will lose theirs. */
  drop = NOBODY;
  /** When the copies that were asked for count as lost on their way. */
  expiresMs = 0;

  constructor(readonly task: TaskView) {}
}

/** What the time of a transfer is reckoned from. */
export interface TransferTime {
  readonly nowMs: number;
  /** Bytes per second. */
  readonly bandwidth: number;
}

/**
 * Who will receive and who will lose copies, by task: within a round all that was accepted, between
 * rounds the copies that were asked for and have not arrived. So a request that takes longer than the
 * interval is neither repeated nor given to another worker as well. The managers of a scheduler share
 * one; only one of them runs at a time.
 *
 * Kept by the ids of tasks: to hash a task itself would make it larger, for ever.
 */
export class ReplicaBook implements ReadonlyMap<TaskView, PendingReplicas> {
  private readonly byId = new Map<number, TaskMoves>();
  private moves: TaskMoves[] = [];

  get size(): number {
    return this.moves.length;
  }

  get(task: TaskView): TaskMoves | undefined {
    const moves = this.byId.size === 0 ? undefined : this.byId.get(task.id);
    return moves?.task === task ? moves : undefined;
  }

  has(task: TaskView): boolean {
    return this.get(task) !== undefined;
  }

  /** A copy was asked for. It has twice the time that all that this worker waits for needs. */
  addReplicate(task: TaskView, load: WorkerLoad, { nowMs, bandwidth }: TransferTime): void {
    const moves = this.movesOf(task);
    moves.replicate = withWorker(moves.replicate, load);
    load.queuedBytes += Math.max(0, task.nbytes);
    const expiresMs = nowMs + GRACE_MS + (2000 * load.queuedBytes) / bandwidth;
    moves.expiresMs = Math.max(moves.expiresMs, expiresMs);
  }

  addDrop(task: TaskView, load: WorkerLoad): void {
    const moves = this.movesOf(task);
    moves.drop = withWorker(moves.drop, load);
  }

  /**
   * A round begins: forgets what has arrived, what nobody can send or receive any more, and what is
   * late; counts the rest as memory of its recipients. O(requests under way).
   *
   * @param loads - made when something is under way
   */
  beginRound({ running }: ClusterView, nowMs: number, loads: () => WorkerLoads): void {
    if (this.moves.length === 0) return;
    const loadsOfRound = loads();
    this.keep((moves) => {
      const { task, replicate } = moves;
      if (task.state !== 'memory' || nowMs >= moves.expiresMs) return false;
      const isOpen = (worker: WorkerView): boolean =>
        running.has(worker) && !worker.hasWhat.has(task);
      if (!replicate.items.every(isOpen)) {
        moves.replicate = new WorkerList(replicate.items.filter(isOpen));
      }
      for (const worker of moves.replicate.items) loadsOfRound.expect(worker, task.nbytes);
      return moves.replicate.size > 0;
    });
  }

  /** The drops of the round are done; requests stay. */
  endRound(): void {
    this.keep((moves) => {
      moves.drop = NOBODY;
      return moves.replicate.size > 0;
    });
  }

  *entries(): MapIterator<[TaskView, TaskMoves]> {
    for (const moves of this.moves) yield [moves.task, moves];
  }

  *keys(): MapIterator<TaskView> {
    for (const { task } of this.moves) yield task;
  }

  *values(): MapIterator<TaskMoves> {
    yield* this.moves;
  }

  forEach(
    callback: (
      moves: PendingReplicas,
      task: TaskView,
      book: ReadonlyMap<TaskView, PendingReplicas>,
    ) => void,
  ): void {
    for (const moves of this.moves) callback(moves, moves.task, this);
  }

  [Symbol.iterator](): MapIterator<[TaskView, TaskMoves]> {
    return this.entries();
  }

  private movesOf(task: TaskView): TaskMoves {
    const known = this.byId.get(task.id);
    if (known?.task === task) return known;
    // Of a task that was forgotten, whose id this one has got.
    if (known !== undefined) this.moves.splice(this.moves.indexOf(known), 1);
    const moves = new TaskMoves(task);
    this.byId.set(task.id, moves);
    this.moves.push(moves);
    return moves;
  }

  private keep(isKept: (moves: TaskMoves) => boolean): void {
    let count = 0;
    let dropped = 0;
    for (const moves of this.moves) {
      if (isKept(moves)) this.moves[count++] = moves;
      else dropped++;
    }
    if (dropped === 0) return;
    this.moves.length = count;
    this.byId.clear();
    for (const moves of this.moves) this.byId.set(moves.task.id, moves);
  }
}

function withWorker(list: WorkerList, load: WorkerLoad): WorkerList {
  if (list.size === 0) return load.alone;
  // Lists of one are shared.
  if (list.size === 1) return new WorkerList([...list.items, load.worker]);
  list.add(load.worker);
  return list;
}
