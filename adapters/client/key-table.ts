import {
  type CancelledKeys,
  type ErrorPayload,
  type GraphTask,
  type KeyInMemory,
  LOST_INPUT,
  RemoteError,
  type TaskErredMessage,
  type ToClientMessage,
  UNKNOWN_KEY,
  YardmasterError,
} from '../../core/api/index.ts';
import { SteadyMap, pushTo } from '../../core/util/collections.ts';
import { contradicts } from '../../core/util/values.ts';
import { FLAG, type Rules } from '../../core/shared/schema.ts';
import { submittedAt } from './call-site.ts';
import { KeyEntry } from './entry.ts';
import type { CancelOptions } from './future.ts';
import { AMOUNT, checkOptions, SENDABLE } from './options.ts';
import type { Outgoing } from './outgoing.ts';

const CANCEL_RULES: Rules<CancelOptions> = {
  ...{ force: FLAG, reason: SENDABLE, message: SENDABLE, killTimeoutMs: AMOUNT },
};

/** All keys that a client holds, and what the scheduler has reported about them. */
export class KeyTable {
  /** One want of each key; the others of the key are linked with it. */
  private readonly entries = new SteadyMap<string, KeyEntry>();
  /**
   * Set while the client finds out, after a reconnect, which keys the scheduler does not know any
   * more.
   */
  private losses: string[] | undefined;
  /**
   * Data of this client that the scheduler has refused, with the reason; taken by the call that put
   * it there.
   */
  private readonly refused = new Map<string, string>();
  readonly definitions = new Definitions();
  private readonly kept = new KeptValues();

  constructor(private readonly outgoing: Outgoing) {}

  get size(): number {
    return this.entries.size;
  }

  get(key: string): KeyEntry | undefined {
    return this.entries.get(key);
  }

  /** One want of each key that has not ended. O(keys). */
  get open(): readonly KeyEntry[] {
    return [...this.entries.values()].filter((entry) => !entry.isSettled);
  }

  /**
   * @returns the entry of the key, if it is held
   * @throws YardmasterError `ERR_KEY_TAKEN` when the key computes something else already, or from other inputs
   */
  check(key: string, definition: string, mark?: string): KeyEntry | undefined {
    const entry = this.entries.get(key);
    if (contradicts(entry?.definition, definition)) throw duplicateKey(key);
    if (contradicts(entry?.mark, mark)) throw duplicateKey(key);
    this.definitions.check(key, definition);
    return entry;
  }

  /** One more want of a key, which may be held already. */
  add(key: string, definition: string | undefined, mark?: string): KeyEntry {
    const held = this.entries.get(key);
    const { definition: known, mark: its } = held ?? { definition, mark };
    const entry = new KeyEntry(key, known, its);
    if (held !== undefined) {
      entry.join(held);
      return entry;
    }
    this.entries.set(key, entry);
    return entry;
  }

  /** The report that was queued last asks for these keys. */
  noteAsked(keys: Iterable<string>): void {
    const { latest } = this.outgoing;
    for (const key of keys) {
      const held = this.entries.get(key);
      if (held !== undefined) held.askedBy = latest;
    }
  }

  /**
   * Asks for keys that the scheduler has.
   * @param isAll - true: the client wants nothing else
   */
  desire(keys: readonly string[], isAll = false): void {
    this.outgoing.report({ op: 'client-desires-keys', keys, isAll });
    this.noteAsked(keys);
  }

  /** One holder less; without any the want ends, and with the last want the scheduler may forget the key. */
  release(entry: KeyEntry): void {
    entry.references--;
    if (entry.references > 0 || entry.detached) return;
    const isLast = this.leave(entry);
    entry.release(() => releasedError(entry.key));
    if (isLast) this.outgoing.releaseKey(entry.key);
  }

  /** Releases all keys, whatever their number of references. */
  releaseAll(): void {
    for (const { key } of [...this.entries.values()]) {
      const all = this.forget(key);
      for (const entry of all) entry.release(() => releasedError(key));
      if (all.length > 0) this.outgoing.releaseKey(key);
    }
  }

