/** What a {@link RankedSet} keeps: a dense rank that is unique among all possible members. */
export interface Ranked {
  readonly rank: number;
}

/**
 * A set whose members are iterated in ascending rank, whatever the order in which they came in.
 *
 * One bit per rank: membership is O(1), iteration is O(ranks / 32), and the k-th member is found in
 * O(ranks / 1024). The owner of the ranks must {@link rebuild} the set when ranks move.
 */
export class RankedSet<T extends Ranked> implements Iterable<T> {
  private words: number[] = [];
  /** How many members there are in each block of 32 words. */
  private blocks: number[] = [];
  private count = 0;

  /** @param byRank - the owner's table of all possible members, indexed by rank. */
  constructor(private readonly byRank: readonly T[]) {}

  get size(): number {
    return this.count;
  }

  has(member: T): boolean {
    return ((this.words[member.rank >>> 5] ?? 0) & (1 << (member.rank & 31))) !== 0;
  }

  add(member: T): void {
    const word = member.rank >>> 5;
    while (this.words.length <= word) this.words.push(0);
    while (this.blocks.length <= word >>> 5) this.blocks.push(0);
    const before = this.words[word] as number;
    const after = before | (1 << (member.rank & 31));
    if (after === before) return;
    this.words[word] = after;
    (this.blocks[word >>> 5] as number)++;
    this.count++;
  }

  delete(member: T): boolean {
    const word = member.rank >>> 5;
    const before = this.words[word];
    if (before === undefined) return false;
    const after = before & ~(1 << (member.rank & 31));
    if (after === before) return false;
    this.words[word] = after;
    (this.blocks[word >>> 5] as number)--;
    this.count--;
    return true;
  }

  clear(): void {
    this.words.length = 0;
    this.blocks.length = 0;
    this.count = 0;
  }

  /** The k-th member in ascending rank, from 0. */
  at(k: number): T | undefined {
    let left = k;
    let block = 0;
    while (block < this.blocks.length && left >= (this.blocks[block] as number)) {
      left -= this.blocks[block++] as number;
    }
    for (let word = block << 5; word < this.words.length; word++) {
      let bits = this.words[word] as number;
      const inWord = popCount(bits);
      if (left >= inWord) {
        left -= inWord;
        continue;
      }
      while (left-- > 0) bits &= bits - 1;
      return this.byRank[(word << 5) + trailingZeros(bits)];
    }
    return undefined;
  }

  /** Members by ascending rank, written into a reused array. */
  into(target: T[]): T[] {
    target.length = 0;
    for (let word = 0; word < this.words.length; word++) {
      let bits = this.words[word] as number;
      while (bits !== 0) {
        target.push(this.byRank[(word << 5) + trailingZeros(bits)] as T);
        bits &= bits - 1;
      }
    }
    return target;
  }

  [Symbol.iterator](): IterableIterator<T> {
    return this.into([])[Symbol.iterator]();
  }

  /** Sets the members anew after ranks have moved. */
  rebuild(members: Iterable<T>): void {
    this.clear();
    for (const member of members) this.add(member);
  }
}

function trailingZeros(bits: number): number {
  return 31 - Math.clz32(bits & -bits);
}

function popCount(bits: number): number {
  let n = bits - ((bits >>> 1) & 0x55555555);
  n = (n & 0x33333333) + ((n >>> 2) & 0x33333333);
  return (((n + (n >>> 4)) & 0x0f0f0f0f) * 0x01010101) >>> 24;
}
