/**
 * What a round of work stealing costs: `npm run bench:steal -- TASKS WORKERS [--vs-dask]`.
 * Prints one JSON line; with `--vs-dask` also the line of Dask's balance() and the ratio of both.
 */
import { execFileSync } from 'node:child_process';
import { loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { measureStealing } from './steal-rounds.ts';

interface BenchOptions {
  readonly threads: string;
  readonly inputs: string;
  readonly repeat: string;
  readonly vsDask?: boolean;
  readonly python: string;
}

const program = new Command('bench:steal')
  .description('CPU time of a round of work stealing, after the number of workers has doubled.')
  .argument('<tasks>', 'number of tasks')
  .argument('<workers>', 'number of workers, of which the second half has nothing to do')
  .option('--threads <number>', 'threads per worker', '2')
  .option('--inputs <number>', 'results that each task reads', '0')
  .option('--repeat <number>', 'runs in fresh processes; the median is printed', '1')
  .option('--vs-dask', 'run the same rounds in Dask and print the ratio')
  .option('--python <path>', 'interpreter with distributed installed', '/usr/bin/python3')
  .parse();

const [tasks, workers] = program.args as [string, string];
const options = program.opts<BenchOptions>();
const repeat = Number(options.repeat);

if (repeat > 1 || options.vsDask === true) compare();
else print(measure());

function measure(): Record<string, unknown> {
  const shape = { threads: Number(options.threads), inputs: Number(options.inputs) };
  return {
    bench: 'steal',
    tasks: Number(tasks),
    workers: Number(workers),
    ...shape,
    ...measureStealing(Number(tasks), Number(workers), shape),
    node: process.version,
    load: Math.round((loadavg()[0] ?? 0) * 100) / 100,
  };
}

/** Runs alternate, each in a fresh process, so that both meet the same noise. */
function compare(): void {
  const ours: Record<string, unknown>[] = [];
  const theirs: Record<string, unknown>[] = [];
  for (let run = 0; run < Math.max(1, repeat); run++) {
    ours.push(runSelf());
    if (options.vsDask === true) theirs.push(runDask());
  }
  const own = median(ours);
  print(own);
  if (theirs.length === 0) return;
  const dask = median(theirs);
  print(dask);
  const ratio = Number(dask['firstMs']) / Number(own['firstMs']);
  print({ bench: 'steal-vs-dask', tasks, workers, ratio: Math.round(ratio * 10) / 10 });
}

function runSelf(): Record<string, unknown> {
  const { threads, inputs } = options;
  const script = fileURLToPath(import.meta.url);
  const args = [tasks, workers, '--threads', threads, '--inputs', inputs];
  return run(process.execPath, [script, ...args]);
}

function runDask(): Record<string, unknown> {
  if (Number(options.inputs) > 0)
    program.error('--inputs has no counterpart in the script of Dask');
  // Python sources are not compiled, so the script stays where it was written.
  const script = fileURLToPath(new URL('../../../test/bench/dask_stealing.py', import.meta.url));
  return run(options.python, ['-W', 'ignore', script, tasks, workers, options.threads]);
}

function run(command: string, args: readonly string[]): Record<string, unknown> {
  const output = execFileSync(command, args, { encoding: 'utf8', maxBuffer: 2 ** 24 });
  const line = output.trim().split('\n').at(-1) ?? '';
  return JSON.parse(line) as Record<string, unknown>;
}

function median(runs: readonly Record<string, unknown>[]): Record<string, unknown> {
  const sorted = runs.toSorted((a, b) => Number(a['firstMs']) - Number(b['firstMs']));
  return sorted[Math.floor(sorted.length / 2)] as Record<string, unknown>;
}

function print(line: Record<string, unknown>): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
