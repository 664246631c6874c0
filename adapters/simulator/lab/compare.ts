import type { SimulationOptions } from '../options.ts';
import type { SimulatedWorkload } from '../../workloads/index.ts';
import type { RunOptions } from '../simulated-cluster.ts';
import { lowerBoundS, PLANNERS, type PlannerName, problemOf } from './offline.ts';
import {
  codeDigest,
  type FigureName,
  KnownRuns,
  measureAll,
  type MeasureOptions,
  plainVariant,
  type RunRequest,
  type RunResult,
  variantDigest,
} from './runs.ts';
import { optionsOf, type Setting, SPREAD, tightBytes } from './settings.ts';
import { interval, meanOf } from './statistics.ts';
import type { PolicyVariant } from './variants.ts';

/** The options of a comparison of policies. Those of a simulation are for all its runs, unless there are settings. */
export interface CompareOptions
  extends
    Omit<SimulationOptions, 'seed' | 'overrides'>,
    RunOptions,
    Pick<MeasureOptions, 'jobs' | 'known'> {
  readonly settings?: readonly Setting[];
  /** Runs of each workload in each setting under each variant, with the seeds 1, 2, 3, … Default 5. */
  readonly seeds?: number;
  /** Simulate schedules that know everything, too. Default false. */
  readonly offline?: boolean;
  /** Called after each run: how many are done, of how many. */
  readonly onProgress?: (done: number, total: number) => void;
}

/** The figures of a variant on an instance for each seed; an error in place of all of them. */
export interface ComparedRun {
  readonly error?: string;
  readonly seeds: readonly Readonly<Record<FigureName, number>>[];
}

/** A graph in a setting. */
export interface ComparedInstance {
  readonly workload: string;
  readonly setting: string;
  /** A digest of its tasks and what they cost. */
  readonly digest: string;
  readonly tasks: number;
  /** Bytes of all results. */
  readonly resultBytes: number;
  /** Seconds that no schedule can beat, for each seed. */
  readonly boundsS: readonly number[];
  /** Seconds of the best schedule of the planners, for each seed; empty without them. */
  readonly offlineS: readonly number[];
  /** By the names of the variants. */
  readonly runs: Readonly<Record<string, ComparedRun>>;
}

/** A geometric mean, with its 95 % interval where there are two samples. */
export interface Ratio {
  readonly mean: number;
  readonly low?: number;
  readonly high?: number;
}

/** A variant beside the baseline, over all instances. */
export interface VariantSummary {
  readonly policies: string;
  readonly makespan: Ratio;
  readonly moved: Ratio;
  readonly peak: Ratio;
  /** Makespan divided by the lower bound, and by the best offline schedule. */
  readonly overBound: Ratio;
  readonly overOffline: Ratio;
  /** The instance with the largest makespan beside the baseline. */
  readonly worst: { readonly instance: string; readonly ratio: number } | undefined;
  /** Share of instances within 1.25 times the best offline schedule. */
  readonly nearOffline: number;
  /** Share of instances on which another built-in variant needs less than 0.95 of its makespan. */
  readonly beaten: number;
  /** Instances on which a worker spilled or paused under some seed. */
  readonly pressed: number;
  /** Instances with an error. */
  readonly failed: number;
  /** Makespan beside the baseline in each setting. */
  readonly bySetting: Readonly<Record<string, Ratio>>;
}

/** All figures. Equal code, workloads and options give the same. */
export interface Comparison {
  /** Version of the package, and a digest of its code. */
  readonly version: string;
  /** Each run was made with the seeds from 1 up to this. */
  readonly seeds: number;
  readonly baseline: string;
  /** The configurations, each with a digest of it and of the files that it names. */
  readonly variants: readonly (PolicyVariant & { readonly digest: string })[];
  readonly settings: readonly Setting[];
  readonly summaries: readonly VariantSummary[];
  /** The settings of one workload one after the other. */
  readonly instances: readonly ComparedInstance[];
}

const SEEDS = 5;
const NEAR = 1.25;
const BEATEN = 0.95;
/** At least this share of the results of a graph counts as moved, so that moving nothing has a ratio, too. */
const LEAST_MOVED = 0.01;

/**
 * Runs each workload in each setting under each variant, of which the first is the baseline. A task takes the same time
 * under each variant of one seed.
 * @throws YardmasterError `ERR_CONFIG`, `ERR_PLUGIN_LOAD`, `ERR_SLOT`
 */
