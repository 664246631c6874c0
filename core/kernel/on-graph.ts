/** A client submits a graph. Source: behaviour.md section 3.5. */
import type { GraphTask, UpdateGraph } from '../messages/stimulus.ts';
import type { ClientState } from '../state/client.ts';
import { addWish, linkDependencies, setWantedReplicas } from '../state/relations.ts';
import { byPriority, type Restrictions, type TaskState } from '../state/task.ts';
import { reportState } from './client-reports.ts';
import { schedulerFailure } from './errors.ts';
import { planGraph, type GraphPlan } from './graph-walk.ts';
import { clientOnDemand } from './on-client.ts';
import { showGraph, wantsGraphs } from './prepare.ts';
import { generationOf, setGenerations, submissionOf } from './priorities.ts';
import { ranksOf } from './ranks.ts';
import type { KernelScope } from './scope.ts';
import { settle } from './transition-loop.ts';

/** O(tasks log tasks + dependencies). */
export function onUpdateGraph(scope: KernelScope, stimulus: UpdateGraph): void {
  const client = clientOnDemand(scope, stimulus.client);
  const plan = planGraph(scope.cluster, stimulus.tasks, stimulus.keys);
  if (plan.cycle !== undefined) {
    refuseCycle(scope, client, stimulus.keys, plan.cycle);
    return;
  }
  tellLost(scope, client, plan.lost);
  const { touched, fresh } = takeTasks(scope, stimulus, plan);
  for (const key of plan.keys) addWish(client, scope.cluster.tasks.get(key) as TaskState);
  if (fresh !== undefined) showGraph(scope, fresh);
  recommendTouched(scope, touched);
  for (const hook of scope.ports.hooks.graphUpdated) {
    hook({
      client: client.key,
      keys: plan.keys,
      tasks: touched,
      stimulusId: scope.stimulusId,
    });
  }
  const settled = wantedAndDone(scope, client, plan.keys);
  settle(scope);
  // What gets its result or its failure in this very stimulus has been reported by its transition.
  for (const task of settled) reportState(scope, task, client);
}

/** Wanted tasks whose result or failure was there before this graph. */
function wantedAndDone(
  { cluster }: KernelScope,
  client: ClientState,
  keys: readonly string[],
): TaskState[] {
  const done: TaskState[] = [];
  for (const key of keys) {
    const task = cluster.tasks.get(key);
    if (task === undefined || !client.wantsWhat.has(task)) continue;
    if (task.state === 'memory' || task.state === 'erred') done.push(task);
  }
  return done;
}

interface Taken {
  /** Tasks of the graph that are needed, and those outside of it that they depend on. */
  readonly touched: TaskState[];
  /** Tasks that got their definition now, if a policy wants to see them. */
  readonly fresh: TaskState[] | undefined;
}

/** Describes the new tasks and links them. Known tasks keep their definition. */
function takeTasks(scope: KernelScope, stimulus: UpdateGraph, plan: GraphPlan): Taken {
  const { ports } = scope;
  const submission = submissionOf(scope, stimulus);
  const generation = plan.order.length === 0 ? 0 : generationOf(scope, submission);
  const ranks = plan.order.length === 0 ? [] : ranksOf(scope, stimulus, plan);
  const touched = [...plan.outside];
  const fresh: TaskState[] | undefined = wantsGraphs(scope) ? [] : undefined;
  const { isPerTask = false } = ports.fairness.policy;
  const ranked: TaskState[] | undefined = isPerTask ? [] : undefined;
  for (const index of plan.order) {
    const description = stimulus.tasks[index] as GraphTask;
    const task = plan.states[index] as TaskState;
    if (plan.isNew(index)) describeTask(scope, task, description);
    else if (task.runSpec !== undefined) warnIfOther(scope, task, description);
    if (task.runSpec === undefined && task.state === 'released') {
      task.runSpec = description.runSpec;
      fresh?.push(task);
      linkAll(task, plan.dependenciesOf(index));
    }
    if (task.rank < 0) {
      // Not a unary minus: a priority of 0 must not become -0.
      task.negatedUserPriority = 0 - userPriorityOf(description);
      task.generation = generation;
      task.rank = ranks[index] as number;
      ranked?.push(task);
    }
    touched.push(task);
  }
  if (ranked !== undefined) setGenerations(scope, submission, ranked);
  return { touched, fresh };
}

