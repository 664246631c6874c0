import { YardmasterError } from '../../../core/api/index.ts';
import type { GrantedLease, Lease, LeaseKeeper } from './leases.ts';
import type { Coordinator } from './values.ts';
import { type WaitLimit, waitParameters } from './values.ts';

/** What a semaphore is like. */
export interface SemaphoreOptions {
  /** How many leases may be held at once; the same for all clients that use the name. */
  readonly leases: number;
}

/** How a semaphore stands. */
export interface SemaphoreState {
  /** Leases that are held. */
  readonly held: number;
  /** Calls that wait for one. */
  readonly waiting: number;
}

type Ask = (limit: { timeoutMs?: number }) => Promise<GrantedLease>;

/** What a lock and a semaphore have in common. */
abstract class Leased {
  private readonly mine: Lease[] = [];

  /** @internal */
  protected constructor(
    /** What all clients call it. */
    readonly name: string,
    private readonly what: string,
    private readonly keeper: LeaseKeeper,
    private readonly ask: Ask,
  ) {}

  /**
   * Waits for its turn, first come, first served. The lease is renewed until it is released; should
   * this client go, or be unable to renew it, the next has it.
   * @throws RemoteError `ERR_TIMEOUT`
   */
  async acquire(limit: WaitLimit = {}): Promise<Lease> {
    const parameters = waitParameters(limit);
    const lease = await this.keeper.acquire(this.name, () => this.ask(parameters));
    this.forgetReleased();
    this.mine.push(lease);
    return lease;
  }

  /**
   * Calls a function with a lease, and gives the lease back when it has ended, also when it fails.
   * @param work - gets the lease, whose signal is aborted when it is lost
   * @returns what the function returns
   * @throws RemoteError `ERR_TIMEOUT`; what the function throws
   */
  async run<T>(work: (lease: Lease) => T | Promise<T>, limit: WaitLimit = {}): Promise<T> {
    const lease = await this.acquire(limit);
    let result: T;
    try {
      result = await work(lease);
    } catch (error) {
      // It failed first: whether the lease was lost as well matters less.
      await lease.release().catch(() => undefined);
      throw error;
    }
    await lease.release();
    return result;
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
  constructor(
    name: string,
    private readonly coordinator: Coordinator,
    keeper: LeaseKeeper,
  ) {
    super(name, 'lock', keeper, (limit) => coordinator.call('acquireLock', { name, ...limit }));
  }

  /** Whether any client holds it. */
  async isLocked(): Promise<boolean> {
    const { name } = this;
    const { held } = await this.coordinator.call<SemaphoreState>('lockState', { name });
    return held > 0;
  }
}

/** A semaphore that all clients share by its name. It has a limited number of leases. */
export class Semaphore extends Leased {
  /** @internal `client.semaphore(name, { leases })` makes them. */
  constructor(
    name: string,
    { leases }: SemaphoreOptions,
    private readonly coordinator: Coordinator,
    keeper: LeaseKeeper,
  ) {
    super(name, 'semaphore', keeper, (limit) =>
      coordinator.call('acquireLease', { name, leases, ...limit }),
    );
  }

  /** Leases that are held now, and calls that wait for one. */
  state(): Promise<SemaphoreState> {
    return this.coordinator.call('semaphoreState', { name: this.name });
  }
}
