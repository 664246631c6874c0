/** Makes `docs/policies-compared.md`: every built-in policy, on graphs of many shapes, beside the defaults. */
import {
  BUILTIN_POLICIES,
  type ComparedRun,
  comparePolicies,
  type FigureName,
  loadWorkload,
  policyVariant,
} from '../../adapters/simulator/index.ts';
import { WHICH_POLICY } from './which-policy.ts';

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

/** `default`, and each other policy of each slot alone. */
export const PAGE_POLICIES: readonly string[] = [
  'default',
  ...Object.entries(BUILTIN_POLICIES).flatMap(([slot, [, ...others]]) =>
    others.map((name) => `${slot}/${name}`),
  ),
];

/** Runs one workload under all policies. */
export async function runsOf(
  workload: string,
  policies: readonly string[] = PAGE_POLICIES,
): Promise<readonly ComparedRun[]> {
  const variants = policies.map(policyVariant);
  return (await comparePolicies([await loadWorkload(workload)], variants, CLUSTER)).runs;
}

/** The mean of a figure over the seeds, relative to the defaults; empty: it did not end, or the defaults have none. */
export function cellOf({ figures }: ComparedRun, figure: FigureName): string {
  return figures?.[figure].relative?.toFixed(2) ?? '';
}

/** The whole page. */
export async function policiesPage(onWorkload: (name: string) => void): Promise<string> {
  const all: ComparedRun[] = [];
  for (const name of Object.keys(PAGE_WORKLOADS)) {
    all.push(...(await runsOf(name)));
    onWorkload(name);
  }
  const parts = [
    HEAD,
    summaryOf(all),
    winnersOf(all),
    WHICH_POLICY,
    `## Each workload\n\n${WORKLOADS}\n`,
    `### Makespan\n\n${tableOf(all, 'makespanS')}`,
  ];
  return parts.join('\n');
}

const WORKLOADS = Object.entries(PAGE_WORKLOADS)
  .map(([name, about]) => `- \`${name}\`: ${about}`)
  .join('\n');

/** A figure of every policy on every workload. */
function tableOf(runs: readonly ComparedRun[], figure: FigureName): string {
  const workloads = Object.keys(PAGE_WORKLOADS);
  const titles = ['policies', ...workloads.map((name) => name.replace(/[:@].*/, ''))];
  const rows = PAGE_POLICIES.slice(1).map((policies) => {
    const own = runs.filter((run) => run.policies === policies);
    return [policies, ...own.map((run) => cellOf(run, figure))];
  });
  const rule = ['---', ...workloads.map(() => '---:')];
  return [titles, rule, ...rows].map((cells) => `| ${cells.join(' | ')} |\n`).join('');
}

const HEAD = `# Policies compared

This page is made by \`npm run lab:page\`: every built-in policy in the place of the default of its slot, on ${Object.keys(PAGE_WORKLOADS).length}
workloads, in [the simulator](simulator.md): ${CLUSTER.workers} workers of ${CLUSTER.worker.threads} threads with 4 GiB each, links of 1 Gbit/s, ${SEEDS} seeds. Each figure is
a mean over the seeds relative to the defaults: below 1 is less. One client submits each graph, so policies of the slot
fairness, which share between clients, have little to decide here. \`yardmaster lab compare\` prints the figures themselves, with
intervals, and \`yardmaster lab corpus\` has more graphs and clusters.

A simulation is a model. Measure the two or three policies that look best with your own work:
\`yardmaster lab compare run.ylog --policies default,balanced\` takes a [recording](insight.md#recording-and-replay) of it.
`;

/** Geometric means over the workloads, relative to the defaults. */
function summaryOf(runs: readonly ComparedRun[]): string {
  const figures: readonly (readonly [FigureName, string])[] = [
    ['makespanS', 'makespan'],
    ['movedBytes', 'moved'],
    ['peakWorkerBytes', 'peak of a worker'],
    ['decisions', 'decisions'],
  ];
  const rows = PAGE_POLICIES.map((policies) => {
    const own = runs.filter((run) => run.policies === policies);
    const means = figures.map(([figure]) => geometricMean(own, figure));
    const failed = own.filter((run) => run.figures === undefined).length;
    return `| ${policies} | ${means.join(' | ')} | ${failed} |`;
  });
  const titles = figures.map(([, title]) => title);
  return `## All workloads

Geometric means of the figures relative to the defaults, and how many workloads did not end. The mean of what is moved
leaves out workloads on which a policy moves nothing, which is better than any ratio: \`direct\` and \`family\` on \`xarray-25\`.

| policies | ${titles.join(' | ')} | failed |
| --- | ${titles.map(() => '---:').join(' | ')} | ---: |
${rows.join('\n')}
`;
}

function geometricMean(runs: readonly ComparedRun[], figure: FigureName): string {
  const logs = runs.flatMap(({ figures }) => {
    const relative = figures?.[figure].relative;
    return relative === undefined || relative === 0 ? [] : [Math.log(relative)];
  });
  if (logs.length === 0) return '';
  return Math.exp(logs.reduce((sum, log) => sum + log, 0) / logs.length).toFixed(3);
}

/** Where another policy is better by more than chance would explain. */
function winnersOf(runs: readonly ComparedRun[]): string {
  const lines = Object.keys(PAGE_WORKLOADS).flatMap((workload) => {
    const own = runs.filter((run) => run.workload === workload);
    const base = own[0]?.figures?.makespanS;
    if (base === undefined) return [];
    const better = own.flatMap(({ policies, figures }) => {
      const makespan = figures?.makespanS;
      if (makespan?.relative === undefined || makespan.relative > WIN) return [];
      const isClear = 1 - makespan.relative > (makespan.margin ?? 0);
      return isClear ? [`\`${policies}\` (${makespan.relative.toFixed(2)})`] : [];
    });
    return better.length === 0 ? [] : [`- ${workload}: ${better.join(', ')}`];
  });
  const text = lines.length === 0 ? 'Nowhere.' : lines.join('\n');
  return `## Where the defaults lose

Policies that need at most ${WIN} of the makespan of the defaults, with a 95 % interval, paired over the seeds, below 1.

${text}
`;
}
