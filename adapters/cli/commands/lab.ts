import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename, join } from 'node:path';
import { YardmasterError } from '../../../core/api/index.ts';
import { sizeText } from '../../../core/util/units.ts';
import { countOf } from '../../../core/util/values.ts';
import {
  calibrate,
  type CompareOptions,
  comparePolicies,
  type Comparison,
  loadWorkloads,
  readVariant,
  type SimulatedWorkload,
  type WorstCase,
  worstCase,
} from '../../simulator/index.ts';
import {
  comparisonPage,
  instanceTable,
  noteOf,
  settingTable,
  summaryTable,
  type Table,
} from '../../simulator/lab/pages.ts';
import { KnownRuns } from '../../simulator/lab/runs.ts';
import {
  CLUSTERS,
  FULL,
  KNOWLEDGE,
  LINKS,
  MEMORY,
  QUICK,
  type Setting,
  settingsOf,
} from '../../simulator/lab/settings.ts';
import { SINGLE_POLICIES } from '../../simulator/lab/variants.ts';
import { type ClusterFlags, clusterOptions } from '../cluster-flags.ts';
import { say, textTable } from '../terminal.ts';
import { print as printAnswer } from '../with-client.ts';

export interface CalibrateFlags {
  readonly json?: boolean;
}

export async function calibrateCommand(file: string, { json }: CalibrateFlags): Promise<number> {
  const { fitted, graphs, tasks, realS, simulatedS, error } = await calibrate(file);
  if (json === true) {
    const shown = { ...fitted, graphs, tasks, realS, simulatedS, error };
    say(`${JSON.stringify(shown, undefined, 2)}\n`);
    return 0;
  }
  const { threads, bandwidth, latencyMs, overheadMs, startMs } = fitted;
  const total = threads.reduce((sum, count) => sum + count, 0);
  const lines = [
    `${file}: ${countOf(tasks, 'task')} of ${countOf(graphs, 'graph')}, ${countOf(threads.length, 'worker')} with ${countOf(total, 'thread')}`,
    `bandwidth         ${bandwidth === undefined ? 'no transfer was measured' : `${sizeText(bandwidth)}/s`}`,
    `latency           ${latencyMs === undefined ? 'no task shows it' : `${latencyMs.toFixed(2)} ms a message`}`,
    `overhead          ${overheadMs.toFixed(2)} ms a task`,
    `start             ${startMs.toFixed(0)} ms until the first task begins`,
    `real makespan     ${realS.toFixed(3)} s`,
    `simulated         ${simulatedS.toFixed(3)} s, ${signed(100 * error)} %`,
    ...(graphs > 1 ? ['All graphs were simulated as if they had been submitted at once.'] : []),
  ];
  say(`${lines.join('\n')}\n`);
  return 0;
}

function signed(value: number): string {
  return `${value < 0 ? '' : '+'}${value.toFixed(1)}`;
}

/** Flags of `lab compare` and `lab corpus`. */
interface MeasureFlags {
  readonly seeds: number;
  readonly jobs?: number;
  readonly format: 'table' | 'json' | 'html';
}

export interface CompareFlags extends ClusterFlags, MeasureFlags {
  readonly policies: string;
}

const FAILED_CODE = 1;

export async function compareCommand(
  names: readonly string[],
  flags: CompareFlags,
): Promise<number> {
  const workloads = await loadAll(names);
  const variants = await Promise.all(flags.policies.split(',').map(readVariant));
  const options = { ...clusterOptions(flags), ...measuring(flags) };
  const comparison = await comparePolicies(workloads, variants, options);
  return print(comparison, flags, [instanceTable(comparison)]);
}

export interface CorpusFlags extends MeasureFlags {
  readonly corpus?: string;
  readonly policies?: string;
  readonly baseline: string;
  readonly quick?: boolean;
  readonly full?: boolean;
  readonly clusters?: string;
  readonly links?: string;
  readonly memory?: string;
  readonly durations?: string;
  readonly maxTasks?: number;
  readonly offline: boolean;
  readonly output?: string;
}

/** Tasks of the largest graph of `--quick`. */
const QUICK_TASKS = 200;

export async function corpusCommand(names: readonly string[], flags: CorpusFlags): Promise<number> {
  const { corpus, baseline, quick, offline, output } = flags;
  const { maxTasks = quick === true ? QUICK_TASKS : Infinity } = flags;
  const wanted = flags.policies?.split(',') ?? SINGLE_POLICIES;
  const others = wanted.filter((name) => name !== baseline);
  const variants = await Promise.all([baseline, ...others].map(readVariant));
  const all = [...names, ...(corpus === undefined ? [] : [corpus])];
  const workloads = await loadAll(all, maxTasks);
  if (output !== undefined) mkdirSync(output, { recursive: true });
  const known = new KnownRuns(output === undefined ? undefined : join(output, 'runs.jsonl'));
  const options = { settings: settingsIn(flags), offline, known, ...measuring(flags) };
  const comparison = await comparePolicies(workloads, variants, options);
  if (output !== undefined) {
    writeFileSync(join(output, 'corpus.json'), jsonText(comparison));
    writeFileSync(join(output, 'corpus.html'), comparisonPage(comparison));
  }
  return print(comparison, flags, [summaryTable(comparison), settingTable(comparison)]);
}

