import {
  type ClusterView,
  definePolicy,
  type Queuing,
  type TaskView,
  type WorkerView,
} from '../../core/api/index.ts';
import { MinHeap } from '../../core/util/collections/min-heap.ts';
import { waitsForSlot } from './waits-for-slot.ts';

/** Inputs with more copies than this are everywhere, and say nothing about where a task should run. */
const COMMON_COPIES = 32;

/**
 * The rules of Mars' scheduling service decide what runs next: a worker gets a task when one of its
 * threads is free, and of all tasks that are ready it is the deepest one, then the one that deeper tasks
 * need, then the one with the smaller output (the annotation `outputBytes`; 0 without one). What is alike
 * runs in the order of the graph. The task goes to the free worker that holds the most bytes of its
 * inputs, and to the least busy one of equals.
 *
 * The user's priority counts before these rules, and so does the generation, which is the order of
 * submissions and clients. Tasks that are bound to workers, resources or a language, and actors, are not
 * queued: the worker selection places them as soon as they are ready. O(log queued) for each task.
 */
export const mars = definePolicy('queuing', {
  name: 'mars',
  optionsSchema: { type: 'object', additionalProperties: false },
  create: () => new MarsQueuing(),
});

/** A place in the order of what is ready. Out of date when the rank of its task has changed since. */
interface Place {
  readonly task: TaskView;
  readonly negatedUserPriority: number;
  readonly generation: number;
  readonly depth: number;
  readonly deepest: number;
  readonly outputBytes: number;
  readonly rank: number;
}

interface MarsMemory {
  readonly depths: readonly number[];
  readonly deepest: readonly number[];
  /** Id of the task that was answered last, or -1. */
  readonly next: number;
}

class MarsQueuing implements Queuing {
  readonly holdsBack = true;
  /** By id of the task: links on the longest way from a task without inputs. */
  private readonly depths: number[] = [];
  /** By id of the task: the depth of its deepest dependent, or 0. */
  private readonly deepest: number[] = [];
  private readonly ready = new MinHeap<Place>(comparePlaces);
  /** What {@link nextQueued} has answered, until it is asked where that goes. */
  private next: TaskView | undefined;

  prepare(tasks: readonly TaskView[]): void {
    // The ids may have been used before.
    for (const { id } of tasks) {
      while (this.depths.length <= id) {
        this.depths.push(0);
        this.deepest.push(0);
      }
      this.deepest[id] = 0;
    }
    for (const task of tasks) {
      let depth = 0;
      for (const input of task.dependencies) {
        if (input.runSpec !== undefined) depth = Math.max(depth, this.depthOf(input) + 1);
      }
      this.depths[task.id] = depth;
      for (const input of task.dependencies) this.raise(input, depth);
    }
    // It has come into place after other policies had queued these.
    for (const task of tasks) if (waitsForSlot(task)) this.enter(task);
  }

  isRootish(task: TaskView): boolean {
    return task.isQueueable;
  }

  slotLimit(worker: WorkerView): number {
    return Math.max(1, worker.threadCount);
  }

  /** What has become ready enters the queue first, so that it is compared with all that is there. */
  selectRootish(task: TaskView, cluster: ClusterView): WorkerView | undefined {
    if (task !== this.next) {
      this.enter(task);
      return undefined;
    }
    this.next = undefined;
    return bestHolder(task) ?? cluster.openSlots.peek();
  }

  nextQueued(_worker: WorkerView, cluster: ClusterView): TaskView | undefined {
    this.next = this.best();
    if (this.next === undefined && cluster.queued.size > 0) {
      for (const task of cluster.queued) this.enter(task);
      this.next = this.best();
    }
    return this.next;
  }

  priorityChanged(task: TaskView): void {
    this.enter(task);
  }

  /** Depths by id; what is ready follows from the queue. */
  snapshot(): MarsMemory {
    return { depths: this.depths, deepest: this.deepest, next: this.next?.id ?? -1 };
  }

  restore(memory: unknown, { queued }: ClusterView): void {
    const { depths, deepest, next } = memory as MarsMemory;
    for (const depth of depths) this.depths.push(depth);
    for (const depth of deepest) this.deepest.push(depth);
    for (const task of queued) {
      this.enter(task);
      if (task.id === next) this.next = task;
    }
  }

  /** The first that is still queued and whose place is up to date. */
  private best(): TaskView | undefined {
    for (let place = this.ready.peek(); place !== undefined; place = this.ready.peek()) {
      const { task } = place;
      if (waitsForSlot(task) && comparePlaces(place, this.placeOf(task)) === 0) return task;
      this.ready.pop();
    }
    return undefined;
  }

  private enter(task: TaskView): void {
    this.ready.push(this.placeOf(task));
  }

  /** A deeper task than before needs it. */
  private raise(input: TaskView, depth: number): void {
    if (depth <= (this.deepest[input.id] ?? 0)) return;
    this.deepest[input.id] = depth;
    if (waitsForSlot(input)) this.enter(input);
  }

  private depthOf({ id }: TaskView): number {
    return this.depths[id] ?? 0;
  }

  private placeOf(task: TaskView): Place {
    const { id, negatedUserPriority, generation, rank, annotations } = task;
    const size = annotations?.['outputBytes'];
    return {
      task,
      negatedUserPriority,
      generation,
      depth: this.depthOf(task),
      deepest: this.deepest[id] ?? 0,
      outputBytes: typeof size === 'number' && size >= 0 ? size : 0,
      rank,
    };
  }
}

function comparePlaces(a: Place, b: Place): number {
  return (
    a.negatedUserPriority - b.negatedUserPriority ||
    a.generation - b.generation ||
    b.depth - a.depth ||
    b.deepest - a.deepest ||
    a.outputBytes - b.outputBytes ||
    a.rank - b.rank ||
    a.task.id - b.task.id
  );
}

/** The worker with an open slot that holds the most bytes of the inputs; undefined: none holds any. */
function bestHolder({ dependencies }: TaskView): WorkerView | undefined {
  const held = new Map<WorkerView, number>();
  for (const input of dependencies) {
    const { items } = input.whoHas;
    if (items.length > COMMON_COPIES) continue;
    for (const worker of items) {
      if (worker.status !== 'running' || !(worker.openSlots > 0)) continue;
      held.set(worker, (held.get(worker) ?? 0) + Math.max(0, input.nbytes));
    }
  }
  let best: WorkerView | undefined;
  let bestBytes = -1;
  for (const [worker, nbytes] of held) {
    const isBetter = nbytes > bestBytes || (nbytes === bestBytes && isLessBusy(worker, best));
    if (!isBetter) continue;
    best = worker;
    bestBytes = nbytes;
  }
  return best;
}

function isLessBusy(worker: WorkerView, other: WorkerView | undefined): boolean {
  if (other === undefined) return true;
  const difference = other.openSlots - worker.openSlots;
  return difference < 0 || (difference === 0 && worker.rank < other.rank);
}
