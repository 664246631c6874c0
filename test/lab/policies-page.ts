/** Makes `docs/policies-compared.md`: every built-in policy, on graphs of many shapes, beside the defaults. */
import {
  type ComparedInstance,
  comparePolicies,
  type FigureName,
  loadWorkload,
  policyVariant,
} from '../../adapters/simulator/index.ts';
import { type Figure, figureOf } from '../../adapters/simulator/lab/pages.ts';
import { SINGLE_POLICIES } from '../../adapters/simulator/lab/variants.ts';
import { WHAT_TO_EXPECT } from './which-policy.ts';

/** What each workload is, by what names it on the command line. */
export const PAGE_WORKLOADS: Readonly<Record<string, string>> = {
  'map:200@100ms,1MB': 'independent tasks',
  'merge:150@100ms,5MB': 'many results that one task needs',
  'tree:8@100ms,10MB': 'a binary reduction',
  'chains:24,12@50ms,10MB': 'more chains than threads',
  'shuffle:12@100ms,5MB': 'each output needs a part of each input',
  'overlap:12,12@100ms,10MB': 'a stencil in one dimension',
  'vectorizer:60': 'long independent tasks with large results',
  'wordbag:30': 'small trees side by side',
  'mapreduce:24': 'a split, maps, and reducers that need all of them',
  'xarray-25': 'air temperatures minus their weekly means, recorded from Dask',
  'join-1-1S-1H': 'a time series joined with itself, recorded from Dask',
  'bag-25K-10': 'people filtered and combined with each other, recorded from Dask',
};

const SEEDS = 3;
const CLUSTER = {
  workers: 8,
  worker: { threads: 2, memoryLimitBytes: 4 * 2 ** 30 },
  seeds: SEEDS,
} as const;

/** A policy is named among the winners when it needs less of the makespan of the defaults than this. */
const WIN = 0.95;

/** Runs one workload under all policies. */
export async function instanceOf(
  workload: string,
  policies: readonly string[] = SINGLE_POLICIES,
): Promise<ComparedInstance> {
  const variants = policies.map(policyVariant);
  const { instances } = await comparePolicies([await loadWorkload(workload)], variants, CLUSTER);
  return instances[0]!;
}

function beside(instance: ComparedInstance, policies: string, figure: FigureName): Figure {
  return figureOf(instance, policies, 'default', figure) ?? { mean: NaN };
}

/** The mean of a figure over the seeds, relative to the defaults; empty: it did not end, or the defaults have none. */
export function cellOf(instance: ComparedInstance, policies: string): string {
  return beside(instance, policies, 'makespanS').relative?.toFixed(2) ?? '';
}

/** The whole page. */
export async function policiesPage(onWorkload: (name: string) => void): Promise<string> {
  const all: ComparedInstance[] = [];
  for (const name of Object.keys(PAGE_WORKLOADS)) {
    all.push(await instanceOf(name));
    onWorkload(name);
  }
  const parts = [
    HEAD,
    WHAT_TO_EXPECT,
    HOW_WE_KNOW,
    summaryOf(all),
    winnersOf(all),
    `### Each workload\n\n${WORKLOADS}\n`,
    `#### Makespan\n\n${tableOf(all)}`,
  ];
  return parts.join('\n');
}

const WORKLOADS = Object.entries(PAGE_WORKLOADS)
  .map(([name, about]) => `- \`${name}\`: ${about}`)
  .join('\n');

/** The makespan of every policy on every workload. */
function tableOf(instances: readonly ComparedInstance[]): string {
  const titles = ['policies', ...instances.map(({ workload }) => workload.replace(/[:@].*/, ''))];
  const rows = SINGLE_POLICIES.slice(1).map((policies) => [
    policies,
    ...instances.map((instance) => cellOf(instance, policies)),
  ]);
  const rule = ['---', ...instances.map(() => '---:')];
  return [titles, rule, ...rows].map((cells) => `| ${cells.join(' | ')} |\n`).join('');
}

const HEAD = `# Policies compared

Simulations are models. Measure the two or three policies that look best with your own work:
\`yardmaster lab compare run.ylog --policies default,balanced\` takes a [recording](insight.md#recording-and-replay) of it.
`;

const HOW_WE_KNOW = `## How we know

\`npm run lab:corpus\` measures policies on a folder of graphs, in [the simulator](simulator.md#a-corpus), with intervals over the
graphs, lower bounds and schedules that know everything. \`family\` reads each graph as a whole before the first task starts, which the
simulator counts as no time.

The rest of this page is made by \`npm run lab:page\`: every built-in policy in the place of the default of its slot, on ${Object.keys(PAGE_WORKLOADS).length}
workloads, with ${CLUSTER.workers} workers of ${CLUSTER.worker.threads} threads with 4 GiB each, links of 1 Gbit/s, ${SEEDS} seeds. Each figure is a mean over the seeds
relative to the defaults: below 1 is less. One client submits each graph, so policies of the slot fairness, which share between
clients, have little to decide here. \`yardmaster lab compare\` prints the figures themselves, with intervals.
`;

/** Geometric means over the workloads, relative to the defaults. */
function summaryOf(instances: readonly ComparedInstance[]): string {
  const figures: readonly (readonly [FigureName, string])[] = [
    ['makespanS', 'makespan'],
    ['movedBytes', 'moved'],
    ['peakWorkerBytes', 'peak of a worker'],
    ['decisions', 'decisions'],
  ];
  const rows = SINGLE_POLICIES.map((policies) => {
    const means = figures.map(([figure]) => geometricMean(instances, policies, figure));
    const failed = instances.filter(({ runs }) => runs[policies]?.error !== undefined).length;
    return `| ${policies} | ${means.join(' | ')} | ${failed} |`;
  });
  const titles = figures.map(([, title]) => title);
  return `### All workloads

Geometric means of the figures relative to the defaults, and how many workloads did not end. The mean of what is moved
leaves out workloads on which a policy moves nothing, which is better than any ratio: \`direct\` and \`family\` on \`xarray-25\`.

| policies | ${titles.join(' | ')} | failed |
| --- | ${titles.map(() => '---:').join(' | ')} | ---: |
${rows.join('\n')}
`;
}

function geometricMean(
  instances: readonly ComparedInstance[],
  policies: string,
  figure: FigureName,
): string {
  const logs = instances.flatMap((instance) => {
    const { relative } = beside(instance, policies, figure);
    return relative === undefined || relative === 0 ? [] : [Math.log(relative)];
  });
  if (logs.length === 0) return '';
  return Math.exp(logs.reduce((sum, log) => sum + log, 0) / logs.length).toFixed(3);
}

/** Where another policy is better by more than chance would explain. */
function winnersOf(instances: readonly ComparedInstance[]): string {
  const lines = instances.flatMap((instance) => {
    const better = SINGLE_POLICIES.flatMap((policies) => {
      const { relative = 1, margin = 0 } = beside(instance, policies, 'makespanS');
      const isClear = relative <= WIN && relative + margin < 1;
      return isClear ? [`\`${policies}\` (${relative.toFixed(2)})`] : [];
    });
    return better.length === 0 ? [] : [`- ${instance.workload}: ${better.join(', ')}`];
  });
  const text = lines.length === 0 ? 'Nowhere.' : lines.join('\n');
  return `### Where the defaults lose

Policies that need at most ${WIN} of the makespan of the defaults, with a 95 % interval, paired over the seeds, below 1.

${text}
`;
}
