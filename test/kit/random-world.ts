import { isLoose, validWorkers } from '../../core/kernel/restrictions.ts';
import { SchedulerKernel } from '../../core/kernel/kernel.ts';
import { FIRE_AND_FORGET } from '../../core/state/cluster.ts';
import type { ToWorkerMessage } from '../../core/messages/to-worker.ts';
import type { TaskState, WorkerState } from '../../core/state/task.ts';
import { check } from './check.ts';
import { failureOf, NO_METRICS, type Unnamed } from './env.ts';
import { addressOf, recordInShort } from './in-short.ts';
import { MessageChecks } from './message-checks.ts';
import { type Assignment, ClientMirror, deliver, WorkerMirror } from './mirrors.ts';
import { makePorts, type OwnPolicies } from './ports.ts';
import {
  ALL_KEYS,
  CLIENTS,
  DATA_KEYS,
  GRAPH_KEYS,
  randomTask,
  type Scenario,
  STEADY_LIMIT,
  STEADY_MAX,
  type Step,
  WORKERS,
} from './random-scenario.ts';

/** What comes from a client, in the order in which it says it. */
const SAID_BY_CLIENTS: ReadonlySet<Step['what']> = new Set([
  'submit',
  'desire',
  'release',
  'cancel',
  'retry',
  'set-priority',
  'submit-again',
  'scatter',
  'report-key',
]);

/** What the numbers of a step select in the present world. */
interface Choice {
  readonly worker: string;
  readonly address: string;
  readonly mirror: WorkerMirror | undefined;
  readonly client: string;
  readonly key: string;
  readonly keys: readonly string[];
  readonly assignment: Assignment | undefined;
  readonly which: number;
  readonly seed: number;
}

/**
 * Clients, workers and time around a kernel. After every stimulus the kernel checks its own
 * invariants (validate mode), the messages are checked, and each recipient compares them with its
 * own view.
 */
export class RandomWorld {
  /** Messages by receiver, in their order. */
  readonly received = new Map<string, string[]>();
  /** All that the kernel did, for comparison with another run. */
  readonly transcript: string[] = [];
  private readonly checks: MessageChecks;
  private readonly workers = new Map<string, WorkerMirror>();
  private readonly clients = new Map<string, ClientMirror>();
  /** Answers of workers that may be gone by now. */
  private late: Assignment[] = [];
  /** Keys that clients wanted without a graph. */
  private readonly desired = new Set<string>();
  private nowMs = 0;
  private count = 0;

  constructor(
    readonly kernel: SchedulerKernel,
    private readonly policies: MakePolicies = () => ({}),
    private readonly pauses: Pauses = 'interleaved',
  ) {
    this.checks = new MessageChecks(kernel);
    this.clients.set(FIRE_AND_FORGET, new ClientMirror(FIRE_AND_FORGET));
    for (const name of CLIENTS) this.join(name);
  }

  take(next: Step): void {
    this.advance(1 + (next.seed % 7));
    const choice = this.choose(next);
    if (SAID_BY_CLIENTS.has(next.what)) this.settle(choice.client);
    this.acts[next.what](choice);
  }

  /** Everything that was broken works again and whatever is asked for is done. */
  heal(): void {
    this.continue(Infinity);
    WORKERS.forEach((name, index) => {
      this.addWorker(name, index);
      this.setStatus(name, 'running');
      this.heartbeat(name, { gpu: 1 });
    });
    for (const worker of this.workers.values()) {
      worker.endGhosts(() => true);
      this.send({ op: 'runs-over', worker: worker.address, runIds: worker.takeOverRunIds() });
      const { endingRuns, lingeringRuns } = this.kernel.cluster.workers.get(worker.address)!;
      check(
        endingRuns.size + lingeringRuns.size === 0,
        () => `${worker.address} has runs that never end`,
      );
    }
    for (let left = 20 * ALL_KEYS.length; left > 0; left--) {
      const [assignment] = this.assignments();
      const { wakeAtMs } = this.kernel;
      if (assignment !== undefined) this.finish(assignment, 1);
      else if (wakeAtMs === undefined) break;
      else {
        this.nowMs = wakeAtMs;
        this.send({ op: 'continue' });
      }
      this.continue(Infinity);
    }
    for (const task of this.kernel.cluster.tasks.values()) {
      const story = this.kernel.story(task.key).slice(-10).map(recordInShort).join('\n  ');
      check(!task.isActive, () => `${task.key} is ${task.state} for ever:\n  ${story}`);
      // Wanting a key computes nothing, as in Dask.
      const isForsaken = task.state === 'released' && !this.desired.has(task.key);
      check(
        !isForsaken || task.whoWants.size === 0,
        () => `${task.key} is wanted, but nobody computes it:\n  ${story}`,
      );
    }
  }

