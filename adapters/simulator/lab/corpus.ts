import { prefixOfKey } from '../../../core/state/groups.ts';
import { heartbeatIntervalMs } from '../../../core/util/event-loop.ts';
import type { SimulationOptions, WorkerModel } from '../options.ts';
import { Draw } from '../random.ts';
import type { RunOptions, SimulatedWorkload } from '../simulation.ts';
import { SPREAD } from './compare.ts';
import { lowerBoundS, PLANNERS, type PlannerName, problemOf } from './offline.ts';
import {
  codeDigest,
  type FigureName,
  KnownRuns,
  measureAll,
  type RunRequest,
  type RunResult,
  variantDigest,
} from './runs.ts';
import { type Interval, interval, meanOf } from './statistics.ts';
import { BUILTIN_POLICIES, type PolicyVariant } from './variants.ts';

/** Workers of simulated clusters, by name. `unequal`: each of three speeds with each of three numbers of threads. */
export const CLUSTERS: Readonly<Record<string, readonly WorkerModel[]>> = {
  '8x2': Array.from({ length: 8 }, () => ({ threads: 2 })),
  '32x4': Array.from({ length: 32 }, () => ({ threads: 4 })),
  '4x16': Array.from({ length: 4 }, () => ({ threads: 16 })),
  unequal: [0.5, 1, 2].flatMap((speed) => [1, 2, 4].map((threads) => ({ threads, speed }))),
};

/** Bytes per second of the link of each worker, by name. */
export const LINKS: Readonly<Record<string, number>> = {
  '100Mbit': 12.5e6,
  '1Gbit': 125e6,
  '10Gbit': 1.25e9,
};

/**
 * Memory of the workers. `ample`: without limit. `tight`: of each 0.6 of what the fullest worker needs under the
 * baseline without limit, but enough for every single task with its inputs.
 */
export const MEMORY = ['ample', 'tight'] as const;

/**
 * What the scheduler knows of durations before a function has run. `unknown`: nothing. `known`: the mean of each prefix.
 * `wrong`: two or four thirds of it, drawn for each prefix.
 */
export const KNOWLEDGE = ['unknown', 'known', 'wrong'] as const;

/** Under what a graph runs: a name of each of these lists. */
export interface Setting {
  readonly cluster: string;
  readonly link: string;
  readonly memory: (typeof MEMORY)[number];
  readonly durations: (typeof KNOWLEDGE)[number];
}

/** All combinations. */
export function settingsOf(
  clusters: readonly string[],
  links: readonly string[],
  memory: readonly Setting['memory'][] = ['ample'],
  durations: readonly Setting['durations'][] = ['unknown'],
): Setting[] {
  return clusters.flatMap((cluster) =>
    links.flatMap((link) =>
      memory.flatMap((limit) =>
        durations.map((known) => ({ cluster, link, memory: limit, durations: known })),
      ),
    ),
  );
}

/** One setting, for a first look. */
export const QUICK: readonly Setting[] = settingsOf(['8x2'], ['1Gbit']);

/** Every cluster with every link; and on links of 1 Gbit/s little memory, and what is known of durations. */
export const FULL: readonly Setting[] = [
  ...settingsOf(Object.keys(CLUSTERS), Object.keys(LINKS)),
  ...settingsOf(Object.keys(CLUSTERS), ['1Gbit'], ['tight']),
  ...settingsOf(Object.keys(CLUSTERS), ['1Gbit'], ['ample'], ['known', 'wrong']),
];

/** The text of a setting. */
export function settingText({ cluster, link, memory, durations }: Setting): string {
  return `${cluster} ${link} ${memory} ${durations}`;
}

/** The options of {@link measureCorpus}. */
export interface CorpusOptions {
  readonly settings?: readonly Setting[];
  /** Runs of each graph in each setting under each variant, with the seeds 1, 2, 3, … Default 3. */
  readonly seeds?: number;
  /** Simulate schedules that know everything, too. Default true. */
  readonly offline?: boolean;
  readonly jobs?: number;
  /** Results of earlier runs. Default: none. */
  readonly known?: KnownRuns;
  /** Called after each run: how many are done, of how many. */
  readonly onProgress?: (done: number, total: number) => void;
}

