import type {
  ActionTiming,
  HookTable,
  TaskStateName,
  TaskView,
  TransitionDetails,
} from '../../../core/api/index.ts';
import { Lanes } from './lanes.ts';
import type { PrefixNumbers } from './prefix-numbers.ts';

/** What a thread did, by number. */
export const ACTIONS = ['compute', 'transfer', 'disk-read', 'disk-write', 'deserialize', 'other'];

/** One action of a task on a thread. */
export interface Span {
  readonly key: string;
  readonly prefix: number;
  readonly action: number;
  /** Number of the row: a thread of a worker. */
  readonly row: number;
  readonly startS: number;
  readonly stopS: number;
  readonly isError: boolean;
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

  /** What a transition says about a run. */
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
      const slot = this.count++ % this.capacity;
      const known = ACTIONS.indexOf(action);
      this.keys[slot] = key;
      this.startS[slot] = startS;
      this.stopS[slot] = stopS;
      this.rows[slot] = row;
      this.prefixes[slot] = number;
      this.actions[slot] = (known < 0 ? ACTIONS.length - 1 : known) | (isError ? 128 : 0);
    }
  }

  /** How many are remembered. */
  get size(): number {
    return Math.min(this.count, this.capacity);
  }

  /** Earliest start and latest stop; undefined when nothing is remembered. O(size). */
  range(): readonly [fromS: number, toS: number] | undefined {
    if (this.size === 0) return undefined;
    let [fromS, toS] = [Infinity, -Infinity];
    for (let slot = 0; slot < this.size; slot++) {
      fromS = Math.min(fromS, this.startS[slot] ?? Infinity);
      toS = Math.max(toS, this.stopS[slot] ?? -Infinity);
    }
    return [fromS, toS];
  }

  /** Calls with the slot of each span that touches the window, oldest first. O(size). */
  within(fromS: number, toS: number, visit: (slot: number) => void): void {
    const first = this.count > this.capacity ? this.count - this.capacity : 0;
    for (let index = first; index < this.count; index++) {
      const slot = index % this.capacity;
      if ((this.stopS[slot] ?? 0) >= fromS && (this.startS[slot] ?? 0) <= toS) visit(slot);
    }
  }

  at(slot: number): Span {
    const action = this.actions[slot] ?? 0;
    return {
      key: this.keys[slot] ?? '',
      prefix: this.prefixes[slot] ?? 0,
      action: action & 127,
      row: this.rows[slot] ?? 0,
      startS: this.startS[slot] ?? 0,
      stopS: this.stopS[slot] ?? 0,
      isError: action >= 128,
    };
  }
}
