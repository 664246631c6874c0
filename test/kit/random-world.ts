import fc from 'fast-check';
import type { KernelOptions } from '../../core/kernel/options.ts';
import { SchedulerKernel } from '../../core/kernel/scheduler-kernel.ts';
import type { GraphTask } from '../../core/messages/stimulus.ts';
import { FIRE_AND_FORGET } from '../../core/state/client.ts';
import { check } from './check.ts';
import { failureOf, NO_METRICS, type Unnamed } from './env.ts';
import { addressOf, recordInShort } from './in-short.ts';
import { MessageChecks } from './message-checks.ts';
import { type Assignment, ClientMirror, deliver, WorkerMirror } from './mirrors.ts';
import { makePorts } from './ports.ts';

const WORKERS = ['w0', 'w1', 'w2', 'w3'];
const CLIENTS = ['c', 'd'];
/** The letters have a prefix each; the others belong to two groups, of which r is often root-ish. */
const GRAPH_KEYS = 'a b c d e f r-0 r-1 r-2 r-3 r-4 r-5 s-0 s-1'.split(' ');
const DATA_KEYS = ['x', 'y'];
const ALL_KEYS = [...GRAPH_KEYS, ...DATA_KEYS];

/** What may happen; more frequent things stand here more often. */
const STEPS = [
  ...many('submit', 5),
  ...many('finish', 12),
  ...many('fail', 3),
  ...many('late-answer', 3),
  'reschedule',
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
    workerTtlMs: fc.constantFrom(20_000, Infinity),
    noWorkersTimeoutMs: fc.constantFrom(15_000, Infinity),
    workerOrder: fc.constantFrom('registration' as const, 'address' as const),
  }),
  steps: fc.array(step, { minLength: 1, maxLength: 60, size: 'max' }),
});

/**
 * Clients, workers and time around a kernel. After every stimulus the kernel checks its own invariants
 * (validate mode), the messages are checked, and everybody who got some compares notes.
 */
export class RandomWorld {
  /** All that the kernel did, for comparison with another run. */
  readonly transcript: string[] = [];
  private readonly checks: MessageChecks;
  private readonly workers = new Map<string, WorkerMirror>();
  private readonly clients = new Map<string, ClientMirror>();
  /** Answers of workers that may be gone by now. */
  private readonly late: Assignment[] = [];
  private nowMs = 0;
  private count = 0;

  constructor(readonly kernel: SchedulerKernel) {
    this.checks = new MessageChecks(kernel);
    this.clients.set(FIRE_AND_FORGET, new ClientMirror(FIRE_AND_FORGET));
    for (const name of CLIENTS) this.join(name);
  }

  take(next: Step): void {
    this.nowMs += 1 + (next.seed % 7);
    this.act(next);
  }

  /** Everything that was broken works again and whatever is asked for is done. */
  heal(): void {
    WORKERS.forEach((name, index) => {
      if (this.workers.has(addressOf(name))) this.setStatus(name, 'running');
      else this.addWorker(name, index);
      this.heartbeat(name, { gpu: 1 });
    });
    for (let left = 10 * ALL_KEYS.length; left > 0; left--) {
      const [assignment] = this.assignments();
      if (assignment === undefined) break;
      this.finish(assignment, 1);
    }
    for (const task of this.kernel.cluster.tasks.values()) {
      const story = this.kernel.story(task.key).slice(-10).map(recordInShort).join('\n  ');
      check(!task.isInPlay, () => `${task.key} is ${task.state} for ever:\n  ${story}`);
      const isComputable = task.runSpec !== undefined && !task.hasLostDependencies;
      check(
        !(task.whoWants.size > 0 && task.state === 'released' && isComputable),
        () => `${task.key} is wanted, but nobody computes it:\n  ${story}`,
      );
    }
  }

