import { firstRunOf } from '../kernel/on-membership.ts';
import type { SchedulerKernel } from '../kernel/kernel.ts';
import type { GraphTask, RestoreTasks, Stimulus, UpdateData } from '../messages/stimulus.ts';
import { FIRE_AND_FORGET, SERVICE_PREFIX } from '../state/cluster.ts';
import { byPriority, type Restrictions, type TaskState } from '../state/task.ts';
import { reportId } from './log-writer.ts';

/** Wants everything while a checkpoint is read, so that nothing is forgotten before its clients want it. */
const HOLDER = `${SERVICE_PREFIX}checkpoint`;
/** Tasks of one entry. */
const ENTRY_TASKS = 10_000;

/** The facts about clients and workers that a journal knows, and the kernel does not. */
export interface PeerMemory {
  /** Number of the last report of a client that is written; 0: none. */
  readonly committedOf: (client: string) => number;
  /** Of the secret with which the client or worker may come back. */
  readonly secretHashOf: (peer: string) => string | undefined;
}

function hashField(secretHash: string | undefined): { readonly secretHash?: string } {
  return secretHash === undefined ? {} : { secretHash };
}

/**
 * The shortest history that leads to what the kernel knows: what a journal begins with.
 * O(tasks + wants + workers).
 *
 * @param memory - what the journal knows of clients and workers besides
 */
export function* checkpointOf(
  kernel: SchedulerKernel,
  { committedOf, secretHashOf }: PeerMemory,
): Generator<Stimulus, void, undefined> {
  const stimulusId = HOLDER;
  const { cluster, nextRunId } = kernel;
  yield { op: 'begin-recovery', nextRunId, stimulusId };
  for (const { identity } of cluster.workersByRank) {
    const secret = hashField(secretHashOf(identity.address));
    yield { op: 'register-worker', identity, status: 'paused', ...secret, stimulusId };
  }
  for (const { key: client, versions } of cluster.clients.values()) {
    if (client === FIRE_AND_FORGET) continue;
    const secret = hashField(secretHashOf(client));
    yield { op: 'register-client', client, versions, ...secret, stimulusId };
  }
  yield { op: 'register-client', client: HOLDER, stimulusId };
  const tasks = [...cluster.tasks.values()];
  yield* dataOf(tasks.filter((task) => !isComputable(task)));
  yield* graphsOf(tasks, nextRunId);
  // What a client has put in the place of a computation.
  yield* dataOf(tasks.filter((task) => isComputable(task) && isData(task)));
  yield* endsOf(tasks);
  for (const { key: client, wantsWhat } of cluster.clients.values()) {
    const keys = Array.from(wantsWhat, ({ key }) => key);
    const op = 'client-desires-keys';
    yield { op, client, keys, stimulusId: reportId(op, client, committedOf(client)) };
  }
  yield { op: 'remove-client', client: HOLDER, stimulusId };
}

/** Data that clients have put on workers, and results that cannot be computed again. */
function* dataOf(tasks: readonly TaskState[]): Generator<Stimulus, void, undefined> {
  const items: UpdateData['items'][number][] = [];
  for (const task of tasks) {
    if (task.state !== 'memory') continue;
    const { key, nbytes, type, fingerprint, replicas } = task;
    items.push({
      key,
      workers: task.whoHas.items.map(({ address }) => address),
      ...(nbytes < 0 ? {} : { nbytes }),
      ...(type === undefined ? {} : { type }),
      ...(fingerprint === undefined ? {} : { fingerprint }),
      ...(replicas === 1 ? {} : { replicas }),
    });
  }
  if (items.length > 0) yield { op: 'update-data', client: HOLDER, items, stimulusId: HOLDER };
}

/** By generation, the oldest first, so that their order stays. */
function* graphsOf(
  tasks: readonly TaskState[],
  nextRunId: number,
): Generator<Stimulus, void, undefined> {
  const generations = generationsOf(tasks.filter(isComputable));
  const op = 'update-graph';
  for (const generation of [...generations.keys()].sort((a, b) => a - b)) {
    const all = (generations.get(generation) ?? []).sort(byPriority);
    // A part of a graph could name tasks of the next one, so only independent generations are cut.
    const size = generations.size > 1 || !isCuttable(all) ? all.length : ENTRY_TASKS;
    for (let from = 0; from < all.length; from += size) {
      const part = all.slice(from, from + size);
      yield {
        op,
        client: HOLDER,
        tasks: part.map(describe),
        keys: part.map(({ key }) => key),
        firstRunIds: part.map((task) => firstRunIdOf(task, nextRunId)),
        stimulusId: HOLDER,
      };
    }
  }
}

