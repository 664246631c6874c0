import type { Timer } from '../../core/api/index.ts';
import { setAwakeTimer } from '../../core/shared/awake-timer.ts';
import { entryBytes } from './budget.ts';
import { refused } from './errors.ts';
import { LinkedQueue, type Place } from './linked-queue.ts';
import type { CoordinationScope } from './scope.ts';

/** A lease as its holder gets it. */
export interface GrantedLease {
  readonly lease: number;
  /** A lease has to be renewed within this many milliseconds, again and again. */
  readonly leaseTimeoutMs: number;
}

interface Lease {
  readonly id: number;
  readonly client: string;
  /** For people: `the lock "a"`. */
  readonly what: string;
  readonly onEnd: () => void;
  readonly withdraw: () => void;
  expiresMs: number;
  place: Place<Lease> | undefined;
}

/**
 * Everything that is held for a time. A lease ends when it is released, when its holder is gone, or
 * when its holder has not renewed it in time. Time in which the scheduler stood still does not count.
 */
export class Leases {
  private readonly byId = new Map<number, Lease>();
  /** The one that expires first is first. */
  private readonly byAge = new LinkedQueue<Lease>();
  private granted = 0;
  private timer: Timer | undefined;

  constructor(private readonly scope: CoordinationScope) {}

  /**
   * @param onEnd - called when the lease is no longer held, for any reason
   * @throws YardmasterError `ERR_COORDINATION` when the space is used up
   */
  grant(client: string, what: string, onEnd: () => void): GrantedLease {
    const { budget, departures, leaseTimeoutMs } = this.scope;
    budget.charge(entryBytes(what), `a lease of ${what}`);
    const id = ++this.granted;
    const withdraw = departures.add(client, () => this.end(lease));
    const lease: Lease = {
      id,
      client,
      what,
      onEnd,
      withdraw,
      expiresMs: 0,
      place: undefined,
    };
    this.byId.set(id, lease);
    this.touch(lease);
    return { lease: id, leaseTimeoutMs };
  }

  /** Returns those that the client does not hold (any more). */
  renew(client: string, ids: readonly number[]): number[] {
    const lost: number[] = [];
    for (const id of ids) {
      const lease = this.byId.get(id);
      if (lease?.client === client) this.touch(lease);
      else lost.push(id);
    }
    return lost;
  }

  /** @throws YardmasterError `ERR_COORDINATION` when the client does not hold it */
  release(client: string, id: number): void {
    const lease = this.byId.get(id);
    if (lease?.client !== client) {
      throw refused(
        'not-held',
        `the client ${client} does not hold the lease ${id}: it was released, or had not been renewed for ${this.scope.leaseTimeoutMs} ms and was given to the next`,
        { lease: id, client },
      );
    }
    this.end(lease);
  }

  close(): void {
    this.timer?.cancel();
    this.timer = undefined;
    for (const { withdraw } of this.byId.values()) withdraw();
    this.byId.clear();
  }

  private touch(lease: Lease): void {
    const { clock, leaseTimeoutMs } = this.scope;
    if (lease.place !== undefined) this.byAge.remove(lease.place);
    lease.place = this.byAge.push(lease);
    lease.expiresMs = clock.nowMs() + leaseTimeoutMs;
    this.arm();
  }

  private end(lease: Lease): void {
    if (!this.byId.delete(lease.id)) return;
    if (lease.place !== undefined) this.byAge.remove(lease.place);
    lease.withdraw();
    this.scope.budget.free(entryBytes(lease.what));
    if (this.byId.size === 0) {
      this.timer?.cancel();
      this.timer = undefined;
    }
    lease.onEnd();
  }

  /** One timer for all; when it comes too early, because of a renewal, it is set again. */
  private arm(): void {
    const first = this.byAge.first?.item;
    if (this.timer !== undefined || first === undefined) return;
    const { clock } = this.scope;
    const expire = (): void => {
      this.timer = undefined;
      this.expire();
      this.arm();
    };
    const leftMs = first.expiresMs - clock.nowMs();
    this.timer = setAwakeTimer(clock, leftMs, expire, (ms) => this.discount(ms));
  }

  /** What the holders have said while the scheduler stood still has not been read yet. O(leases). */
  private discount(stalledMs: number): void {
    const { clock, leaseTimeoutMs } = this.scope;
    const latestMs = clock.nowMs() + leaseTimeoutMs;
    for (const lease of this.byId.values()) {
      lease.expiresMs = Math.min(lease.expiresMs + stalledMs, latestMs);
    }
  }

  private expire(): void {
    const nowMs = this.scope.clock.nowMs();
    for (let first = this.byAge.first; first !== undefined; first = this.byAge.first) {
      if (first.item.expiresMs > nowMs) return;
      this.end(first.item);
    }
  }
}
