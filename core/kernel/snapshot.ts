/**
 * The state of a kernel as plain data, and back: all that later decisions depend on, in parts of bounded size.
 *
 * Each kind of record has one table. A row says how a field is saved and restored, under the name that it has in the
 * snapshot; a field without a row stands at the end of the table, with the reason. The compiler names a field that is
 * forgotten. `docs/log.md` describes the parts for readers in other languages. Times are in milliseconds of the
 * scheduler's clock unless a name says otherwise.
 */
import { messageOf } from '../api/errors.ts';
import { KERNEL_SLOT_NAMES, type PolicyMemory } from '../api/policies.ts';
import { ClientState, type ClusterState, FIRE_AND_FORGET } from '../state/cluster.ts';
import { TaskGroup, TaskPrefix } from '../state/groups.ts';
import { countNeed } from '../state/relations.ts';
import { TASK_STATE_NAMES } from '../state/state-names.ts';
import {
  type Blame,
  NO_TASKS,
  type Restrictions,
  Steal,
  type TaskFailure,
  TaskState,
} from '../state/task.ts';
import { WorkerState } from '../state/worker.ts';
import { approximateBytes } from '../util/bytes.ts';
import { SmallSet, SteadySet } from '../util/collections.ts';
import { policyError } from './ask-policy.ts';
import { meaningOf } from './graph-table.ts';
import type { KernelScope } from './scope.ts';

/** Stands for how to compute a task, where that is not written down. The kernel only asks whether there is any. */
export const OPAQUE = 'not recorded';

/** The error for data that is no state. The reader of the log says where it is. */
export class StateError extends Error {}

// ---- references: numbers for what records refer to -------------------------------------------

/** Objects by their places in the list of their kind. */
class Numbered<T> {
  readonly items: T[] = [];
  private readonly numbers = new Map<T, number>();

  constructor(private readonly kind: string) {}

  /** Adds the item when it is not there. */
  numberOf(item: T): number {
    let number = this.numbers.get(item);
    if (number === undefined) {
      number = this.items.push(item) - 1;
      this.numbers.set(item, number);
    }
    return number;
  }

  /** @throws StateError when there is none */
  itemAt(number: number): T {
    const item = this.items[number];
    if (item !== undefined) return item;
    throw new StateError(`it refers to ${this.kind} ${number}, which it lacks`);
  }

  numbersOf(items: readonly T[]): number[] {
    return items.map((item) => this.numberOf(item));
  }
}

/** Stands in lists of tasks for one that is forgotten. */
const FORGOTTEN = -1;

/** Tasks by their ids. */
class NumberedTasks extends Numbered<TaskState> {
  private readonly forgotten: TaskState;

  /** @param limbo - a group that is in no table, for tasks that are not either */
  constructor(private readonly limbo: TaskGroup) {
    super('task');
    this.forgotten = this.newForgotten('');
  }

  newForgotten(key: string): TaskState {
    const task = new TaskState(key, FORGOTTEN, this.limbo);
    task.state = 'forgotten';
    return task;
  }

  override numberOf(task: TaskState): number {
    return task.state === 'forgotten' ? FORGOTTEN : task.id;
  }

  override itemAt(id: number): TaskState {
    return id === FORGOTTEN ? this.forgotten : super.itemAt(id);
  }
}

class References {
  readonly prefixes = new Numbered<TaskPrefix>('prefix');
  readonly groups = new Numbered<TaskGroup>('group');
  /** By rank, then those that have left and that a steal names. */
  readonly workers = new Numbered<WorkerState>('worker');
  readonly clients = new Numbered<ClientState>('client');
  readonly tasks: NumberedTasks;
  /** Steps of a restore that need all tasks to be complete. */
  readonly later: (() => void)[] = [];

  constructor(readonly cluster: ClusterState) {
    this.tasks = new NumberedTasks(new TaskGroup('', new TaskPrefix('', cluster.costs)));
  }
}

// ---- rows ------------------------------------------------------------------------------------

/** A value as it is saved: a number for what has one, and a list for a collection, of pairs for a map. */
type Plain<T> = T extends TaskState | WorkerState | ClientState | TaskGroup | TaskPrefix
  ? number
  : T extends string
    ? T
    : T extends readonly [infer Key, infer Value]
      ? [Plain<Key>, Plain<Value>]
      : T extends Iterable<infer Item>
        ? readonly Plain<Item>[]
        : T;

function plainOf(value: unknown, refs: References): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => plainOf(item, refs));
  if (value instanceof TaskState) return refs.tasks.numberOf(value);
  if (value instanceof SmallSet) return plainOf(value.items, refs);
  if (value instanceof WorkerState) return refs.workers.numberOf(value);
  if (value instanceof ClientState) return refs.clients.numberOf(value);
  if (value instanceof TaskGroup) return refs.groups.numberOf(value);
  if (value instanceof TaskPrefix) return refs.prefixes.numberOf(value);
  return Symbol.iterator in value ? plainOf([...(value as Iterable<unknown>)], refs) : value;
}

/** Saves and restores some fields of a record; those that are not restored are handed to the constructor. */
interface Row<Field, State, Saved> {
  readonly of: readonly Field[];
  readonly save: (state: State, refs: References) => Saved;
  /** Not called for `undefined` and `null`: the default stays. */
  restore?(state: State, saved: NonNullable<Saved>, refs: References): void;
}

/** Rows by their names in a part of a snapshot. */
type Rows<State> = Readonly<Record<string, Row<string, State, unknown>>>;
type SavedBy<R> = {
  readonly [Name in keyof R]: R[Name] extends Row<string, never, infer Saved> ? Saved : never;
};
/** Many records: the n-th entry of each list is of the n-th record. */
type Columns<R> = { readonly [Name in keyof R]: readonly SavedBy<R>[Name][] };

