import { expect } from 'vitest';
import type { KernelOptions, PolicyFailure } from '../../core/kernel/ports.ts';
import type { LoggedEvent, Outbox } from '../../core/kernel/outbox.ts';
import { SchedulerKernel } from '../../core/kernel/kernel.ts';
import type { HeldResults, HeldRuns } from '../../core/messages/protocol.ts';
import type { Stimulus, UpdateGraph } from '../../core/messages/stimulus.ts';
import type { ToClientMessage } from '../../core/messages/to-client.ts';
import type { ToWorkerMessage } from '../../core/messages/to-worker.ts';
import type { ClusterState } from '../../core/state/cluster.ts';
import type { TaskFailure, TaskState, WorkerState } from '../../core/state/task.ts';
import type { TaskStateName } from '../../core/state/state-names.ts';
import type { WorkerIdentity, WorkerMetrics, WorkerStatus } from '../../core/state/worker.ts';
import { graphTasks, sinks, type TerseGraph } from './graph.ts';
import {
  addressOf,
  clientMessageInShort,
  nameOf,
  recordInShort,
  workerMessageInShort,
} from './in-short.ts';
import { MessageChecks } from './message-checks.ts';
import { makePorts, type PortsOptions } from './ports.ts';

/** Omits from each member of a union. */
type Without<T, K extends string> = T extends unknown ? Omit<T, K> : never;
/** A stimulus that does not have its id yet. */
export type Unnamed = Without<Stimulus, 'stimulusId'>;

export interface EnvOptions extends PortsOptions {
  readonly kernel?: Partial<KernelOptions>;
}

export interface WorkerSpec extends Partial<Omit<WorkerIdentity, 'address' | 'threadCount'>> {
  /** Default 1. */
  readonly threads?: number;
  readonly status?: WorkerStatus;
  readonly metrics?: WorkerMetrics;
  /** It comes back with these results of 100 bytes: keys and run ids. */
  readonly held?: Readonly<Record<string, number>>;
  /** With `held`: and with these runs. */
  readonly runs?: HeldRuns;
}

export interface FinishSpec {
  readonly nbytes?: number;
  readonly durationS?: number;
  readonly type?: string;
  /** Name of the sender. Default: where the task is processing. */
  readonly worker?: string;
  /** Default: the one in force. */
  readonly runId?: number;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

/**
 * A real kernel in validate mode with the real policies, at a virtual time. It accepts terse
 * stimuli and keeps the messages until a test takes them: in the end `expectEmpty` shows that
 * nothing was left.
 *
 * Workers are called by name (`w1` listens at `tcp://w1:1`); everybody submits as client `c` unless
 * told otherwise.
 */
export class SchedulerEnv {
  readonly kernel: SchedulerKernel;
  readonly policyFailures: PolicyFailure[] = [];
  nowMs = 0;

  private readonly checks: MessageChecks;
  private readonly toWorkers = new Map<string, ToWorkerMessage[]>();
  private readonly toClients = new Map<string, ToClientMessage[]>();
  private events: LoggedEvent[] = [];
  private stimulusCount = 0;

  constructor(options: EnvOptions = {}) {
    const ports = makePorts({
      onPolicyFailure: (failure) => void this.policyFailures.push(failure),
      ...options,
    });
    const fuse = { validate: true, transitionCounterMax: 100_000 };
    this.kernel = new SchedulerKernel({ ...fuse, ...options.kernel }, ports, this.nowMs);
    this.checks = new MessageChecks(this.kernel);
  }

  // ---- stimuli -------------------------------------------------------------------------------

  /** Handles one stimulus; returns its id. Messages are copied, so that aliasing cannot hide. */
  send(stimulus: Unnamed | Stimulus): string {
    const stimulusId = `${stimulus.op}-${++this.stimulusCount}`;
    this.checks.before();
    const outbox = this.kernel.handle({ stimulusId, ...stimulus }, this.nowMs);
    this.checks.after(outbox);
    this.collect(outbox);
    return 'stimulusId' in stimulus ? stimulus.stimulusId : stimulusId;
  }

