import type { ErrorPayload } from '../messages/protocol.ts';
import type { TaskFailure } from '../state/task.ts';
import type { LazySet } from '../util/collections.ts';
import { assert, compareTuples } from '../util/values.ts';
import type { Execute } from './events.ts';
import type { WorkerScope, WorkerTransition } from './worker-scope.ts';
import { isBusy, type Peer, type Transfer, type WorkerTables } from './worker-tables.ts';
import {
  NO_TIMINGS,
  REPLICA_PRIORITY,
  type WorkerTarget,
  type WorkerTask,
  type WorkerTaskStateName,
} from './worker-task.ts';

/**
 * The transfer to begin next: from the peer with the most urgent task, as many of its tasks, the most
 * urgent first, as the limits allow. Undefined: nothing to fetch, or too much is under way.
 * O(peers) when there is something to fetch, else O(1).
 */
export function nextTransfer(
  tables: WorkerTables,
): { readonly peer: Peer; readonly transfer: Transfer } | undefined {
  if (tables.fetching.size === 0 || isThrottled(tables)) return undefined;
  const peer = choosePeer(tables);
  if (peer === undefined) return undefined;
  const transfer = chooseTasks(tables, peer);
  return transfer.tasks.length === 0 ? undefined : { peer, transfer };
}

/** Many small transfers are no burden; neither are few, as long as their bytes are. */
function isThrottled({ options, pace, transferCount, incomingBytes }: WorkerTables): boolean {
  if (pace !== 'running' && (pace === 'paused' || transferCount > 0)) return true;
  if (incomingBytes >= options.incomingBytesMax) return true;
  return (
    transferCount >= options.incomingTransfersMax && incomingBytes >= options.throttleThresholdBytes
  );
}

function choosePeer(tables: WorkerTables): Peer | undefined {
  let best: Peer | undefined;
  for (const peer of tables.peers.values()) {
    if (peer.needed.size === 0 || peer.transfer !== undefined || peer.isBusy) continue;
    if (best === undefined || isBetterPeer(peer, best, tables.host)) best = peer;
  }
  return best;
}

/** More urgent; else on this host; else with more to give; else by a rule that differs by worker. */
function isBetterPeer(peer: Peer, best: Peer, ownHost: string): boolean {
  const order = compareTuples(topPriority(peer), topPriority(best));
  if (order !== 0) return order < 0;
  const isLocal = peer.host === ownHost;
  if (isLocal !== (best.host === ownHost)) return isLocal;
  if (peer.needed.size !== best.needed.size) return peer.needed.size > best.needed.size;
  if (peer.tieBreak !== best.tieBreak) return peer.tieBreak < best.tieBreak;
  return peer.address < best.address;
}

function topPriority(peer: Peer): readonly number[] {
  return peer.needed.peek()?.task.priority ?? REPLICA_PRIORITY;
}

/** Takes the chosen tasks out of the heaps of all their holders. */
function chooseTasks(tables: WorkerTables, peer: Peer): Transfer {
  const tasks: WorkerTask[] = [];
  let nbytes = 0;
  for (let entry = peer.needed.peek(); entry !== undefined; entry = peer.needed.peek()) {
    const { task } = entry;
    if (exceedsLimits(tables, task.expectedNbytes, nbytes)) break;
    tables.removeFetchEntries(task);
    tasks.push(task);
    nbytes += task.expectedNbytes;
  }
  return { tasks, nbytes };
}

function exceedsLimits(tables: WorkerTables, taskNbytes: number, messageNbytes: number): boolean {
  const { options, incomingBytes } = tables;
  // With no other traffic the most urgent one is fetched whatever its size, or nothing would move.
  if (incomingBytes === 0 && messageNbytes === 0) return false;
  let allowance = options.incomingBytesMax - incomingBytes;
  if (messageNbytes > 0) allowance = Math.min(allowance, options.messageBytesMax) - messageNbytes;
  return taskNbytes > allowance;
}

