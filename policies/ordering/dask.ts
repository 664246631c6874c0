import { definePolicy, type GraphLinks, type GraphTask } from '../../core/api/index.ts';
import { type Steps, withoutPauses } from '../../core/util/steps.ts';
import {
  type GraphIndex,
  indexGraph,
  reverseRows,
  rowLength,
  type Rows,
  topologicalOrder,
  totalDependencies,
} from './graph-index.ts';
import { type Analysis, connectedEnds, Numbering } from './leaf-groups.ts';
import { maxDependentsOfRoots, SortedRows, SortKeys } from './sort-keys.ts';
import { pushTo } from '../../core/util/collections.ts';

/**
 * The order that Dask gives graphs since 2023.12. It keeps few results alive when tasks run one after
 * the other. Ties go by key, so that the order does not depend on the order of submission.
 */
export const daskOrder = definePolicy('ordering', {
  name: 'dask',
  apiVersion: 1,
  create: () => ({ order }),
});

function* order(
  tasks: readonly GraphTask[],
  _keys: readonly string[],
  links?: GraphLinks,
): Steps<Int32Array> {
  const graph = indexGraph(tasks, links);
  yield;
  const reduced = withoutData(graph, tasks);
  yield;
  return yield* criticalPathInSteps(reduced);
}

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

/** True when the leaf with the most below it comes first; not in graphs that keep their width unevenly. */
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
  /** The nodes to be numbered, the next one last. A node may be on it more than once. */
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

/** Nodes or keys that are looked at between two pauses. */
const STEP_OF_WALK = 5000;

/**
 * Numbers tasks as a walk from the given starts leaves them: dependencies first, in the order of their
 * rows. What no start needs comes last. O(tasks + links), without recursion.
 * @param rows - dependencies; numbers that are no tasks are passed over
 */
export function depthFirstWalk(
  rows: Rows,
  taskCount: number,
  starts: Iterable<number>,
): Int32Array {
  const walk = new DepthFirstWalk(rows, taskCount);
  for (const start of starts) walk.from(start, Infinity);
  for (let task = 0; task < taskCount; task++) walk.from(task, Infinity);
  return walk.ranks;
}

/** The same with pauses, from the tasks of these keys. */
export function* depthFirstInSteps(
  rows: Rows,
  taskCount: number,
  keys: readonly string[],
  positionOf: (key: string) => number,
): Steps<Int32Array> {
  const walk = new DepthFirstWalk(rows, taskCount);
  let stepsLeft = STEP_OF_WALK;
  for (let n = 0; n < keys.length + taskCount; n++) {
    const start = n < keys.length ? positionOf(keys[n] as string) : n - keys.length;
    if (start < 0) continue;
    stepsLeft = walk.from(start, stepsLeft - 1);
    while (stepsLeft <= 0) {
      yield;
      stepsLeft = walk.goOn(STEP_OF_WALK);
    }
  }
  return walk.ranks;
}

class DepthFirstWalk {
  readonly ranks: Int32Array;
  private readonly entered: Uint8Array;
  private readonly next: Int32Array;
  private readonly path: Int32Array;
  private length = 0;
  private rank = 0;

  constructor(
    private readonly rows: Rows,
    taskCount: number,
  ) {
    this.ranks = new Int32Array(taskCount).fill(-1);
    this.entered = new Uint8Array(taskCount);
    this.next = rows.offsets.slice(0, taskCount);
    this.path = new Int32Array(taskCount);
  }

  /** Begins at a task, when the walk from the one before is over. Returns the steps that are left. */
  from(start: number, stepsMax: number): number {
    if (this.entered[start] === 1) return stepsMax;
    this.entered[start] = 1;
    this.path[this.length++] = start;
    return this.goOn(stepsMax);
  }

  /** Returns the steps that are left: none if the walk is not over. */
  goOn(stepsMax: number): number {
    const { entered, next, path, ranks } = this;
    const { offsets, targets } = this.rows;
    let { length } = this;
    let stepsLeft = stepsMax;
    for (; length > 0 && stepsLeft > 0; stepsLeft--) {
      const task = path[length - 1] as number;
      const position = next[task] as number;
      if (position === offsets[task + 1]) {
        ranks[task] = this.rank++;
        length--;
        continue;
      }
      next[task] = position + 1;
      const dependency = targets[position] as number;
      // Nothing is entered below 0 or from the number of tasks on.
      if (entered[dependency] !== 0) continue;
      entered[dependency] = 1;
      path[length++] = dependency;
    }
    this.length = length;
    return stepsLeft;
  }
}

