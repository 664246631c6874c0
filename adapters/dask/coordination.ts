import { createHash, randomUUID } from 'node:crypto';
import { type Caller, type Timer, YardmasterError } from '../../core/api/index.ts';
import { inBackground, pause } from '../../core/shared/timers.ts';
import { packArguments, unpackWith } from '../tasks/index.ts';
import { reprOf } from './wire/key-table.ts';
import { type Fields, isFields, listIn, numberIn, Opaque, PyFloat } from './wire/codec.ts';
import type { Comm } from './wire/comm.ts';
import type { DaskContext, DaskExtension, MakeExtension } from './context.ts';
import { durationMs } from './graph/materialized.ts';
import { failureForClient, PythonException } from './wire/py-errors.ts';
import { pushTo } from '../../core/util/collections.ts';

// How Dask's locks, queues, variables and the like reach those of the scheduler, which Node clients share.

/**
 * The client of requests in which Dask names none. What is held under this name outlives every
 * client.
 */
const ANONYMOUS = 'dask';

/** Longer names, which Dask allows, are shortened: their beginning and a hash of all. */
const NAME_LENGTH_MAX = 1000;

/** Between two looks whether a task has become known. */
const LOOK_INTERVAL_MS = 10;

/** A value as the scheduler's coordination stores it. */
interface StoredValue {
  readonly value: Uint8Array;
  /** Of the futures in it. */
  readonly keys: readonly string[];
}

/**
 * A value that is handed over, with a number by which the receiver confirms that it holds the
 * value's futures.
 */
export interface GivenValue extends StoredValue {
  readonly handover?: number;
}

/** A value that Dask stores: a future, or plain data. */
type DaskRecord =
  | { readonly type: 'Future'; readonly value: string }
  | { readonly type: 'msgpack'; readonly value: unknown };

/** Stands for a future while a value is packed. */
class FutureMark {
  constructor(readonly key: string) {}
}

/** Calls of the plugin `coordination`, and the form in which both worlds keep their values there. */
export class Coordination {
  /** The values as Dask stored them, also where Node has no such type. */
  private readonly originals = new WeakMap<Uint8Array, unknown>();

  constructor(readonly context: DaskContext) {}

  /**
   * @param client - id of the Dask client in whose name it is; what it holds ends with it
   * @throws YardmasterError as the command does
   */
  async call<T>(command: string, parameters: Fields, client?: unknown): Promise<T> {
    const { plugin, clients } = this.context;
    const known = typeof client === 'string' && clients.has(client);
    const caller: Caller = { client: known ? client : ANONYMOUS };
    return (await plugin.run(`coordination.${command}`, parameters, caller)) as T;
  }

  /** A call whose outcome the peer does not wait for; a failure is logged. Its message was not a request. */
  notify(command: string, parameters: Fields, client?: unknown): void {
    inBackground(this.call(command, parameters, client), (error) => {
      this.context.log.warn(
        { err: error, command, ...parameters },
        `coordination.${command} failed for a client of Dask: ${error.message}`,
      );
    });
  }

  /** A record as it is stored. Node clients read it as far as they have such values. */
  pack(record: DaskRecord): StoredValue {
    if (record.type === 'Future') {
      const { bytes, dependencies } = packArguments([new FutureMark(record.value)], (part) =>
        part instanceof FutureMark ? part.key : undefined,
      );
      return { value: bytes, keys: dependencies };
    }
    return { value: this.packData(record.value), keys: [] };
  }

  /**
   * Plain data, or what only Python can read.
   * @param shown - what Node clients get in its place; default: the value as far as they have such types
   */
  packData(value: unknown, shown: unknown = forNode(value)): Uint8Array {
    const { bytes } = packArguments([shown], () => undefined);
    this.originals.set(bytes, value);
    return bytes;
  }

