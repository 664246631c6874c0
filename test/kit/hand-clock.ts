import type { Clock, Timer } from '../../core/api/index.ts';

/** A clock that a test sets forward, also while a timer of it runs. Timers are run by `turn`. */
export class HandClock implements Clock {
  private ms = 0;
  private timers: (() => void)[] = [];

  nowMs(): number {
    return this.ms;
  }

  pass(ms: number): void {
    this.ms += ms;
  }

  /** As if all were due at once. */
  setTimer(_delayMs: number, callback: () => void): Timer {
    this.timers.push(callback);
    return {
      cancel: () => {
        this.timers = this.timers.filter((each) => each !== callback);
      },
    };
  }

  /** Runs the timers that are set now, and none that they set. Returns how many they were. */
  turn(): number {
    const { timers } = this;
    this.timers = [];
    for (const callback of timers) callback();
    return timers.length;
  }
}
