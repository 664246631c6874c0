import { IndexedHeap } from '../util/collections/indexed-heap.ts';
import type { WorkerTask } from './worker-task.ts';

/**
 * Tasks that are ready but for their resources. Those that need a thread as well, and those that need a share of an
 * event loop, do not hold each other back.
 */
export class ConstrainedTasks {
  private readonly ofThreads: IndexedHeap<WorkerTask>;
  private readonly ofLoops: IndexedHeap<WorkerTask>;

  constructor(compare: (a: WorkerTask, b: WorkerTask) => number) {
    this.ofThreads = new IndexedHeap(compare);
    this.ofLoops = new IndexedHeap(compare);
  }

  has(task: WorkerTask): boolean {
    return this.ofThreads.has(task) || this.ofLoops.has(task);
  }

  /** The best task that needs a thread. */
  peek(): WorkerTask | undefined {
    return this.ofThreads.peek();
  }

  /** The best task that needs no thread. */
  peekConcurrent(): WorkerTask | undefined {
    return this.ofLoops.peek();
  }

  add(task: WorkerTask): void {
    this.heapOf(task).add(task);
  }

  delete(task: WorkerTask): void {
    if (!this.ofThreads.delete(task)) this.ofLoops.delete(task);
  }

  /** The priority of a task in it has changed. */
  update(task: WorkerTask): void {
    this.heapOf(task).update(task);
  }

  get heaps(): readonly IndexedHeap<WorkerTask>[] {
    return [this.ofThreads, this.ofLoops];
  }

  private heapOf(task: WorkerTask): IndexedHeap<WorkerTask> {
    return task.isConcurrent ? this.ofLoops : this.ofThreads;
  }
}
