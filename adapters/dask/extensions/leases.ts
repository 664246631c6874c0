/** Locks and semaphores of Dask, as leases of the scheduler's coordination. */
import type { Timer } from '../../../core/api/index.ts';
import { inBackground } from '../../../core/shared/background.ts';
import type { Comm } from '../connection/comm.ts';
import type { DaskContext, DaskExtension, Fields, MakeExtension } from '../context.ts';
import { PythonException } from '../rpc/py-errors.ts';
import { listIn, numberIn } from '../codec/values.ts';
import { Coordination, isTimeout, nameIn, timeoutIn } from './coordination.ts';

interface Granted {
  readonly lease: number;
  readonly leaseTimeoutMs: number;
}

/**
 * `distributed.Lock` before 2024.9: locks of coordination. In Dask they have no time limit, so they
 * are renewed until they are released.
 */
export const makeLocks: MakeExtension = (context): DaskExtension => {
  const coordination = new Coordination(context);
  const renewal = new Renewal(coordination);
  const held = new Map<string, { readonly id: unknown; readonly lease: number }>();
  return {
    rpc: {
      lock_acquire: async (request, _context, comm) => {
        const name = nameIn(request);
        const timeoutMs = timeoutIn(request);
        const granted = await acquire(coordination, 'acquireLock', { name, timeoutMs }, comm);
        if (granted === undefined) return false;
        renewal.add(granted);
        held.set(name, { id: request['id'], lease: granted.lease });
        return true;
      },
      lock_release: async (request) => {
        const name = nameIn(request);
        const lock = held.get(name);
        if (lock === undefined || lock.id !== request['id']) {
          throw new PythonException('ValueError', 'This lock has not yet been acquired');
        }
        held.delete(name);
        renewal.delete(lock.lease);
        await coordination.call('release', { lease: lock.lease });
      },
    },
    close: () => renewal.close(),
  };
};

/** Renews leases until they are given back. */
class Renewal {
  private readonly leases = new Set<number>();
  private timer: Timer | undefined;

  constructor(private readonly coordination: Coordination) {}

  add({ lease, leaseTimeoutMs }: Granted): void {
    this.leases.add(lease);
    const { coordination } = this;
    this.timer ??= coordination.context.plugin.every(leaseTimeoutMs / 3, () => {
      inBackground(this.renew(), (error) => {
        coordination.context.log.warn({ err: error }, 'locks of Dask clients could not be renewed');
      });
    });
  }

  delete(lease: number): void {
    this.leases.delete(lease);
    if (this.leases.size === 0) this.close();
  }

  close(): void {
    this.timer?.cancel();
    this.timer = undefined;
  }

  private async renew(): Promise<void> {
    const lost = await this.coordination.call<readonly number[]>('renew', {
      leases: [...this.leases],
    });
    for (const lease of lost) this.delete(lease);
  }
}

interface DaskSemaphore {
  readonly name: string;
  readonly leasesMax: number;
  readonly leaseTimeoutMs: number;
  /** By the id that Dask gave them. */
  readonly leases: Map<unknown, Lease>;
  /** Under way, by id: a request may be repeated. */
  readonly pending: Map<unknown, Promise<boolean>>;
}

interface Lease {
  readonly granted: Granted;
  seenMs: number;
}

/** `distributed.Semaphore`, and since 2024.9 `distributed.Lock`: semaphores of coordination. */
export const makeSemaphores: MakeExtension = (context): DaskExtension => {
  const semaphores = new Semaphores(context);
  return {
    rpc: {
      semaphore_register: (request) => semaphores.register(request),
      semaphore_acquire: (request, _context, comm) => semaphores.acquire(request, comm),
      semaphore_release: (request) => semaphores.release(request),
      semaphore_close: (request) => semaphores.close(nameIn(request)),
      semaphore_refresh_leases: (request) => semaphores.refresh(request),
      semaphore_value: (request) => semaphores.value(nameIn(request)),
    },
    close: () => semaphores.stop(),
  };
};

class Semaphores {
  private readonly byName = new Map<string, DaskSemaphore>();
  private readonly coordination: Coordination;
  private readonly timer: Timer;

  constructor(private readonly context: DaskContext) {
    this.coordination = new Coordination(context);
    const { clock, options } = context;
    const intervalMs = options.leaseCheckIntervalMs;
    let dueMs = clock.nowMs() + intervalMs;
    this.timer = context.plugin.every(intervalMs, () => {
      const lateMs = clock.nowMs() - dueMs;
      dueMs = clock.nowMs() + intervalMs;
      // This process stood still, and what holders have said meanwhile has not been read yet.
      if (lateMs > intervalMs / 2) {
        this.discount(lateMs);
        return;
      }
      for (const semaphore of this.byName.values()) {
        inBackground(this.look(semaphore), (error) => {
          const { name } = semaphore;
          context.log.warn({ err: error, name }, 'leases of a semaphore could not be renewed');
        });
      }
    });
  }

  stop(): void {
    this.timer.cancel();
  }