  /**
   * Ends these wants, by force all wants of their keys. The scheduler is told of the keys that nobody wants here any more.
   * @param errorOf - what the callers that wait for a key receive
   * @param keepsDependents - true: what depends on the keys stays wanted
   */
  cancel(
    entries: readonly KeyEntry[],
    options: CancelOptions,
    {
      errorOf = cancelledError,
      keepsDependents,
    }: {
      readonly errorOf?: (key: string, reason: string, message?: string) => Error;
      readonly keepsDependents?: boolean;
    } = {},
  ): void {
    checkOptions('cancel', options, CANCEL_RULES);
    const { force = false, reason, message, killTimeoutMs } = options;
    const held = entries.filter((entry) => !entry.detached);
    if (held.length === 0) return;
    const why = reason ?? 'its client gave it up';
    const keys: string[] = [];
    const ended: KeyEntry[] = [];
    for (const entry of held) {
      if (entry.detached) continue;
      if (force) ended.push(...this.forget(entry.key));
      else ended.push(entry);
      if (force || this.leave(entry)) keys.push(entry.key);
    }
    if (keys.length > 0) {
      const how = { force, keepsDependents, reason: why, message, killTimeoutMs };
      this.outgoing.report({ op: 'cancel-keys', keys, ...how });
    }
    for (const entry of ended) entry.cancel(() => errorOf(entry.key, why, message));
  }

  retry(entries: readonly KeyEntry[]): void {
    const failed = entries.filter((entry) => entry.status === 'error');
    if (failed.length === 0) return;
    const keys = [...new Set(failed.map((entry) => entry.key))];
    this.outgoing.report({ op: 'retry', keys });
    for (const key of keys) {
      this.reopen(this.entries.get(key), 'pending');
      // If the task is no longer in error, the answer reports its present state.
      this.outgoing.report({ op: 'report-key', key });
    }
  }

  /** Changes the priority of tasks that have not ended. No-op for those that have. */
  setPriorities(priorities: ReadonlyMap<KeyEntry, number>, raiseInputs: boolean): void {
    const open = [...priorities].filter(([entry]) => !entry.detached && !entry.isSettled);
    if (open.length === 0) return;
    for (const [{ key }, priority] of open) {
      const held = this.entries.get(key);
      if (held !== undefined) held.priority = priority;
    }
    this.outgoing.report({
      op: 'set-priority',
      keys: open.map(([entry]) => entry.key),
      userPriorities: open.map(([, priority]) => priority),
      raiseInputs,
    });
  }

  /** A task that is held is submitted again: it has the best of what its submissions ask for. */
  submitAgain(entry: KeyEntry, task: GraphTask): void {
    // Who calls again after a refusal wants another try, and no news of the last one.
    if (wasRefused(entry)) this.retry([entry]);
    if (!entry.noteSubmission(task)) return;
    const { key, priority, timeLimitMs } = entry;
    this.outgoing.report({
      op: 'submit-again',
      keys: [key],
      userPriorities: [priority],
      timeLimitsMs: [timeLimitMs],
    });
  }

  /** The reason why the scheduler has refused data under this key, if it has since the last call. */
  takeRefusal(key: string): string | undefined {
    const reason = this.refused.get(key);
    this.refused.delete(key);
    return reason;
  }

  /**
   * Ends a key that was never created: all its futures get the error, and the scheduler receives no
   * message.
   */
  abandon(entry: KeyEntry, error: () => Error): void {
    if (!entry.detached) this.end(entry.key, error);
  }

  /** Called when a result could not be found although the scheduler reported it as in memory. */
  reportLost(entry: KeyEntry): void {
    if (entry.detached) return;
    this.reopen(entry, 'lost');
    this.outgoing.report({ op: 'report-key', key: entry.key });
  }

  /** These could not be submitted: their futures fail, and the keys are free again, unless another graph has them. */
  fail(keys: readonly string[], error: YardmasterError): void {
    for (const key of keys) {
      const entry = this.entries.get(key);
      if (entry === undefined || entry.isSettled) continue;
      if (--entry.graphs > 0) {
        this.desire([key]); // Another one may have been refused before.
        continue;
      }
      for (const each of this.forget(key)) each.fail(() => unsentError(key, error));
    }
  }

  handle(message: ToClientMessage): void {
    switch (message.op) {
      case 'key-in-memory':
        this.onInMemory(message);
        return;
      case 'lost-data':
        this.reopen(this.entries.get(message.key), 'lost');
        return;
      case 'task-retried':
        this.reopen(this.entries.get(message.key), 'pending');
        return;
      case 'task-erred':
        this.onErred(message);
        return;
      case 'cancelled-keys':
        for (const key of message.keys) this.onCancelled(key, message);
        return;
      case 'data-refused':
        for (const key of message.keys) this.refused.set(key, message.reason);
        return;
      case 'restart':
        for (const key of [...this.entries.keys()]) {
          if (this.isMeant(key, message)) {
            this.end(key, () => cancelledError(key, 'the scheduler was restarted'));
          }
        }
        return;
    }
  }

  /**
   * The client is back with its scheduler, or with another one: what that does not know is lost.
   * @returns the keys that are held
   */
  expectLosses(): string[] {
    this.losses ??= [];
    return [...this.entries.keys()];
  }

  /** Keys that were lost since {@link expectLosses}, which this ends. */
  takeLosses(): readonly string[] {
    const losses = this.losses ?? [];
    this.losses = undefined;
    return losses;
  }