  /**
   * @param client - in whose name it was asked for
   * @throws PythonException `NotImplementedError` when a Node client stored futures among other data
   */
  unpack(given: GivenValue, client?: unknown): DaskRecord {
    const value = this.unpackData(given, client);
    if (value instanceof FutureMark) return { type: 'Future', value: value.key };
    return { type: 'msgpack', value };
  }

  /** Unpacks what was given to {@link packData}, or plain data of a Node client. */
  unpackData({ value: bytes, keys, handover }: GivenValue, client?: unknown): unknown {
    if (this.originals.has(bytes)) return this.originals.get(bytes);
    const [value] = unpackWith(bytes, (key) => new FutureMark(key));
    if (value instanceof FutureMark || keys.length === 0) return value;
    this.notify('received', { handover }, client); // It never will be.
    throw new PythonException(
      'NotImplementedError',
      'the value was stored by a client in JavaScript, with futures among other data; Dask can take plain data, or one future',
    );
  }

  /** True when it was stored by a Dask client. */
  isOfDask({ value }: GivenValue): boolean {
    return this.originals.has(value);
  }

  /**
   * Resolves when the scheduler knows the task: a future may be stored before its graph has come.
   * @throws PythonException `TimeoutError`
   */
  async known(key: string, timeoutMs: number): Promise<void> {
    const { clock, cluster } = this.context;
    if (cluster.tasks.has(key)) return;
    await this.context.graphsSettled();
    const untilMs = clock.nowMs() + timeoutMs;
    while (!cluster.tasks.has(key)) {
      if (clock.nowMs() >= untilMs) {
        throw new PythonException('TimeoutError', `Task ${key} unknown to scheduler.`);
      }
      await new Promise<void>((resolve) => {
        clock.setTimer(LOOK_INTERVAL_MS, resolve);
      });
    }
  }

  /** As Dask hands it out: a future with its present state. */
  describe(record: DaskRecord): Fields {
    if (record.type === 'msgpack') return { ...record };
    const { cluster, keys } = this.context;
    const task = cluster.tasks.get(record.value);
    const value = keys.wireOf(record.value);
    if (task?.state !== 'erred') return { type: 'Future', value, state: task?.state ?? 'lost' };
    const blame = task.exceptionBlame ?? task;
    const failure = blame.failure;
    return {
      type: 'Future',
      value,
      state: 'erred',
      ...(failure === undefined ? {} : failureForClient(failure, blame.key, keys)),
    };
  }

  /** The record in a request: `key` of a future, or `data`. */
  async recordIn(request: Fields, patienceMs: number): Promise<DaskRecord> {
    const { key, data } = request;
    if (key === undefined || key === null) return { type: 'msgpack', value: data ?? null };
    const text = this.context.keys.textOf(key);
    await this.known(text, patienceMs);
    return { type: 'Future', value: text };
  }
}

/** A name, which Dask lets be anything that can be the key of a dict. */
export function nameIn({ name }: Fields): string {
  const text = typeof name === 'string' ? name : reprOf(name);
  if (text.length <= NAME_LENGTH_MAX) return text;
  return `${text.slice(0, 200)}…${createHash('sha256').update(text).digest('hex')}`;
}

/** Seconds of Python, or a text such as `5s`, as milliseconds; undefined: no limit. */
function timeoutIn(request: Fields, field = 'timeout'): number | undefined {
  const text = request[field];
  if (typeof text === 'string') return Math.max(0, durationMs(text));
  const seconds = numberIn(request, field);
  return seconds === undefined || seconds === Infinity ? undefined : Math.max(0, 1000 * seconds);
}

/** True when the wait took too long. */
function isTimeout(error: unknown): boolean {
  return YardmasterError.is(error, 'ERR_TIMEOUT');
}

/**
 * The value with types of JavaScript. A value without such a type is replaced by an error that its
 * reader receives.
 */
