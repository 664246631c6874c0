import { extname, resolve } from 'node:path';
import {
  type PolicyDefinition,
  SLOT_NAMES,
  type SlotName,
  YardmasterError,
} from '../../../core/api/index.ts';
import type { ConfigInput } from '../../app/config.ts';
import { PluginResolver } from '../../../core/plugin-host/plugin-resolver.ts';
import { hint } from '../../../core/shared/words.ts';
import { type CostedTask, graphWorkload, type Workload } from '../../workloads/index.ts';
import { DEFAULT_NETWORK, type SimulationOptions } from '../options.ts';
import type { Draw } from '../random.ts';
import {
  type RunOptions,
  simulate,
  type SimulatedWorkload,
  type SimulationReport,
} from '../simulation.ts';

/** The figures of a run that are compared. */
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
  /** The reason why it did not. */
  readonly error?: string;
}

/** Each workload under each variant, the variants of one workload one after the other. */
export interface Comparison {
  readonly seeds: number;
  readonly runs: readonly ComparedRun[];
}

/** The options of a comparison of policies. */
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

/** A graph and the network that it runs on: what a search for bad cases changes, one thing at a time. */
export interface Instance {
  readonly tasks: readonly CostedTask[];
  /** Bytes per second of the link of each worker. */
  readonly bandwidth: number;
}

/** The bounds on the number of tasks of an instance. */
export interface InstanceLimits {
  readonly fewestTasks: number;
  readonly mostTasks: number;
}

/** Seconds. */
const DURATION = { least: 0.1, most: 10 };
const RESULT_BYTES = { least: 1e3, most: 1e9 };
/** Bytes per second: 10 Mbit/s to 10 Gbit/s. */
const BANDWIDTH = { least: 1.25e6, most: 1.25e9 };
/** Of all pairs of a first instance, how many depend on each other. */
const DENSITY = 0.2;

type Change = (instance: Instance, draw: Draw, step: number, limits: InstanceLimits) => Instance;

/** Each keeps the order of tasks: a task needs earlier ones only, so that there is never a cycle. */
const CHANGES: readonly Change[] = [
  ({ tasks, ...rest }, draw, step) => {
    const durationS = between(DURATION, draw.uniform('duration', step));
    return { ...rest, tasks: replaced(tasks, draw, step, (task) => ({ ...task, durationS })) };
  },
  ({ tasks, ...rest }, draw, step) => {
    const nbytes = Math.round(between(RESULT_BYTES, draw.uniform('bytes', step)));
    return { ...rest, tasks: replaced(tasks, draw, step, (task) => ({ ...task, nbytes })) };
  },
  // Twice as likely as the others: there are many pairs.
  toggledNeed,
  toggledNeed,
  (instance, draw, step) => ({
    ...instance,
    bandwidth: Math.round(between(BANDWIDTH, draw.uniform('bandwidth', step))),
  }),
  addTask,
  removeTask,
];

/** The instance that a search begins with. */
export function firstInstance(draw: Draw, { fewestTasks, mostTasks }: InstanceLimits): Instance {
  const count = Math.ceil((fewestTasks + mostTasks) / 2);
  const tasks: CostedTask[] = [];
  for (let number = 0; number < count; number++) {
    const needs = tasks
      .filter((_, earlier) => draw.uniform(`need ${earlier}`, number) < DENSITY)
      .map(({ key }) => key);
    tasks.push({ ...newTask(draw, number, `t${number}`), needs });
  }
  return { tasks, bandwidth: DEFAULT_NETWORK.bandwidth };
}

/** The same instance with one change. `step` tells the changes of a search apart. */
export function changed(
  instance: Instance,
  draw: Draw,
  step: number,
  limits: InstanceLimits,
): Instance {
  const change = CHANGES[draw.below(CHANGES.length, 'change', step)] as Change;
  return change(instance, draw, step, limits);
}

/** The graph of an instance. */
export function instanceWorkload({ tasks }: Instance, name: string): Workload {
  return graphWorkload(name, tasks);
}

function addTask(
  instance: Instance,
  draw: Draw,
  step: number,
  { mostTasks }: InstanceLimits,
): Instance {
  const { tasks } = instance;
  if (tasks.length >= mostTasks) return instance;
  const need = tasks[draw.below(tasks.length, 'need of new', step)];
  const needs = need === undefined || draw.uniform('has need', step) < 0.3 ? [] : [need.key];
  return { ...instance, tasks: [...tasks, { ...newTask(draw, step, `s${step}`), needs }] };
}

