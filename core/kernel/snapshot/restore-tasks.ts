import { SmallSet } from '../../util/collections/small-set.ts';
import { GenericSteal } from '../../state/steal.ts';
import type { Restrictions } from '../../state/restrictions.ts';
import {
  type Blame,
  type ClientState,
  NO_TASKS,
  TaskState,
  type WorkerState,
} from '../../state/task.ts';
import type { TaskGroup } from '../../state/groups.ts';
import { TASK_STATE_NAMES } from '../../state/task-state-name.ts';
import { COMPUTABLE, WAITER } from './snapshot-tables.ts';
import {
  FORGOTTEN,
  OPAQUE,
  type SavedBlame,
  type SavedRareFields,
  type SavedRestrictions,
  type TasksPart,
} from './state-parts.ts';

/** What is written is no state. The reader of the log says where. */
export class StateError extends Error {}

/** What the columns of tasks refer to. */
export interface RestoredTables {
  readonly groups: readonly TaskGroup[];
  readonly workers: readonly WorkerState[];
  readonly clients: readonly ClientState[];
}

/** @throws StateError when there is no such entry */
export function entryAt<T>(list: readonly T[], position: number, what: string): T {
  const entry = list[position];
  if (entry === undefined) throw new StateError(`it refers to ${what} ${position}, which it lacks`);
  return entry;
}

/** Tasks by their ids while a state is read. */
export class RestoredTasks {
  private readonly byId: (TaskState | undefined)[] = [];
  private readonly blamed: [TaskState, number | SavedBlame][] = [];
  /** Stands in lists for tasks that are forgotten. */
  private readonly forgotten: TaskState;

  /** @param limbo - a group that is in no table, for tasks that are not either */
  constructor(
    private readonly tables: RestoredTables,
    private readonly limbo: TaskGroup,
  ) {
    this.forgotten = new TaskState('', FORGOTTEN, limbo);
    this.forgotten.state = 'forgotten';
  }

  /** @throws StateError when there is no such task */
  of(id: number): TaskState {
    const task = id === FORGOTTEN ? this.forgotten : this.byId[id];
    if (task === undefined) throw new StateError(`it refers to task ${id}, which it lacks`);
    return task;
  }

  /** Tasks of a list. */
  all(ids: readonly number[]): TaskState[] {
    return ids.map((id) => this.of(id));
  }

  /** Makes the tasks of a part, without what links them. */
  make(part: TasksPart): TaskState[] {
    return part.keys.map((key, n) => {
      const id = part.ids[n] as number;
      const task = new TaskState(
        key,
        id,
        entryAt(this.tables.groups, part.groups[n] as number, 'group'),
      );
      const number = part.states[n] as number;
      task.state = entryAt(TASK_STATE_NAMES, number % WAITER, 'state');
      task.countsAsWaiter = (number & WAITER) !== 0;
      task.runSpec = (number & COMPUTABLE) === 0 ? undefined : OPAQUE;
      task.nbytes = part.nbytes[n] as number;
      task.type = part.types[n] ?? undefined;
      task.runId = part.runIds[n] as number;
      task.negatedUserPriority = part.negatedUserPriorities[n] as number;
      task.generation = part.generations[n] as number;
      task.rank = part.ranks[n] as number;
      task.arrival = part.arrivals[n] as number;
      task.waiterCount = part.waiterCounts[n] as number;
      task.missingDependencyCount = part.missingCounts[n] as number;
      task.dependentCount = part.dependentCounts[n] as number;
      this.byId[id] = task;
      return task;
    });
  }

  /** Links the tasks of a part, when all tasks are there. */
  link(part: TasksPart): void {
    const { workers, clients } = this.tables;
    for (let n = 0; n < part.ids.length; n++) {
      const task = this.of(part.ids[n] as number);
      task.dependencies = listOf(this.all(part.dependencies[n] as number[]));
      task.dependentsWithForgotten = listOf(this.all(part.dependents[n] as number[]));
      task.whoHas = setOf(part.whoHas[n] as number[], workers, 'worker');
      task.whoWants = setOf(part.whoWants[n] as number[], clients, 'client');
    }
    for (const [position, fields] of part.rare) {
      this.setRareFields(this.of(entryAt(part.ids, position, 'task')), fields);
    }
  }

  private setRareFields(task: TaskState, fields: SavedRareFields): void {
    const { restrictions, blame, failure, sweep, steal, usedWorkers, erredOn } = fields;
    if (restrictions !== undefined) task.restrictions = restrictionsOf(restrictions);
    if (failure !== undefined) task.blame = { task, failure };
    if (blame !== undefined) this.blamed.push([task, blame]);
    task.hasLostDependencies = fields.hasLostDependencies ?? false;
    task.retries = fields.retries ?? 0;
    if (fields.suspicious !== undefined) task.suspicious = fields.suspicious;
    task.reschedules = fields.reschedules ?? 0;
    if (usedWorkers !== undefined) task.usedWorkers = new Set(usedWorkers);
    task.isActor = fields.isActor ?? false;
    task.isDataProducer = fields.isDataProducer ?? false;
    task.isQueueable = fields.isQueueable ?? true;
    task.replicas = fields.replicas ?? 1;
    if (sweep !== undefined) {
      task.sweep = { list: task.dependentsWithForgotten, seen: sweep[0], kept: sweep[1] };
    }
    task.failedAt = fields.failedAt ?? 0;
    if (erredOn !== undefined) task.erredOn = new Set(erredOn);
    if (steal !== undefined) {
      const { workers } = this.tables;
      const victim = entryAt(workers, steal.victim, 'worker');
      const thief = entryAt(workers, steal.thief, 'worker');
      task.steal = new GenericSteal(victim, thief, steal.victimS, steal.thiefS);
      task.steal.state = steal.state;
    }
    task.fingerprint = fields.fingerprint;
    task.metadata = fields.metadata;
    task.annotations = fields.annotations;
  }

  /** When all tasks are linked: what failed because of others shares their blame. */
  linkBlames(): void {
    for (const [task, blame] of this.blamed) task.blame = this.blameOf(blame);
  }

  private blameOf(blame: number | SavedBlame): Blame | undefined {
    if (typeof blame === 'number') return this.of(blame).blame;
    const task = new TaskState(blame.key, FORGOTTEN, this.limbo);
    task.state = 'forgotten';
    return { task, failure: blame.failure };
  }
}

function listOf(tasks: TaskState[]): TaskState[] {
  return tasks.length === 0 ? NO_TASKS : tasks;
}

/** The sets with one member are shared. */
function setOf<T extends { readonly alone: SmallSet<T> }>(
  positions: readonly number[],
  list: readonly T[],
  what: string,
): SmallSet<T> {
  let set = SmallSet.empty<T>();
  for (const position of positions) {
    const member = entryAt(list, position, what);
    set = set.size === 0 ? member.alone : set.with(member);
  }
  return set;
}

function restrictionsOf(saved: SavedRestrictions): Restrictions {
  const { workers, names, hosts, resources, loose } = saved;
  return {
    ...(workers === undefined ? {} : { workers: new Set(workers) }),
    ...(names === undefined ? {} : { names: new Set(names) }),
    ...(hosts === undefined ? {} : { hosts: new Set(hosts) }),
    ...(resources === undefined ? {} : { resources: new Map(resources) }),
    ...(loose === undefined ? {} : { loose }),
  };
}
