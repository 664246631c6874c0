import { comparePolicies, loadWorkload, readVariant } from '../../../simulator/index.ts';
import { cells, COLUMNS, htmlPage } from '../../../simulator/lab/render.ts';
import { type ClusterFlags, clusterOptions } from '../../flags/simulator-flags.ts';
import { textTable } from '../../text-table.ts';
import { say } from '../../terminal.ts';

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