  private act({ what, which, mask, seed }: Step): void {
    const worker = WORKERS[which % WORKERS.length]!;
    const address = addressOf(worker);
    const client = CLIENTS[seed % CLIENTS.length]!;
    const key = ALL_KEYS[which % ALL_KEYS.length]!;
    const keys = ALL_KEYS.filter((_, bit) => (mask & (1 << bit)) !== 0);
    const assignment = pick(this.assignments(), which);
    switch (what) {
      case 'submit':
        return this.submit(client, keys, seed);
      case 'finish':
        return assignment && this.finish(assignment, seed);
      case 'fail':
        return assignment && this.fail(assignment);
      case 'late-answer':
        return this.answerLate(which, seed);
      case 'reschedule':
        return assignment && this.send({ op: 'reschedule', key: assignment.key });
      case 'secede':
        return assignment && this.send({ op: 'long-running', ...assignment, ...took(seed) });
      case 'add-worker':
        return this.addWorker(worker, seed);
      case 'remove-worker':
        return this.removeWorker(address, seed);
      case 'pause':
        return this.setStatus(worker, seed % 5 === 0 ? 'closing-gracefully' : 'paused');
      case 'unpause':
        return this.setStatus(worker, 'running');
      case 'heartbeat':
        return this.heartbeat(worker, seed % 3 === 0 ? { gpu: seed % 2 } : undefined);
      case 'desire':
        this.clients.get(client)!.want(keys);
        return this.send({ op: 'client-desires-keys', client, keys });
      case 'fire-and-forget':
        return this.fireAndForget(key);
      case 'release':
        this.clients.get(client)!.giveUp(keys);
        return this.send({ op: 'client-releases-keys', client, keys });
      case 'cancel':
        return this.send({ op: 'cancel-keys', client, keys, force: seed % 4 === 0 });
      case 'retry':
        return this.send({ op: 'retry', client, keys });
      case 'remove-client':
        this.clients.get(client)!.giveUp(ALL_KEYS);
        this.send({ op: 'remove-client', client });
        return this.join(client);
      case 'scatter':
        return this.scatter(client, seed % 6 === 0 ? key : DATA_KEYS[seed % 2]!, which);
      default:
        return this.actOnCopies({ what, which, mask, seed }, address, keys, key);
    }
  }

  private actOnCopies(
    { what, which, seed }: Step,
    address: string,
    keys: readonly string[],
    key: string,
  ): void {
    const mirror = this.workers.get(address);
    switch (what) {
      case 'copy-arrives':
        return this.copyArrives(mirror, which);
      case 'claim-copy':
        return this.addKeys(mirror, keys.slice(0, 3));
      case 'lose-copy':
        return this.loseCopy(mirror, which);
      case 'move':
        return this.move(keys, which, seed);
      case 'ask-who-has':
        return mirror && this.send({ op: 'request-refresh-who-has', worker: address, keys });
      case 'report-key':
        return this.send({ op: 'report-key', client: 'c', key });
      case 'check-worker-ttl':
        this.nowMs += seed % 50 === 0 ? 30_000 : 0;
        this.send({ op: 'check-worker-ttl' });
        return;
      case 'restart':
        return seed % 3 === 0 ? this.send({ op: 'restart' }) : undefined;
      case 'check-no-workers-timeout':
        return this.send({ op: 'check-no-workers-timeout' });
      default:
        this.nowMs += 5000;
    }
  }

  // ---- clients -------------------------------------------------------------------------------

  private join(client: string): void {
    this.clients.set(client, new ClientMirror(client));
    this.send({ op: 'register-client', client });
  }

  private submit(client: string, chosen: readonly string[], seed: number): void {
    const included = chosen.filter((key) => GRAPH_KEYS.includes(key));
    if (included.length === 0) return;
    const tasks = included.map((key) => randomTask(key, included, seed));
    // Once in a while the first needs the last, so that there may be a cycle.
    if (seed % 31 === 0) {
      tasks[0] = { ...tasks[0]!, dependencies: [tasks.at(-1)!.key] };
    }
    const wanted = included.filter((_, index) => index % 3 === seed % 3);
    const keys = wanted.length > 0 ? wanted : included.slice(-1);
    const parent = seed % 17 === 0 ? { submittingTask: ALL_KEYS[seed % ALL_KEYS.length]! } : {};
    this.clients.get(client)!.want(keys);
    this.send({ op: 'update-graph', client, tasks, keys, ...parent });
  }

  private fireAndForget(key: string): void {
    const { cluster } = this.kernel;
    if (!cluster.tasks.has(key)) return;
    this.clients.set(FIRE_AND_FORGET, new ClientMirror(FIRE_AND_FORGET));
    this.send({ op: 'client-desires-keys', client: FIRE_AND_FORGET, keys: [key] });
  }