function forNode(value: unknown): unknown {
  if (value instanceof PyFloat) return value.valueOf();
  if (Array.isArray(value)) return value.map(forNode);
  if (value instanceof Set) return new Set([...(value as Set<unknown>)].map(forNode));
  if (value instanceof Map) {
    return new Map([...(value as Map<unknown, unknown>)].map(([k, v]) => [forNode(k), forNode(v)]));
  }
  if (isFields(value)) {
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, forNode(item)]));
  }
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value;
  const what = value instanceof Opaque ? 'an object of Python' : 'a value';
  return new Error(`${what} that a client of Dask stored; it cannot be read in JavaScript`);
}

/** `distributed.Event`: the events of the scheduler's coordination. */
export const makeEventFlags: MakeExtension = (context): DaskExtension => {
  const coordination = new Coordination(context);
  return {
    rpc: {
      event_set: async (request) => {
        await coordination.call('setEvent', { name: nameIn(request) });
      },
      event_clear: async (request) => {
        await coordination.call('clearEvent', { name: nameIn(request) });
      },
      event_is_set: (request) => coordination.call('isEventSet', { name: nameIn(request) }),
      event_wait: async (request) => {
        const wait = { name: nameIn(request), timeoutMs: timeoutIn(request) };
        try {
          await coordination.call('waitForEvent', wait);
          return true;
        } catch (error) {
          if (isTimeout(error)) return false;
          throw error;
        }
      },
    },
  };
};

/** The time for which a confirmation may be behind the end of the connection on which the future was given. */
const CONFIRMATION_MS = 1000;

interface Handover {
  readonly id: number;
  /** Undefined where the request named none. */
  readonly client: unknown;
  /** The connection of the request. */
  readonly comm: Comm;
  /** The token that the client gives back; undefined: the oldest of the name and key is meant. */
  readonly token: string | undefined;
}

/** Futures that were given to clients, until these say that they hold them. */
class FutureHandovers {
  private readonly open = new Map<string, Handover[]>();
  private readonly watched = new WeakSet<Comm>();

  constructor(private readonly coordination: Coordination) {}

  /** @param request - of a client for what a queue or variable holds */
  add(
    request: Fields,
    comm: Comm,
    key: string,
    { handover: id }: GivenValue,
    token?: string,
  ): void {
    if (id === undefined) return;
    const place = placeOf(nameIn(request), key);
    const handover = { id, client: request['client'] ?? undefined, comm, token };
    pushTo(this.open, place, handover);
    if (!this.isOfClient(handover) && !this.watched.has(comm)) this.watch(comm);
  }

  /** No client leaves with what was given in the name of none; it goes with its connection. */
  private watch(comm: Comm): void {
    this.watched.add(comm);
    const { clock, plugin } = this.coordination.context;
    const left = comm.closed.then(() => pause(clock, CONFIRMATION_MS, plugin.signal));
    const dropped = left.then((isClosing) => {
      if (isClosing) return;
      for (const { id } of this.drop((each) => each.comm === comm && !this.isOfClient(each))) {
        this.coordination.notify('received', { handover: id });
      }
    });
    inBackground(dropped, 'futures that were given to a client of Dask are kept');
  }

  private isOfClient({ client }: Handover): boolean {
    return this.coordination.context.clients.has(client as string);
  }

  /**
   * The client has its future now. Since 2024, releases of Dask do not ask for its key themselves.
   */
  received(message: Fields, client: string): void {
    const { context } = this.coordination;
    const key = context.keys.textOf(message['key']);
    context.desireKeys(client, [key]);
    const place = placeOf(nameIn(message), key);
    const line = this.open.get(place);
    if (line === undefined) return;
    const { token } = message;
    const index = line.findIndex(
      (each) => (each.client ?? client) === client && (token ?? each.token) === each.token,
    );
    const [handover] = index < 0 ? [] : line.splice(index, 1);
    if (line.length === 0) this.open.delete(place);
    if (handover === undefined) return;
    // The request for the key may wait behind a large graph; until then the hand-over keeps the
    // result.
    const ended = context.graphsSettled(client).then(() => this.end(handover.id, client));
    inBackground(ended, () => this.end(handover.id, client));
  }

