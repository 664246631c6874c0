/**
 * What rounds of the Active Memory Manager cost: `npm run bench -- amm N W [--vs-dask]`.
 * Prints a JSON line for `reduce-replicas` and one for `retire-worker`; with `--vs-dask` also those of
 * Dask's manager and the ratio of both.
 */
import { loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { type AmmBenchKind, measureRound } from './amm-rounds.ts';
import { median, print, pythonScript, type Result, round, run } from './side-by-side.ts';

const KINDS: readonly AmmBenchKind[] = ['reduce', 'retire'];

const program = new Command('npm run bench -- amm')
  .description('CPU time of one round of the Active Memory Manager, kernel included.')
  .argument('<tasks>', 'number of tasks')
  .argument('<workers>', 'number of workers')
  .option('--kind <kind>', `only this one: ${KINDS.join(', ')}`)
  .option('--own', 'the policies are loaded as those of a user, which see views of the state')
  .option('--repeat <number>', 'runs in fresh processes; the median is printed', '1')
  .option('--vs-dask', "run Dask's manager on the same state and print the ratio")
  .option('--python <path>', 'interpreter with distributed installed', '/usr/bin/python3')
  .parse();

const [tasks, workers] = program.args as [string, string];
const options = program.opts<{
  readonly kind?: AmmBenchKind;
  readonly own?: boolean;
  readonly repeat: string;
  readonly vsDask?: boolean;
  readonly python: string;
}>();
const repeat = Math.max(1, Number(options.repeat));
const isOwn = options.own === true;

for (const kind of options.kind === undefined ? KINDS : [options.kind]) {
  if (repeat > 1 || options.vsDask === true) compare(kind);
  else
    print({
      bench: `amm-${kind}`,
      ...(isOwn ? { own: true } : {}),
      ...measureRound(kind, Number(tasks), Number(workers), isOwn),
      ...here(),
    });
}

/** Runs alternate, each in a fresh process, so that both meet the same noise. */
function compare(kind: AmmBenchKind): void {
  const ours: Result[] = [];
  const theirs: Result[] = [];
  for (let turn = 0; turn < repeat; turn++) {
    const script = fileURLToPath(import.meta.url);
    const args = [script, tasks, workers, '--kind', kind, ...(isOwn ? ['--own'] : [])];
    ours.push(run(process.execPath, ['--expose-gc', ...args]));
    if (options.vsDask === true) theirs.push(runDask(kind));
  }
  const own = median(ours, 'usPerUnit');
  print(own);
  if (theirs.length === 0) return;
  const dask = median(theirs, 'usPerUnit');
  print(dask);
  const ratio = Number(dask['usPerUnit']) / Number(own['usPerUnit']);
  print({
    bench: `amm-${kind}-vs-dask`,
    tasks: Number(tasks),
    workers: Number(workers),
    ratio: Math.round(ratio * 10) / 10,
  });
}

function runDask(kind: AmmBenchKind): Result {
  const script = pythonScript('dask_amm.py');
  return run(options.python, ['-W', 'ignore', script, kind, tasks, workers]);
}

function here(): Result {
  return { node: process.version, load: round(loadavg()[0] ?? 0) };
}