  private scatter(client: string, key: string, which: number): void {
    const holders = [...this.workers.values()].filter((_, bit) => ((which + 1) & (1 << bit)) !== 0);
    // A real worker that is computing the key itself would refuse the data.
    if (holders.some((holder) => holder.running.has(key))) return;
    for (const holder of holders) holder.store.add(key);
    this.clients.get(client)!.want([key]);
    const workers = holders.map((holder) => holder.address);
    this.send({ op: 'update-data', client, items: [{ key, nbytes: 10 * which, workers }] });
  }

  // ---- workers -------------------------------------------------------------------------------

  private addWorker(name: string, seed: number): void {
    const address = addressOf(name);
    if (this.workers.has(address)) return;
    this.workers.set(address, new WorkerMirror(address));
    this.send({
      op: 'register-worker',
      identity: {
        address,
        name,
        serverId: `${name}-${this.count}`,
        host: name,
        threadCount: 1 + (seed % 3),
        memoryLimitBytes: seed % 5 === 0 ? 150 : 0,
        resources: seed % 2 === 0 ? { gpu: 1 } : {},
      },
      status: seed % 7 === 0 ? 'paused' : 'running',
    });
  }

  private removeWorker(address: string, seed: number): void {
    if (!this.workers.has(address)) return;
    this.send({
      op: 'remove-worker',
      worker: address,
      expected: seed % 3 === 0,
      close: seed % 2 === 0,
    });
  }

  private setStatus(name: string, status: 'running' | 'paused' | 'closing-gracefully'): void {
    const worker = addressOf(name);
    if (this.workers.has(worker)) this.send({ op: 'worker-status-change', worker, status });
  }

  private heartbeat(name: string, resources?: Readonly<Record<string, number>>): void {
    const worker = addressOf(name);
    const mirror = this.workers.get(worker);
    if (mirror === undefined) return;
    this.send({
      op: 'heartbeat-worker',
      worker,
      metrics: { ...NO_METRICS, bandwidth: 1000 },
      executing: [...mirror.running.keys()].slice(0, 2).map((key) => [key, 0.7] as const),
      workerNowMs: this.nowMs,
      ...(resources === undefined ? {} : { resources }),
    });
  }

  private finish({ worker, key, runId }: Assignment, seed: number): void {
    const mirror = this.workers.get(worker)!;
    mirror.running.delete(key);
    mirror.store.add(key);
    this.sendFinished({ worker, key, runId }, seed);
  }

  private fail(assignment: Assignment): void {
    this.workers.get(assignment.worker)!.running.delete(assignment.key);
    this.send({ op: 'task-erred', ...assignment, failure: failureOf(assignment.key) });
  }

  /** The answer to an assignment that was taken back meanwhile. */
  private answerLate(which: number, seed: number): void {
    const ghosts = [...this.workers.values()].flatMap((worker) => worker.ghosts);
    const ghost = pick([...ghosts, ...this.late], which);
    if (ghost === undefined) return;
    if (seed % 3 === 0) this.send({ op: 'task-erred', ...ghost, failure: failureOf(ghost.key) });
    else this.sendFinished(ghost, seed);
  }

  private sendFinished(assignment: Assignment, seed: number): void {
    const timings = [{ action: 'compute', startS: 0, stopS: (seed % 20) / 10 }];
    const nbytes = 10 * (seed % 9);
    this.send({ op: 'task-finished', ...assignment, nbytes, type: 'number', timings });
  }

  private copyArrives(mirror: WorkerMirror | undefined, which: number): void {
    const key = pick([...(mirror?.fetching ?? [])], which);
    if (mirror === undefined || key === undefined) return;
    mirror.fetching.delete(key);
    this.addKeys(mirror, [key]);
  }

  /** What a worker is computing it does not hold yet. */
  private addKeys(mirror: WorkerMirror | undefined, keys: readonly string[]): void {
    const copies = keys.filter((key) => mirror?.running.has(key) === false);
    if (mirror === undefined || copies.length === 0) return;
    for (const key of copies) mirror.store.add(key);
    this.send({ op: 'add-keys', worker: mirror.address, keys: copies });
  }

