import { entryBytes } from './budget.ts';
import { refused } from './errors.ts';
import type { GrantedLease, Leases } from './leases.ts';
import type { CoordinationScope } from './scope.ts';
import { WaitQueue, type WaitRequest } from './wait-queue.ts';

/** How a semaphore stands. */
export interface SemaphoreState {
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
