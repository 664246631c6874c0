import { type KnownPrefix, prefixOfKey } from '../../../core/state/groups.ts';
import { heartbeatIntervalMs } from '../../../core/util/event-loop.ts';
import {
  DEFAULT_NETWORK,
  type SimulationOptions,
  workerModels,
  type WorkerModel,
} from '../options.ts';
import { Draw } from '../random.ts';
import type { SimulatedWorkload } from '../../workloads/index.ts';
import type { RunOptions } from '../simulated-cluster.ts';
import { lowerBoundS, problemOf } from './offline.ts';
import { meanOf } from './statistics.ts';

/** Under what graphs run. */
export interface Setting {
  readonly name: string;
  readonly options: Omit<SimulationOptions, 'seed' | 'overrides'> & RunOptions;
  readonly memory?: (typeof MEMORY)[number];
  readonly durations?: (typeof KNOWLEDGE)[number];
}

/** Workers of simulated clusters, by name. `unequal`: each of three speeds with each of three numbers of threads. */
export const CLUSTERS: Readonly<Record<string, readonly WorkerModel[]>> = {
  '8x2': Array.from({ length: 8 }, () => ({ threads: 2 })),
  '32x4': Array.from({ length: 32 }, () => ({ threads: 4 })),
  '4x16': Array.from({ length: 4 }, () => ({ threads: 16 })),
  unequal: [0.5, 1, 2].flatMap((speed) => [1, 2, 4].map((threads) => ({ threads, speed }))),
};

/** Bytes per second of the link of each worker, by name. */
export const LINKS: Readonly<Record<string, number>> = {
  '100Mbit': 12.5e6,
  '1Gbit': 125e6,
  '10Gbit': 1.25e9,
};

/**
 * Memory of the workers. `ample`: as the options say. `tight`: of each 0.6 of what the fullest worker needs under the
 * baseline without limit, but enough for every single task with its inputs.
 */
export const MEMORY = ['ample', 'tight'] as const;

/**
 * The knowledge of durations that the scheduler has before a function has run. `unknown`: nothing. `known`: the mean of each prefix.
 * `wrong`: two or four thirds of it, drawn for each prefix.
 */
export const KNOWLEDGE = ['unknown', 'known', 'wrong'] as const;

/** All combinations of the names of clusters, links, memory and knowledge of durations. */
export function settingsOf(
  clusters: readonly string[],
  links: readonly string[],
  memories: readonly (typeof MEMORY)[number][] = ['ample'],
  durations: readonly (typeof KNOWLEDGE)[number][] = ['unknown'],
): Setting[] {
  const settings: Setting[] = [];
  for (const cluster of clusters) {
    for (const link of links) {
      const options = {
        workers: CLUSTERS[cluster] ?? [],
        network: { bandwidth: LINKS[link] ?? 0 },
        durations: { spread: SPREAD },
      };
      for (const memory of memories) {
        for (const known of durations) {
          const name = `${cluster} ${link} ${memory} ${known}`;
          settings.push({ name, options, memory, durations: known });
        }
      }
    }
  }
  return settings;
}

/** By how much the durations of tasks differ between seeds, where options leave it open. */
export const SPREAD = 0.2;

/** One setting, for a first look. */
export const QUICK: readonly Setting[] = settingsOf(['8x2'], ['1Gbit']);

/** Every cluster with every link; and on links of 1 Gbit/s little memory, and what is known of durations. */
export const FULL: readonly Setting[] = [
  ...settingsOf(Object.keys(CLUSTERS), Object.keys(LINKS)),
  ...settingsOf(Object.keys(CLUSTERS), ['1Gbit'], ['tight']),
  ...settingsOf(Object.keys(CLUSTERS), ['1Gbit'], ['ample'], ['known', 'wrong']),
];

/** Of the heartbeats of a worker: the most in the time of the lower bound, and the longest interval. */
const HEARTBEATS = { most: 2000, intervalMs: 5000 };

/**
 * The options of a simulation. Heartbeats are as in production, and rarer where a graph takes longer than a quarter of an
 * hour: half of the events would be heartbeats. The end is far beyond what any sensible schedule takes.
 *
 * @param limitBytes - the memory of each worker; undefined: as the setting says
 */
export function optionsOf(
  workload: SimulatedWorkload,
  { options, durations = 'unknown' }: Setting,
  seed: number,
  limitBytes?: number,
): SimulationOptions & RunOptions {
  const workers = workerModels(options);
  const { bandwidth } = { ...DEFAULT_NETWORK, ...options.network };
  const slowest = Math.min(...workers.map(({ speed = 1 }) => speed));
  const serialS = sumOf(workload.durationsS) / slowest + sumOf(footprints(workload)) / bandwidth;
  const rareMs = (1000 * lowerBoundS(problemOf(workload, { ...options, seed }))) / HEARTBEATS.most;
  const usualMs = heartbeatIntervalMs(workers.length);
  return {
    heartbeatMs: Math.max(usualMs, Math.min(HEARTBEATS.intervalMs, Math.round(rareMs))),
    maxMs: 1000 * (3600 + 10 * serialS),
    ...options,
    seed,
    ...(limitBytes === undefined
      ? {}
      : { workers: workers.map((model) => ({ ...model, memoryLimitBytes: limitBytes })) }),
    ...(durations === 'unknown' ? {} : { knowledge: known(workload, durations) }),
  };
}

/** The knowledge that a scheduler would have after a run of the workload. */
function known(
  { tasks, durationsS, nbytes }: SimulatedWorkload,
  durations: 'known' | 'wrong',
): KnownPrefix[] {
  const byPrefix = new Map<string, number[]>();
  for (const [index, { key, prefix = prefixOfKey(key) }] of tasks.entries()) {
    const indices = byPrefix.get(prefix) ?? [];
    byPrefix.set(prefix, indices);
    indices.push(index);
  }
  const draw = new Draw(0);
  return Array.from(byPrefix, ([name, indices]) => {
    const factor = durations === 'known' ? 1 : draw.uniform(name) < 0.5 ? 2 / 3 : 4 / 3;
    const seconds = indices.map((index) => durationsS[index] ?? 0);
    const bytes = indices.map((index) => nbytes[index] ?? 0);
    const durationS = factor * meanOf(seconds);
    return { name, count: indices.length, durationS, nbytes: meanOf(bytes), spread: SPREAD };
  });
}

const TIGHT = 0.6;
/** Part of the limit that one task may need: below that at which a worker pauses. */
const TASK_SHARE = 0.75;

/** The limit of each worker where memory is tight. */
export function tightBytes(workload: SimulatedWorkload, baselinePeaks: readonly number[]): number {
  const largest = footprints(workload).reduce((most, bytes) => Math.max(most, bytes), 0);
  const tight = baselinePeaks.length === 0 ? 0 : TIGHT * meanOf(baselinePeaks);
  return Math.ceil(Math.max(1, tight, largest / TASK_SHARE));
}

/** Bytes of each task's result and inputs. */
function footprints({ tasks, nbytes }: SimulatedWorkload): number[] {
  const sizes = new Map(tasks.map(({ key }, index) => [key, nbytes[index] ?? 0]));
  return tasks.map(({ key, dependencies }) =>
    dependencies.reduce((sum, need) => sum + (sizes.get(need) ?? 0), sizes.get(key) ?? 0),
  );
}

function sumOf(values: Float64Array | readonly number[]): number {
  let sum = 0;
  for (const value of values) sum += value;
  return sum;
}
