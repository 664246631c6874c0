import { type Clock, type Timer, YardmasterError } from '../../core/api/index.ts';
import { type Budget, entryBytes } from './budget.ts';
import type { DisconnectCleanup } from './disconnect-cleanup.ts';
import { LinkedQueue, type Place } from './linked-queue.ts';

/** What all lines share. */
export interface WaitScope {
  readonly clock: Clock;
  readonly budget: Budget;
  readonly departures: DisconnectCleanup;
  /** Every queue with waiting calls, which fail when the plugin closes. */
  readonly busyLines: Set<{ fail(error: Error): void }>;
}

/** A waiting call. */
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
