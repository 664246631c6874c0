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
