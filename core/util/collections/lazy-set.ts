const NOTHING: readonly never[] = [];

/**
 * A set that has no member or one, as a rule: then it costs two fields, where a JavaScript `Set` costs 150 bytes.
 * Iterates in insertion order. Members may be deleted meanwhile; one that is added meanwhile may be left out.
 */
export class LazySet<T extends object | string | number> implements Iterable<T> {
  /** The only member, as long as there was never a second one. */
  private only: T | undefined = undefined;
  private members: Set<T> | undefined = undefined;

  get size(): number {
    if (this.members !== undefined) return this.members.size;
    return this.only === undefined ? 0 : 1;
  }

  has(item: T): boolean {
    return this.members === undefined ? this.only === item : this.members.has(item);
  }

  add(item: T): this {
    const { only } = this;
    if (this.members !== undefined) this.members.add(item);
    else if (only === undefined) this.only = item;
    else if (only !== item) {
      this.members = new Set<T>().add(only).add(item);
      this.only = undefined;
    }
    return this;
  }

  /** Whether it was there. */
  delete(item: T): boolean {
    if (this.members !== undefined) return this.members.delete(item);
    if (this.only !== item) return false;
    this.only = undefined;
    return true;
  }

  clear(): void {
    this.only = undefined;
    this.members = undefined;
  }

  [Symbol.iterator](): IterableIterator<T> {
    if (this.members !== undefined) return this.members[Symbol.iterator]();
    return (this.only === undefined ? NOTHING : [this.only])[Symbol.iterator]();
  }
}
