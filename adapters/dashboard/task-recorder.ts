import type {
  ActionTiming,
  HookTable,
  TaskStateName,
  TaskView,
  TransitionDetails,
} from '../../core/api/index.ts';
import {
  type Bin,
  type Columns,
  type Lane,
  type Span,
  type StreamRequest,
  type StreamWindow,
  toColumns,
} from './page-messages.ts';

/** The actions of a thread, by their number. */
const ACTIONS = ['compute', 'transfer', 'disk-read', 'disk-write', 'deserialize', 'other'];

/** The number of the action of a task that runs. */
const RUNNING = ACTIONS.length;

/** One action of a task, as it is remembered. */
interface Recorded {
  readonly key: string;
  readonly prefix: number;
  readonly action: number;
  /** Number of the row: a thread of a worker. */
  readonly row: number;
  readonly startS: number;
  readonly stopS: number;
  readonly isError: boolean;
}

/** A task whose run has not ended, so that nothing of it is recorded. */
export interface RunningTask {
  readonly key: string;
  readonly prefix: string;
  readonly worker: string;
  readonly startS: number;
}

/** The newest actions of tasks, in columns of a fixed length. */
export class TaskRecorder {
  readonly lanes = new Lanes();
  private readonly startS: Float64Array;
  private readonly stopS: Float64Array;
  private readonly rows: Int32Array;
  private readonly prefixes: Int32Array;
  private readonly actions: Uint8Array;
  private readonly keys: string[] = [];
  /** Spans ever recorded. */
  count = 0;

  constructor(
    readonly capacity: number,
    private readonly numbers: PrefixNumbers,
  ) {
    this.startS = new Float64Array(capacity);
    this.stopS = new Float64Array(capacity);
    this.rows = new Int32Array(capacity);
    this.prefixes = new Int32Array(capacity);
    this.actions = new Uint8Array(capacity);
  }

  /** Records what workers report with the end of a task. */
  readonly hooks: HookTable = {
    taskTransition: (task, start, finish, _stimulusId, details) => {
      this.record(task, start, finish, details);
    },
    workerRemoved: ({ address, name }) => this.lanes.forget(address, name),
  };

  /** Records the run that a transition reports. */
  record(
    task: TaskView,
    start: TaskStateName,
    finish: TaskStateName,
    details: TransitionDetails,
  ): void {
    // Five of six transitions end no run.
    if (start !== 'processing') return;
    const { timings, worker } = details;
    if (timings === undefined || worker === undefined) return;
    this.add(task.key, task.prefix.name, { worker, timings, isError: finish === 'erred' });
  }

  add(
    key: string,
    prefix: string,
    done: {
      readonly worker: string;
      /** Number of the thread, if the worker says it. */
      readonly lane?: number;
      readonly timings: readonly ActionTiming[];
      readonly isError: boolean;
    },
  ): void {
    const { worker, lane, timings, isError } = done;
    const main = timings.find(({ action }) => action === 'compute') ?? timings[0];
    if (main === undefined) return;
    const row =
      lane === undefined
        ? this.lanes.rowFor(worker, main.startS, main.stopS)
        : this.lanes.rowOf(worker, lane);
    const number = this.numbers.of(prefix);
    for (const { action, startS, stopS } of timings) {
      const isFull = this.count >= this.capacity;
      const slot = this.count++ % this.capacity;
      this.lanes.hold(row);
      if (isFull) this.lanes.release(this.rowAt(slot));
      const known = ACTIONS.indexOf(action);
      this.keys[slot] = key;
      this.startS[slot] = startS;
      this.stopS[slot] = stopS;
      this.rows[slot] = row;
      this.prefixes[slot] = number;
      this.actions[slot] = (known < 0 ? ACTIONS.length - 1 : known) | (isError ? 128 : 0);
    }
  }

  /** The number of actions that are remembered. */
  get size(): number {
    return Math.min(this.count, this.capacity);
  }

  /** Earliest start and latest stop; undefined when nothing is remembered. O(size). */
  range(): { readonly fromS: number; readonly toS: number } | undefined {
    if (this.size === 0) return undefined;
    let [fromS, toS] = [Infinity, -Infinity];
    for (let slot = 0; slot < this.size; slot++) {
      fromS = Math.min(fromS, this.startS[slot] ?? Infinity);
      toS = Math.max(toS, this.stopS[slot] ?? -Infinity);
    }
    return { fromS, toS };
  }

  /** Calls with the slot of each span that touches the window, oldest first. O(size). */
  within(fromS: number, toS: number, visit: (slot: number) => void): void {
    const first = this.count > this.capacity ? this.count - this.capacity : 0;
    for (let index = first; index < this.count; index++) {
      const slot = index % this.capacity;
      if ((this.stopS[slot] ?? 0) >= fromS && (this.startS[slot] ?? 0) <= toS) visit(slot);
    }
  }

