/**
 * What a round of work stealing costs: `npm run bench -- steal TASKS WORKERS [--vs-dask]`.
 * Prints one JSON line; with `--vs-dask` also the line of Dask's balance() and the ratio of both.
 */
import { loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { median, print, pythonScript, type Result, round, run } from './side-by-side.ts';
import { measureStealing } from './steal-rounds.ts';

interface BenchOptions {
  readonly threads: string;
  readonly inputs: string;
  readonly repeat: string;
  readonly vsDask?: boolean;
  readonly python: string;
}

const program = new Command('npm run bench -- steal')
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

function measure(): Result {
  const shape = { threads: Number(options.threads), inputs: Number(options.inputs) };
  return {
    bench: 'steal',
    tasks: Number(tasks),
    workers: Number(workers),
    ...shape,
    ...measureStealing(Number(tasks), Number(workers), shape),
    node: process.version,
    load: round(loadavg()[0] ?? 0),
  };
}

/** Runs alternate, each in a fresh process, so that both meet the same noise. */
function compare(): void {
  const ours: Result[] = [];
  const theirs: Result[] = [];
  for (let turn = 0; turn < Math.max(1, repeat); turn++) {
    ours.push(runSelf());
    if (options.vsDask === true) theirs.push(runDask());
  }
  const own = median(ours, 'firstMs');
  print(own);
  if (theirs.length === 0) return;
  const dask = median(theirs, 'firstMs');
  print(dask);
  const ratio = Number(dask['firstMs']) / Number(own['firstMs']);
  print({ bench: 'steal-vs-dask', tasks, workers, ratio: Math.round(ratio * 10) / 10 });
}

function runSelf(): Result {
  const { threads, inputs } = options;
  const script = fileURLToPath(import.meta.url);
  const args = [tasks, workers, '--threads', threads, '--inputs', inputs];
  return run(process.execPath, [script, ...args]);
}

function runDask(): Result {
  if (Number(options.inputs) > 0)
    program.error('--inputs has no counterpart in the script of Dask');
  const script = pythonScript('dask_stealing.py');
  return run(options.python, ['-W', 'ignore', script, tasks, workers, options.threads]);
}
