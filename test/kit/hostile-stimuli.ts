import fc from 'fast-check';
import type { ClusterState } from '../../core/state/cluster.ts';
import type { GraphTask, Stimulus } from '../../core/messages/stimulus.ts';
import { failureOf, NO_METRICS, type Unnamed } from './env.ts';
import { addressOf } from './in-short.ts';

const KEYS = 'a b c d e f x y stranger'.split(' ');
const WORKERS = ['w0', 'w1', 'w2', 'nowhere'];
const CLIENTS = ['c', 'd', 'stranger'];
const STATUSES = ['running', 'paused', 'closing-gracefully', 'closing', 'closed'] as const;
const TASK_STATES = ['ready', 'waiting', 'executing', 'memory', 'unknown', 'nonsense', 'cancelled'];

/** One stimulus, made of small numbers so that a failure shrinks well. */
export interface HostileStep {
  readonly what: keyof typeof MAKERS;
  readonly worker: number;
  readonly client: number;
  /** Selects the keys. */
  readonly mask: number;
  /** Decides what is left to decide. */
  readonly seed: number;
}

/** All stimuli but those that change no task, and those with which a journal begins. */
type Tried = Exclude<
  Stimulus['op'],
  | ('log-event' | 'keep-alive' | 'heartbeat-client')
  | ('forget-placements' | 'restore-tasks' | 'begin-recovery' | 'end-recovery')
>;

/** What the numbers of a step stand for. */
interface Choice {
  readonly worker: string;
  readonly client: string;
  readonly key: string;
  readonly keys: readonly string[];
  readonly seed: number;
  readonly cluster: ClusterState;
}

/**
 * Stimuli that pass the validation of messages and may contain anything else: unknown keys, workers
 * that were never registered, runs that are long over or have never been, the same key twice,
 * reports about tasks of others. Half of the reports are about existing tasks, so that runs make
 * progress at all.
 */