  /** Those that run, on threads that are free of what has ended since they began. */
  open(running: readonly RunningTask[], nowS: number): Recorded[] {
    const taken = new Set<number>();
    return running.map(({ key, prefix, worker, startS }) => ({
      ...{ key, prefix: this.numbers.of(prefix), action: RUNNING, isError: false },
      ...{ row: this.lanes.freeRow(worker, startS, taken), startS, stopS: nowS },
    }));
  }

  rowAt(slot: number): number {
    return this.rows[slot] ?? 0;
  }

  at(slot: number): Recorded {
    const action = this.actions[slot] ?? 0;
    return {
      key: this.keys[slot] ?? '',
      prefix: this.prefixes[slot] ?? 0,
      action: action & 127,
      row: this.rowAt(slot),
      startS: this.startS[slot] ?? 0,
      stopS: this.stopS[slot] ?? 0,
      isError: action >= 128,
    };
  }
}

/** A small number for each prefix, in the order in which they are met: the same colour on every page. */
export class PrefixNumbers {
  readonly names: string[] = [];
  private readonly numbers = new Map<string, number>();

  of(name: string): number {
    const known = this.numbers.get(name);
    if (known !== undefined) return known;
    this.numbers.set(name, this.names.length);
    return this.names.push(name) - 1;
  }
}

/** Workers report no threads: more rows than this are not made for one. */
const LANES_MAX = 512;

/** Workers start clocks a little apart. */
const TOLERANCE_S = 0.0005;

/** The start of a task that runs is known less exactly, from the time at which a heartbeat came. */
const OPEN_TOLERANCE_S = 0.1;

/**
 * Gives each computation a row such that those of one row do not overlap. Reports come in the order of their ends, so
 * that the row whose last end is the latest one before the start leaves the others free for longer tasks.
 */
class Lanes {
  private readonly rows: { -readonly [Field in keyof Lane]: Lane[Field] }[] = [];
  /** The number of remembered actions of each row. */
  private readonly held: number[] = [];
  /** Rows of workers that have left, of which nothing is remembered: the next ones take their places. */
  private readonly free: number[] = [];
  private readonly workers = new Map<string, { readonly row: number; stopS: number }[]>();

  rowFor(worker: string, startS: number, stopS: number): number {
    const lanes = this.lanesOf(worker);
    let best: { readonly row: number; stopS: number } | undefined;
    for (const lane of lanes) {
      if (lane.stopS > startS + TOLERANCE_S) continue;
      if (best === undefined || lane.stopS > best.stopS) best = lane;
    }
    if (best === undefined && lanes.length < LANES_MAX) {
      lanes.push((best = { row: this.newRow(worker, lanes.length), stopS }));
    }
    best ??= lanes[0];
    if (best === undefined) return 0;
    best.stopS = Math.max(best.stopS, stopS);
    return best.row;
  }

  /** A row of the worker that is not taken and in which nothing ended after that time; the row is taken now. */
  freeRow(worker: string, startS: number, taken: Set<number>): number {
    const lanes = this.workers.get(worker) ?? [];
    const isFree = ({ row, stopS }: (typeof lanes)[number]): boolean =>
      !taken.has(row) && stopS <= startS + OPEN_TOLERANCE_S;
    const found =
      lanes.find(isFree)?.row ?? this.rowOf(worker, Math.min(lanes.length, LANES_MAX - 1));
    taken.add(found);
    return found;
  }

  /** The row of a thread that is known by its number. */
  rowOf(worker: string, lane: number): number {
    const lanes = this.lanesOf(worker);
    while (lanes.length <= lane) {
      lanes.push({ row: this.newRow(worker, lanes.length), stopS: 0 });
    }
    return lanes[lane]?.row ?? 0;
  }

  /** A worker of the same address gets new rows. */
  forget(worker: string, name: string): void {
    this.nameRows(worker, name);
    const lanes = this.workers.get(worker) ?? [];
    this.workers.delete(worker);
    for (const { row } of lanes) if (this.held[row] === 0) this.free.push(row);
  }

  /** One more action of the row is remembered. */
  hold(row: number): void {
    this.held[row] = (this.held[row] ?? 0) + 1;
  }

  /** One action fewer is. */
  release(row: number): void {
    this.held[row] = (this.held[row] ?? 0) - 1;
    if (this.held[row] === 0 && !this.isThere(row)) this.free.push(row);
  }

  /** These rows and those of workers that are there, and the number of each among them. O(rows). */
  shown(used: ReadonlySet<number>): { rows: readonly Lane[]; numberOf: (row: number) => number } {
    const kept = [...this.rows.keys()].filter((row) => used.has(row) || this.isThere(row));
    const numbers = new Map(kept.map((row, number) => [row, number]));
    return {
      rows: kept.map((row) => this.rows[row] as Lane),
      numberOf: (row) => numbers.get(row) ?? 0,
    };
  }

