import { rowLength, type GraphIndex } from './graph-index.ts';
import type { Analysis, Numbering } from './numbering.ts';
import type { SortedRows } from './sort-keys.ts';

/**
 * Paths forward from runnable nodes, as pairs of the first and the last node of each; the reducer
 * that they lead to follows every pair. Every node of a path but the first depends only on the one
 * before it, so the two ends determine the path.
 */
type Path = readonly number[];

/** A node that a way has come to, or a reducer that ways were joined at. */
interface Branch {
  /** Where the way began. */
  readonly first: number;
  readonly node: number;
  /** Forks that the way came through. */
  readonly forks: number;
  /** The joined ways, if it is a reducer. */
  readonly joined?: Path;
}

/**
 * What could be computed for free, without loading anything. Doing so at once would walk the graph
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
