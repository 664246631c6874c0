/**
 * What the kernel costs per task: `npm run bench -- kernel SHAPE N W [--vs-dask]`.
 * Prints one JSON line; with `--vs-dask` also the line of Dask's scheduler and the ratio of both.
 */
import { loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { tuneEngine } from '../../adapters/cli/flags.ts';
import { measureLife, WARM_UP_TASKS } from './kernel-life.ts';
import { SHAPES } from './shapes.ts';
import { median, print, pythonScript, round, run } from './side-by-side.ts';

interface BenchOptions {
  readonly saturation: string;
  readonly threads: string;
  readonly repeat?: string;
  readonly warmUp: string;
  readonly vsDask?: boolean;
  readonly python: string;
  readonly once?: boolean;
  readonly own?: boolean;
  readonly byDefaults?: boolean;
  readonly filters?: string;
  readonly parts: string;
}

// As `yardmaster scheduler` does.
tuneEngine();

const program = new Command('npm run bench -- kernel')
  .description('CPU time of the kernel per task, over the whole life of a graph.')
  .argument('<shape>', Object.keys(SHAPES).join(', '))
  .argument('<tasks>', 'number of tasks, about; 0 for a graph that has its size')
  .argument('<workers>', 'number of workers')
  .option('--saturation <number>', 'root-ish tasks per thread, or inf', '1.1')
  .option('--threads <number>', 'threads per worker', '2')
  .option(
    '--repeat <number>',
    'runs in fresh processes, of which the median is printed; 5 beside Dask',
  )
  .option('--warm-up <tasks>', 'live before at least, unmeasured', String(WARM_UP_TASKS))
  .option('--once', 'no life of the same graph before, no memory: for very large graphs')
  .option('--parts <number>', 'graphs in which the tasks are submitted before any runs', '1')
  .option(
    '--own',
    'worker selection is loaded as a policy of a user, which sees views of the state',
  )
  .option('--by-defaults', 'the default policies in the place of those of Dask')
  .option('--filters <tasks>', 'three rules with filters that concern no task, or every task')
  .option('--vs-dask', "run Dask's scheduler on the same graph and print the ratio")
  .option('--python <path>', 'interpreter with distributed installed', '/usr/bin/python3')
  .parse();

const [shape, tasks, workers] = program.args as [string, string, string];
const options = program.opts<BenchOptions>();
const repeat = Number(options.repeat ?? (options.vsDask === true ? 5 : 1));

if (repeat > 1 || options.vsDask === true) compare();
else print(measure());

function measure(): Record<string, unknown> {
  const saturation = options.saturation === 'inf' ? Infinity : Number(options.saturation);
  const threads = Number(options.threads);
  const isOnly = options.once === true;
  const warmUpTasks = Number(options.warmUp);
  const parts = Number(options.parts);
  const isOwn = options.own === true;
  const { filters } = options;
  const byDefaults = options.byDefaults === true;
  const how = { saturation, threads, warmUpTasks, isOnly, parts, isOwn, byDefaults, filters };
  const life = measureLife(shape, Number(tasks), Number(workers), how);
  return {
    bench: 'kernel',
    shape,
    workers: Number(workers),
    saturation: options.saturation,
    threads,
    ...(isOwn ? { own: true } : {}),
    ...(byDefaults ? { byDefaults } : {}),
    ...(filters === undefined ? {} : { filters }),
    ...life,
    node: process.version,
    load: round(loadavg()[0] ?? 0),
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
  const own = median(ours, 'usPerTask');
  print(own);
  if (theirs.length === 0) return;
  const dask = median(theirs, 'usPerTask');
  print(dask);
  const ratio = Number(dask['usPerTask']) / Number(own['usPerTask']);
  print({ bench: 'kernel-vs-dask', shape, tasks: own['tasks'], workers, ratio: round(ratio) });
}

function runSelf(): Record<string, unknown> {
  const { saturation, threads, warmUp } = options;
  const args = [shape, tasks, workers, '--saturation', saturation, '--threads', threads];
  args.push('--warm-up', warmUp);
  if (options.own === true) args.push('--own');
  if (options.byDefaults === true) args.push('--by-defaults');
  if (options.filters !== undefined) args.push('--filters', options.filters);
  const script = fileURLToPath(import.meta.url);
  return run(process.execPath, ['--expose-gc', script, ...args]);
}

function runDask(): Record<string, unknown> {
  const { saturation, threads } = options;
  const args = [shape, tasks, workers, saturation, threads];
  return run(options.python, ['-W', 'ignore', pythonScript('dask_scheduler.py'), ...args]);
}