/** The figures of one variant on one instance, for each seed; an error in place of all of them. */
export interface InstanceRun {
  readonly error?: string;
  readonly seeds: readonly Readonly<Record<FigureName, number>>[];
}

/** A graph in a setting. */
export interface CorpusInstance {
  readonly workload: string;
  readonly setting: string;
  readonly tasks: number;
  /** Seconds that no schedule can beat, for each seed. */
  readonly boundsS: readonly number[];
  /** Seconds of the best schedule of the planners, for each seed; empty without them. */
  readonly offlineS: readonly number[];
  /** By the names of the variants. */
  readonly runs: Readonly<Record<string, InstanceRun>>;
}

/** A ratio to the baseline: the geometric mean, with its 95 % interval where there are two samples. */
export interface Ratio {
  readonly mean: number;
  readonly low?: number;
  readonly high?: number;
}

/** One variant beside the baseline, over all instances. */
export interface VariantSummary {
  readonly policies: string;
  readonly makespan: Ratio;
  readonly moved: Ratio;
  readonly peak: Ratio;
  /** Makespan divided by the lower bound, and by the best offline schedule. */
  readonly overBound: Ratio;
  readonly overOffline?: Ratio;
  /** The instance with the largest makespan beside the baseline. */
  readonly worst: { readonly instance: string; readonly ratio: number } | undefined;
  /** Instances on which a worker spilled or paused under some seed. */
  readonly pressed: number;
  /** Share of instances within 1.25 times the best offline schedule. */
  readonly nearOffline?: number;
  /** Share of instances on which another built-in variant needs less than 0.95 of its makespan. */
  readonly beaten: number;
  /** Instances with an error. */
  readonly failed: number;
  /** Makespan beside the baseline in each setting. */
  readonly bySetting: Readonly<Record<string, Ratio>>;
}

/** All figures. Equal code, workloads and options give the same. */
export interface CorpusReport {
  /** Version of the package, and a digest of its code. */
  readonly version: string;
  readonly seeds: number;
  readonly baseline: string;
  /** Digests of the configurations of the variants and of the files that they name. */
  readonly variants: Readonly<Record<string, string>>;
  readonly settings: readonly string[];
  readonly summaries: readonly VariantSummary[];
  readonly instances: readonly CorpusInstance[];
}

const SEEDS = 3;
const TIGHT = 0.6;
/** Part of the limit that one task may need: below that at which a worker pauses. */
const TASK_SHARE = 0.75;
const NEAR = 1.25;
const BEATEN = 0.95;
/** At least this share of the results of a graph counts as moved, so that moving nothing has a ratio, too. */
const LEAST_MOVED = 0.01;

/**
 * Runs each graph in each setting under each variant, and under planners that know everything. The first variant is the
 * baseline.
 * @throws YardmasterError `ERR_CONFIG`, `ERR_PLUGIN_LOAD`, `ERR_SLOT`
 */
