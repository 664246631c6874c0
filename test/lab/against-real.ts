/**
 * `npm run lab:real`: runs workloads on a local cluster of processes and in the simulator, and prints by how much the
 * makespans differ. Tasks sleep, so that a small machine can play several workers.
 */
import { LocalCluster, ref, task, wait } from '../../adapters/app/index.ts';
import { loadWorkload, simulate, type SimulatedWorkload } from '../../adapters/simulator/index.ts';
import { textTable } from '../../adapters/cli/terminal.ts';
import { work } from './real-tasks.ts';

const WORKERS = 4;
const ROUNDS = 3;
/** What the loopback of a small machine carries. */
const NETWORK = { bandwidth: 500e6, latencyMs: 0.3 };
/** A chain of tasks that take no time: what is left is what each costs on this machine now. */
const CALIBRATION = { name: 'chains:1,40@0ms,1kB', tasks: 40 };
const WORKLOADS = [
  'map:60@500ms,100kB',
  'merge:40@500ms,100kB',
  'tree:6@300ms,1MB',
  'chains:6,6@300ms,1MB',
  'chains:4,20@100ms,1kB',
  'shuffle:5@300ms,200kB',
  'overlap:6,6@300ms,1MB',
  'wordbag:6@500ms,1MB',
  'mapreduce:12@300ms,500kB',
  'crossv:2@300ms,1MB',
];

/** Seconds. */
async function realMakespan(cluster: LocalCluster, workload: SimulatedWorkload): Promise<number> {
  const client = await cluster.client();
  const graph = Object.fromEntries(
    workload.tasks.map(({ key, dependencies }, index) => [
      key,
      task(
        work,
        1000 * workload.durationsS[index]!,
        workload.nbytes[index]!,
        ...dependencies.map((need) => ref(need)),
      ),
    ]),
  );
  const begunMs = performance.now();
  const futures = client.compute(graph, workload.keys);
  await wait(futures);
  const tookS = (performance.now() - begunMs) / 1000;
  for (const future of futures) future.release();
  await client.close();
  return tookS;
}

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)]!;
}

const rows: (string | number)[][] = [];
let logs = 0;
await using cluster = await LocalCluster.start({ workers: WORKERS, threads: 1, mode: 'processes' });
await realMakespan(cluster, await loadWorkload('map:40@5ms,1kB'));
const chain = await loadWorkload(CALIBRATION.name);
const calibrating: number[] = [];
for (let round = 0; round < ROUNDS; round++) calibrating.push(await realMakespan(cluster, chain));
const taskMs = (1000 * median(calibrating)) / CALIBRATION.tasks;
const overheadMs = Math.max(0, taskMs - 2 * NETWORK.latencyMs);
for (const name of WORKLOADS) {
  const workload = await loadWorkload(name);
  const real: number[] = [];
  for (let round = 0; round < ROUNDS; round++) real.push(await realMakespan(cluster, workload));
  const { makespanS } = await simulate(workload, {
    workers: WORKERS,
    network: NETWORK,
    durations: { overheadMs },
  });
  const ratio = makespanS / median(real);
  logs += Math.abs(Math.log(ratio));
  const spread = `${Math.min(...real).toFixed(2)} to ${Math.max(...real).toFixed(2)}`;
  rows.push([
    name,
    median(real).toFixed(2),
    spread,
    makespanS.toFixed(2),
    `${(100 * (ratio - 1)).toFixed(1)} %`,
  ]);
}
const error = Math.exp(logs / WORKLOADS.length) - 1;
process.stdout.write(
  `overhead of a task, from ${CALIBRATION.name}: ${overheadMs.toFixed(2)} ms\n${textTable(['workload', 'real s', 'of three', 'simulated s', 'error'], rows)}\ngeometric mean of the errors: ${(100 * error).toFixed(1)} %\n`,
);
