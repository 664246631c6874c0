import type { ClusterView, MemoryMeasure, TaskView, WorkerView } from '../../core/api/index.ts';
import { WorkerList } from './worker-list.ts';

/** A worker within one round. */
export class WorkerLoad {
  /** Bytes, with the effects of all that is pending. */
  memory = 0;
  /** Bytes that were asked for and have not arrived. */
  queuedBytes = 0;
  /** Position in the heap, or -1. */
  index = -1;
  /** Keys that it will receive, and lose. */
  acquire: string[] | undefined = undefined;
  remove: string[] | undefined = undefined;
  private only: WorkerList | undefined = undefined;

  constructor(readonly worker: WorkerView) {}

  /** @param memory - in bytes */
  reset(memory: number): void {
    this.memory = memory;
    this.queuedBytes = 0;
    this.index = -1;
    this.acquire = undefined;
    this.remove = undefined;
  }

  /** The set that has this worker alone; shared by all that need one. */
  get alone(): WorkerList {
    return (this.only ??= new WorkerList([this.worker]));
  }
}

/** One function for each measure: a field that is named by a variable is slow to read. */
const MEMORY_READERS: Readonly<Record<MemoryMeasure, (worker: WorkerView) => number>> = {
  process: ({ memory }) => memory.process,
  managed: ({ memory }) => memory.managed,
  managedTotal: ({ memory }) => memory.managedTotal,
  spilled: ({ memory }) => memory.spilled,
  unmanaged: ({ memory }) => memory.unmanaged,
  unmanagedOld: ({ memory }) => memory.unmanagedOld,
  unmanagedRecent: ({ memory }) => memory.unmanagedRecent,
  optimistic: ({ memory }) => memory.optimistic,
};

/**
 * With more refused workers than this, all workers are examined instead of the heap from its top.
 */
const REFUSED_MAX = 16;

/**
 * The memory of all workers within one round, and the running ones as a heap with the emptiest at the
 * top, so that to choose a recipient does not cost O(workers) for every result.
 */
export class WorkerLoads {
  private readonly byRank: WorkerLoad[] = [];
  /** Workers that keys were given to or taken from in this round. */
  private readonly touched: WorkerLoad[] = [];
  /** Filled when the emptiest worker is first needed. */
  private readonly heap: WorkerLoad[] = [];
  private isHeapMade = false;
  private readonly frontier: number[] = [];
  private readonly memoryOf: (worker: WorkerView) => number;

  /** Empty until the first {@link refresh}. */
  constructor(
    private readonly cluster: ClusterView,
    readonly measure: MemoryMeasure,
  ) {
    this.memoryOf = MEMORY_READERS[measure];
  }

  /** A round begins: nothing is pending, and memory is as it is. O(workers). */
  refresh(): this {
    const { byRank, memoryOf } = this;
    const { workers } = this.cluster;
    this.touched.length = 0;
    this.heap.length = 0;
    this.isHeapMade = false;
    // Ranks are dense, so what was there before is replaced or cut off.
    byRank.length = Math.min(byRank.length, workers.size);
    const byArrival = [...workers.values()];
    if (byRank.length < workers.size) byArrival.sort((a, b) => a.rank - b.rank);
    for (const worker of byArrival) {
      let load = byRank[worker.rank];
      if (load?.worker !== worker) byRank[worker.rank] = load = new WorkerLoad(worker);
      load.reset(memoryOf(worker));
    }
    return this;
  }

  /** Undefined for what is no registered worker. O(1). */
  of(worker: WorkerView): WorkerLoad | undefined {
    const load = this.byRank[worker.rank];
    return load?.worker === worker ? load : undefined;
  }

  /** By rank. */
  get all(): readonly WorkerLoad[] {
    return this.byRank;
  }

  /** Those with something to receive or to lose, by rank. */
  takeTouched(): readonly WorkerLoad[] {
    return this.touched.sort((a, b) => a.worker.rank - b.worker.rank);
  }

  acquire(load: WorkerLoad, key: string): void {
    this.touch(load);
    (load.acquire ??= []).push(key);
  }

  remove(load: WorkerLoad, key: string): void {
    this.touch(load);
    (load.remove ??= []).push(key);
  }

  private touch(load: WorkerLoad): void {
    if (load.acquire === undefined && load.remove === undefined) this.touched.push(load);
  }

  /**
   * Adds the bytes that are on their way to a worker. To be called before recipients are chosen.
   */
  expect(worker: WorkerView, nbytes: number): void {
    const load = this.of(worker);
    if (load === undefined || nbytes < 0) return;
    load.memory += nbytes;
    load.queuedBytes += nbytes;
  }

  /** O(log workers). */
  setMemory(load: WorkerLoad, memory: number): void {
    load.memory = memory;
    if (load.index < 0) return;
    this.siftUp(this.heap, load);
    this.siftDown(this.heap, load);
  }

  /**
   * The running worker with the least memory that neither has the result nor gets it; of several the
   * one with the lowest rank. O(1) when the first will do, O(workers) at most.
   */
  emptiest(task: TaskView, excluded: WorkerList): WorkerLoad | undefined {
    const heap = this.isHeapMade ? this.heap : this.makeHeap();
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
    const { heap } = this;
    this.isHeapMade = true;
    for (const worker of this.cluster.running) {
      const load = this.of(worker);
      if (load !== undefined) heap.push(load);
    }
    heap.forEach((load, index) => (load.index = index));
    for (let at = (heap.length >> 1) - 1; at >= 0; at--) {
      this.siftDown(heap, heap[at] as WorkerLoad);
    }
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
  if (worker.hasWhat.has(task) || (excluded.size > 0 && excluded.has(worker))) return false;
  // What passes into another language is a translation, which is no copy.
  return (task.whoHas.items[0]?.language ?? worker.language) === worker.language;
}

/** Whether `a` is to receive a copy rather than `b`: less memory, then the lower rank. */
export function isEmptier(a: WorkerLoad, b: WorkerLoad): boolean {
  return a.memory !== b.memory ? a.memory < b.memory : a.worker.rank < b.worker.rank;
}