export async function measureCorpus(
  workloads: readonly SimulatedWorkload[],
  variants: readonly PolicyVariant[],
  {
    settings = QUICK,
    seeds = SEEDS,
    offline = true,
    jobs,
    known = new KnownRuns(),
    onProgress,
  }: CorpusOptions = {},
): Promise<CorpusReport> {
  const [baseline] = variants;
  if (baseline === undefined) throw new RangeError('there are no policies to compare');
  const planners: readonly PolicyVariant[] = !offline
    ? []
    : (Object.keys(PLANNERS) as PlannerName[]).map((plan) => ({ name: `offline/${plan}`, plan }));
  const seedsUsed = Array.from({ length: seeds }, (_, index) => index + 1);
  const cells = workloads.flatMap((workload) => settings.map((setting) => ({ workload, setting })));
  const requestsOf = (
    { workload, setting }: (typeof cells)[number],
    variant: PolicyVariant,
    limitBytes?: number,
  ): RunRequest[] =>
    seedsUsed.map((seed) => {
      return { workload, variant, options: optionsOf(workload, setting, seed, limitBytes) };
    });
  // Limits of memory are known when the baseline has run without.
  const ampleCells = cells
    .filter(({ setting }) => setting.memory === 'tight')
    .map(({ workload, setting }) => ({
      workload,
      setting: { ...setting, memory: 'ample' } as const,
    }));
  const plannedCells = cells.map(({ workload, setting }) => {
    return { workload, setting: { ...setting, memory: 'ample', durations: 'unknown' } as const };
  });
  const total =
    seeds * (ampleCells.length + cells.length * variants.length + cells.length * planners.length);
  let done = 0;
  const onRun = (): void => onProgress?.(++done, total);
  const measured = async (requests: readonly RunRequest[]): Promise<RunResult[][]> => {
    const results = await measureAll(requests, { jobs, known, onRun });
    const groups: RunResult[][] = [];
    while (results.length > 0) groups.push(results.splice(0, seeds));
    return groups;
  };
  const ample = await measured(ampleCells.flatMap((cell) => requestsOf(cell, baseline)));
  const limits = cells.map(({ workload, setting }) => {
    if (setting.memory === 'ample') return undefined;
    const peaks = (ample.shift() ?? []).flatMap(({ figures }) => figures?.peakWorkerBytes ?? []);
    const enough = Math.max(...footprints(workload)) / TASK_SHARE;
    return Math.max(1, Math.ceil(enough), Math.round(TIGHT * meanOf(peaks)) || 0);
  });
  const runs = await measured(
    cells.flatMap((cell, index) =>
      variants.flatMap((variant) => requestsOf(cell, variant, limits[index])),
    ),
  );
  const planned = await measured(
    plannedCells.flatMap((cell) => planners.flatMap((planner) => requestsOf(cell, planner))),
  );
  const instances = cells.map(({ workload, setting }): CorpusInstance => {
    const own = variants.map(({ name }) => [name, instanceRun(runs.shift() ?? [])] as const);
    const plans = planners.map(() => planned.shift() ?? []);
    return {
      workload: workload.name,
      setting: settingText(setting),
      tasks: workload.tasks.length,
      boundsS: seedsUsed.map((seed) =>
        lowerBoundS(problemOf(workload, optionsOf(workload, setting, seed))),
      ),
      offlineS: planners.length === 0 ? [] : seedsUsed.map((_, seed) => bestOf(plans, seed)),
      runs: Object.fromEntries(own),
    };
  });
  const results = new Map(workloads.map(({ name, nbytes }) => [name, sumOf(nbytes)]));
  return {
    version: codeDigest(),
    seeds,
    baseline: baseline.name,
    variants: Object.fromEntries(variants.map((variant) => [variant.name, variantDigest(variant)])),
    settings: settings.map(settingText),
    summaries: variants.map(({ name }) =>
      summaryOf(name, baseline.name, variants, instances, results),
    ),
    instances,
  };
}

/** Of the heartbeats of a worker: the most in the time of the lower bound, and the longest interval. */
const HEARTBEATS = { most: 2000, intervalMs: 5000 };

/**
 * Options of a simulation. Its end is far beyond what any sensible schedule takes. Heartbeats are as in production, and
 * rarer where a graph takes longer than a quarter of an hour: half of the events would be heartbeats.
 */
