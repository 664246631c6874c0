/** A stretch of time, in seconds. */
export type Interval = readonly [fromS: number, toS: number];

/** The union of intervals: disjoint and ascending. O(n log n) */
export function union(intervals: readonly Interval[]): readonly Interval[] {
  const sorted = intervals.toSorted(([a], [b]) => a - b);
  const merged: [number, number][] = [];
  for (const [fromS, toS] of sorted) {
    const last = merged.at(-1);
    if (last !== undefined && fromS <= last[1]) last[1] = Math.max(last[1], toS);
    else merged.push([fromS, toS]);
  }
  return merged;
}

/** Seconds of the intervals, from one moment to another. */
export function lengthOf(
  intervals: readonly Interval[],
  fromS = -Infinity,
  toS = Infinity,
): number {
  let sumS = 0;
  for (const [a, b] of intervals) sumS += Math.max(0, Math.min(b, toS) - Math.max(a, fromS));
  return sumS;
}
