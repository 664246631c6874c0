import type { StreamWindow } from './link.ts';

/** Numbers of the rows by worker, then by thread. */
export function orderOf({ rows }: StreamWindow): readonly number[] {
  const numbered = rows.map(([worker, lane], row) => ({ worker, lane, row }));
  const byName = new Intl.Collator().compare;
  return numbered
    .toSorted((a, b) => byName(a.worker, b.worker) || a.lane - b.lane)
    .map(({ row }) => row);
}

/** Bytes of an answer, about. */
export function sizeOf({ rows, spans = [], bins = [] }: StreamWindow): number {
  return 30 * rows.length + 60 * spans.length + 20 * bins.length;
}

/** Resolves after so many milliseconds. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