  advance(ms: number): this {
    this.nowMs += ms;
    return this;
  }

  /** Registers a worker; returns its address. */
  addWorker(name: string, spec: WorkerSpec = {}): string {
    const { threads = 1, status = 'running', metrics, held, runs, ...identity } = spec;
    const address = addressOf(name);
    this.send({
      op: 'register-worker',
      identity: {
        address,
        serverId: `id of ${name}`,
        name,
        host: name,
        threadCount: threads,
        memoryLimitBytes: 0,
        resources: {},
        ...identity,
      },
      status,
      metrics,
      ...(held === undefined ? {} : { held: heldOf(held), runs }),
    });
    return address;
  }

  /** `addWorkers(3)` registers w1, w2 and w3. */
  addWorkers(count: number, spec: WorkerSpec = {}): void {
    for (let number = 1; number <= count; number++) this.addWorker(`w${number}`, spec);
  }

  removeWorker(name: string, { expected = false, close = false } = {}): void {
    this.send({ op: 'remove-worker', worker: addressOf(name), expected, close });
  }

  setStatus(name: string, status: WorkerStatus): void {
    this.send({ op: 'worker-status-change', worker: addressOf(name), status });
  }

  heartbeat(name: string, spec: HeartbeatSpec = {}): void {
    const { executing = {}, resources, workerNowMs = this.nowMs, ...metrics } = spec;
    this.send({
      op: 'heartbeat-worker',
      worker: addressOf(name),
      metrics: { ...NO_METRICS, ...metrics },
      executing: Object.entries(executing),
      workerNowMs,
      resources,
    });
  }

  client(name = 'c'): string {
    this.send({ op: 'register-client', client: name });
    return name;
  }

  /** Submits a graph; the client wants `keys`, by default those that nothing else depends on. */
  submit(graph: TerseGraph, options: Partial<Omit<UpdateGraph, 'op' | 'tasks'>> = {}): string {
    const tasks = graphTasks(graph);
    return this.send({ op: 'update-graph', client: 'c', tasks, keys: sinks(tasks), ...options });
  }

  /** The task is computed where it is processing. */
  finish(key: string, spec: FinishSpec = {}): string {
    const { nbytes = 100, durationS = 1, type = 'number', worker, runId, metadata } = spec;
    const nowS = this.nowMs / 1000;
    return this.send({
      op: 'task-finished',
      key,
      ...this.assignmentOf(key, worker, runId),
      nbytes,
      type,
      timings: [{ action: 'compute', startS: nowS, stopS: nowS + durationS }],
      ...(metadata === undefined ? {} : { metadata }),
    });
  }

  finishAll(...keys: string[]): void {
    for (const key of keys) this.finish(key);
  }

  /** The task throws where it is processing. */
  fail(
    key: string,
    { worker, runId, ...more }: { worker?: string; runId?: number; isOverdue?: boolean } = {},
  ): string {
    const failure = failureOf(key);
    return this.send({
      op: 'task-erred',
      key,
      ...this.assignmentOf(key, worker, runId),
      ...more,
      failure,
    });
  }

  secede(key: string, spec: { durationS?: number; worker?: string; runId?: number } = {}): void {
    const { durationS: computeDurationS, worker, runId } = spec;
    this.send({
      op: 'long-running',
      key,
      ...this.assignmentOf(key, worker, runId),
      ...(computeDurationS === undefined ? {} : { computeDurationS }),
    });
  }

  /** Asks for tasks where they are processing, for this worker; each stands for one second. */
  steal(thief: string, ...keys: string[]): string {
    const proposals = keys.map((key) => {
      const victim = this.cluster.tasks.get(key)?.processingOn?.address ?? '';
      return { key, victim, thief: addressOf(thief), victimS: 1, thiefS: 1 };
    });
    return this.send({ op: 'steal-tasks', proposals });
  }

  /** What the worker answers about a task: the state in which it was there. */
  answerSteal(key: string, state: string, spec: { worker?: string; runId?: number } = {}): string {
    const { worker, runId } = this.assignmentOf(key, spec.worker, spec.runId);
    return this.send({
      op: 'steal-response',
      worker,
      keys: [key],
      runIds: [runId],
      states: [state],
    });
  }

