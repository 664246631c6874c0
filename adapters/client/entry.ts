import type { GraphTask } from '../../core/api/index.ts';
import type { CallSite } from './call-site.ts';
import type { ContentKey } from './content-keys.ts';

/** The status of a future: `lost` waits for the result to be computed again, the last three are final. */
export type FutureStatus = 'pending' | 'lost' | 'finished' | 'error' | 'cancelled';

/** Called when an entry has ended. */
type SettledCallback = (entry: KeyEntry) => void;

/** Never written to: most entries have no listener at any time. */
const NO_LISTENERS: SettledCallback[] = [];

/**
 * One want of a client, with what it knows about the key. Each future has its own; those of one key are linked in a ring,
 * and what happens to the task happens to all of them. When the last of them ends, the client gives the key up at the
 * scheduler.
 */
export class KeyEntry {
  private state: FutureStatus = 'pending';
  private failure: ((entry: KeyEntry) => Error) | undefined;
  private listeners: SettledCallback[] = NO_LISTENERS;
  private next: KeyEntry = this;
  private previous: KeyEntry = this;
  /** Its future and open calls that need it. */
  references = 0;
  /** Given up, cancelled, or the connection is over. */
  detached = false;
  // The next ones count in the entry that the table has, and pass on to its heir.
  /** Number of the last report that asks for it; Infinity: none has yet. What the scheduler ended before is not this. */
  askedBy = Infinity;
  /** The highest priority with which this client has submitted it, or the one that it was given since. */
  priority = -Infinity;
  /** Milliseconds that its most patient submission by this client lets a run take; Infinity: no limit. */
  timeLimitMs = 0;
  /** Graphs with it that were sent, or are to be. */
  graphs = 0;
  /** The content key of its result, if that is known. */
  contentKey: ContentKey | undefined = undefined;
  /** The workers that held the result according to the scheduler's last message. */
  workers: readonly string[] = [];
  /** Bytes of the result; 0 while unknown. */
  nbytes = 0;
  /** The place at which it was submitted, if that is known. */
  site: CallSite | undefined = undefined;
  /** The result, serialised, if it is here. Owned by `KeptValues`. */
  value: Uint8Array | undefined = undefined;

  constructor(
    readonly key: string,
    /** Hash of what the key computes; undefined where no other definition can have this key. */
    readonly definition: string | undefined,
    /** Stands for what it follows from where the key does not; undefined: the key does, or that is not known. */
    readonly mark?: string,
  ) {}

  get status(): FutureStatus {
    return this.state;
  }

  get isSettled(): boolean {
    return this.state === 'finished' || this.state === 'error' || this.state === 'cancelled';
  }

  /** A new error for each caller; undefined unless the status is `error` or `cancelled`. */
  error(): Error | undefined {
    return this.failure?.(this);
  }

  /** All wants of the key, this one first. */
  ring(): KeyEntry[] {
    const all: KeyEntry[] = [this];
    for (let { next } = this; next !== this; next = next.next) all.push(next);
    return all;
  }

  /** Makes it one more want of the key of another entry, whose state it takes over. */
  join(other: KeyEntry): void {
    this.state = other.state;
    this.failure = other.failure;
    this.workers = other.workers;
    this.nbytes = other.nbytes;
    this.value = other.value;
    this.contentKey = other.contentKey;
    this.next = other;
    this.previous = other.previous;
    other.previous.next = this;
    other.previous = this;
  }

  /**
   * Takes it out of the ring.
   * @param isInherited - it is the entry that the table has: the next one gets what counts for the key
   * @returns the next want of the key; undefined: there is none
   */
  leave(isInherited: boolean): KeyEntry | undefined {
    const { next } = this;
    if (next === this) return undefined;
    if (isInherited) {
      next.priority = this.priority;
      next.timeLimitMs = this.timeLimitMs;
      next.graphs = this.graphs;
      next.contentKey ??= this.contentKey;
      next.askedBy = this.askedBy;
    }
    next.previous = this.previous;
    this.previous.next = next;
    this.next = this;
    this.previous = this;
    this.value = undefined;
    return next;
  }

  /**
   * The client submits its task, for the first time or again.
   * @returns whether that asks for more than earlier submissions
   */
  noteSubmission({ userPriority = 0, annotations }: GraphTask): boolean {
    const limit = annotations?.['timeoutMs'];
    const timeLimitMs = typeof limit === 'number' ? limit : Infinity;
    const isMore = userPriority > this.priority || timeLimitMs > this.timeLimitMs;
    this.priority = Math.max(this.priority, userPriority);
    this.timeLimitMs = Math.max(this.timeLimitMs, timeLimitMs);
    return isMore;
  }

