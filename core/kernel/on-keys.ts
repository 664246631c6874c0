import type { Fairness } from '../api/policies.ts';
import type {
  CancelKeys,
  ReleaseTasks,
  RestrictionChange,
  Retry,
  SetPriority,
  SetRestrictions,
  SubmitAgain,
} from '../messages/stimulus.ts';
import type { ClientState, Priority, Restrictions, TaskState, WorkerState } from '../state/task.ts';
import { IdSet, pushTo } from '../util/collections.ts';
import { begin, Pace } from './agenda.ts';
import { askPolicy, nameAnswer, type Question } from './ask-policy.ts';
import { queueOf } from './queues.ts';
import type { CancellationCause, KernelScope } from './scope.ts';
import { releaseWants } from './task-effects.ts';
import { settle } from './transitions.ts';

/**
 * Cancels the tasks that only this client wants, and their dependents; with `force` also tasks that
 * other clients want. Running code is not interrupted here: the worker receives a message that the
 * result is not needed. O(dependents).
 */
export function onCancelKeys(scope: KernelScope, stimulus: CancelKeys): void {
  const client = scope.cluster.clients.get(stimulus.client);
  if (client !== undefined) begin(scope, cancelKeys(scope, stimulus, client));
}

function* cancelKeys(
  scope: KernelScope,
  stimulus: CancelKeys,
  client: ClientState,
): Generator<void, void> {
  const { force, keepsDependents = false, killTimeoutMs, keys } = stimulus;
  const { reason = 'cancelled', message } = stimulus;
  const why = { reason, message };
  const pace = new Pace(scope.options.sliceTransitions);
  const collection: Collection = {
    ...{ client, force, keepsDependents, pace },
    ...{ seen: new IdSet(), cancelled: [] },
  };
  for (const key of keys) {
    const task = scope.cluster.tasks.get(key);
    if (task !== undefined) yield* collectCancelled(collection, task);
    else if (pace.isPauseDue()) yield;
  }
  const { cancelled } = collection;
  const affected = force ? [...scope.cluster.clients.values()] : [client];
  for (const other of affected) {
    let from = 0;
    for (let index = 1; index <= cancelled.length; index++) {
      const isPauseDue = pace.isPauseDue();
      if (!isPauseDue && index < cancelled.length) continue;
      const slice = cancelled.slice(from, index);
      from = index;
      // Of the stimulus that continues it, too.
      scope.killTimeoutMs = killTimeoutMs;
      if (force) cancelIntakes(scope, other, slice, why);
      endWants(scope, other, slice, why);
      if (isPauseDue) yield;
    }
  }
}

interface Collection {
  readonly client: ClientState;
  readonly force: boolean;
  readonly keepsDependents: boolean;
  readonly pace: Pace;
  /** Ids: a task that gets the id of one that was forgotten meanwhile is not what was cancelled. */
  readonly seen: IdSet;
  readonly cancelled: TaskState[];
}

/**
 * Dependents first. For a task that other clients want as well, only the caller's want ends. An
 * intermediate result that no client wants does not prevent the cancellation of tasks after it.
 */
function* collectCancelled(collection: Collection, start: TaskState): Generator<void, void> {
  const { client, force, keepsDependents, pace, seen, cancelled } = collection;
  // What is yet to be visited, each list from its end; never copied, because it may be very long.
  const stack: { readonly tasks: readonly TaskState[]; left: number }[] = [
    { tasks: [start], left: 1 },
  ];
  const order: TaskState[] = [];
  for (let list = stack.at(-1); list !== undefined; list = stack.at(-1)) {
    if (pace.isPauseDue()) yield;
    const task = list.tasks[--list.left];
    if (list.left <= 0) stack.pop();
    if (task === undefined || task.state === 'forgotten' || !seen.add(task.id)) continue;
    order.push(task);
    const isOnlyOurs = task.whoWants.size === 1 && task.whoWants.has(client);
    const tasks = task.dependentsWithForgotten;
    if (force || (isOnlyOurs && !keepsDependents)) stack.push({ tasks, left: tasks.length });
  }
  for (let index = order.length - 1; index >= 0; index--) {
    cancelled.push(order[index] as TaskState);
    if (pace.isPauseDue()) yield;
  }
}

