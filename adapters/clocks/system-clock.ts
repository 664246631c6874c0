import type { Clock, Timer } from '../../core/api/index.ts';
import { epochMs } from './epoch.ts';

/** The longest delay that `setTimeout` takes; with a longer one it would fire at once. */
const TIMEOUT_MS_MAX = 2 ** 31 - 1;

/**
 * Real time: milliseconds since the epoch, with fractions, that do not jump when the machine's wall
 * clock is set. Timers keep the process alive until they fire or are cancelled.
 */
export class SystemClock implements Clock {
  nowMs(): number {
    return epochMs();
  }

  /**
   * @param delayMs - 0 or less: after what is waiting in the event loop now, with no delay of a
   *   millisecond as `setTimeout` has it; Infinity: never
   */
  setTimer(delayMs: number, callback: () => void): Timer {
    if (Number.isNaN(delayMs)) throw new RangeError('the delay of a timer is NaN');
    return delayMs <= 0 ? immediateTimer(callback) : new DelayTimer(this, delayMs, callback);
  }
}

function immediateTimer(callback: () => void): Timer {
  const handle = setImmediate(callback);
  return {
    cancel(): void {
      clearImmediate(handle);
    },
  };
}

class DelayTimer implements Timer {
  private handle: NodeJS.Timeout | undefined;
  private readonly dueMs: number;

  constructor(
    private readonly clock: SystemClock,
    delayMs: number,
    private readonly callback: () => void,
  ) {
    this.dueMs = clock.nowMs() + delayMs;
    this.arm(delayMs);
  }

  cancel(): void {
    clearTimeout(this.handle);
  }

  private arm(delayMs: number): void {
    if (delayMs === Infinity) return;
    this.handle = setTimeout(
      () => {
        // `setTimeout` counts whole milliseconds of another clock and may fire a fraction early.
        const leftMs = this.dueMs - this.clock.nowMs();
        if (leftMs > 0) this.arm(leftMs);
        else this.callback();
      },
      Math.min(Math.ceil(delayMs), TIMEOUT_MS_MAX),
    );
  }
}