/**
 * The task to run next, if a thread is free: the best by the order of what is ready, of those whose resources are free
 * too. A constrained task that lacks resources holds back the constrained ones behind it, so that
 * it is not starved, but no others. O(1).
 */
export function nextToExecute(tables: WorkerTables): WorkerTask | undefined {
  return nextConcurrent(tables) ?? nextOnThread(tables);
}

/** The best of those that need no thread, but a share of an event loop. */
function nextConcurrent(tables: WorkerTables): WorkerTask | undefined {
  const best = tables.constrained.peekConcurrent();
  if (best === undefined || tables.executing.size >= tables.concurrentRunLimit) return undefined;
  if (!tables.hasResourcesFor(best)) return undefined;
  return tables.quota === undefined || tables.quota.admits(best) ? best : undefined;
}

function nextOnThread(tables: WorkerTables): WorkerTask | undefined {
  // Runs that wait for a thread to return to come first.
  if (tables.occupiedThreads >= tables.runLimit || tables.rejoining.size > 0) return undefined;
  const best = bestReady(tables);
  if (best === undefined || !tables.hasThreadFor(best)) return undefined;
  // One that does not fit holds back all others, as in Mars: its turn comes when enough have ended.
  return tables.quota === undefined || tables.quota.admits(best) ? best : undefined;
}

function bestReady(tables: WorkerTables): WorkerTask | undefined {
  const ready = tables.ready.peek();
  const constrained = tables.constrained.peek();
  if (constrained === undefined || !tables.hasResourcesFor(constrained)) return ready;
  if (ready === undefined || tables.compareReady(constrained, ready) < 0) return constrained;
  return ready;
}

/** Characters of the texts for people. */
const TEXT_LENGTH_MAX = 10_000;
/** A failure as workers report it. Its texts say its causes, too. */
export function toTaskFailure(error: ErrorPayload): TaskFailure {
  const texts: string[] = [];
  const stacks: string[] = [];
  for (let each: ErrorPayload | undefined = error; each !== undefined; each = each.cause) {
    const title = each.code === undefined ? each.name : `${each.name} [${each.code}]`;
    texts.push(`${title}: ${each.message}`);
    if (each.stack !== undefined) stacks.push(each.stack);
  }
  return {
    exception: error,
    traceback: error.stack,
    exceptionText: clipped(texts.join(', because ')),
    tracebackText: clipped(stacks.join('\nbecause: ')),
  };
}

/** A failure that the worker itself finds. */
export function localFailure(code: string, message: string): TaskFailure {
  return toTaskFailure({ name: 'YardmasterError', code, message });
}

function clipped(text: string): string {
  if (text.length <= TEXT_LENGTH_MAX) return text;
  // The cut may leave half of a surrogate pair, which has no form in UTF-8.
  return text.slice(0, TEXT_LENGTH_MAX).replace(/[\uD800-\uDBFF]$/, '');
}

/**
 * A cancelled run never gives a result: it was asked to abort, and the key may by now mean another
 * computation. A cancelled transfer differs: it continues when a copy is wanted again.
 */

/** Waits for the run or transfer to end. */
function cancelledToReleased(scope: WorkerScope, task: WorkerTask): void {
  if (!isBusy(scope.tables, task)) enterReleased(scope, task);
}

/** Of a resumed task, too. */
function cancelledToFetch(scope: WorkerScope, task: WorkerTask): void {
  if (task.previous === 'flight' && task.comingFrom !== undefined) {
    task.state = 'flight';
    task.previous = undefined;
    task.next = undefined;
  } else resume(scope, task, 'fetch');
}

/** Of a resumed task, too. */
function cancelledToWaiting(scope: WorkerScope, task: WorkerTask): void {
  resume(scope, task, 'waiting');
}

