import type {
  ClientDesiresKeys,
  ClientReleasesKeys,
  HeartbeatClient,
  RegisterClient,
  RemoveClient,
  RefuseGraph,
  ReportKey,
  UpdateGraph,
} from '../messages/stimulus.ts';
import { UNKNOWN_KEY } from '../messages/to-client.ts';
import { ClientState } from '../state/cluster.ts';
import { addWant } from '../state/relations.ts';
import type { TaskState } from '../state/task.ts';
import { SteadySet } from '../util/collections.ts';
import { begin, inSlices, isAllButForgotten } from './agenda.ts';
import { dropIntakes, GraphIntake, wantedBy } from './graph-intake.ts';
import type { KernelScope } from './scope.ts';
import { dropFireAndForget, releaseWants, reportState } from './task-effects.ts';
import { clearAgenda, settle } from './transitions.ts';

// Handlers for clients that join, leave, want and release keys. Source: Dask's
// `client_desires_keys` and others.

export function onRegisterClient(scope: KernelScope, stimulus: RegisterClient): void {
  if (scope.cluster.clients.has(stimulus.client)) return;
  // Many keys pass through it; service clients, of which there may be thousands, want few.
  const wantsWhat = new SteadySet<TaskState>();
  const client = new ClientState(stimulus.client, scope.nowMs, stimulus.versions, false, wantsWhat);
  scope.cluster.clients.set(client.key, client);
  for (const hook of scope.ports.hooks.clientAdded) hook(client, scope.stimulusId);
}

export function onRemoveClient(scope: KernelScope, stimulus: RemoveClient): void {
  const { cluster } = scope;
  const client = cluster.clients.get(stimulus.client);
  if (client === undefined) return;
  dropIntakes(scope, client);
  const rest = inSlices(
    scope,
    [...client.wantsWhat],
    (tasks) => releaseWants(scope, client, tasks),
    () => {
      settle(scope);
      cluster.clients.delete(client.key);
      for (const hook of scope.ports.hooks.clientRemoved) hook(client, scope.stimulusId);
    },
  );
  if (rest !== undefined) rest.mustEnd = true;
}

export function onHeartbeatClient(scope: KernelScope, stimulus: HeartbeatClient): void {
  const client = scope.cluster.clients.get(stimulus.client);
  if (client !== undefined) client.lastSeenMs = scope.nowMs;
}

/**
 * Wanting a key keeps its result alive; it does not start a computation (`update-graph` does).
 * Unknown keys are cancelled at once, so that the client does not wait for them.
 */
export function onClientDesiresKeys(scope: KernelScope, stimulus: ClientDesiresKeys): void {
  const { keys, isAll = false } = stimulus;
  const client = clientOnDemand(scope, stimulus.client);
  // What another client cancels meanwhile was wanted before this came, and is given up: the client is told so.
  client.cancelled = new Set();
  inSlices(
    scope,
    keys,
    (slice) => {
      // It may have left meanwhile.
      if (scope.cluster.clients.get(client.key) === client) desire(scope, client, slice);
    },
    () => {
      client.cancelled = undefined;
      if (isAll) releaseOthers(scope, client, keys);
    },
  );
}

function desire(scope: KernelScope, client: ClientState, keys: readonly string[]): void {
  const unknown: string[] = [];
  for (const key of keys) {
    if (client.cancelled?.has(key) === true) continue;
    const task = scope.cluster.tasks.get(key);
    if (task === undefined || isAllButForgotten(task)) {
      unknown.push(key);
      continue;
    }
    want(scope, client, task);
    if (task.state === 'memory' || task.state === 'erred') dropFireAndForget(scope, task);
  }
  if (unknown.length > 0) {
    scope.outbox.toClient(client, { op: 'cancelled-keys', keys: unknown, reason: UNKNOWN_KEY });
  }
}

/** The client stops wanting all but these keys. */
function releaseOthers(scope: KernelScope, client: ClientState, keys: readonly string[]): void {
  const kept = new Set(keys);
  const others = [...client.wantsWhat].filter(({ key }) => !kept.has(key));
  inSlices(scope, others, (tasks) => releaseWants(scope, client, tasks));
}

