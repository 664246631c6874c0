import type { ClusterView, MemoryMeasure, TaskView, WorkerView } from '../../core/api/index.ts';
import { WorkerList } from './worker-list.ts';

/** A worker within one round. */
export interface WorkerLoad {
  readonly worker: WorkerView;
  /** The set that has this worker alone; shared by all that need one. */
  readonly alone: WorkerList;
  /** Bytes, with the effects of all that is pending. */
  memory: number;
  /** Bytes that were asked for and have not arrived. */
  queuedBytes: number;
  /** Position in the heap, or -1. */
  index: number;
  /** Keys that it will receive, and lose. */
  acquire: string[] | undefined;
  remove: string[] | undefined;
}

/** With more workers refused than this, all are looked at instead of the heap from its top. */
const REFUSED_MAX = 16;

/**
 * The memory of all workers within one round, and the running ones as a heap with the emptiest at the
 * top, so that to choose a recipient does not cost O(workers) for every result.
 */
export class WorkerLoads {
  private readonly byRank: (WorkerLoad | undefined)[] = [];
  /** Made when somebody first asks for the emptiest. */
  private heap: WorkerLoad[] | undefined;
  private readonly frontier: number[] = [];

  /** O(workers). */
  constructor(
    private readonly cluster: ClusterView,
    measure: MemoryMeasure,
  ) {
    for (const worker of cluster.workers.values()) {
      this.byRank[worker.rank] = {
        worker,
        alone: new WorkerList([worker]),
        memory: worker.memory[measure],
        queuedBytes: 0,
        index: -1,
        acquire: undefined,
        remove: undefined,
      };
    }
  }

  /** Undefined for what is no registered worker. O(1). */
  of(worker: WorkerView): WorkerLoad | undefined {
    const load = this.byRank[worker.rank];
    return load?.worker === worker ? load : undefined;
  }

  /** By rank. */
  *all(): Generator<WorkerLoad> {
    for (const load of this.byRank) if (load !== undefined) yield load;
  }

  /** So many bytes are on their way to the worker. Before anybody is chosen. */
  expect(worker: WorkerView, nbytes: number): void {
    const load = this.of(worker);
    if (load === undefined || nbytes < 0) return;
    load.memory += nbytes;
    load.queuedBytes += nbytes;
  }

  /** O(log workers). */
  setMemory(load: WorkerLoad, memory: number): void {
    load.memory = memory;
    if (load.index < 0 || this.heap === undefined) return;
    this.siftUp(this.heap, load);
    this.siftDown(this.heap, load);
  }

  /**
   * The running worker with the least memory that neither has the result nor gets it; of several the
   * one with the lowest rank. O(1) when the first will do, O(workers) at most.
   */
  emptiest(task: TaskView, excluded: WorkerList): WorkerLoad | undefined {
    const heap = (this.heap ??= this.makeHeap());
    const top = heap[0];
    if (top === undefined || isFree(top.worker, task, excluded)) return top;
    const { frontier } = this;
    frontier.length = 0;
    frontier.push(0);
    while (frontier.length > 0) {
      if (frontier.length > REFUSED_MAX) return emptiestOf(heap, task, excluded);
      const at = this.takeLeast(heap);
      const load = heap[at] as WorkerLoad;
      if (isFree(load.worker, task, excluded)) return load;
      if (2 * at + 1 < heap.length) frontier.push(2 * at + 1);
      if (2 * at + 2 < heap.length) frontier.push(2 * at + 2);
    }
    return undefined;
  }

  /** Takes the position of the emptiest of those that come next. */
  private takeLeast(heap: readonly WorkerLoad[]): number {
    const { frontier } = this;
    let least = 0;
    for (let n = 1; n < frontier.length; n++) {
      if (
        isEmptier(
          heap[frontier[n] as number] as WorkerLoad,
          heap[frontier[least] as number] as WorkerLoad,
        )
      ) {
        least = n;
      }
    }
    const at = frontier[least] as number;
    const last = frontier.pop() as number;
    if (least < frontier.length) frontier[least] = last;
    return at;
  }

  private makeHeap(): WorkerLoad[] {
    const heap: WorkerLoad[] = [];
    for (const worker of this.cluster.running) {
      const load = this.of(worker);
      if (load !== undefined) heap.push(load);
    }
    // A sorted array is a heap.
    heap.sort((a, b) => a.memory - b.memory || a.worker.rank - b.worker.rank);
    heap.forEach((load, index) => (load.index = index));
    return heap;
  }

  private siftUp(heap: WorkerLoad[], load: WorkerLoad): void {
    let at = load.index;
    while (at > 0) {
      const up = (at - 1) >> 1;
      const parent = heap[up] as WorkerLoad;
      if (!isEmptier(load, parent)) break;
      place(heap, parent, at);
      at = up;
    }
    place(heap, load, at);
  }

  private siftDown(heap: WorkerLoad[], load: WorkerLoad): void {
    let at = load.index;
    for (;;) {
      let down = 2 * at + 1;
      if (down >= heap.length) break;
      const right = heap[down + 1];
      if (right !== undefined && isEmptier(right, heap[down] as WorkerLoad)) down++;
      const child = heap[down] as WorkerLoad;
      if (!isEmptier(child, load)) break;
      place(heap, child, at);
      at = down;
    }
    place(heap, load, at);
  }
}

function place(heap: WorkerLoad[], load: WorkerLoad, index: number): void {
  heap[index] = load;
  load.index = index;
}

function emptiestOf(
  loads: readonly WorkerLoad[],
  task: TaskView,
  excluded: WorkerList,
): WorkerLoad | undefined {
  let best: WorkerLoad | undefined;
  for (const load of loads) {
    if (best !== undefined && !isEmptier(load, best)) continue;
    if (isFree(load.worker, task, excluded)) best = load;
  }
  return best;
}

/** Whether it could receive the result. */
export function isFree(worker: WorkerView, task: TaskView, excluded: WorkerList): boolean {
  return !worker.hasWhat.has(task) && !(excluded.size > 0 && excluded.has(worker));
}

/** Whether `a` is to receive a copy rather than `b`: less memory, then the lower rank. */
export function isEmptier(a: WorkerLoad, b: WorkerLoad): boolean {
  return a.memory !== b.memory ? a.memory < b.memory : a.worker.rank < b.worker.rank;
}
