import type {
  CancelKeys,
  ClientDesiresKeys,
  ClientReleasesKeys,
  GraphTask,
  HeartbeatClient,
  RegisterClient,
  RemoveClient,
  ReportKey,
  Retry,
  UpdateGraph,
} from '../messages/stimulus.ts';
import { GenericClient } from '../state/cluster.ts';
import { addWant } from '../state/relations.ts';
import type { ClientState, TaskState } from '../state/task.ts';
import { SteadySet } from '../util/collections.ts';
import { dropIntakes, GraphIntake } from './graph-intake.ts';
import { cancelKeys, retryKeys } from './on-keys.ts';
import { unassignedSince } from './on-membership.ts';
import { isAllButForgotten } from './recommendations.ts';
import type { KernelScope } from './scope.ts';
import { dropFireAndForget, releaseWants, reportState } from './task-effects.ts';
import { settle, settleDeferredReleases, settleVisits } from './transitions.ts';

// Handlers for clients that join, leave, want and release keys. Source: Dask's
// `client_desires_keys` and others.

export function onRegisterClient(scope: KernelScope, stimulus: RegisterClient): void {
  if (scope.cluster.clients.has(stimulus.client)) return;
  // Many keys pass through it; service clients, of which there may be thousands, want few.
  const wantsWhat = new SteadySet<TaskState>();
  const client = new GenericClient<TaskState>(
    stimulus.client,
    scope.nowMs,
    stimulus.versions,
    false,
    wantsWhat,
  );
  scope.cluster.clients.set(client.key, client);
  for (const hook of scope.ports.hooks.clientAdded) hook(client, scope.stimulusId);
}

export function onRemoveClient(scope: KernelScope, stimulus: RemoveClient): void {
  const { cluster } = scope;
  const client = cluster.clients.get(stimulus.client);
  if (client === undefined) return;
  dropIntakes(scope, client);
  releaseWants(scope, client, [...client.wantsWhat]);
  settle(scope);
  cluster.clients.delete(client.key);
  for (const hook of scope.ports.hooks.clientRemoved) hook(client, scope.stimulusId);
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
  const client = clientOnDemand(scope, stimulus.client);
  const unknown: string[] = [];
  for (const key of stimulus.keys) {
    const task = scope.cluster.tasks.get(key);
    if (task === undefined || isAllButForgotten(task)) {
      unknown.push(key);
      continue;
    }
    want(scope, client, task);
    if (task.state === 'memory' || task.state === 'erred') dropFireAndForget(scope, task);
  }
  if (unknown.length === 0) return;
  scope.outbox.toClient(client, {
    op: 'cancelled-keys',
    keys: unknown,
    reason: 'the scheduler does not know them',
  });
}

function want(scope: KernelScope, client: ClientState, task: TaskState): void {
  addWant(client, task);
  reportState(scope, task, client);
}

export function onClientReleasesKeys(scope: KernelScope, stimulus: ClientReleasesKeys): void {
  const client = scope.cluster.clients.get(stimulus.client);
  if (client !== undefined) releaseWants(scope, client, knownTasks(scope, stimulus.keys));
}

/**
 * Cancels the tasks that only this client wants, and their dependents; with `force` also tasks that
 * other clients want. Running code is not interrupted here: the worker receives a message that the
 * result is not needed.
 */
export function onCancelKeys(scope: KernelScope, stimulus: CancelKeys): void {
  const client = scope.cluster.clients.get(stimulus.client);
  if (client === undefined) return;
  scope.killTimeoutMs = stimulus.killTimeoutMs;
  begin(scope, cancelKeys(scope, stimulus, client));
}

/** Runs it to its first pause. */
function begin({ continuations }: KernelScope, work: Generator<void, void>): void {
  if (work.next().done !== true) continuations.push(work);
}

/** Continues what earlier stimuli have left: failures and retries, releases, then the oldest cancellation, retry or start of dependents. */
export function onContinueSettling(scope: KernelScope): void {
  settleVisits(scope);
  settleDeferredReleases(scope);
  if (scope.isSliceOver || !scope.visits.isEmpty) return;
  // One that throws is over.
  const oldest = scope.continuations.shift();
  if (oldest !== undefined && oldest.next().done !== true) scope.continuations.unshift(oldest);
}

/** A failure that has not reached all its dependents does so first: the retry is for them, too. */
export function onRetry(scope: KernelScope, stimulus: Retry): void {
  const retry = retryKeys(scope, stimulus);
  if (scope.visits.isEmpty) begin(scope, retry);
  else scope.continuations.push(retry);
}

export function onReportKey(scope: KernelScope, stimulus: ReportKey): void {
  const { client: name, key } = stimulus;
  const client = scope.cluster.clients.get(name);
  if (client === undefined) return;
  const task = scope.cluster.tasks.get(key);
  if (task !== undefined && !isAllButForgotten(task)) {
    reportState(scope, task, client);
    return;
  }
  const reason = 'the scheduler does not know it';
  scope.outbox.toClient(client, { op: 'cancelled-keys', keys: [key], reason });
}

/** All clients stop wanting all tasks; tasks that no client wants are forgotten. */
export function onRestart(scope: KernelScope): void {
  const { cluster } = scope;
  // Nothing may be left for later: what comes next is a new beginning.
  scope.sliceEnd = Infinity;
  dropIntakes(scope);
  scope.continuations.length = 0;
  scope.startingLater.length = 0;
  scope.visits.clear();
  for (const client of cluster.clients.values()) {
    releaseWants(scope, client, [...client.wantsWhat]);
  }
  settle(scope);
  settleDeferredReleases(scope);
  cluster.clearPrefixes();
  cluster.erredTasks.length = 0;
  for (const client of cluster.clients.values()) scope.outbox.toClient(client, { op: 'restart' });
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
    client = new GenericClient<TaskState>(key, scope.nowMs);
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

/** O(tasks log tasks + dependencies), unless the graph is submitted in slices. */
export function onUpdateGraph(scope: KernelScope, stimulus: UpdateGraph): void {
  const intake = new GraphIntake(scope, stimulus, clientOnDemand(scope, stimulus.client));
  if (stimulus.sliceTasks !== undefined) scope.intakes.push(intake);
  else takeInAtOnce(intake);
  if (stimulus.firstRunIds !== undefined) noteFirstRuns(scope, stimulus, stimulus.firstRunIds);
}

function takeInAtOnce(intake: GraphIntake): void {
  try {
    while (!intake.advance());
  } catch (error) {
    intake.abandon();
    throw error;
  }
}

/** From a journal: proofs for results of workers that come back. O(tasks). */
function noteFirstRuns(
  { cluster }: KernelScope,
  { tasks }: UpdateGraph,
  firstRunIds: readonly number[],
): void {
  for (let index = 0; index < tasks.length; index++) {
    const task = cluster.tasks.get((tasks[index] as GraphTask).key);
    const firstRunId = firstRunIds[index] ?? firstRunIds[0] ?? 0;
    if (task?.runId === -1) task.runId = unassignedSince(firstRunId);
  }
}

/** Takes in one more slice of the oldest pending graph. No-op when there is none. */
export function onContinueGraph(scope: KernelScope): void {
  const [intake] = scope.intakes;
  if (intake?.advance() === true) scope.intakes.shift();
}
