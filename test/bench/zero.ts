/**
 * What the scheduler costs over the real wire, with workers that compute nothing:
 * `npm run bench -- zero SHAPE TASKS WORKERS`. Prints one JSON line.
 */
import { execFile } from 'node:child_process';
import { loadavg } from 'node:os';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Command } from 'commander';
import { startScheduler } from '../kit/start-scheduler.ts';
import { tuneEngine } from '../../adapters/cli/flags.ts';
import { startZeroWorkers } from './zero-workers.ts';
import { SHAPES } from './shapes.ts';
import { print, type Result, round } from './side-by-side.ts';

tuneEngine();

const program = new Command('npm run bench -- zero')
  .description('A scheduler over TCP, with workers that compute nothing.')
  .argument('<shape>', Object.keys(SHAPES).join(', '))
  .argument('<tasks>', 'number of tasks, about; 0 for a graph that has its size')
  .argument('<workers>', 'number of workers')
  .option('--threads <number>', 'threads per worker', '2')
  .option('--rounds <number>', 'lives of the graph; the last one is measured', '2')
  .option('--only-workers <address>', 'be the workers of that scheduler')
  .parse();
const [shape, tasks, workers] = program.args as [string, string, string];
const options = program.opts<{
  readonly threads: string;
  readonly rounds: string;
  readonly onlyWorkers?: string;
}>();

if (options.onlyWorkers === undefined) print(await measure());
else await beWorkers(options.onlyWorkers);

async function measure(): Promise<Result> {
  const running = await startScheduler({}, 'tcp://127.0.0.1:0');
  const { address } = running;
  const helpers = spawnSelf([shape, tasks, workers, '--only-workers', address]);
  while (running.scheduler.cluster.workers.size < Number(workers)) await pause(20);
  const client = fileURLToPath(new URL('zero-client.js', import.meta.url));
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const before = process.cpuUsage();
  const { stdout } = await run(process.execPath, [client, address, shape, tasks, options.rounds]);
  const { user, system } = process.cpuUsage(before);
  delay.disable();
  const submitted = JSON.parse(stdout) as {
    readonly tasks: number;
    readonly seconds: readonly number[];
  };
  const { seconds } = submitted;
  await running.close();
  await helpers;
  return {
    bench: 'zero',
    shape,
    tasks: submitted.tasks,
    workers: Number(workers),
    tasksPerS: Math.round(submitted.tasks / (seconds.at(-1) ?? NaN)),
    schedulerUsPerTask: round((user + system) / submitted.tasks / seconds.length),
    longestBlockMs: round(delay.max / 1e6),
    node: process.version,
    load: round(loadavg()[0] ?? 0),
  };
}

async function beWorkers(address: string): Promise<void> {
  const zero = await startZeroWorkers(address, {
    workers: Number(workers),
    threads: Number(options.threads),
  });
  await zero.closed;
}

function spawnSelf(args: readonly string[]): Promise<unknown> {
  return run(process.execPath, [fileURLToPath(import.meta.url), ...args]);
}

function run(command: string, args: readonly string[]): Promise<{ readonly stdout: string }> {
  return promisify(execFile)(command, args, { maxBuffer: 2 ** 24 });
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
