import type { HeldResults, HeldRuns } from '../messages/protocol.ts';
import type {
  AcquireReplicas,
  ComputeTask,
  ExtendTimeLimits,
  FreeKeys,
  PeerRemoved,
  RefreshWhoHas,
  RemoveReplicas,
  ReplicaLocations,
  ResumeRun,
  SetTaskPriorities,
  StealRequest,
} from '../messages/to-worker.ts';
import { compareTuples } from '../util/values.ts';
import { reportFinished, unlinkDependencies } from './transitions.ts';
import type { WorkerScope } from './worker-scope.ts';
import type { WorkerTables } from './worker-tables.ts';
import {
  REPLICA_PRIORITY,
  resultRunId,
  type WorkerPriority,
  type WorkerTask,
} from './worker-task.ts';

// Handlers of the messages from the scheduler. Each is O(keys of the message and their dependents).

/** Runs the task as soon as its inputs, a thread and resources are there. */
export function onComputeTask(scope: WorkerScope, event: ComputeTask): void {
  const { tables } = scope;
  const task = tables.ensureTask(event.key);
  // Data under the key of a task is data that the scheduler does not know, and will refuse.
  const isResult = task.state === 'memory' && resultRunId(task) >= 0;
  task.runId = event.runId;
  task.sendAlongBytes = event.sendAlongBytes ?? 0;
  task.limit = event.limit ?? '';
  scope.settleRuns(task); // A run that continues belongs to the new assignment.
  if (task.state === 'executing' || task.isToBeComputed) return;
  if (isResult) {
    reportFinished(scope, task);
    return;
  }
  // Equal priorities run first come, first served; of one submission's, the newest assignment comes first.
  const priority = [...event.priority, event.arrival ?? 0, tables.generation--];
  const { resources } = event;
  task.runSpec = event.runSpec;
  task.annotations = event.annotations;
  task.isActor = event.actor === true;
  task.isRepeated = event.isRepeated === true;
  task.durationS = task.isActor ? -1 : event.durationS;
  task.resources =
    resources !== undefined && Object.keys(resources).length > 0 ? resources : undefined;
  task.isReplicaWanted = false;
  tables.setPriority(task, priority);
  unlinkDependencies(scope, task);
  const inputs = event.dependencies;
  for (let index = 0; index < inputs.keys.length; index++) {
    const dependency = learn(scope, inputs, index, priority);
    task.dependencies.add(dependency);
    dependency.dependents.add(task);
  }
  scope.recommend(task, 'waiting');
}

/** The scheduler needs these here no more, in whatever state they are. */
export function onFreeKeys(scope: WorkerScope, event: FreeKeys): void {
  scope.killTimeoutMs = event.killTimeoutMs;
  if (event.runIds !== undefined) oweRuns(scope, event.keys, event.runIds);
  scope.reservation = event.reservation;
  for (const key of event.keys) {
    const task = scope.tables.tasks.get(key);
    if (task === undefined || isPutAfter(task, event)) continue;
    task.isReplicaWanted = false;
    scope.recommend(task, 'released');
  }
}

/** True when it is data that a client has put here since the order was given: the order is about what was there before. */
function isPutAfter(
  task: WorkerTask,
  { reservation = Infinity }: FreeKeys | RemoveReplicas,
): boolean {
  return task.reservation > reservation;
}

/** Reports at once the runs that do not go on, and the others when they have ended. */
function oweRuns(scope: WorkerScope, keys: readonly string[], runIds: readonly number[]): void {
  const { tables } = scope;
  const over: number[] = [];
  for (const [index, runId] of runIds.entries()) {
    const task = tables.tasks.get(keys[index] ?? '');
    if (task !== undefined && tables.executing.has(task))
      task.owedRunIds = [...task.owedRunIds, runId];
    else if (!tables.isOverdue(runId)) over.push(runId);
  }
  if (over.length > 0) scope.reportRunsOver(over);
}

/**
 * Gives back what has not begun. The answer says in which state each task was; an assignment that is
 * newer than the one that is meant stays, and so does what runs.
 */
export function onStealRequest(scope: WorkerScope, event: StealRequest): void {
  const { keys, runIds, stimulusId } = event;
  const states = keys.map((key, index) => {
    const task = scope.tables.tasks.get(key);
    if (task === undefined) return 'unknown';
    const { state } = task;
    if (task.isToBeComputed && task.runId === runIds[index]) scope.recommend(task, 'released');
    return state;
  });
  scope.report({ op: 'steal-response', keys, runIds, states, stimulusId });
}

