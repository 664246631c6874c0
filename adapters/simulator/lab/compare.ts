import type { SimulationOptions } from '../options.ts';
import type { RunOptions, SimulatedWorkload } from '../simulation.ts';
import { type FigureName, FIGURES, measureAll, type MeasureOptions } from './runs.ts';
import { interval, meanOf } from './statistics.ts';
import type { PolicyVariant } from './variants.ts';

/** One figure over all seeds. */
export interface Figure {
  readonly mean: number;
  /** The mean divided by that of the first variant; undefined when that is 0. */
  readonly relative: number | undefined;
  /** Half of the 95 % interval of `relative`, from the differences seed by seed; undefined for one seed. */
  readonly margin: number | undefined;
}

/** A workload under one variant. */
export interface ComparedRun {
  readonly workload: string;
  readonly policies: string;
  /** Undefined when a run did not end well, or a policy failed each time that it was asked. */
  readonly figures: Readonly<Record<FigureName, Figure>> | undefined;
  /** The reason why it did not. */
  readonly error?: string;
}

/** Each workload under each variant, the variants of one workload one after the other. */
export interface Comparison {
  readonly seeds: number;
  readonly runs: readonly ComparedRun[];
}

/** The options of a comparison of policies. */
export interface CompareOptions
  extends Omit<SimulationOptions, 'seed' | 'overrides'>, RunOptions, Pick<MeasureOptions, 'jobs'> {
  /** Runs of each workload under each variant, with the seeds 1, 2, 3, … Default 5. */
  readonly seeds?: number;
  /** Called after each run: how many are done, of how many. */
  readonly onProgress?: (done: number, total: number) => void;
}

const SEEDS = 5;

/** By how much the durations of tasks differ between seeds, where options leave it open. */
export const SPREAD = 0.2;

/**
 * Runs each workload under each variant. A task takes the same time under each variant of one seed.
 * @throws YardmasterError `ERR_CONFIG`, `ERR_PLUGIN_LOAD`, `ERR_SLOT`
 */
export async function comparePolicies(
  workloads: readonly SimulatedWorkload[],
  variants: readonly PolicyVariant[],
  { seeds = SEEDS, jobs, onProgress, ...options }: CompareOptions = {},
): Promise<Comparison> {
  const durations = { spread: SPREAD, ...options.durations };
  const requests = workloads.flatMap((workload) =>
    variants.flatMap((variant) =>
      Array.from({ length: seeds }, (_, index) => {
        return { workload, variant, options: { ...options, durations, seed: index + 1 } };
      }),
    ),
  );
  let done = 0;
  const onRun = (): void => onProgress?.(++done, requests.length);
  const results = await measureAll(requests, { jobs, onRun });
  const runs: ComparedRun[] = [];
  for (const workload of workloads) {
    let first: Measured | undefined;
    for (const { name } of variants) {
      const own = results.splice(0, seeds);
      const about = { workload: workload.name, policies: name };
      const error = own.find((result) => result.error !== undefined)?.error;
      if (error !== undefined) runs.push({ ...about, figures: undefined, error });
      else {
        const measured = own.flatMap(({ figures = [] }) => figures);
        first ??= measured;
        runs.push({ ...about, figures: figuresOf(measured, first) });
      }
    }
  }
  return { seeds, runs };
}

/** The figures of each seed. */
type Measured = readonly Readonly<Record<FigureName, number>>[];

function figuresOf(own: Measured, first: Measured): Record<FigureName, Figure> {
  const entries = FIGURES.map((figure) => {
    const mean = meanOf(own.map((run) => run[figure]));
    const base = meanOf(first.map((run) => run[figure]));
    if (base === 0) return [figure, { mean, relative: undefined, margin: undefined }];
    const differences = own.map((run, seed) => (run[figure] - (first[seed]?.[figure] ?? 0)) / base);
    return [figure, { mean, relative: mean / base, margin: interval(differences)?.margin }];
  });
  return Object.fromEntries(entries) as Record<FigureName, Figure>;
}