function removeTask(
  instance: Instance,
  draw: Draw,
  step: number,
  { fewestTasks }: InstanceLimits,
): Instance {
  const { tasks } = instance;
  if (tasks.length <= fewestTasks) return instance;
  const gone = tasks[draw.below(tasks.length, 'gone', step)]?.key;
  const left = tasks.filter(({ key }) => key !== gone);
  return {
    ...instance,
    tasks: left.map((task) => ({
      ...task,
      needs: task.needs?.filter((key) => key !== gone) ?? [],
    })),
  };
}

/** Adds the dependency between two tasks, or takes it away. */
function toggledNeed(instance: Instance, draw: Draw, step: number): Instance {
  const { tasks } = instance;
  if (tasks.length < 2) return instance;
  const later = 1 + draw.below(tasks.length - 1, 'later', step);
  const need = tasks[draw.below(later, 'earlier', step)]?.key ?? '';
  return {
    ...instance,
    tasks: tasks.map((task, index) => {
      if (index !== later) return task;
      const { needs = [] } = task;
      const without = needs.filter((key) => key !== need);
      return { ...task, needs: without.length < needs.length ? without : [...needs, need] };
    }),
  };
}

function newTask(draw: Draw, number: number, key: string): CostedTask {
  return {
    key,
    durationS: between(DURATION, draw.uniform('duration of new', number)),
    nbytes: Math.round(between(RESULT_BYTES, draw.uniform('bytes of new', number))),
  };
}

function replaced(
  tasks: readonly CostedTask[],
  draw: Draw,
  step: number,
  change: (task: CostedTask) => CostedTask,
): CostedTask[] {
  const chosen = draw.below(tasks.length, 'task', step);
  return tasks.map((task, index) => (index === chosen ? change(task) : task));
}

/** Evenly on a logarithmic scale, to three digits, so that people can read it. */
function between(
  { least, most }: { readonly least: number; readonly most: number },
  share: number,
): number {
  return Number((least * (most / least) ** share).toPrecision(3));
}

/** The policies that are built in, the default of each slot first. */
export const BUILTIN_POLICIES: Readonly<Record<SlotName, readonly string[]>> = {
  workerSelection: ['earliest-start', 'balanced', 'locality-first'],
  queuing: ['root-ish', 'co-assign', 'family', 'direct', 'mars'],
  ordering: ['depth-first', 'dask', 'mars', 'fifo', 'best'],
  fairness: ['fifo', 'weighted-fair-share'],
  stealing: ['dask', 'calm'],
};

/** Policies that are compared with others. */
export interface PolicyVariant {
  readonly name: string;
  /** Path of a configuration. */
  readonly config?: string;
  readonly overrides?: ConfigInput;
}

const MODULES = ['.js', '.mjs', '.ts'];
const CONFIG_FILES = ['.yaml', '.yml', '.json', ...MODULES];

/**
 * Reads one part of `--policies a,b,c`: `default`; a built-in policy (`balanced`), with its slot where several
 * have one of this name (`ordering/dask`); several of them (`balanced+ordering/dask`); or the path of a configuration.
 *
 * @throws YardmasterError `ERR_SLOT` for a name that no slot or several slots know
 */
export function policyVariant(text: string): PolicyVariant {
  if (CONFIG_FILES.includes(extname(text))) return { name: text, config: text };
  if (text === 'default') return { name: text };
  const policies: Partial<Record<SlotName, { readonly use: string }>> = {};
  for (const part of text.split('+')) {
    const { slot, policy } = readPart(part);
    policies[slot] = { use: policy };
  }
  return { name: text, overrides: { scheduler: { policies } } };
}

/**
 * As {@link policyVariant}; the path may also be that of a module of one policy (`definePolicy`), and `#name` picks
 * one of its exports.
 *
 * @throws YardmasterError `ERR_PLUGIN_LOAD` when the module cannot be loaded, or has no such export; `ERR_SLOT` when
 *   the export does not say which slot it fills
 */
export async function readVariant(text: string): Promise<PolicyVariant> {
  const hash = text.lastIndexOf('#');
  const [path, name] = hash > 0 ? [text.slice(0, hash), text.slice(hash)] : [text, ''];
  if (!MODULES.includes(extname(path))) return policyVariant(text);
  const use = resolve(path) + name;
  const { exported } = await new PluginResolver({}, process.cwd()).resolve(use, 'policy');
  const { kind, slot } = (exported ?? {}) as Partial<PolicyDefinition>;
  if (kind === 'policy' && slot !== undefined) {
    return { name: text, overrides: { scheduler: { policies: { [slot]: { use } } } } };
  }
  if (name === '') return policyVariant(text); // A configuration in code.
  throw new YardmasterError(
    'ERR_SLOT',
    `"${text}" does not say which slot it fills: export what definePolicy(slot, …) returns, or compare a configuration that names it`,
    { policy: text },
  );
}