/** Cancelled once more; or the run or transfer has ended, and what is wanted can begin. */
function resumedToReleased(scope: WorkerScope, task: WorkerTask): void {
  const { next } = task;
  if (!isBusy(scope.tables, task) && next !== undefined) {
    begin(scope, task, next);
    return;
  }
  task.state = 'cancelled';
  task.next = undefined;
  if (task.waiters.size > 0) scope.recommend(task, 'fetch');
}

function resume(scope: WorkerScope, task: WorkerTask, next: 'fetch' | 'waiting'): void {
  if (!isBusy(scope.tables, task)) {
    begin(scope, task, next); // It has ended in this very event.
    return;
  }
  task.state = 'resumed';
  task.next = next;
}

function begin(scope: WorkerScope, task: WorkerTask, next: 'fetch' | 'waiting'): void {
  task.state = 'released';
  task.previous = undefined;
  task.next = undefined;
  scope.recommend(task, next);
}

/** A copy is wanted: from one of its holders, or else it is missing. */
function releasedToFetch(scope: WorkerScope, task: WorkerTask): void {
  if (task.holders.size === 0) {
    scope.recommend(task, 'missing');
    return;
  }
  task.state = 'fetch';
  scope.tables.addFetchEntries(task);
}

function releasedToMissing(scope: WorkerScope, task: WorkerTask): void {
  assert(task.holders.size === 0, `${task.toString()} is missing but has holders`);
  task.state = 'missing';
  scope.tables.missing.add(task);
}

/** Stays missing while no holder is known. */
function missingToFetch(scope: WorkerScope, task: WorkerTask): void {
  if (task.holders.size === 0) return;
  scope.tables.missing.delete(task);
  releasedToFetch(scope, task);
}

function missingToReleased(scope: WorkerScope, task: WorkerTask): void {
  scope.tables.missing.delete(task);
  enterReleased(scope, task);
}

/** The choice of the peer, and the transfer itself, are made in `nextTransfer`. */
function fetchToFlight({ tables }: WorkerScope, task: WorkerTask): void {
  assert(task.comingFrom !== undefined, `${task.toString()} takes off without a transfer`);
  tables.removeFetchEntries(task);
  task.state = 'flight';
}

function fetchToMissing(scope: WorkerScope, task: WorkerTask): void {
  scope.tables.removeFetchEntries(task);
  releasedToMissing(scope, task);
}

function fetchToReleased(scope: WorkerScope, task: WorkerTask): void {
  scope.tables.removeFetchEntries(task);
  enterReleased(scope, task);
}

/**
 * No-op while the transfer continues. When it has ended without the key, the task is fetched again.
 */
function flightToFetch(scope: WorkerScope, task: WorkerTask): void {
  if (task.comingFrom === undefined) releasedToFetch(scope, task);
}

/** A transfer cannot be stopped; when it has ended its bytes are of no use. */
function flightToReleased(scope: WorkerScope, task: WorkerTask): void {
  if (task.comingFrom === undefined) {
    enterReleased(scope, task);
    return;
  }
  task.state = 'cancelled';
  task.previous = 'flight';
  if (task.waiters.size > 0) scope.recommend(task, 'fetch');
}

/** To be computed here: fetches what is neither here nor computed here. */
function releasedToWaiting(scope: WorkerScope, task: WorkerTask): void {
  task.state = 'waiting';
  if (task.dependencies.size === 0) {
    scope.recommend(task, 'ready');
    return;
  }
  for (const dependency of task.dependencies) {
    if (dependency.state === 'memory') continue;
    task.waitingForData.add(dependency);
    dependency.waiters.add(task);
    if (!dependency.isComing && dependency.state !== 'fetch') scope.recommend(dependency, 'fetch');
  }
  if (task.waitingForData.size === 0) scope.recommend(task, 'ready');
}

/** A copy has arrived. */
function flightToMemory(scope: WorkerScope, task: WorkerTask): void {
  enterMemory(scope, task);
  scope.addCopy(task.key);
}