/** What the annotations of a task say counts more than what the submission says. */
function userPriorityOf({ annotations, userPriority = 0 }: GraphTask): number {
  const priority = annotations?.['priority'];
  return typeof priority === 'number' && Number.isFinite(priority) ? priority : userPriority;
}

function linkAll(task: TaskState, dependencies: readonly TaskState[]): void {
  if (dependencies.length === 0) return;
  // A copy has exactly the length that it needs; an array that grows reserves room.
  linkDependencies(
    task,
    hasTwins(dependencies) ? [...new Set(dependencies)] : dependencies.slice(),
  );
}

/** Whether one is there twice. Short lists are compared in place, without making a set. */
function hasTwins(tasks: readonly TaskState[]): boolean {
  if (tasks.length > 4) return new Set(tasks).size < tasks.length;
  for (let index = 1; index < tasks.length; index++) {
    if (tasks.indexOf(tasks[index] as TaskState) < index) return true;
  }
  return false;
}

function describeTask(
  { cluster, options }: KernelScope,
  task: TaskState,
  description: GraphTask,
): void {
  task.retries = description.retries ?? options.defaultRetries;
  if (description.actor !== undefined) task.isActor = description.actor;
  if (description.annotations !== undefined) {
    task.annotations = description.annotations;
    const { replicas } = description.annotations;
    if (isReplicaCount(replicas)) setWantedReplicas(cluster, task, replicas);
  }
  task.restrictions = restrictionsOf(description);
}

/** Annotations are anybody's; what is no number of copies means something else there. */
function isReplicaCount(value: unknown): value is number {
  return typeof value === 'number' && value >= 1 && (Number.isInteger(value) || value === Infinity);
}

function restrictionsOf(description: GraphTask): Restrictions | undefined {
  const { workers, hosts, resources, allowOtherWorkers } = description;
  if (workers === undefined && hosts === undefined && resources === undefined) return undefined;
  const addresses = new Set<string>();
  const names = new Set<string>();
  const hostNames = new Set(hosts);
  for (const entry of workers ?? []) (entry.includes(':') ? addresses : names).add(entry);
  const amounts = new Map(Object.entries(resources ?? {}));
  if (addresses.size + names.size + hostNames.size + amounts.size === 0) return undefined;
  return {
    ...(addresses.size > 0 ? { workers: addresses } : {}),
    ...(names.size > 0 ? { names } : {}),
    ...(hostNames.size > 0 ? { hosts: hostNames } : {}),
    ...(amounts.size > 0 ? { resources: amounts } : {}),
    loose: allowOtherWorkers ?? false,
  };
}

/** Dask keeps the first definition, too; here people are told about it. */
function warnIfOther(scope: KernelScope, known: TaskState, description: GraphTask): void {
  const before = new Set(known.dependencies.map((dependency) => dependency.key));
  const same =
    new Set(description.dependencies).size === before.size &&
    description.dependencies.every((key) => before.has(key));
  if (same || known.hasLostDependencies) return;
  scope.outbox.event('scheduler', {
    action: 'key-collision',
    key: known.key,
    message: `${known.key} was submitted again with other dependencies; the first definition is kept`,
  });
}

/** The best task last, so that it is followed first. */
function recommendTouched(scope: KernelScope, touched: readonly TaskState[]): void {
  // A depth-first order comes out of the walk sorted already.
  const sorted = isSorted(touched) ? touched : touched.toSorted(byPriority);
  for (let index = sorted.length - 1; index >= 0; index--) {
    const task = sorted[index] as TaskState;
    if (task.state === 'released' && task.runSpec !== undefined) scope.recommend(task, 'waiting');
  }
}

function isSorted(tasks: readonly TaskState[]): boolean {
  for (let index = 1; index < tasks.length; index++) {
    if (byPriority(tasks[index - 1] as TaskState, tasks[index] as TaskState) > 0) return false;
  }
  return true;
}

function tellLost(scope: KernelScope, client: ClientState, lost: GraphPlan['lost']): void {
  for (const { key, missing } of lost) {
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

function refuseCycle(
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
      // It has another definition, and goes on.
      reportState(scope, known, client);
      continue;
    }
    scope.outbox.toClient(client, { op: 'task-erred', key, blame: cycle[0] as string, failure });
  }
}
