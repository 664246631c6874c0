/**
 * The whole suite, beside the peers that are installed: `npm run bench [-- --quick]`. Prints each
 * figure as it is measured, prints a table at the end (or when it is interrupted), and writes JSON.
 */
import { execFile, execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Command } from 'commander';
import type { Result } from '../side-by-side.ts';
import { comparison, type Figures, movements, nameOf, ofRounds, readFigures } from './compare.ts';
import { writePage } from './page.ts';
import type { Extent, Line, Measure, Row } from './row.ts';
import { ROWS } from './rows.ts';
import { brief, markdown } from './table.ts';

const execFileAsync = promisify(execFile);

const program = new Command('bench')
  .description('All benchmarks, beside the peers that are installed, with goals and verdicts.')
  .option('--quick', 'small graphs, one run each: less than two minutes')
  .option('--only <words>', 'only rows whose name has one of these words, as kernel,steal')
  .option('--rounds <number>', 'times that the suite is gone through; the medians count', '1')
  .option('--json <file>', 'where the figures go')
  .option('--from <file>', 'nothing is measured: the figures are those of such a file')
  .option('--compare <file>', 'what moved since such a file was written, and how sure that is')
  .option('--page <file>', 'a page whose table of figures becomes that of these')
  .option('--python <path>', 'interpreter with distributed installed', '/usr/bin/python3')
  .option(
    '--served <path>',
    'the same, for rows in which we serve workers of Dask; default: --python',
  )
  .option('--hyperqueue <path>', 'interpreter with hyperqueue installed', 'python3')
  .option('--guard <file>', 'exit 1 when a ratio lost more than a fifth against these figures')
  .parse();
const options = program.opts<{
  readonly quick?: boolean;
  readonly only?: string;
  readonly rounds: string;
  readonly json?: string;
  readonly from?: string;
  readonly compare?: string;
  readonly page?: string;
  readonly python: string;
  readonly served?: string;
  readonly hyperqueue: string;
  readonly guard?: string;
}>();

const { python, served = python, hyperqueue } = options;
const peers = { python, served, hyperqueue };
const extent: Extent =
  options.quick === true
    ? { tasks: 20_000, repeat: 1, isFull: false, ...peers }
    : { tasks: 100_000, repeat: 5, isFull: true, ...peers };
/** Times that a row is measured before it is lost; after the first one, each is a median of several runs. */
const GUARD_TURNS = 5;
const GUARD_REPEAT = 5;
const words = options.only?.split(',') ?? [];
const wanted = ROWS.filter(({ name }) => {
  return words.length === 0 || words.some((word) => name.includes(word));
});
const daskVersions = { python: versionOfDask(python), served: versionOfDask(served) };

// A signal of the terminal reaches the benchmark that runs, too. A second one ends this process at once.
const interrupt = new AbortController();
process.once('SIGINT', () => {
  interrupt.abort();
});

const machine = {
  cpu: cpus()[0]?.model,
  cores: cpus().length,
  node: process.version,
  dask: daskVersions.python ?? 'not installed',
  servedDask: daskVersions.served ?? 'not installed',
  load: loadavg()[0],
};
/** What each row gave, in each round. */
const measured = new Map<Row, (readonly Line[])[]>();
const figures = options.from === undefined ? await measureAll() : readFigures(options.from);
process.stdout.write(`${markdown(figures.lines)}\n\n${JSON.stringify(figures.machine)}\n`);
const skipped = figures.lines.filter((line) => 'skipped' in line).length;
if (skipped > 0) process.stdout.write(`Skipped: ${skipped} of ${figures.lines.length} lines.\n`);
if (figures.quick)
  process.stdout.write('Small graphs, once: the goals are those of the full run.\n');
if (options.compare !== undefined) {
  process.stdout.write(`\n${comparison(readFigures(options.compare), figures)}`);
}
if (interrupt.signal.aborted) {
  process.stdout.write(`Interrupted after ${measured.size} of ${wanted.length} rows.\n`);
  process.exitCode = 130;
} else {
  if (options.page !== undefined) writePage(options.page, figures);
  if (options.guard !== undefined) await guard(readFigures(options.guard));
}

async function measureAll(): Promise<Figures> {
  for (let round = 0; round < Number(options.rounds); round++) {
    for (const row of wanted) {
      process.stderr.write(`${row.name}…\n`);
      const lines = await linesOf(row);
      if (interrupt.signal.aborted) return figuresOfAll();
      measured.set(row, [...(measured.get(row) ?? []), lines]);
      for (const line of lines) process.stderr.write(`  ${brief(line)}\n`);
      // After each row, so that half an hour is not lost to whatever ends the suite.
      if (options.json !== undefined) {
        writeFileSync(options.json, `${JSON.stringify(figuresOfAll(), undefined, 2)}\n`);
      }
    }
  }
  return figuresOfAll();
}

function figuresOfAll(): Figures {
  return {
    date: new Date().toISOString(),
    quick: options.quick === true,
    machine,
    lines: [...measured.values()].flatMap(ofRounds),
  };
}

/** The figures of a row. One that fails does not take the others with it. */
async function linesOf(row: Row, of: Extent = extent): Promise<readonly Line[]> {
  const { needs } = row;
  if (needs !== undefined && daskVersions[needs] === undefined) {
    return [{ name: row.name, skipped: `no Dask at ${of[needs]}` }];
  }
  try {
    return await row.figures(measureWith(row), of);
  } catch (cause) {
    if (interrupt.signal.aborted) return [];
    process.exitCode = 1;
    process.stderr.write(`${String(cause)}\n`);
    return [{ name: row.name, skipped: 'failed' }];
  }
}

/** Runs one of our benchmark scripts in a separate process. */
function measureWith(row: Row): Measure {
  return async (script, args) => {
    const file = fileURLToPath(new URL(`../${script}.js`, import.meta.url));
    const own = row.needs === undefined ? [] : ['--python', extent[row.needs]];
    const { stdout } = await execFileAsync(
      process.execPath,
      ['--expose-gc', file, ...args.map(String), ...own],
      { maxBuffer: 2 ** 24, signal: interrupt.signal, killSignal: 'SIGINT' },
    );
    const texts = stdout.trim().split('\n');
    return texts.map((text) => JSON.parse(text) as Result);
  };
}

function versionOfDask(interpreter: string): string | undefined {
  try {
    const print = 'import distributed; print(distributed.__version__)';
    return execFileSync(interpreter, ['-W', 'ignore', '-c', print], {
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
async function guard(before: Figures): Promise<void> {
  const lostOf = (lines: readonly Line[]): ReturnType<typeof movements> =>
    movements(before.lines, lines).filter(({ figure, verdict }) => {
      return verdict === 'worse' && figure.unit.startsWith('times');
    });
  for (const [row, rounds] of measured) {
    let lost = lostOf(ofRounds(rounds));
    for (let turn = 1; lost.length > 0 && turn < GUARD_TURNS; turn++) {
      process.stderr.write(`again: ${row.name}…\n`);
      const again = lostOf(await linesOf(row, { ...extent, repeat: GUARD_REPEAT }));
      const still = new Set(again.map(({ figure }) => nameOf(figure)));
      lost = lost.filter(({ figure }) => still.has(nameOf(figure)));
    }
    for (const { figure, before: was } of lost) {
      process.stderr.write(`lost: ${nameOf(figure)} is ${figure.value}, was ${was.value}\n`);
      process.exitCode = 1;
    }
  }
}
