/**
 * The whole suite, beside the peers that are installed: `npm run bench [-- --quick]`.
 * Prints a table and writes JSON.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import type { Result } from '../side-by-side.ts';
import { type Extent, type Figure, type Measure, type Row, ROWS } from './rows.ts';
import { isLost, type Line, markdown } from './table.ts';

const program = new Command('bench')
  .description('All benchmarks, beside the peers that are installed, with goals and verdicts.')
  .option('--quick', 'small graphs, one run each: less than two minutes')
  .option('--only <words>', 'only rows whose name has one of these words, as kernel,steal')
  .option('--json <file>', 'where the figures go')
  .option('--python <path>', 'interpreter with distributed installed', '/usr/bin/python3')
  .option('--guard <file>', 'exit 1 when a ratio lost more than a fifth against these figures')
  .parse();
const options = program.opts<{
  readonly quick?: boolean;
  readonly only?: string;
  readonly json?: string;
  readonly python: string;
  readonly guard?: string;
}>();

const extent: Extent =
  options.quick === true
    ? { tasks: 20_000, repeat: 1, isFull: false }
    : { tasks: 100_000, repeat: 5, isFull: true };
/** Times that a row is measured before it is lost. */
const GUARD_TURNS = 3;
const words = options.only?.split(',') ?? [];
const wanted = ROWS.filter(({ name }) => {
  return words.length === 0 || words.some((word) => name.includes(word));
});
const daskVersion = versionOfDask();

const lines: (readonly [Row, readonly Line[]])[] = [];
for (const row of wanted) {
  process.stderr.write(`${row.name}…\n`);
  lines.push([row, linesOf(row)]);
}
const allLines = lines.flatMap(([, measured]) => measured);
const machine = {
  cpu: cpus()[0]?.model,
  cores: cpus().length,
  node: process.version,
  dask: daskVersion ?? 'not installed',
  load: loadavg()[0],
};
process.stdout.write(`${markdown(allLines)}\n\n${JSON.stringify(machine)}\n`);
if (!extent.isFull)
  process.stdout.write('Small graphs, once: the goals are those of the full run.\n');
if (options.json !== undefined) {
  const file = {
    date: new Date().toISOString(),
    quick: options.quick === true,
    machine,
    lines: allLines,
  };
  writeFileSync(options.json, `${JSON.stringify(file, undefined, 2)}\n`);
}
if (options.guard !== undefined) guard(options.guard);

function linesOf(row: Row): readonly Line[] {
  if (row.needsDask && daskVersion === undefined) {
    return [{ name: row.name, skipped: `no Dask at ${options.python}` }];
  }
  return row.figures(measureWith(row), extent);
}

/** Runs a benchmark script of ours in a process of its own. */
function measureWith(row: Row): Measure {
  return (script, args) => {
    const file = fileURLToPath(new URL(`../${script}.js`, import.meta.url));
    const own = row.needsDask ? ['--python', options.python] : [];
    const output = execFileSync(
      process.execPath,
      ['--expose-gc', file, ...args.map(String), ...own],
      { encoding: 'utf8', maxBuffer: 2 ** 24 },
    );
    const texts = output.trim().split('\n');
    return texts.map((text) => JSON.parse(text) as Result);
  };
}

function versionOfDask(): string | undefined {
  try {
    const print = 'import distributed; print(distributed.__version__)';
    return execFileSync(options.python, ['-W', 'ignore', '-c', print], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  } catch {
    return undefined;
  }
}

/**
 * Fails when a ratio is worse than it was by more than the noise. Absolute times differ between machines;
 * ratios do not much. A row that seems lost is measured again, for a busy moment is no loss.
 */
function guard(file: string): void {
  const before = JSON.parse(readFileSync(file, 'utf8')) as { readonly lines: readonly Line[] };
  const earlier = new Map(
    before.lines.flatMap((line) => ('skipped' in line ? [] : [[nameOf(line), line.value]])),
  );
  const isWorse = (line: Line): line is Figure => {
    if ('skipped' in line || !line.unit.startsWith('times')) return false;
    const value = earlier.get(nameOf(line));
    return value !== undefined && isLost(line, value);
  };
  for (const [row, measured] of lines) {
    let lost = measured.filter(isWorse);
    for (let turn = 1; lost.length > 0 && turn < GUARD_TURNS; turn++) {
      process.stderr.write(`again: ${row.name}…\n`);
      const still = new Set(linesOf(row).filter(isWorse).map(nameOf));
      lost = lost.filter((line) => still.has(nameOf(line)));
    }
    for (const line of lost) {
      const was = String(earlier.get(nameOf(line)));
      process.stderr.write(`lost: ${nameOf(line)} is ${line.value}, was ${was}\n`);
      process.exitCode = 1;
    }
  }
}

function nameOf({ what, unit }: Figure): string {
  return `${what}, ${unit}`;
}