  /** The connection is over. */
  close(error: (key: string) => Error): void {
    this.endAll(error);
  }

  /** True when the message is about what the client wants now, and not about what it has replaced by then. */
  private isMeant(key: string, { after = 0 }: { readonly after?: number }): boolean {
    const entry = this.entries.get(key);
    return entry !== undefined && entry.askedBy <= after;
  }

  private onCancelled(key: string, cancelled: CancelledKeys): void {
    if (!this.isMeant(key, cancelled)) return;
    const { reason, message, taken, plugin } = cancelled;
    if (plugin !== undefined) {
      this.end(key, () => refusedError(key, plugin, reason));
      return;
    }
    if (taken !== undefined) {
      this.end(key, () => takenElsewhere(key, taken));
      return;
    }
    const isLost = this.losses !== undefined && reason === UNKNOWN_KEY;
    if (isLost) this.losses?.push(key);
    this.end(key, () => (isLost ? lostError(key, reason) : cancelledError(key, reason, message)));
  }

  private endAll(error: (key: string) => Error): void {
    for (const key of [...this.entries.keys()]) this.end(key, () => error(key));
    this.definitions.clear();
  }

  /** Ends all wants of a key. */
  private end(key: string, error: () => Error): void {
    for (const entry of this.forget(key)) entry.cancel(error);
  }

  private onErred(message: TaskErredMessage): void {
    const entry = this.entries.get(message.key);
    if (!this.isMeant(message.key, message)) return;
    entry?.fail((want) => withSite(failureOf(message), want, message.blame));
  }

  private onInMemory({ key, workers, nbytes = 0, value, after = 0 }: KeyInMemory): void {
    const entry = this.entries.get(key);
    if (entry === undefined || entry.askedBy > after) return;
    this.kept.keep(entry, value);
    entry.finish(workers, nbytes);
  }

  /** Results of the earlier computation do not count for the next one. */
  private reopen(entry: KeyEntry | undefined, status: 'pending' | 'lost'): void {
    if (entry === undefined) return;
    this.kept.drop(entry);
    entry.reopen(status);
  }

  /** One want less. @returns whether it was the last of its key, which is forgotten then */
  private leave(entry: KeyEntry): boolean {
    const { key } = entry;
    const isKept = this.entries.get(key) === entry;
    const heir = entry.leave(isKept);
    if (heir === undefined) return this.forget(key).length > 0;
    entry.detached = true;
    if (isKept) this.entries.set(key, heir);
    return false;
  }

  /** @returns the wants of the key, which are on their own now: the callers end them */
  private forget(key: string): KeyEntry[] {
    const held = this.entries.get(key);
    if (held === undefined) return [];
    this.kept.drop(held);
    this.entries.delete(key);
    this.definitions.release(key);
    const all = held.ring();
    for (const entry of all) {
      entry.detached = true;
      entry.leave(false);
    }
    return all;
  }
}

/** True when its queue was full. */
function wasRefused(entry: KeyEntry): boolean {
  if (entry.status !== 'error') return false;
  const { code } = entry.error() as { readonly code?: string };
  return code === 'ERR_QUEUE_FULL';
}

export function cancelledError(
  key: string,
  reason: string,
  message?: string,
  options?: ErrorOptions,
): YardmasterError {
  const isLost = reason === LOST_INPUT;
  return new YardmasterError(
    isLost ? 'ERR_LOST_DEPENDENCY' : 'ERR_CANCELLED',
    isLost
      ? `"${key}" cannot be computed: one of its dependencies is gone; submit that again`
      : `"${key}" was cancelled: ${reason}${message === undefined ? '' : `: ${message}`}`,
    { key, reason, message },
    options,
  );
}

function refusedError(key: string, plugin: string, reason: string): YardmasterError {
  const message = `"${key}" was refused by the plugin "${plugin}" of the scheduler: ${reason}`;
  return new YardmasterError('ERR_REFUSED', message, { key, plugin, reason });
}

function unsentError(key: string, cause: YardmasterError): YardmasterError {
  const { code, message, data } = cause;
  return new YardmasterError(
    code,
    `"${key}" could not be submitted: ${message}`,
    { ...data, key },
    { cause },
  );
}

function lostError(key: string, reason: string): YardmasterError {
  return new YardmasterError(
    'ERR_LOST',
    `"${key}" was lost: the connection to the scheduler broke, and now it does not know this task any more; submit it again`,
    { key, reason },
  );
}

/** The error of a future that was released. */
export function releasedError(key: string): YardmasterError {
  return new YardmasterError('ERR_CANCELLED', `the future of "${key}" was released`, { key });
}