  forgetClient(client: string): void {
    this.drop((each) => each.client === client);
  }

  private drop(isGone: (handover: Handover) => boolean): Handover[] {
    const dropped: Handover[] = [];
    for (const [place, line] of this.open) {
      const left: Handover[] = [];
      for (const each of line) (isGone(each) ? dropped : left).push(each);
      if (left.length > 0) this.open.set(place, left);
      else this.open.delete(place);
    }
    return dropped;
  }

  /** The hand-over is the client's when it has asked under its id, and of no client otherwise. */
  private end(handover: number, client: string): void {
    for (const who of [client, undefined]) this.coordination.notify('received', { handover }, who);
  }
}

function placeOf(name: string, key: string): string {
  return JSON.stringify([name, key]);
}

// Locks and semaphores of Dask, as leases of the scheduler's coordination.

interface Granted {
  readonly lease: number;
  readonly leaseTimeoutMs: number;
}

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
        const granted = await acquire(coordination, 'acquireLock', { name, timeoutMs }, { comm });
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

interface DaskSemaphore {
  readonly name: string;
  readonly leasesMax: number;
  readonly leaseTimeoutMs: number;
  /** By the id that Dask gave them. */
  readonly leases: Map<unknown, Lease>;
  /** Under way, by id of the lease: a request may be repeated, and the connection of the newest one counts. */
  readonly pending: Map<unknown, { comm: Comm; readonly acquired: Promise<boolean> }>;
}