/** The tasks of the requested keys; keys that are not in the graph are left out. */
export function startsOf(graph: Pick<GraphIndex, 'positionOf'>, keys: readonly string[]): number[] {
  const starts: number[] = [];
  for (const key of keys) {
    const task = graph.positionOf(key);
    if (task >= 0) starts.push(task);
  }
  return starts;
}

/** The same graph with the dependencies of each task in another order. */
export function withSortedDependencies(
  graph: GraphIndex,
  compare: (a: number, b: number) => number,
): GraphIndex {
  const { offsets } = graph.dependencies;
  const targets = graph.dependencies.targets.slice();
  for (let task = 0; task < graph.taskCount; task++) {
    const start = offsets[task] as number;
    const end = offsets[task + 1] as number;
    if (end - start === 2) {
      const [first, second] = [targets[start] as number, targets[start + 1] as number];
      if (compare(first, second) > 0) targets.set([second, first], start);
    } else if (end - start > 2) targets.subarray(start, end).sort(compare);
  }
  return { ...graph, dependencies: { offsets, targets } };
}

/**
 * Paths forward from runnable nodes, as pairs of the first and the last node of each; the reducer
 * that they lead to follows every pair. Every node of a path but the first depends only on the one
 * before it, so the two ends determine the path.
 */
type Path = readonly number[];

/** A node that a way has come to, or a reducer that ways were joined at. */
interface Branch {
  /** The node at which the path began. */
  readonly first: number;
  readonly node: number;
  /** Forks that the way came through. */
  readonly forks: number;
  /** The joined ways, if it is a reducer. */
  readonly joined?: Path;
}

/**
 * The tasks that could be computed for free, without loading anything. Doing so at once would walk the graph
 * breadth first; never doing so would put off reducers that free much. So runnable nodes are followed up
 * to the next reducer (a node with several dependencies) and the path is remembered there. It is taken
 * when it ends in a leaf, when all inputs of the reducer are known, or when the reducer is needed.
 */
export class RunnablePaths {
  /** Paths by the reducer that they lead to, for one that is not known to be computable yet. */
  private readonly known = new Map<number, Path[]>();
  private readonly branches: Branch[] = [];
  /** Nodes of one way, backwards. */
  private readonly way: number[] = [];
  private readonly graph: GraphIndex;
  private readonly dependents: SortedRows;

  constructor(
    analysis: Analysis,
    private readonly numbering: Numbering,
  ) {
    this.graph = analysis.graph;
    this.dependents = analysis.dependents;
  }

  has(reducer: number): boolean {
    return this.known.size > 0 && this.known.has(reducer);
  }

  /** Forgets the paths to a reducer and puts their nodes on a stack, those to be computed first last. */
  take(reducer: number, stack: number[]): void {
    for (const path of this.known.get(reducer) ?? []) {
      for (let n = path.length - 2; n >= 0; n -= 2) {
        stack.push(reducer);
        this.pushBackwards(path[n] as number, path[n + 1] as number, stack);
      }
    }
    this.known.delete(reducer);
  }

  /** Follows all that is runnable, the latest first, until nothing more becomes so. */
  process(): void {
    const { numbering } = this;
    while (numbering.runnable.length > 0) {
      const candidates = numbering.runnable.splice(0);
      for (let node = candidates.pop(); node !== undefined; node = candidates.pop()) {
        if (numbering.isInRunnableHull[node] === 1 || numbering.has(node)) continue;
        if (numbering.isOpenLeaf[node] === 1) numbering.number(node);
        else this.follow(node);
      }
    }
  }

  private follow(start: number): void {
    const { branches } = this;
    this.followBranch(start, start, 0);
    for (let next = 0; next < branches.length; next++) {
      const { first, node, forks, joined } = branches[next] as Branch;
      if (joined === undefined) this.followBranch(first, node, forks);
      else this.reach(node, joined, forks);
    }
    branches.length = 0;
  }

  /** Ends at a leaf, a fork or a reducer. */
  private followBranch(first: number, from: number, forks: number): void {
    const { numbering } = this;
    const { dependencies, dependents } = this.graph;
    let last = from === first ? first : this.before(from);
    for (let node = from; ;) {
      numbering.isInRunnableHull[node] = 1;
      const fanOut = rowLength(dependents, node);
      if (fanOut === 0) {
        if ((numbering.missing[node] as number) <= 1) this.numberAll([first, last], node);
        else numbering.isInRunnableHull[node] = 0;
        return;
      }
      if (node !== first && rowLength(dependencies, node) !== 1) {
        this.reach(node, [first, last], forks);
        return;
      }
      if (fanOut > 1) {
        this.fork(first, node, forks + 1);
        return;
      }
      last = node;
      node = dependents.targets[dependents.offsets[node] as number] as number;
    }
  }

