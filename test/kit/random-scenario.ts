import fc from 'fast-check';
import type { KernelOptions } from '../../core/kernel/ports.ts';
import type { GraphTask } from '../../core/messages/stimulus.ts';
import { addressOf } from './in-short.ts';

export const WORKERS = ['w0', 'w1', 'w2', 'w3'];
export const CLIENTS = ['c', 'd'];
/** The letters have a prefix each; the others belong to two groups, of which r is often root-ish. */
export const GRAPH_KEYS = 'a b c d e f r-0 r-1 r-2 r-3 r-4 r-5 s-0 s-1'.split(' ');
export const DATA_KEYS = ['x', 'y'];
export const ALL_KEYS = [...GRAPH_KEYS, ...DATA_KEYS];

/** A limit for which all submissions name the same number. */
export const STEADY_LIMIT = 'steady';
export const STEADY_MAX = 1;

/** What may happen; more frequent things stand here more often. */
const STEPS = [
  ...many('submit', 5),
  ...many('continue', 8),
  ...many('finish', 12),
  ...many('fail', 3),
  ...many('late-answer', 3),
  ...many('runs-over', 3),
  'reschedule',
  ...many('steal', 5),
  ...many('answer-steal', 4),
  'secede',
  ...many('add-worker', 3),
  ...many('remove-worker', 3),
  ...many('pause', 2),
  ...many('unpause', 2),
  'heartbeat',
  'desire',
  'fire-and-forget',
  ...many('release', 3),
  ...many('cancel', 2),
  ...many('retry', 2),
  ...many('set-priority', 2),
  'submit-again',
  'set-restrictions',
  'release-tasks',
  'remove-client',
  ...many('scatter', 2),
  ...many('copy-arrives', 2),
  'claim-copy',
  ...many('lose-copy', 2),
  ...many('move', 2),
  'ask-who-has',
  'report-key',
  'check-worker-ttl',
  'check-no-workers-timeout',
  'restart',
  'replace-policies',
  'wait',
] as const;

/** One thing that happens, made of small numbers so that a failure shrinks well. */
export interface Step {
  readonly what: (typeof STEPS)[number];
  /** Selects a worker, a client, a key or an assignment. */
  readonly which: number;
  /** Selects several keys. */
  readonly mask: number;
  /** Decides what is left to decide. */
  readonly seed: number;
}

/** Everything that a run depends on. */
export interface Scenario {
  readonly saturation: number;
  readonly options: Partial<KernelOptions>;
  readonly steps: readonly Step[];
}

const step: fc.Arbitrary<Step> = fc.record({
  what: fc.constantFrom(...STEPS),
  which: fc.nat(31),
  mask: fc.nat(2 ** ALL_KEYS.length - 1),
  seed: fc.nat(9999),
});

export const scenario: fc.Arbitrary<Scenario> = fc.record({
  saturation: fc.constantFrom(Infinity, 1.1, 0.5),
  options: fc.record({
    allowedFailures: fc.constantFrom(0, 1, 3),
    avoidUsedWorkers: fc.boolean(),
    defaultRetries: fc.constantFrom(0, 1),
    workerTtlMs: fc.constantFrom(20_000, Infinity),
    noWorkersTimeoutMs: fc.constantFrom(15_000, Infinity),
    workerOrder: fc.constantFrom('registration' as const, 'address' as const),
  }),
  steps: fc.array(step, { minLength: 1, maxLength: 60, size: 'max' }),
});

/** A task whose dependencies and options follow from its place and the seed. */
export function randomTask(key: string, included: readonly string[], seed: number): GraphTask {
  const place = GRAPH_KEYS.indexOf(key);
  const earlier = [...DATA_KEYS, ...GRAPH_KEYS.slice(0, place)].filter((other, index) => {
    // Most are in the graph; others may be known to the cluster, or lost.
    const mayBeUsed = included.includes(other) || (seed + index) % 13 === 0;
    return mayBeUsed && (seed + 37 * place + 101 * index) % 4 === 0;
  });
  const isRoot = key.startsWith('r-') && seed % 3 !== 0;
  const dependencies = isRoot ? [] : earlier;
  // Some say what they compute, so that a key may stand for something else already.
  const definition = (seed + place) % 8;
  const runSpec = definition < 2 ? { definition: `${definition} of ${key}` } : `compute ${key}`;
  return { key, dependencies, runSpec, ...specialOf(place, seed) };
}

function specialOf(place: number, seed: number): Partial<GraphTask> {
  switch ((seed + 7 * place) % 16) {
    case 0:
      return { retries: 1 };
    case 1:
      return { workers: [addressOf('w0')] };
    case 2:
      return { workers: [addressOf('w1')], allowOtherWorkers: true };
    case 3:
      return { resources: { gpu: 1 } };
    case 4:
      return { actor: true };
    case 5:
      return { userPriority: 1 };
    case 6:
      return { hosts: ['w2'] };
    case 7:
      return { limit: { name: STEADY_LIMIT, max: STEADY_MAX } };
    case 8:
      return {
        limit: { name: STEADY_LIMIT, max: STEADY_MAX },
        resources: { gpu: 1 },
        retries: 1,
      };
    case 9:
      return {
        limit: {
          name: 'changing',
          ...(seed % 4 === 0 ? {} : { max: 1 + (seed % 3) }),
          ...(seed % 4 < 2 ? { intervalMs: 10 * (1 + (seed % 3)), burst: 1 + (seed % 2) } : {}),
        },
        userPriority: place % 3,
      };
    default:
      return {};
  }
}

function many<T extends string>(what: T, count: number): T[] {
  return Array.from({ length: count }, () => what);
}