function optionsOf(
  workload: SimulatedWorkload,
  { cluster, link, durations }: Setting,
  seed: number,
  limitBytes?: number,
): SimulationOptions & RunOptions {
  const workers = CLUSTERS[cluster] as readonly WorkerModel[];
  const bandwidth = LINKS[link] as number;
  const slowest = Math.min(...workers.map(({ speed = 1 }) => speed));
  const serialS = sumOf(workload.durationsS) / slowest + sumOf(footprints(workload)) / bandwidth;
  const model = { workers, network: { bandwidth }, durations: { spread: SPREAD }, seed };
  const rareMs = (1000 * lowerBoundS(problemOf(workload, model))) / HEARTBEATS.most;
  const usualMs = heartbeatIntervalMs(workers.length);
  return {
    ...model,
    ...(limitBytes === undefined ? {} : { worker: { memoryLimitBytes: limitBytes } }),
    heartbeatMs: Math.max(usualMs, Math.min(HEARTBEATS.intervalMs, Math.round(rareMs))),
    maxMs: 1000 * (3600 + 10 * serialS),
    ...(durations === 'unknown'
      ? {}
      : {
          overrides: { scheduler: { defaultTaskDurations: durationsOf(workload, durations) } },
        }),
  };
}

/** Seconds by prefix. */
function durationsOf(
  { tasks, durationsS }: SimulatedWorkload,
  durations: 'known' | 'wrong',
): Record<string, number> {
  const byPrefix = new Map<string, number[]>();
  tasks.forEach(({ key, prefix = prefixOfKey(key) }, index) => {
    const list = byPrefix.get(prefix) ?? [];
    list.push(durationsS[index] ?? 0);
    byPrefix.set(prefix, list);
  });
  const draw = new Draw(0);
  const factorOf = (prefix: string): number =>
    durations === 'known' ? 1 : draw.uniform(prefix) < 0.5 ? 2 / 3 : 4 / 3;
  return Object.fromEntries(
    [...byPrefix].map(([prefix, list]) => [prefix, meanOf(list) * factorOf(prefix)]),
  );
}

/** Bytes of each task's result and inputs. */
function footprints({ tasks, nbytes }: SimulatedWorkload): number[] {
  const sizes = new Map(tasks.map(({ key }, index) => [key, nbytes[index] ?? 0]));
  return tasks.map(({ key, dependencies }) =>
    dependencies.reduce((sum, need) => sum + (sizes.get(need) ?? 0), sizes.get(key) ?? 0),
  );
}

function sumOf(values: Iterable<number>): number {
  let sum = 0;
  for (const value of values) sum += value;
  return sum;
}

function instanceRun(results: readonly RunResult[]): InstanceRun {
  const error = results.find((result) => result.error !== undefined)?.error;
  if (error !== undefined) return { error, seeds: [] };
  return { seeds: results.flatMap(({ figures = [] }) => figures) };
}

function bestOf(plans: readonly (readonly RunResult[])[], seed: number): number {
  return Math.min(...plans.map((results) => results[seed]?.figures?.makespanS ?? Infinity));
}

/** The quotient of one seed, or of one variant and another. */
type Quotient = (instance: CorpusInstance, seed: number) => number | undefined;

