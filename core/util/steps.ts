/** Long work with pauses: a `yield` after a few milliseconds, and the result at the end. */
export type Steps<Result> = Generator<undefined, Result, undefined>;

/** True when an answer is work that is still to be done. */
export function isSteps<Result extends object>(
  answer: Result | Steps<Result>,
): answer is Steps<Result> {
  // An answer of a policy may be anything.
  return typeof (answer as Partial<Steps<Result>> | null | undefined)?.next === 'function';
}

/** Does the work without pauses. */
export function withoutPauses<Result extends object>(answer: Result | Steps<Result>): Result {
  if (!isSteps(answer)) return answer;
  for (;;) {
    const { done, value } = answer.next();
    if (done === true) return value;
  }
}

/**
 * Merge sort that pauses: the same as `toSorted` with a total order, with about `slice` comparisons, times
 * the logarithm of it at the beginning, between two pauses.
 */
export function* sortInSlices<T>(
  items: readonly T[],
  compare: (a: T, b: T) => number,
  slice: number,
): Steps<T[]> {
  if (items.length <= slice) return items.toSorted(compare);
  let from: T[] = [];
  for (let start = 0; start < items.length; start += slice) {
    for (const item of items.slice(start, start + slice).sort(compare)) from.push(item);
    yield;
  }
  for (let width = slice; width < items.length; width *= 2) {
    const to: T[] = [];
    for (let start = 0; start < items.length; start += 2 * width) {
      const middle = Math.min(start + width, items.length);
      const end = Math.min(start + 2 * width, items.length);
      for (let left = start, right = middle; left < middle || right < end;) {
        const isLeft =
          right === end || (left < middle && compare(from[left] as T, from[right] as T) <= 0);
        to.push(from[isLeft ? left++ : right++] as T);
        if (to.length % slice === 0) yield;
      }
    }
    from = to;
  }
  return from;
}

/** Calls that begin one after the other: each when those before it have ended, whatever became of them. */
export class InTurn {
  private last: Promise<unknown> = Promise.resolve();
  private openCount = 0;

  /** True when a call waits or goes on. */
  get isBusy(): boolean {
    return this.openCount > 0;
  }

  run<T>(call: () => T | Promise<T>): Promise<T> {
    const result = this.last.then(call);
    this.openCount++;
    const end = (): number => this.openCount--;
    this.last = result.then(end, end); // The caller gets the error.
    return result;
  }

  /** Resolves when the calls up to now have ended. */
  async settled(): Promise<void> {
    await this.last;
  }
}
