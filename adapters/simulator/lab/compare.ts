import { YardmasterError } from '../../../core/api/index.ts';
import type { SimulationOptions } from '../options.ts';
import type { SimulationReport } from '../report.ts';
import { type RunOptions, simulate, type SimulatedWorkload } from '../simulation.ts';
import type { PolicyVariant } from './policy-variant.ts';

/** What is compared of each run. */
export const FIGURES = [
  'makespanS',
  'movedBytes',
  'peakWorkerBytes',
  'spilledBytes',
  'idleShare',
  'decisions',
  'fallbacks',
] as const satisfies readonly (keyof SimulationReport)[];

/** One of {@link FIGURES}. */
export type FigureName = (typeof FIGURES)[number];

/** One figure over all seeds. */
export interface Figure {
  readonly mean: number;
  /** Standard deviation over the seeds. */
  readonly deviation: number;
  /** The mean divided by that of the first variant; undefined when that is 0. */
  readonly relative: number | undefined;
}

/** A workload under one variant. */
export interface ComparedRun {
  readonly workload: string;
  readonly policies: string;
  /** Undefined when a run did not end well, or a policy failed each time that it was asked. */
  readonly figures: Readonly<Record<FigureName, Figure>> | undefined;
  /** Why it did not. */
  readonly error?: string;
}

/** Each workload under each variant, the variants of one workload one after the other. */
export interface Comparison {
  readonly seeds: number;
  readonly runs: readonly ComparedRun[];
}

/** How policies are compared. */
export interface CompareOptions extends Omit<SimulationOptions, 'seed' | 'overrides'>, RunOptions {
  /** Runs of each workload under each variant, with the seeds 1, 2, 3, … Default 5. */
  readonly seeds?: number;
  /** Called after each workload under each variant. */
  readonly onRun?: (run: ComparedRun) => void;
}

const SEEDS = 5;

/** By how much the durations of tasks differ between seeds, where options leave it open. */
const SPREAD = 0.2;

/**
 * Runs each workload under each variant. A task takes the same time under each variant of one seed.
 * @throws YardmasterError `ERR_CONFIG`, `ERR_PLUGIN_LOAD`, `ERR_SLOT`
 */
export async function comparePolicies(
  workloads: readonly SimulatedWorkload[],
  variants: readonly PolicyVariant[],
  { seeds = SEEDS, onRun, ...options }: CompareOptions = {},
): Promise<Comparison> {
  const runs: ComparedRun[] = [];
  for (const workload of workloads) {
    let first: ComparedRun['figures'];
    for (const variant of variants) {
      const run = await runSeeds(workload, variant, seeds, options, first);
      first ??= run.figures;
      runs.push(run);
      onRun?.(run);
    }
  }
  return { seeds, runs };
}

async function runSeeds(
  workload: SimulatedWorkload,
  { name, config, overrides }: PolicyVariant,
  seeds: number,
  options: SimulationOptions & RunOptions,
  first: ComparedRun['figures'],
): Promise<ComparedRun> {
  const reports: SimulationReport[] = [];
  for (let seed = 1; seed <= seeds; seed++) {
    try {
      const report = await simulate(workload, {
        ...options,
        ...(config === undefined ? {} : { config }),
        ...(overrides === undefined ? {} : { overrides }),
        durations: { spread: SPREAD, ...options.durations },
        seed,
      });
      if (report.failed > 0) return failed(workload, name, report.firstFailure ?? 'a task failed');
      if (report.useless !== undefined) return failed(workload, name, report.useless);
      reports.push(report);
    } catch (error) {
      if (!YardmasterError.is(error, 'ERR_TIMEOUT')) throw error;
      return failed(workload, name, error.message);
    }
  }
  const figures = Object.fromEntries(
    FIGURES.map((figure) => [
      figure,
      summary(
        reports.map((report) => report[figure]),
        first?.[figure],
      ),
    ]),
  ) as Record<FigureName, Figure>;
  return { workload: workload.name, policies: name, figures };
}

function failed({ name }: SimulatedWorkload, policies: string, error: string): ComparedRun {
  return { workload: name, policies, figures: undefined, error };
}

function summary(values: readonly number[], first: Figure | undefined): Figure {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  const deviation = values.length < 2 ? 0 : Math.sqrt(squares / (values.length - 1));
  const base = first === undefined ? mean : first.mean;
  return { mean, deviation, relative: base === 0 ? undefined : mean / base };
}