function summaryOf(
  name: string,
  baseline: string,
  variants: readonly PolicyVariant[],
  instances: readonly CorpusInstance[],
  resultBytes: ReadonlyMap<string, number>,
): VariantSummary {
  const beside =
    (figure: FigureName, leastOf: (instance: CorpusInstance) => number = () => 0): Quotient =>
    (instance, seed) => {
      const own = instance.runs[name]?.seeds[seed]?.[figure];
      const base = instance.runs[baseline]?.seeds[seed]?.[figure];
      if (own === undefined || base === undefined) return undefined;
      const least = Math.max(Number.MIN_VALUE, leastOf(instance));
      return Math.max(own, least) / Math.max(base, least);
    };
  const over =
    (otherS: 'boundsS' | 'offlineS'): Quotient =>
    (instance, seed) => {
      const own = instance.runs[name]?.seeds[seed]?.makespanS;
      const other = instance[otherS][seed];
      // A graph whose tasks take no time has no bound.
      return own === undefined || other === undefined || other === 0 ? undefined : own / other;
    };
  const makespan = beside('makespanS');
  const ranked = instances
    .flatMap((instance) => {
      const log = logOf(instance, makespan);
      if (log === undefined) return [];
      return [{ instance: `${instance.workload} ${instance.setting}`, ratio: Math.exp(log) }];
    })
    .sort((one, other) => other.ratio - one.ratio);
  const others = variants.filter((variant) => variant.isBuiltin === true && variant.name !== name);
  const beaten = (instance: CorpusInstance): boolean =>
    others.some((other) => {
      const log = logOf(instance, (_, seed) => {
        const theirs = instance.runs[other.name]?.seeds[seed]?.makespanS;
        const own = instance.runs[name]?.seeds[seed]?.makespanS;
        return theirs === undefined || own === undefined ? undefined : theirs / own;
      });
      return log !== undefined && log < Math.log(BEATEN);
    });
  const settings = new Set(instances.map(({ setting }) => setting));
  const hasOffline = instances.some(({ offlineS }) => offlineS.length > 0);
  return {
    policies: name,
    makespan: ratioOf(instances, makespan),
    moved: ratioOf(
      instances,
      beside('movedBytes', ({ workload }) => LEAST_MOVED * (resultBytes.get(workload) ?? 0)),
    ),
    peak: ratioOf(instances, beside('peakWorkerBytes')),
    overBound: ratioOf(instances, over('boundsS')),
    worst: ranked[0],
    pressed: instances.filter(({ runs }) =>
      runs[name]?.seeds.some(({ spilledBytes, pauses }) => spilledBytes + pauses > 0),
    ).length,
    ...(hasOffline
      ? {
          overOffline: ratioOf(instances, over('offlineS')),
          nearOffline: shareOf(instances, (instance) => {
            const log = logOf(instance, over('offlineS'));
            return log !== undefined && log <= Math.log(NEAR);
          }),
        }
      : {}),
    beaten: shareOf(instances, beaten),
    failed: instances.filter(({ runs }) => runs[name]?.error !== undefined).length,
    bySetting: Object.fromEntries(
      [...settings].map((setting) => [
        setting,
        ratioOf(
          instances.filter((instance) => instance.setting === setting),
          makespan,
        ),
      ]),
    ),
  };
}

function shareOf<T>(items: readonly T[], holds: (item: T) => boolean): number {
  return items.filter(holds).length / items.length;
}

/** Mean logarithm over the seeds; undefined when one has no quotient. */
function logOf(instance: CorpusInstance, quotient: Quotient): number | undefined {
  const logs = instance.boundsS.map((_, seed) => Math.log(quotient(instance, seed) ?? NaN));
  const mean = meanOf(logs);
  return Number.isNaN(mean) ? undefined : mean;
}

/**
 * Geometric mean over the instances. A sample of the interval is a graph, in all its settings and seeds: these are not
 * independent of each other. Where there is only one graph, a seed is.
 */
function ratioOf(instances: readonly CorpusInstance[], quotient: Quotient): Ratio {
  const byWorkload = new Map<string, number[]>();
  for (const instance of instances) {
    const log = logOf(instance, quotient);
    if (log === undefined) continue;
    const list = byWorkload.get(instance.workload) ?? [];
    list.push(log);
    byWorkload.set(instance.workload, list);
  }
  const samples =
    byWorkload.size === 1
      ? (instances[0]?.boundsS ?? []).map((_, seed) =>
          meanOf(instances.map((instance) => Math.log(quotient(instance, seed) ?? NaN))),
        )
      : [...byWorkload.values()].map(meanOf);
  const found = interval(samples);
  if (found === undefined) return { mean: Math.exp(meanOf(samples)) };
  const { mean, margin }: Interval = found;
  return { mean: Math.exp(mean), low: Math.exp(mean - margin), high: Math.exp(mean + margin) };
}

/** The default and every other built-in policy alone in its slot; fairness decides nothing for one client. */
export const CORPUS_POLICIES: readonly string[] = [
  'default',
  ...Object.entries(BUILTIN_POLICIES).flatMap(([slot, [, ...others]]) =>
    slot === 'fairness' ? [] : others.map((policy) => `${slot}/${policy}`),
  ),
];
