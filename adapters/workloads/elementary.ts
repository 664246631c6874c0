/** Graphs of one pattern each, in any size. */
import {
  checkSize,
  NOMINAL,
  range,
  type TaskCost,
  type Workload,
  WorkloadBuilder,
} from './workload.ts';

const KIB = 1024;

/** What `merge` costs in the literature; the means of its sizes are the same. */
const MERGED: TaskCost = { durationS: 0.006e-3, nbytes: 0.03 * KIB };

/**
 * `leaves` tasks and one that needs all of them: as many messages as can be, for nothing.
 * In the literature `merge-10K` to `merge-100K`, 6 µs and 0.03 KiB per task.
 */
export function merge(leaves: number): Workload {
  return mergeOf('merge', leaves, MERGED);
}

/**
 * {@link merge} with tasks that take a while, so that workers rather than the scheduler are busy.
 * In the literature `merge_slow-5K` and `merge_slow-20K`, 100 ms and 0.02 KiB per task.
 */
export function mergeSlow(leaves: number): Workload {
  return mergeOf('merge_slow', leaves, { durationS: 0.1, nbytes: 0.02 * KIB });
}

function mergeOf(name: string, leaves: number, cost: TaskCost): Workload {
  checkSize('leaves', leaves);
  const graph = new WorkloadBuilder();
  const all = range(leaves).map((index) => graph.add(`leaf-${index}`, [], cost));
  return graph.build(`${name}-${leaves}`, [graph.add('merge-0', all, cost)]);
}

/** `tasks` tasks that need nothing, all wanted. */
export function map(tasks: number): Workload {
  checkSize('tasks', tasks);
  const graph = new WorkloadBuilder();
  const all = range(tasks).map((index) => graph.add(`inc-${index}`, [], NOMINAL));
  return graph.build(`map-${tasks}`, all);
}

/**
 * A binary reduction in `levels` levels: 2^`levels` - 1 tasks, half of them leaves.
 * In the literature `tree-15`, 7 µs and 0.03 KiB per task.
 */
export function tree(levels: number): Workload {
  checkSize('levels', levels);
  const cost = { durationS: 0.007e-3, nbytes: 0.03 * KIB };
  const graph = new WorkloadBuilder();
  let level = range(2 ** (levels - 1)).map((index) => graph.add(`leaf-${index}`, [], cost));
  for (let depth = 0; level.length > 1; depth++) {
    level = range(level.length / 2).map((index) => {
      const pair = level.slice(2 * index, 2 * index + 2);
      return graph.add(`add${depth}-${index}`, pair, cost);
    });
  }
  return graph.build(`tree-${levels}`, level);
}

/** `count` chains of `length` tasks, the last ones wanted. */
export function chains(count: number, length: number): Workload {
  checkSize('count', count);
  checkSize('length', length);
  const graph = new WorkloadBuilder();
  const last = range(count).map((chain) => {
    let link = graph.add(`c${chain}-0`, [], NOMINAL);
    for (let at = 1; at < length; at++) link = graph.add(`c${chain}-${at}`, [link], NOMINAL);
    return link;
  });
  return graph.build(`chains-${count}-${length}`, last);
}

/** `partitions` inputs, each split for each of as many outputs: partitions² + 2 partitions tasks. */
export function shuffle(partitions: number): Workload {
  checkSize('partitions', partitions);
  const graph = new WorkloadBuilder();
  const all = range(partitions);
  for (const from of all) graph.add(`in-${from}`, [], NOMINAL);
  const splits = all.map((from) =>
    all.map((to) => graph.add(`split-${from}_${to}`, [from], NOMINAL)),
  );
  const outputs = all.map((to) => {
    const parts = splits.map((parts) => parts[to] as number);
    return graph.add(`out-${to}`, parts, NOMINAL);
  });
  return graph.build(`shuffle-${partitions}`, outputs);
}

/** A stencil in one dimension: each of `width` tasks of a step needs three neighbours of the step before. */
export function overlap(width: number, steps: number): Workload {
  checkSize('width', width);
  checkSize('steps', steps);
  const graph = new WorkloadBuilder();
  let before: number[] = [];
  for (let step = 0; step < steps; step++) {
    const needed = before;
    before = range(width).map((at) => {
      return graph.add(`s${step}-${at}`, needed.slice(Math.max(0, at - 1), at + 2), NOMINAL);
    });
  }
  return graph.build(`overlap-${width}-${steps}`, before);
}
