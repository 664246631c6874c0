import type { GraphAnswer } from '../page-messages.ts';

/** A place in units of the distance between two nodes. */
export interface Point {
  readonly x: number;
  readonly y: number;
}

/** The ratio of width to height of a graph. */
const WIDE = 2.6;

/** Columns by the longest path to a node; within a column near the nodes that it follows. O(nodes + edges). */
export function layered(nodes: number, edges: GraphAnswer['edges']): readonly Point[] {
  const before: number[][] = Array.from({ length: nodes }, () => []);
  const after: number[][] = Array.from({ length: nodes }, () => []);
  const open = new Array<number>(nodes).fill(0);
  for (const { from, to } of edges) {
    after[from]?.push(to);
    before[to]?.push(from);
    open[to] = (open[to] ?? 0) + 1;
  }
  const depth = new Array<number>(nodes).fill(0);
  const ready = open.flatMap((count, node) => (count === 0 ? [node] : []));
  for (let k = 0; k < ready.length; k++) {
    const node = ready[k] ?? 0;
    for (const next of after[node] ?? []) {
      depth[next] = Math.max(depth[next] ?? 0, (depth[node] ?? 0) + 1);
      open[next] = (open[next] ?? 0) - 1;
      if (open[next] === 0) ready.push(next);
    }
  }
  const columns: number[][] = [];
  depth.forEach((column, node) => (columns[column] ??= []).push(node));
  const tallest = Math.max(1, ...columns.map((column) => column.length));
  const y = new Array<number>(nodes).fill(0);
  for (const column of columns) {
    const wanted = (node: number): number => {
      const inputs = before[node] ?? [];
      return inputs.length === 0
        ? node
        : inputs.reduce((sum, input) => sum + (y[input] ?? 0), 0) / inputs.length;
    };
    const ordered = column
      .map((node) => [wanted(node), node] as const)
      .toSorted(([a, m], [b, n]) => a - b || m - n);
    const gap = tallest / ordered.length;
    ordered.forEach(([, node], k) => (y[node] = (k + 0.5) * gap));
  }
  const stretch = Math.max(2, (WIDE * tallest) / Math.max(1, columns.length - 1));
  return depth.map((column, node) => ({ x: column * stretch, y: y[node] ?? 0 }));
}
