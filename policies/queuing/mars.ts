import {
  type ClusterView,
  definePolicy,
  type PrefixView,
  type Queuing,
  type TaskView,
  type WorkerView,
} from '../../core/api/index.ts';
import { MinHeap } from '../../core/util/heaps.ts';
import { divideSources } from '../worker-selection/source-ranges.ts';
import { waitsForSlot } from './is-rootish.ts';

/** Inputs with more copies than this are everywhere, and say nothing about where a task should run. */
const COMMON_COPIES = 32;

/**
 * The rules of Mars' scheduling service decide what runs next: a worker gets a task when one of its
 * threads is free, and of all tasks that are ready it is the deepest one, then the one that deeper tasks
 * need, then the one with the smaller output: the annotation `outputBytes`, else the average of what tasks of its prefix
 * gave so far, else 0. What is alike runs in the order of the graph. A task goes to the free worker that holds the most bytes of
 * its inputs, and to the least busy one of equals.
 *
 * With `sources: ranges` the sources of a graph are assigned to workers when it is submitted, neighbours to the same one, and of
 * what is alike a worker gets its own sources first. So less is moved, and more chunks are begun at a time: each worker has a part
 * of the graph of its own. No thread waits for the sake of the assignment.
 *
 * The user's priority counts before these rules, and so does the generation, which is the order of
 * submissions and clients. Tasks that are bound to workers, resources or a language, and actors, are not
 * queued: the worker selection places them as soon as they are ready. O(log queued) for each task.
 */
export const mars = definePolicy('queuing', {
  name: 'mars',
  apiVersion: 1,
  optionsSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      sources: {
        description:
          'Which worker tasks without inputs go to: turns, the least busy one; ranges, neighbours in the graph to the same one.',
        enum: ['turns', 'ranges'],
        default: 'turns',
      },
    },
  },
  create: ({ sources }) => new MarsQueuing(sources === 'ranges'),
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
  /** Ids of sources with the addresses of their workers. */
  readonly homes: readonly (readonly [task: number, worker: string])[];
  readonly sizes: readonly (readonly [prefix: string, nbytes: number])[];
}

class MarsQueuing implements Queuing {
  readonly holdsBack = true;
  /** By id of the task: links on the longest way from a task without inputs. */
  private readonly depths: number[] = [];
  /** By id of the task: the depth of its deepest dependent, or 0. */
  private readonly deepest: number[] = [];
  private readonly ready = new MinHeap<Place>(comparePlaces);
  /** By id of a source: the worker to which it was assigned when its graph was submitted. */
  private readonly homes: (WorkerView | undefined)[] = [];
  /** The part of `ready` that was assigned to a worker. */
  private readonly readyAt = new WeakMap<WorkerView, MinHeap<Place>>();
  /** Bytes by which the tasks of a prefix are ordered: the average, as it was when it last had halved or doubled. */
  private readonly sizes = new Map<string, number>();

  /** The answer of {@link nextQueued}, until the policy is asked for its worker. */
  private next: TaskView | undefined;

  constructor(private readonly hasRanges: boolean) {}

  prepare(tasks: readonly TaskView[], cluster: ClusterView): void {
    // The ids may have been used before.
    for (const { id } of tasks) {
      while (this.depths.length <= id) {
        this.depths.push(0);
        this.deepest.push(0);
        this.homes.push(undefined);
      }
      this.deepest[id] = 0;
      this.homes[id] = undefined;
    }
    if (this.hasRanges) {
      divideSources(tasks, cluster, ({ id }, worker) => {
        this.homes[id] = worker;
      });
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

  /** A task that has become ready enters the queue first, so that it is compared with all that is there. */
  selectRootish(task: TaskView, cluster: ClusterView): WorkerView | undefined {
    if (task !== this.next) {
      for (const { prefix } of [task, ...task.dependencies]) this.follow(prefix, cluster);
      this.enter(task);
      return undefined;
    }
    this.next = undefined;
    const home = this.homes[task.id];
    if (home !== undefined && isOpen(home, cluster)) return home;
    return bestHolder(task) ?? cluster.openSlots.peek();
  }

  nextQueued(worker: WorkerView, cluster: ClusterView): TaskView | undefined {
    let best = this.best(this.ready);
    if (best === undefined && cluster.queued.size > 0) {
      for (const task of cluster.queued) this.enter(task);
      best = this.best(this.ready);
    }
    const own = best && this.best(this.readyAt.get(worker));
    const isOwn = own !== undefined && best !== undefined && compareRules(own, best) === 0;
    this.next = (isOwn ? own : best)?.task;
    return this.next;
  }

  priorityChanged(task: TaskView): void {
    this.enter(task);
  }

  /** Depths by id; what is ready follows from the queue. */
  snapshot({ tasks }: ClusterView): MarsMemory {
    const homes = [...tasks.values()].flatMap(({ id }) => {
      const worker = this.homes[id];
      return worker === undefined ? [] : [[id, worker.address] as const];
    });
    const { depths, deepest, sizes } = this;
    return { depths, deepest, next: this.next?.id ?? -1, homes, sizes: [...sizes] };
  }

  restore(memory: unknown, { queued, workers }: ClusterView): void {
    const { depths, deepest, next, homes, sizes } = memory as MarsMemory;
    for (const depth of depths) {
      this.depths.push(depth);
      this.homes.push(undefined);
    }
    for (const [id, address] of homes) this.homes[id] = workers.get(address);
    for (const [prefix, size] of sizes) this.sizes.set(prefix, size);
    for (const depth of deepest) this.deepest.push(depth);
    for (const task of queued) {
      this.enter(task);
      if (task.id === next) this.next = task;
    }
  }

  /** The first that is still queued and whose place is up to date. */
  private best(places: MinHeap<Place> | undefined): Place | undefined {
    for (let place = places?.peek(); place !== undefined; place = places?.peek()) {
      const { task } = place;
      if (waitsForSlot(task) && comparePlaces(place, this.placeOf(task)) === 0) return place;
      places?.pop();
    }
    return undefined;
  }

  private enter(task: TaskView): void {
    const place = this.placeOf(task);
    this.ready.push(place);
    const home = this.homes[task.id];
    if (home === undefined) return;
    let places = this.readyAt.get(home);
    if (places === undefined) this.readyAt.set(home, (places = new MinHeap(comparePlaces)));
    places.push(place);
  }

  /** Orders the tasks of a prefix by its average size, if that is another one. O(queued) then, else O(1). */
  private follow({ name, known }: PrefixView, cluster: ClusterView): void {
    if (known === undefined) return;
    const used = this.sizes.get(name) ?? 0;
    const average = known.nbytes;
    if (average === used || (average < 2 * used && used < 2 * average)) return;
    this.sizes.set(name, average);
    for (const task of cluster.queued) if (task.prefix.name === name) this.enter(task);
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
    const size = annotations?.['outputBytes'] ?? this.sizes.get(task.prefix.name);
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
  return compareRules(a, b) || a.rank - b.rank || a.task.id - b.task.id;
}

function compareRules(a: Place, b: Place): number {
  return (
    a.negatedUserPriority - b.negatedUserPriority ||
    a.generation - b.generation ||
    b.depth - a.depth ||
    b.deepest - a.deepest ||
    a.outputBytes - b.outputBytes
  );
}

function isOpen(worker: WorkerView, { workers }: ClusterView): boolean {
  const isThere = workers.get(worker.address) === worker;
  return isThere && worker.status === 'running' && worker.openSlots > 0;
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