/** Graphs that are being taken in do not get them, even those that came after the cancellation. */
function cancelIntakes(
  scope: KernelScope,
  client: ClientState,
  cancelled: readonly TaskState[],
  why: CancellationCause,
): void {
  for (const intake of scope.intakes) if (intake.client === client) intake.cancel(cancelled, why);
}

function endWants(
  scope: KernelScope,
  client: ClientState,
  cancelled: readonly TaskState[],
  why: CancellationCause,
): void {
  const wanted = cancelled.filter((task) => client.wantsWhat.has(task));
  if (wanted.length === 0) return;
  const keys = wanted.map(({ key }) => key);
  scope.outbox.toClient(client, { op: 'cancelled-keys', keys, ...why });
  releaseWants(scope, client, wanted);
}

// A client moves tasks within the order in which they run.

/** Keys that one event names. */
const NAMED_MAX = 100;

/**
 * Moves queued tasks within the queue, and notifies workers of the tasks that were sent to them;
 * nothing else happens at once. A client may move a task that it wants, even if other clients want
 * it; the last change counts. Data has no place in the order. O(keys · log queue), and with
 * `raiseInputs` O(inputs of the tasks).
 */
export function onSetPriority(scope: KernelScope, stimulus: SetPriority): void {
  const { cluster } = scope;
  const client = cluster.clients.get(stimulus.client);
  if (client === undefined) return;
  const moved = new Set<TaskState>();
  const ignored: string[] = [];
  for (let index = 0; index < stimulus.keys.length; index++) {
    const key = stimulus.keys[index] as string;
    const userPriority = stimulus.userPriorities[index];
    const task = cluster.tasks.get(key);
    const isOurs = task !== undefined && task.rank >= 0 && client.wantsWhat.has(task);
    if (!isOurs || userPriority === undefined) {
      ignored.push(key);
      continue;
    }
    // Not a unary minus: a priority of 0 must not become -0.
    move(scope, task, 0 - userPriority, moved);
    if (stimulus.raiseInputs === true) raiseInputs(scope, task, moved);
  }
  tellWorkers(scope, moved);
  if (moved.size + ignored.length === 0) return;
  scope.outbox.event('scheduler', {
    action: 'set-priority',
    client: client.key,
    stimulusId: scope.stimulusId,
    count: moved.size,
    keys: Array.from(moved, keyOf).slice(0, NAMED_MAX),
    ignored: ignored.slice(0, NAMED_MAX),
  });
}

/** No-op when it is there already. The story remembers it as a step that ends where it began. */
function move(
  scope: KernelScope,
  task: TaskState,
  negatedUserPriority: number,
  moved: Set<TaskState>,
): void {
  if (task.negatedUserPriority === negatedUserPriority) return;
  reorder(scope, task, () => {
    task.negatedUserPriority = negatedUserPriority;
  });
  scope.story.record(scope.story.mark(), task.key, task.state, task.state, scope.nowMs);
  scope.story.endStep();
  moved.add(task);
}

function reorder(scope: KernelScope, task: TaskState, change: () => void): void {
  queueOf(scope, task).reorder(task, change);
  if (task.state === 'queued' && task.limit === undefined) askPolicy(scope, PRIORITY_CHANGED, task);
}

/** Gives tasks other generations, where the fairness policy expected something else when they were submitted. */
export function redate(scope: KernelScope): void {
  const dates = askPolicy(scope, REVISED, undefined);
  if (dates === undefined) return;
  const moved = new Set<TaskState>();
  for (const [key, generation] of dates) {
    const task = scope.cluster.tasks.get(key);
    if (task === undefined || task.rank < 0 || task.generation === generation) continue;
    reorder(scope, task, () => {
      task.generation = generation;
    });
    moved.add(task);
  }
  tellWorkers(scope, moved);
}

/** Raises the inputs that are still to be computed, so that they come no later than the task itself. */
function raiseInputs(scope: KernelScope, start: TaskState, moved: Set<TaskState>): void {
  const { negatedUserPriority } = start;
  const needed = new Set<TaskState>([start]);
  for (const task of needed) {
    // Only what waits for inputs has some that are still to be computed.
    if (task.state !== 'waiting') continue;
    for (const input of task.dependencies) {
      if (!input.isActive || input.rank < 0 || needed.has(input)) continue;
      needed.add(input);
      move(scope, input, Math.min(input.negatedUserPriority, negatedUserPriority), moved);
    }
  }
}

