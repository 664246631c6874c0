/**
 * What a worker costs: `npm run bench -- worker`. Prints a JSON line for each: results to another process,
 * to the disk and back, the worker's machine alone, and tasks that do nothing on threads, beside the
 * pools of threads that people use.
 */
import { loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { Command, Option } from 'commander';
import { type DataShape, measureFetch, measureSpill } from './data-paths.ts';
import type { PoolName } from './pools.ts';
import { median, print, type Result, round, run } from './side-by-side.ts';
import { measureMachine } from './worker-machine.ts';

const MIB = 1024 * 1024;
const MANY: DataShape = { count: 64, nbytes: MIB };
const LARGE: DataShape = { count: 1, nbytes: 256 * MIB };
const MACHINE_TASKS = 100_000;

const PARTS = ['fetch', 'spill', 'machine', 'pools'] as const;
const PEERS: readonly PoolName[] = ['piscina', 'piscina-10', 'tinypool', 'poolifier'];

interface BenchOptions {
  readonly part?: readonly (typeof PARTS)[number][];
  readonly tasks: string;
  readonly threads: string;
  readonly rounds: string;
  readonly repeat: string;
}

const options = new Command('npm run bench -- worker')
  .description(
    'Transfers, spilling and the overhead per task of a worker, beside pools of threads.',
  )
  .addOption(new Option('--part <part...>', 'only these').choices(PARTS))
  .option('--tasks <number>', 'tasks of a round on the pools', '10000')
  .option('--threads <number>', 'threads of each pool', '2')
  .option('--rounds <number>', 'rounds in one process, of which the median counts', '5')
  .option('--repeat <number>', 'processes of each pool, in turn; the median is printed', '3')
  .parse()
  .opts<BenchOptions>();
const rounds = Number(options.rounds);

for (const part of options.part ?? PARTS) {
  if (part === 'fetch') await fetch();
  else if (part === 'spill') spill();
  else if (part === 'machine') tell('worker-machine', measureMachine(MACHINE_TASKS, rounds));
  else comparePools();
}

async function fetch(): Promise<void> {
  for (const shape of [MANY, LARGE]) tell('worker-fetch', await measureFetch(shape, rounds));
}

function spill(): void {
  for (const shape of [MANY, LARGE]) {
    const { write, read } = measureSpill(shape, rounds);
    tell('worker-spill-write', write);
    tell('worker-spill-read', read);
  }
}

/** All pools in turn, each in a fresh process, so that all meet the same noise. */
function comparePools(): void {
  for (const load of ['burst', 'closed', 'items']) compareUnder(load);
}

function compareUnder(load: string): void {
  const names: readonly PoolName[] = ['yardmaster', ...PEERS];
  const runs = new Map<PoolName, Result[]>(names.map((name) => [name, []]));
  for (let turn = 0; turn < Math.max(1, Number(options.repeat)); turn++) {
    for (const name of names) runs.get(name)?.push(runPool(name, load));
  }
  const results = new Map(
    Array.from(runs, ([name, its]) => {
      const { usPerTask } = median(its, 'usPerTask');
      return [name, { tasksPerS: median(its, 'tasksPerS')['tasksPerS'], usPerTask }] as const;
    }),
  );
  for (const [pool, result] of results) tell('worker-pool', { pool, pattern: load, ...result });
  const value = (name: PoolName, field: 'tasksPerS' | 'usPerTask'): number =>
    Number(results.get(name)?.[field]);
  const fastest = Math.max(...PEERS.map((name) => value(name, 'tasksPerS')));
  const cheapest = Math.min(...PEERS.map((name) => value(name, 'usPerTask')));
  print({
    bench: 'worker-pool-vs-best',
    pattern: load,
    throughputRatio: round(value('yardmaster', 'tasksPerS') / fastest),
    cpuRatio: round(cheapest / value('yardmaster', 'usPerTask')),
  });
}

function runPool(name: PoolName, load: string): Result {
  const script = fileURLToPath(new URL('./pool-rounds.js', import.meta.url));
  const { tasks, threads } = options;
  return run(process.execPath, [script, name, load, tasks, threads, options.rounds]);
}

function tell(bench: string, result: Result): void {
  print({ bench, ...result, node: process.version, load: round(loadavg()[0] ?? 0) });
}
