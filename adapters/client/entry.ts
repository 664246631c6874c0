import type { CallSite } from './call-site.ts';

/** Where a future is: `lost` waits for the result to be computed again, the last three are final. */
export type FutureStatus = 'pending' | 'lost' | 'finished' | 'error' | 'cancelled';

/** Called when an entry has ended. */
type SettledCallback = (entry: KeyEntry) => void;

/** Never written to: most entries have no listener at any time. */
const NO_LISTENERS: SettledCallback[] = [];

/**
 * What a client knows about one key. All futures of the key share it; when the last of them is
 * released, the client releases the key at the scheduler.
 */
export class KeyEntry {
  private state: FutureStatus = 'pending';
  private failure: (() => Error) | undefined;
  private listeners: SettledCallback[] = NO_LISTENERS;
  /** Futures and open calls that need the key. */
  references = 0;
  /** Not in the table any more: cancelled, or the connection is over. */
  detached = false;
  /** The key was cancelled before; the echo of that is still to come and means nothing to us. */
  expectsOldCancellation = false;
  /** Where the result was according to the scheduler's last message. */
  workers: readonly string[] = [];
  /** Bytes of the result; 0 while unknown. */
  nbytes = 0;
  /** The highest priority with which this client has submitted it, or the one that it was given since. */
  priority = 0;
  /** Hash of all that its result follows from, if that is known. */
  contentKey: string | undefined = undefined;
  /** Where it was submitted, if that is known. */
  site: CallSite | undefined = undefined;
  /** The result, serialised, if it is here. Owned by `KeptValues`. */
  value: Uint8Array | undefined = undefined;

  constructor(
    readonly key: string,
    /** Hash of what the key computes; undefined where no other definition can have this key. */
    readonly definition: string | undefined,
  ) {}

  get status(): FutureStatus {
    return this.state;
  }

  get isSettled(): boolean {
    return this.state === 'finished' || this.state === 'error' || this.state === 'cancelled';
  }

  /** A new error for each caller; undefined unless the status is `error` or `cancelled`. */
  error(): Error | undefined {
    return this.failure?.();
  }

  finish(workers: readonly string[], nbytes: number): void {
    this.workers = workers;
    this.nbytes = Math.max(0, nbytes);
    this.settle('finished', undefined);
  }

  fail(error: () => Error): void {
    this.settle('error', error);
  }

  cancel(error: () => Error): void {
    this.detached = true;
    this.settle('cancelled', error);
  }

  /** Ends the entry because its last future was released; an end that it has reached stays. */
  release(error: () => Error): void {
    this.detached = true;
    if (!this.isSettled) this.settle('cancelled', error);
  }

  /** Its result is to come (again). */
  reopen(status: 'pending' | 'lost'): void {
    if (this.detached) return;
    this.state = status;
    this.failure = undefined;
    this.workers = [];
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

  private settle(status: FutureStatus, failure: (() => Error) | undefined): void {
    this.state = status;
    this.failure = failure;
    const listeners = this.listeners;
    this.listeners = NO_LISTENERS;
    for (const listener of listeners) listener(this);
  }
}

/** Milliseconds after which a thing is registered with the garbage collector. */
const WATCHED_AFTER_MS = 1000;

/** What is known about a thing, without holding the thing: made by {@link LeakTracker.watch}. */
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

/** What a tracker does with what is known about a thing. */
interface Rules<Held, Kept> {
  /** What is kept of it while the engine watches the thing: it must not lead to the thing. */
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
