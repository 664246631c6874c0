/** Kinds that are counted at the same time; beyond it the oldest is forgotten. */
const KINDS_MAX = 1000;

/**
 * Counts failures by what failed, and says which of them to report: the 1st, 2nd, 4th, 8th and so on,
 * so that a failure which repeats in every call does not fill the log.
 */
export class FailureCount {
  private readonly counts = new Map<string, number>();

  /** Counts one more failure. Returns how many there are now. */
  add(what: string): number {
    const count = (this.counts.get(what) ?? 0) + 1;
    this.counts.delete(what); // The one that was counted least recently comes first.
    this.counts.set(what, count);
    const { value: oldest } = this.counts.keys().next();
    if (this.counts.size > KINDS_MAX && oldest !== undefined) this.counts.delete(oldest);
    return count;
  }

  /** Forgets all failures: the next one is the first. */
  clear(): void {
    this.counts.clear();
  }
}

/** True when the failure of this number is reported: powers of two are. */
export function isReported(count: number): boolean {
  return Number.isInteger(Math.log2(count));
}

/** For the end of a message, once failures have been left out: ` (failure 4 of this hook)`. */
export function countText(count: number, what: string): string {
  return count < 4 ? '' : ` (failure ${count} of this ${what})`;
}

/** For the data of an error. */
export function countData(count: number): { readonly count?: number } {
  return count === 1 ? {} : { count };
}