const MAKERS = {
  'register-worker': ({ worker, seed, cluster }) => ({
    op: 'register-worker',
    identity: {
      address: worker,
      serverId: `server-${seed}`,
      name: seed % 11 === 0 ? 'w1' : nameOf(worker),
      host: nameOf(worker),
      threadCount: 1 + (seed % 3),
      memoryLimitBytes: seed % 5 === 0 ? 120 : 0,
      resources: Object.fromEntries(seed % 2 === 0 ? [['gpu', 1]] : []),
      ...(seed % 4 < 2 ? { tellsRunEnds: true } : {}),
    },
    status: seed % 7 === 0 ? STATUSES[seed % 5]! : 'running',
    ...(seed % 3 === 0 ? { held: heldBy(cluster, seed) } : {}),
  }),
  'remove-worker': ({ worker, seed }) => ({
    op: 'remove-worker',
    worker,
    expected: seed % 3 === 0,
    close: seed % 2 === 0,
  }),
  'heartbeat-worker': ({ worker, keys, seed }) => ({
    op: 'heartbeat-worker',
    worker,
    metrics: { ...NO_METRICS, memoryBytes: seed, bandwidth: seed % 3 },
    executing: keys.map((key) => [key, seed % 4] as const),
    workerNowMs: seed,
    ...(seed % 3 === 0 ? { resources: { gpu: seed % 3 } } : {}),
  }),
  'worker-status-change': ({ worker, seed }) => ({
    op: 'worker-status-change',
    worker,
    status: STATUSES[seed % 5]!,
  }),
  'set-worker-status': ({ worker, seed }) => ({
    op: 'set-worker-status',
    worker,
    status: STATUSES[seed % 3] as 'running' | 'paused' | 'closing-gracefully',
  }),
  'task-finished': (choice) => ({
    op: 'task-finished',
    ...runOf(choice),
    nbytes: 10 * (choice.seed % 9),
    type: 'number',
    timings: [{ action: 'compute', startS: 1, stopS: choice.seed % 4 }],
    ...(choice.seed % 5 === 0 ? { metadata: { seed: choice.seed } } : {}),
  }),
  'task-erred': (choice) => ({
    op: 'task-erred',
    ...runOf(choice),
    failure: failureOf(choice.key),
  }),
  reschedule: (choice) => {
    const { key, worker } = runOf(choice);
    return { op: 'reschedule', key, ...(choice.seed % 3 === 0 ? {} : { worker }) };
  },
  'long-running': (choice) => ({ op: 'long-running', ...runOf(choice) }),
  'run-paused': (choice) => ({ op: 'run-paused', ...runOf(choice) }),
  'run-resumes': (choice) => ({ op: 'run-resumes', ...runOf(choice) }),
  'runs-over': ({ worker, seed }) => ({ op: 'runs-over', worker, runIds: [seed % 20, 1, -7] }),
  'add-keys': ({ worker, keys }) => ({ op: 'add-keys', worker, keys }),
  'release-worker-data': ({ worker, keys }) => ({ op: 'release-worker-data', worker, keys }),
  'request-refresh-who-has': ({ worker, keys }) => ({
    op: 'request-refresh-who-has',
    worker,
    keys,
  }),
  'steal-tasks': ({ worker, keys, seed, cluster }) => ({
    op: 'steal-tasks',
    proposals: keys.map((key) => ({
      key,
      victim:
        seed % 5 === 0 ? worker : (cluster.tasks.get(key)?.processingOn?.address ?? 'nowhere'),
      thief: addressOf(WORKERS[seed % 4]!),
      victimS: seed % 3,
      thiefS: 1,
    })),
  }),
  'steal-response': ({ worker, keys, seed, cluster }) => ({
    op: 'steal-response',
    worker: seed % 3 === 0 ? worker : (anyRun(cluster, seed)?.worker ?? worker),
    keys,
    runIds: keys.map((key) => (seed % 4 === 0 ? seed : (cluster.tasks.get(key)?.runId ?? -1))),
    states: keys.slice(seed % 2).map((_, index) => TASK_STATES[(seed + index) % 7]!),
  }),
  'move-replicas': ({ worker, keys, seed }) => ({
    op: 'move-replicas',
    acquire: [{ worker, keys }],
    remove: WORKERS.slice(seed % 4).map((name) => ({ worker: addressOf(name), keys })),
  }),
  'want-replicas': ({ keys, seed }) => ({
    op: 'want-replicas',
    keys,
    replicas: [1, 2, 5, Infinity][seed % 4]!,
  }),
  'set-restrictions': ({ keys, worker, seed }) => ({
    op: 'set-restrictions',
    changes: keys.map((key) => ({
      key,
      ...[{ workers: [] }, { workers: [worker] }, { workers: ['w1', 'w1'] }, {}][seed % 4],
      ...[{ isQueueable: false }, { isQueueable: true }, {}][seed % 3],
    })),
  }),
  'release-tasks': ({ keys }) => ({ op: 'release-tasks', keys }),
  'refuse-graph': ({ client, keys }) => ({
    op: 'refuse-graph',
    client,
    keys,
    plugin: 'quota',
    reason: 'too many',
  }),
  'register-client': ({ client }) => ({ op: 'register-client', client }),
  'remove-client': ({ client }) => ({ op: 'remove-client', client }),
  'update-graph': ({ client, keys, seed }) => ({
    op: 'update-graph',
    client,
    tasks: keys.map((key, index) => randomTask(key, index, seed)),
    keys: [...keys.slice(seed % 3), ...(seed % 5 === 0 ? ['x', 'stranger'] : [])],
    ...(seed % 17 === 0 ? { submittingTask: KEYS[seed % KEYS.length]! } : {}),
  }),
  'client-desires-keys': ({ client, keys }) => ({ op: 'client-desires-keys', client, keys }),
  'client-releases-keys': ({ client, keys }) => ({ op: 'client-releases-keys', client, keys }),
  'cancel-keys': ({ client, keys, seed }) => ({
    op: 'cancel-keys',
    client,
    keys,
    force: seed % 2 === 0,
  }),
  retry: ({ client, keys }) => ({ op: 'retry', client, keys }),
  'set-priority': ({ client, keys, seed }) => ({
    op: 'set-priority',
    client,
    keys,
    userPriorities: keys.slice(seed % 2).map((_, index) => ((seed + index) % 5) - 2),
    raiseInputs: seed % 2 === 0,
  }),
  'submit-again': ({ client, keys, seed }) => ({
    op: 'submit-again',
    client,
    keys,
    userPriorities: keys.slice(seed % 2).map((_, index) => ((seed + index) % 5) - 2),
    timeLimitsMs: keys.slice(seed % 3).map((_, index) => [50, Infinity][(seed + index) % 2]!),
  }),
  'update-data': ({ client, keys, seed }) => ({
    op: 'update-data',
    client,
    items: keys.map((key, index) => ({
      key,
      nbytes: 10 * index,
      workers: WORKERS.filter((_, bit) => ((seed >> index) & (1 << bit)) !== 0).map(addressOf),
      ...(seed % 2 === 0 ? { type: 'data' } : {}),
      ...(seed % 5 < 3 ? { fingerprint: `value ${seed % 5}` } : {}),
      ...(seed % 3 === 0 ? { replicas: 2 } : {}),
    })),
  }),
  'report-key': ({ client, key }) => ({ op: 'report-key', client, key }),
  continue: () => ({ op: 'continue' }),
  'workers-lost': ({ worker, seed }) => ({
    op: 'workers-lost',
    workers: seed % 3 === 0 ? [worker] : [worker, addressOf(WORKERS[seed % 4]!), worker],
  }),
  'policies-replaced': () => ({ op: 'policies-replaced' }),
  'scheduler-stalled': ({ seed }) => ({ op: 'scheduler-stalled', stalledMs: 100 * seed }),
  'check-worker-ttl': () => ({ op: 'check-worker-ttl' }),
  'check-no-workers-timeout': () => ({ op: 'check-no-workers-timeout' }),
  'recall-prefixes': ({ keys, seed }) => ({
    op: 'recall-prefixes',
    prefixes: keys.map((name) => ({
      ...{ name, count: seed % 9, durationS: seed % 7, nbytes: seed, spread: seed % 3 },
    })),
  }),
  restart: () => ({ op: 'restart' }),
} satisfies Record<Tried, (choice: Choice) => Unnamed>;

