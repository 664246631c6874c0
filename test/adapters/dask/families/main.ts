/**
 * Families of workloads of Dask, played under the stock scheduler and under ours; their results are compared.
 *
 *     npm run dask:families -- [--python PATH]… [--quick | --brief] [--verbose] [--json FILE] [WORD…]
 *
 * `--python`, which can be repeated: a Python with Dask (default: the first that is found). `--quick` leaves out slow
 * cases, `--brief` plays a selection for CI. A case that differs is played once more in a new cluster, since a busy machine
 * can exceed its limit; that second result counts. WORD: only cases whose family or name has it. `--verbose` prints tracebacks, and each result as it comes. The last line is
 * `N passed, N failed, N skipped`.
 */
import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { findDaskPython } from '../pythons.ts';
import { play, type Played, SCHEDULERS, type SchedulerName } from './cluster.ts';
import {
  compare,
  type Comparison,
  count,
  type Counts,
  isFailure,
  shown,
  type Verdict,
} from './compare.ts';

const WIDTH = 200;
const VERDICTS: readonly Verdict[] = [
  'equal',
  'different',
  'only ours fails',
  'only stock fails',
  'both fail',
  'on purpose',
  'skipped',
];

const { values: flags, positionals: words } = parseArgs({
  allowPositionals: true,
  options: {
    python: { type: 'string', multiple: true, default: [] },
    quick: { type: 'boolean', default: false },
    brief: { type: 'boolean', default: false },
    verbose: { type: 'boolean', default: false },
    json: { type: 'string' },
  },
});

function say(line = ''): void {
  process.stdout.write(`${line}\n`);
}

/** With `--verbose`, what the script prints is shown on stderr as it comes. */
function progress(text: string): void {
  if (flags.verbose) process.stderr.write(text);
}

function versionOf(python: string): string {
  const program = 'import distributed; print(distributed.__version__)';
  const { status, stdout } = spawnSync(python, ['-c', program], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${python} cannot import distributed`);
  return stdout.trim();
}

/** Plays the cases under both schedulers. WORDS: only cases whose names have one of them. */
async function comparisonsOf(
  python: string,
  words: readonly string[],
): Promise<readonly Comparison[]> {
  const selection = [
    ...(flags.quick ? ['--quick'] : []),
    ...(flags.brief ? ['--brief'] : []),
    ...words,
  ];
  const played = {} as Record<SchedulerName, Played>;
  for (const scheduler of SCHEDULERS) {
    const start = performance.now();
    played[scheduler] = await play(scheduler, python, selection, progress);
    const seconds = ((performance.now() - start) / 1000).toFixed(0);
    const { outcomes, code, complaints } = played[scheduler];
    say(`${scheduler}: ${outcomes.length} cases in ${seconds} s`);
    if (code !== 0) say(`the script ended with ${code}:\n${complaints}`);
  }
  return compare(played.stock.outcomes, played.ours.outcomes);
}

/** All cases; those that differ are played a second time, alone. */
async function playAll(python: string): Promise<readonly Comparison[]> {
  const first = await comparisonsOf(python, words);
  const differing = first.filter(({ verdict }) => isFailure(verdict)).map(({ name }) => name);
  if (differing.length === 0) return first;
  say(`once more: ${differing.join(', ')}`);
  const again = new Map(
    (await comparisonsOf(python, differing)).map((comparison) => [comparison.name, comparison]),
  );
  return first.map((comparison) =>
    isFailure(comparison.verdict) ? (again.get(comparison.name) ?? comparison) : comparison,
  );
}

/** How many cases of each family got which verdict. */
function printTable(comparisons: readonly Comparison[]): void {
  const families = new Map<string, Comparison[]>();
  for (const comparison of comparisons) {
    const family = comparison.name.split('/')[0]!;
    families.set(family, [...(families.get(family) ?? []), comparison]);
  }
  say(['family'.padEnd(14), ...VERDICTS].join('  '));
  for (const [family, cases] of [...families, ['all', comparisons] as const]) {
    const cells = VERDICTS.map((verdict) => {
      const found = cases.filter((comparison) => comparison.verdict === verdict).length;
      return String(found).padStart(verdict.length);
    });
    say([family.padEnd(14), ...cells].join('  '));
  }
}

function printDifferences(comparisons: readonly Comparison[]): void {
  for (const { name, verdict, stock, ours } of comparisons) {
    if (verdict === 'equal' || (verdict === 'skipped' && !flags.verbose)) continue;
    say(`--- ${name}: ${verdict}`);
    say(`    stock: ${shown(stock, WIDTH)}`);
    say(`    ours:  ${shown(ours, WIDTH)}`);
    const mark = ours?.mark ?? stock?.mark;
    if (mark) say(`    why:   ${mark.why}`);
    if (flags.verbose) say(ours?.traceback ?? stock?.traceback);
  }
}

const usual = findDaskPython();
const pythons = flags.python.length > 0 ? flags.python : usual === undefined ? [] : [usual.command];
const counts: Counts = { passed: 0, failed: 0, skipped: 0 };
const report: Record<string, readonly Comparison[]> = {};
for (const python of pythons) {
  const version = versionOf(python);
  say(`=== families of workloads with distributed ${version}`);
  const comparisons = await playAll(python);
  report[version] = comparisons;
  printDifferences(comparisons);
  printTable(comparisons);
  count(comparisons, counts);
  if (comparisons.length === 0) counts.failed++;
}
if (flags.json !== undefined) await writeFile(flags.json, JSON.stringify(report, undefined, 2));
if (pythons.length === 0) say('there is no Python with Dask: use --python PATH');
say(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
process.exitCode = counts.failed > 0 || pythons.length === 0 ? 1 : 0;