  /** What each kind of step does. */
  private readonly acts: Record<Step['what'], (choice: Choice) => void> = {
    submit: ({ client, keys, seed }) => this.submit(client, keys, seed),
    continue: () => this.continue(1),
    finish: ({ assignment, seed }) => assignment && this.finish(assignment, seed),
    fail: ({ assignment }) => assignment && this.fail(assignment),
    'late-answer': ({ which, seed }) => this.answerLate(which, seed),
    'runs-over': ({ mirror, seed }) => mirror && this.endRuns(mirror, seed),
    reschedule: ({ assignment }) =>
      assignment && this.send({ op: 'reschedule', key: assignment.key }),
    steal: ({ keys, which }) => this.steal(keys, which),
    'answer-steal': ({ mirror, seed }) => mirror && this.answerSteal(mirror, seed),
    secede: ({ assignment, seed }) => {
      if (assignment === undefined) return;
      const op = (['long-running', 'run-paused', 'run-resumes'] as const)[seed % 3]!;
      this.send({ op, ...assignment, ...(op === 'long-running' ? took(seed) : {}) });
    },
    'add-worker': ({ worker, seed }) => this.addWorker(worker, seed),
    'remove-worker': ({ address, seed }) => this.removeWorker(address, seed),
    pause: ({ worker, seed }) =>
      this.setStatus(worker, seed % 5 === 0 ? 'closing-gracefully' : 'paused'),
    unpause: ({ worker }) => this.setStatus(worker, 'running'),
    heartbeat: ({ worker, seed }) =>
      this.heartbeat(worker, seed % 3 === 0 ? { gpu: seed % 2 } : undefined),
    desire: ({ client, keys, seed }) => this.desire(client, keys, seed % 4 === 0),
    'fire-and-forget': ({ key }) => this.fireAndForget(key),
    release: ({ client, keys }) => this.release(client, keys),
    cancel: ({ client, keys, seed }) =>
      this.send({ op: 'cancel-keys', client, keys, force: seed % 4 === 0 }),
    retry: ({ client, keys }) => this.send({ op: 'retry', client, keys }),
    'set-priority': ({ client, keys, seed }) =>
      this.send({
        op: 'set-priority',
        client,
        keys,
        userPriorities: keys.map((_, index) => ((seed + 3 * index) % 5) - 2),
        raiseInputs: seed % 2 === 0,
      }),
    'submit-again': ({ client, keys, seed }) =>
      this.send({
        op: 'submit-again',
        client,
        keys,
        userPriorities: keys.map((_, index) => ((seed + 3 * index) % 5) - 2),
        timeLimitsMs: keys.map((_, index) => [50, 1000, Infinity][(seed + index) % 3]!),
      }),
    'set-restrictions': ({ keys, address, worker, seed }) =>
      this.send({
        op: 'set-restrictions',
        changes: keys.map((key) => ({
          key,
          ...[{ workers: [] }, { workers: [address] }, { workers: [worker] }, {}][seed % 4],
          ...[{ isQueueable: false }, { isQueueable: true }, {}][seed % 3],
        })),
      }),
    'release-tasks': ({ keys }) => this.send({ op: 'release-tasks', keys }),
    'remove-client': ({ client }) => this.leave(client),
    scatter: ({ client, key, which, seed }) =>
      this.scatter(client, seed % 6 === 0 ? key : DATA_KEYS[seed % 2]!, which),
    'copy-arrives': ({ mirror, which }) => this.copyArrives(mirror, which),
    'claim-copy': ({ mirror, keys }) => this.addKeys(mirror, keys.slice(0, 3)),
    'lose-copy': ({ mirror, which }) => this.loseCopy(mirror, which),
    move: ({ keys, which, seed }) => this.move(keys, which, seed),
    'ask-who-has': ({ mirror, address, keys }) =>
      mirror && this.send({ op: 'request-refresh-who-has', worker: address, keys }),
    'report-key': ({ client, key }) => this.send({ op: 'report-key', client, key }),
    'check-worker-ttl': ({ seed }) => {
      if (seed % 50 === 0) this.advance(30_000);
      this.send({ op: 'check-worker-ttl' });
    },
    'check-no-workers-timeout': () => this.send({ op: 'check-no-workers-timeout' }),
    restart: ({ seed }) => seed % 3 === 0 && this.send({ op: 'restart' }),
    'replace-policies': ({ seed }) => this.replacePolicies(seed),
    wait: () => this.advance(5000),
  };