  private lanesOf(worker: string): { readonly row: number; stopS: number }[] {
    let lanes = this.workers.get(worker);
    if (lanes === undefined) this.workers.set(worker, (lanes = []));
    return lanes;
  }

  private newRow(worker: string, lane: number): number {
    const row = this.free.pop() ?? this.rows.length;
    this.rows[row] = { worker, lane };
    this.held[row] = 0;
    return row;
  }

  private isThere(row: number): boolean {
    const { worker = '', lane = -1 } = this.rows[row] ?? {};
    return this.workers.get(worker)?.[lane]?.row === row;
  }

  nameRows(worker: string, name: string): void {
    for (const { row } of this.workers.get(worker) ?? []) {
      const lane = this.rows[row];
      if (lane !== undefined) lane.name = name;
    }
  }
}

/** More spans than this are sent as bins. */
const SPANS_MAX = 4000;
const BINS_MAX = 4096;

/** Bins of all rows together: clusters with very many threads get wider ones. */
const BINS_IN_ALL = 30_000;

/**
 * The part of the task stream that a page asks for. O(spans that are remembered).
 * @param now - tasks that run; default: all are over
 */
export function streamWindow(
  recorder: TaskRecorder,
  request: StreamRequest,
  now?: { readonly running: readonly RunningTask[]; readonly nowMs: number },
): StreamWindow {
  const { fromS, toS } = request;
  const slots: number[] = [];
  recorder.within(fromS, toS, (slot) => slots.push(slot));
  const { running = [], nowMs = 0 } = now ?? {};
  const nowS = nowMs / 1000;
  const open = recorder.open(running.slice(0, SPANS_MAX), nowS);
  const used = new Set(open.map(({ row }) => row));
  for (const slot of slots) used.add(recorder.rowAt(slot));
  const { rows, numberOf } = recorder.lanes.shown(used);
  const { count, capacity } = recorder;
  const range = recorder.range() ?? null;
  const common = {
    ...{ fromS, toS, rows, actions: [...ACTIONS, 'running'] },
    range: open.length === 0 ? range : { fromS: range?.fromS ?? fromS, toS: nowS },
    count: slots.length,
    dropped: Math.max(0, count - capacity),
  };
  const isFew = slots.length <= SPANS_MAX;
  const few = [...(isFew ? slots.map((slot) => recorder.at(slot)) : []), ...open];
  const spans = spansOf(few, fromS, numberOf);
  if (isFew) return { ...common, spans };
  const eachRow = Math.ceil(BINS_IN_ALL / Math.max(1, rows.length));
  const binCount = Math.max(1, Math.min(BINS_MAX, eachRow, Math.round(request.width)));
  const binS = (toS - fromS) / binCount;
  return {
    ...{ ...common, spans },
    binMs: binS * 1000,
    bins: binsOf(recorder, slots, { fromS, binS, binCount }, numberOf),
  };
}

function spansOf(
  recorded: readonly Recorded[],
  originS: number,
  numberOf: (row: number) => number,
): Columns<Span> {
  const ms = (s: number): number => Math.round((s - originS) * 1e5) / 100;
  return toColumns(
    recorded.map(({ startS, stopS, ...span }): Span => {
      return { ...span, row: numberOf(span.row), startMs: ms(startS), stopMs: ms(stopS) };
    }),
  );
}

interface Grid {
  readonly fromS: number;
  readonly binS: number;
  readonly binCount: number;
}

interface Sum {
  busyS: number;
  longestS: number;
  prefix: number;
  hasError: boolean;
}

function binsOf(
  recorder: TaskRecorder,
  slots: readonly number[],
  { fromS, binS, binCount }: Grid,
  numberOf: (row: number) => number,
): Columns<Bin> {
  const sums = new Map<number, Sum>();
  for (const slot of slots) {
    const { row, prefix, action, startS, stopS, isError } = recorder.at(slot);
    if (action !== 0) continue;
    const first = Math.max(0, Math.floor((startS - fromS) / binS));
    const last = Math.min(binCount - 1, Math.floor((stopS - fromS) / binS));
    for (let k = first; k <= last; k++) {
      const at = fromS + k * binS;
      const busyS = Math.min(stopS, at + binS) - Math.max(startS, at);
      const index = row * BINS_MAX + k;
      let sum = sums.get(index);
      if (sum === undefined) {
        sums.set(index, (sum = { busyS: 0, longestS: -1, prefix, hasError: false }));
      }
      sum.busyS += busyS;
      sum.hasError ||= isError;
      if (busyS <= sum.longestS) continue;
      sum.longestS = busyS;
      sum.prefix = prefix;
    }
  }
  const bins = Array.from(sums, ([index, { busyS, prefix, hasError }]): Bin => {
    const busyPercent = Math.min(100, Math.round((100 * busyS) / binS));
    const row = numberOf(Math.floor(index / BINS_MAX));
    return { row, bin: index % BINS_MAX, prefix, busyPercent, hasError };
  });
  return toColumns(bins);
}