/** The fields of a record, without its methods. */
type FieldOf<State> = keyof {
  [F in keyof State as State[F] extends (...args: never) => unknown ? never : F & string]: F;
};
type FieldIn<R> = {
  [Name in keyof R]: R[Name] extends Row<infer F, never, unknown> ? F : never;
}[keyof R];
/** A reason for each of the other fields. */
type Reasons<State, Sections> = Readonly<Record<string, string>> &
  Record<
    Exclude<FieldOf<State>, { [S in keyof Sections]: FieldIn<Sections[S]> }[keyof Sections]>,
    string
  >;
type ItemOf<T> = T extends Iterable<infer Item> ? Item : never;
/** Makes a value of what was saved. */
type Make<Value> = (saved: Plain<Value>, refs: References) => Value;
type PlainRows<State, Field extends keyof State> = {
  readonly [F in Field]: Row<F, State, Plain<State[F]>>;
};

/** Makes the rows and the table of one kind of record. */
class RecordOf<State extends object> {
  row<Saved, const Field extends FieldOf<State> = never>(
    of: readonly Field[],
    save: (state: State, refs: References) => Saved,
    restore?: (state: State, saved: NonNullable<Saved>, refs: References) => void,
  ): Row<Field, State, Saved> {
    return restore === undefined ? { of, save } : { of, save, restore };
  }

  /**
   * A field that is set to what was saved.
   * @param save - for the many tasks, because a field is slow to find by its name
   */
  as<F extends FieldOf<State>>(
    field: F,
    save = (state: State): State[F] => state[field],
  ): Row<F, State, State[F]> {
    return this.row([field], save, (state, saved) => {
      state[field] = saved;
    });
  }

  /** Such fields under their own names. */
  same<F extends FieldOf<State>>(...fields: readonly F[]): PlainRows<State, F> {
    return Object.fromEntries(fields.map((field) => [field, this.as(field)])) as never;
  }

  /** Fields that are handed to the constructor. */
  given<F extends FieldOf<State>>(...fields: readonly F[]): PlainRows<State, F> {
    const save = (field: F) => (state: State, refs: References) => plainOf(state[field], refs);
    return Object.fromEntries(
      fields.map((field) => [field, this.row([field], save(field))]),
    ) as never;
  }

  /** A field that is set to what is made of what was saved. */
  made<F extends FieldOf<State>>(
    field: F,
    make: (saved: NonNullable<Plain<State[F]>>, refs: References) => State[F],
    save = (state: State, refs: References) => plainOf(state[field], refs) as Plain<State[F]>,
  ): Row<F, State, Plain<State[F]>> {
    return this.row([field], save, (state, saved, refs) => {
      state[field] = make(saved, refs);
    });
  }

  /** Collections that are filled with what is made of each saved item. */
  filled<F extends FieldOf<State>>(
    make: Make<ItemOf<State[F]>>,
    ...fields: readonly F[]
  ): PlainRows<State, F> {
    const row = (field: F): unknown =>
      this.row(
        [field],
        (state, refs) => plainOf(state[field], refs) as readonly never[],
        (state, saved, refs) => {
          fill(
            state[field] as Collection,
            saved.map((item) => make(item, refs)),
          );
        },
      );
    return Object.fromEntries(fields.map((field) => [field, row(field)])) as never;
  }

  /** A property of the object in a field. */
  inside<F extends FieldOf<State>, Property extends keyof State[F]>(
    field: F,
    property: Property,
  ): Row<F, State, State[F][Property]> {
    return this.row(
      [field],
      (state) => state[field][property],
      (state, saved) => {
        state[field][property] = saved;
      },
    );
  }

  /** @param unsaved - why the other fields are not saved */
  table<Sections extends Readonly<Record<string, Rows<State>>>>(
    sections: Sections,
    unsaved: Reasons<State, Sections>,
  ): Sections & { readonly unsaved: object } {
    return { ...sections, unsaved };
  }
}

/** The same reason for some fields that are not saved. */
function unsaved<F extends string>(reason: string, ...fields: readonly F[]): Record<F, string> {
  return Object.fromEntries(fields.map((field) => [field, reason])) as Record<F, string>;
}

/** A list, a set or a map. */
interface Collection {
  clear?(): void;
  push?(item: unknown): void;
  add?(item: unknown): void;
  set?(key: unknown, value: unknown): void;
}

/** Entries of forgotten tasks are left out: they say nothing any more. */
function fill(target: Collection, items: readonly unknown[]): void {
  target.clear?.();
  for (const item of items) {
    if (target.push !== undefined) target.push(item);
    else if (target.add !== undefined) target.add(item);
    else {
      const [key, value] = item as readonly [unknown, unknown];
      if (!(key instanceof TaskState && key.state === 'forgotten')) target.set?.(key, value);
    }
  }
}

const ITSELF = <T>(saved: T): T => saved;
const TASK_AT = (id: number, { tasks }: References): TaskState => tasks.itemAt(id);
const WORKER_AT = (number: number, { workers }: References): WorkerState => workers.itemAt(number);
const GROUP_AT = (number: number, { groups }: References): TaskGroup => groups.itemAt(number);
const PREFIX_AT = (number: number, { prefixes }: References): TaskPrefix => prefixes.itemAt(number);
const BY_TASK = ([id, n]: [number, number], refs: References): [TaskState, number] => [
  TASK_AT(id, refs),
  n,
];

/** Empty lists are shared. */
function tasksAt(ids: readonly number[], { tasks }: References): TaskState[] {
  return ids.length === 0 ? NO_TASKS : ids.map((id) => tasks.itemAt(id));
}

