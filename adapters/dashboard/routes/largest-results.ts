import type { ClusterView } from '../../../core/api/index.ts';

/** Results that are listed. */
const LISTED = 30;

/** Results that are looked at; more would hold the scheduler up. */
const LOOKED_AT = 20_000;

/** The largest results that workers hold, with the addresses of these. */
export interface LargestResults {
  readonly results: readonly (readonly [key: string, nbytes: number, workers: readonly string[]])[];
  /** Whether there are more results than were looked at. */
  readonly isPart: boolean;
}

/** O(results), at most twenty thousand of them, taken evenly from all workers. */
export function largestResults({ workers }: ClusterView): LargestResults {
  const each = Math.ceil(LOOKED_AT / Math.max(1, workers.size));
  const found = new Map<string, readonly [string, number, readonly string[]]>();
  let isPart = false;
  let least = 0;
  for (const { hasWhat } of workers.values()) {
    let looked = 0;
    for (const { key, nbytes, whoHas } of hasWhat) {
      if (looked++ === each) {
        isPart = true;
        break;
      }
      if (nbytes < least || found.has(key)) continue;
      found.set(key, [key, nbytes, whoHas.items.map(({ address }) => address)]);
      if (found.size > 4 * LISTED) least = shrink(found);
    }
  }
  shrink(found);
  return { results: [...found.values()], isPart };
}

/** Keeps the largest. @returns the size of the smallest that is kept */
function shrink(found: Map<string, readonly [string, number, readonly string[]]>): number {
  const kept = [...found.values()].toSorted(([, a], [, b]) => b - a).slice(0, LISTED);
  found.clear();
  for (const entry of kept) found.set(entry[0], entry);
  return kept.length < LISTED ? 0 : (kept.at(-1)?.[1] ?? 0);
}
