/**
 * What rounds of the Active Memory Manager cost: `npm run bench:amm -- N W [--vs-dask]`.
 * Prints a JSON line for `reduce-replicas` and one for `retire-worker`; with `--vs-dask` also those of
 * Dask's manager and the ratio of both.
 */
import { execFileSync } from 'node:child_process';
import { loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { type AmmBenchKind, measureRound } from './amm-rounds.ts';

const KINDS: readonly AmmBenchKind[] = ['reduce', 'retire'];

const program = new Command('bench:amm')
  .description('CPU time of one round of the Active Memory Manager, kernel included.')
  .argument('<tasks>', 'number of tasks')
  .argument('<workers>', 'number of workers')
  .option('--kind <kind>', `only this one: ${KINDS.join(', ')}`)
  .option('--repeat <number>', 'runs in fresh processes; the median is printed', '1')
  .option('--vs-dask', "run Dask's manager on the same state and print the ratio")
  .option('--python <path>', 'interpreter with distributed installed', '/usr/bin/python3')
  .parse();

const [tasks, workers] = program.args as [string, string];
const options = program.opts<{
  readonly kind?: AmmBenchKind;
  readonly repeat: string;
  readonly vsDask?: boolean;
  readonly python: string;
}>();
const repeat = Math.max(1, Number(options.repeat));

for (const kind of options.kind === undefined ? KINDS : [options.kind]) {
  if (repeat > 1 || options.vsDask === true) compare(kind);
  else
    print({
      bench: `amm-${kind}`,
      ...measureRound(kind, Number(tasks), Number(workers)),
      ...here(),
    });
}

/** Runs alternate, each in a fresh process, so that both meet the same noise. */
function compare(kind: AmmBenchKind): void {
  const ours: Line[] = [];
  const theirs: Line[] = [];
  for (let run = 0; run < repeat; run++) {
    const script = fileURLToPath(import.meta.url);
    ours.push(runLine(process.execPath, ['--expose-gc', script, tasks, workers, '--kind', kind]));
    if (options.vsDask === true) theirs.push(runDask(kind));
  }
  const own = median(ours);
  print(own);
  if (theirs.length === 0) return;
  const dask = median(theirs);
  print(dask);
  const ratio = Number(dask['usPerUnit']) / Number(own['usPerUnit']);
  print({
    bench: `amm-${kind}-vs-dask`,
    tasks: Number(tasks),
    workers: Number(workers),
    ratio: Math.round(ratio * 10) / 10,
  });
}

type Line = Readonly<Record<string, unknown>>;

function runDask(kind: AmmBenchKind): Line {
  // Python sources are not compiled, so the script stays where it was written.
  const script = fileURLToPath(new URL('../../../test/bench/dask_amm.py', import.meta.url));
  return runLine(options.python, ['-W', 'ignore', script, kind, tasks, workers]);
}

function runLine(command: string, args: readonly string[]): Line {
  const output = execFileSync(command, args, { encoding: 'utf8', maxBuffer: 2 ** 24 });
  return JSON.parse(output.trim().split('\n').at(-1) ?? '') as Line;
}

function median(runs: readonly Line[]): Line {
  const sorted = runs.toSorted((a, b) => Number(a['usPerUnit']) - Number(b['usPerUnit']));
  return sorted[Math.floor(sorted.length / 2)] as Line;
}

function here(): Line {
  return { node: process.version, load: Math.round((loadavg()[0] ?? 0) * 100) / 100 };
}

function print(line: Line): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
