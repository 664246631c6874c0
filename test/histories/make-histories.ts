/**
 * Makes the recordings of this folder, runs of the kernel with workers in virtual time:
 * `UPDATE_HISTORIES=1 npx vitest run --config .config/vitest.config.ts test/histories`. Only when the kernel is meant to decide
 * otherwise, and then the changelog says so.
 */
import { ModuleFiles } from '../../core/plugin-host/module-files.ts';
import { writeFileSync } from 'node:fs';
import fc from 'fast-check';
import { builtins } from '../../adapters/app/builtin-extensions.ts';
import { MsgpackCodec } from '../../adapters/codecs/msgpack.ts';
import { shuffle, tree } from '../../adapters/workloads/index.ts';
import { configuration } from '../../adapters/app/config.ts';
import type { ConfigInput } from '../../core/config/types.ts';
import type { LoggedPolicies } from '../../core/log/format.ts';
import { type CheckpointDistance, LogWriter } from '../../core/log/log-writer.ts';
import { RecordingKernel } from '../../core/log/recording-kernel.ts';
import { RecordedPolicies } from '../../core/plugin-host/load-extensions.ts';
import { kernelOptions } from '../../core/scheduler-host/tokens.ts';
import { scenario } from '../kit/random-scenario.ts';
import { RandomWorld } from '../kit/random-world.ts';
import { SimulatedCluster } from '../kit/simulated-cluster.ts';

const DEFAULTS: LoggedPolicies = policies({
  workerSelection: 'earliest-start',
  queuing: 'root-ish',
  ordering: 'depth-first',
  fairness: 'fifo',
});

type Play = (makeKernel: () => RecordingKernel) => void;

function policies(names: Readonly<Record<string, string>>): LoggedPolicies {
  return Object.fromEntries(
    Object.entries(names).map(([slot, name]) => [slot, { name, entry: { use: name } }]),
  );
}

async function make(
  name: string,
  chosen: LoggedPolicies,
  input: ConfigInput,
  play: Play,
  distance?: CheckpointDistance,
): Promise<void> {
  const { config } = configuration.loadObject(input, '/');
  const ports = await new RecordedPolicies(builtins, new ModuleFiles('/')).ports(chosen);
  const parts: Uint8Array[] = [];
  const plain = config as unknown as Readonly<Record<string, unknown>>;
  const header = {
    holds: 'all',
    version: 'history',
    schedulerId: name,
    createdAtMs: 0,
    config: plain,
    folder: '/',
    segment: 1,
  } as const;
  const sink = (bytes: Uint8Array): void => void parts.push(bytes.slice());
  const log = new LogWriter(new MsgpackCodec(), sink, header, 0, distance);
  let kernel: RecordingKernel | undefined;
  play(() => {
    kernel = new RecordingKernel(kernelOptions(config), ports, 0, log);
    return kernel;
  });
  if (kernel === undefined) throw new Error(`${name} made no kernel`);
  log.end(kernel.checkNow(true), 0);
  const bytes = Buffer.concat(parts);
  writeFileSync(new URL(`${name}.ylog`, import.meta.url), bytes);
  process.stdout.write(`${name}: ${bytes.length} bytes, ${kernel.transitionCounter} transitions\n`);
}

/** Between 20 and 200 ms, the same for a key each time. */
function durationMs(key: string): number {
  let hash = 7;
  for (const letter of key) hash = (hash * 31 + letter.charCodeAt(0)) % 1009;
  return 20 + (hash % 180);
}

const LIKE_DASK = policies({ ...names(DEFAULTS), ordering: 'dask', workerSelection: 'balanced' });

/** Writes all recordings. */
export async function makeHistories(): Promise<void> {
  await makeCheckpoints();
  await make('tree-whose-worker-dies', DEFAULTS, {}, (makeKernel) => {
    const cluster = new SimulatedCluster({ makeKernel, durationMs, workers: [1, 2, 1] });
    const { tasks, keys } = tree(6);
    cluster.submit(tasks, { keys });
    cluster.run(500);
    cluster.stimulate({
      op: 'remove-worker',
      worker: 'sim://w2',
      expected: false,
      close: false,
    });
    cluster.run();
  });

  await make('shuffle-in-the-order-of-dask', LIKE_DASK, {}, (makeKernel) => {
    const cluster = new SimulatedCluster({ makeKernel, durationMs, workers: [2, 2] });
    const { tasks, keys } = shuffle(8);
    cluster.submit(tasks, { keys });
    cluster.run();
  });

  await make('random-stimuli', DEFAULTS, { scheduler: { workerTtl: '20s' } }, (makeKernel) => {
    const world = new RandomWorld(makeKernel());
    for (const { steps } of fc.sample(scenario, { numRuns: 12, seed: 16 })) {
      for (const step of steps) if (step.what !== 'replace-policies') world.take(step);
    }
    world.heal();
  });
}

/** A scheduler whose state is written now and then. */
export async function makeCheckpoints(): Promise<void> {
  const chosen = policies({
    ...names(DEFAULTS),
    queuing: 'family',
    fairness: 'weighted-fair-share',
  });
  const play: Play = (makeKernel) => {
    const world = new RandomWorld(makeKernel());
    for (const { steps } of fc.sample(scenario, { numRuns: 8, seed: 61 })) {
      for (const step of steps) if (step.what !== 'replace-policies') world.take(step);
    }
    world.heal();
  };
  await make('checkpoints', chosen, {}, play, { bytesMin: 10_000, ratio: 0 });
}

function names(chosen: LoggedPolicies): Record<string, string> {
  return Object.fromEntries(Object.entries(chosen).map(([slot, { name }]) => [slot, name]));
}
