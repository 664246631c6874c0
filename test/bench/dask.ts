/**
 * Dask's own client and two of its workers, with Dask's scheduler and with ours in turn.
 *
 *     npm run bench -- dask [--python /usr/bin/python3] [--rounds 3] [--scenarios latency,map]
 *       [--tasks 10000] [--warm-up 200]
 *
 * One JSON line for each scenario: tasks per second (or milliseconds) of both, and what the schedulers
 * used with all processes that they start, medians of the rounds.
 */
import { execFile } from 'node:child_process';
import { parseArgs, promisify } from 'node:util';
import { DaskRuns } from '../adapters/dask/dask-runs.ts';
import { findDaskPython } from '../adapters/dask/pythons.ts';
import { print, pythonScript, round, type Result } from './side-by-side.ts';

const WORKERS = 2;
const PEERS = ['dask', 'yardmaster'] as const;
type Peer = (typeof PEERS)[number];

/** What the client printed for one scenario. CPU in seconds, memory in MB once all was released. */
interface Measured {
  readonly seconds: number;
  readonly tasks: number;
  /** Of the scheduler's process and the Pythons that it has started, together. */
  readonly cpu: number;
  readonly memoryMB: number;
  /** The part of the Pythons that read graphs, which Dask's scheduler does not have. */
  readonly helperCpu: number;
  readonly helperMemoryMB: number;
}

const { values: flags } = parseArgs({
  options: {
    python: { type: 'string', default: findDaskPython()?.command ?? 'python3' },
    rounds: { type: 'string', default: '3' },
    scenarios: { type: 'string', default: 'latency,map,tree,array,query' },
    tasks: { type: 'string', default: '10000' },
    'warm-up': { type: 'string', default: '200' },
    only: { type: 'string' },
  },
});

const runs = new DaskRuns(flags.python);

async function startScheduler(peer: Peer): Promise<{ address: string; pid: number | undefined }> {
  if (peer === 'yardmaster') {
    const { dask, run } = await runs.scheduler();
    return { address: dask, pid: run.child.pid };
  }
  const where = ['--host', '127.0.0.1', '--port', '0', '--no-dashboard'];
  const stock = runs.script('-m', 'distributed.cli.dask_scheduler', ...where);
  const [address] = await stock.addresses(1);
  return { address: address as string, pid: stock.child.pid };
}

/** One round: a fresh scheduler, fresh workers, a fresh client. */
async function measure(peer: Peer): Promise<Readonly<Record<string, Measured>>> {
  try {
    const { address, pid } = await startScheduler(peer);
    for (let index = 0; index < WORKERS; index++) {
      runs.worker(address, ['--nthreads', '1', '--no-nanny']);
    }
    const script = pythonScript('dask_client.py');
    const { scenarios, tasks, 'warm-up': warmUp } = flags;
    const load = ['--scenarios', scenarios, '--tasks', tasks, '--warm-up', warmUp];
    const args = [script, address, ...load, '--scheduler', String(pid)];
    const { stdout } = await promisify(execFile)(flags.python, args, { maxBuffer: 2 ** 24 });
    return JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Record<string, Measured>;
  } finally {
    await runs.end('SIGKILL');
  }
}

/** The median of each figure by itself. */
function middle(rounds: readonly Readonly<Record<string, Measured>>[], name: string): Measured {
  const median = (figure: keyof Measured): number => {
    const sorted = rounds.map((each) => each[name]?.[figure] ?? NaN).toSorted((a, b) => a - b);
    return sorted[Math.floor(sorted.length / 2)] ?? NaN;
  };
  return {
    seconds: median('seconds'),
    tasks: median('tasks'),
    cpu: median('cpu'),
    memoryMB: median('memoryMB'),
    helperCpu: median('helperCpu'),
    helperMemoryMB: median('helperMemoryMB'),
  };
}

function describe(name: string, measured: Measured): Result {
  const { seconds, tasks, cpu, memoryMB, helperCpu, helperMemoryMB } = measured;
  const time =
    name === 'latency'
      ? { ms: round(seconds * 1000) }
      : { seconds: round(seconds), tasksPerS: Math.round(tasks / seconds) };
  const usPerTask = (cpuS: number): number => Math.round((cpuS / tasks) * 1e6);
  return {
    ...time,
    cpuS: cpu,
    cpuUsPerTask: usPerTask(cpu),
    memoryMB,
    ...(helperMemoryMB === 0 ? {} : { ofHelpersS: helperCpu, helperMemoryMB }),
  };
}

async function main(): Promise<void> {
  const results: Record<Peer, Readonly<Record<string, Measured>>[]> = { dask: [], yardmaster: [] };
  const peers = PEERS.filter((peer) => flags.only === undefined || peer === flags.only);
  for (let index = 0; index < Number(flags.rounds); index++) {
    for (const peer of peers) {
      const measured = await measure(peer);
      results[peer].push(measured);
      process.stderr.write(`round ${index + 1} of ${peer}: ${JSON.stringify(measured)}\n`);
    }
  }
  const version = (results.dask[0] ?? results.yardmaster[0])?.['distributed'];
  for (const name of flags.scenarios.split(',')) {
    const [dask, ours] = PEERS.map((peer) => middle(results[peer], name)) as [Measured, Measured];
    print({
      bench: 'dask',
      scenario: name,
      distributed: version,
      dask: describe(name, dask),
      yardmaster: describe(name, ours),
      ratio: round(dask.seconds / ours.seconds),
      cpuRatio: round(dask.cpu / ours.cpu),
    });
  }
}

await main();
