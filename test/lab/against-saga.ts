/**
 * `npm run lab:saga -- --python PYTHON [graphs]`: the offline HEFT beside that of SAGA (anrg-saga of PyPI, in the
 * environment of that Python), on the same graphs and machines: one thread each, no latency, links that transfers do
 * not share. `adapted` is SAGA's with three rules of ours (saga_makespans.py), which has to be equal, and `shared` the
 * offline HEFT where transfers share links. Durations are drawn, so that few ranks are equal.
 */
import { spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';
import { textTable } from '../../adapters/cli/terminal.ts';
import { loadWorkloads, type SimulatedWorkload } from '../../adapters/simulator/index.ts';
import { PLANNERS, type Problem, problemOf } from '../../adapters/simulator/lab/offline.ts';

const { values: flags, positionals } = parseArgs({
  options: {
    python: { type: 'string', default: 'python3' },
    'max-tasks': { type: 'string', default: '200' },
  },
  allowPositionals: true,
});

const BANDWIDTH = 125e6;
const SHORTEST_S = 1e-3;
const CLUSTERS = { equal: [1, 1, 1, 1, 1, 1, 1, 1], unequal: [0.5, 0.5, 1, 1, 2, 2] };
const GRAPHS = [
  ...['chains:6,6@2s,100MB', 'tree:6@2s,100MB', 'shuffle:6@2s,20MB', 'merge:40@2s,50MB'],
  ...['wordbag:10@1s,100MB', 'mapreduce:8@2s,50MB', 'crossv:4@1s,80MB', 'overlap:6,6@2s,100MB'],
];
const SCRIPT = new URL('../../../test/lab/saga_makespans.py', import.meta.url).pathname;

function problem(
  workload: SimulatedWorkload,
  speeds: readonly number[],
  sharing: 'none' | 'max-min' = 'none',
): Problem {
  return problemOf(workload, {
    workers: speeds.map((speed) => ({ speed })),
    network: { bandwidth: BANDWIDTH, latencyMs: 0, sharing },
    durations: { spread: 0.2 },
  });
}

const workloads: SimulatedWorkload[] = [];
for (const name of positionals.length === 0 ? GRAPHS : positionals) {
  for (const workload of await loadWorkloads(name)) {
    // SAGA finds by its rounding that tasks overlap which take no time.
    const durationsS = workload.durationsS.map((seconds) => Math.max(seconds, SHORTEST_S));
    workloads.push({ ...workload, durationsS });
  }
}
const small = workloads.filter(({ tasks }) => tasks.length <= Number(flags['max-tasks']));
const instances = small.flatMap((workload) =>
  Object.entries(CLUSTERS).map(([cluster, speeds]) => ({ workload, cluster, speeds })),
);
const input = instances.map(({ workload, speeds }) => {
  const rows = problem(workload, speeds).tasks.map(({ key, durationS, nbytes, needs }) => {
    return [key, durationS, nbytes, needs.map((need) => need.key)];
  });
  return JSON.stringify([rows, speeds, BANDWIDTH]);
});
const { stdout, stderr, status } = spawnSync(flags.python, [SCRIPT], {
  input: `${input.join('\n')}\n`,
  env: { ...process.env, PYTHONHASHSEED: '0' },
  encoding: 'utf8',
});
if (status !== 0) throw new Error(`saga_makespans.py failed: ${stderr}`);
const answers = stdout.trimEnd().split('\n');
const sagas: number[] = [];
const adapted: number[] = [];
const rows = instances.map(({ workload, cluster, speeds }, at) => {
  const [sagaS, adaptedS] = JSON.parse(answers[at]!) as [number, number];
  const ownS = PLANNERS.heft(problem(workload, speeds)).makespanS;
  const sharedS = PLANNERS.heft(problem(workload, speeds, 'max-min')).makespanS;
  sagas.push(ownS / sagaS);
  adapted.push(ownS / adaptedS);
  const figures = [sagaS, adaptedS, ownS, sharedS].map((seconds) => seconds.toFixed(3));
  return [workload.name, workload.tasks.length, cluster, ...figures];
});
const titles = ['graph', 'tasks', 'machines', 'SAGA', 'adapted', 'ours', 'shared'];
console.log(textTable(titles, rows));
for (const [name, ratios] of Object.entries({ SAGA: sagas, adapted })) {
  const within = (share: number): number =>
    ratios.filter((ratio) => Math.abs(ratio - 1) <= share).length;
  const mean = Math.exp(ratios.reduce((sum, ratio) => sum + Math.log(ratio), 0) / ratios.length);
  const [least, most] = [Math.min(...ratios), Math.max(...ratios)].map((one) => one.toFixed(3));
  console.log(
    `ours beside ${name}: ${within(1e-9)} of ${ratios.length} equal, ${within(0.02)} within 2 %, from ${least} to ${most}, geometric mean ${mean.toFixed(4)}`,
  );
}