  /** What a rate allows by then starts, as a host sees to, before the next stimulus if that may come in slices. */
  private advance(ms: number): void {
    this.nowMs += ms;
    if (this.pauses !== 'alone' || (this.kernel.wakeAtMs ?? Infinity) > this.nowMs) return;
    this.send({ op: 'continue' });
    this.continue(Infinity);
  }

  private choose({ which, mask, seed }: Step): Choice {
    const worker = WORKERS[which % WORKERS.length]!;
    const address = addressOf(worker);
    return {
      worker,
      address,
      mirror: this.workers.get(address),
      client: CLIENTS[seed % CLIENTS.length]!,
      key: ALL_KEYS[which % ALL_KEYS.length]!,
      keys: ALL_KEYS.filter((_, bit) => (mask & (1 << bit)) !== 0),
      assignment: pick(this.assignments(), which),
      which,
      seed,
    };
  }

  // ---- clients -------------------------------------------------------------------------------

  private join(client: string): void {
    this.clients.set(client, new ClientMirror(client));
    this.send({ op: 'register-client', client });
  }

  private leave(client: string): void {
    this.clients.get(client)!.giveUp(ALL_KEYS);
    this.send({ op: 'remove-client', client });
    this.join(client);
  }

  /** @param isAll - whether the client is back, and names all that it wants */
  private desire(client: string, keys: readonly string[], isAll: boolean): void {
    const mirror = this.clients.get(client)!;
    if (isAll) mirror.giveUp(ALL_KEYS.filter((key) => !keys.includes(key)));
    mirror.want(keys);
    for (const key of keys) this.desired.add(key);
    this.send({ op: 'client-desires-keys', client, keys, isAll });
  }

