/**
 * What one seed tries: a cluster, graphs, policies and faults. Each seed leaves most kinds of trouble out (a swarm), so
 * that what is left comes often enough to meet.
 */
import { definePlugin } from '../../adapters/app/entries/plugin.ts';
import { definePolicy } from '../../adapters/app/entries/policy.ts';
import {
  BUILTIN_POLICIES,
  type Fault,
  type SimulatedWorkload,
  type SimulationOptions,
} from '../../adapters/simulator/index.ts';
import { SLOT_NAMES, type SlotName } from '../../core/api/index.ts';
import type { GraphTask } from '../../core/messages/stimulus.ts';
import { Dice } from './dice.ts';
import type { Reduction, Size } from './reduction.ts';

/** One policy takes the place of another while the cluster runs. */
export interface Swap {
  readonly atMs: number;
  readonly slot: SlotName;
  readonly policy: string;
}

/** What a client submits, and when. */
export interface Submission {
  readonly client: string;
  readonly atMs: number;
  readonly workload: SimulatedWorkload;
}

/** All that follows from a seed. */
export interface Trial {
  readonly options: SimulationOptions;
  readonly submissions: readonly Submission[];
  readonly swaps: readonly Swap[];
  /** No fault begins or ends after this. */
  readonly calmMs: number;
  /** For people. */
  readonly summary: string;
  /** Faults and swaps are the events, in this order. */
  readonly size: Size;
}

/** Within this time of virtual milliseconds faults begin. */
const HORIZON_MS = 3000;
const FAULT_MS_MAX = 2000;

export function trialOf(seed: number, reduction: Reduction = {}): Trial {
  const dice = new Dice(seed);
  const { workersMax = Infinity, tasksMax = Infinity, without } = reduction;
  const allWorkers = dice.between(1, 6);
  const workers = Math.min(allWorkers, workersMax);
  const allFaults = dice.chance(0.7) ? faultsOf(dice, allWorkers) : [];
  const allSwaps = dice.chance(0.3) ? swapsOf(dice) : [];
  const faults = allFaults
    .filter((_, number) => without?.has(number) !== true)
    .map((fault) => ('worker' in fault ? { ...fault, worker: fault.worker % workers } : fault));
  const swaps = allSwaps.filter((_, number) => without?.has(allFaults.length + number) !== true);
  const submissions = fewer(submissionsOf(dice, seed), tasksMax);
  const retriesOf = new Map(
    submissions.flatMap(({ workload }) =>
      workload.tasks.map(({ key, retries = 0 }) => [key, retries] as const),
    ),
  );
  const policies = policiesOf(dice);
  const isBroken = dice.chance(0.2);
  const rescheduled = dice.chance(0.3) ? 0.1 : 0;
  const failing = dice.chance(0.3) ? 0.1 : 0;
  const luck = new Dice(seed ^ 0x5eed).next();
  const options: SimulationOptions = {
    workers,
    worker: {
      threads: dice.between(1, 4),
      ...(dice.chance(0.25) ? { memoryLimitBytes: 400e6 } : {}),
    },
    seed,
    network: {
      latencyMs: dice.oneOf([0.1, 1, 20]),
      jitterMs: dice.oneOf([0, 0, 5, 50]),
      bandwidth: dice.oneOf([10e6, 125e6]),
      sharing: dice.oneOf(['max-min', 'none']),
    },
    durations: {
      spread: dice.oneOf([0, 0.3, 1]),
      speedSpread: dice.oneOf([0, 0.5]),
      schedulerMs: dice.oneOf([0, 0.1]),
    },
    faults,
    // With validation a policy that fails is fatal.
    validate: !isBroken,
    evaluate,
    outcome: (key, attempt) => {
      const part = shareOf(key, luck);
      // As often as its retries let it.
      if (part < failing) return attempt < (retriesOf.get(key) ?? 0) ? 'failure' : 'success';
      if (attempt > 0) return 'success';
      return part < failing + rescheduled ? 'reschedule' : 'success';
    },
    config: {
      scheduler: {
        allowedFailures: 1000,
        policies: isBroken
          ? { ...policies, workerSelection: { use: failingSelection(dice) } }
          : policies,
        plugins: isBroken ? [{ use: failingPlugin(dice) }] : [],
        activeMemoryManager: { start: dice.chance(0.3), interval: '200 ms' },
      },
    },
  };
  const tasks = submissions.reduce((sum, { workload }) => sum + workload.tasks.length, 0);
  const kinds = faults.map(({ kind }) => kind).join(' ') || 'none';
  const names = Object.values(policies)
    .map(({ use }) => use)
    .join(' ');
  const summary = `${tasks} tasks, ${workers} workers, faults: ${kinds}, policies: ${names}${isBroken ? ' failing' : ''}, ${swaps.length} swaps`;
  const size = { tasks, workers, events: allFaults.length + allSwaps.length };
  return { options, submissions, swaps, calmMs: HORIZON_MS + FAULT_MS_MAX, summary, size };
}

/** The first tasks of each graph, all of which are wanted then. */
function fewer(submissions: readonly Submission[], tasksMax: number): readonly Submission[] {
  const total = submissions.reduce((sum, { workload }) => sum + workload.tasks.length, 0);
  if (total <= tasksMax) return submissions;
  let left = tasksMax;
  return submissions.flatMap((submission) => {
    const tasks = submission.workload.tasks.slice(0, left);
    left -= tasks.length;
    if (tasks.length === 0) return [];
    const keys = tasks.map(({ key }) => key);
    return [{ ...submission, workload: { ...submission.workload, tasks, keys } }];
  });
}