/** Sets with one member are shared. */
function smallSet<T extends { readonly alone: SmallSet<T> }>(
  numbers: readonly number[],
  numbered: Numbered<T>,
): SmallSet<T> {
  let set = SmallSet.empty<T>();
  for (const number of numbers) {
    const member = numbered.itemAt(number);
    set = set.size === 0 ? member.alone : set.with(member);
  }
  return set;
}

// ---- the tables ------------------------------------------------------------------------------

const prefix = new RecordOf<TaskPrefix>();
const PREFIX = prefix.table(
  {
    prefixes: {
      ...prefix.given('name'),
      /** False for one that was dropped, and that a group still names. */
      isKnown: prefix.row(
        [],
        (one, { cluster }) => cluster.prefixes.get(one.name) === one,
        (one, isKnown, { cluster }) => isKnown && cluster.prefixes.set(one.name, one),
      ),
      ...prefix.same('durationAverageS', 'maxExecTimeS', 'durationEstimateS', 'suspicious'),
      ...prefix.same('processingCount', 'nbytesGone', 'computedS', 'transferredS'),
      /** Tasks that ever entered each state, in the order of the states. */
      entered: prefix.inside('stateCounts', 'list'),
      /** Samples, average seconds, average bytes, step, variance: how its tasks share slots. */
      sharing: prefix.inside('sharing', 'learnt'),
      /** Measured durations, and the sum of their logarithms. */
      ...prefix.same('usual'),
    },
    /** In columns. */
    workers: { prefixGroups: prefix.filled(GROUP_AT, 'groups').groups },
  },
  unsaved(
    ...(['computed', 'states', 'nbytesTotal', 'nbytesProduced', 'known', 'nbytesAverage'] as const),
    'tasksPerSlot',
  ),
);

const group = new RecordOf<TaskGroup>();
const GROUP = group.table(
  {
    groups: {
      ...group.given('name', 'prefix'),
      /** False for one without tasks that another group depends on. */
      isKnown: group.row(
        [],
        (one, { cluster }) => cluster.groups.get(one.name) === one,
        (one, isKnown, { cluster }) => isKnown && cluster.groups.set(one.name, one),
      ),
      /** Tasks in each state, in the order of the states. */
      states: group.inside('states', 'list'),
      ...group.same('size', 'nbytesTotal', 'startS', 'stopS', 'durationS'),
      ...group.filled(GROUP_AT, 'dependencies'),
      ...group.filled(ITSELF, 'otherDurationsS'),
      types: group.made('types', (counts) => new Map(counts)),
    },
  },
  unsaved('follows from the states', 'done'),
);

const NOTHING: ReadonlyMap<TaskState, number> = new Map();

const worker = new RecordOf<WorkerState>();
const WORKER = worker.table(
  {
    workers: {
      ...worker.given('identity', 'sequence', 'lastSeenMs'),
      ...worker.same('status', 'slotLimit', 'networkBytes', 'nbytes', 'stealsInFlight'),
      ...worker.same('inFlightS', 'inFlightTasks', 'metrics', 'measuredNbytes', 'deafMs'),
      ...worker.same('timeDelayMs'),
      ...worker.filled(ITSELF, 'endingRuns'),
      /** Left out when there are none. */
      lingeringRuns: worker.row(
        ['lingeringRuns'],
        ({ lingeringRuns }) => (lingeringRuns.size === 0 ? undefined : [...lingeringRuns]),
        ({ lingeringRuns }, saved) => {
          for (const runId of saved) lingeringRuns.add(runId);
        },
      ),
      /** Pairs of a prefix and a number. */
      prefixCounts: worker.row(
        ['prefixCounts'],
        ({ prefixCounts }, { prefixes }) =>
          prefixCounts.map((one) => [prefixes.numberOf(one.prefix), one.count] as const),
        ({ prefixCounts }, saved, refs) => {
          for (const [at, count] of saved)
            prefixCounts.push({ prefix: PREFIX_AT(at, refs), count });
        },
      ),
      resources: worker.made('resources', (amounts) => new Map(amounts)),
      usedResources: worker.made('usedResources', (amounts) => new Map(amounts)),
      /** Pairs of a time and the bytes that were measured then, and the least of these. */
      unmanaged: worker.inside('unmanagedHistory', 'measured'),
      unmanagedOld: worker.inside('unmanagedHistory', 'oldBytes'),
      /** Measured durations, mean and variance of what they took longer, factor. */
      paces: worker.inside('pacing', 'learnt'),
    },
    /** In columns, of registered workers by rank. */
    holdings: {
      ...worker.filled(TASK_AT, 'processing', 'longRunning', 'hasWhat', 'translations', 'actors'),
      ...worker.filled(BY_TASK, 'needsWhat'),
      executing: worker.made('executing', (entries, refs) => {
        const known = entries.filter(([id]) => id !== FORGOTTEN);
        return known.length === 0 ? NOTHING : new Map(known.map((one) => BY_TASK(one, refs)));
      }),
    },
  },
  {
    ...unsaved('of its identity', 'address', 'soleAddress', 'name', 'host', 'language'),
    ...unsaved('of its pacing and its speed', 'pace', 'toldPace'),
    ...unsaved('counted from what workers need', 'requestedBytes'),
    ...unsaved('of its identity', 'threadCount', 'memoryLimitBytes', 'serverId'),
    ...unsaved('its place in the list', 'rank'),
    ...unsaved('computed', 'occupancyS', 'openSlots', 'runCount', 'load', 'memory', 'alone'),
  },
);

const client = new RecordOf<ClientState>();
const CLIENT = client.table(
  {
    workers: client.given('key', 'versions', 'isMute', 'lastSeenMs'),
    /** In columns. */
    holdings: client.filled(TASK_AT, 'wantsWhat'),
  },
  {
    ...unsaved('computed', 'alone'),
    ...unsaved('undefined between long works', 'cancelled'),
  },
);