/** The error of a failed task as its worker threw it. */
function failureOf({ key, blame, failure }: TaskErredMessage): Error {
  const payload = isErrorPayload(failure.exception)
    ? failure.exception
    : { name: 'TaskError', message: failure.exceptionText, stack: failure.tracebackText };
  return new RemoteError({ ...payload, data: { ...payload.data, key, blame } });
}

/** The stack says which task it was, and where that was submitted. */
function withSite(error: Error, { key, site }: KeyEntry, blame: string): Error {
  const place = site === undefined ? '' : submittedAt(site);
  const cause = blame === key ? '' : `, because of "${blame}"`;
  error.stack = `${error.stack ?? String(error)}\n  in the task "${key}"${cause}${place}`;
  return error;
}

function isErrorPayload(value: unknown): value is ErrorPayload {
  if (typeof value !== 'object' || value === null) return false;
  const { name, message } = value as Record<string, unknown>;
  return typeof name === 'string' && typeof message === 'string';
}

/** Keys of one graph, held as long as one of its requested results is. */
interface GraphLease {
  readonly definitions: ReadonlyMap<string, string>;
  /** Requested keys that are still held. */
  remaining: number;
}

/**
 * Records what each key of the active graphs computes, so that one key cannot stand for two
 * computations. The scheduler would silently keep the first one.
 */
class Definitions {
  private readonly known = new Map<string, { definition: string; leases: number }>();
  private readonly leasesByKey = new Map<string, GraphLease[]>();

  /** @throws YardmasterError `ERR_KEY_TAKEN` when the key computes something else already */
  check(key: string, definition: string): void {
    if (this.known.size === 0) return;
    const other = this.known.get(key);
    if (other !== undefined && other.definition !== definition) throw duplicateKey(key);
  }

  /** True when a graph that is in play defines it. */
  has(key: string): boolean {
    return this.known.has(key);
  }

  /** @param keys - the requested ones */
  add(definitions: ReadonlyMap<string, string>, keys: readonly string[]): void {
    const lease: GraphLease = { definitions, remaining: keys.length };
    for (const key of keys) {
      pushTo(this.leasesByKey, key, lease);
    }
    for (const [key, definition] of definitions) {
      const other = this.known.get(key);
      if (other === undefined) this.known.set(key, { definition, leases: 1 });
      else other.leases++;
    }
  }

  /** The client does not hold a requested key any more. */
  release(key: string): void {
    if (this.leasesByKey.size === 0) return;
    const leases = this.leasesByKey.get(key);
    if (leases === undefined) return;
    this.leasesByKey.delete(key);
    for (const lease of leases) {
      lease.remaining--;
      if (lease.remaining === 0) this.drop(lease);
    }
  }

  clear(): void {
    this.known.clear();
    this.leasesByKey.clear();
  }

  private drop(lease: GraphLease): void {
    for (const key of lease.definitions.keys()) {
      const known = this.known.get(key);
      if (known === undefined) continue;
      known.leases--;
      if (known.leases === 0) this.known.delete(key);
    }
  }
}

/** The error for a key that is taken. */
function duplicateKey(key: string): YardmasterError {
  return new YardmasterError(
    'ERR_KEY_TAKEN',
    `the key "${key}" is taken by another value, or by a task with another function or other arguments; choose another key, or release the futures of the first`,
    { key },
  );
}

/** The error for a key under which another client has submitted something else. */
function takenElsewhere(key: string, taken: string): YardmasterError {
  const what = key === taken ? '' : `"${key}" was not submitted: `;
  return new YardmasterError(
    'ERR_KEY_TAKEN',
    `${what}the key "${taken}" is taken by a value, or by a task with another function or other arguments, of another client; choose another key or a namespace, or have that client release it`,
    { key, taken },
  );
}

/** Bytes of results that a client keeps because they came along; others are fetched when asked for. */
const KEPT_BYTES_MAX = 64 * 1024 * 1024;
/** The size of a small array of bytes besides its bytes. */
const OVERHEAD_BYTES = 200;

/** Small results that came with the news of them, as long as their keys are held: all wants of a key have the same bytes. */
class KeptValues {
  private keptBytes = 0;

  /** Keeps the value if it fits. */
  keep(entry: KeyEntry, value: Uint8Array | undefined): void {
    this.drop(entry);
    if (value === undefined) return;
    const nbytes = value.byteLength + OVERHEAD_BYTES;
    if (this.keptBytes + nbytes > KEPT_BYTES_MAX) return;
    this.keptBytes += nbytes;
    for (const want of entry.ring()) want.value = value;
  }

  /** The result is needed no more, or is not to be trusted any more. */
  drop(entry: KeyEntry): void {
    if (entry.value === undefined) return;
    this.keptBytes -= entry.value.byteLength + OVERHEAD_BYTES;
    for (const want of entry.ring()) want.value = undefined;
  }
}