/** More frequent things stand here more often. */
const FREQUENT: readonly (keyof typeof MAKERS)[] = [
  ...repeat('update-graph', 6),
  ...repeat('register-worker', 4),
  ...repeat('task-finished', 12),
  ...repeat('task-erred', 6),
  ...repeat('retry', 5),
  ...repeat('update-data', 4),
  ...repeat('cancel-keys', 2),
  ...repeat('remove-worker', 2),
  ...repeat('continue', 3),
];

const step: fc.Arbitrary<HostileStep> = fc.record({
  what: fc.constantFrom(
    ...FREQUENT,
    ...(Object.keys(MAKERS) as HostileStep['what'][]).filter((what) => what !== 'restart'),
    'restart',
  ),
  worker: fc.nat(WORKERS.length - 1),
  client: fc.nat(CLIENTS.length - 1),
  mask: fc.nat(2 ** KEYS.length - 1),
  seed: fc.nat(999),
});

export const hostileSteps: fc.Arbitrary<HostileStep[]> = fc.array(step, {
  minLength: 1,
  maxLength: 50,
  size: 'max',
});

/** The stimulus that a step is in the present state of the cluster. */
export function stimulusOf(
  { what, worker, client, mask, seed }: HostileStep,
  cluster: ClusterState,
): Unnamed {
  const keys = KEYS.filter((_, bit) => (mask & (1 << bit)) !== 0);
  // The same key twice, once in a while.
  if (seed % 13 === 0 && keys[0] !== undefined && what !== 'update-graph') keys.push(keys[0]);
  return MAKERS[what]({
    worker: addressOf(WORKERS[worker]!),
    client: CLIENTS[client]!,
    key: KEYS[mask % KEYS.length]!,
    keys,
    seed,
    cluster,
  });
}

