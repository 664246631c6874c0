import { type GraphIndex, rowLength, type Rows, type Totals } from './graph-index.ts';
import type { ConnectedEnds } from './leaf-groups.ts';

/** Up to here rows are sorted by insertion. */
const FEW = 12;

/** The criteria by which nodes are compared; the first that differs decides. */
interface SortKeyColumns {
  readonly graph: GraphIndex;
  readonly totals: Totals;
  readonly roots: ConnectedEnds;
  /** The most dependents that any root of a node has. */
  readonly maxDependents: Int32Array;
}

/**
 * The value of a node for Dask's order, ascending: total dependencies, dependencies, connected
 * roots, dependents of these (more of them is less), name. Never 0 for two nodes with different names.
 */
export class SortKeys {
  private readonly names: readonly string[];
  private readonly dependencies: Rows;
  private readonly totals: Totals;
  private readonly rootCounts: Int32Array;
  private readonly maxDependents: Int32Array;

  constructor({ graph, totals, roots, maxDependents }: SortKeyColumns) {
    this.names = graph.names;
    this.dependencies = graph.dependencies;
    this.totals = totals;
    this.rootCounts = roots.sizes;
    this.maxDependents = maxDependents;
  }

  compare(a: number, b: number): number {
    const numbers = this.compareNumbers(a, b);
    if (numbers !== 0) return numbers;
    const left = this.names[a] as string;
    const right = this.names[b] as string;
    return left < right ? -1 : left > right ? 1 : 0;
  }

  /** Sorts a part of a list of nodes, ascending. */
  sort(nodes: Int32Array, start: number, end: number): void {
    if (end - start <= FEW) {
      this.insertionSort(nodes, start, end);
      return;
    }
    if (!this.isUniform(nodes, start, end)) {
      nodes.subarray(start, end).sort((a, b) => this.compareNumbers(a, b));
    }
    let first = start;
    for (let n = start + 1; n <= end; n++) {
      const isTie =
        n < end && this.compareNumbers(nodes[first] as number, nodes[n] as number) === 0;
      if (isTie) continue;
      if (n - first > 1) sortByName(nodes, first, n, this.names);
      first = n;
    }
  }

  private compareNumbers(a: number, b: number): number {
    const totals = this.totals.compare(a, b);
    if (totals !== 0) return totals;
    const dependencies = rowLength(this.dependencies, a) - rowLength(this.dependencies, b);
    if (dependencies !== 0) return dependencies;
    const roots = (this.rootCounts[a] as number) - (this.rootCounts[b] as number);
    if (roots !== 0) return roots;
    return (this.maxDependents[b] as number) - (this.maxDependents[a] as number);
  }

  private isUniform(nodes: Int32Array, start: number, end: number): boolean {
    const first = nodes[start] as number;
    for (let n = start + 1; n < end; n++) {
      if (this.compareNumbers(first, nodes[n] as number) !== 0) return false;
    }
    return true;
  }

  private insertionSort(nodes: Int32Array, start: number, end: number): void {
    for (let n = start + 1; n < end; n++) {
      const node = nodes[n] as number;
      let at = n;
      while (at > start && this.compare(nodes[at - 1] as number, node) > 0) {
        nodes[at] = nodes[at - 1] as number;
        at--;
      }
      nodes[at] = node;
    }
  }
}

/** For each node the most dependents that any of its roots has. O(nodes + links). */
export function maxDependentsOfRoots(graph: GraphIndex, sequence: Int32Array): Int32Array {
  const { dependencies, dependents } = graph;
  const { offsets, targets } = dependencies;
  const most = new Int32Array(sequence.length);
  for (let at = 0; at < sequence.length; at++) {
    const node = sequence[at] as number;
    const end = offsets[node + 1] as number;
    let start = offsets[node] as number;
    let largest = start === end ? rowLength(dependents, node) : 0;
    for (; start < end; start++) {
      largest = Math.max(largest, most[targets[start] as number] as number);
    }
    most[node] = largest;
  }
  return most;
}

/** Rows of a graph whose nodes are sorted when a row is first looked at. */
export class SortedRows {
  private readonly isSorted: Uint8Array;

  /** @param rows - is sorted in place */
  constructor(
    readonly rows: Rows,
    private readonly keys: SortKeys,
    nodeCount: number,
  ) {
    this.isSorted = new Uint8Array(nodeCount);
  }

  /** Sorts a row unless that has been done. */
  sort(node: number): void {
    if (this.isSorted[node] === 1) return;
    this.isSorted[node] = 1;
    const { offsets, targets } = this.rows;
    this.keys.sort(targets, offsets[node] as number, offsets[node + 1] as number);
  }
}

/** Sorts a part of a list of nodes by their names, by UTF-16 code units. */
export function sortByName(
  nodes: Int32Array,
  start: number,
  end: number,
  names: readonly string[],
): void {
  const part = Array.from(nodes.subarray(start, end));
  part.sort((a, b) => {
    const left = names[a] as string;
    const right = names[b] as string;
    return left < right ? -1 : left > right ? 1 : 0;
  });
  nodes.set(part, start);
}
