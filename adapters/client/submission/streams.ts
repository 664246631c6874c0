/** Work on items that come one by one: no more of them are taken than can be worked on. */
import type { Future } from '../future.ts';

/** Items that are under way at once, by default. */
export const IN_FLIGHT = 256;

/** How to work on a stream of items. */
export interface StreamOptions {
  /** Upper bound of the items that were taken and whose results were not. Default 256. */
  readonly inFlight?: number;
}

/** Items that are there, or come by and by. */
export type Items<T> = Iterable<T> | AsyncIterable<T>;

/**
 * The results of items in the order of the items. Takes an item when there is a place for it, whether the results
 * before it have come or not, and takes none while the reader asks for no result. When the reader stops, or something
 * fails, what is under way is cancelled, and the source is closed.
 *
 * @param outcome - what to give the reader of a future that has ended, or the error to end with
 */
export async function* resultsInOrder<Item, Result, Outcome>(
  source: Items<Item>,
  submit: (item: Item) => Future<Result>,
  outcome: (future: Future<Result>) => Promise<Outcome>,
  inFlight: number,
): AsyncGenerator<Outcome, void, undefined> {
  const window = new ItemWindow(source, submit);
  try {
    for (;;) {
      if (window.size < inFlight) window.pull();
      const head = await window.headOrItem();
      if (head === 'item') continue;
      if (head === undefined) return;
      yield await outcome(head);
      window.drop(head);
    }
  } finally {
    await window.close();
  }
}

/** Items that were taken, as futures, and the one that is being taken. */
class ItemWindow<Item, Result> {
  private readonly iterator: Iterator<Item> | AsyncIterator<Item>;
  private readonly futures: Future<Result>[] = [];
  private pulling: Promise<'item'> | undefined;
  private hasEnded = false;
  /** The source, or what was to be submitted, has failed: after the items before it. */
  private failure: { readonly error: unknown } | undefined;

  constructor(
    source: Items<Item>,
    private readonly submit: (item: Item) => Future<Result>,
  ) {
    this.iterator =
      Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]();
  }

  get size(): number {
    return this.futures.length;
  }

  /** Begins to take the next item, unless it has begun. */
  pull(): void {
    if (this.hasEnded || this.pulling !== undefined) return;
    this.pulling = this.take();
  }

  /** The first future, when it has ended; `item` when one was taken before; undefined at the end of all. */
  async headOrItem(): Promise<Future<Result> | 'item' | undefined> {
    const [head] = this.futures;
    if (head === undefined) {
      if (this.pulling === undefined && this.failure !== undefined) throw this.failure.error;
      return this.pulling;
    }
    if (head.done || this.pulling === undefined) {
      await head.settled();
      return head;
    }
    return Promise.race([this.pulling, head.settled().then(() => head)]);
  }

  drop(head: Future<Result>): void {
    this.futures.shift();
    head.release();
  }

  async close(): Promise<void> {
    const hasLeft = !this.hasEnded;
    this.hasEnded = true;
    for (const future of this.futures) {
      if (!future.done) future.cancel({ reason: 'its stream was closed' });
      future.release();
    }
    if (hasLeft) await this.iterator.return?.();
  }

  /** Never rejects. */
  private async take(): Promise<'item'> {
    try {
      const next = await this.iterator.next();
      if (next.done === true) this.hasEnded = true;
      else if (!this.hasEnded) this.futures.push(this.submit(next.value));
    } catch (error) {
      this.hasEnded = true;
      this.failure = { error };
    }
    this.pulling = undefined;
    return 'item';
  }
}