/** The only way into `memory`: the bytes are in the store. */
function enterMemory(scope: WorkerScope, task: WorkerTask): void {
  assert(task.arrivedNbytes >= 0, `${task.toString()} enters memory but nothing arrived`);
  const { tables } = scope;
  tables.clearHolders(task);
  task.state = 'memory';
  task.isReplicaWanted = false;
  task.nbytes = task.arrivedNbytes;
  task.arrivedNbytes = -1;
  tables.nbytes += task.nbytes;
  unlinkDependencies(scope, task);
  if (task.waiters.size === 0) return;
  for (const waiter of task.waiters) {
    waiter.waitingForData.delete(task);
    if (waiter.state === 'waiting' && waiter.waitingForData.size === 0) {
      scope.recommend(waiter, 'ready');
    }
  }
  task.waiters.clear();
}

export function reportFinished(scope: WorkerScope, task: WorkerTask): void {
  const { value, key, runId, nbytes, timings } = task;
  const { stimulusId } = scope;
  const type = task.type ?? 'unknown';
  if (value === undefined) {
    scope.report({ op: 'task-finished', key, runId, nbytes, type, timings, stimulusId });
    return;
  }
  task.value = undefined;
  scope.report({ op: 'task-finished', key, runId, nbytes, type, timings, value, stimulusId });
}

/**
 * Drops a result. Tasks here that were about to use it have to wait for it again: the scheduler
 * frees them too, or says where it is.
 */
function memoryToReleased(scope: WorkerScope, task: WorkerTask): void {
  const { tables } = scope;
  tables.nbytes -= task.nbytes;
  task.copiedRunId = -1;
  task.reservation = 0;
  scope.emit({ kind: 'drop-data', key: task.key });
  scope.reportReleased(task.key);
  enterReleased(scope, task);
  if (task.dependents.size === 0) return;
  for (const dependent of task.dependents) {
    if (!dependent.isToBeComputed) continue;
    // Not by recommendation: that would override one that frees the dependent in the same event.
    tables.ready.delete(dependent);
    tables.constrained.delete(dependent);
    dependent.state = 'waiting';
    dependent.waitingForData.add(task);
    task.waiters.add(dependent);
    scope.recommend(task, 'fetch');
  }
}

/** Forgets the task unless another one has come to depend on it in the meantime. */
function releasedToForgotten(scope: WorkerScope, task: WorkerTask): void {
  if (task.dependents.size > 0) return;
  unlinkDependencies(scope, task);
  scope.tables.clearHolders(task);
  task.state = 'forgotten';
  scope.tables.tasks.delete(task.key);
}

/** All inputs are here. */
function waitingToReady(scope: WorkerScope, task: WorkerTask): void {
  if (scope.tables.quota?.isTooLarge(task) === true) {
    task.failure = tooLarge(scope, task);
    scope.recommend(task, 'error');
    return;
  }
  if (task.resources !== undefined) {
    scope.recommend(task, 'constrained');
    return;
  }
  task.state = 'ready';
  task.readySince = scope.tables.batchCount;
  scope.tables.ready.add(task);
}

/** Fails a task at once that needs more than this worker has, because it could never begin. */
function waitingToConstrained(scope: WorkerScope, task: WorkerTask): void {
  const lacking = lackingResource(scope, task);
  if (lacking !== undefined) {
    task.failure = lacking;
    scope.recommend(task, 'error');
    return;
  }
  task.state = 'constrained';
  task.readySince = scope.tables.batchCount;
  scope.tables.constrained.add(task);
}

/** An input arrived that cannot be kept, or resources lack. */
function waitingToError(scope: WorkerScope, task: WorkerTask): void {
  stopWaiting(task);
  releaseUnneeded(scope, task);
  executingToError(scope, task);
}

function readyToReleased(scope: WorkerScope, task: WorkerTask): void {
  scope.tables.ready.delete(task);
  scope.tables.constrained.delete(task);
  enterReleased(scope, task);
}

