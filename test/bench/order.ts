/**
 * What an ordering costs per task: `npm run bench -- order SHAPE N [--policy dask] [--vs-dask]`.
 * Prints one JSON line; with `--vs-dask` also the line of Dask's own order and the ratio of both.
 */
import { loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import type { Ordering, PolicyDefinition } from '../../core/api/index.ts';
import { builtins } from '../../adapters/app/builtin-extensions.ts';
import { indexGraph, resolveLinks } from '../../policies/ordering/graph-index.ts';
import { liveResults } from '../../policies/ordering/best.ts';
import { type Shape, SHAPES } from './shapes.ts';
import { median, print, pythonScript, type Result, round, run } from './side-by-side.ts';
import { ranksOf } from '../kit/orders.ts';

interface BenchOptions {
  readonly policy: string;
  readonly repeat: string;
  readonly vsDask?: boolean;
  readonly python: string;
}

/** Runs in one process, each with a separate graph; the median counts. */
const RUNS = 3;
/** Tasks of the graph that is ordered first, unmeasured: a scheduler is a long-lived process. */
const WARM_UP_TASKS = 10_000;

const program = new Command('npm run bench -- order')
  .description('CPU time of an ordering policy per task.')
  .argument('<shape>', Object.keys(SHAPES).join(', '))
  .argument('<tasks>', 'number of tasks, about; 0 for a graph that has its size')
  .option('--policy <name>', 'a built-in ordering', 'dask')
  .option('--repeat <number>', 'runs in fresh processes; the median is printed', '1')
  .option('--vs-dask', "run Dask's order on the same graph and print the ratio")
  .option('--python <path>', 'interpreter with dask installed', '/usr/bin/python3')
  .parse();

const [shape, tasks] = program.args as [string, string];
const options = program.opts<BenchOptions>();
const makeShape = SHAPES[shape] ?? program.error(`there is no shape "${shape}"`);

if (Number(options.repeat) > 1 || options.vsDask === true) compare();
else print(await measure());

async function measure(): Promise<Result> {
  const ordering = await orderingNamed(options.policy);
  const warmUp = makeShape(WARM_UP_TASKS);
  for (let turn = 0; turn < 2; turn++) {
    ranksOf(ordering, warmUp.tasks, warmUp.keys, resolveLinks(warmUp.tasks));
  }
  const runs = Array.from({ length: RUNS }, () => measureOnce(ordering, makeShape(Number(tasks))));
  return median(runs, 'usPerTask');
}

function measureOnce(ordering: Ordering, graph: Shape): Result {
  // The kernel has resolved the keys when it asks for an order, and Dask's scheduler has, too.
  const links = resolveLinks(graph.tasks);
  const before = process.cpuUsage();
  const ranks = ranksOf(ordering, graph.tasks, graph.keys, links);
  const { user, system } = process.cpuUsage(before);
  return {
    bench: 'order',
    policy: options.policy,
    shape,
    tasks: graph.tasks.length,
    usPerTask: round((user + system) / graph.tasks.length),
    peak: liveResults(indexGraph(graph.tasks), ranks).peak,
    node: process.version,
    load: round(loadavg()[0] ?? 0),
  };
}

async function orderingNamed(name: string): Promise<Ordering> {
  // Built-ins of another kind may have the same name.
  const load = builtins[`ordering/${name}`] ?? builtins[name];
  const policy = (await load?.()) as PolicyDefinition | undefined;
  if (policy?.slot !== 'ordering') return program.error(`there is no ordering "${name}"`);
  return policy.create({} as never) as Ordering;
}

/** Runs alternate, each in a fresh process, so that both meet the same noise. */
function compare(): void {
  const ours: Result[] = [];
  const theirs: Result[] = [];
  const script = fileURLToPath(import.meta.url);
  for (let turn = 0; turn < Math.max(1, Number(options.repeat)); turn++) {
    ours.push(run(process.execPath, [script, shape, tasks, '--policy', options.policy]));
    if (options.vsDask !== true) continue;
    theirs.push(run(options.python, ['-W', 'ignore', pythonScript('dask_order.py'), shape, tasks]));
  }
  const own = median(ours, 'usPerTask');
  print(own);
  if (theirs.length === 0) return;
  const dask = median(theirs, 'usPerTask');
  print(dask);
  const ratio = round(Number(dask['usPerTask']) / Number(own['usPerTask']));
  print({ bench: 'order-vs-dask', policy: options.policy, shape, tasks: own['tasks'], ratio });
}
