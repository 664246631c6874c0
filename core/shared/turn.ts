import type { Clock } from '../api/clock.ts';

/** No work is begun in a turn that has lasted this long: with the longest piece, and a collection, 20 ms. */
const BUDGET_MS = 5;

const budgets = new WeakMap<Clock, TurnBudget>();

/**
 * The time that one event-loop turn may spend on received data and on continued work of all
 * components: a hundred sockets may deliver as much at once as one. Work beyond the budget waits in
 * one queue for later turns; in between, the event loop serves timers and sockets.
 *
 * Each waiting component has one entry in the queue, does one piece of work when its entry is
 * reached, and queues again for the next piece. So it waits for at most one piece of each other
 * component.
 */
export class TurnBudget {
  private readonly waiting: (() => void)[] = [];
  /** The time at which the turn is spent; undefined: nothing was done in it. */
  private endMs: number | undefined;
  private isArmed = false;

  /** @param budgetMs - milliseconds after which no further piece of work is begun */
  constructor(
    private readonly clock: Clock,
    private readonly budgetMs = BUDGET_MS,
  ) {}

  /** The budget of all users of this clock: they share an event loop. */
  static of(clock: Clock): TurnBudget {
    let budget = budgets.get(clock);
    if (budget === undefined) {
      budget = new TurnBudget(clock);
      budgets.set(clock, budget);
    }
    return budget;
  }

  /** True when a piece of work may be done right now. Otherwise it has to wait in the queue. */
  admits(): boolean {
    if (this.waiting.length > 0) return false;
    const nowMs = this.clock.nowMs();
    if (this.endMs !== undefined) return nowMs < this.endMs;
    this.endMs = nowMs + this.budgetMs;
    this.arm();
    return true;
  }

  /**
   * Does a piece of work in a later turn, or at the end of this one if time is left, after all that
   * is in the queue.
   */
  later(work: () => void): void {
    this.waiting.push(work);
    this.arm();
  }

  private arm(): void {
    if (this.isArmed) return;
    this.isArmed = true;
    this.clock.setTimer(0, () => {
      this.isArmed = false;
      this.endTurn();
    });
  }

  private endTurn(): void {
    const { waiting, clock } = this;
    // Work that is queued now waits for the next turn, so that one piece cannot follow another for
    // ever.
    const count = waiting.length;
    let done = 0;
    try {
      let nowMs = count === 0 ? 0 : clock.nowMs();
      const endMs = this.endMs ?? nowMs + this.budgetMs;
      while (done < count && nowMs < endMs) {
        (waiting[done++] as () => void)();
        nowMs = clock.nowMs();
      }
    } finally {
      waiting.splice(0, done);
      this.endMs = undefined;
      if (waiting.length > 0) this.arm();
    }
  }
}

/** The functions that are called before anything leaves at the end of a turn. */
const beforeSending = new Set<() => void>();

/**
 * From now on calls back whenever peers are about to be sent what a turn has caused, so that something can be
 * written before. The callback must not throw.
 * @returns ends it
 */
export function beforeTurnsEnd(callback: () => void): () => void {
  beforeSending.add(callback);
  return () => void beforeSending.delete(callback);
}

/**
 * Calls back at the end of this turn of the event loop, when all that can be read now has been
 * handled: what many stimuli caused for one peer leaves in one frame. One `setImmediate` serves all
 * connections.
 */
export class TurnEnd {
  private callbacks: (() => void)[] = [];

  /** Called at most once per connection and turn. */
  add(callback: () => void): void {
    if (this.callbacks.push(callback) === 1) {
      setImmediate(() => {
        const { callbacks } = this;
        this.callbacks = [];
        for (const each of beforeSending) each();
        for (const each of callbacks) each();
      });
    }
  }
}
