import type { ConnectedEnds } from './connected-ends.ts';
import { GroupHeap } from './group-heap.ts';
import { NumberHeap } from './number-heap.ts';

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
export class LeafGroups {
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