/** Added to the number of the state of a task. */
const WAITER = 16;
const COMPUTABLE = 32;
/** Looked up once for each task. */
const STATE_NUMBERS = new Map(TASK_STATE_NAMES.map((state, number) => [state, number]));

const task = new RecordOf<TaskState>();
const TASK = task.table(
  {
    /** In columns. */
    tasks: {
      keys: task.row(['key'], ({ key }) => key),
      ids: task.row(['id'], ({ id }) => id),
      groups: task.row(['group'], (one, { groups }) => groups.numberOf(one.group)),
      /** The number of the state, plus 16 when it counts as a waiter, plus 32 when it can be computed. */
      states: task.row(
        ['state', 'countsAsWaiter', 'runSpec'],
        ({ state, countsAsWaiter, runSpec }) => {
          const number = STATE_NUMBERS.get(state) ?? 0;
          return number + (countsAsWaiter ? WAITER : 0) + (runSpec === undefined ? 0 : COMPUTABLE);
        },
        (one, number) => {
          const state = TASK_STATE_NAMES[number % WAITER];
          if (state === undefined) throw new StateError(`it has no state ${number % WAITER}`);
          one.state = state;
          one.countsAsWaiter = (number & WAITER) !== 0;
          one.runSpec = (number & COMPUTABLE) === 0 ? undefined : OPAQUE;
        },
      ),
      nbytes: task.as('nbytes', (one) => one.nbytes),
      types: task.as('type', (one) => one.type),
      runIds: task.as('runId', (one) => one.runId),
      negatedUserPriorities: task.as('negatedUserPriority', (one) => one.negatedUserPriority),
      generations: task.as('generation', (one) => one.generation),
      ranks: task.as('rank', (one) => one.rank),
      arrivals: task.as('arrival', (one) => one.arrival),
      waiterCounts: task.as('waiterCount', (one) => one.waiterCount),
      missingCounts: task.as('missingDependencyCount', (one) => one.missingDependencyCount),
      dependentCounts: task.as('dependentCount', (one) => one.dependentCount),
      dependencies: task.made('dependencies', tasksAt, (one, { tasks }) =>
        tasks.numbersOf(one.dependencies),
      ),
      dependents: task.made('dependentsWithForgotten', tasksAt, (one, { tasks }) =>
        tasks.numbersOf(one.dependentsWithForgotten),
      ),
      whoHas: task.made(
        'whoHas',
        (numbers, { workers }) => smallSet(numbers, workers),
        (one, { workers }) => workers.numbersOf(one.whoHas.items),
      ),
      whoWants: task.made(
        'whoWants',
        (numbers, { clients }) => smallSet(numbers, clients),
        (one, { clients }) => clients.numbersOf(one.whoWants.items),
      ),
    },
    /** In columns. A scheduler starts from a journal, which has it whole; a recording has what the kernel reads of it. */
    specs: { runSpecs: task.as('runSpec', (one) => one.runSpec) },
    /** Pairs of a position in the columns, and what is not as in a new task. */
    rare: {
      ...task.same('hasLostDependencies', 'retries', 'suspicious', 'reschedules', 'isActor'),
      ...task.same('isDataProducer', 'isQueueable', 'replicas', 'fingerprint', 'reservation'),
      ...task.same('metadata', 'annotations'),
      usedWorkers: task.made('usedWorkers', (addresses) => new Set(addresses)),
      erredOn: task.made('erredOn', (addresses) => new Set(addresses)),
      restrictions: task.row(
        ['restrictions'],
        ({ restrictions }, refs) => restrictions && savedRestrictions(restrictions, refs),
        (one, saved) => {
          one.restrictions = restrictionsOf(saved);
        },
      ),
      failure: task.row(
        ['failure'],
        ({ failure }) => failure,
        (one, failure) => {
          one.blame = { task: one, failure, failureNumber: 0 };
        },
      ),
      failureNumber: task.row(
        [],
        ({ blame, failure }) => failure && blame?.failureNumber,
        (one, failureNumber) => {
          if (one.blame !== undefined) one.blame = { ...one.blame, failureNumber };
        },
      ),
      /** A task that is failed for the same reason, as a rule the one that failed; or the reason. */
      blame: task.row(
        ['blame', 'exceptionBlame'],
        ({ blame, failure }) => (failure === undefined ? blame && savedBlame(blame) : undefined),
        (one, saved, refs) => {
          refs.later.push(() => {
            one.blame = blameOf(saved, refs);
          });
        },
      ),
      /** Victim and thief are workers. */
      steal: task.row(
        ['steal'],
        ({ steal }, { workers }) => {
          if (steal === undefined) return undefined;
          const { state, victim, thief, victimS, thiefS } = steal;
          const places = { victim: workers.numberOf(victim), thief: workers.numberOf(thief) };
          return { state, ...places, victimS, thiefS };
        },
        (one, { state, victim, thief, victimS, thiefS }, refs) => {
          one.steal = new Steal(WORKER_AT(victim, refs), WORKER_AT(thief, refs), victimS, thiefS);
          one.steal.state = state;
        },
      ),
      /** Of a sweep of its dependents: places seen and kept. */
      sweep: task.row(
        ['sweep'],
        ({ sweep, dependentsWithForgotten: list }) =>
          sweep?.list === list ? ([sweep.seen, sweep.kept] as const) : undefined,
        (one, [seen, kept]) => {
          one.sweep = { list: one.dependentsWithForgotten, seen, kept };
        },
      ),
    },
  },
  {
    ...unsaved('of one stimulus, or of work that is left', 'pendingIndex', 'leftIndex', 'leftBy'),
    ...unsaved('of one stimulus, or of work that is left', 'graphIndex'),
    ...unsaved('of the list that it is in', 'place', 'processingOn', 'limit'),
    ...unsaved('counted from what workers need', 'needyCount'),
    ...unsaved('computed', 'prefix', 'priority', 'dependents', 'waitingOn', 'waiters'),
    ...unsaved('computed', 'isNeeded', 'isActive', 'hasRareFields'),
  },
);

