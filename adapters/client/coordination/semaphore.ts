import { YardmasterError } from '../../../core/api/index.ts';
import type { GrantedLease, Lease, LeaseKeeper } from './leases.ts';
import type { Coordinator } from './values.ts';
import { type WaitLimit, waitParameters } from './values.ts';

/** What a semaphore is like. */
export interface SemaphoreOptions {
  /** How many may hold a lease at once; the same for all who use the name. */
  readonly leases: number;
}

interface State {
  readonly held: number;
  readonly waiting: number;
}

/** What a lock and a semaphore have in common. */
abstract class Leased {
  private readonly mine: Lease[] = [];

  protected constructor(
    readonly name: string,
    protected readonly coordinator: Coordinator,
    private readonly keeper: LeaseKeeper,
    private readonly what: string,
  ) {}

  /**
   * Waits for its turn, first come, first served. The lease is renewed until it is released; should
   * this client go, or be unable to renew it, the next has it.
   * @throws RemoteError `ERR_TIMEOUT`
   */
  async acquire(limit: WaitLimit = {}): Promise<Lease> {
    const granted = await this.ask(waitParameters(limit));
    const lease = this.keeper.take(granted, this.name);
    this.forgetReleased();
    this.mine.push(lease);
    return lease;
  }

  /**
   * Gives the oldest lease back that was acquired through this object.
   * @throws YardmasterError `ERR_COORDINATION` when there is none, or it was lost
   */
  async release(): Promise<void> {
    const lease = this.mine.find((candidate) => !candidate.isReleased);
    if (lease === undefined) {
      throw new YardmasterError(
        'ERR_COORDINATION',
        `the ${this.what} "${this.name}" is not held through this object, so it cannot be released`,
        { name: this.name, reason: 'not-held' },
      );
    }
    const released = lease.release();
    this.forgetReleased();
    await released;
  }

  /** Gives back all leases that were acquired through this object. */
  async [Symbol.asyncDispose](): Promise<void> {
    const held = this.mine.filter((lease) => !lease.isReleased);
    await Promise.all(held.map((lease) => lease.release()));
    this.forgetReleased();
  }

  protected abstract ask(limit: { timeoutMs?: number }): Promise<GrantedLease>;

  private forgetReleased(): void {
    const left = this.mine.filter((lease) => !lease.isReleased);
    this.mine.splice(0, Infinity, ...left);
  }
}

/**
 * A lock that all clients share by its name. One at a time holds it:
 * `await using held = await client.lock('index').acquire();`
 */
export class Lock extends Leased {
  /** @internal `client.lock(name)` makes them. */
  constructor(name: string, coordinator: Coordinator, keeper: LeaseKeeper) {
    super(name, coordinator, keeper, 'lock');
  }

  /** Whether anybody holds it. */
  async isLocked(): Promise<boolean> {
    const { held } = await this.coordinator.call<State>('lockState', { name: this.name });
    return held > 0;
  }

  protected ask(limit: { timeoutMs?: number }): Promise<GrantedLease> {
    return this.coordinator.call('acquireLock', { name: this.name, ...limit });
  }
}

/** A semaphore that all clients share by its name: so many at once hold a lease of it. */
export class Semaphore extends Leased {
  /** @internal `client.semaphore(name, { leases })` makes them. */
  constructor(
    name: string,
    private readonly options: SemaphoreOptions,
    coordinator: Coordinator,
    keeper: LeaseKeeper,
  ) {
    super(name, coordinator, keeper, 'semaphore');
  }

  /** Leases that are held now, and calls that wait for one. */
  state(): Promise<State> {
    return this.coordinator.call('semaphoreState', { name: this.name });
  }

  protected ask(limit: { timeoutMs?: number }): Promise<GrantedLease> {
    const { leases } = this.options;
    return this.coordinator.call('acquireLease', { name: this.name, leases, ...limit });
  }
}