/** `nextToExecute` has made sure of a thread and of the resources. */
function readyToExecuting(scope: WorkerScope, task: WorkerTask): void {
  const { tables } = scope;
  tables.ready.delete(task);
  tables.constrained.delete(task);
  const isShort = !task.isConcurrent && tables.isShort(task);
  tables.beginRun(task);
  task.state = 'executing';
  const { key, runId, runSpec, annotations, isActor, isConcurrent, isRepeated } = task;
  const dependencies = keysOf(task.dependencies);
  const run: Execute = { kind: 'execute', key, runId, runSpec, dependencies, isShort };
  const isPlain = annotations === undefined && !isActor && !isConcurrent && !isRepeated;
  scope.emit(
    isPlain
      ? run
      : {
          ...run,
          ...(annotations === undefined ? {} : { annotations }),
          ...(isActor ? { actor: true } : {}),
          ...(isConcurrent ? { isConcurrent: true } : {}),
          ...(isRepeated ? { isRepeated } : {}),
        },
  );
}

function executingToMemory(scope: WorkerScope, task: WorkerTask): void {
  enterMemory(scope, task);
  reportFinished(scope, task);
}

/** A tombstone stays until the scheduler frees the key. */
function executingToError(scope: WorkerScope, task: WorkerTask): void {
  const failure = task.failure ?? localFailure('ERR_TASK', `"${task.key}" failed without a reason`);
  task.state = 'error';
  unlinkDependencies(scope, task);
  const { key, runId, timings } = task;
  const measured = timings.length === 0 ? undefined : { timings };
  const overdue = scope.tables.isOverdue(runId) ? { isOverdue: true } : undefined;
  const { stimulusId } = scope;
  scope.report({ op: 'task-erred', key, runId, failure, ...measured, ...overdue, stimulusId });
  // A copy elsewhere may still serve those that wait for it here.
  if (task.waiters.size > 0) scope.recommend(task, 'fetch');
}

/** The task gave itself back. */
function executingToRescheduled(scope: WorkerScope, task: WorkerTask): void {
  scope.report({ op: 'reschedule', key: task.key, stimulusId: scope.stimulusId });
  enterReleased(scope, task);
}

/** A run cannot be stopped, only asked to. */
function executingToReleased(scope: WorkerScope, task: WorkerTask): void {
  task.state = 'cancelled';
  task.previous = 'executing';
  unlinkDependencies(scope, task);
  if (task.waiters.size > 0) scope.recommend(task, 'fetch');
  const { killTimeoutMs } = scope;
  const limit = killTimeoutMs === undefined ? {} : { killTimeoutMs };
  scope.emit({ kind: 'abort-execution', key: task.key, ...limit });
}

function tooLarge({ tables }: WorkerScope, task: WorkerTask): TaskFailure {
  const needed = tables.quota?.needOf(task) ?? 0;
  const { address, memoryQuota } = tables.options;
  return localFailure(
    'ERR_OUT_OF_MEMORY',
    `"${task.key}" says that it needs ${needed} bytes; the memory quota of the worker ${address} is ${memoryQuota?.quotaBytes ?? 0}`,
  );
}

function lackingResource(scope: WorkerScope, task: WorkerTask): TaskFailure | undefined {
  const { address, resources } = scope.tables.options;
  for (const [name, needed] of Object.entries(task.resources ?? {})) {
    const offered = resources[name] ?? 0;
    if (needed <= offered) continue;
    return localFailure(
      'ERR_NO_WORKER',
      `"${task.key}" needs ${needed} of the resource "${name}"; the worker ${address} offers ${offered}`,
    );
  }
  return undefined;
}

const NO_KEYS: readonly string[] = [];

function keysOf(tasks: LazySet<WorkerTask>): readonly string[] {
  return tasks.size === 0 ? NO_KEYS : Array.from(tasks, (task) => task.key);
}

