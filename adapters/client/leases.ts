import { type Clock, every, type Timer, YardmasterError } from '../../core/api/index.ts';
import { inBackground } from '../../core/shared/timers.ts';
import type { Coordinator } from './coordination.ts';

/** Renewals per life of a lease: two may get lost. */
const RENEWALS_PER_LIFE = 3;
const TOO_LATE = 'it was not renewed in time';
const GONE_WITH_SCHEDULER = 'the scheduler was away, and does not know it any more';

/** The answer of the scheduler to a client that acquires. */
export interface GrantedLease {
  readonly lease: number;
  readonly leaseTimeoutMs: number;
}

/**
 * Something that is held: a lock, or one lease of a semaphore. The client renews it until it is
 * released; `await using` releases it at the end of the block.
 */
export class Lease {
  private loss: AbortController | undefined;
  private lossReason: Error | undefined;
  private releasing: Promise<void> | undefined;

  /** @internal */
  constructor(
    private readonly id: number,
    /** Of the lock or semaphore. */
    readonly name: string,
    private readonly keeper: LeaseKeeper,
  ) {}

  /**
   * Aborted when the lease is lost: the client was too busy or too slow to renew it in time, or the
   * connection has ended. Another client may hold the lease by now.
   */
  get signal(): AbortSignal {
    if (this.loss === undefined) {
      this.loss = new AbortController();
      if (this.lossReason !== undefined) this.loss.abort(this.lossReason);
    }
    return this.loss.signal;
  }

  /** True when `release` was called. */
  get isReleased(): boolean {
    return this.releasing !== undefined;
  }

  /** True when it is held: neither released nor lost. */
  get isHeld(): boolean {
    return this.releasing === undefined && this.lossReason === undefined;
  }

  /**
   * Gives the lease back; the next waiting client gets it. A second call is a no-op.
   * @throws YardmasterError `ERR_COORDINATION` when it was lost before; `ERR_CLOSED`
   */
  release(): Promise<void> {
    this.releasing ??=
      this.lossReason === undefined
        ? this.keeper.release(this.id)
        : Promise.reject(this.lossReason);
    return this.releasing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  /** @internal */
  lose(reason: Error): void {
    this.lossReason ??= reason;
    this.loss?.abort(reason);
  }
}

/** Renews the leases of one client, all with one request. */
export class LeaseKeeper {
  private readonly held = new Map<number, Lease>();
  private readonly clock: Clock;
  private timer: Timer | undefined;
  private lifeMs = Infinity;
  private isWatching = false;
  /** The time at which the last granted renewal was asked for. */
  private renewedMs = 0;
  private readonly onSessionEnd = (): void => {
    this.loseAll(this.coordinator.session.signal.reason as Error);
  };
  /** A scheduler that was started again knows no leases, and gives them to others at once. */
  private readonly onReturn = (): void => {
    inBackground(this.renew(GONE_WITH_SCHEDULER), 'the leases of a client could not be renewed');
  };

  constructor(private readonly coordinator: Coordinator) {
    this.clock = coordinator.session.clock;
  }

  /** The session is bound from the question on, without a gap between answer and lease. */
  async acquire(name: string, ask: () => Promise<GrantedLease>): Promise<Lease> {
    const { session } = this.coordinator;
    session.bonds++;
    try {
      return this.take(await ask(), name);
    } finally {
      session.bonds--;
    }
  }

  private take({ lease: id, leaseTimeoutMs }: GrantedLease, name: string): Lease {
    this.coordinator.session.checkOpen();
    // A scheduler that was started again counts from 1.
    this.end(id, GONE_WITH_SCHEDULER);
    const lease = new Lease(id, name, this);
    this.held.set(id, lease);
    this.coordinator.session.bonds++;
    this.lifeMs = leaseTimeoutMs;
    this.watchSession();
    if (this.timer === undefined) {
      this.renewedMs = this.clock.nowMs();
      this.timer = every(this.clock, leaseTimeoutMs / RENEWALS_PER_LIFE, () => {
        inBackground(this.renew(), 'the leases of a client could not be renewed');
      });
    }
    return lease;
  }

  async release(id: number): Promise<void> {
    this.drop(id);
    await this.coordinator.call('release', { lease: id });
  }

  /** While there are leases: the connection of most clients of tasks serves many. */
  private watchSession(): void {
    if (this.isWatching) return;
    this.isWatching = true;
    this.coordinator.session.signal.addEventListener('abort', this.onSessionEnd);
    this.coordinator.session.returnListeners.add(this.onReturn);
  }

  /** @param why - the scheduler does not know a lease any more */
  private async renew(why = TOO_LATE): Promise<void> {
    const askedMs = this.clock.nowMs();
    const ids = [...this.held.keys()];
    if (askedMs - this.renewedMs > this.lifeMs) {
      this.loseAll(lostError(`the scheduler has not answered for ${this.lifeMs} ms`));
    }
    try {
      const lost = await this.coordinator.call<readonly number[]>('renew', { leases: ids });
      this.renewedMs = Math.max(this.renewedMs, askedMs);
      for (const id of lost) this.end(id, why);
    } catch (error) {
      // With a broken connection the leases live on: the scheduler says which are left when the client is back.
      const { session } = this.coordinator;
      if (session.isClosed || session.isConnected || !session.mayComeBack) {
        this.loseAll(error as Error);
      }
    }
  }

  private loseAll(reason: Error): void {
    for (const lease of this.held.values()) lease.lose(reason);
    this.coordinator.session.bonds -= this.held.size;
    this.held.clear();
    this.stop();
  }

  private end(id: number, why: string): void {
    this.held.get(id)?.lose(lostError(why));
    this.drop(id);
  }

  private drop(id: number): void {
    if (this.held.delete(id)) this.coordinator.session.bonds--;
    if (this.held.size === 0) this.stop();
  }

  private stop(): void {
    this.timer?.cancel();
    this.timer = undefined;
    this.isWatching = false;
    this.coordinator.session.signal.removeEventListener('abort', this.onSessionEnd);
    this.coordinator.session.returnListeners.delete(this.onReturn);
  }
}

function lostError(why: string): YardmasterError {
  return new YardmasterError(
    'ERR_COORDINATION',
    `the lease was lost: ${why}; another client may hold it now`,
    { reason: 'lost' },
  );
}
