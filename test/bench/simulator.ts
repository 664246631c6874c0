/**
 * What a simulated task costs: `npm run bench -- simulator WORKLOAD WORKERS`. Prints one JSON line;
 * the trace hash says whether two versions simulated the same run.
 */
import { loadavg } from 'node:os';
import { Command } from 'commander';
import { loadWorkload, simulate } from '../../adapters/simulator/index.ts';
import { print, round } from './side-by-side.ts';

interface BenchOptions {
  readonly threads: string;
  readonly seed: string;
}

const program = new Command('npm run bench -- simulator')
  .description('CPU time of the simulator per task, and its memory.')
  .argument('[workload]', 'as for `yardmaster simulate`', 'tree:20')
  .argument('[workers]', 'simulated workers', '10000')
  .option('--threads <number>', 'threads of each worker', '1')
  .option('--seed <number>', 'all that is drawn depends on it', '1')
  .parse();

const [workloadText, workers] = program.processedArgs as [string, string];
const { threads, seed } = program.opts<BenchOptions>();
const workload = await loadWorkload(workloadText);

const before = process.cpuUsage();
const begunMs = performance.now();
const report = await simulate(workload, {
  workers: Number(workers),
  worker: { threads: Number(threads) },
  seed: Number(seed),
});
const { user, system } = process.cpuUsage(before);
print({
  bench: 'simulator',
  workload: workloadText,
  workers: Number(workers),
  tasks: report.tasks,
  wallS: round((performance.now() - begunMs) / 1000),
  cpuS: round((user + system) / 1e6),
  usPerTask: round((user + system) / report.tasks),
  // The graph itself, the simulation and what V8 keeps free.
  maxRssMb: Math.round(process.resourceUsage().maxRSS / 1024),
  makespanS: round(report.makespanS),
  transfers: report.transfers,
  stimuli: report.stimuli,
  traceHash: report.traceHash,
  node: process.version,
  load: round(loadavg()[0] ?? 0),
});
