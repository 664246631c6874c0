import { type Clock, type Timer, YardmasterError } from '../../core/api/index.ts';

/** Timers that may run at one instant before the clock says that time stands still. */
const RUNS_PER_INSTANT_MAX = 1_000_000;

interface VirtualTimer {
  readonly dueMs: number;
  /** Order of creation: ties of `dueMs` go to the older one. */
  readonly sequence: number;
  /** Undefined when cancelled; the heap drops it when it comes up. */
  callback: (() => void) | undefined;
}

/**
 * Time that passes only on request, for tests and simulations. Timers run in the order of their
 * time, then of their creation, so that the same program gives the same run.
 *
 * The async methods let promise jobs (and what they cause within this process) settle before each
 * timer. They do not wait for sockets, threads or files.
 */
export class VirtualClock implements Clock {
  private readonly heap: VirtualTimer[] = [];
  private sequence = 0;
  private liveCount = 0;
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

  /** Timers that have not fired and were not cancelled. */
  get timerCount(): number {
    return this.liveCount;
  }

  /** When the next timer is due; undefined when there is none. */
  get nextTimerMs(): number | undefined {
    this.dropCancelled();
    return this.heap[0]?.dueMs;
  }

  /** @param delayMs - below 0 counts as 0; Infinity never fires */
  setTimer(delayMs: number, callback: () => void): Timer {
    if (Number.isNaN(delayMs)) throw new RangeError('the delay of a timer is NaN');
    if (delayMs === Infinity) return { cancel: () => undefined };
    const timer: VirtualTimer = {
      dueMs: this.currentMs + Math.max(0, delayMs),
      sequence: this.sequence++,
      callback,
    };
    this.liveCount++;
    siftUp(this.heap, timer);
    return {
      cancel: () => {
        if (timer.callback === undefined) return;
        timer.callback = undefined;
        this.liveCount--;
      },
    };
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
    const next = this.heap[0];
    if (next === undefined || next.dueMs > timeMs) return false;
    removeFirst(this.heap);
    const { callback } = next;
    next.callback = undefined;
    this.liveCount--;
    this.countRun(next.dueMs);
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
    while (this.heap[0] !== undefined && this.heap[0].callback === undefined) {
      removeFirst(this.heap);
    }
  }
}

/** One turn of the event loop: all promise jobs there are, and those that they queue, have run. */
function settle(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

function isBefore(a: VirtualTimer, b: VirtualTimer): boolean {
  return a.dueMs < b.dueMs || (a.dueMs === b.dueMs && a.sequence < b.sequence);
}

function siftUp(heap: VirtualTimer[], timer: VirtualTimer): void {
  let index = heap.length;
  while (index > 0) {
    const parentIndex = (index - 1) >> 1;
    const parent = heap[parentIndex];
    if (parent === undefined || !isBefore(timer, parent)) break;
    heap[index] = parent;
    index = parentIndex;
  }
  heap[index] = timer;
}

function removeFirst(heap: VirtualTimer[]): void {
  const last = heap.pop();
  if (last === undefined || heap.length === 0) return;
  let index = 0;
  for (;;) {
    let childIndex = 2 * index + 1;
    let child = heap[childIndex];
    if (child === undefined) break;
    const right = heap[childIndex + 1];
    if (right !== undefined && isBefore(right, child)) {
      child = right;
      childIndex++;
    }
    if (!isBefore(child, last)) break;
    heap[index] = child;
    index = childIndex;
  }
  heap[index] = last;
}
