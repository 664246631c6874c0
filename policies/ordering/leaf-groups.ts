import { type GraphIndex, rowLength, type Rows } from './graph-index.ts';
import { GroupHeap, NumberHeap } from './number-heap.ts';
import type { SortedRows, SortKeys } from './sort-keys.ts';

/**
 * Upper bound of the changes of groups by numbered roots; beyond it all leaves are taken in
 * presorted order.
 */
const CHANGES_MAX = 2 ** 27;

const NO_GROUPS = new Int32Array(0);

/**
 * Leaves by how many roots they still need. Those that need the same roots are one group and change
 * together: a hub between thousands of roots and leaves costs no more than a task between two.
 *
 * Leaves are named by their ranks among all leaves. Among equals those come first that touch what is
 * numbered, then the smallest rank.
 */
class LeafGroups {
  private readonly heap: GroupHeap;
  /** Group of each leaf; -1: it needs no roots. */
  private readonly groupOf: Int32Array;
  /** Roots that the leaves of each group still need; 0 for one that has left. */
  private readonly missing: Int32Array;
  /** Leaves of group `g`, ascending, from `starts[g]` on; those before `next[g]` are numbered. */
  private readonly starts: Int32Array;
  private readonly next: Int32Array;
  private readonly members: Int32Array;
  /** Leaves of each group that touch what is numbered; some of them may be numbered. */
  private readonly touched: (NumberHeap | undefined)[];
  private readonly isOpen: Uint8Array;
  /** Groups that each set of leaves belongs to, by the number of the set, found when first needed. */
  private readonly groupsOfSet: Int32Array[] = [];
  private changes = 0;

  /** @param leafNodes - by rank */
  constructor(
    private readonly leafNodes: Int32Array,
    private readonly rankOf: Int32Array,
    roots: ConnectedEnds,
    private readonly leaves: ConnectedEnds,
  ) {
    const count = leafNodes.length;
    const isKnown = roots.isExact && leaves.isExact;
    const groupBySet = new Map<number, number>();
    const sizes: number[] = [];
    this.groupOf = new Int32Array(count).fill(-1);
    for (let rank = 0; isKnown && rank < count; rank++) {
      const leaf = leafNodes[rank] as number;
      if (roots.sizes[leaf] === 0) continue;
      const set = roots.setOf(leaf);
      const group = groupBySet.get(set) ?? sizes.length;
      if (group === sizes.length) {
        groupBySet.set(set, group);
        sizes.push(0);
      }
      sizes[group] = (sizes[group] as number) + 1;
      this.groupOf[rank] = group;
    }
    const groupCount = sizes.length;
    this.starts = new Int32Array(groupCount + 1);
    sizes.forEach((size, group) => {
      this.starts[group + 1] = (this.starts[group] as number) + size;
    });
    this.next = this.starts.slice(0, groupCount);
    this.members = new Int32Array(this.starts[groupCount] as number);
    this.missing = new Int32Array(groupCount);
    this.touched = new Array<NumberHeap | undefined>(groupCount).fill(undefined);
    this.isOpen = new Uint8Array(count).fill(1);
    this.heap = new GroupHeap(groupCount);
    this.fill(roots);
  }

  get isEmpty(): boolean {
    return this.heap.isEmpty;
  }

  /** Rank of the best leaf; there must be one. */
  first(): number {
    return this.heap.firstRank;
  }

  /** The leaf touches what is numbered. */
  touch(rank: number): void {
    const group = this.groupOf[rank] as number;
    if (group < 0 || this.missing[group] === 0) return;
    let touched = this.touched[group];
    if (touched === undefined) {
      touched = new NumberHeap();
      this.touched[group] = touched;
    }
    touched.push(rank);
    this.update(group);
  }

  /** The leaf is numbered. */
  remove(rank: number): void {
    this.isOpen[rank] = 0;
    const group = this.groupOf[rank] as number;
    if (group >= 0 && this.heap.rankOf(group) === rank) this.update(group);
  }

  /** A root is numbered: the leaves that it leads to need one less. */
  rootIsDone(root: number): void {
    if (this.isEmpty || this.leaves.sizes[root] === 0) return;
    const set = this.leaves.setOf(root);
    const groups = (this.groupsOfSet[set] ??= this.groupsOf(root));
    this.changes += groups.length;
    if (this.changes > CHANGES_MAX) {
      this.heap.clear();
      return;
    }
    for (let n = 0; n < groups.length; n++) {
      const group = groups[n] as number;
      this.missing[group] = (this.missing[group] as number) - 1;
      if (this.missing[group] === 0) this.heap.remove(group);
      else this.heap.change(group, -2);
    }
  }

