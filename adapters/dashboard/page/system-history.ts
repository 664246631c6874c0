import { OVER_TIME, overWorkers, type PastSeries, type PolicyMoves } from '../page-messages.ts';
import type { State } from './link.ts';

/** Seconds that are remembered, and between two samples. */
const SPAN_S = 300;
const STEP_S = 0.9;

/** With more workers than this, they are shown by their mean and their largest value. */
const WORKERS_MAX = 6;
const MANY = ['mean of workers', 'largest of workers'];

/** One moment: for each of {@link OVER_TIME} the value of each line; null: unknown. */
interface Sample {
  readonly atS: number;
  /** Copies and drops of each policy of the Active Memory Manager until then. */
  readonly moves: readonly PolicyMoves[];
  readonly values: readonly (readonly (number | null)[])[];
}

/** Figures of the last minutes, collected as long as the page is open, whichever view is shown. */
export class SystemHistory {
  /** Names of the lines: the scheduler, then workers. */
  lines: readonly string[] = [];
  samples: Sample[] = [];
  private shown = '';

  /** To be called with each frame. */
  add({ nowS, workers, totals }: State): void {
    if (totals === undefined || nowS - (this.samples.at(-1)?.atS ?? 0) < STEP_S) return;
    const rows = [...workers.values()];
    const isFew = rows.length <= WORKERS_MAX;
    const shown = isFew ? [...workers.keys()].join() : 'many';
    // Lines of other workers are other lines.
    if (shown !== this.shown) this.samples = [];
    this.shown = shown;
    this.lines = ['scheduler', ...(isFew ? rows.map(({ name }) => name) : MANY)];
    const { cpuPercent, memoryBytes, loopDelayMs } = totals.process ?? {};
    const ofScheduler = [cpuPercent, memoryBytes, loopDelayMs];
    const ofWorkers = isFew
      ? OVER_TIME.map((of) => rows.map((row) => (of(row) < 0 ? null : of(row))))
      : overWorkers(rows);
    const values = ofWorkers.map((one, k) => [ofScheduler[k] ?? null, ...one]);
    this.samples.push({ atS: nowS, values, moves: totals.moves ?? [] });
    while ((this.samples[0]?.atS ?? nowS) < nowS - SPAN_S) this.samples.shift();
  }

  /** Lines of what the Active Memory Manager moved: copies and drops of each policy that has any. */
  get moves(): readonly (readonly [policy: string, kind: 'copies' | 'drops'])[] {
    return (this.samples.at(-1)?.moves ?? []).flatMap((moves) =>
      (['copies', 'drops'] as const).flatMap((kind) =>
        moves[kind] > 0 ? [[moves.policy, kind] as const] : [],
      ),
    );
  }

  /** The number of each of {@link moves} between a sample and the one before. */
  movedIn(at: number): number[] {
    const { samples, moves } = this;
    return moves.map(([policy, kind]) => {
      const [before = 0, now = 0] = [samples[at - 1] ?? samples[at], samples[at]].map(
        (sample) => sample?.moves.find((one) => one.policy === policy)?.[kind],
      );
      return now - before;
    });
  }

  /** Shows the whole time of a scheduler that is gone. */
  fill({ timesS, system, moves }: PastSeries): void {
    this.lines = ['scheduler', ...MANY];
    this.samples = timesS.map((atS, k) => ({
      ...{ atS, moves: moves[k] ?? [] },
      values: (system[k] ?? []).map((one) => [null, ...one]),
    }));
  }
}
