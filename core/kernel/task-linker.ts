import type { Submission } from '../api/policies.ts';
import type { GraphTask, UpdateGraph } from '../messages/stimulus.ts';
import { linkDependencies, setWantedReplicas } from '../state/relations.ts';
import type { Restrictions, TaskState } from '../state/task.ts';
import type { GraphPlan } from './graph-intake.ts';
import {
  DependencyRows,
  isKeptResult,
  isPlaceholder,
  isTakenBy,
  wantsGraphs,
} from './graph-table.ts';
import { Resubmission, timeLimitOf } from './on-keys.ts';
import { generationOf, setGenerations, submissionOf } from './priorities.ts';
import type { KernelScope } from './scope.ts';

// The tasks of a planned graph get their definitions, links and priorities.

/** Describes the new tasks of a graph and links them. Known tasks keep their definition. */
export class TaskLinker {
  /** Holds, when all have been taken, the tasks outside of the graph that it depends on, and those of it that are needed. */
  readonly touched: TaskState[];
  private touchedCount: number;
  /** Tasks that got their definition now, if a policy wants to see them. */
  readonly fresh: TaskState[] | undefined;
  /** The first key of the graph that has come to stand for another computation; undefined: there is none. */
  taken: string | undefined;
  private readonly rows: DependencyRows;
  private readonly submission: Submission;
  private readonly generation: number;
  private readonly arrival: number;
  private readonly again: Resubmission;
  /** Tasks that got a priority now, if each task has its own generation. */
  private readonly ranked: TaskState[] | undefined;

  /** @param ranks - by index in the graph */
  constructor(
    private readonly scope: KernelScope,
    private readonly stimulus: UpdateGraph,
    private readonly plan: GraphPlan,
    private readonly ranks: ArrayLike<number>,
  ) {
    const isEmpty = plan.order.length === 0;
    this.rows = new DependencyRows(plan);
    this.again = new Resubmission(scope);
    this.submission = submissionOf(scope, stimulus);
    this.generation = isEmpty ? 0 : generationOf(scope, this.submission);
    this.arrival = isEmpty ? 0 : scope.nextArrival++;
    this.touchedCount = plan.outside.length;
    // A list that grows to a million leaves twice its memory behind.
    this.touched = new Array<TaskState>(this.touchedCount + plan.order.length);
    plan.outside.forEach((task, index) => (this.touched[index] = task));
    this.fresh = wantsGraphs(scope) ? [] : undefined;
    this.ranked = scope.ports.fairness.policy.isPerTask === true ? [] : undefined;
  }

  /** Takes the tasks at these positions of the order. */
  take(from: number, to: number): void {
    const { scope, plan, touched } = this;
    const { order } = plan;
    for (let position = from; position < to; position++) {
      const index = order[position] as number;
      const description = this.stimulus.tasks[index] as GraphTask;
      const task = plan.states[index] as TaskState;
      const { limit: terms } = description;
      if (terms !== undefined) {
        const known = scope.cluster.limits.get(terms.name);
        if (known !== undefined) scope.cluster.limits.setTerms(known, terms);
      }
      if (isPlaceholder(task)) {
        if (plan.isNew(index)) describeTask(scope, task, description);
        this.fresh?.push(task);
        linkAll(task, this.rows.of(index), plan.dependentCounts);
        // Last of all: without it, the task counts as not defined.
        task.runSpec = description.runSpec;
      } else if (isTakenBy(task, description.runSpec)) {
        // Another client has defined it since the graph was walked through.
        this.taken ??= task.key;
      } else if (task.runSpec !== undefined) {
        warnIfOther(scope, task, description);
        this.again.improve(
          task,
          userPriorityOf(description),
          description.runSpec === undefined ? 0 : timeLimitOf(description.annotations),
        );
      }
      if (task.rank < 0) {
        // Not a unary minus: a priority of 0 must not become -0.
        task.negatedUserPriority = 0 - userPriorityOf(description);
        task.generation = this.generation;
        task.rank = this.ranks[index] as number;
        task.arrival = this.arrival;
        this.ranked?.push(task);
      }
      touched[this.touchedCount++] = task;
    }
  }

  /** The part of {@link touched} that there is so far. */
  get begun(): readonly TaskState[] {
    return this.touched.slice(0, this.touchedCount);
  }

  /** All have been taken. */
  finish(): void {
    this.again.tellWorkers();
    if (this.ranked !== undefined) setGenerations(this.scope, this.submission, this.ranked);
  }
}

/** The annotations of a task count more than those of the submission. */
function userPriorityOf({ annotations, userPriority = 0 }: GraphTask): number {
  const priority = annotations?.['priority'];
  return typeof priority === 'number' && Number.isFinite(priority) ? priority : userPriority;
}

function linkAll(task: TaskState, dependencies: TaskState[], dependentsExpected: Int32Array): void {
  if (dependencies.length === 0) return;
  if (dependencies.some(isForgotten)) {
    // Data that was lost since the graph was planned.
    task.hasLostDependencies = true;
    linkAll(
      task,
      dependencies.filter((dependency) => !isForgotten(dependency)),
      dependentsExpected,
    );
    return;
  }
  linkDependencies(task, dependencies, dependentsExpected);
}

function isForgotten({ state }: TaskState): boolean {
  return state === 'forgotten';
}

function describeTask(
  { cluster, options }: KernelScope,
  task: TaskState,
  description: GraphTask,
): void {
  task.retries = description.retries ?? options.defaultRetries;
  if (description.actor !== undefined) task.isActor = description.actor;
  if (description.dataProducer !== undefined) task.isDataProducer = description.dataProducer;
  if (description.annotations !== undefined) {
    task.annotations = description.annotations;
    const { replicas } = description.annotations;
    if (isReplicaCount(replicas)) setWantedReplicas(cluster, task, replicas);
  }
  task.restrictions = restrictionsOf(description);
  const { limit } = description;
  if (limit === undefined) return;
  const { limits } = cluster;
  limits.join(task, limits.get(limit.name) ?? limits.add(limit));
}

/** Annotations are free: a value that is not a number of copies has another meaning. */
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

/** Dask keeps the first definition, too; here a warning is logged. What computes something else is refused before. */
function warnIfOther(scope: KernelScope, known: TaskState, description: GraphTask): void {
  const before = new Set(known.dependencies.map((dependency) => dependency.key));
  const same =
    new Set(description.dependencies).size === before.size &&
    description.dependencies.every((key) => before.has(key));
  if (same || known.hasLostDependencies) return;
  // Of a result that a store has, its client leaves the inputs out.
  if (isKeptResult(known.runSpec) || isKeptResult(description.runSpec)) return;
  scope.outbox.event('scheduler', {
    action: 'key-collision',
    key: known.key,
    message: `${known.key} was submitted again with other dependencies; the first definition is kept`,
  });
}