/** A task cannot come before what it depends on. */
function generationsOf(tasks: readonly TaskState[]): Map<number, TaskState[]> {
  const found = new Map<TaskState, number>();
  const generations = new Map<number, TaskState[]>();
  for (const start of tasks) {
    const stack = [start];
    while (stack.length > 0) {
      const task = stack[stack.length - 1] as TaskState;
      const open = task.dependencies.filter((one) => isComputable(one) && !found.has(one));
      if (open.length > 0 && !found.has(task)) {
        for (const one of open) stack.push(one);
        continue;
      }
      stack.pop();
      if (found.has(task)) continue;
      const before = task.dependencies.map((one) => found.get(one) ?? 0);
      const generation = before.reduce((a, b) => Math.max(a, b), task.generation);
      found.set(task, generation);
      const list = generations.get(generation);
      if (list === undefined) generations.set(generation, [task]);
      else list.push(task);
    }
  }
  return generations;
}

function isCuttable(tasks: readonly TaskState[]): boolean {
  return tasks.every(({ dependencies }) => dependencies.length === 0);
}

function describe(task: TaskState): GraphTask {
  const { key, runSpec, rank, negatedUserPriority, retries, annotations, group, limit } = task;
  return {
    key,
    dependencies: task.dependencies.map((dependency) => dependency.key),
    runSpec,
    ...(rank < 0 ? {} : { rank }),
    group: group.name,
    prefix: group.prefix.name,
    ...(negatedUserPriority === 0 ? {} : { userPriority: 0 - negatedUserPriority }),
    ...(retries === 0 ? {} : { retries }),
    ...(task.isActor ? { actor: true } : {}),
    ...(task.isDataProducer ? { dataProducer: true } : {}),
    ...(annotations === undefined ? {} : { annotations }),
    ...(task.restrictions === undefined ? {} : restrictionsOf(task.restrictions)),
    ...(limit === undefined ? {} : { limit: { name: limit.name, max: limit.max } }),
  };
}

function restrictionsOf(restrictions: Restrictions): Partial<GraphTask> {
  const { workers = [], names = [], hosts, resources, loose = false } = restrictions;
  const places = [...workers, ...names];
  return {
    ...(places.length === 0 ? {} : { workers: places }),
    ...(hosts === undefined ? {} : { hosts: [...hosts] }),
    ...(resources === undefined ? {} : { resources: Object.fromEntries(resources) }),
    ...(loose ? { allowOtherWorkers: true } : {}),
  };
}

/** Failures, and actors that exist. */
function* endsOf(tasks: readonly TaskState[]): Generator<Stimulus, void, undefined> {
  const failures: NonNullable<RestoreTasks['failures']>[number][] = [];
  const actors: NonNullable<RestoreTasks['actors']>[number][] = [];
  for (const task of tasks) {
    const failure = failureOf(task);
    if (failure !== undefined) failures.push(failure);
    const actor = actorOf(task);
    if (actor !== undefined) actors.push(actor);
  }
  if (failures.length + actors.length === 0) return;
  yield { op: 'restore-tasks', failures, actors, stimulusId: HOLDER };
}

/** True when a task that leaves memory was data of a client, and not computed. */
export function isData({ runId }: TaskState): boolean {
  return runId === -1;
}

/** A task that failed itself, as `restore-tasks` has it. */
export function failureOf(
  task: TaskState,
): NonNullable<RestoreTasks['failures']>[number] | undefined {
  const { key, failure } = task;
  if (task.state !== 'erred' || task.exceptionBlame !== task || failure === undefined) {
    return undefined;
  }
  const [worker] = task.erredOn;
  return { key, failure, worker };
}

/** An actor that exists, as `restore-tasks` has it. */
export function actorOf(task: TaskState): NonNullable<RestoreTasks['actors']>[number] | undefined {
  const { key, runId, type = 'unknown' } = task;
  if (!task.isActor || task.state !== 'memory') return undefined;
  const host = task.whoHas.items.find((worker) => worker.actors.has(task));
  if (host === undefined) return undefined;
  return { key, worker: host.address, runId, nbytes: Math.max(0, task.nbytes), type };
}

/** A result of a run before this one is of another task. */
function firstRunIdOf({ runId }: TaskState, nextRunId: number): number {
  if (runId >= 0) return runId;
  return runId === -1 ? nextRunId : firstRunOf(runId);
}

function isComputable(task: TaskState): boolean {
  return task.runSpec !== undefined && !task.hasLostDependencies;
}