  private loseCopy(mirror: WorkerMirror | undefined, which: number): void {
    const key = pick([...(mirror?.store ?? [])], which);
    if (mirror === undefined || key === undefined) return;
    mirror.store.delete(key);
    this.send({ op: 'release-worker-data', worker: mirror.address, key });
  }

  private move(keys: readonly string[], which: number, seed: number): void {
    const { cluster } = this.kernel;
    const before = new Set(keys.filter((key) => cluster.tasks.get(key)?.state === 'memory'));
    this.send({
      op: 'move-replicas',
      acquire: [{ worker: addressOf(WORKERS[which % WORKERS.length]!), keys }],
      remove: WORKERS.filter((_, bit) => (seed & (1 << bit)) !== 0).map((name) => {
        return { worker: addressOf(name), keys };
      }),
    });
    for (const key of before) {
      check(
        cluster.tasks.get(key)?.state === 'memory',
        () => `the last copy of ${key} was dropped`,
      );
    }
  }

  // ---- the kernel ----------------------------------------------------------------------------

  private assignments(): Assignment[] {
    return [...this.workers.values()].flatMap(({ address: worker, running }) =>
      [...running].map(([key, runId]) => ({ worker, key, runId })),
    );
  }

  private send(stimulus: Unnamed): void {
    const stimulusId = `${stimulus.op}-${++this.count}`;
    this.checks.before();
    const outbox = this.kernel.handle({ ...stimulus, stimulusId }, this.nowMs);
    this.checks.after(outbox);
    this.transcript.push(stimulusId);
    for (const { worker, message } of outbox.toWorkers) {
      this.transcript.push(JSON.stringify([worker.address, message]));
    }
    for (const { client, message } of outbox.toClients) {
      this.transcript.push(JSON.stringify([client.key, message]));
    }
    deliver(outbox, this.workers, this.clients);
    this.compare();
  }

  private compare(): void {
    const { cluster } = this.kernel;
    for (const [address, mirror] of this.workers) {
      if (cluster.workers.has(address)) {
        mirror.compareWith(cluster);
        continue;
      }
      this.workers.delete(address);
      this.late.push(
        ...[...mirror.running].map(([key, runId]) => ({ worker: address, key, runId })),
      );
    }
    for (const name of CLIENTS) this.clients.get(name)?.compareWith(cluster);
  }
}

/** A kernel in validate mode for a scenario. */
export function kernelFor({ saturation, options }: Scenario): SchedulerKernel {
  const ports = makePorts({ queuing: { workerSaturation: saturation } });
  const debug = { validate: true, transitionLogLength: 10_000 };
  return new SchedulerKernel({ ...options, ...debug }, ports, 0);
}

/** Plays a scenario on a kernel, heals the world and expects that everything is done in the end. */
export function play({ steps }: Scenario, kernel: SchedulerKernel): RandomWorld {
  const world = new RandomWorld(kernel);
  for (const next of steps) world.take(next);
  world.heal();
  return world;
}

/** A task whose dependencies and options follow from its place and the seed. */
function randomTask(key: string, included: readonly string[], seed: number): GraphTask {
  const place = GRAPH_KEYS.indexOf(key);
  const earlier = [...DATA_KEYS, ...GRAPH_KEYS.slice(0, place)].filter((other, index) => {
    // Most are in the graph; others may be known to the cluster, or lost.
    const mayBeUsed = included.includes(other) || (seed + index) % 13 === 0;
    return mayBeUsed && (seed + 37 * place + 101 * index) % 4 === 0;
  });
  const isRoot = key.startsWith('r-') && seed % 3 !== 0;
  const dependencies = isRoot ? [] : earlier;
  return { key, dependencies, runSpec: `compute ${key}`, ...specialOf(place, seed) };
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
    default:
      return {};
  }
}

function took(seed: number): { computeDurationS?: number } {
  return seed % 2 === 0 ? {} : { computeDurationS: (seed % 9) / 10 };
}

function pick<T>(items: readonly T[], which: number): T | undefined {
  return items.length === 0 ? undefined : items[which % items.length];
}

function many<T extends string>(what: T, count: number): T[] {
  return Array.from({ length: count }, () => what);
}
