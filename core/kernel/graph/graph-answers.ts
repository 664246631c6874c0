/** The answers to a client that concern a graph instead of the results of its tasks. */
import type { TaskState, ClientState } from '../../state/task.ts';
import { reportState } from '../transitions/client-reports.ts';
import { schedulerFailure } from '../errors.ts';
import type { GraphPlan } from './graph-walk.ts';
import type { KernelScope } from '../scope.ts';

/** Reports requested keys that depend on unknown keys, or on keys that stand for something else. */
export function reportLost(scope: KernelScope, client: ClientState, lost: GraphPlan['lost']): void {
  for (const { key, missing, isTaken } of lost) {
    if (isTaken === true) {
      refuseTaken(scope, client, [key], missing);
      continue;
    }
    scope.outbox.toClient(client, {
      op: 'cancelled-keys',
      keys: [key],
      reason:
        key === missing
          ? 'the scheduler does not know it'
          : `it depends on ${missing}, which is neither in the graph nor known to the scheduler`,
    });
  }
}

/** These keys need one that stands for another computation already. */
export function refuseTaken(
  scope: KernelScope,
  client: ClientState,
  keys: readonly string[],
  taken: string,
): void {
  const reason = `the key "${taken}" stands for another value or computation already`;
  scope.outbox.toClient(client, { op: 'cancelled-keys', keys, reason, taken });
}

/** Nothing of a graph with a cycle was taken. */
export function refuseCycle(
  scope: KernelScope,
  client: ClientState,
  keys: readonly string[],
  cycle: readonly string[],
): void {
  const failure = schedulerFailure(
    'ERR_GRAPH_CYCLE',
    `the graph has a cycle: ${cycle.join(' -> ')}. Each of these depends on the next; break one link.`,
    { cycle },
  );
  for (const key of keys) {
    const known = scope.cluster.tasks.get(key);
    if (known !== undefined && client.wantsWhat.has(known)) {
      // It has another definition, and is not affected.
      reportState(scope, known, client);
      continue;
    }
    scope.outbox.toClient(client, { op: 'task-erred', key, blame: cycle[0] as string, failure });
  }
}

/** The tasks of a graph exist and are linked; none of them has started. */
export function reportSubmitted(
  scope: KernelScope,
  client: ClientState,
  keys: readonly string[],
  tasks: readonly TaskState[],
): void {
  const { stimulusId } = scope;
  for (const hook of scope.ports.hooks.graphUpdated) {
    hook({ client: client.key, keys, tasks, stimulusId });
  }
}