  /** A branch for each dependent that needs nothing else. */
  private fork(first: number, node: number, forks: number): void {
    this.dependents.sort(node);
    const { offsets, targets } = this.graph.dependents;
    const end = offsets[node + 1] as number;
    for (let n = offsets[node] as number; n < end; n++) {
      const dependent = targets[n] as number;
      if (rowLength(this.graph.dependencies, dependent) === 1) {
        this.branches.push({ first, node: dependent, forks });
      }
    }
  }

  private reach(reducer: number, path: Path, forks: number): void {
    const { missing, isInRunnableHull } = this.numbering;
    const needed = missing[reducer] as number;
    const paths = this.known.get(reducer);
    if (paths === undefined && needed <= 1) {
      isInRunnableHull[reducer] = 1;
      this.numberAll(path, reducer);
      return;
    }
    isInRunnableHull[reducer] = 0;
    if (paths === undefined) {
      this.known.set(reducer, [path]);
      return;
    }
    paths.push(path);
    if (paths.length >= needed) this.takeAll(reducer, paths, forks);
  }

  /** Takes the paths to a reducer when there are enough of those that are not numbered yet. */
  private takeAll(reducer: number, paths: readonly Path[], forks: number): void {
    const open = paths.filter((path) => !this.numbering.has(path[path.length - 1] as number));
    if (open.length < (this.numbering.missing[reducer] as number)) {
      this.known.set(reducer, open);
      return;
    }
    this.known.delete(reducer);
    if (forks <= 1) this.numberInTurn(reducer, open);
    else this.branches.push({ first: -1, node: reducer, forks: forks - 1, joined: open.flat() });
  }

  /** Path by path; one that is not runnable yet waits for the others. */
  private numberInTurn(reducer: number, open: readonly Path[]): void {
    let waiting = open;
    while (waiting.length > 0) {
      const before = this.numbering.count;
      waiting = waiting.filter((path) => !this.numberPath(path, reducer));
      if (this.numbering.count > before) continue;
      // They wait for something else.
      if (waiting.length > 0) this.known.set(reducer, [...waiting]);
      return;
    }
  }

  /** Returns whether it could be done to its end. */
  private numberPath(path: Path, end: number): boolean {
    const { numbering } = this;
    for (let n = 0; n < path.length; n += 2) {
      const way = this.wayBack(path[n] as number, path[n + 1] as number);
      for (let at = way.length - 1; at >= 0; at--) {
        const node = way[at] as number;
        if ((numbering.missing[node] as number) > 0) return false;
        numbering.number(node);
      }
      if ((numbering.missing[end] as number) > 0) return false;
      numbering.number(end);
    }
    return true;
  }

  private numberAll(path: Path, end: number): void {
    for (let n = 0; n < path.length; n += 2) {
      const way = this.wayBack(path[n] as number, path[n + 1] as number);
      for (let at = way.length - 1; at >= 0; at--) this.numbering.number(way[at] as number);
      this.numbering.number(end);
    }
  }

  /** Nodes without a number from the last one of a way to its first one. Valid until the next call. */
  private wayBack(first: number, last: number): readonly number[] {
    const { way, numbering } = this;
    way.length = 0;
    for (let node = last; !numbering.has(node); node = this.before(node)) {
      way.push(node);
      if (node === first) break;
    }
    return way;
  }

  private pushBackwards(first: number, last: number, stack: number[]): void {
    let node = last;
    for (; node !== first; node = this.before(node)) stack.push(node);
    stack.push(node);
  }

  /** The only dependency of a node. */
  private before(node: number): number {
    const { offsets, targets } = this.graph.dependencies;
    return targets[offsets[node] as number] as number;
  }
}

/** A graph from which nodes that compute nothing were taken out, where they only confuse. */
export interface GraphWithoutData {
  /** The same nodes; those taken out have no links any more. */
  readonly graph: GraphIndex;
  /** 1 for each node that was taken out; undefined when none was. */
  readonly isOut: Uint8Array | undefined;
  /** Data to number right before the first node that needs it. */
  readonly dataOf: ReadonlyMap<number, readonly number[]>;
  /** Nodes that gather others and belong to the very end, the last one first. */
  readonly atEnd: readonly number[];
}