  private fill(roots: ConnectedEnds): void {
    const cursor = this.next.slice();
    for (let rank = 0; rank < this.leafNodes.length; rank++) {
      const group = this.groupOf[rank] as number;
      if (group < 0) continue;
      const position = cursor[group] as number;
      this.members[position] = rank;
      cursor[group] = position + 1;
      this.missing[group] = roots.sizes[this.leafNodes[rank] as number] as number;
    }
    for (let group = 0; group < this.missing.length; group++) this.update(group);
  }

  private groupsOf(root: number): Int32Array {
    const groups = new Set<number>();
    this.leaves.forEachOf(root, (leaf) => {
      const group = this.groupOf[this.rankOf[leaf] as number] as number;
      if (group >= 0) groups.add(group);
    });
    return groups.size === 0 ? NO_GROUPS : Int32Array.from(groups);
  }

  /** Finds the best leaf of a group again. */
  private update(group: number): void {
    if (this.missing[group] === 0) return;
    const touched = this.touched[group];
    while (touched !== undefined && touched.size > 0 && this.isOpen[touched.first] === 0) {
      touched.pop();
    }
    if (touched !== undefined && touched.size > 0) {
      this.heap.set(group, 2 * (this.missing[group] as number), touched.first);
      return;
    }
    let next = this.next[group] as number;
    const end = this.starts[group + 1] as number;
    while (next < end && this.isOpen[this.members[next] as number] === 0) next++;
    this.next[group] = next;
    if (next === end) this.heap.remove(group);
    else {
      this.heap.set(group, 2 * (this.missing[group] as number) + 1, this.members[next] as number);
    }
  }
}

/** Members of all sets together, 64 MB. */
const MEMBERS_MAX = 2 ** 24;

/** Upper bound of the members that are examined, which takes about a second. */
const WORK_MAX = 2 ** 28;

/** From which ends of the graph each node can be reached. */
export interface ConnectedEnds {
  /** The number of ends that reach the node; for an end itself 0. */
  readonly sizes: Int32Array;
  /**
   * True when sets are exact. Otherwise there were too many members ({@link MEMBERS_MAX},
   * {@link WORK_MAX}); sizes that were not counted are estimates, and there are no members.
   */
  readonly isExact: boolean;
  /** Number of the set of a node that is no end; equal sets have the same number, as a rule. */
  setOf(node: number): number;
  /** Calls back for each end that reaches a node; for an end itself for none. Only when exact. */
  forEachOf(node: number, visit: (end: number) => void): void;
}

/**
 * Finds for each node the ends (nodes without `towards`) that it is connected to by following
 * `towards`. Equal sets are kept once, so that dense graphs cost little. O(nodes + links) plus the
 * members of the sets that differ, up to {@link WORK_MAX}.
 * @param sequence - all nodes, those that `towards` leads to first
 */
export function connectedEnds(towards: Rows, sequence: Int32Array): ConnectedEnds {
  const sets = new SharedSets(sequence.length);
  const sizes = new Int32Array(sequence.length);
  const setOf = new Int32Array(sequence.length);
  for (let at = 0; at < sequence.length; at++) {
    const node = sequence[at] as number;
    setOf[node] =
      rowLength(towards, node) === 0 ? sets.single(node) : sets.union(towards, node, setOf);
  }
  for (let node = 0; node < sequence.length; node++) {
    sizes[node] = rowLength(towards, node) === 0 ? 0 : sets.sizeOf(setOf[node] as number);
  }
  return {
    sizes,
    isExact: !sets.isFull,
    setOf: (node) => setOf[node] as number,
    forEachOf: (node, visit) => {
      if (rowLength(towards, node) > 0) sets.forEachOf(setOf[node] as number, visit);
    },
  };
}

/** Sets of nodes, each kept once. */
class SharedSets {
  /** No space for another set: from here on the sizes are estimates. */
  isFull = false;
  private count = 0;
  private readonly starts: Int32Array;
  private readonly sizes: Int32Array;
  /** Sum of the members' hashes, the same in whatever order they were added. */
  private readonly hashes: Int32Array;
  private readonly setByHash = new Map<number, number>();
  private members = new Int32Array(1024);
  private membersUsed = 0;
  private singles = 0;
  /** Members that were examined. */
  private work = 0;
  /** The union that is being made, and by which of them each set and member was met last. */
  private turn = 0;
  private readonly setMetIn: Int32Array;
  private readonly memberMetIn: Int32Array;
  /** The distinct sets of a union. */
  private readonly parts: Int32Array;

  /** At most one set is made for each node. */
  constructor(nodeCount: number) {
    this.starts = new Int32Array(nodeCount);
    this.sizes = new Int32Array(nodeCount);
    this.hashes = new Int32Array(nodeCount);
    this.setMetIn = new Int32Array(nodeCount);
    this.memberMetIn = new Int32Array(nodeCount);
    this.parts = new Int32Array(nodeCount);
  }

  sizeOf(set: number): number {
    return this.sizes[set] as number;
  }

