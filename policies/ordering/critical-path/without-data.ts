import type { GraphTask } from '../../../core/api/index.ts';
import { reverseRows, rowLength, type GraphIndex, type Rows } from './graph-index.ts';

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
        const data = this.dataOf.get(dependent);
        if (data === undefined) this.dataOf.set(dependent, [node]);
        else data.push(node);
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
