import { writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { countOf } from '../../../core/util/values.ts';
import {
  calibrate,
  comparePolicies,
  loadWorkload,
  readVariant,
  type WorstCase,
  worstCase,
} from '../../simulator/index.ts';
import { cells, COLUMNS, htmlPage } from '../../simulator/lab/compare.ts';
import { type ClusterFlags, clusterOptions } from '../cluster-flags.ts';
import { say, sizeText, textTable } from '../terminal.ts';

/** Flags of `lab calibrate`. */
export interface CalibrateFlags {
  readonly json?: boolean;
}

/** `yardmaster lab calibrate`. */
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

/** Flags of `lab compare`. */
export interface CompareFlags extends ClusterFlags {
  readonly policies: string;
  readonly seeds: number;
  readonly format: 'table' | 'json' | 'html';
}

const FAILED_CODE = 1;

/** `yardmaster lab compare`. */
export async function compareCommand(
  names: readonly string[],
  flags: CompareFlags,
): Promise<number> {
  const variants = await Promise.all(flags.policies.split(',').map(readVariant));
  const workloads = [];
  for (const name of names) workloads.push(await loadWorkload(name));
  const { seeds, format } = flags;
  const comparison = await comparePolicies(workloads, variants, {
    ...clusterOptions(flags),
    seeds,
    onRun: ({ workload, policies }) => say(`${workload} ${policies}\n`, process.stderr),
  });
  const { runs } = comparison;
  if (format === 'json') say(`${JSON.stringify(comparison, undefined, 2)}\n`);
  else if (format === 'html') say(htmlPage(comparison));
  else say(`${textTable(COLUMNS, runs.map(padded))}\n`);
  return runs.every(({ figures }) => figures !== undefined) ? 0 : FAILED_CODE;
}

function padded(run: Parameters<typeof cells>[0]): string[] {
  const shown = cells(run);
  return COLUMNS.map((_, index) => shown[index] ?? '');
}

/** Flags of `lab worst-case`. */
export interface WorstCaseFlags extends ClusterFlags {
  readonly steps: number;
  readonly tasks: number;
  readonly seed: number;
  readonly output?: string;
}

const FEWEST_TASKS = 3;

/** `yardmaster lab worst-case`. */
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
  say(`${describe(found, first, second)}\n`);
  if (output === undefined) return 0;
  writeFileSync(output, moduleText(found, basename(output)));
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
  { workers, threads }: ClusterFlags,
  file: string,
): string {
  return `yardmaster lab compare ${file} --policies ${second},${first} --workers ${workers} --threads ${threads} --bandwidth ${instance.bandwidth} --spread 0 --seeds 1`;
}