interface Lease {
  readonly granted: Granted;
  seenMs: number;
}

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
    if (known !== undefined) {
      known.comm = comm; // The one before may have broken.
      return known.acquired;
    }
    const asking = { comm };
    const acquired = this.wait(semaphore, id, timeoutIn(request), asking).finally(() => {
      semaphore.pending.delete(id);
    });
    semaphore.pending.set(id, Object.assign(asking, { acquired }));
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
    asking: { readonly comm: Comm },
  ): Promise<boolean> {
    const { name, leasesMax: leases } = semaphore;
    const wanted = { name, leases, timeoutMs };
    const granted = await acquire(this.coordination, 'acquireLease', wanted, asking);
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

/** Undefined when it took too long. A client that has left meanwhile gets nothing. */
async function acquire(
  coordination: Coordination,
  command: 'acquireLock' | 'acquireLease',
  parameters: Fields,
  asking: { readonly comm: Comm },
): Promise<Granted | undefined> {
  let granted: Granted;
  try {
    granted = await coordination.call<Granted>(command, parameters);
  } catch (error) {
    if (isTimeout(error)) return undefined;
    throw error;
  }
  if (!asking.comm.isClosed) return granted;
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

interface Request {
  readonly id: unknown;
  /** Names of locks in whose queues it waits. */
  readonly locks: Set<string>;
  /** Locks that it still needs. */
  leftCount: number;
  grant: () => void;
}

class MultiLocks {
  /** The waiting clients of each lock; the first one holds it. */
  private readonly lines = new Map<string, Request[]>();
  private readonly requests = new Map<unknown, Request>();

  constructor(private readonly context: DaskContext) {}

  async acquire(message: Fields, comm: Comm): Promise<boolean> {
    const id = message['id'];
    const listed = (listIn(message, 'locks') ?? []).map((name) => nameIn({ name }));
    const names = [...new Set(listed)];
    const wantedCount = numberIn(message, 'num_locks') ?? listed.length;
    if (this.requests.has(id) || wantedCount < 1 || wantedCount > listed.length) {
      throw new PythonException(
        'ValueError',
        `a MultiLock wants 1 to ${listed.length} of its locks, each time after it has released them; got ${wantedCount}`,
      );
    }
    const request: Request = {
      id,
      locks: new Set(),
      leftCount: Math.min(wantedCount, names.length), // Dask counts a name that is there twice twice.
      grant: () => undefined,
    };
    this.requests.set(id, request);
    if (this.enterLines(request, names)) return true;
    return this.wait(request, comm, timeoutIn(message));
  }

  release(id: unknown): void {
    const request = this.requests.get(id);
    if (request === undefined) {
      throw new PythonException('KeyError', 'this MultiLock has not been acquired');
    }
    this.leave(request);
  }

  /** The shortest lines first. Whether it holds as many locks as it wants. */
  private enterLines(request: Request, names: readonly string[]): boolean {
    const lengthOf = (name: string): number => this.lines.get(name)?.length ?? 0;
    for (const name of [...names].sort((a, b) => lengthOf(a) - lengthOf(b))) {
      const line = this.lines.get(name) ?? [];
      this.lines.set(name, line);
      line.push(request);
      request.locks.add(name);
      if (line.length === 1 && --request.leftCount === 0) return true;
    }
    return false;
  }

  private wait(request: Request, comm: Comm, timeoutMs = Infinity): Promise<boolean> {
    return new Promise((resolve) => {
      let isWaiting = true;
      const end = (isGranted: boolean): void => {
        if (!isWaiting) return;
        isWaiting = false;
        timer.cancel();
        if (!isGranted) this.leave(request);
        resolve(isGranted);
      };
      const timer = this.context.clock.setTimer(timeoutMs, () => end(false));
      comm.closed.then(
        () => end(false),
        () => end(false),
      );
      request.grant = () => end(true);
    });
  }

  private leave(request: Request): void {
    this.requests.delete(request.id);
    for (const name of request.locks) {
      const line = this.lines.get(name) ?? [];
      const place = line.indexOf(request);
      line.splice(place, 1);
      const [next] = line;
      if (next === undefined) this.lines.delete(name);
      else if (place === 0 && --next.leftCount === 0) next.grant();
    }
  }
}

/**
 * `distributed.MultiLock`: takes several locks, or some of them, at once. Their names are separate
 * from those of the scheduler's coordination, which has no such primitive.
 */
export const makeMultiLocks: MakeExtension = (context): DaskExtension => {
  const locks = new MultiLocks(context);
  return {
    rpc: {
      multi_lock_acquire: (request, _context, comm) => locks.acquire(request, comm),
      multi_lock_release: ({ id }) => locks.release(id),
    },
  };
};

/** The time for which a future may be ahead of its graph. */
const PATIENCE_MS = 30_000;

class Queues {
  readonly handovers: FutureHandovers;
  private readonly queues = new Map<string, Queue>();
  private readonly coordination: Coordination;

  constructor(context: DaskContext) {
    this.coordination = new Coordination(context);
    this.handovers = new FutureHandovers(this.coordination);
  }

  create(request: Fields): void {
    const name = nameIn(request);
    const queue = this.queues.get(name);
    if (queue !== undefined) {
      queue.referenceCount++;
      return;
    }
    const maxSize = numberIn(request, 'maxsize') ?? 0;
    this.queues.set(name, { maxSize: maxSize > 0 ? maxSize : undefined, referenceCount: 1 });
  }

  /** The last object that stands for the queue is gone, and with it what was in the queue. */
  release(name: string): void {
    const queue = this.queues.get(name);
    if (queue === undefined || --queue.referenceCount > 0) return;
    this.queues.delete(name);
    this.coordination.notify('deleteQueue', { name });
  }

  async put(request: Fields): Promise<void> {
    const timeoutMs = timeoutIn(request);
    const record = await this.coordination.recordIn(request, timeoutMs ?? PATIENCE_MS);
    const stored = this.coordination.pack(record);
    const parameters = { ...this.queueIn(request), ...stored, timeoutMs };
    await this.coordination.call('putQueue', parameters, request['client']);
  }

  async get(request: Fields, comm: Comm): Promise<unknown> {
    const { batch = false } = request;
    if (batch === false || batch === null) return this.getOne(request, comm, timeoutIn(request));
    if (batch === true) return this.getAll(request, comm);
    if (timeoutIn(request) !== undefined) {
      throw new PythonException(
        'NotImplementedError',
        "Dask queues don't support simultaneous use of integer batch sizes and timeouts",
      );
    }
    const records: unknown[] = [];
    for (let left = numberIn(request, 'batch') ?? 0; left > 0; left--) {
      records.push(await this.getOne(request, comm));
    }
    return records;
  }

  size(request: Fields): Promise<number> {
    return this.coordination.call('queueSize', this.queueIn(request), request['client']);
  }

  private async getOne(request: Fields, comm: Comm, timeoutMs?: number): Promise<Fields> {
    const parameters = { ...this.queueIn(request), timeoutMs };
    const { client } = request;
    const given = await this.coordination.call<GivenValue>('getQueue', parameters, client);
    return this.give(request, comm, given);
  }

  private async getAll(request: Fields, comm: Comm): Promise<Fields[]> {
    const { client } = request;
    const items = await this.coordination.call<readonly GivenValue[]>(
      'getQueueItems',
      this.queueIn(request),
      client,
    );
    return items.map((given) => this.give(request, comm, given));
  }

  private give(request: Fields, comm: Comm, given: GivenValue): Fields {
    const record = this.coordination.unpack(given, request['client']);
    if (record.type === 'Future') this.handovers.add(request, comm, record.value, given);
    return this.coordination.describe(record);
  }

  private queueIn(request: Fields): { name: string; maxSize: number | undefined } {
    const name = nameIn(request);
    return { name, maxSize: this.queues.get(name)?.maxSize };
  }
}

/** `distributed.Queue`: queues of the scheduler's coordination. */
export const makeQueues: MakeExtension = (context): DaskExtension => {
  const queues = new Queues(context);
  return {
    rpc: {
      queue_create: (request) => queues.create(request),
      queue_put: (request) => queues.put(request),
      queue_get: (request, _context, comm) => queues.get(request, comm),
      queue_qsize: (request) => queues.size(request),
    },
    clientOps: {
      'queue-future-release': (message, client) => queues.handovers.received(message, client.id),
      queue_release: (message) => queues.release(nameIn(message)),
    },
    clientGone: ({ id }) => queues.handovers.forgetClient(id),
  };
};

interface Queue {
  readonly maxSize: number | undefined;
  /** Objects in clients that stand for it. */
  referenceCount: number;
}

/** `distributed.Variable`: variables of the scheduler's coordination. */
export const makeVariables: MakeExtension = (context): DaskExtension => {
  const coordination = new Coordination(context);
  const handovers = new FutureHandovers(coordination);

  async function get(request: Fields, comm: Comm): Promise<Fields> {
    const wait = { name: nameIn(request), timeoutMs: timeoutIn(request) };
    const given = await coordination.call<GivenValue>('getVariable', wait, request['client']);
    const record = coordination.unpack(given, request['client']);
    if (record.type === 'msgpack') return record;
    const token = randomUUID().replaceAll('-', '');
    handovers.add(request, comm, record.value, given, token);
    return { ...coordination.describe(record), token };
  }

  return {
    rpc: {
      variable_set: async (request) => {
        const record = await coordination.recordIn(request, timeoutIn(request) ?? PATIENCE_MS);
        const stored = coordination.pack(record);
        await coordination.call('setVariable', { name: nameIn(request), ...stored });
      },
      variable_get: (request, _context, comm) => get(request, comm),
    },
    clientOps: {
      'variable-future-release': (message, client) => handovers.received(message, client.id),
      'variable-future-received-confirm': (message, client) =>
        handovers.received(message, client.id),
      variable_delete: (message) => {
        coordination.notify('deleteVariable', { name: nameIn(message) });
      },
    },
    clientGone: ({ id }) => handovers.forgetClient(id),
  };
};