/** Unlinks a task from what it waits for. */
function stopWaiting(task: WorkerTask): void {
  if (task.waitingForData.size === 0) return;
  for (const dependency of task.waitingForData) dependency.waiters.delete(task);
  task.waitingForData.clear();
}

/**
 * Forgets the outcome of a task, not where copies are nor how to compute it. Tasks here that still
 * wait for it get a copy, if there is one.
 */
function enterReleased(scope: WorkerScope, task: WorkerTask): void {
  stopWaiting(task);
  task.state = 'released';
  task.previous = undefined;
  task.next = undefined;
  task.type = undefined;
  task.timings = NO_TIMINGS;
  task.failure = undefined;
  releaseUnneeded(scope, task);
  if (task.waiters.size > 0) scope.recommend(task, 'fetch');
  else if (task.dependents.size === 0) scope.recommend(task, 'forgotten');
}

/** Cancels the fetching of results that only this task needed. */
function releaseUnneeded(scope: WorkerScope, task: WorkerTask): void {
  if (task.dependencies.size === 0) return;
  for (const dependency of task.dependencies) {
    if (isFetchedFor(dependency) && dependency.waiters.size === 0) {
      scope.recommend(dependency, 'released');
    }
  }
}

/** True when it is fetched for the sake of other tasks here. */
function isFetchedFor({ state, next, isReplicaWanted }: WorkerTask): boolean {
  if (isReplicaWanted) return false;
  if (state === 'resumed') return next === 'fetch';
  return state === 'fetch' || state === 'flight' || state === 'missing';
}

/** A task out of play needs its inputs no more. */
export function unlinkDependencies(scope: WorkerScope, task: WorkerTask): void {
  if (task.dependencies.size === 0) return;
  for (const dependency of task.dependencies) {
    dependency.dependents.delete(task);
    if (dependency.state === 'released' && dependency.dependents.size === 0) {
      scope.recommend(dependency, 'forgotten');
    }
  }
  task.dependencies.clear();
}

/** Transitions from one state, by what is recommended. */
export type WorkerTableRow = Readonly<Partial<Record<WorkerTarget, WorkerTransition>>>;

/**
 * The transitions by start and target. A pair that is missing here goes through `released`; if that
 * is impossible, it is a bug.
 *
 * A transition need not reach its target: it may leave a task in its state (a transfer continues),
 * or lead it elsewhere (a run cannot be stopped, so its task is cancelled).
 */
export const WORKER_TRANSITIONS = {
  released: {
    waiting: releasedToWaiting,
    fetch: releasedToFetch,
    missing: releasedToMissing,
    memory: enterMemory, // A client has put the result here and reports it to the scheduler itself.
    forgotten: releasedToForgotten,
  },
  waiting: {
    ready: waitingToReady,
    constrained: waitingToConstrained,
    error: waitingToError,
    released: enterReleased,
  },
  ready: {
    executing: readyToExecuting,
    released: readyToReleased,
  },
  constrained: {
    executing: readyToExecuting,
    released: readyToReleased,
  },
  executing: {
    memory: executingToMemory,
    waiting: releasedToWaiting,
    error: executingToError,
    rescheduled: executingToRescheduled,
    released: executingToReleased,
  },
  fetch: {
    flight: fetchToFlight,
    missing: fetchToMissing,
    released: fetchToReleased,
  },
  flight: {
    memory: flightToMemory,
    fetch: flightToFetch,
    missing: releasedToMissing,
    released: flightToReleased,
  },
  missing: {
    fetch: missingToFetch,
    released: missingToReleased,
  },
  memory: { released: memoryToReleased },
  error: { released: enterReleased },
  cancelled: {
    fetch: cancelledToFetch,
    waiting: cancelledToWaiting,
    released: cancelledToReleased,
  },
  resumed: {
    fetch: cancelledToFetch,
    waiting: cancelledToWaiting,
    released: resumedToReleased,
  },
  forgotten: {},
} as const satisfies Record<WorkerTaskStateName, WorkerTableRow>;