function readPart(part: string): { readonly slot: SlotName; readonly policy: string } {
  const separator = part.indexOf('/');
  const wantedSlot = separator < 0 ? undefined : part.slice(0, separator);
  const policy = part.slice(separator + 1);
  const slots = SLOT_NAMES.filter(
    (slot) =>
      (wantedSlot === undefined || slot === wantedSlot) && BUILTIN_POLICIES[slot].includes(policy),
  );
  const [slot, ...others] = slots;
  if (slot === undefined) {
    const known = SLOT_NAMES.flatMap((name) =>
      BUILTIN_POLICIES[name].map((one) => `${name}/${one}`),
    );
    throw new YardmasterError(
      'ERR_SLOT',
      `"${part}" is no built-in policy${hint(part, known) || '.'} Write default, the path of a configuration, or one of ${known.join(', ')}`,
      { policy: part },
    );
  }
  if (others.length > 0) {
    const choices = slots.map((name) => `${name}/${policy}`);
    throw new YardmasterError(
      'ERR_SLOT',
      `"${part}" is a policy of several slots; write ${choices.join(' or ')}`,
      { policy: part },
    );
  }
  return { slot, policy };
}

const TITLES: Readonly<Record<FigureName, string>> = {
  makespanS: 'makespan',
  movedBytes: 'moved',
  peakWorkerBytes: 'peak of a worker',
  spilledBytes: 'spilled',
  idleShare: 'idle',
  decisions: 'decisions',
  fallbacks: 'fallbacks',
};

/** The text of a column's value, in the unit in which people think. */
const SHOWN: Readonly<Record<FigureName, (value: number) => string>> = {
  makespanS: (seconds) => `${short(seconds)} s`,
  movedBytes: megabytes,
  peakWorkerBytes: megabytes,
  spilledBytes: megabytes,
  idleShare: (share) => `${(100 * share).toFixed(1)} %`,
  decisions: (count) => short(count),
  fallbacks: (count) => short(count),
};

/** The titles of the columns. */
export const COLUMNS: readonly string[] = ['workload', 'policies', ...Object.values(TITLES)];

/** The cells of a run, in the order of {@link COLUMNS}: mean, spread over the seeds, and relative to the first. */
export function cells({ workload, policies, figures, error }: ComparedRun): string[] {
  if (figures === undefined) return [workload, policies, `failed: ${error ?? ''}`];
  const shown = (Object.keys(TITLES) as FigureName[]).map((name) => cell(name, figures[name]));
  return [workload, policies, ...shown];
}

/** A page that stands by itself. */
export function htmlPage({ runs, seeds }: Comparison): string {
  const row = (tag: string, texts: readonly string[]): string =>
    `<tr>${texts.map((text) => `<${tag}>${escaped(text)}</${tag}>`).join('')}</tr>`;
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Policies compared</title>
<style>
  body { font: 14px/1.5 system-ui, sans-serif; margin: 2rem; }
  table { border-collapse: collapse; }
  th, td { padding: 0.25rem 0.75rem; border-bottom: 1px solid #ccc; text-align: right; white-space: nowrap; }
  th:nth-child(-n + 2), td:nth-child(-n + 2) { text-align: left; }
</style>
<h1>Policies compared</h1>
<p>Means over ${seeds} seeds, with the standard deviation, and relative to the first policies.</p>
<table>
${row('th', COLUMNS)}
${runs.map((run) => row('td', cells(run))).join('\n')}
</table>
</html>
`;
}

function cell(name: FigureName, { mean, deviation, relative }: Figure): string {
  const show = SHOWN[name];
  const spread = deviation === 0 ? '' : ` ± ${percent(deviation / mean)}`;
  return `${show(mean)}${spread}${relative === undefined ? '' : ` (${relative.toFixed(2)})`}`;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;
}

function megabytes(bytes: number): string {
  return `${short(bytes / 1e6)} MB`;
}

/** Three digits that count. */
function short(value: number): string {
  if (value === 0) return '0';
  const digits = Math.floor(Math.log10(Math.abs(value)));
  return value.toFixed(Math.max(0, Math.min(6, 2 - digits)));
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