/** One message for each worker that was sent some of them. */
function tellWorkers(scope: KernelScope, moved: ReadonlySet<TaskState>): void {
  const { stimulusId } = scope;
  for (const [worker, all] of byWorker(moved)) {
    const tasks = all.filter((task) => !worker.longRunning.has(task));
    if (tasks.length === 0) continue;
    scope.outbox.toWorker(worker, {
      op: 'set-priority',
      keys: tasks.map(keyOf),
      runIds: tasks.map((task) => task.runId),
      priorities: tasks.map((task) => task.priority as Priority),
      stimulusId,
    });
  }
}

function byWorker(tasks: Iterable<TaskState>): Map<WorkerState, TaskState[]> {
  const tasksByWorker = new Map<WorkerState, TaskState[]>();
  for (const task of tasks) {
    const worker = task.processingOn;
    if (worker === undefined) continue;
    pushTo(tasksByWorker, worker, task);
  }
  return tasksByWorker;
}

// A task that is submitted again gets the best of what its submissions ask for.

/** O(keys · log queue). */
export function onSubmitAgain(scope: KernelScope, stimulus: SubmitAgain): void {
  const { cluster } = scope;
  const client = cluster.clients.get(stimulus.client);
  if (client === undefined) return;
  const again = new Resubmission(scope);
  for (const [index, key] of stimulus.keys.entries()) {
    const task = cluster.tasks.get(key);
    const { [index]: userPriority = -Infinity } = stimulus.userPriorities;
    const { [index]: timeLimitMs = 0 } = stimulus.timeLimitsMs;
    if (task !== undefined && client.wantsWhat.has(task)) {
      again.improve(task, userPriority, timeLimitMs);
    }
  }
  again.tellWorkers();
}

/** Improves tasks that were submitted before, and lets the workers know that have them. */
export class Resubmission {
  private readonly raised = new Set<TaskState>();
  private readonly extended = new Set<TaskState>();

  constructor(private readonly scope: KernelScope) {}

  /** @param timeLimitMs - Infinity: no limit */
  improve(task: TaskState, userPriority: number, timeLimitMs: number): void {
    // Not a unary minus: a priority of 0 must not become -0.
    const negated = 0 - userPriority;
    if (task.rank >= 0 && negated < task.negatedUserPriority) {
      move(this.scope, task, negated, this.raised);
    }
    if (timeLimitMs <= timeLimitOf(task.annotations)) return;
    const others = Object.entries(task.annotations ?? {}).filter(([name]) => name !== 'timeoutMs');
    if (timeLimitMs < Infinity) others.push(['timeoutMs', timeLimitMs]);
    task.annotations = Object.fromEntries(others);
    this.extended.add(task);
  }

  tellWorkers(): void {
    const { scope, raised, extended } = this;
    tellWorkers(scope, raised);
    const { stimulusId } = scope;
    for (const [worker, tasks] of byWorker(extended)) {
      scope.outbox.toWorker(worker, {
        op: 'extend-time-limits',
        keys: tasks.map(keyOf),
        runIds: tasks.map((task) => task.runId),
        timeLimitsMs: tasks.map(({ annotations }) => timeLimitOf(annotations)),
        stimulusId,
      });
    }
  }
}

/** Milliseconds that a run may take; Infinity: no limit. */
export function timeLimitOf(annotations: TaskState['annotations']): number {
  const limit = annotations?.['timeoutMs'];
  return typeof limit === 'number' && limit > 0 ? limit : Infinity;
}

const REVISED: Question<'fairness', undefined, ReturnType<NonNullable<Fairness['revise']>>> = {
  slot: 'fairness',
  ask: (policy, { cluster }) => policy.revise?.(cluster),
  refuse: (dates) => {
    if (dates === undefined) return undefined;
    if (!Array.isArray(dates))
      return `gave ${nameAnswer(dates)} instead of a list of keys and generations`;
    const wrong = dates.find(
      (each) => !Array.isArray(each) || !Number.isFinite(each[1]),
    ) as unknown;
    return wrong === undefined
      ? undefined
      : `gave ${nameAnswer(wrong)} as a key and its generation`;
  },
};

