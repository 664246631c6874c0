import { rowLength, type Rows } from './graph-index.ts';

/** Members of all sets together, 64 MB. */
const MEMBERS_MAX = 2 ** 24;

/** Upper bound of the members that are examined, which takes about a second. */
const WORK_MAX = 2 ** 28;

/** From which ends of the graph each node can be reached. */
export interface ConnectedEnds {
  /** How many ends reach the node; for an end itself 0. */
  readonly sizes: Int32Array;
  /**
   * Whether sets are exact. Otherwise there were too many members ({@link MEMBERS_MAX},
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

  /** Whether a set has that many members, all met in this turn. */
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
