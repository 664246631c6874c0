import type { CancelKeys } from '../../messages/stimulus.ts';
import type { ClientState, TaskState } from '../../state/task.ts';
import type { KernelScope } from '../scope.ts';
import { releaseWants } from '../transitions/task-effects.ts';
import { knownTasks } from './known-tasks.ts';

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
  const cancelled = new Set<TaskState>();
  for (const task of knownTasks(scope, keys)) {
    yield* collectCancelled(scope, { start: task, client, force, cancelled });
  }
  if (force) for (const intake of scope.intakes) intake.cancel(cancelled, why);
  const affected = force ? [...scope.cluster.clients.values()] : [client];
  for (const other of affected) {
    for (const wanted of wantedSlices(scope, other, cancelled)) {
      // Of the stimulus that continues it, too.
      scope.killTimeoutMs = killTimeoutMs;
      if (wanted.length > 0) {
        const of = wanted.map(({ key }) => key);
        scope.outbox.toClient(other, { op: 'cancelled-keys', keys: of, ...why });
        releaseWants(scope, other, wanted);
      }
      if (wanted.length >= scope.options.sliceTransitions) yield;
    }
  }
}

interface Collection {
  readonly start: TaskState;
  readonly client: ClientState;
  readonly force: boolean;
  readonly cancelled: Set<TaskState>;
}

/**
 * Dependents first. For a task that other clients want as well, only the caller's want ends. An
 * intermediate result that no client wants does not prevent the cancellation of tasks after it.
 */
function* collectCancelled(
  { options }: KernelScope,
  { start, client, force, cancelled }: Collection,
): Generator<void, void> {
  // What is yet to be visited, each list from its end.
  const stack: TaskState[][] = [[start]];
  const order: TaskState[] = [];
  const seen = new Set<TaskState>();
  let untilPause = options.sliceTransitions;
  for (let list = stack.at(-1); list !== undefined; list = stack.at(-1)) {
    const task = list.pop();
    if (task === undefined) stack.pop();
    if (task === undefined || seen.has(task)) continue;
    seen.add(task);
    order.push(task);
    if (--untilPause <= 0) {
      yield;
      untilPause = options.sliceTransitions;
    }
    const isOnlyOurs = task.whoWants.size === 1 && task.whoWants.has(client);
    if (!force && !isOnlyOurs) continue;
    stack.push([...task.dependents]);
  }
  for (let index = order.length - 1; index >= 0; index--) {
    cancelled.add(order[index] as TaskState);
    if (--untilPause > 0) continue;
    yield;
    untilPause = options.sliceTransitions;
  }
}

/** Those that the client wants when their turn comes, at most `sliceTransitions` at once. */
function* wantedSlices(
  { options }: KernelScope,
  client: ClientState,
  cancelled: Iterable<TaskState>,
): Generator<readonly TaskState[], void> {
  let wanted: TaskState[] = [];
  for (const task of cancelled) {
    if (!client.wantsWhat.has(task)) continue;
    wanted.push(task);
    if (wanted.length < options.sliceTransitions) continue;
    yield wanted;
    wanted = [];
  }
  yield wanted;
}
