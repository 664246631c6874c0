/** A client moves tasks within the order in which they run. */
import type { SetPriority } from '../../messages/stimulus.ts';
import type { Priority, TaskState, WorkerState } from '../../state/task.ts';
import { askPolicy, type Question } from '../placement/ask-policy.ts';
import { queueOf } from '../placement/queues.ts';
import type { KernelScope } from '../scope.ts';

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
  queueOf(scope, task).setUserPriority(task, negatedUserPriority);
  if (task.state === 'queued' && task.limit === undefined) askPolicy(scope, PRIORITY_CHANGED, task);
  scope.story.record(scope.story.mark(), task.key, task.state, task.state, scope.nowMs);
  scope.story.endStep();
  moved.add(task);
}

/** What is still to be computed before the task comes no later than the task itself. */
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
  const tasksByWorker = new Map<WorkerState, TaskState[]>();
  for (const task of moved) {
    const worker = task.processingOn;
    if (worker === undefined || worker.longRunning.has(task)) continue;
    const tasks = tasksByWorker.get(worker);
    if (tasks === undefined) tasksByWorker.set(worker, [task]);
    else tasks.push(task);
  }
  for (const [worker, tasks] of tasksByWorker) {
    scope.outbox.toWorker(worker, {
      op: 'set-priority',
      keys: tasks.map(keyOf),
      runIds: tasks.map((task) => task.runId),
      priorities: tasks.map((task) => task.priority as Priority),
      stimulusId,
    });
  }
}

const PRIORITY_CHANGED: Question<'queuing', TaskState, void> = {
  slot: 'queuing',
  ask: (policy, { cluster }, task) => policy.priorityChanged?.(task, cluster),
  refuse: () => undefined,
};

function keyOf(task: TaskState): string {
  return task.key;
}
