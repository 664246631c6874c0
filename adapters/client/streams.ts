import { type Clock, type Timer, YardmasterError } from '../../core/api/index.ts';
import { CLOCK, DURATION, oneOf, type Rules } from '../../core/shared/schema.ts';
import { inBackground } from '../../core/shared/timers.ts';
import { countOf } from '../../core/util/values.ts';
import { SystemClock } from '../clocks/index.ts';
import type { ChunkSize, Outcome } from './chunks.ts';
import { type Future, holdingOfFuture, listOfFutures } from './future.ts';
import { checkOptions } from './options.ts';

// Work on items that come one by one: no more of them are taken than can be worked on.

/** Items that are under way at once, by default. */
export const IN_FLIGHT = 256;

/** The options of work on a stream of items. */
export interface StreamOptions {
  /** Upper bound of the tasks whose results were not taken. Default 256. */
  readonly inFlight?: number;
  /**
   * Items that make one task: a number, or as many as take about 10 ms. Their calls run one after the other; errors and retries
   * are those of an item. Default: each item is a task.
   */
  readonly chunk?: number | 'auto';
  /** `return` gives the error of an item in the place of its result. Default `raise`: it ends the stream. */
  readonly errors?: 'raise' | 'return';
}

/** The options with which a `map` over sequences makes tasks of many items, and gives results, not futures. */
export type ChunkOptions = StreamOptions & Required<Pick<StreamOptions, 'chunk'>>;

/** The type of one result of a stream. */
export type StreamedBy<Options, Result> = Options extends { readonly errors: 'return' }
  ? Awaited<Result> | Error
  : Awaited<Result>;

/** Items that are there, or come by and by. */
export type Items<T> = Iterable<T> | AsyncIterable<T>;

/** The tasks of items, and the outcomes that these tasks have. */
export interface StreamCalls<Item> {
  readonly size: ChunkSize;
  /** True when an item is to share a task with no other. */
  isAlone(item: Item): boolean;
  /** Calls back, with the error, when no task can be submitted any more, or at once. @returns what ends that */
  whenEnded(listener: (error: unknown) => void): () => void;
  submit(items: readonly Item[]): Future<unknown>;
  /** Never rejects. */
  outcomes(future: Future<unknown>, count: number, first: number): Promise<readonly Outcome[]>;
}

/**
 * The outcomes of items in the order of the items. Takes items when there is a place for a task, whether the results
 * before them have come or not, and takes none while the reader asks for no result. When the reader stops, or something
 * fails, what is under way is cancelled, and the source is closed.
 */
export async function* resultsInOrder<Item>(
  source: Items<Item>,
  calls: StreamCalls<Item>,
  { inFlight, errors }: { readonly inFlight: number; readonly errors: 'raise' | 'return' },
): AsyncGenerator<unknown, void, undefined> {
  const window = new ItemWindow(source, calls);
  try {
    for (;;) {
      if (window.size < inFlight) window.pull();
      const head = await window.headOrTask();
      if (head === 'task') continue;
      if (head === undefined) return;
      const outcomes = await calls.outcomes(head.future, head.count, head.first);
      for (const { value, error } of outcomes) {
        if (error !== undefined && errors === 'raise') throw error;
        yield error ?? value;
      }
      window.drop();
    }
  } finally {
    await window.close();
  }
}

/** A task for items that were taken. */
interface Taken {
  readonly future: Future<unknown>;
  readonly count: number;
  /** The place of the first item among all. */
  readonly first: number;
}

/** Tasks of items that were taken, and the items that are being taken. */
class ItemWindow<Item> {
  private readonly iterator: Iterator<Item> | AsyncIterator<Item>;
  private readonly isAsync: boolean;
  private readonly tasks: Taken[] = [];
  private items: Item[] = [];
  /** The item that was taken last is to share its task with no other. */
  private isAlone = false;
  private count = 0;
  private pulling: Promise<'task'> | undefined;
  private hasEnded = false;
  private readonly unlisten: () => void;
  /** The source has given its last item or failed, unless it is being asked. */
  private isSpent = false;
  private isAsked = false;
  private stopPulling: () => void = () => undefined;
  /** The source, or what was to be submitted, has failed: after the items before it. */
  private failure: { readonly error: unknown } | undefined;

