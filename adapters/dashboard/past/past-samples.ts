import type { ClusterView, HookTable } from '../../../core/api/index.ts';
import { Failures } from '../feed/failures.ts';
import { PrefixNumbers } from '../feed/prefix-numbers.ts';
import { prefixRows, type Totals, totalsOf, workerRows } from '../feed/snapshot.ts';
import { type Row, TableDelta } from '../feed/table-delta.ts';
import { TaskRecorder } from '../feed/task-recorder.ts';
import { type Sentence, waitingIn } from '../feed/waiting.ts';

/** Actions of tasks that the task stream holds. Memory is taken only for those that there are. */
const ACTIONS_MAX = 4_000_000;

/** Rows of all samples together. */
const ROWS_MAX = 200_000;
const SAMPLES_MIN = 100;
const SAMPLES_MAX = 1000;

/** Throughput is the mean over so long at least, or over this part of the whole. */
const RATE_MS = 200;
const RATES = 100;

/** Between two samples, until there are too many of them. */
const GAP_MS = 10;

/** The cluster at a moment, in the tables that the feed sends. */
export interface PastSample {
  readonly atMs: number;
  readonly totals: Totals;
  readonly waiting: readonly Sentence[];
  readonly failureCount: number;
  readonly prefixes: readonly Row[];
  readonly workers: readonly Row[];
}

/** Figures over the whole time, for charts. */
export interface PastSeries {
  readonly timesS: readonly number[];
  readonly finishedPerS: readonly number[];
  readonly processing: readonly number[];
  readonly waiting: readonly number[];
}

/** What a replay shows of a cluster that is gone: every run, and the cluster at up to a thousand moments. */
export class PastSamples {
  readonly numbers = new PrefixNumbers();
  readonly recorder = new TaskRecorder(ACTIONS_MAX, this.numbers);
  readonly failures = new Failures();
  private samples: PastSample[] = [];
  private gapMs = GAP_MS;
  private nowMs = 0;
  private readonly prefixes = new TableDelta();
  private readonly workers = new TableDelta();

  readonly hooks = {
    taskTransition: (task, start, finish, _stimulusId, details) => {
      this.recorder.record(task, start, finish, details);
      if (finish === 'erred') this.failures.add(task, this.nowMs);
    },
    workerRemoved: ({ address, name }) => this.recorder.lanes.forget(address, name),
  } satisfies HookTable;

  /** To be called before each stimulus. */
  setTime(nowMs: number): void {
    this.nowMs = nowMs;
  }

  /** To be called after each stimulus. O(prefixes + workers) now and then. */
  observe(cluster: ClusterView): void {
    const last = this.samples.at(-1);
    if (last === undefined || this.nowMs - last.atMs >= this.gapMs) this.take(cluster);
  }

  /** To be called at the end. */
  finish(cluster: ClusterView): void {
    this.take(cluster);
    for (const { address, name } of cluster.workers.values()) {
      this.recorder.lanes.nameRows(address, name);
    }
  }

  private take(cluster: ClusterView): void {
    const { nowMs } = this;
    if (this.samples.at(-1)?.atMs === nowMs) this.samples.pop();
    // Rows that did not change are shared with the sample before.
    this.prefixes.next(prefixRows(cluster, this.numbers));
    this.workers.next(workerRows(cluster, nowMs));
    const prefixes = this.prefixes.all().changed;
    const workers = this.workers.all().changed;
    this.samples.push({
      ...{ atMs: nowMs, totals: totalsOf(cluster), waiting: waitingIn(cluster) },
      ...{ failureCount: this.failures.count, prefixes, workers },
    });
    const rows = ROWS_MAX / Math.max(1, prefixes.length + workers.length);
    if (this.samples.length > Math.min(SAMPLES_MAX, Math.max(SAMPLES_MIN, rows))) this.thin();
  }

  /** From the first sample to the last one. */
  get range(): { readonly fromS: number; readonly toS: number } {
    const { samples } = this;
    return { fromS: (samples[0]?.atMs ?? 0) / 1000, toS: (samples.at(-1)?.atMs ?? 0) / 1000 };
  }

  /** The last moment at which there were tasks: later ones have little to show. */
  get lastBusyMs(): number {
    const { samples } = this;
    const busy = samples.findLast(({ totals }) => (totals['tasks'] ?? 0) > 0) ?? samples.at(-1);
    return busy?.atMs ?? 0;
  }

  /** The newest sample that is not later; the first one when all are. O(log samples). */
  at(atMs: number): PastSample | undefined {
    const { samples } = this;
    let [low, high] = [0, samples.length];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if ((samples[middle]?.atMs ?? 0) <= atMs) low = middle;
      else high = middle;
    }
    return samples[low];
  }

  /** O(samples · prefixes). */
  series(): PastSeries {
    const { samples } = this;
    const sum = ({ prefixes }: PastSample, columns: readonly number[]): number =>
      prefixes.reduce((all, row) => columns.reduce((s, k) => s + Number(row[k]), all), 0);
    const { fromS, toS } = this.range;
    const rateMs = Math.max(RATE_MS, (1000 * (toS - fromS)) / RATES);
    let first = 0;
    return {
      timesS: samples.map(({ atMs }) => atMs / 1000),
      finishedPerS: samples.map(({ atMs, totals }) => {
        while ((samples[first + 1]?.atMs ?? Infinity) <= atMs - rateMs) first++;
        const before = samples[first];
        if (before === undefined || before.atMs >= atMs) return 0;
        const done = (totals['finished'] ?? 0) - (before.totals['finished'] ?? 0);
        return Math.max(0, (1000 * done) / Math.max(rateMs, atMs - before.atMs));
      }),
      processing: samples.map((sample) => sum(sample, [6])),
      waiting: samples.map((sample) => sum(sample, [3, 4, 5])),
    };
  }

  private thin(): void {
    this.gapMs *= 2;
    let keptMs = -Infinity;
    this.samples = this.samples.filter(({ atMs }) => {
      if (atMs - keptMs < this.gapMs) return false;
      keptMs = atMs;
      return true;
    });
  }
}