/**
 * Moves tasks within the order. Equals keep their order: by submission, then the newest assignment first. What has to be
 * fetched is as urgent as the most urgent task that waits for it. O(dependencies × their dependents).
 */
export function onSetPriorities(scope: WorkerScope, event: SetTaskPriorities): void {
  const { tables } = scope;
  for (let index = 0; index < event.keys.length; index++) {
    const task = tables.tasks.get(event.keys[index] as string);
    const priority = event.priorities[index];
    if (task?.priority === undefined || priority === undefined) continue;
    if (!task.isComing || task.runId !== event.runIds[index]) continue;
    tables.setPriority(task, [...priority, ...task.priority.slice(priority.length)]);
    for (const input of task.dependencies) {
      if (input.state === 'memory' || input.isComing) continue;
      tables.setPriority(input, urgencyOf(input));
    }
  }
}

/** Runs that have begun get the rest of the time; the others get all of it. */
export function onExtendTimeLimits(scope: WorkerScope, event: ExtendTimeLimits): void {
  const { tables } = scope;
  for (const [index, key] of event.keys.entries()) {
    const task = tables.tasks.get(key);
    const timeLimitMs = event.timeLimitsMs[index];
    if (task === undefined || timeLimitMs === undefined) continue;
    if (task.runId !== event.runIds[index]) continue;
    task.annotations = { ...task.annotations, timeoutMs: timeLimitMs };
    if (tables.executing.has(task)) scope.emit({ kind: 'limit-time', key, timeLimitMs });
  }
}

/** Priority of the most urgent task here that is to be computed from it. */
function urgencyOf(input: WorkerTask): WorkerPriority {
  let best: WorkerPriority | undefined;
  for (const { isComing, priority } of input.dependents) {
    if (!isComing || priority === undefined) continue;
    if (best === undefined || compareTuples(priority, best) < 0) best = priority;
  }
  return best ?? REPLICA_PRIORITY;
}

/**
 * Drops copies, except those that a task here is about to use; the scheduler receives a report of
 * the exceptions.
 */
export function onRemoveReplicas(scope: WorkerScope, event: RemoveReplicas): void {
  const kept: string[] = [];
  scope.reservation = event.reservation;
  for (const key of event.keys) {
    const task = scope.tables.tasks.get(key);
    if (task?.state !== 'memory' || isPutAfter(task, event)) continue;
    if (isInUse(task)) kept.push(key);
    else scope.recommend(task, 'released');
  }
  if (kept.length === 0) return;
  scope.report({ op: 'add-keys', keys: kept, stimulusId: event.stimulusId });
}

export function onAcquireReplicas(scope: WorkerScope, event: AcquireReplicas): void {
  for (let index = 0; index < event.replicas.keys.length; index++) {
    const task = learn(scope, event.replicas, index, REPLICA_PRIORITY);
    if (task.state === 'memory' || task.isComing) continue;
    task.isReplicaWanted = true;
    if (task.state !== 'fetch') scope.recommend(task, 'fetch');
  }
}

/** The answer to `request-refresh-who-has`. */
export function onRefreshWhoHas(scope: WorkerScope, event: RefreshWhoHas): void {
  const { keys, whoHas } = event.replicas;
  for (let index = 0; index < keys.length; index++) {
    const task = scope.tables.tasks.get(keys[index] as string);
    if (task !== undefined) locate(scope, task, whoHas[index] ?? NO_HOLDERS);
  }
}

/** A peer has left. A transfer from it ends with a separate event. */
export function onPeerRemoved(scope: WorkerScope, event: PeerRemoved): void {
  const { tables } = scope;
  forgetPeer(scope, event.worker);
  tables.failedTransfers.delete(event.worker);
  const peer = tables.peers.get(event.worker);
  if (peer !== undefined) peer.isGone = true;
}

/** No-op when the run has not asked for it, or was given up meanwhile. */
export function onResumeRun(scope: WorkerScope, { key, runId }: ResumeRun): void {
  const task = scope.tables.tasks.get(key);
  if (task?.state === 'executing' && task.runId === runId) scope.emit({ kind: 'resumed', key });
}

/** Forgets all that a peer held. O(tasks it held). */
export function forgetPeer(scope: WorkerScope, address: string): void {
  const { tables } = scope;
  for (const task of [...(tables.peers.get(address)?.holds ?? [])]) {
    tables.removeHolder(task, address);
    if (task.state === 'fetch' && task.holders.size === 0) scope.recommend(task, 'missing');
  }
}