const PRIORITY_CHANGED: Question<'queuing', TaskState, void> = {
  slot: 'queuing',
  ask: (policy, { cluster }, task) => policy.priorityChanged?.(task, cluster),
  refuse: () => undefined,
};

function keyOf(task: TaskState): string {
  return task.key;
}

/**
 * Failed tasks without a failed dependency start again, and what failed with them follows. A failure that has not
 * reached all its dependents does so first: the retry is for them, too. O(keys + failed ancestors).
 */
export function onRetry(scope: KernelScope, stimulus: Retry): void {
  const retry = retryKeys(scope, stimulus, scope.failureNumber);
  const earlier = scope.agenda.filter(({ leftCount }) => leftCount > 0);
  begin(scope, retry, () => earlier.every(({ leftCount }) => leftCount === 0));
}

/** @param lastFailure - the number of the last failure when the client asked */
function* retryKeys(
  scope: KernelScope,
  { keys }: Retry,
  lastFailure: number,
): Generator<void, void> {
  const pace = new Pace(scope.options.sliceTransitions);
  const seen = new IdSet();
  const stack: TaskState[] = [];
  const isErred = ({ state, blame }: TaskState): boolean =>
    state === 'erred' && blame !== undefined && blame.failureNumber <= lastFailure;
  for (const key of keys) {
    const task = scope.cluster.tasks.get(key);
    if (task !== undefined && seen.add(task.id)) stack.push(task);
    if (pace.isPauseDue()) yield;
  }
  const roots: TaskState[] = [];
  for (let task = stack.pop(); task !== undefined; task = stack.pop()) {
    const erred = task.dependencies.filter(isErred);
    if (erred.length === 0) roots.push(task);
    for (const dependency of erred) if (seen.add(dependency.id)) stack.push(dependency);
    if (pace.isPauseDue()) yield;
  }
  const erred = roots.filter((root) => isErred(root) && !root.dependencies.some(isErred));
  scope.recommendAll(erred, 'waiting');
}

// Plugins steer single tasks: where they run, and that they run again.

/** O(changes). */
export function onSetRestrictions(scope: KernelScope, { changes }: SetRestrictions): void {
  for (const change of changes) {
    const task = scope.cluster.tasks.get(change.key);
    if (task === undefined) continue;
    if (change.workers !== undefined) restrictTo(task, change.workers);
    task.isQueueable = change.isQueueable ?? task.isQueueable;
    if (task.state === 'no-worker') scope.recommend(task, 'processing');
    // The queue holds only tasks that may go anywhere; it comes back if this is still one.
    else if (task.state === 'queued') scope.recommend(task, 'released');
  }
  settle(scope);
}

/** The last key first, so that what depends on others comes before them when it is named first. O(keys). */
export function onReleaseTasks(scope: KernelScope, { keys }: ReleaseTasks): void {
  for (let index = keys.length - 1; index >= 0; index--) {
    const task = scope.cluster.tasks.get(keys[index] as string);
    if (task?.runSpec === undefined || task.state === 'erred') continue;
    if (task.state !== 'released') scope.recommend(task, 'released');
  }
  settle(scope);
}

function restrictTo(task: TaskState, workers: NonNullable<RestrictionChange['workers']>): void {
  const { hosts, resources, loose } = task.restrictions ?? {};
  const isEmpty = workers.length === 0 && hosts === undefined && resources === undefined;
  task.restrictions = isEmpty
    ? undefined
    : {
        ...workerSets(workers),
        ...(hosts === undefined ? {} : { hosts }),
        ...(resources === undefined ? {} : { resources }),
        ...(loose === undefined ? {} : { loose }),
      };
}

function workerSets(entries: readonly string[]): Pick<Restrictions, 'workers' | 'names'> {
  const workers = new Set(entries.filter(isAddress));
  const names = new Set(entries.filter((entry) => !isAddress(entry)));
  return { ...(workers.size > 0 ? { workers } : {}), ...(names.size > 0 ? { names } : {}) };
}

function isAddress(entry: string): boolean {
  return entry.includes(':');
}
