import type { CancelKeys } from '../../messages/stimulus.ts';
import type { ClientState, TaskState } from '../../state/task.ts';
import { IdSet } from '../../util/collections/id-set.ts';
import type { CancellationCause, KernelScope } from '../scope.ts';
import { releaseWants } from '../transitions/task-effects.ts';
import { Pace } from '../pace.ts';

/**
 * Cancels keys and their dependents, `sliceTransitions` of them before each pause. The stimulus runs it to
 * its first pause; later ones continue it. O(dependents).
 */
export function* cancelKeys(
  scope: KernelScope,
  stimulus: CancelKeys,
  client: ClientState,
): Generator<void, void> {
  const { force, killTimeoutMs, keys, reason = 'cancelled', message } = stimulus;
  const why = { reason, ...(message === undefined ? {} : { message }) };
  const pace = new Pace(scope.options.sliceTransitions);
  const collection: Collection = { client, force, pace, seen: new IdSet(), cancelled: [] };
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
  const { client, force, pace, seen, cancelled } = collection;
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
    if (force || isOnlyOurs) stack.push({ tasks, left: tasks.length });
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