type SavedRestrictions = { readonly [F in keyof Restrictions]: Plain<Restrictions[F]> };

function savedRestrictions(restrictions: Restrictions, refs: References): SavedRestrictions {
  const entries = Object.entries(restrictions);
  return Object.fromEntries(entries.map(([name, value]) => [name, plainOf(value, refs)]));
}

function restrictionsOf({ resources, loose, ...sets }: SavedRestrictions): Restrictions {
  const entries = Object.entries(sets).map(([name, items]) => [name, new Set(items)]);
  const restrictions = Object.fromEntries(entries) as Restrictions;
  return { ...restrictions, resources: resources && new Map(resources), loose };
}

/** The reason of a failure whose task is not failed any more, or forgotten. */
interface SavedBlame {
  readonly key: string;
  readonly failure: TaskFailure;
  readonly failureNumber?: number;
}

function savedBlame(blame: Blame): number | SavedBlame {
  const { task, ...reason } = blame;
  if (task.state !== 'forgotten' && task.blame === blame) return task.id;
  return { key: task.key, ...reason };
}

function blameOf(saved: number | SavedBlame, { tasks }: References): Blame | undefined {
  if (typeof saved === 'number') return tasks.itemAt(saved).blame;
  const { key, ...reason } = saved;
  return { task: tasks.newForgotten(key), failureNumber: 0, ...reason };
}

const cluster = new RecordOf<ClusterState>();
const CLUSTER = cluster.table(
  {
    kernel: {
      bandwidth: cluster.inside('costs', 'bandwidth'),
      bandwidthSamples: cluster.inside('costs', 'bandwidthSamples'),
      firstOfName: cluster.row(
        [],
        ({ costs }) => costs.firstOfName.learnt,
        ({ costs }, saved) => {
          costs.firstOfName.learnt = saved;
        },
      ),
      ...cluster.same('stealsInFlight', 'assignedCount', 'generation', 'lastGenerationMs'),
      ...cluster.same('computingCount', 'computeOccupancyS', 'networkBytes', 'nextTaskId'),
      ...cluster.same('nextWorkerSequence', 'noWorkersSinceMs'),
      ...cluster.filled(ITSELF, 'freeTaskIds', 'erredTasks', 'known'),
    },
    workers: {
      /** The number of registered workers, which come first in the list. */
      registered: cluster.row(
        ['workersByRank', 'totalThreads', 'totalMemoryBytes', 'languages'],
        ({ workersByRank }) => workersByRank.length,
        (one, registered, { workers }) => {
          for (const [rank, each] of workers.items.slice(0, registered).entries()) {
            each.rank = rank;
            one.workersByRank.push(each);
            one.countWorker(each, 1);
          }
        },
      ),
      /** Registered workers in the order of their registration. */
      order: cluster.row(
        ['workers', 'aliases'],
        (one, { workers }) => workers.numbersOf([...one.workers.values()]),
        (one, order, { workers }) => {
          for (const number of order) {
            const each = workers.itemAt(number);
            one.workers.set(each.address, each);
            one.aliases.set(each.name, each.address);
          }
        },
      ),
      ...cluster.filled(([host, addresses]) => [host, new Set(addresses)], 'hosts'),
      ...cluster.filled(([resource, supply]) => [resource, new Map(supply)], 'resources'),
      ...cluster.filled(WORKER_AT, 'running', 'idle', 'saturated'),
      /** Pairs of a worker and what it is sorted by. */
      openSlots: cluster.row(
        ['openSlots'],
        ({ openSlots }, { workers }) =>
          Array.from(
            openSlots,
            (one) => [workers.numberOf(one), openSlots.keyOf(one) ?? 0] as const,
          ),
        ({ openSlots }, entries, refs) => {
          for (const [at, load] of entries) openSlots.put(WORKER_AT(at, refs), load);
        },
      ),
      /** Prefixes without tasks, the longest unused first. */
      ...cluster.filled(PREFIX_AT, 'unusedPrefixes'),
    },
    holdings: {
      queued: cluster.row(
        ['queued'],
        ({ queued }, { tasks }) => tasks.numbersOf(queued.sorted()),
        ({ queued }, ids, refs) => {
          for (const one of tasksAt(ids, refs)) queued.add(one);
        },
      ),
      /** Pairs of a task and the time since when it is. */
      ...cluster.filled(BY_TASK, 'unrunnable'),
      /** In the order in which they came; left out when there are none. */
      limits: cluster.row(
        ['limits'],
        ({ limits, tasks }, refs) => {
          if (limits.size === 0) return undefined;
          return Array.from(limits.members(tasks.values()), ([limit, its]) => ({
            ...limit.terms,
            ...(limit.bucket === undefined ? {} : { bucket: limit.bucket.saved() }),
            tasks: refs.tasks.numbersOf(its),
            /** Of these, those that wait for it. */
            queued: refs.tasks.numbersOf(limit.queued.sorted()),
            /** Ids of runs that were taken back and may not have ended. */
            endingRuns: limits.endingRunsOf(limit),
            ...(limit.paused.size === 0
              ? {}
              : {
                  paused: refs.tasks.numbersOf([...limit.paused]),
                  resuming: refs.tasks.numbersOf([...limit.resuming]),
                }),
          }));
        },
        ({ limits }, saved, refs) => {
          for (const one of saved) {
            const { tasks, queued, endingRuns, bucket, paused = [], resuming = [], ...terms } = one;
            const limit = limits.add(terms, bucket);
            for (const one of tasksAt(tasks, refs)) {
              limits.join(one, limit);
              if (one.processingOn !== undefined) limits.count(limit, 1);
              if (one.state === 'no-worker') limits.park(one, 1);
            }
            for (const one of tasksAt(queued, refs)) limits.enqueue(limit, one);
            for (const one of tasksAt(paused, refs)) limits.pause(one);
            for (const one of tasksAt(resuming, refs)) limits.endPause(one);
            for (const runId of endingRuns) limits.addEndingRun(limit, runId);
            limits.dropUnused(limit);
          }
        },
      ),
      ...cluster.filled(TASK_AT, 'replicated', 'replicasWanted'),
      /** Pairs of a task and the workers that have a translation. */
      translated: cluster.filled(
        ([id, numbers], refs) => [
          TASK_AT(id, refs),
          new Set(numbers.map((at) => WORKER_AT(at, refs))),
        ],
        'translations',
      ).translations,
    },
  },
  {
    ...unsaved('records of their own', 'tasks', 'groups', 'prefixes', 'clients'),
    ...unsaved('filled with what workers are processing', 'runs'),
    ...unsaved('set by the maker of the kernel', 'languageOf', 'rules'),
    ...unsaved('given to the kernel that is made', 'nowMs'),
    ...unsaved('for people, who may read the log', 'lost'),
    ...unsaved('computed', 'memory', 'totalOccupancyS', 'isIdle'),
  },
);

