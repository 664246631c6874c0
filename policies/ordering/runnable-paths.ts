import { rowLength, type GraphIndex } from './graph-index.ts';
import type { Analysis, Numbering } from './numbering.ts';
import type { SortedRows } from './sort-keys.ts';

/** A way forward from a runnable node; how many forks it came through. */
interface Branch {
  readonly forks: number;
  readonly path: number[];
}

/**
 * What could be computed for free, without loading anything. Doing so at once would walk the graph
 * breadth first; never doing so would put off reducers that free much. So runnable nodes are followed up
 * to the next reducer (a node with several dependencies) and the path is remembered there. It is taken
 * when it ends in a leaf, when all inputs of the reducer are known, or when the reducer is needed.
 */
export class RunnablePaths {
  /** Paths by the reducer that they end in, for one that is not known to be computable yet. */
  private readonly known = new Map<number, number[][]>();
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

  /** The paths that end in a reducer, which are forgotten. */
  take(reducer: number): readonly (readonly number[])[] {
    const paths = this.known.get(reducer) ?? [];
    this.known.delete(reducer);
    return paths;
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
    const branches: Branch[] = [{ forks: 0, path: [start] }];
    for (let next = 0; next < branches.length; next++) {
      const { forks, path } = branches[next] as Branch;
      this.followBranch(path, forks, branches);
    }
  }

  /** Ends at a leaf, a fork or a reducer. */
  private followBranch(path: number[], forks: number, branches: Branch[]): void {
    const { dependencies, dependents } = this.graph;
    for (;;) {
      const node = path[path.length - 1] as number;
      this.numbering.isInRunnableHull[node] = 1;
      const fanOut = rowLength(dependents, node);
      if (fanOut === 0) {
        if ((this.numbering.missing[node] as number) <= 1) this.numberAll(path);
        else this.numbering.isInRunnableHull[node] = 0;
        return;
      }
      if (path.length > 1 && rowLength(dependencies, node) !== 1) {
        this.reachReducer(node, { forks, path }, branches);
        return;
      }
      if (fanOut > 1) {
        this.fork(node, { forks: forks + 1, path }, branches);
        return;
      }
      path.push(dependents.targets[dependents.offsets[node] as number] as number);
    }
  }

  /** A branch for each dependent that needs nothing else. */
  private fork(node: number, { forks, path }: Branch, branches: Branch[]): void {
    this.dependents.sort(node);
    const { offsets, targets } = this.graph.dependents;
    const end = offsets[node + 1] as number;
    for (let n = offsets[node] as number; n < end; n++) {
      const dependent = targets[n] as number;
      if (rowLength(this.graph.dependencies, dependent) === 1) {
        branches.push({ forks, path: [...path, dependent] });
      }
    }
  }

  private reachReducer(reducer: number, branch: Branch, branches: Branch[]): void {
    const { missing, isInRunnableHull } = this.numbering;
    const needed = missing[reducer] as number;
    const paths = this.known.get(reducer);
    if (paths !== undefined) {
      paths.push(branch.path);
      isInRunnableHull[reducer] = 0;
      if (paths.length >= needed) this.takeAll(reducer, paths, branch.forks, branches);
      return;
    }
    if (needed <= 1) {
      this.numberAll(branch.path);
      return;
    }
    this.known.set(reducer, [branch.path]);
    isInRunnableHull[reducer] = 0;
  }

  /** Takes the paths to a reducer when there are enough of those that are not numbered yet. */
  private takeAll(
    reducer: number,
    paths: readonly number[][],
    forks: number,
    branches: Branch[],
  ): void {
    const open = paths.filter((path) => !this.numbering.has(path[path.length - 2] as number));
    if (open.length < (this.numbering.missing[reducer] as number)) {
      this.known.set(reducer, open);
      return;
    }
    this.known.delete(reducer);
    if (forks > 1) branches.push({ forks: forks - 1, path: open.flat() });
    else this.numberInTurn(reducer, open);
  }

  /** Path by path; one that is not runnable yet waits for the others. */
  private numberInTurn(reducer: number, open: readonly number[][]): void {
    let waiting = open;
    while (waiting.length > 0) {
      const before = this.numbering.count;
      waiting = waiting.filter((path) => !this.numberPath(path));
      if (this.numbering.count > before) continue;
      // They wait for something else.
      if (waiting.length > 0) this.known.set(reducer, [...waiting]);
      return;
    }
  }

  /** Returns whether it could be done to its end. */
  private numberPath(path: readonly number[]): boolean {
    for (const node of path) {
      if ((this.numbering.missing[node] as number) > 0) return false;
      this.numbering.number(node);
    }
    return true;
  }

  private numberAll(path: readonly number[]): void {
    for (const node of path) this.numbering.number(node);
  }
}
