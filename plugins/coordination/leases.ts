import type { Timer } from '../../core/api/index.ts';
import { setAwakeTimer } from '../../core/shared/timers.ts';
import type { CoordinationScope } from './scope.ts';
import {
  entryBytes,
  LinkedQueue,
  type Place,
  refused,
  WaitQueue,
  type WaitRequest,
} from './wait-queue.ts';

interface GrantedLease {
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

  /** Extends all leases by a pause of the scheduler, in which it could not read what their holders sent. O(leases). */
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

interface SemaphoreState {
  readonly held: number;
  readonly waiting: number;
  /** Undefined when there is no such semaphore. */
  readonly leases?: number;
}

interface Semaphore {
  readonly name: string;
  readonly leasesMax: number;
  held: number;
  readonly line: WaitQueue<GrantedLease>;
}

/**
 * Named semaphores; a lock is one with a single lease. Waiting calls are served first come, first
 * served. A semaphore exists while one of its leases is held, or a call waits for one.
 */
export class Semaphores {
  private readonly semaphores = new Map<string, Semaphore>();

  /** @param what - `lock` or `semaphore`, for people */
  constructor(
    private readonly scope: CoordinationScope,
    private readonly leases: Leases,
    private readonly what: string,
  ) {}

  /** @throws YardmasterError `ERR_COORDINATION` when the semaphore has another number of leases */
  acquire(
    name: string,
    leasesMax: number,
    request: Omit<WaitRequest, 'what'>,
  ): GrantedLease | Promise<GrantedLease> {
    const semaphore = this.open(name, leasesMax);
    try {
      // Waiting calls come first, even if a lease is free.
      if (semaphore.held < leasesMax && semaphore.line.size === 0) {
        return this.grant(semaphore, request.client);
      }
      return semaphore.line.wait({ ...request, what: this.describe(name) }, undefined);
    } catch (error) {
      this.dropUnused(semaphore);
      throw error;
    }
  }

  state(name: string): SemaphoreState {
    const semaphore = this.semaphores.get(name);
    if (semaphore === undefined) return { held: 0, waiting: 0 };
    return {
      held: semaphore.held,
      waiting: semaphore.line.size,
      leases: semaphore.leasesMax,
    };
  }

  private grant(semaphore: Semaphore, client: string): GrantedLease {
    const granted = this.leases.grant(client, this.describe(semaphore.name), () => {
      semaphore.held--;
      this.serve(semaphore);
      this.dropUnused(semaphore);
    });
    semaphore.held++;
    return granted;
  }

  private serve(semaphore: Semaphore): void {
    const { line, leasesMax } = semaphore;
    while (semaphore.held < leasesMax && line.size > 0) {
      line.serve((client) => this.grant(semaphore, client));
    }
  }

  private open(name: string, leasesMax: number): Semaphore {
    const known = this.semaphores.get(name);
    if (known === undefined) return this.make(name, leasesMax);
    if (known.leasesMax === leasesMax) return known;
    throw refused(
      'mismatch',
      `${this.describe(name)} has ${known.leasesMax} leases, not ${leasesMax}; give the same number everywhere`,
      { name, leases: known.leasesMax, asked: leasesMax },
    );
  }

  private make(name: string, leasesMax: number): Semaphore {
    const { scope } = this;
    scope.budget.charge(entryBytes(name), this.describe(name));
    const semaphore: Semaphore = {
      name,
      leasesMax,
      held: 0,
      line: new WaitQueue(scope, () => this.dropUnused(semaphore)),
    };
    this.semaphores.set(name, semaphore);
    return semaphore;
  }

  private dropUnused(semaphore: Semaphore): void {
    const { name, held, line } = semaphore;
    if (held > 0 || line.size > 0 || this.semaphores.get(name) !== semaphore) return;
    this.semaphores.delete(name);
    this.scope.budget.free(entryBytes(name));
  }

  private describe(name: string): string {
    return `the ${this.what} "${name}"`;
  }
}

interface Flag {
  isSet: boolean;
  readonly line: WaitQueue<true>;
}

/** Named events: set or not. An event exists while it is set or a call waits for it. */
export class Flags {
  private readonly flags = new Map<string, Flag>();

  constructor(private readonly scope: CoordinationScope) {}

  /** Sets the event; all waiting calls continue. */
  set(name: string): void {
    const flag = this.open(name);
    flag.isSet = true;
    while (flag.line.size > 0) flag.line.serve(() => true);
  }

  clear(name: string): void {
    const flag = this.flags.get(name);
    if (flag === undefined) return;
    flag.isSet = false;
    this.dropUnused(name, flag);
  }

  isSet(name: string): boolean {
    return this.flags.get(name)?.isSet ?? false;
  }

  wait(name: string, request: Omit<WaitRequest, 'what'>): true | Promise<true> {
    if (this.isSet(name)) return true;
    const flag = this.open(name);
    try {
      return flag.line.wait({ ...request, what: `the event "${name}"` }, undefined);
    } catch (error) {
      this.dropUnused(name, flag);
      throw error;
    }
  }

  private open(name: string): Flag {
    const known = this.flags.get(name);
    if (known !== undefined) return known;
    this.scope.budget.charge(entryBytes(name), `the event "${name}"`);
    const flag: Flag = {
      isSet: false,
      line: new WaitQueue(this.scope, () => this.dropUnused(name, flag)),
    };
    this.flags.set(name, flag);
    return flag;
  }

  private dropUnused(name: string, { isSet, line }: Flag): void {
    if (isSet || line.size > 0) return;
    if (this.flags.delete(name)) this.scope.budget.free(entryBytes(name));
  }
}