const scope = new RecordOf<KernelScope>();
const SCOPE = scope.table(
  {
    kernel: {
      ...scope.same('nextRunId', 'nextArrival', 'failureNumber'),
      transitions: scope.as('transitionCounter'),
    },
    holdings: {
      ...scope.filled(TASK_AT, 'refused', 'ruled'),
      /** The number of refused tasks that have had their turn in this round. */
      refusedSeen: scope.row(
        [],
        ({ refused }) => refused.seenCount,
        ({ refused }, count) => {
          if (count > 0) refused.skip(count);
        },
      ),
    },
    /** The memory of policies, by slot; those that have none are left out. */
    policies: {
      inCharge: scope.row(
        ['ports'],
        (one) => memories(one, ({ ports }, slot) => ports[slot].policy),
        (one, saved) => remember(one, saved, ({ ports }, slot) => ports[slot].policy),
      ),
      fallbacks: scope.row(
        [],
        (one) => memories(one, otherFallback),
        (one, saved) => remember(one, saved, otherFallback),
      ),
    },
  },
  {
    ...unsaved('a record of its own', 'cluster'),
    ...unsaved('set by the maker of the kernel', 'options', 'watchers', 'rules'),
    ...unsaved('no decision depends on it', 'story', 'inputs', 'locations', 'reached'),
    ...unsaved('of one stimulus', 'outbox', 'recommendations', 'stimulusId', 'nowMs', 'stimulus'),
    ...unsaved('of one stimulus', 'startsAtOnce', 'unproven', 'killTimeoutMs', 'hasFreedWorker'),
    ...unsaved(
      'of one stimulus',
      'hasNewMetrics',
      'changedWorker',
      'isQueueRefused',
      'holdsQueue',
      'stepping',
    ),
    ...unsaved('of one stimulus', 'firstRunId', 'isHandled', 'sliceEnd', 'isSliceOver'),
    ...unsaved('of work that is left', 'agenda', 'present', 'intakes', 'isRefillLeft', 'hasLeft'),
    ...unsaved('of work that is left', 'recovery'),
  },
);

type Slot = (typeof KERNEL_SLOT_NAMES)[number];
type PolicyIn = (scope: KernelScope, slot: Slot) => PolicyMemory | undefined;
type Memories = Readonly<Partial<Record<Slot, unknown>>>;

/** @throws YardmasterError `ERR_POLICY` when a policy throws: a snapshot without its memory would be another state */
function memories(scope: KernelScope, policyIn: PolicyIn): Memories {
  const memory = KERNEL_SLOT_NAMES.map((slot) => {
    try {
      return [slot, policyIn(scope, slot)?.snapshot?.(scope.cluster)] as const;
    } catch (cause) {
      const { name } = scope.ports[slot];
      const what = `threw in snapshot: ${messageOf(cause)}`;
      const error = policyError(slot, name, what, cause);
      scope.ports.onPolicyFailure({ question: 'snapshot', slot, policy: name, what, error });
      throw error;
    }
  });
  return Object.fromEntries(memory.filter(([, memory]) => memory !== undefined));
}

function remember(scope: KernelScope, saved: Memories, policyIn: PolicyIn): void {
  for (const slot of KERNEL_SLOT_NAMES) {
    if (saved[slot] !== undefined) policyIn(scope, slot)?.restore?.(saved[slot], scope.cluster);
  }
}

/** The policy that takes over when the one in charge fails, unless that is the same. */
function otherFallback({ ports }: KernelScope, slot: Slot): PolicyMemory | undefined {
  return ports.fallbacks[slot] === ports[slot].policy ? undefined : ports.fallbacks[slot];
}

// ---- snapshots -------------------------------------------------------------------------------

/** A part of the state. They come in the order of this list; `groups` and `tasks` several times when they are many. */
export type StatePart =
  | ({ readonly part: 'kernel' } & SavedBy<typeof CLUSTER.kernel> & SavedBy<typeof SCOPE.kernel>)
  | { readonly part: 'prefixes'; readonly prefixes: readonly SavedBy<typeof PREFIX.prefixes>[] }
  | { readonly part: 'groups'; readonly groups: readonly SavedBy<typeof GROUP.groups>[] }
  | WorkersPart
  | TasksPart
  | HoldingsPart
  | ({ readonly part: 'policies' } & SavedBy<typeof SCOPE.policies>);

