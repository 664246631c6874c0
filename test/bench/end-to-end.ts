/**
 * What a task costs from the client's call to its result, scheduler, workers and network included:
 * `npm run bench -- e2e map|latency N [--mode processes|threads|inline] [--vs-dask]`. Prints one JSON line;
 * with `--vs-dask` also the line of Dask's LocalCluster, and the ratios.
 */
import { readFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { Command, Option } from 'commander';
import { type Client, LocalCluster } from '../../adapters/app/index.ts';
import { increment } from './no-op.ts';
import { median, print as printLine, pythonScript, type Result, run } from './side-by-side.ts';

interface BenchOptions {
  readonly mode: 'processes' | 'threads' | 'inline';
  readonly workers: string;
  readonly threads: string;
  readonly repeat: string;
  readonly vsDask?: boolean;
  readonly turns: string;
  readonly python: string;
}

interface Round {
  readonly tasksPerS: number;
  readonly cpuUsPerTask: number;
  readonly latenciesMs?: readonly number[];
}

/** Tasks that run first: connections, compilers and modules are warm after them. */
const WARM_UP_TASKS = 50_000;
/** Then this many one after the other, which take other code paths than many at once. */
const WARM_UP_CALLS = 3000;
/** Linux counts the CPU time of other processes in hundredths of a second. */
const CLOCK_TICK_US = 10_000;

const program = new Command('npm run bench -- e2e')
  .description('Wall and CPU time of tasks that do nothing, from the call to the result.')
  .argument('<what>', 'map (N tasks at once) or latency (N tasks one after the other)')
  .argument('<tasks>', 'number of tasks')
  .addOption(
    new Option('--mode <mode>', 'where workers run')
      .choices(['processes', 'threads', 'inline'])
      .default('processes'),
  )
  .option('--workers <number>', 'number of workers', '2')
  .option('--threads <number>', 'tasks at once per worker', '1')
  .option(
    '--repeat <number>',
    'rounds on one cluster; the one with the median CPU time counts',
    '5',
  )
  .option('--vs-dask', 'run Dask in turn with ours, and print the ratios')
  .option('--turns <number>', 'with --vs-dask: processes of each; the median counts', '3')
  .option('--python <path>', 'interpreter with distributed installed', '/usr/bin/python3')
  .parse();

const [what, tasks] = program.args as [string, string];
const { mode, workers, threads, repeat, ...options } = program.opts<BenchOptions>();
if (what !== 'map' && what !== 'latency') program.error(`there is no benchmark "${what}"`);

if (options.vsDask === true) compareWithDask();
else await measureOurs();

async function measureOurs(): Promise<void> {
  const cluster = await LocalCluster.start({
    mode,
    workers: Number(workers),
    threads: Number(threads),
  });
  try {
    const client = await cluster.client();
    let next = 0;
    const arguments_ = (count: number): number[] => Array.from({ length: count }, () => next++);
    await mapAll(client, arguments_(WARM_UP_TASKS));
    if (what === 'latency') await oneByOne(client, arguments_(WARM_UP_CALLS));
    const rounds: Round[] = [];
    for (let round = 0; round < Math.max(1, Number(repeat)); round++) {
      rounds.push(await measure(cluster, client, arguments_(Number(tasks))));
    }
    print(rounds);
  } finally {
    await cluster.close();
  }
}

/** Runs alternate, each in a fresh process, so that both meet the same noise. */
function compareWithDask(): void {
  if (mode === 'inline') program.error('Dask has no counterpart to the mode inline');
  const ours: Result[] = [];
  const theirs: Result[] = [];
  for (let turn = 0; turn < Math.max(1, Number(options.turns)); turn++) {
    ours.push(runSelf());
    theirs.push(runDask());
  }
  const own = median(ours, 'cpuUsPerTask');
  const dask = median(theirs, 'cpuUsPerTask');
  printLine(own);
  printLine(dask);
  const ratio = (field: string): number => round(ratioOf(theirs, ours, field), 10);
  printLine({
    bench: 'end-to-end-vs-dask',
    what,
    mode,
    throughputRatio: round(1 / ratioOf(theirs, ours, 'tasksPerS'), 10),
    cpuRatio: ratio('cpuUsPerTask'),
    ...(what === 'latency' ? { latencyRatio: ratio('p50Ms') } : {}),
  });
}

function ratioOf(some: readonly Result[], others: readonly Result[], field: string): number {
  return Number(median(some, field)[field]) / Number(median(others, field)[field]);
}

function runSelf(): Result {
  const script = fileURLToPath(import.meta.url);
  const shape = ['--mode', mode, '--workers', workers, '--threads', threads];
  return run(process.execPath, [script, what, tasks, ...shape, '--repeat', repeat]);
}

/** One round each: it takes long, and has no compiler that has to warm up. */
function runDask(): Result {
  const script = pythonScript('dask_local_cluster.py');
  const isApart = mode === 'processes' ? '1' : '0';
  const shape = [what, tasks, workers, threads, '1', isApart];
  return run(options.python, ['-W', 'ignore', script, ...shape]);
}

async function measure(
  cluster: LocalCluster,
  client: Client,
  values: readonly number[],
): Promise<Round> {
  const startUs = cpuUs(cluster);
  const startMs = performance.now();
  let latenciesMs: readonly number[] | undefined;
  if (what === 'map') await mapAll(client, values);
  else latenciesMs = await oneByOne(client, values);
  const seconds = (performance.now() - startMs) / 1000;
  return {
    tasksPerS: values.length / seconds,
    cpuUsPerTask: (cpuUs(cluster) - startUs) / values.length,
    latenciesMs,
  };
}

async function mapAll(client: Client, values: readonly number[]): Promise<void> {
  const futures = client.map(increment, values);
  const results = await client.gather(futures);
  const wrong = values.findIndex((value, index) => results[index] !== value + 1);
  if (wrong >= 0) throw new Error(`the result of ${values[wrong]} is ${String(results[wrong])}`);
  for (const future of futures) future.release();
}

async function oneByOne(client: Client, values: readonly number[]): Promise<number[]> {
  const latenciesMs: number[] = [];
  for (const value of values) {
    const startMs = performance.now();
    const future = client.submit(increment, value);
    await future.result();
    latenciesMs.push(performance.now() - startMs);
    future.release();
  }
  return latenciesMs;
}

/** CPU time, user and system, of this process with its threads and of the worker processes. */
function cpuUs(cluster: LocalCluster): number {
  const { user, system } = process.cpuUsage();
  return cluster.pids.reduce((sum, pid) => sum + processCpuUs(pid), user + system);
}

function processCpuUs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The name in parentheses may hold spaces; utime and stime are fields 14 and 15 of all.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * CLOCK_TICK_US;
}

function print(rounds: readonly Round[]): void {
  const sorted = rounds.toSorted((a, b) => a.cpuUsPerTask - b.cpuUsPerTask);
  const { tasksPerS, cpuUsPerTask, latenciesMs } = sorted[Math.floor(rounds.length / 2)] as Round;
  const latencies = latenciesMs?.toSorted((a, b) => a - b);
  const quantile = (part: number): number =>
    round(latencies?.[Math.floor(latencies.length * part)] ?? NaN, 1000);
  const line = {
    bench: 'end-to-end',
    what,
    tasks: Number(tasks),
    mode,
    workers: Number(workers),
    threads: Number(threads),
    tasksPerS: round(tasksPerS, 1),
    cpuUsPerTask: round(cpuUsPerTask, 10),
    ...(latencies === undefined ? {} : { p50Ms: quantile(0.5), p99Ms: quantile(0.99) }),
    node: process.version,
    load: round(loadavg()[0] ?? 0, 100),
  };
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

function round(value: number, steps: number): number {
  return Math.round(value * steps) / steps;
}
