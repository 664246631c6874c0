/** A place in a {@link LinkedQueue}. */
export interface Place<T> {
  readonly item: T;
}

interface Link<T> extends Place<T> {
  next: Link<T> | undefined;
  previous: Link<T> | undefined;
  isIn: boolean;
}

/**
 * Items in the order of their coming, each of which can leave from where it stands. All O(1).
 *
 * A `Set` would do the same more slowly: it skips what was deleted at its front at each look at the first
 * item, so that taking 100 000 items one by one takes 12 s (Node 20), which is O(n²).
 */
export class LinkedQueue<T> implements Iterable<T> {
  private head: Link<T> | undefined;
  private tail: Link<T> | undefined;
  private count = 0;

  get size(): number {
    return this.count;
  }

  get first(): Place<T> | undefined {
    return this.head;
  }

  push(item: T): Place<T> {
    const link: Link<T> = { item, next: undefined, previous: this.tail, isIn: true };
    if (this.tail === undefined) this.head = link;
    else this.tail.next = link;
    this.tail = link;
    this.count++;
    return link;
  }

  shift(): T | undefined {
    const { head } = this;
    if (head !== undefined) this.remove(head);
    return head?.item;
  }

  /** @param place - of this line; no-op when its item has left before */
  remove(place: Place<T>): void {
    const link = place as Link<T>;
    if (!link.isIn) return;
    link.isIn = false;
    if (link.previous === undefined) this.head = link.next;
    else link.previous.next = link.next;
    if (link.next === undefined) this.tail = link.previous;
    else link.next.previous = link.previous;
    this.count--;
  }

  *[Symbol.iterator](): Generator<T> {
    for (let link = this.head; link !== undefined; link = link.next) yield link.item;
  }
}
