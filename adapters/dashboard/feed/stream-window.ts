import { ACTIONS, type TaskRecorder } from './task-recorder.ts';

/** What a viewer shows of the task stream. */
export interface StreamRequest {
  readonly fromS: number;
  readonly toS: number;
  /** Pixels across: more detail than that is not sent. */
  readonly width: number;
}

/** The window: each span, or the busiest prefix of each pixel when there are too many. */
export interface StreamWindow {
  readonly fromS: number;
  readonly toS: number;
  /** Of all that is remembered. */
  readonly range: readonly [fromS: number, toS: number] | null;
  /** With the name of a worker that has left. */
  readonly rows: readonly (readonly [worker: string, lane: number, name?: string])[];
  readonly actions: readonly string[];
  /** Row, prefix, action, start and stop in milliseconds from `fromS`, 1 for an error, key. */
  readonly spans?: readonly (readonly [number, number, number, number, number, 0 | 1, string])[];
  /** Row, number of the bin, prefix, busy share in percent, 1 when one of them failed. */
  readonly bins?: readonly (readonly [number, number, number, number, 0 | 1])[];
  readonly binMs?: number;
  /** Spans in the window. */
  readonly count: number;
  /** Spans that are not remembered any more. */
  readonly dropped: number;
}

/** More spans than this are sent as bins. */
const SPANS_MAX = 4000;
const BINS_MAX = 4096;

/** Bins of all rows together: clusters with very many threads get wider ones. */
const BINS_IN_ALL = 30_000;

/** O(spans that are remembered). */
export function streamWindow(recorder: TaskRecorder, request: StreamRequest): StreamWindow {
  const { fromS, toS } = request;
  const slots: number[] = [];
  recorder.within(fromS, toS, (slot) => slots.push(slot));
  const rows = recorder.lanes.rows.map(({ worker, lane, name }) =>
    name === undefined ? ([worker, lane] as const) : ([worker, lane, name] as const),
  );
  const { count, capacity } = recorder;
  const common = {
    ...{ fromS, toS, rows, actions: ACTIONS },
    range: recorder.range() ?? null,
    count: slots.length,
    dropped: Math.max(0, count - capacity),
  };
  if (slots.length <= SPANS_MAX) return { ...common, spans: spansOf(recorder, slots, fromS) };
  const eachRow = Math.ceil(BINS_IN_ALL / Math.max(1, rows.length));
  const binCount = Math.max(1, Math.min(BINS_MAX, eachRow, Math.round(request.width)));
  const binS = (toS - fromS) / binCount;
  return {
    ...common,
    binMs: binS * 1000,
    bins: binsOf(recorder, slots, { fromS, binS, binCount }),
  };
}

function spansOf(
  recorder: TaskRecorder,
  slots: readonly number[],
  originS: number,
): NonNullable<StreamWindow['spans']> {
  const ms = (s: number): number => Math.round((s - originS) * 1e5) / 100;
  return slots.map((slot) => {
    const { row, prefix, action, startS, stopS, isError, key } = recorder.at(slot);
    return [row, prefix, action, ms(startS), ms(stopS), isError ? 1 : 0, key] as const;
  });
}

interface Grid {
  readonly fromS: number;
  readonly binS: number;
  readonly binCount: number;
}

interface Bin {
  busyS: number;
  longestS: number;
  prefix: number;
  hasError: boolean;
}

function binsOf(
  recorder: TaskRecorder,
  slots: readonly number[],
  { fromS, binS, binCount }: Grid,
): NonNullable<StreamWindow['bins']> {
  const bins = new Map<number, Bin>();
  for (const slot of slots) {
    const { row, prefix, action, startS, stopS, isError } = recorder.at(slot);
    if (action !== 0) continue;
    const first = Math.max(0, Math.floor((startS - fromS) / binS));
    const last = Math.min(binCount - 1, Math.floor((stopS - fromS) / binS));
    for (let k = first; k <= last; k++) {
      const at = fromS + k * binS;
      const busyS = Math.min(stopS, at + binS) - Math.max(startS, at);
      const index = row * BINS_MAX + k;
      let bin = bins.get(index);
      if (bin === undefined) {
        bins.set(index, (bin = { busyS: 0, longestS: -1, prefix, hasError: false }));
      }
      bin.busyS += busyS;
      bin.hasError ||= isError;
      if (busyS <= bin.longestS) continue;
      bin.longestS = busyS;
      bin.prefix = prefix;
    }
  }
  return Array.from(bins, ([index, { busyS, prefix, hasError }]) => {
    const percent = Math.min(100, Math.round((100 * busyS) / binS));
    const row = Math.floor(index / BINS_MAX);
    return [row, index % BINS_MAX, prefix, percent, hasError ? 1 : 0] as const;
  });
}
