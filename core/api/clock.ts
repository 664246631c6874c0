/** A timer that can be given up. */
export interface Timer {
  /** No-op when it has fired or was cancelled before. */
  cancel(): void;
}

/**
 * The only source of time outside of the kernel. Tests and simulations put a virtual one in its
 * place, so nothing else may call `Date.now` or `setTimeout`.
 */
export interface Clock {
  /** Milliseconds since 1970 in real time, since the start of a virtual one; never goes back. */
  nowMs(): number;
  /**
   * Milliseconds of real time since some fixed moment, for measuring how long code takes: it passes in virtual time,
   * too. Default: {@link nowMs}.
   */
  elapsedMs?(): number;
  /** Calls back once, after at least `delayMs`. */
  setTimer(delayMs: number, callback: () => void): Timer;
}

/** Real time, for measuring how long code takes. */
export function elapsedMs(clock: Clock): number {
  return clock.elapsedMs === undefined ? clock.nowMs() : clock.elapsedMs();
}

/** Calls back again and again, each time a full interval after the last call returned. */
export function every(clock: Clock, intervalMs: number, callback: () => void): Timer {
  let timer: Timer;
  let stopped = false;
  const arm = (): void => {
    timer = clock.setTimer(intervalMs, () => {
      try {
        callback();
      } finally {
        if (!stopped) arm();
      }
    });
  };
  arm();
  return {
    cancel(): void {
      stopped = true;
      timer.cancel();
    },
  };
}