export async function comparePolicies(
  workloads: readonly SimulatedWorkload[],
  variants: readonly PolicyVariant[],
  { seeds = SEEDS, settings, offline, jobs, known, onProgress, ...options }: CompareOptions = {},
): Promise<Comparison> {
  const durations = { spread: SPREAD, ...options.durations };
  const used = settings ?? [{ name: '', options: { ...options, durations } }];
  const planners = offline === true ? (Object.keys(PLANNERS) as PlannerName[]) : [];
  const numbers = Array.from({ length: seeds }, (_, index) => index + 1);
  const cells = workloads.flatMap((workload) => used.map((setting) => ({ workload, setting })));
  const tight = cells.filter(({ setting }) => setting.memory === 'tight');
  const total = seeds * (cells.length * (variants.length + planners.length) + tight.length);
  let done = 0;
  const memory = known ?? new KnownRuns();
  /** The results of all seeds of each of these. */
  const measured = async (
    wanted: readonly ((seed: number) => RunRequest)[],
  ): Promise<RunResult[][]> => {
    const requests = wanted.flatMap((request) => numbers.map(request));
    const onRun = (): void => onProgress?.(++done, total);
    const results = await measureAll(requests, { jobs, known: memory, onRun });
    return wanted.map((_, index) => results.slice(seeds * index, seeds * (index + 1)));
  };
  type Cell = (typeof cells)[number];
  const request =
    ({ workload, setting }: Cell, variant: PolicyVariant, limitBytes?: number) =>
    (seed: number): RunRequest => {
      return { workload, variant, options: optionsOf(workload, setting, seed, limitBytes) };
    };
  // Limits are known when the baseline has run without.
  const free = await measured(
    tight.flatMap((cell) => variants.slice(0, 1).map((baseline) => request(cell, baseline))),
  );
  const limits = new Map(
    tight.map((cell, index) => {
      const peaks = (free[index] ?? []).flatMap(({ figures }) => figures?.peakWorkerBytes ?? []);
      return [cell, tightBytes(cell.workload, peaks)];
    }),
  );
  const runs = await measured(
    cells.flatMap((cell) => variants.map((variant) => request(cell, variant, limits.get(cell)))),
  );
  // Planners know all durations, and no limit of memory.
  const plans = await measured(
    cells.flatMap(({ workload, setting: { name, options: all } }) =>
      planners.map((plan) =>
        request({ workload, setting: { name, options: all } }, { name: `offline/${plan}`, plan }),
      ),
    ),
  );
  const instances = cells.map(({ workload, setting }, index): ComparedInstance => {
    const own = plans.slice(planners.length * index, planners.length * (index + 1));
    return {
      workload: workload.name,
      setting: setting.name,
      digest: memory.digestOfGraph(workload),
      tasks: workload.tasks.length,
      resultBytes: workload.nbytes.reduce((sum, nbytes) => sum + nbytes, 0),
      boundsS: numbers.map((seed) =>
        lowerBoundS(problemOf(workload, { ...setting.options, seed })),
      ),
      offlineS: numbers.flatMap((_, seed) => {
        const allS = own.flatMap((results) => results[seed]?.figures?.makespanS ?? []);
        return allS.length === 0 ? [] : [Math.min(...allS)];
      }),
      runs: Object.fromEntries(
        variants.map(({ name }, at) => [name, runOf(runs[variants.length * index + at] ?? [])]),
      ),
    };
  });
  return {
    version: codeDigest(),
    seeds,
    baseline: variants[0]?.name ?? '',
    variants: variants.map((variant) => {
      return { ...plainVariant(variant), digest: variantDigest(variant) };
    }),
    settings: used,
    summaries: variants.map(({ name }) => summaryOf(name, variants, instances)),
    instances,
  };
}

function runOf(results: readonly RunResult[]): ComparedRun {
  const error = results.find((result) => result.error !== undefined)?.error;
  if (error !== undefined) return { error, seeds: [] };
  return { seeds: results.flatMap(({ figures = [] }) => figures) };
}

/** A quotient for one seed; undefined where one of both is missing. */
type Quotient = (instance: ComparedInstance, seed: number) => number | undefined;

