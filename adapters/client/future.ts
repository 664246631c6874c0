import { inspect } from 'node:util';
import { YardmasterError } from '../../core/api/index.ts';
import { type FutureStatus, type KeyEntry, LeakTracker, type Watched } from './entry.ts';

/** The options of a cancellation. */
export interface CancelOptions {
  /** Also when other futures or clients want the result: these are cancelled too. Default false. */
  readonly force?: boolean;
  /** The reason, in short; part of the error that waiting callers receive, and its field `reason`. */
  readonly reason?: string;
  /** More for people; part of that error as well, and its field `message`. */
  readonly message?: string;
  /**
   * Milliseconds that a run has to stop before its thread is ended, where threads are ended at all.
   * Default: `worker.killGrace`.
   */
  readonly killTimeoutMs?: number;
}

/** The methods of a client that its futures use. */
export interface FutureOwner {
  readonly id: string;
  resultOf(entry: KeyEntry): Promise<unknown>;
  whenSettled(entry: KeyEntry): Promise<void>;
  cancelEntries(entries: readonly KeyEntry[], options: CancelOptions): void;
  releaseEntry(entry: KeyEntry): void;
  /** One more want of the same key. */
  cloneEntry(entry: KeyEntry): KeyEntry;
  /** Waits for the cluster: a task lets another one run meanwhile. */
  waiting<T>(wait: Promise<T>): Promise<T>;
}

interface Holding {
  readonly owner: FutureOwner;
  readonly entry: KeyEntry;
}

/**
 * Releases the keys of futures that have become unreachable. What it holds is weak: a client leads to what it was
 * called with, and the error with which it ended to its callers, which may keep the future.
 */
const abandoned = new LeakTracker({
  hold: ({ owner, entry }: Holding) => ({ owner: new WeakRef(owner), entry: new WeakRef(entry) }),
  onAbandoned: ({ owner, entry }) => {
    const held = entry.deref();
    if (held !== undefined) owner.deref()?.releaseEntry(held);
  },
});

let holdingOf: (future: Future<unknown>) => Holding & { readonly isReleased: boolean };
let entryOf: (future: Future<unknown>) => KeyEntry;

/**
 * The result of a task, wherever it is and whenever it comes.
 *
 * The cluster keeps the result while a future of it exists: until `release()`, or until the future
 * is garbage. A future is not a promise, so that an async function can return one; ask `result()`.
 */
export class Future<T> {
  readonly #owner: FutureOwner;
  readonly #entry: KeyEntry;
  readonly #watched: Watched<Holding>;
  #released = false;

  static {
    entryOf = (future) => future.#entry;
    holdingOf = (future) => {
      const value: unknown = future;
      if (typeof value !== 'object' || value === null || !(#owner in value))
        throw notAFuture(future);
      return { owner: future.#owner, entry: future.#entry, isReleased: future.#released };
    };
  }

  /** @internal Clients make futures. */
  constructor(owner: FutureOwner, entry: KeyEntry) {
    this.#owner = owner;
    this.#entry = entry;
    entry.references++;
    this.#watched = abandoned.watch(this, { owner, entry });
  }

  // No property of its own: where a future cannot be, it would pass for an object with a key.
  get key(): string {
    return this.#entry.key;
  }

  get status(): FutureStatus {
    return this.#entry.status;
  }

  /** True when it is finished, failed or cancelled. */
  get done(): boolean {
    return this.#entry.isSettled;
  }

  /**
   * Waits for the result and fetches it; each call fetches anew.
   * @throws RemoteError what the task threw, or the task that it depends on
   * @throws YardmasterError `ERR_CANCELLED`; `ERR_CLOSED` when the scheduler or the client is gone
   */
  result(): Promise<T> {
    return this.#owner.resultOf(this.#entry) as Promise<T>;
  }

  /** Waits for the end; the error that `result()` would throw, or undefined when there is a result. */
  async error(): Promise<Error | undefined> {
    await this.settled();
    return this.#entry.error();
  }

  /** Waits for the end, whatever it is. Never rejects. */
  settled(): Promise<void> {
    return this.#owner.whenSettled(this.#entry);
  }

  /** Gives the task up. It goes on while another future of the same key wants it, unless `force` is given. */
  cancel(options: CancelOptions = {}): void {
    this.#owner.cancelEntries([this.#entry], options);
  }

  /** Says that this future is not needed any more. The last one of a key lets its result go. */
  release(): void {
    if (this.#released) return;
    this.#released = true;
    abandoned.unwatch(this.#watched);
    this.#owner.releaseEntry(this.#entry);
  }

  /**
   * Another future of the same result, which is released for itself.
   * @throws YardmasterError `ERR_CANCELLED` when this one was released
   */
  clone(): Future<T> {
    if (this.#released) {
      const message = `the future of "${this.key}" was released and cannot be cloned`;
      throw new YardmasterError('ERR_CANCELLED', message, { key: this.key });
    }
    const entry = this.#owner.cloneEntry(this.#entry);
    return new Future<T>(this.#owner, entry);
  }

  toString(): string {
    return `<Future ${this.key} ${this.status}>`;
  }

  [inspect.custom](): string {
    return this.toString();
  }
}

function notAFuture(value: unknown): YardmasterError {
  const got = inspect(value, { depth: 0 });
  return new YardmasterError('ERR_GRAPH_INVALID', `a future is wanted here, got ${got}`);
}

/** @throws YardmasterError `ERR_GRAPH_INVALID` when it is not iterable, or has something else */
export function listOfFutures<F extends Future<unknown>>(call: string, futures: Iterable<F>): F[] {
  const isIterable =
    typeof futures === 'object' && (futures as unknown) !== null && Symbol.iterator in futures;
  if (isIterable) {
    const list = [...futures];
    for (const future of list) holdingOf(future);
    return list;
  }
  const got = inspect(futures, { depth: 0 });
  throw new YardmasterError('ERR_GRAPH_INVALID', `${call} wants a list of futures, got ${got}`);
}

/** The entry behind a future, for the client alone. */
export function holdingOfFuture(
  future: Future<unknown>,
): Holding & { readonly isReleased: boolean } {
  return holdingOf(future);
}

/** Of a future that a client has made; allocates nothing. */
export function entryOfFuture(future: Future<unknown>): KeyEntry {
  return entryOf(future);
}
