import type { ConnectedEnds } from './connected-ends.ts';
import { rowLength, type GraphIndex } from './graph-index.ts';
import { LeafGroups } from './leaf-groups.ts';
import type { SortedRows, SortKeys } from './sort-keys.ts';

/** What is known of a graph before anything is numbered. */
export interface Analysis {
  /** Its rows are those of {@link dependencies} and {@link dependents}. */
  readonly graph: GraphIndex;
  readonly keys: SortKeys;
  readonly dependencies: SortedRows;
  readonly dependents: SortedRows;
  readonly roots: ConnectedEnds;
  readonly leaves: ConnectedEnds;
  /** All leaves, ascending by their sort keys. */
  readonly leafNodes: Int32Array;
  /** See {@link "./without-data"}. */
  readonly isOut: Uint8Array | undefined;
  readonly dataOf: ReadonlyMap<number, readonly number[]>;
}

const NOT_YET = -1;

/** The numbers given so far, and what can be done next. */
export class Numbering {
  /** Number of each node, or -1. */
  readonly ranks: Int32Array;
  /** How many dependencies of each node have no number yet. */
  readonly missing: Int32Array;
  /** Nodes with two siblings or more that became runnable since this was emptied last. */
  readonly runnable: number[] = [];
  /** 1 for each leaf without a number. */
  readonly isOpenLeaf: Uint8Array;
  /** 1 for each node that runnable paths lead to. */
  readonly isInRunnableHull: Uint8Array;
  /** Leaves by the number of roots they need; empty when there were too many roots to count. */
  readonly openLeaves: LeafGroups;
  /** How many nodes without a number touch one that has one. */
  reachable = 0;
  /** How many nodes have a number. */
  count = 0;
  private nextRank = 0;
  private readonly isReachable: Uint8Array;
  /** Position of each leaf among the sorted ones. */
  private readonly leafRanks: Int32Array;

  constructor(private readonly analysis: Analysis) {
    const { graph, leafNodes } = analysis;
    const { nodeCount } = graph;
    this.ranks = new Int32Array(nodeCount).fill(NOT_YET);
    this.missing = new Int32Array(nodeCount);
    this.isOpenLeaf = new Uint8Array(nodeCount);
    this.isInRunnableHull = new Uint8Array(nodeCount);
    this.isReachable = new Uint8Array(nodeCount);
    this.leafRanks = new Int32Array(nodeCount).fill(NOT_YET);
    for (let node = 0; node < nodeCount; node++) {
      this.missing[node] = rowLength(graph.dependencies, node);
    }
    leafNodes.forEach((leaf, rank) => {
      this.isOpenLeaf[leaf] = 1;
      this.leafRanks[leaf] = rank;
    });
    const { roots, leaves } = analysis;
    this.openLeaves = new LeafGroups(leafNodes, this.leafRanks, roots, leaves);
  }

  has(node: number): boolean {
    return (this.ranks[node] as number) >= 0;
  }

  /** Numbers a node and what becomes runnable by it alone. */
  number(first: number): void {
    let node = first;
    while (node >= 0) {
      this.leaveHulls(node);
      if (this.has(node)) return;
      if (this.analysis.dataOf.size > 0) this.numberDataOf(node);
      this.giveRank(node);
      if (rowLength(this.analysis.graph.dependencies, node) === 0) {
        this.openLeaves.rootIsDone(node);
      }
      node = this.unlockDependents(node);
    }
  }

  /** Numbers data, which unlocks nothing. */
  numberData(node: number): void {
    if (!this.has(node)) this.giveRank(node);
  }

  private numberDataOf(node: number): void {
    for (const data of this.analysis.dataOf.get(node) ?? []) this.numberData(data);
  }

  /** Keys outside of the graph do not use up a number. */
  private giveRank(node: number): void {
    this.ranks[node] = this.nextRank;
    this.count++;
    if (node < this.analysis.graph.taskCount) this.nextRank++;
  }

  private leaveHulls(node: number): void {
    this.isInRunnableHull[node] = 0;
    if (this.isReachable[node] === 1) {
      this.isReachable[node] = 0;
      this.reachable--;
    }
    if (this.isOpenLeaf[node] === 1) {
      this.isOpenLeaf[node] = 0;
      this.openLeaves.remove(this.leafRanks[node] as number);
    }
  }

  /** Returns the only dependent when it can be numbered at once, otherwise -1. */
  private unlockDependents(node: number): number {
    const { offsets, targets } = this.analysis.graph.dependents;
    const start = offsets[node] as number;
    const end = offsets[node + 1] as number;
    let unlocked = 0;
    for (let n = start; n < end; n++) {
      const dependent = targets[n] as number;
      const missing = (this.missing[dependent] as number) - 1;
      this.missing[dependent] = missing;
      if (missing === 0) unlocked++;
      this.touch(dependent);
    }
    if (unlocked === 0) return NOT_YET;
    if (end - start === 1) return targets[start] as number;
    if (unlocked > 1) this.analysis.dependents.sort(node);
    for (let n = start; n < end; n++) {
      const dependent = targets[n] as number;
      if (this.missing[dependent] === 0) this.runnable.push(dependent);
    }
    return NOT_YET;
  }

  private touch(node: number): void {
    if (this.isReachable[node] === 1) return;
    this.isReachable[node] = 1;
    this.reachable++;
    if (this.isOpenLeaf[node] === 1) this.openLeaves.touch(this.leafRanks[node] as number);
  }
}