function want(scope: KernelScope, client: ClientState, task: TaskState): void {
  addWant(client, task);
  reportState(scope, task, client);
}

export function onClientReleasesKeys(scope: KernelScope, stimulus: ClientReleasesKeys): void {
  const client = scope.cluster.clients.get(stimulus.client);
  if (client === undefined) return;
  inSlices(scope, stimulus.keys, (keys) => releaseWants(scope, client, knownTasks(scope, keys)));
}

export function onRefuseGraph(
  scope: KernelScope,
  { client: name, keys: requested, plugin, reason }: RefuseGraph,
): void {
  const client = scope.cluster.clients.get(name);
  if (client === undefined) return;
  const keys = requested.filter((key) => wantedBy(scope, client, key) === undefined);
  if (keys.length > 0) {
    scope.outbox.toClient(client, { op: 'cancelled-keys', keys, reason, plugin });
  }
  const some = requested.slice(0, REFUSED_KEYS_SHOWN);
  const refusal = { client: name, keys: some, keyCount: requested.length, plugin, reason };
  scope.outbox.event('scheduler', { action: 'graph-refused', ...refusal });
}

/** Keys that the event of a refused graph names. */
const REFUSED_KEYS_SHOWN = 10;

export function onReportKey(scope: KernelScope, stimulus: ReportKey): void {
  const { client: name, key } = stimulus;
  const client = scope.cluster.clients.get(name);
  if (client === undefined) return;
  const task = scope.cluster.tasks.get(key);
  if (task !== undefined && !isAllButForgotten(task)) {
    reportState(scope, task, client);
    return;
  }
  scope.outbox.toClient(client, { op: 'cancelled-keys', keys: [key], reason: UNKNOWN_KEY });
}

/** All clients stop wanting all tasks; tasks that no client wants are forgotten. */
export function onRestart(scope: KernelScope): void {
  const { cluster } = scope;
  // Nothing may be left for later: what comes next is a new beginning.
  scope.sliceEnd = Infinity;
  dropIntakes(scope);
  for (const client of cluster.clients.values()) {
    releaseWants(scope, client, [...client.wantsWhat]);
  }
  settle(scope);
  clearAgenda(scope);
  cluster.clearPrefixes();
  cluster.erredTasks.length = 0;
  for (const client of cluster.clients.values()) {
    client.cancelled = undefined;
    scope.outbox.toClient(client, { op: 'restart' });
  }
  for (const hook of scope.ports.hooks.restarted) hook(scope.stimulusId);
}

/**
 * Services such as published data sets want keys under their own client name, which is created on
 * demand.
 */
export function clientOnDemand(scope: KernelScope, key: string): ClientState {
  const { clients } = scope.cluster;
  let client = clients.get(key);
  if (client === undefined) {
    client = new ClientState(key, scope.nowMs);
    clients.set(key, client);
  }
  return client;
}

/** The tasks of those keys that the scheduler knows. */
function knownTasks({ cluster }: KernelScope, keys: readonly string[]): TaskState[] {
  return keys
    .map((key) => cluster.tasks.get(key))
    .filter((task): task is TaskState => task !== undefined);
}

// A client submits a graph. Source: Dask's `update_graph`.

/** A graph of more tasks than a slice is taken in by slices. O(tasks log tasks + dependencies). */
export function onUpdateGraph(scope: KernelScope, stimulus: UpdateGraph): void {
  const client = clientOnDemand(scope, stimulus.client);
  if (stimulus.tasks.length > scope.options.sliceTransitions) {
    const intake = new GraphIntake(scope, stimulus, client, true);
    scope.intakes.push(intake);
    begin(scope, intake.steps, () => scope.intakes[0] === intake);
    return;
  }
  const intake = new GraphIntake(scope, stimulus, client, false);
  try {
    while (intake.steps.next().done !== true);
  } catch (error) {
    intake.abandon();
    throw error;
  }
}