/** The value of a task: any change of its inputs changes it, their order does not. */
export function evaluate(key: string, inputs: readonly number[]): number {
  let sum = 0;
  for (const input of inputs) sum = (sum + input * 31) % 1_000_003;
  for (let index = 0; index < key.length; index++)
    sum = (sum * 7 + key.charCodeAt(index)) % 1_000_003;
  return sum;
}

function submissionsOf(dice: Dice, seed: number): Submission[] {
  const count = dice.oneOf([1, 1, 2, 3]);
  return Array.from({ length: count }, (_, number) => ({
    client: `client-${dice.between(1, 2)}`,
    atMs: number === 0 ? 0 : dice.between(0, 1000),
    workload: randomGraph(dice, `g${number}`, new Dice(seed, `rules-${number}`)),
  }));
}

function randomGraph(dice: Dice, name: string, rules: Dice): SimulatedWorkload {
  const limited = rules.chance(0.3);
  const limitMax = rules.between(1, 4);
  const size = dice.between(3, 80);
  const fanIn = dice.oneOf([1, 2, 4]);
  const reach = dice.oneOf([3, 10, 100]);
  const largest = dice.oneOf([100, 1e6, 10e6]);
  const longest = dice.oneOf([0, 0.02, 0.2]);
  const tasks: GraphTask[] = [];
  const needed = new Set<string>();
  for (let number = 0; number < size; number++) {
    const needs = new Set<string>();
    const count = dice.chance(0.3) ? 0 : dice.between(0, fanIn);
    for (let need = 0; need < count && number > 0; need++) {
      needs.add(tasks[dice.between(Math.max(0, number - reach), number - 1)]!.key);
    }
    for (const need of needs) needed.add(need);
    const key = `${name}-${dice.oneOf(['load', 'map', 'sum'])}-${number}`;
    const limit = limited && rules.chance(0.6) ? { name: 'limit', max: limitMax } : undefined;
    tasks.push({
      ...{ key, dependencies: [...needs], runSpec: 0, retries: rules.between(0, 3) },
      userPriority: rules.oneOf([0, 0, 0, 4, -3]),
      ...(limit === undefined ? {} : { limit }),
    });
  }
  const keys = tasks.map(({ key }) => key).filter((key) => !needed.has(key) || dice.chance(0.05));
  return {
    name,
    tasks,
    keys,
    durationsS: Float64Array.from(tasks, () => dice.next() * longest),
    nbytes: Float64Array.from(tasks, () => Math.floor(dice.next() * largest)),
  };
}

function policiesOf(dice: Dice): Partial<Record<SlotName, { readonly use: string }>> {
  if (dice.chance(0.4)) return {};
  return Object.fromEntries(
    SLOT_NAMES.map((slot) => [slot, { use: dice.oneOf(BUILTIN_POLICIES[slot]) }]),
  );
}

function swapsOf(dice: Dice): Swap[] {
  const swaps = Array.from({ length: dice.between(1, 3) }, () => {
    const slot = dice.oneOf(SLOT_NAMES);
    return { atMs: dice.between(0, 1500), slot, policy: dice.oneOf(BUILTIN_POLICIES[slot]) };
  });
  return swaps.sort((one, other) => one.atMs - other.atMs);
}

function faultsOf(dice: Dice, workers: number): Fault[] {
  const kinds = (['kill', 'pause', 'straggle', 'delay', 'join'] as const).filter(() =>
    dice.chance(0.5),
  );
  if (kinds.length === 0) return [];
  return Array.from({ length: dice.between(1, 6) }, () => {
    const kind = dice.oneOf(kinds);
    const atMs = dice.between(0, HORIZON_MS);
    const forMs = dice.between(1, FAULT_MS_MAX);
    const worker = dice.between(0, workers - 1);
    if (kind === 'join') return { kind, atMs, threads: dice.between(1, 3) };
    if (kind === 'kill')
      return { kind, worker, atMs, restartAfterMs: dice.between(0, FAULT_MS_MAX) };
    if (kind === 'straggle') return { kind, worker, atMs, forMs, factor: dice.between(2, 20) };
    if (kind === 'delay') return { kind, worker, atMs, forMs, byMs: dice.between(1, 300) };
    return { kind, worker, atMs, forMs };
  });
}

/** Throws, and chooses nonsense, from time to time; the kernel then decides itself. */
function failingSelection(dice: Dice): object {
  const every = dice.between(2, 9);
  return definePolicy('workerSelection', {
    name: 'failing-selection',
    apiVersion: 1,
    create: () => {
      let calls = 0;
      return {
        score: () => {
          calls++;
          if (calls % every === 0) throw new Error('this policy fails from time to time');
          return calls % (every + 1) === 0 ? Number.NaN : calls % 3;
        },
      };
    },
  });
}

/** A plugin whose hook throws from time to time. */
function failingPlugin(dice: Dice): object {
  const every = dice.between(2, 9);
  let calls = 0;
  return definePlugin({
    name: 'failing-plugin',
    apiVersion: 1,
    setup: () => ({
      taskTransition: () => {
        if (++calls % every === 0) throw new Error('this hook fails from time to time');
      },
    }),
  });
}

/** Part of 1 that belongs to a key. */
function shareOf(key: string, luck: number): number {
  return (evaluate(key, [Math.floor(luck * 1e6)]) % 1000) / 1000;
}