/**
 * The worker gives up its tasks. Results that were computed here stay, for the scheduler may come
 * back and know them; runs and copies of others' results stay only if it keeps a journal. O(tasks).
 */
export function onSchedulerLost(scope: WorkerScope, keepsRuns: boolean): void {
  for (const task of scope.tables.tasks.values()) {
    task.isReplicaWanted = false;
    const isKept = keepsRuns ? isResultOrRun(task) : isOwnResult(task);
    if (!isKept) scope.recommend(task, 'released');
  }
}

function isResultOrRun({ state }: WorkerTask): boolean {
  return state === 'memory' || state === 'executing';
}

/** Runs whose code continues, for the report to a scheduler that has come back. O(runs). */
export function heldRuns({ executing, seceded, overdueRuns }: WorkerTables): HeldRuns {
  const running = [...executing].filter(({ state }) => state === 'executing');
  const takenBack = [...executing].map((task) => {
    return { owed: task.owedRunIds, limit: task.limit, isSeceded: seceded.has(task) };
  });
  const overdue = [...overdueRuns.values()].map((run) => ({ ...run, isSeceded: true }));
  const ending = [...takenBack, ...overdue].flatMap(({ owed, limit, isSeceded }) =>
    owed.map((runId) => ({ runId, limit, isSeceded })),
  );
  return {
    keys: running.map(({ key }) => key),
    runIds: running.map(({ runId }) => runId),
    seceded: running.map((task) => seceded.has(task)),
    ending: {
      runIds: ending.map(({ runId }) => runId),
      limits: ending.map(({ limit }) => limit),
      seceded: ending.map(({ isSeceded }) => isSeceded),
    },
  };
}

/** Keys of tasks that failed while the scheduler could not hear of it. O(tasks). */
export function failedKeys({ tasks }: WorkerTables): readonly string[] {
  return [...tasks.values()].filter(({ state }) => state === 'error').map(({ key }) => key);
}

/**
 * The results that were computed here, for the report to a scheduler that has come back. O(tasks).
 * @param withCopies - also results of others, and data
 */
export function heldResults(tables: WorkerTables, withCopies = false): HeldResults {
  const isHeld = withCopies ? ({ state }: WorkerTask) => state === 'memory' : isOwnResult;
  const own = [...tables.tasks.values()].filter(isHeld);
  return {
    keys: own.map(({ key }) => key),
    runIds: own.map((task) => (withCopies ? resultRunId(task) : task.runId)),
    nbytes: own.map(({ nbytes }) => nbytes),
    types: own.map(({ type }) => type ?? 'unknown'),
  };
}

/** Keys of all results that are here. O(tasks). */
export function resultsOf({ tasks }: WorkerTables): readonly string[] {
  return [...tasks.values()].filter(({ state }) => state === 'memory').map(({ key }) => key);
}

function isOwnResult({ state, runId }: WorkerTask): boolean {
  return state === 'memory' && runId >= 0;
}

const NO_HOLDERS: readonly string[] = [];

/** Takes down where the result at this index is, and that it is wanted. */
function learn(
  scope: WorkerScope,
  replicas: ReplicaLocations,
  index: number,
  priority: WorkerPriority,
): WorkerTask {
  const { tables } = scope;
  const task = tables.ensureTask(replicas.keys[index] as string);
  if (task.state === 'memory') return task;
  const nbytes = replicas.nbytes[index] ?? -1;
  if (nbytes >= 0) task.nbytes = nbytes;
  // The most urgent dependent determines the priority. A task that is computed here has its own
  // priority.
  const isMoreUrgent = task.priority === undefined || compareTuples(priority, task.priority) < 0;
  if (!task.isComing && (task.state === 'released' || isMoreUrgent))
    tables.setPriority(task, priority);
  locate(scope, task, replicas.whoHas[index] ?? NO_HOLDERS);
  return task;
}

function locate(scope: WorkerScope, task: WorkerTask, holders: readonly string[]): void {
  scope.tables.setHolders(task, holders);
  if (task.state === 'missing' && task.holders.size > 0) scope.recommend(task, 'fetch');
  else if (task.state === 'fetch' && task.holders.size === 0) scope.recommend(task, 'missing');
}

/** True when a task here is running on it or is about to. */
function isInUse(task: WorkerTask): boolean {
  for (const dependent of task.dependents) {
    if (dependent.isToBeComputed || dependent.state === 'executing') return true;
  }
  return false;
}