/** @throws YardmasterError `ERR_GRAPH_INVALID` when none has so few tasks */
async function loadAll(
  names: readonly string[],
  maxTasks = Infinity,
): Promise<SimulatedWorkload[]> {
  const loaded: SimulatedWorkload[] = [];
  for (const name of names) loaded.push(...(await loadWorkloads(name)));
  const workloads = loaded.filter(({ tasks }) => tasks.length <= maxTasks);
  if (workloads.length > 0) return workloads;
  const message = 'there is no graph to run; name a folder of graphs, or workloads';
  throw new YardmasterError('ERR_GRAPH_INVALID', message, { maxTasks });
}

/** Those of the preset, or all combinations of what is listed. */
function settingsIn({ full, clusters, links, memory, durations }: CorpusFlags): readonly Setting[] {
  const lists = [clusters, links, memory, durations];
  if (lists.every((list) => list === undefined)) return full === true ? FULL : QUICK;
  return settingsOf(
    chosen('--clusters', clusters ?? '8x2', Object.keys(CLUSTERS)),
    chosen('--links', links ?? '1Gbit', Object.keys(LINKS)),
    chosen('--memory', memory ?? 'ample', MEMORY),
    chosen('--durations', durations ?? 'unknown', KNOWLEDGE),
  );
}

function chosen<Name extends string>(flag: string, text: string, known: readonly Name[]): Name[] {
  return text.split(',').map((name) => {
    const found = known.find((each) => each === name);
    if (found !== undefined) return found;
    const message = `${flag}: "${name}" is none of ${known.join(', ')}`;
    throw new YardmasterError('ERR_CONFIG', message);
  });
}

/** Seconds between two lines about the progress. */
const PROGRESS_S = 10;

/** The way in which runs are made; the progress is said on the error stream. */
function measuring({ seeds, jobs = availableParallelism() }: MeasureFlags): CompareOptions {
  const begunMs = performance.now();
  let saidMs = begunMs;
  const onProgress = (done: number, total: number): void => {
    const nowMs = performance.now();
    if (nowMs - saidMs < 1000 * PROGRESS_S && done < total) return;
    saidMs = nowMs;
    const tookS = (nowMs - begunMs) / 1000;
    const leftS = (tookS / done) * (total - done);
    const text = `${done} of ${countOf(total, 'run')} in ${tookS.toFixed(0)} s, ${leftS.toFixed(0)} s left`;
    say(`${text}\n`, process.stderr);
  };
  return { seeds, jobs, onProgress };
}

function print(comparison: Comparison, { format }: MeasureFlags, tables: readonly Table[]): number {
  if (format === 'json') say(jsonText(comparison));
  else if (format === 'html') say(comparisonPage(comparison));
  else {
    const texts = tables.map(({ titles, rows }) => textTable(titles, rows));
    say(`${[...texts, noteOf(comparison)].join('\n\n')}\n`);
  }
  return comparison.summaries.every(({ failed }) => failed === 0) ? 0 : FAILED_CODE;
}

function jsonText(comparison: Comparison): string {
  return `${JSON.stringify(comparison, undefined, 2)}\n`;
}

export interface WorstCaseFlags extends ClusterFlags {
  readonly steps: number;
  readonly tasks: number;
  readonly seed: number;
  readonly output?: string;
  readonly json?: boolean;
}

const FEWEST_TASKS = 3;

export async function worstCaseCommand(
  first: string,
  second: string,
  flags: WorstCaseFlags,
): Promise<number> {
  const { steps, seed, tasks, output } = flags;
  const found = await worstCase(await readVariant(first), await readVariant(second), {
    ...clusterOptions(flags),
    steps,
    seed,
    limits: { fewestTasks: FEWEST_TASKS, mostTasks: Math.max(FEWEST_TASKS, tasks) },
    onWorse: ({ step, ratio }) => say(`step ${step}: ${ratio.toFixed(3)}\n`, process.stderr),
  });
  printAnswer(found, describe(found, first, second), flags);
  if (output === undefined) return 0;
  writeFileSync(output, moduleText(found, basename(output)));
  if (flags.json === true) return 0;
  say(
    `\n${output} has the graph. Run it again with\n  ${again(found, first, second, flags, output)}\n`,
  );
  return 0;
}

function describe({ instance, firstS, secondS, ratio }: WorstCase, first: string, second: string) {
  const rows = instance.tasks.map(({ key, needs = [], durationS = 0, nbytes = 0 }) => {
    return [key, durationS, sizeText(nbytes), needs.join(' ')];
  });
  return [
    `${first} takes ${firstS.toFixed(2)} s where ${second} takes ${secondS.toFixed(2)} s: ${ratio.toFixed(2)} times as long`,
    `links of ${sizeText(instance.bandwidth)}/s, and this graph:`,
    textTable(['task', 'seconds', 'result', 'needs'], rows),
  ].join('\n');
}

function moduleText({ instance, ratio }: WorstCase, name: string): string {
  const rows = instance.tasks.map((task) => `  ${JSON.stringify(task)},`).join('\n');
  return `// Found by "yardmaster lab worst-case": ${ratio.toFixed(2)} times as long.
import { graphWorkload } from 'yardmaster/simulator';

export default graphWorkload(${JSON.stringify(name)}, [
${rows}
]);
`;
}

function again(
  { instance }: WorstCase,
  first: string,
  second: string,
  { workers, threads, memory, latency, spread = 0 }: ClusterFlags,
  file: string,
): string {
  const { bandwidth } = instance;
  const given = Object.entries({ workers, threads, memory, bandwidth, latency, spread });
  const cluster = given.flatMap(([flag, value]) =>
    value === undefined ? [] : `--${flag} ${value}`,
  );
  return `yardmaster lab compare ${file} --policies ${second},${first} ${cluster.join(' ')} --seeds 1`;
}
