import { eachInRow, eachLink, type GraphIndex, rowLength } from './graph-index.ts';
import { NumberHeap } from './number-heap.ts';

/**
 * Improves an order: at each step the task is taken that frees the most results in comparison with what
 * it adds; among equals the one that the order has first. Tasks that only add are taken as the order
 * says, so a good order stays what it is and frees earlier. O(links log links).
 * @param base - ranks of the tasks, 0 to their number - 1
 */
export function freeingFirst(graph: GraphIndex, base: Int32Array): Int32Array {
  const { taskCount, dependencies, dependents } = graph;
  const costs = new CostQueue(base);
  const missing = new Int32Array(taskCount);
  const users = new Int32Array(taskCount);
  for (let task = 0; task < taskCount; task++) {
    users[task] = rowLength(dependents, task);
    if ((users[task] as number) > 0) costs.change(task, 1);
  }
  eachLink(graph, (task, dependency) => {
    missing[task] = (missing[task] as number) + 1;
    if (users[dependency] === 1) costs.change(task, -1);
  });
  for (let task = 0; task < taskCount; task++) if (missing[task] === 0) costs.offer(task);
  const ranks = new Int32Array(taskCount);
  for (let rank = 0; rank < taskCount; rank++) {
    const task = costs.take();
    ranks[task] = rank;
    eachInRow(dependencies, task, (dependency) => {
      if (dependency >= taskCount) return;
      const left = (users[dependency] as number) - 1;
      users[dependency] = left;
      if (left !== 1) return;
      // Its last user frees it.
      eachInRow(dependents, dependency, (user) => costs.change(user, -1));
    });
    eachInRow(dependents, task, (dependent) => {
      const left = (missing[dependent] as number) - 1;
      missing[dependent] = left;
      if (left === 0) costs.offer(dependent);
    });
  }
  return ranks;
}

/**
 * The same from the end: the task comes last that needs the fewest results which would not be kept
 * anyway; among equals the one that the order has last. So what is needed late is computed late.
 */
export function freeingFirstFromEnd(graph: GraphIndex, base: Int32Array): Int32Array {
  const { taskCount, dependencies, dependents } = graph;
  const costs = new CostQueue(base.map((rank) => taskCount - 1 - rank));
  const missing = new Int32Array(taskCount);
  const isKept = new Uint8Array(taskCount);
  for (let task = 0; task < taskCount; task++) {
    missing[task] = rowLength(dependents, task);
    if ((missing[task] as number) > 0) costs.change(task, -1);
  }
  eachLink(graph, (task) => costs.change(task, 1));
  for (let task = 0; task < taskCount; task++) if (missing[task] === 0) costs.offer(task);
  const ranks = new Int32Array(taskCount);
  for (let rank = taskCount - 1; rank >= 0; rank--) {
    const task = costs.take();
    ranks[task] = rank;
    eachInRow(dependencies, task, (dependency) => {
      if (dependency >= taskCount) return;
      if (isKept[dependency] === 0) {
        isKept[dependency] = 1;
        eachInRow(dependents, dependency, (user) => costs.change(user, -1));
      }
      const left = (missing[dependency] as number) - 1;
      missing[dependency] = left;
      if (left === 0) costs.offer(dependency);
    });
  }
  return ranks;
}

/** Tasks by cost, then by rank. Costs of tasks that are offered may fall, and never rise. */
class CostQueue {
  private readonly costs: Int32Array;
  /** 1: offered, 2: taken. */
  private readonly states: Uint8Array;
  private readonly taskByRank: Int32Array;
  /** Cost * number of tasks + rank; some are out of date. */
  private readonly heap = new NumberHeap();

  constructor(private readonly ranks: Int32Array) {
    this.costs = new Int32Array(ranks.length);
    this.states = new Uint8Array(ranks.length);
    this.taskByRank = new Int32Array(ranks.length);
    for (let task = 0; task < ranks.length; task++) this.taskByRank[ranks[task] as number] = task;
  }

  change(task: number, by: number): void {
    this.costs[task] = (this.costs[task] as number) + by;
    if (this.states[task] === 1) this.heap.push(this.entryOf(task));
  }

  offer(task: number): void {
    this.states[task] = 1;
    this.heap.push(this.entryOf(task));
  }

  /** The offered task with the least cost. There must be one. */
  take(): number {
    for (;;) {
      const entry = this.heap.pop();
      const count = this.ranks.length;
      const rank = entry - Math.floor(entry / count) * count;
      const task = this.taskByRank[rank] as number;
      if (this.states[task] !== 1) continue;
      this.states[task] = 2;
      return task;
    }
  }

  private entryOf(task: number): number {
    return (this.costs[task] as number) * this.ranks.length + (this.ranks[task] as number);
  }
}