  private release(client: string, keys: readonly string[]): void {
    this.clients.get(client)!.giveUp(keys);
    this.send({ op: 'client-releases-keys', client, keys });
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

  /** What a client says waits until all that it has said before is done. */
  private settle(client: string): void {
    while (this.kernel.isBusyFor(client)) this.continue(1);
  }

  /** At most this many slices of long work. */
  private continue(slicesMax: number): void {
    for (let slice = 0; slice < slicesMax && this.kernel.isUnsettled; slice++) {
      this.send({ op: 'continue' });
    }
  }

  private fireAndForget(key: string): void {
    const { cluster } = this.kernel;
    if (!cluster.tasks.has(key)) return;
    this.clients.set(FIRE_AND_FORGET, new ClientMirror(FIRE_AND_FORGET));
    this.desired.add(key);
    this.send({ op: 'client-desires-keys', client: FIRE_AND_FORGET, keys: [key] });
  }

  private scatter(client: string, key: string, which: number): void {
    const holders = [...this.workers.values()].filter((_, bit) => ((which + 1) & (1 << bit)) !== 0);
    for (const holder of holders) holder.hold(key);
    if (holders.length === 0) this.desired.add(key);
    this.clients.get(client)!.want([key]);
    const workers = holders.map((holder) => holder.address);
    this.send({ op: 'update-data', client, items: [{ key, nbytes: 10 * which, workers }] });
  }

  // ---- workers -------------------------------------------------------------------------------

  private addWorker(name: string, seed: number): void {
    const address = addressOf(name);
    if (this.workers.has(address)) return;
    this.workers.set(address, new WorkerMirror(address));
    // A connection is gone when another one is made: nothing comes through it any more.
    this.late = this.late.filter((assignment) => assignment.worker !== address);
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
        ...(seed % 4 < 2 ? { tellsRunEnds: true } : {}),
        ...(seed % 3 < 2 ? { speed: 10 + 10 * (seed % 4) } : {}),
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
      resources,
    });
  }

  /** Wants that make sense and others that do not. */
  private steal(keys: readonly string[], which: number): void {
    const thief = addressOf(WORKERS[which % WORKERS.length]!);
    const { cluster } = this.kernel;
    const proposals = keys.map((key) => {
      const victim = cluster.tasks.get(key)?.processingOn?.address ?? thief;
      return { key, victim, thief, victimS: 1, thiefS: 2 };
    });
    const before = new Set([...cluster.tasks.values()].filter(isAskedFor));
    this.send({ op: 'steal-tasks', proposals });
    for (const task of cluster.tasks.values()) {
      if (!isAskedFor(task) || before.has(task)) continue;
      const { thief: robber } = task.steal!;
      check(robber.status === 'running', () => `${task.key} is stolen for a paused worker`);
      check(cluster.suits(task, robber) !== 'no', () => `${task.key} must not go there`);
    }
  }

  /** It gives away what it has not begun, for which the seed stands. */
  private answerSteal(mirror: WorkerMirror, seed: number): void {
    const asked = mirror.asked.splice(0, 1 + (seed % 3));
    if (asked.length === 0) return;
    const states = asked.map(({ key, runId }, index) => {
      if (mirror.running.get(key) !== runId) return mirror.store.has(key) ? 'memory' : 'unknown';
      const state = ['ready', 'waiting', 'executing', 'unknown'][(seed + index) % 4]!;
      if (state !== 'executing') mirror.running.delete(key);
      return state;
    });
    this.send({
      op: 'steal-response',
      worker: mirror.address,
      keys: asked.map(({ key }) => key),
      runIds: asked.map(({ runId }) => runId),
      states,
    });
  }

  private finish({ worker, key, runId }: Assignment, seed: number): void {
    this.workers.get(worker)!.hold(key);
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

  /** Runs that were taken back occupy no thread any more. An unknown number does no harm. */
  private endRuns(mirror: WorkerMirror, seed: number): void {
    mirror.endGhosts((_, index) => (seed + index) % 3 !== 0);
    const runIds = mirror.takeOverRunIds();
    if (seed % 5 === 0) runIds.push(9999);
    this.send({ op: 'runs-over', worker: mirror.address, runIds });
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
    for (const key of copies) mirror.hold(key);
    this.send({ op: 'add-keys', worker: mirror.address, keys: copies });
  }

  private loseCopy(mirror: WorkerMirror | undefined, which: number): void {
    const key = pick([...(mirror?.store ?? [])], which);
    if (mirror === undefined || key === undefined) return;
    mirror.store.delete(key);
    this.send({ op: 'release-worker-data', worker: mirror.address, keys: [key] });
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

  private replacePolicies(seed: number): void {
    const workerSaturation = [1.1, 2, Infinity][seed % 3]!;
    const policies = this.policies(workerSaturation);
    this.kernel.replacePorts(makePorts({ queuing: { workerSaturation }, policies }));
    // The host has more to do than to replace them; the next stimulus finds the new slots.
    this.send({ op: 'check-no-workers-timeout' });
  }

  // ---- the kernel ----------------------------------------------------------------------------

  private assignments(): Assignment[] {
    return [...this.workers.values()].flatMap(({ address: worker, running }) =>
      [...running].map(([key, runId]) => ({ worker, key, runId })),
    );
  }

  private send(stimulus: Unnamed): void {
    // Numbers are the same however often it pauses.
    if (stimulus.op !== 'continue') this.count++;
    const stimulusId = `${stimulus.op}-${this.count}`;
    this.checks.before();
    const outbox = this.kernel.handle({ ...stimulus, stimulusId }, this.nowMs);
    this.checks.after(outbox);
    this.transcript.push(stimulusId);
    for (const { worker, message } of outbox.toWorkers) this.note(worker.address, message);
    for (const { client, message } of outbox.toClients) this.note(client.key, message);
    for (const { worker, message } of outbox.toWorkers) this.checkPlace(worker, message);
    deliver(outbox, this.workers, this.clients);
    this.compare();
    this.checkLimit();
    if (this.pauses === 'alone' && stimulus.op !== 'continue') this.continue(Infinity);
  }

  /** Neither restrictions nor rules forbid the worker to which a task is sent. */
  private checkPlace(worker: WorkerState, message: ToWorkerMessage): void {
    const { cluster } = this.kernel;
    const task = message.op === 'compute-task' ? cluster.tasks.get(message.key) : undefined;
    if (task?.processingOn !== worker) return;
    const suits = cluster.suits(task, worker);
    check(suits !== 'no', () => `${task.key} was sent to ${worker.address}, where it must not run`);
  }

  private checkLimit(): void {
    const { tasks } = this.kernel.cluster;
    const limited = [...tasks.values()].filter(({ limit }) => limit?.name === STEADY_LIMIT);
    const counts = (task: TaskState): boolean =>
      task.state === 'processing' && task.limit?.paused.has(task) !== true;
    const running = limited.filter(counts).length;
    check(running <= STEADY_MAX, () => `${running} tasks with the limit are processing`);
  }

  private note(receiver: string, message: object): void {
    const text = JSON.stringify([receiver, message]);
    this.transcript.push(text);
    const received = this.received.get(receiver);
    if (received === undefined) this.received.set(receiver, [text]);
    else received.push(text);
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
    for (const name of CLIENTS) {
      if (!this.kernel.isBusyFor(name)) this.clients.get(name)?.compareWith(cluster);
    }
    this.checkUnrunnable();
  }

  /** Nothing waits for a worker while one runs that would do. */
  private checkUnrunnable(): void {
    const { cluster } = this.kernel;
    for (const task of cluster.unrunnable.keys()) {
      const valid = validWorkers(cluster, task);
      const isAnywhere = valid === undefined || isLoose(cluster, task);
      // A rule that holds it back is asked again in its turn.
      const { ruled, rules } = this.kernel['scope'];
      if (ruled.has(task) && !rules.isFiltered(task)) continue;
      const count = isAnywhere ? cluster.running.size : valid.size;
      check(count === 0, () => `${task.key} waits for a worker, and ${count} would do`);
    }
  }
}

/** What happens between the slices of long work: other stimuli, or nothing. A client has to wait for its own. */
export type Pauses = 'interleaved' | 'alone';

/** Policies other than the built-in ones, anew for each kernel. */
export type MakePolicies = (saturation: number) => OwnPolicies;

/** A kernel in validate mode for a scenario. */
export function kernelFor(
  { saturation, options }: Scenario,
  makePolicies: MakePolicies = () => ({}),
  sliceTransitions = Infinity,
): SchedulerKernel {
  const policies = makePolicies(saturation);
  const ports = makePorts({ queuing: { workerSaturation: saturation }, policies });
  const debug = { validate: true, transitionLogLength: 10_000, sliceTransitions };
  return new SchedulerKernel({ ...options, ...debug }, ports, 0);
}

/** Plays a scenario on a kernel, heals the world and expects that everything is done in the end. */
export function play(
  { steps }: Scenario,
  kernel: SchedulerKernel,
  makePolicies?: MakePolicies,
  pauses?: Pauses,
): RandomWorld {
  const world = new RandomWorld(kernel, makePolicies, pauses);
  for (const next of steps) world.take(next);
  world.heal();
  return world;
}

function isAskedFor({ steal }: TaskState): boolean {
  return steal?.state === 'asked';
}

function took(seed: number): { computeDurationS?: number } {
  return seed % 2 === 0 ? {} : { computeDurationS: (seed % 9) / 10 };
}

function pick<T>(items: readonly T[], which: number): T | undefined {
  return items.length === 0 ? undefined : items[which % items.length];
}