  reschedule(key: string, worker?: string): void {
    const from = worker === undefined ? {} : { worker: addressOf(worker) };
    this.send({ op: 'reschedule', key, ...from });
  }

  addKeys(worker: string, ...keys: string[]): void {
    this.send({ op: 'add-keys', worker: addressOf(worker), keys });
  }

  releaseWorkerData(worker: string, ...keys: string[]): void {
    this.send({ op: 'release-worker-data', worker: addressOf(worker), keys });
  }

  /** `moveReplicas({ acquire: { w2: ['x'] }, remove: { w1: ['x'] } })`. */
  moveReplicas(moves: { acquire?: Moves; remove?: Moves }): void {
    this.send({
      op: 'move-replicas',
      acquire: movesOf(moves.acquire),
      remove: movesOf(moves.remove),
    });
  }

  /** The client put data on workers: `scatter({ x: ['w1'] })`. */
  scatter(where: Readonly<Record<string, readonly string[]>>, client = 'c', nbytes = 100): void {
    const items = Object.entries(where).map(([key, workers]) => {
      return { key, nbytes, workers: workers.map(addressOf), type: 'data' };
    });
    this.send({ op: 'update-data', client, items });
  }

  desire(...keys: string[]): void {
    this.send({ op: 'client-desires-keys', client: 'c', keys });
  }

  /** The client is back, and names all that it wants. */
  desireOnly(...keys: string[]): void {
    this.send({ op: 'client-desires-keys', client: 'c', keys, isAll: true });
  }

  release(...keys: string[]): void {
    this.send({ op: 'client-releases-keys', client: 'c', keys });
  }

  cancel(keys: readonly string[], { client = 'c', force = false } = {}): void {
    this.send({ op: 'cancel-keys', client, keys, force });
  }

  retry(...keys: string[]): void {
    this.send({ op: 'retry', client: 'c', keys });
  }

  /** `setPriority({ x: 5 })`. */
  setPriority(
    priorities: Readonly<Record<string, number>>,
    options: { client?: string; raiseInputs?: boolean } = {},
  ): string {
    const [keys, userPriorities] = [Object.keys(priorities), Object.values(priorities)];
    return this.send({ op: 'set-priority', client: 'c', keys, userPriorities, ...options });
  }

  /** `restrict({ x: ['w1'] })`; an empty list: any worker. */
  restrict(workers: Readonly<Record<string, readonly string[]>>, isQueueable?: boolean): void {
    const changes = Object.entries(workers).map(([key, names]) => {
      const queueable = isQueueable === undefined ? {} : { isQueueable };
      return { key, workers: names.map(addressOf), ...queueable };
    });
    this.send({ op: 'set-restrictions', changes });
  }

  releaseTasks(...keys: string[]): void {
    this.send({ op: 'release-tasks', keys });
  }

  // ---- what came out -------------------------------------------------------------------------

  /** The messages to a worker since they were last taken, in short. */
  takeWorker(name: string): string[] {
    return this.takeWorkerMessages(name).map(workerMessageInShort);
  }

  takeWorkerMessages(name: string): ToWorkerMessage[] {
    return take(this.toWorkers, addressOf(name));
  }

  takeClient(name = 'c'): string[] {
    return this.takeClientMessages(name).map(clientMessageInShort);
  }

  takeClientMessages(name = 'c'): ToClientMessage[] {
    return take(this.toClients, name);
  }

  takeEvents(): LoggedEvent[] {
    const { events } = this;
    this.events = [];
    return events;
  }

  /** Throws everything away that a test does not look at. */
  ignoreMessages(): this {
    this.toWorkers.clear();
    this.toClients.clear();
    this.events = [];
    return this;
  }

  /** Every message has been taken, and no policy failed. */
  expectEmpty(): void {
    const left = {
      workers: inShort(this.toWorkers, (message) => workerMessageInShort(message)),
      clients: inShort(this.toClients, (message) => clientMessageInShort(message)),
      events: this.events,
      policyFailures: this.policyFailures,
    };
    expect(left).toEqual({ workers: {}, clients: {}, events: [], policyFailures: [] });
  }