/** The workers that are not there, as they should be, and the resources that those have that are. */
export function* healthyWorkers(cluster: ClusterState): Iterable<Unnamed> {
  for (const name of WORKERS) {
    const worker = addressOf(name);
    if (!cluster.workers.has(worker)) {
      const identity = {
        address: worker,
        serverId: `healthy ${name}`,
        name,
        host: name,
        threadCount: 2,
        memoryLimitBytes: 0,
        resources: {},
      };
      yield { op: 'register-worker', identity, status: 'running' };
    }
    const resources = { gpu: 1 };
    yield {
      op: 'heartbeat-worker',
      worker,
      metrics: NO_METRICS,
      executing: [],
      workerNowMs: 0,
      resources,
    };
  }
}

/** The report that a task has been computed which is processing. */
export function finishAny(cluster: ClusterState): Unnamed | undefined {
  const run = anyRun(cluster, 0);
  const result = { nbytes: 1, type: 'number', timings: [] };
  return run === undefined ? undefined : { op: 'task-finished', ...run, ...result };
}

/** Dependencies mostly point to earlier keys; now and then there is a cycle, or an unknown key. */
function randomTask(key: string, index: number, seed: number): GraphTask {
  const place = KEYS.indexOf(key);
  const dependencies = KEYS.filter((_, other) => {
    const mayBe = other < place || (seed + index) % 41 === 0;
    return mayBe && (seed + 5 * place + 3 * other) % 3 === 0;
  });
  return { key, dependencies, runSpec: `compute ${key}`, ...specialOf(seed + 7 * place) };
}

function specialOf(seed: number): Partial<GraphTask> {
  const specials: Partial<GraphTask>[] = [
    { actor: true },
    { actor: true, workers: [addressOf('w1')] },
    { retries: 1 },
    { workers: [addressOf('w0')] },
    { workers: ['nobody'], allowOtherWorkers: true },
    { resources: { gpu: 1 } },
    { annotations: { replicas: 2 } },
  ];
  return specials[seed % 12] ?? {};
}

/** A run that is really there, two times out of three; else any worker, key and number. */
function runOf({ worker, key, seed, cluster }: Choice): {
  worker: string;
  key: string;
  runId: number;
} {
  const present = anyRun(cluster, seed);
  if (seed % 3 > 0 && present !== undefined) return present;
  const runId = seed % 2 === 0 ? (cluster.tasks.get(key)?.runId ?? 3) : seed % 30;
  return { worker, key, runId };
}

function anyRun(
  cluster: ClusterState,
  seed: number,
): { worker: string; key: string; runId: number } | undefined {
  const runs = [...cluster.workers.values()].flatMap(({ address, processing }) =>
    [...processing].map(({ key, runId }) => ({ worker: address, key, runId })),
  );
  return runs[seed % Math.max(1, runs.length)];
}

function heldBy(
  cluster: ClusterState,
  seed: number,
): { keys: string[]; runIds: number[]; nbytes: number[]; types: string[] } {
  const keys = KEYS.filter((_, index) => (seed + index) % 3 === 0);
  return {
    keys,
    runIds: keys.map((key) => cluster.tasks.get(key)?.runId ?? seed),
    nbytes: keys.slice(seed % 2).map(() => 10),
    types: keys.slice(seed % 2).map(() => 'number'),
  };
}

function nameOf(address: string): string {
  return address.replace('tcp://', '').replace(':1', '');
}

function repeat<T extends string>(what: T, count: number): T[] {
  return Array.from({ length: count }, () => what);
}