const NO_DATA: ReadonlyMap<number, readonly number[]> = new Map();

/**
 * Takes out leaves that merely gather two or more others, and data that two or more tasks need. A node
 * is data when its task has no run spec, or when it is not in the graph. O(nodes + links) for each
 * layer of gathering leaves; graphs of nothing but tasks are returned as they are.
 */
export function withoutData(graph: GraphIndex, tasks: readonly GraphTask[]): GraphWithoutData {
  const isAllTasks =
    graph.nodeCount === graph.taskCount && tasks.every(({ runSpec }) => runSpec !== undefined);
  if (isAllTasks) return { graph, isOut: undefined, dataOf: NO_DATA, atEnd: [] };
  return new DataRemoval(graph, (node) => tasks[node]?.runSpec === undefined).run();
}

class DataRemoval {
  private readonly isOut: Uint8Array;
  private readonly dependencyCounts: Int32Array;
  private readonly dependentCounts: Int32Array;
  private readonly dataOf = new Map<number, number[]>();
  private readonly atEnd: number[] = [];

  constructor(
    private readonly graph: GraphIndex,
    private readonly isData: (node: number) => boolean,
  ) {
    const { nodeCount, dependencies, dependents } = graph;
    this.isOut = new Uint8Array(nodeCount);
    this.dependencyCounts = Int32Array.from({ length: nodeCount }, (_, node) =>
      rowLength(dependencies, node),
    );
    this.dependentCounts = Int32Array.from({ length: nodeCount }, (_, node) =>
      rowLength(dependents, node),
    );
  }

  run(): GraphWithoutData {
    while (this.takeGatherers()) this.takeSharedData();
    this.takeSharedData();
    const { nodeCount, dependencies } = this.graph;
    const kept = keepRows(dependencies, nodeCount, this.isOut);
    const graph = {
      ...this.graph,
      dependencies: kept,
      dependents: reverseRows(kept, nodeCount),
    };
    return { graph, isOut: this.isOut, dataOf: this.dataOf, atEnd: this.atEnd };
  }

  /** One layer. Returns whether there were any. */
  private takeGatherers(): boolean {
    const layer = this.nodesThat(
      (node) => this.dependentCounts[node] === 0 && (this.dependencyCounts[node] as number) > 1,
    );
    for (const node of layer) {
      this.isOut[node] = 1;
      this.atEnd.push(node);
      lessFor(this.graph.dependencies, node, this.dependentCounts);
    }
    return layer.length > 0;
  }

  private takeSharedData(): void {
    const shared = this.nodesThat(
      (node) => this.dependencyCounts[node] === 0 && (this.dependentCounts[node] as number) > 1,
    );
    for (const node of shared) {
      this.isOut[node] = 1;
      lessFor(this.graph.dependents, node, this.dependencyCounts);
      const { offsets, targets } = this.graph.dependents;
      for (const dependent of targets.subarray(offsets[node], offsets[node + 1])) {
        pushTo(this.dataOf, dependent, node);
      }
    }
  }

  /** By name: the order of submission does not matter. */
  private nodesThat(matches: (node: number) => boolean): number[] {
    const found: number[] = [];
    for (let node = 0; node < this.graph.nodeCount; node++) {
      if (this.isOut[node] === 0 && this.isData(node) && matches(node)) found.push(node);
    }
    const { names } = this.graph;
    return found.sort((a, b) => ((names[a] as string) < (names[b] as string) ? -1 : 1));
  }
}

function lessFor({ offsets, targets }: Rows, node: number, counts: Int32Array): void {
  for (const other of targets.subarray(offsets[node], offsets[node + 1])) {
    counts[other] = (counts[other] as number) - 1;
  }
}

function keepRows({ offsets, targets }: Rows, nodeCount: number, isOut: Uint8Array): Rows {
  const keptOffsets = new Int32Array(nodeCount + 1);
  const kept = new Int32Array(targets.length);
  let used = 0;
  for (let node = 0; node < nodeCount; node++) {
    keptOffsets[node] = used;
    if (isOut[node] === 1) continue;
    for (const target of targets.subarray(offsets[node], offsets[node + 1])) {
      if (isOut[target] === 0) kept[used++] = target;
    }
  }
  keptOffsets[nodeCount] = used;
  return { offsets: keptOffsets, targets: kept.subarray(0, used) };
}
