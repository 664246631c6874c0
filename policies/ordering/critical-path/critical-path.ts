import { type Steps, withoutPauses } from '../../../core/util/steps.ts';
import { connectedEnds } from './connected-ends.ts';
import { rowLength, topologicalOrder } from './graph-index.ts';
import { type Analysis, Numbering } from './numbering.ts';
import { RunnablePaths } from './runnable-paths.ts';
import { maxDependentsOfRoots, SortedRows, SortKeys } from './sort-keys.ts';
import { totalDependencies } from './total-dependencies.ts';
import type { GraphWithoutData } from './without-data.ts';

/** Roots and leaves differ in number by less than this part of the roots: the graph keeps its width. */
const SAME_WIDTH = 0.8;

/** Nodes that get their number between two pauses. */
const STEP = 2000;

/**
 * Numbers the nodes of a graph from 0 as `dask.order` does in Dask today: picks a leaf, walks the
 * most valuable way back from it, and numbers what is on that way and what becomes free to compute.
 * Where Dask iterates over a set, nodes are taken by ascending sort key.
 * @throws YardmasterError `ERR_GRAPH_CYCLE`
 */
export function criticalPathOrder(reduced: GraphWithoutData): Int32Array {
  return withoutPauses(criticalPathInSteps(reduced, Infinity));
}

/** The same with pauses. */
export function* criticalPathInSteps(reduced: GraphWithoutData, step = STEP): Steps<Int32Array> {
  const analysis = yield* analyse(reduced);
  const numbering = new Numbering(analysis);
  const paths = new RunnablePaths(analysis, numbering);
  const walk = new CriticalWalk(analysis, numbering, paths);
  const { leafNodes } = analysis;
  const longestFirst = prefersLongestPath(analysis);
  // Every turn numbers its target, or passes over a leaf that has its number already.
  let pauseAt = step;
  for (let passed = 0; passed < leafNodes.length;) {
    let target: number;
    if (numbering.reachable > 0 && !numbering.openLeaves.isEmpty) {
      target = leafNodes[numbering.openLeaves.first()] as number;
    } else {
      const position = longestFirst ? leafNodes.length - 1 - passed : passed;
      passed++;
      target = leafNodes[position] as number;
      if (numbering.has(target)) continue;
    }
    walk.begin(target);
    while (!walk.goOn(pauseAt)) {
      yield;
      pauseAt = numbering.count + step;
    }
  }
  return finish(reduced, numbering);
}

function* analyse({ graph, isOut, dataOf }: GraphWithoutData): Steps<Analysis> {
  const { nodeCount, dependencies, dependents } = graph;
  const sequence = topologicalOrder(graph);
  const totals = totalDependencies(graph, sequence);
  yield;
  const roots = connectedEnds(dependencies, sequence);
  yield;
  const maxDependents = maxDependentsOfRoots(graph, sequence);
  const keys = new SortKeys({ graph, totals, roots, maxDependents });
  const leaves = connectedEnds(dependents, sequence.reverse());
  yield;
  const leafNodes = sequence.filter(
    (node) => rowLength(dependents, node) === 0 && isOut?.[node] !== 1,
  );
  keys.sort(leafNodes, 0, leafNodes.length);
  yield;
  return {
    graph,
    keys,
    dependencies: new SortedRows(dependencies, keys, nodeCount),
    dependents: new SortedRows(dependents, keys, nodeCount),
    roots,
    leaves,
    leafNodes,
    isOut,
    dataOf,
  };
}

/** Whether the leaf with the most below it comes first; not in graphs that keep their width unevenly. */
function prefersLongestPath({ graph, leaves, leafNodes, isOut }: Analysis): boolean {
  let rootCount = 0;
  let leavesOfFirst = -1;
  let isEven = true;
  for (let node = 0; node < graph.nodeCount; node++) {
    if (rowLength(graph.dependencies, node) > 0 || isOut?.[node] === 1) continue;
    rootCount++;
    const count = leaves.sizes[node] as number;
    if (leavesOfFirst < 0) leavesOfFirst = count;
    else if (count !== leavesOfFirst) isEven = false;
  }
  const keepsWidth = Math.abs(rootCount - leafNodes.length) / rootCount < SAME_WIDTH;
  return isEven || !keepsWidth;
}

/** Walks back from a target to what can be computed, and forth again. */
class CriticalWalk {
  /** What is to be numbered, the next last. A node may be on it more than once. */
  private readonly path: number[] = [];
  private hasBranched = false;

  constructor(
    private readonly analysis: Analysis,
    private readonly numbering: Numbering,
    private readonly paths: RunnablePaths,
  ) {}

  begin(target: number): void {
    this.build(target);
    this.hasBranched = false;
  }

  /**
   * Numbers nodes until `countMax` of them have a number. Returns whether it stopped because the
   * target was reached.
   */
  goOn(countMax: number): boolean {
    const { path, numbering, paths } = this;
    while (numbering.count < countMax) {
      const node = path.pop();
      if (node === undefined) {
        paths.process();
        return true;
      }
      if (numbering.has(node)) continue;
      if ((numbering.missing[node] as number) > 0) {
        path.push(node);
        if (this.walkBack(node) > 1) this.hasBranched = true;
        continue;
      }
      if (this.hasBranched && numbering.runnable.length < path.length) paths.process();
      numbering.number(node);
    }
    return false;
  }

  /** The most valuable dependency first, at each step, down to a root. */
  private build(target: number): void {
    const { path, analysis } = this;
    const { offsets, targets } = analysis.graph.dependencies;
    path.push(target);
    analysis.dependencies.sort(target);
    if (offsets[target] === offsets[target + 1]) return;
    let best = targets[(offsets[target + 1] as number) - 1] as number;
    for (;;) {
      path.push(best);
      // Everything that it needs has its number, too.
      if (this.numbering.has(best)) return;
      analysis.dependencies.sort(best);
      const before = path.length;
      const end = offsets[best + 1] as number;
      for (let n = offsets[best] as number; n < end; n++) {
        const dependency = targets[n] as number;
        if (!this.numbering.has(dependency)) path.push(dependency);
      }
      if (path.length === before) return;
      best = path[path.length - 1] as number;
    }
  }

  /** Puts what a node needs on the path, known paths on top. Returns how many of these are not known. */
  private walkBack(node: number): number {
    const { path, paths, analysis } = this;
    analysis.dependencies.sort(node);
    const { offsets, targets } = analysis.graph.dependencies;
    const end = offsets[node + 1] as number;
    let unknown = 0;
    let known = 0;
    for (let n = offsets[node] as number; n < end; n++) {
      const dependency = targets[n] as number;
      if (this.numbering.has(dependency)) continue;
      if (paths.has(dependency)) known++;
      else {
        unknown++;
        path.push(dependency);
      }
    }
    for (let n = offsets[node] as number; known > 0 && n < end; n++) {
      const dependency = targets[n] as number;
      if (this.numbering.has(dependency) || !paths.has(dependency)) continue;
      known--;
      paths.take(dependency, path);
    }
    return unknown;
  }
}

/** Numbers what is left: data that only gathering leaves need, and these from the end. */
function finish({ graph, isOut, atEnd }: GraphWithoutData, numbering: Numbering): Int32Array {
  const { ranks } = numbering;
  if (isOut !== undefined) {
    atEnd.forEach((node, fromEnd) => (ranks[node] = graph.taskCount - 1 - fromEnd));
    for (let node = 0; node < graph.nodeCount; node++) numbering.numberData(node);
  }
  return ranks.subarray(0, graph.taskCount);
}