  // ---- state ---------------------------------------------------------------------------------

  get cluster(): ClusterState {
    return this.kernel.cluster;
  }

  /** @throws when the cluster does not know it */
  task(key: string): TaskState {
    const task = this.cluster.tasks.get(key);
    if (task === undefined) throw new Error(`there is no task ${key}`);
    return task;
  }

  /** @throws when it is not registered */
  worker(name: string): WorkerState {
    const worker = this.cluster.workers.get(addressOf(name));
    if (worker === undefined) throw new Error(`there is no worker ${name}`);
    return worker;
  }

  /** Undefined when the task is not known (any more). */
  state(key: string): TaskStateName | undefined {
    return this.cluster.tasks.get(key)?.state;
  }

  /** All tasks: `{ a: 'memory w1 w2', b: 'processing w1', c: 'waiting' }`. */
  get states(): Record<string, string> {
    return Object.fromEntries(
      [...this.cluster.tasks.values()].map((task) => {
        const workers = task.processingOn === undefined ? task.whoHas.items : [task.processingOn];
        return [task.key, [task.state, ...workers.map(({ address }) => nameOf(address))].join(' ')];
      }),
    );
  }

  /** What happened because of a stimulus, or to a key; in short. */
  story(...keysOrStimuli: string[]): string[] {
    return this.kernel.story(...keysOrStimuli).map(recordInShort);
  }

  private assignmentOf(
    key: string,
    worker: string | undefined,
    runId: number | undefined,
  ): { worker: string; runId: number } {
    const task = this.cluster.tasks.get(key);
    const address = worker === undefined ? task?.processingOn?.address : addressOf(worker);
    if (address === undefined) throw new Error(`${key} is processing nowhere; name a worker`);
    return { worker: address, runId: runId ?? task?.runId ?? -1 };
  }

  private collect({ toWorkers, toClients, events }: Outbox): void {
    for (const { worker, message } of toWorkers) {
      push(this.toWorkers, worker.address, structuredClone(message));
    }
    for (const { client, message } of toClients) {
      push(this.toClients, client.key, structuredClone(message));
    }
    this.events.push(...structuredClone(events));
  }
}

export interface HeartbeatSpec extends Partial<WorkerMetrics> {
  readonly executing?: Readonly<Record<string, number>>;
  readonly resources?: Readonly<Record<string, number>>;
  readonly workerNowMs?: number;
}

type Moves = Readonly<Record<string, readonly string[]>>;

export const NO_METRICS: WorkerMetrics = {
  memoryBytes: 0,
  spilledMemoryBytes: 0,
  spilledDiskBytes: 0,
  managedBytes: 0,
};

export function failureOf(key: string): TaskFailure {
  const exceptionText = `${key} threw`;
  return {
    exception: { name: 'Error', message: exceptionText },
    traceback: undefined,
    exceptionText,
    tracebackText: '',
  };
}

function movesOf(moves: Moves = {}): { worker: string; keys: readonly string[] }[] {
  return Object.entries(moves).map(([worker, keys]) => ({ worker: addressOf(worker), keys }));
}

function push<T>(map: Map<string, T[]>, key: string, item: T): void {
  const items = map.get(key);
  if (items === undefined) map.set(key, [item]);
  else items.push(item);
}

function take<T>(map: Map<string, T[]>, key: string): T[] {
  const items = map.get(key) ?? [];
  map.delete(key);
  return items;
}

function inShort<T>(
  map: ReadonlyMap<string, readonly T[]>,
  render: (item: T) => string,
): Record<string, string[]> {
  return Object.fromEntries([...map].map(([key, items]) => [nameOf(key), items.map(render)]));
}

function heldOf(runIds: Readonly<Record<string, number>>): HeldResults {
  const keys = Object.keys(runIds);
  return {
    keys,
    runIds: Object.values(runIds),
    nbytes: keys.map(() => 100),
    types: keys.map(() => 'number'),
  };
}
