/**
 * The price of scheduling: `npm run bench -- cost`. Prints a JSON line for each scheduler and pool: tasks per second and
 * per second of CPU time of all its processes, with tasks that do nothing and two workers of one thread.
 */
import { execFileSync } from 'node:child_process';
import { loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { POOLS } from './pools.ts';
import { median, print, pythonScript, type Result, round, run } from './side-by-side.ts';

interface BenchOptions {
  readonly tasks: string;
  readonly turns: string;
  readonly python: string;
  readonly hyperqueue: string;
}

/** One side: a separate process each time. */
interface Contender {
  readonly who: string;
  readonly workers: 'processes' | 'threads';
  /** Why it cannot run here; undefined when it can. */
  readonly missing?: string;
  run(): Result;
}

const WORKERS = '2';
/** Rounds in one process, of which the median counts. */
const ROUNDS = '3';

/** HyperQueue listens on all addresses; here there is no other than the loopback. */
const LOOPBACK_ONLY = [
  'unshare',
  ...['--map-root-user', '--net', 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh'],
] as const;

const options = new Command('npm run bench -- cost')
  .description('Tasks per second and per second of CPU time, beside Dask, HyperQueue and pools.')
  .option('--tasks <number>', 'tasks of a round; a fifth of them for Dask and HyperQueue', '10000')
  .option('--turns <number>', 'processes of each, in turn; the median is printed', '3')
  .option('--python <path>', 'interpreter with distributed installed', '/usr/bin/python3')
  .option('--hyperqueue <path>', 'interpreter with hyperqueue installed', 'python3')
  .parse()
  .opts<BenchOptions>();
const { tasks } = options;
/** For peers of which a round with all tasks would take half a minute. */
const fewer = String(Math.ceil(Number(tasks) / 5));

const contenders: readonly Contender[] = [
  {
    who: 'yardmaster',
    workers: 'processes',
    run: () =>
      run(process.execPath, [
        script('end-to-end.js'),
        ...['map', tasks, '--mode', 'processes', '--workers', WORKERS, '--repeat', ROUNDS],
      ]),
  },
  {
    who: 'dask',
    workers: 'processes',
    missing: missingFrom([options.python, '-W', 'ignore'], 'distributed'),
    run: () => {
      const args = [pythonScript('dask_local_cluster.py'), 'map', fewer, WORKERS, '1', '1', '1'];
      return run(options.python, ['-W', 'ignore', ...args]);
    },
  },
  {
    who: 'hyperqueue',
    workers: 'processes',
    missing: missingFrom([...LOOPBACK_ONLY, options.hyperqueue], 'hyperqueue'),
    run: () => {
      const [command, ...args] = LOOPBACK_ONLY;
      const file = pythonScript('hyperqueue_local_cluster.py');
      return run(command, [...args, options.hyperqueue, file, fewer, WORKERS, '1']);
    },
  },
  ...Object.keys(POOLS).map((pool) => ({
    who: pool,
    workers: 'threads' as const,
    run: (): Result => {
      const { tasksPerS, usPerTask } = run(process.execPath, [
        ...[script('pool-rounds.js'), pool, 'burst', tasks, WORKERS, ROUNDS],
      ]);
      return { tasksPerS, cpuUsPerTask: usPerTask };
    },
  })),
];

const runs = contenders.map(() => [] as Result[]);
for (let turn = 0; turn < Number(options.turns); turn++) {
  for (const [index, { missing, run: measure }] of contenders.entries()) {
    if (missing === undefined) runs[index]?.push(measure());
  }
}
for (const [index, { who, workers, missing }] of contenders.entries()) {
  if (missing !== undefined) print({ bench: 'cost', who, workers, skipped: missing });
  else print({ bench: 'cost', who, workers, ...costOf(runs[index] ?? []) });
}

function costOf(measured: readonly Result[]): Result {
  const { cpuUsPerTask, programUsPerTask } = median(measured, 'cpuUsPerTask');
  return {
    tasksPerS: Math.round(Number(median(measured, 'tasksPerS')['tasksPerS'])),
    tasksPerCoreS: Math.round(1e6 / Number(cpuUsPerTask)),
    cpuUsPerTask,
    programUsPerTask,
    load: round(loadavg()[0] ?? 0),
  };
}

function script(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url));
}

/** Why a package of Python cannot be used; undefined when it can. */
function missingFrom([command, ...args]: readonly string[], name: string): string | undefined {
  try {
    const its = [...args, '-c', `import ${name}`];
    execFileSync(command as string, its, { stdio: ['ignore', 'ignore', 'pipe'] });
    return undefined;
  } catch (cause) {
    const { stderr } = cause as { readonly stderr?: Buffer };
    const why = stderr?.toString().trim().split('\n').at(-1) ?? String(cause);
    return `${name} is not there: ${why}`;
  }
}
