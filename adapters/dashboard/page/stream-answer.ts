import type { StreamWindow } from '../page-messages.ts';

/** Numbers of the rows by worker, then by thread. */
export function orderOf({ rows }: StreamWindow): readonly number[] {
  const numbered = rows.map(({ worker, lane }, row) => ({ worker, lane, row }));
  const byName = new Intl.Collator().compare;
  return numbered
    .toSorted((a, b) => byName(a.worker, b.worker) || a.lane - b.lane)
    .map(({ row }) => row);
}

/** Bytes of an answer, about. */
export function sizeOf({ rows, spans, bins }: StreamWindow): number {
  const [spanCount, binCount] = [spans?.row?.length ?? 0, bins?.row?.length ?? 0];
  return 50 * rows.length + 60 * spanCount + 24 * binCount;
}

/** Resolves after so many milliseconds. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
