/**
 * Every benchmark by name: `npm run bench -- kernel tree 10000 100`. Without a name it is the whole
 * suite, `npm run bench -- [--quick]`. Each runs in a separate process, so that it can ask Node for
 * its flags.
 */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

interface Benchmark {
  readonly file: string;
  readonly measures: string;
  readonly flags?: readonly string[];
}

const SUITE: Benchmark = { file: 'suite/main', measures: 'all of them, beside the peers' };

const BENCHMARKS: Readonly<Record<string, Benchmark>> = {
  kernel: {
    file: 'kernel',
    measures: 'CPU of the kernel per task of a graph',
    flags: ['--expose-gc'],
  },
  order: { file: 'order', measures: 'CPU of an ordering policy per task' },
  steal: { file: 'steal', measures: 'CPU of a round of work stealing' },
  amm: {
    file: 'amm',
    measures: 'CPU of a round of the Active Memory Manager',
    flags: ['--expose-gc'],
  },
  e2e: { file: 'end-to-end', measures: 'tasks per second and latency of a whole cluster' },
  cost: { file: 'cost', measures: 'the price of scheduling, beside Dask, HyperQueue and pools' },
  waits: { file: 'waits', measures: 'tasks that wait, waits for the network, the first result' },
  apps: { file: 'apps/main', measures: 'applications, beside those written with other tools' },
  tls: { file: 'tls', measures: 'the price of keys and encryption' },
  zero: { file: 'zero', measures: 'a scheduler over TCP with workers that compute nothing' },
  worker: { file: 'worker', measures: 'fetching, spilling, and threads beside pools of threads' },
  large: { file: 'large-result', measures: 'memory and time of one large result' },
  buffers: { file: 'buffers', measures: 'a large buffer between threads, beside piscina' },
  'thread-results': { file: 'thread-results', measures: 'large results between threads' },
  journal: { file: 'journal', measures: 'what a journal and a recording cost, and what survives' },
  'over-limit': { file: 'over-limit', measures: 'peak memory with more data than the limit' },
  viewers: { file: 'viewers', measures: 'what open pages of the dashboard cost the scheduler' },
  dashboard: { file: 'dashboard', measures: 'the dashboard in a browser, with very many tasks' },
  simulator: { file: 'simulator', measures: 'CPU and memory of the simulator per task' },
  suite: SUITE,
  dask: { file: 'dask', measures: "Dask's workers under this scheduler and under Dask's own" },
};

const [first, ...rest] = process.argv.slice(2);
if (first === '--help' || first === '-h') printHelp();
else if (first === undefined || first.startsWith('-')) run(SUITE, process.argv.slice(2));
else if (Object.hasOwn(BENCHMARKS, first)) run(BENCHMARKS[first] as Benchmark, rest);
else {
  process.stderr.write(`There is no benchmark "${first}".\n`);
  printHelp();
  process.exitCode = 2;
}

function run({ file, flags = [] }: Benchmark, args: readonly string[]): void {
  const path = fileURLToPath(new URL(`./${file}.js`, import.meta.url));
  const child = spawn(process.execPath, [...flags, path, ...args], { stdio: 'inherit' });
  // A signal of the terminal reaches the benchmark, too, which ends in its own way.
  process.on('SIGINT', () => undefined);
  child.on('exit', (code, signal) => {
    process.exitCode = signal === null ? (code ?? 1) : 1;
  });
}

function printHelp(): void {
  const lines = Object.entries(BENCHMARKS).map(([name, { measures }]) => {
    return `  ${name.padEnd(16)}${measures}`;
  });
  process.stdout.write(
    `npm run bench -- NAME [OPTIONS]   one benchmark; NAME --help shows its options\n${lines.join('\n')}\n` +
      'npm run bench -- [--quick]        all of them, beside the peers; suite --help shows the options\n',
  );
}