  constructor(
    source: Items<Item>,
    private readonly calls: StreamCalls<Item>,
  ) {
    const items = Object(source) as Items<Item>; // A text is a sequence as well, of which one cannot ask what is in it.
    this.isAsync = Symbol.asyncIterator in items;
    this.iterator =
      Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]();
    this.unlisten = calls.whenEnded((error) => this.onEnded(error));
  }

  get size(): number {
    return this.tasks.length;
  }

  /** Begins to take the items of the next task, unless it has begun. */
  pull(): void {
    if (this.hasEnded || this.pulling !== undefined) return;
    this.pulling = new Promise<void>((resolve) => {
      this.stopPulling = resolve;
      this.take().then(resolve, resolve);
    }).then(() => {
      this.pulling = undefined;
      return 'task';
    });
  }

  /** The first task, when it has ended; `task` when one was made before; undefined at the end of all. */
  async headOrTask(): Promise<Taken | 'task' | undefined> {
    const [head] = this.tasks;
    if (head === undefined) {
      if (this.pulling === undefined && this.failure !== undefined) throw this.failure.error;
      return this.pulling;
    }
    const { future } = head;
    if (future.done || this.pulling === undefined) {
      await future.settled();
      return head;
    }
    return Promise.race([this.pulling, future.settled().then(() => head)]);
  }

  drop(): void {
    this.tasks.shift()?.future.release();
    // The source may wait for the reader, and the reader for these.
    if (this.isIdle()) this.submit();
  }

  async close(): Promise<void> {
    this.hasEnded = true;
    this.unlisten();
    for (const { future } of this.tasks) {
      if (!future.done) future.cancel({ reason: 'its stream was closed' });
      future.release();
    }
    if (this.isSpent && !this.isAsked) return;
    const closed = this.iterator.return?.();
    // A generator answers when the item has come that it is asked for already, which may be never.
    if (!this.isAsked) await closed;
    else inBackground(Promise.resolve(closed), 'the source of a stream could not be closed');
  }

  /** Takes items until they make a task, or none is left. Never rejects. */
  private async take(): Promise<void> {
    const made = this.count;
    try {
      while (this.count === made) {
        if (this.isAlone) {
          this.submit();
          return;
        }
        this.isSpent = true; // Unless it gives an item.
        const step = this.iterator.next();
        this.isAsked = this.isAsync;
        const next = this.isAsync ? await step : (step as IteratorResult<Item>);
        this.isAsked = false;
        this.isSpent = next.done === true;
        if (this.hasEnded) return;
        if (next.done === true) this.hasEnded = true;
        else {
          const isAlone = this.calls.isAlone(next.value);
          if (isAlone) this.submit(); // The items before it.
          this.items.push(next.value);
          this.isAlone = isAlone;
        }
        const isFull = this.items.length >= this.calls.size.count;
        const isDue = isFull || this.hasEnded || this.isIdle();
        if (isDue && this.count === made) this.submit();
        if (this.hasEnded) return;
      }
    } catch (error) {
      this.isAsked = false;
      this.end(error);
    }
  }

  private onEnded(error: unknown): void {
    if (this.hasEnded) return;
    this.end(error);
    this.stopPulling();
  }

  private end(error: unknown): void {
    this.hasEnded = true;
    this.failure = { error };
    try {
      this.submit();
    } catch (refused) {
      this.failure = { error: refused };
    }
  }

  /** True when items wait for others, which may be long in coming, and nothing else is under way. */
  private isIdle(): boolean {
    return this.isAsync && this.calls.size.isMeasured && this.tasks.length === 0;
  }

  private submit(): void {
    const { items } = this;
    if (items.length === 0) return;
    this.items = [];
    this.isAlone = false;
    const first = this.count;
    this.count += items.length;
    this.tasks.push({ future: this.calls.submit(items), count: items.length, first });
  }
}

/** The options of a wait. */
export interface WaitOptions {
  /** Milliseconds. Default: no limit. */
  readonly timeoutMs?: number;
  /** `first`: as soon as one of them is done. Default `all`. */
  readonly returnWhen?: 'all' | 'first';
  readonly clock?: Clock;
}

const WAIT_RULES: Rules<WaitOptions> = {
  ...{ timeoutMs: DURATION, returnWhen: oneOf('all', 'first'), clock: CLOCK },
};

/** Futures that are done (with a result, an error or a cancellation), and those that are not. */
export interface WaitResult<F> {
  readonly done: F[];
  readonly notDone: F[];
}

/**
 * Waits for futures to be done, whatever their ends are; fetches nothing.
 * @throws YardmasterError `ERR_TIMEOUT`
 */
export async function wait<F extends Future<unknown>>(
  futures: Iterable<F>,
  options: WaitOptions = {},
): Promise<WaitResult<F>> {
  checkOptions('wait', options, WAIT_RULES);
  const { timeoutMs, returnWhen = 'all', clock = new SystemClock() } = options;
  const waiting = listOfFutures('wait', futures);
  let left = returnWhen === 'all' ? waiting.length : Math.min(1, waiting.length);
  let timer: Timer | undefined;
  let onDone: (() => void) | undefined;
  try {
    const enough = new Promise<void>((resolve, reject) => {
      if (left === 0) resolve();
      onDone = () => {
        left--;
        if (left <= 0) resolve();
      };
      for (const future of waiting) holdingOfFuture(future).entry.onSettled(onDone);
      if (timeoutMs === undefined || !Number.isFinite(timeoutMs)) return;
      timer = clock.setTimer(timeoutMs, () => reject(waitedTooLong(waiting, timeoutMs)));
    });
    await (left <= 0 ? enough : pausing(waiting[0], enough));
  } finally {
    timer?.cancel();
    for (const future of onDone === undefined ? [] : waiting) {
      holdingOfFuture(future).entry.withdraw(onDone as () => void);
    }
  }
  return {
    done: waiting.filter((future) => future.done),
    notDone: waiting.filter((future) => !future.done),
  };
}