/** Workers and clients, without their tasks. */
interface WorkersPart extends SavedBy<typeof CLUSTER.workers>, Columns<typeof PREFIX.workers> {
  readonly part: 'workers';
  /** By rank, then those that have left and that a steal names. */
  readonly workers: readonly SavedBy<typeof WORKER.workers>[];
  readonly clients: readonly SavedBy<typeof CLIENT.workers>[];
}

/** Up to some thousand tasks. */
export interface TasksPart extends Columns<typeof TASK.tasks>, Partial<Columns<typeof TASK.specs>> {
  readonly part: 'tasks';
  readonly rare: readonly (readonly [position: number, Partial<SavedBy<typeof TASK.rare>>])[];
}

type HoldingsPart = { readonly part: 'holdings' } & Columns<typeof WORKER.holdings> &
  Columns<typeof CLIENT.holdings> &
  SavedBy<typeof CLUSTER.holdings> &
  SavedBy<typeof SCOPE.holdings>;

/** Tasks or groups in one part. */
const PART_ITEMS = 5000;
/** Of run specifications in one part, roughly, unless a single one is larger. */
const PART_BYTES = 64 * 2 ** 20;

/**
 * Only while nothing is left to later stimuli (`SchedulerKernel.isQuiet`). To be read to its end before the next stimulus.
 * O(tasks + links).
 *
 * @param isToStart - for a scheduler that starts with it, maybe with other policies: with the run specifications of tasks,
 *   and without what policies remember; otherwise with what the kernel reads of a specification
 */
export function* takeSnapshot(
  scope: KernelScope,
  isToStart: boolean,
): Generator<StatePart, void, undefined> {
  const { cluster } = scope;
  const refs = referencesIn(cluster);
  const { prefixes, groups, workers, clients } = refs;
  const kernel = { ...save(SCOPE.kernel, scope, refs), ...save(CLUSTER.kernel, cluster, refs) };
  yield { part: 'kernel', ...kernel };
  yield {
    part: 'prefixes',
    prefixes: prefixes.items.map((one) => save(PREFIX.prefixes, one, refs)),
  };
  for (const some of inParts(groups.items)) {
    yield { part: 'groups', groups: some.map((one) => save(GROUP.groups, one, refs)) };
  }
  yield {
    part: 'workers',
    workers: workers.items.map((one) => save(WORKER.workers, one, refs)),
    clients: clients.items.map((one) => save(CLIENT.workers, one, refs)),
    ...save(CLUSTER.workers, cluster, refs),
    ...saveColumns(PREFIX.workers, prefixes.items, refs),
  };
  const nbytesOf = ({ runSpec }: TaskState): number =>
    isToStart ? approximateBytes(runSpec, PART_BYTES) : 0;
  for (const some of inParts([...cluster.tasks.values()], nbytesOf)) {
    const columns = saveColumns(TASK.tasks, some, refs);
    const runSpecs = some.map(({ runSpec }) => (isToStart ? runSpec : meaningOf(runSpec)) ?? null);
    const specs = runSpecs.some((spec) => spec !== null) ? { runSpecs } : {};
    yield { part: 'tasks', ...columns, ...specs, rare: saveRare(some, refs) };
  }
  yield {
    part: 'holdings',
    ...saveColumns(WORKER.holdings, cluster.workersByRank, refs),
    ...saveColumns(CLIENT.holdings, clients.items, refs),
    ...save(CLUSTER.holdings, cluster, refs),
    ...save(SCOPE.holdings, scope, refs),
  };
  const forgotten = { inCharge: {}, fallbacks: {} };
  yield { part: 'policies', ...(isToStart ? forgotten : save(SCOPE.policies, scope, refs)) };
}

/**
 * Gives a kernel that has handled nothing yet the state of another one, so that both decide alike from there on.
 * O(tasks + links).
 * @throws StateError when the parts are no complete state of this version
 */