  forEachOf(set: number, visit: (member: number) => void): void {
    const start = this.starts[set] as number;
    const end = start + (this.sizes[set] as number);
    for (let n = start; n < end; n++) visit(this.members[n] as number);
  }

  single(member: number): number {
    this.singles++;
    if (!this.reserve(1)) this.isFull = true;
    this.members[this.membersUsed] = member;
    return this.keep(1, hash(member));
  }

  /** The union of the sets of the nodes in a row. */
  union(rows: Rows, row: number, setOf: Int32Array): number {
    const count = this.gatherParts(rows, row, setOf);
    let largest = this.parts[0] as number;
    let space = 0;
    for (let n = 0; n < count; n++) {
      const set = this.parts[n] as number;
      space += this.sizes[set] as number;
      if ((this.sizes[set] as number) > (this.sizes[largest] as number)) largest = set;
    }
    if (count === 1) return largest;
    this.work += space;
    if (this.isFull || this.work > WORK_MAX || !this.reserve(space)) return this.estimate(space);
    return this.join(count, largest);
  }

  private gatherParts({ offsets, targets }: Rows, row: number, setOf: Int32Array): number {
    this.turn++;
    const end = offsets[row + 1] as number;
    let count = 0;
    for (let n = offsets[row] as number; n < end; n++) {
      const set = setOf[targets[n] as number] as number;
      if (this.setMetIn[set] === this.turn) continue;
      this.setMetIn[set] = this.turn;
      this.parts[count++] = set;
    }
    return count;
  }

  /** Adds to the largest part what the others have besides; often that is nothing. */
  private join(count: number, largest: number): number {
    const { members, memberMetIn, turn } = this;
    const base = this.starts[largest] as number;
    const baseSize = this.sizes[largest] as number;
    for (let n = base; n < base + baseSize; n++) memberMetIn[members[n] as number] = turn;
    let next = this.membersUsed;
    let sum = this.hashes[largest] as number;
    for (let part = 0; part < count; part++) {
      const set = this.parts[part] as number;
      if (set === largest) continue;
      const start = this.starts[set] as number;
      const end = start + (this.sizes[set] as number);
      for (let n = start; n < end; n++) {
        const member = members[n] as number;
        if (memberMetIn[member] === turn) continue;
        memberMetIn[member] = turn;
        members[next++] = member;
        sum = (sum + hash(member)) | 0;
      }
    }
    if (next === this.membersUsed) return largest;
    const size = next - this.membersUsed + baseSize;
    const equal = this.setByHash.get(sum);
    if (equal !== undefined && this.isSame(equal, size)) return equal;
    members.copyWithin(next, base, base + baseSize);
    const made = this.keep(size, sum);
    this.setByHash.set(sum, made);
    return made;
  }

  /** True when a set has that many members, all met in this turn. */
  private isSame(set: number, size: number): boolean {
    if (this.sizes[set] !== size) return false;
    const start = this.starts[set] as number;
    for (let n = start; n < start + size; n++) {
      if (this.memberMetIn[this.members[n] as number] !== this.turn) return false;
    }
    return true;
  }

  /** No union is larger than all ends together. */
  private estimate(size: number): number {
    this.isFull = true;
    return this.keep(Math.min(size, this.singles), 0);
  }

  private keep(size: number, sum: number): number {
    const set = this.count++;
    this.starts[set] = this.membersUsed;
    this.sizes[set] = size;
    this.hashes[set] = sum;
    if (!this.isFull) this.membersUsed += size;
    return set;
  }

  private reserve(space: number): boolean {
    const needed = this.membersUsed + space;
    if (needed <= this.members.length) return true;
    if (needed > MEMBERS_MAX) return false;
    const grown = new Int32Array(Math.min(MEMBERS_MAX, Math.max(needed, 2 * this.members.length)));
    grown.set(this.members);
    this.members = grown;
    return true;
  }
}

function hash(member: number): number {
  const mixed = Math.imul(member ^ (member >>> 15), 0x2c1b3c6d);
  return Math.imul(mixed ^ (mixed >>> 12), 0x297a2d39);
}

/** The properties of a graph that are computed before anything is numbered. */
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
  /** The number of dependencies of each node that have no number yet. */
  readonly missing: Int32Array;
  /** Nodes with two siblings or more that became runnable since this was emptied last. */
  readonly runnable: number[] = [];
  /** 1 for each leaf without a number. */
  readonly isOpenLeaf: Uint8Array;
  /** 1 for each node that runnable paths lead to. */
  readonly isInRunnableHull: Uint8Array;
  /** Leaves by the number of roots they need; empty when there were too many roots to count. */
  readonly openLeaves: LeafGroups;
  /** The count of nodes without a number that are neighbours of one with a number. */
  reachable = 0;
  /** The count of nodes that have a number. */
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