/** Inside a task another one may run meanwhile. */
function pausing<T>(future: Future<unknown> | undefined, wait: Promise<T>): Promise<T> {
  return future === undefined ? wait : holdingOfFuture(future).owner.waiting(wait);
}

function waitedTooLong(waiting: readonly Future<unknown>[], timeoutMs: number): YardmasterError {
  const notDone = waiting.filter((future) => !future.done).length;
  return new YardmasterError(
    'ERR_TIMEOUT',
    `${notDone} of ${countOf(waiting.length, 'future')} not done after ${timeoutMs} ms`,
    { timeoutMs, notDone },
  );
}

/** The futures in the order in which they get done, to which others can be added meanwhile. */
export interface Completions<F> extends AsyncGenerator<F, void, undefined> {
  /**
   * Those that were added before are left out.
   * @throws YardmasterError `ERR_GRAPH_INVALID` when the last future was given and the loop has ended
   */
  add(futures: Iterable<F>): void;
}

/**
 * The futures in the order in which they get done: `for await (const future of asCompleted(all))`.
 * Never fails by itself: ask each future for its result. Each future comes once.
 *
 * @param options - `cancelled: 'skip'` leaves out futures that were cancelled or released. Default `give`: their
 *   `status` is `cancelled`
 */
export function asCompleted<F extends Future<unknown>>(
  futures: Iterable<F>,
  options: { readonly cancelled?: 'give' | 'skip' } = {},
): Completions<F> {
  checkOptions('asCompleted', options, { cancelled: oneOf('give', 'skip') });
  const queue = new CompletionQueue<F>();
  queue.add(futures);
  const add = queue.add.bind(queue);
  return Object.assign(queue.take(options.cancelled ?? 'give'), { add });
}

class CompletionQueue<F extends Future<unknown>> {
  /** Keeps the futures alive until they are handed out, and no longer. */
  private readonly waiting = new Map<F, () => void>();
  private readonly added = new WeakSet<F>();
  private readonly done: F[] = [];
  private hasEnded = false;
  private wake: () => void = () => undefined;

  add(futures: Iterable<F>): void {
    const list = listOfFutures('asCompleted', futures);
    if (this.hasEnded) {
      throw new YardmasterError(
        'ERR_GRAPH_INVALID',
        'this asCompleted has ended; add futures before the loop asks for the one after the last, or call it again',
      );
    }
    for (const future of list) {
      if (this.added.has(future)) continue;
      this.added.add(future);
      const onDone = (): void => {
        this.done.push(future);
        this.wake();
      };
      this.waiting.set(future, onDone);
      holdingOfFuture(future).entry.onSettled(onDone);
    }
  }

  async *take(cancelled: 'give' | 'skip'): AsyncGenerator<F, void, undefined> {
    const { waiting, done } = this;
    try {
      while (waiting.size > 0) {
        if (done.length === 0) {
          const [first] = waiting.keys();
          await pausing(first, new Promise<void>((resolve) => (this.wake = resolve)));
        }
        const next = done.shift() as F;
        waiting.delete(next);
        if (cancelled === 'give' || next.status !== 'cancelled') yield next;
      }
    } finally {
      this.hasEnded = true;
      for (const [future, onDone] of waiting) holdingOfFuture(future).entry.withdraw(onDone);
    }
  }
}

/** The options of `race` and `any`. */
export interface FirstOptions {
  /** `cancel`: gives up the others as soon as the answer is there. Default `keep`. */
  readonly others?: 'keep' | 'cancel';
}

const FIRST_RULES: Rules<FirstOptions> = { others: oneOf('keep', 'cancel') };

/**
 * The result of the first future that has one (`any`), or that is done (`race`).
 * @throws AggregateError of `any`, with the error of each, when there is no result
 */
export async function firstResult(
  call: 'race' | 'any',
  futures: Iterable<Future<unknown>>,
  options: FirstOptions,
): Promise<unknown> {
  const { others } = checkOptions(`client.${call}`, options, FIRST_RULES);
  const list = listOfFutures(call, futures);
  const errors = new Map<Future<unknown>, unknown>();
  try {
    for await (const future of asCompleted(list)) {
      try {
        return await future.result();
      } catch (error) {
        if (call === 'race') throw error;
        errors.set(future, error);
      }
    }
  } finally {
    if (others === 'cancel') {
      for (const future of list) if (!future.done) future.cancel({ reason: `it lost a ${call}` });
    }
  }
  if (call === 'any') {
    const message = `none of ${countOf(list.length, 'future')} has a result`;
    throw new AggregateError(
      list.map((future) => errors.get(future)),
      message,
    );
  }
  throw new YardmasterError('ERR_GRAPH_INVALID', 'race wants at least one future, got none');
}