  /** The task has ended well, for all wants of the key. */
  finish(workers: readonly string[], nbytes: number): void {
    const all = this.ring();
    for (const entry of all) {
      entry.workers = workers;
      entry.nbytes = Math.max(0, nbytes);
      entry.become('finished', undefined);
    }
    for (const entry of all) entry.notify();
  }

  /** The task has failed, for all wants of the key. */
  fail(error: (entry: KeyEntry) => Error): void {
    const all = this.ring();
    for (const entry of all) entry.become('error', error);
    for (const entry of all) entry.notify();
  }

  /** Ends this want alone. */
  cancel(error: () => Error): void {
    this.detached = true;
    this.settle('cancelled', error);
  }

  /** Ends this want alone because its future was released; an end that it has reached stays. */
  release(error: () => Error): void {
    this.detached = true;
    if (!this.isSettled) this.settle('cancelled', error);
  }

  /** The result is to come (again), for all wants of the key. */
  reopen(status: 'pending' | 'lost'): void {
    if (this.detached) return;
    for (const entry of this.ring()) {
      entry.become(status, undefined);
      entry.workers = [];
    }
  }

  /** Calls back once, at once when it is settled. */
  onSettled(callback: SettledCallback): void {
    if (this.isSettled) callback(this);
    else if (this.listeners === NO_LISTENERS) this.listeners = [callback];
    else this.listeners.push(callback);
  }

  /** Takes back what {@link onSettled} was given, if it was not called yet. */
  withdraw(callback: SettledCallback): void {
    if (!this.listeners.includes(callback)) return;
    this.listeners = this.listeners.filter((listener) => listener !== callback);
  }

  /** Resolves when it is settled; never rejects. */
  settled(): Promise<void> {
    return new Promise((resolve) => {
      this.onSettled(() => resolve());
    });
  }

  private settle(status: FutureStatus, failure: () => Error): void {
    this.become(status, failure);
    this.notify();
  }

  private become(status: FutureStatus, failure: ((entry: KeyEntry) => Error) | undefined): void {
    this.state = status;
    this.failure = failure;
  }

  private notify(): void {
    const listeners = this.listeners;
    this.listeners = NO_LISTENERS;
    for (const listener of listeners) listener(this);
  }
}

/** Milliseconds after which a thing is registered with the garbage collector. */
const WATCHED_AFTER_MS = 1000;

/** The facts about a thing, without holding the thing: made by {@link LeakTracker.watch}. */
export class Watched<Held> {
  /** The thing, as long as the engine does not watch it. */
  thing: object | undefined;

  constructor(
    thing: object,
    readonly held: Held,
    /** Its place among those that the engine does not watch yet; -1: none. */
    public place: number,
  ) {
    this.thing = thing;
  }
}

/** The rules of a tracker for the facts about a thing. */
interface Rules<Held, Kept> {
  /** The part that is kept while the engine watches the thing: it must not lead to the thing. */
  hold(held: Held): Kept;
  /** The thing has become unreachable. */
  onAbandoned(kept: Kept): void;
}

/**
 * Calls back for things that have become unreachable.
 *
 * Registering a thing with a `FinalizationRegistry`, and unregistering it, costs half a microsecond
 * and slows down each minor collection. Most things are released explicitly soon, so only older
 * ones are registered.
 */
export class LeakTracker<Held, Kept> {
  private readonly registry: FinalizationRegistry<Kept>;
  private readonly young: Watched<Held>[] = [];
  private isTimerSet = false;

  constructor(private readonly rules: Rules<Held, Kept>) {
    this.registry = new FinalizationRegistry((kept) => {
      rules.onAbandoned(kept);
    });
  }

  watch(thing: object, held: Held): Watched<Held> {
    const watched = new Watched(thing, held, this.young.length);
    this.young.push(watched);
    if (!this.isTimerSet) this.setTimer();
    return watched;
  }

  /** Called when the thing is released explicitly. */
  unwatch(watched: Watched<Held>): void {
    const { place } = watched;
    if (place < 0) {
      this.registry.unregister(watched);
      return;
    }
    watched.place = -1;
    watched.thing = undefined;
    const last = this.young.pop();
    if (last === undefined || last === watched) return;
    this.young[place] = last;
    last.place = place;
  }

  private setTimer(): void {
    this.isTimerSet = true;
    setTimeout(() => {
      this.isTimerSet = false;
      for (const watched of this.young.splice(0)) this.register(watched);
    }, WATCHED_AFTER_MS).unref();
  }

  private register(watched: Watched<Held>): void {
    const { thing, held } = watched;
    watched.place = -1;
    watched.thing = undefined;
    if (thing !== undefined) this.registry.register(thing, this.rules.hold(held), watched);
  }
}
