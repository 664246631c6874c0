import { type Clock, type Timer, YardmasterError } from '../../core/api/index.ts';
import type { DisconnectCleanup } from './scope.ts';

/** The services that all lines share. */
export interface WaitScope {
  readonly clock: Clock;
  readonly budget: Budget;
  readonly departures: DisconnectCleanup;
  /** Every queue with waiting calls, which fail when the plugin closes. */
  readonly busyLines: Set<{ fail(error: Error): void }>;
}

export interface WaitRequest {
  readonly client: string;
  /** Infinity: for as long as the client is there. 0: not at all. */
  readonly timeoutMs: number;
  /** For people: `the lock "a"`. */
  readonly what: string;
}

interface Waiting<T, Detail> {
  readonly client: string;
  readonly detail: Detail;
  readonly resolve: (value: T | PromiseLike<T>) => void;
  readonly reject: (error: Error) => void;
  readonly timer: Timer | undefined;
  readonly withdraw: () => void;
  readonly nbytes: number;
}

/**
 * Calls that wait for the same, first come, first served. Each ends: served, late, its client gone,
 * or failed.
 */
export class WaitQueue<T, Detail = undefined> {
  private readonly line = new LinkedQueue<Waiting<T, Detail>>();

  /** @param onGone - called when a wait ended without having been served */
  constructor(
    private readonly scope: WaitScope,
    private readonly onGone: (detail: Detail) => void,
  ) {}

  get size(): number {
    return this.line.size;
  }

  /** The details of the next call. */
  get next(): { readonly detail: Detail } | undefined {
    return this.line.first?.item;
  }

  /**
   * @throws YardmasterError `ERR_TIMEOUT` (also rejects with it), `ERR_COORDINATION` when the space
   *   is used up
   */
  wait({ client, timeoutMs, what }: WaitRequest, detail: Detail): Promise<T> {
    const late = (): YardmasterError =>
      new YardmasterError('ERR_TIMEOUT', `${what} did not come within ${timeoutMs} ms`, {
        what,
        timeoutMs,
      });
    if (timeoutMs <= 0) throw late();
    const { clock, budget, departures } = this.scope;
    const nbytes = entryBytes(what);
    budget.charge(nbytes, `a call that waits for ${what}`);
    return new Promise<T>((resolve, reject) => {
      const leave = (error: Error): void => {
        this.end(place);
        reject(error);
        this.onGone(detail);
      };
      const timer = Number.isFinite(timeoutMs)
        ? clock.setTimer(timeoutMs, () => leave(late()))
        : undefined;
      const withdraw = departures.add(client, leave);
      const waiting = { client, detail, resolve, reject, timer, withdraw, nbytes };
      const place: Place<Waiting<T, Detail>> = this.line.push(waiting);
      this.scope.busyLines.add(this);
    });
  }

  /**
   * Ends the wait of the first call, if there is one.
   * @param make - makes the result of the call, after the call has left the queue, so that its
   *   space is free again. The call fails with what this throws
   */
  serve(make: (client: string) => T): void {
    const waiting = this.shift();
    if (waiting === undefined) return;
    try {
      waiting.resolve(make(waiting.client));
    } catch (error) {
      waiting.reject(error as Error);
    }
  }

  /** Ends all. */
  fail(error: Error): void {
    for (let waiting = this.shift(); waiting !== undefined; waiting = this.shift()) {
      waiting.reject(error);
      this.onGone(waiting.detail);
    }
  }

  private shift(): Waiting<T, Detail> | undefined {
    const place = this.line.first;
    if (place !== undefined) this.end(place);
    return place?.item;
  }

  private end(place: Place<Waiting<T, Detail>>): void {
    const { timer, withdraw, nbytes } = place.item;
    this.line.remove(place);
    timer?.cancel();
    withdraw();
    this.scope.budget.free(nbytes);
    if (this.line.size === 0) this.scope.busyLines.delete(this);
  }
}

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

/** The estimated size of one entry (a name, an item, a waiting call) beside its texts and values. */
const ENTRY_BYTES = 256;

/** Bytes that an entry with these texts occupies, roughly. */
export function entryBytes(...texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + 2 * text.length, ENTRY_BYTES);
}

/** Memory that all of coordination may occupy together. */
export class Budget {
  private used = 0;

  constructor(private readonly limitBytes: number) {}

  /**
   * @param what - for people: `an item for the queue "q"`
   * @throws YardmasterError `ERR_COORDINATION` when the limit would be exceeded; then nothing is
   *   charged
   */
  charge(nbytes: number, what: string): void {
    if (this.used + nbytes > this.limitBytes) {
      throw refused(
        'full',
        `there is no space for ${what} (${nbytes} bytes): coordination uses ${this.used} of ${this.limitBytes} bytes on the scheduler; put large values into tasks and hand their futures over, or raise scheduler.coordination.memoryLimit`,
        { nbytes, usedBytes: this.used, limitBytes: this.limitBytes },
      );
    }
    this.used += nbytes;
  }

  free(nbytes: number): void {
    this.used -= nbytes;
  }
}

/** The reason why a command failed; `data.reason` of the error. */
type Reason =
  'busy' | 'deleted' | 'exists' | 'full' | 'mismatch' | 'not-a-client' | 'not-held' | 'unknown';

/** The error of a call that is in order but cannot be granted. */
export function refused(
  reason: Reason,
  message: string,
  data: Readonly<Record<string, unknown>>,
): YardmasterError {
  return new YardmasterError('ERR_COORDINATION', message, { ...data, reason });
}

/** The clients that have used something by its name, and are still there. */
export class Members {
  private readonly withdrawals = new Map<string, () => void>();

  constructor(
    private readonly departures: DisconnectCleanup,
    private readonly onEmpty: () => void,
  ) {}

  get size(): number {
    return this.withdrawals.size;
  }

  add(client: string): void {
    if (this.withdrawals.has(client)) return;
    const withdraw = this.departures.add(client, () => {
      this.withdrawals.delete(client);
      if (this.size === 0) this.onEmpty();
    });
    this.withdrawals.set(client, withdraw);
  }

  clear(): void {
    for (const withdraw of this.withdrawals.values()) withdraw();
    this.withdrawals.clear();
  }
}
