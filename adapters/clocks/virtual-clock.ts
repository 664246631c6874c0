import { type Clock, type Timer, YardmasterError } from '../../core/api/index.ts';
import { TimerHeap } from './system-clock.ts';

/** Timers that may run at one instant before the clock says that time stands still. */
const RUNS_PER_INSTANT_MAX = 1_000_000;

/** A timer, and the handle to cancel it. */
class VirtualTimer implements Timer {
  constructor(
    private readonly clock: { liveCount: number },
    /** Undefined when it has fired or was cancelled; the heap drops it when it comes up. */
    public callback: (() => void) | undefined,
  ) {}

  cancel(): void {
    if (this.callback === undefined) return;
    this.callback = undefined;
    this.clock.liveCount--;
  }
}

/**
 * Time that passes only on request, for tests and simulations. Timers run in the order of their
 * time, then of their creation, so that the same program gives the same run.
 *
 * The async methods let promise jobs (and what they cause within this process) settle before each
 * timer. They do not wait for sockets, threads or files.
 */
export class VirtualClock implements Clock {
  private readonly timers = new TimerHeap<VirtualTimer>();
  /** Timers that have not fired and were not cancelled. */
  private readonly pending = { liveCount: 0 };
  private running = false;
  private runsThisInstant = 0;

  private currentMs: number;

  /** @param nowMs - where time starts */
  constructor(nowMs = 0) {
    this.currentMs = nowMs;
  }

  nowMs(): number {
    return this.currentMs;
  }

  elapsedMs(): number {
    return performance.now();
  }

  /** Timers that have not fired and were not cancelled. */
  get timerCount(): number {
    return this.pending.liveCount;
  }

  /** The time at which the next timer is due; undefined when there is none. */
  get nextTimerMs(): number | undefined {
    this.dropCancelled();
    return this.timers.first === undefined ? undefined : this.timers.firstMs;
  }

  /** @param delayMs - below 0 counts as 0; Infinity never fires */
  setTimer(delayMs: number, callback: () => void): Timer {
    if (Number.isNaN(delayMs)) throw new RangeError('the delay of a timer is NaN');
    if (delayMs === Infinity) return { cancel: () => undefined };
    const timer = new VirtualTimer(this.pending, callback);
    this.pending.liveCount++;
    this.timers.add(this.currentMs + Math.max(0, delayMs), timer);
    return timer;
  }

  /** Runs the next timer, whenever it is due. False when there is none. */
  runNext(): boolean {
    return this.runWithin(Infinity);
  }

  /** Lets `durationMs` pass and runs what falls due, also what that arms. */
  advance(durationMs: number): void {
    this.advanceTo(this.currentMs + durationMs);
  }

  /** @param timeMs - not before now */
  advanceTo(timeMs: number): void {
    this.checkTarget(timeMs);
    while (this.runWithin(timeMs));
    this.currentMs = timeMs;
  }

  /** As `advance`; promise jobs settle before each timer and at the end. */
  advanceAsync(durationMs: number): Promise<void> {
    return this.advanceToAsync(this.currentMs + durationMs);
  }

  async advanceToAsync(timeMs: number): Promise<void> {
    this.checkTarget(timeMs);
    await settle();
    while (this.runWithin(timeMs)) await settle();
    this.currentMs = timeMs;
  }

  /**
   * Runs timers, one after the other, until the predicate holds.
   *
   * @param maxMs - virtual time that may pass; default 60 000
   * @throws YardmasterError `ERR_TIMEOUT` when the next timer is due later than that, or when
   *   there is none, because then nothing can change any more
   */
  async runUntil(
    predicate: () => boolean,
    { maxMs = 60_000 }: { readonly maxMs?: number } = {},
  ): Promise<void> {
    const untilMs = this.currentMs + maxMs;
    for (;;) {
      await settle();
      if (predicate()) return;
      if (this.runWithin(untilMs)) continue;
      const nextMs = this.nextTimerMs;
      throw new YardmasterError(
        'ERR_TIMEOUT',
        nextMs === undefined
          ? `what runUntil waits for did not happen, and at ${this.currentMs} ms of virtual time no timer is left that could bring it about`
          : `what runUntil waits for did not happen within ${maxMs} ms of virtual time; the next timer is due at ${nextMs} ms`,
        { nowMs: this.currentMs, maxMs, nextTimerMs: nextMs },
      );
    }
  }

  /** Runs the next timer if it is due by then. */
  private runWithin(timeMs: number): boolean {
    if (this.running) {
      throw new YardmasterError(
        'ERR_INVARIANT',
        'a timer of the virtual clock tried to advance that clock; only the test may do so',
      );
    }
    this.dropCancelled();
    const { first, firstMs } = this.timers;
    if (first === undefined || firstMs > timeMs) return false;
    this.timers.removeFirst();
    const { callback } = first;
    first.cancel();
    this.countRun(firstMs);
    this.running = true;
    try {
      callback?.();
    } finally {
      this.running = false;
    }
    return true;
  }

  private countRun(dueMs: number): void {
    this.runsThisInstant = dueMs > this.currentMs ? 1 : this.runsThisInstant + 1;
    this.currentMs = Math.max(this.currentMs, dueMs);
    if (this.runsThisInstant <= RUNS_PER_INSTANT_MAX) return;
    throw new YardmasterError(
      'ERR_INVARIANT',
      `virtual time stands still at ${this.currentMs} ms: ${RUNS_PER_INSTANT_MAX} timers ran at this instant; one of them probably arms itself again with a delay of 0`,
      { nowMs: this.currentMs },
    );
  }

  private checkTarget(timeMs: number): void {
    if (timeMs >= this.currentMs && timeMs < Infinity) return;
    throw new RangeError(`cannot go from ${this.currentMs} ms to ${timeMs} ms of virtual time`);
  }

  private dropCancelled(): void {
    const { timers } = this;
    while (timers.first !== undefined && timers.first.callback === undefined) timers.removeFirst();
  }
}

/** One turn of the event loop: all promise jobs there are, and those that they queue, have run. */
function settle(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
