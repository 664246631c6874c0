import { type Clock, type Timer, YardmasterError } from '../../core/api/index.ts';
import { SystemClock } from '../clocks/index.ts';
import { type Future, holdingOfFuture, listOfFutures } from './future.ts';
import { checkNames, refuseOption } from './submission/options.ts';

/** How to wait. */
export interface WaitOptions {
  /** Milliseconds. Default: no limit. */
  readonly timeoutMs?: number;
  /** `first`: as soon as one of them is done. Default `all`. */
  readonly returnWhen?: 'all' | 'first';
  readonly clock?: Clock;
}

/** Futures that are done (with a result, an error or a cancellation), and those that are not. */
export interface WaitResult<F> {
  readonly done: F[];
  readonly notDone: F[];
}

/**
 * Waits for futures to be done, whatever their ends are; fetches nothing.
 * @throws YardmasterError `ERR_TIMEOUT`
 */
export async function wait<F extends Future<unknown>>(
  futures: Iterable<F>,
  options: WaitOptions = {},
): Promise<WaitResult<F>> {
  checkNames(options, ['timeoutMs', 'returnWhen', 'clock']);
  const { timeoutMs, returnWhen = 'all', clock = new SystemClock() } = options;
  if (!['all', 'first'].includes(returnWhen)) {
    refuseOption('returnWhen', returnWhen, 'all or first');
  }
  const waiting = listOfFutures('wait', futures);
  let left = returnWhen === 'all' ? waiting.length : Math.min(1, waiting.length);
  let timer: Timer | undefined;
  let onDone: (() => void) | undefined;
  try {
    const enough = new Promise<void>((resolve, reject) => {
      if (left === 0) resolve();
      onDone = () => {
        left--;
        if (left === 0) resolve();
      };
      for (const future of waiting) holdingOfFuture(future).entry.onSettled(onDone);
      if (timeoutMs === undefined || !Number.isFinite(timeoutMs)) return;
      timer = clock.setTimer(timeoutMs, () => reject(waitedTooLong(waiting, timeoutMs)));
    });
    await (left === 0 ? enough : pausing(waiting[0], enough));
  } finally {
    timer?.cancel();
    for (const future of onDone === undefined ? [] : waiting) {
      holdingOfFuture(future).entry.withdraw(onDone as () => void);
    }
  }
  return {
    done: waiting.filter((future) => future.done),
    notDone: waiting.filter((future) => !future.done),
  };
}

/** Inside a task another one may run meanwhile. */
function pausing<T>(future: Future<unknown> | undefined, wait: Promise<T>): Promise<T> {
  return future === undefined ? wait : holdingOfFuture(future).owner.waiting(wait);
}

function waitedTooLong(waiting: readonly Future<unknown>[], timeoutMs: number): YardmasterError {
  const notDone = waiting.filter((future) => !future.done).length;
  return new YardmasterError(
    'ERR_TIMEOUT',
    `${notDone} of ${waiting.length} futures are not done after ${timeoutMs} ms`,
    { timeoutMs, notDone },
  );
}

/**
 * The futures in the order in which they get done: `for await (const future of asCompleted(all))`.
 * Never fails by itself: ask each future for its result. Each future comes once.
 *
 * @param options - `cancelled: 'skip'` leaves out futures that were cancelled or released. Default `give`: their
 *   `status` is `cancelled`
 */
export async function* asCompleted<F extends Future<unknown>>(
  futures: Iterable<F>,
  options: { readonly cancelled?: 'give' | 'skip' } = {},
): AsyncGenerator<F, void, undefined> {
  checkNames(options, ['cancelled']);
  const { cancelled = 'give' } = options;
  if (!['give', 'skip'].includes(cancelled)) refuseOption('cancelled', cancelled, 'give or skip');
  const done: F[] = [];
  let wake: () => void = () => undefined;
  // Keeps the futures alive until they are handed out, and no longer.
  const waiting = new Map<F, () => void>();
  for (const future of new Set(listOfFutures('asCompleted', futures))) {
    const onDone = (): void => {
      done.push(future);
      wake();
    };
    waiting.set(future, onDone);
    holdingOfFuture(future).entry.onSettled(onDone);
  }
  try {
    while (waiting.size > 0) {
      if (done.length === 0) {
        const [first] = waiting.keys();
        await pausing(first, new Promise<void>((resolve) => (wake = resolve)));
      }
      const next = done.shift() as F;
      waiting.delete(next);
      if (cancelled === 'give' || next.status !== 'cancelled') yield next;
    }
  } finally {
    for (const [future, onDone] of waiting) holdingOfFuture(future).entry.withdraw(onDone);
  }
}