  register(request: Fields): void {
    const name = nameIn(request);
    const leasesMax = numberIn(request, 'max_leases') ?? 0;
    const known = this.byName.get(name);
    if (known !== undefined) {
      if (known.leasesMax === leasesMax) return;
      throw new PythonException(
        'ValueError',
        `Inconsistent max leases: ${leasesMax}, expected: ${known.leasesMax}`,
      );
    }
    this.byName.set(name, {
      name,
      leasesMax,
      leaseTimeoutMs: leaseTimeoutIn(request, this.context.options.leaseTimeoutMs),
      leases: new Map(),
      pending: new Map(),
    });
  }

  /** The same id again is the same lease, as the answer to the first request may be lost. */
  acquire(request: Fields, comm: Comm): Promise<boolean> {
    const name = nameIn(request);
    const semaphore = this.byName.get(name);
    if (semaphore === undefined) {
      throw new PythonException(
        'RuntimeError',
        `Semaphore or Lock \`${name}\` not known or already closed.`,
      );
    }
    const id = request['lease_id'];
    if (semaphore.leases.has(id)) return Promise.resolve(true);
    const known = semaphore.pending.get(id);
    if (known !== undefined) return known;
    const acquired = this.wait(semaphore, id, timeoutIn(request), comm).finally(() => {
      semaphore.pending.delete(id);
    });
    semaphore.pending.set(id, acquired);
    return acquired;
  }

  async release(request: Fields): Promise<void> {
    const semaphore = this.byName.get(nameIn(request));
    const id = request['lease_id'];
    const lease = semaphore?.leases.get(id);
    if (semaphore === undefined || lease === undefined) {
      const name = nameIn(request);
      this.context.log.warn(
        { name, lease: id },
        'a Dask client gave a lease back that it does not hold (any more); it may have timed out',
      );
      return;
    }
    semaphore.leases.delete(id);
    await this.end(lease.granted.lease);
  }

  async close(name: string): Promise<void> {
    const semaphore = this.byName.get(name);
    if (semaphore === undefined) return;
    this.byName.delete(name);
    await Promise.all([...semaphore.leases.values()].map((lease) => this.end(lease.granted.lease)));
  }

  refresh(request: Fields): void {
    const name = nameIn(request);
    const semaphore = this.byName.get(name);
    for (const id of listIn(request, 'lease_ids') ?? []) {
      const lease = semaphore?.leases.get(id);
      if (lease !== undefined) lease.seenMs = this.context.clock.nowMs();
      else {
        this.context.log.warn(
          { name, lease: id },
          'a Dask client holds a lease that has timed out; another client may hold it by now',
        );
      }
    }
  }

  async value(name: string): Promise<number> {
    const state = await this.coordination.call<{ held: number }>('semaphoreState', { name });
    return state.held;
  }

  private async wait(
    semaphore: DaskSemaphore,
    id: unknown,
    timeoutMs: number | undefined,
    comm: Comm,
  ): Promise<boolean> {
    const { name, leasesMax: leases } = semaphore;
    const wanted = { name, leases, timeoutMs };
    const granted = await acquire(this.coordination, 'acquireLease', wanted, comm);
    if (granted === undefined) return false;
    if (this.byName.get(name) !== semaphore) {
      await this.end(granted.lease);
      throw new PythonException('RuntimeError', `Semaphore or Lock \`${name}\` was closed.`);
    }
    semaphore.leases.set(id, { granted, seenMs: this.context.clock.nowMs() });
    return true;
  }

  private discount(stalledMs: number): void {
    const nowMs = this.context.clock.nowMs();
    for (const { leases } of this.byName.values()) {
      for (const lease of leases.values()) lease.seenMs = Math.min(lease.seenMs + stalledMs, nowMs);
    }
  }

  /** Renews what its holder has renewed in time, and takes the rest back. */
  private async look({ leases, leaseTimeoutMs }: DaskSemaphore): Promise<void> {
    if (leases.size === 0) return;
    const nowMs = this.context.clock.nowMs();
    const alive: number[] = [];
    for (const [id, { granted, seenMs }] of leases) {
      if (nowMs - seenMs <= leaseTimeoutMs) alive.push(granted.lease);
      else {
        leases.delete(id);
        await this.end(granted.lease);
      }
    }
    if (alive.length > 0) await this.coordination.call('renew', { leases: alive });
  }

  private async end(lease: number): Promise<void> {
    try {
      await this.coordination.call('release', { lease });
    } catch (error) {
      this.context.log.warn({ err: error, lease }, 'a lease had ended before it was given back');
    }
  }
}

/** Undefined when it took too long. A client that has left meanwhile gets nothing. */
async function acquire(
  coordination: Coordination,
  command: 'acquireLock' | 'acquireLease',
  parameters: Fields,
  comm: Comm,
): Promise<Granted | undefined> {
  let granted: Granted;
  try {
    granted = await coordination.call<Granted>(command, parameters);
  } catch (error) {
    if (isTimeout(error)) return undefined;
    throw error;
  }
  if (!comm.isClosed) return granted;
  await coordination.call('release', { lease: granted.lease });
  return undefined;
}

/**
 * In seconds, `inf`, or None for ever.
 * @param configuredMs - for clients before 2024.9, which do not say it
 */
function leaseTimeoutIn(request: Fields, configuredMs: number): number {
  if (request['lease_timeout'] === undefined) return configuredMs;
  return timeoutIn(request, 'lease_timeout') ?? Infinity;
}