export function restoreSnapshot(scope: KernelScope, parts: readonly StatePart[]): void {
  const { cluster } = scope;
  const refs = new References(cluster);
  const { prefixes, groups, workers, clients } = refs;
  const one = <Name extends StatePart['part']>(name: Name): Extract<StatePart, { part: Name }> => {
    const found = parts.find(({ part }) => part === name);
    if (found === undefined) throw new StateError(`its part "${name}" is missing`);
    return found as Extract<StatePart, { part: Name }>;
  };
  const [kernel, known, holdings] = [one('kernel'), one('workers'), one('holdings')];
  const savedPrefixes = one('prefixes').prefixes;
  const savedGroups = parts.flatMap((part) => (part.part === 'groups' ? part.groups : []));
  const savedTasks = parts.filter((part) => part.part === 'tasks');
  // All records are made before others refer to them.
  for (const { name } of savedPrefixes) prefixes.numberOf(new TaskPrefix(name, cluster.costs));
  for (const { name, prefix } of savedGroups) {
    groups.numberOf(new TaskGroup(name, prefixes.itemAt(prefix)));
  }
  for (const { identity, sequence, lastSeenMs } of known.workers) {
    workers.numberOf(new WorkerState(identity, sequence, cluster.costs, lastSeenMs));
  }
  cluster.clients.clear();
  for (const { key, lastSeenMs, versions, isMute } of known.clients) {
    const wants = key === FIRE_AND_FORGET ? new Set<TaskState>() : new SteadySet<TaskState>();
    const client = new ClientState(key, lastSeenMs, versions, isMute, wants);
    clients.numberOf(client);
    cluster.clients.set(key, client);
  }
  const tasks = savedTasks.map((part) => makeTasks(part, refs));
  restore(SCOPE.kernel, scope, kernel, refs);
  restore(CLUSTER.kernel, cluster, kernel, refs);
  savedPrefixes.forEach((saved, n) => restore(PREFIX.prefixes, prefixes.itemAt(n), saved, refs));
  savedGroups.forEach((saved, n) => restore(GROUP.groups, groups.itemAt(n), saved, refs));
  restoreColumns(PREFIX.workers, prefixes.items, known, refs);
  known.workers.forEach((saved, n) => restore(WORKER.workers, workers.itemAt(n), saved, refs));
  restore(CLUSTER.workers, cluster, known, refs);
  for (const [n, part] of savedTasks.entries()) {
    const its = tasks[n] as TaskState[];
    restoreColumns(TASK.tasks, its, part, refs);
    restoreColumns(TASK.specs, its, part, refs);
    for (const [at, fields] of part.rare) restore(TASK.rare, its[at] as TaskState, fields, refs);
  }
  for (const step of refs.later) step();
  restoreColumns(WORKER.holdings, cluster.workersByRank, holdings, refs);
  for (const worker of cluster.workersByRank) {
    for (const task of worker.processing) {
      task.processingOn = worker;
      cluster.runs.add(task);
    }
    for (const [task] of worker.needsWhat) countNeed(cluster, task, 1);
  }
  restoreColumns(CLIENT.holdings, clients.items, holdings, refs);
  restore(CLUSTER.holdings, cluster, holdings, refs);
  restore(SCOPE.holdings, scope, holdings, refs);
  restore(SCOPE.policies, scope, one('policies'), refs);
}

/** With what is in no table any more, and something still refers to. */
function referencesIn(cluster: ClusterState): References {
  const refs = new References(cluster);
  const { prefixes, groups, workers, clients } = refs;
  prefixes.numbersOf([...cluster.prefixes.values()]);
  groups.numbersOf([...cluster.groups.values()]);
  workers.numbersOf(cluster.workersByRank);
  clients.numbersOf([...cluster.clients.values()]);
  // The lists grow meanwhile.
  for (const { prefix, dependencies } of groups.items) {
    prefixes.numberOf(prefix);
    groups.numbersOf([...dependencies]);
  }
  for (const { processing } of cluster.workersByRank) {
    for (const { steal } of processing) {
      if (steal !== undefined) workers.numbersOf([steal.victim, steal.thief]);
    }
  }
  for (const { prefixCounts } of workers.items) {
    for (const { prefix } of prefixCounts) prefixes.numberOf(prefix);
  }
  return refs;
}

/** The tasks of a part. */
function makeTasks({ keys, ids, groups }: TasksPart, refs: References): TaskState[] {
  return keys.map((key, n) => {
    const id = ids[n] as number;
    const task = new TaskState(key, id, GROUP_AT(groups[n] as number, refs));
    refs.tasks.items[id] = task;
    refs.cluster.tasks.set(key, task);
    return task;
  });
}

function* inParts<T>(
  items: readonly T[],
  nbytesOf: (item: T) => number = () => 0,
): Generator<readonly T[], void, undefined> {
  let some: T[] = [];
  let nbytes = 0;
  for (const item of items) {
    const more = nbytesOf(item);
    if (some.length === PART_ITEMS || (some.length > 0 && nbytes + more > PART_BYTES)) {
      yield some;
      some = [];
      nbytes = 0;
    }
    some.push(item);
    nbytes += more;
  }
  if (some.length > 0) yield some;
}

function save<R extends Rows<never>>(rows: R, state: object, refs: References): SavedBy<R> {
  const saved: Record<string, unknown> = {};
  for (const [name, row] of Object.entries(rows)) saved[name] = row.save(state as never, refs);
  return saved as SavedBy<R>;
}

function saveColumns<R extends Rows<never>>(
  rows: R,
  states: readonly object[],
  refs: References,
): Columns<R> {
  const columns = Object.entries(rows).map(([name, row]) => {
    const { save } = row as Row<string, object, unknown>;
    return [name, states.map((state) => save(state, refs) ?? null)];
  });
  return Object.fromEntries(columns) as Columns<R>;
}

function saveRare(tasks: readonly TaskState[], refs: References): TasksPart['rare'] {
  const usual = save(TASK.rare, TASK_AT(FORGOTTEN, refs), refs) as Readonly<
    Record<string, unknown>
  >;
  const rows = Object.entries(TASK.rare);
  return tasks.flatMap((task, position) => {
    if (!task.hasRareFields) return [];
    const fields: Record<string, unknown> = {};
    for (const [name, row] of rows) {
      const saved = row.save(task, refs);
      const isEmpty = Array.isArray(saved) && saved.length === 0;
      if (saved !== usual[name] && !isEmpty) fields[name] = saved;
    }
    return [[position, fields] as const];
  });
}

function restore(rows: Rows<never>, state: object, saved: object, refs: References): void {
  for (const [name, row] of Object.entries(rows)) {
    const plain = (saved as Readonly<Record<string, unknown>>)[name] ?? undefined;
    if (plain !== undefined) row.restore?.(state as never, plain, refs);
  }
}

function restoreColumns(
  rows: Rows<never>,
  states: readonly object[],
  saved: object,
  refs: References,
): void {
  for (const [name, row] of Object.entries(rows)) {
    const column = (saved as Readonly<Record<string, readonly unknown[] | undefined>>)[name];
    if (column === undefined || row.restore === undefined) continue;
    for (let n = 0; n < states.length; n++) {
      const plain = column[n] ?? undefined;
      if (plain !== undefined) row.restore(states[n] as never, plain, refs);
    }
  }
}