function summaryOf(
  name: string,
  variants: readonly PolicyVariant[],
  instances: readonly ComparedInstance[],
): VariantSummary {
  const baseline = variants[0]?.name ?? '';
  const makespan = beside(name, baseline, 'makespanS');
  const overOffline = over(name, 'offlineS');
  const ranked = instances
    .map((instance) => ({
      instance: `${instance.workload} ${instance.setting}`.trimEnd(),
      ratio: Math.exp(logOf(instance, makespan)),
    }))
    .filter(({ ratio }) => !Number.isNaN(ratio))
    .sort((one, other) => other.ratio - one.ratio);
  const rivals = variants.filter((variant) => variant.isBuiltin === true && variant.name !== name);
  const share = (holds: (instance: ComparedInstance) => boolean): number =>
    instances.filter(holds).length / instances.length;
  const settings = new Set(instances.map(({ setting }) => setting));
  const inSetting = (setting: string): Ratio =>
    ratioOf(
      instances.filter((instance) => instance.setting === setting),
      makespan,
    );
  return {
    policies: name,
    makespan: ratioOf(instances, makespan),
    moved: ratioOf(
      instances,
      beside(name, baseline, 'movedBytes', ({ resultBytes }) => LEAST_MOVED * resultBytes),
    ),
    peak: ratioOf(instances, beside(name, baseline, 'peakWorkerBytes')),
    overBound: ratioOf(instances, over(name, 'boundsS')),
    overOffline: ratioOf(instances, overOffline),
    worst: ranked[0],
    nearOffline: share((instance) => logOf(instance, overOffline) <= Math.log(NEAR)),
    beaten: share((instance) =>
      rivals.some(
        (rival) => logOf(instance, beside(rival.name, name, 'makespanS')) < Math.log(BEATEN),
      ),
    ),
    pressed: instances.filter(({ runs }) =>
      runs[name]?.seeds.some(({ spilledBytes, pauses }) => spilledBytes + pauses > 0),
    ).length,
    failed: instances.filter(({ runs }) => runs[name]?.error !== undefined).length,
    bySetting: Object.fromEntries([...settings].map((setting) => [setting, inSetting(setting)])),
  };
}

/** A figure of a variant divided by that of another one, where each is taken for at least so much. */
function beside(
  name: string,
  other: string,
  figure: FigureName,
  leastOf: (instance: ComparedInstance) => number = () => 0,
): Quotient {
  return (instance, seed) => {
    const own = instance.runs[name]?.seeds[seed]?.[figure];
    const base = instance.runs[other]?.seeds[seed]?.[figure];
    if (own === undefined || base === undefined) return undefined;
    const least = Math.max(Number.MIN_VALUE, leastOf(instance));
    return Math.max(own, least) / Math.max(base, least);
  };
}

/** The makespan divided by the lower bound or the offline schedule; a graph whose tasks take no time has neither. */
function over(name: string, otherS: 'boundsS' | 'offlineS'): Quotient {
  return (instance, seed) => {
    const own = instance.runs[name]?.seeds[seed]?.makespanS;
    const other = instance[otherS][seed];
    return own === undefined || other === undefined || other === 0 ? undefined : own / other;
  };
}

/** Mean logarithm over the seeds; NaN when one has no quotient. */
function logOf(instance: ComparedInstance, quotient: Quotient): number {
  return meanOf(instance.boundsS.map((_, seed) => Math.log(quotient(instance, seed) ?? NaN)));
}

/**
 * Geometric mean over the instances. A sample of the interval is a graph, in all its settings and seeds: these are not
 * independent of each other. Where there is only one graph, a seed is.
 */
function ratioOf(instances: readonly ComparedInstance[], quotient: Quotient): Ratio {
  const complete = instances.filter((instance) => !Number.isNaN(logOf(instance, quotient)));
  const graphs = [...new Set(complete.map(({ workload }) => workload))];
  const samples =
    graphs.length === 1
      ? (complete[0]?.boundsS ?? []).map((_, seed) =>
          meanOf(complete.map((instance) => Math.log(quotient(instance, seed) ?? NaN))),
        )
      : graphs.map((graph) =>
          meanOf(
            complete
              .filter(({ workload }) => workload === graph)
              .map((instance) => logOf(instance, quotient)),
          ),
        );
  const mean = meanOf(samples);
  const margin = interval(samples)?.margin;
  if (margin === undefined) return { mean: Math.exp(mean) };
  return { mean: Math.exp(mean), low: Math.exp(mean - margin), high: Math.exp(mean + margin) };
}
