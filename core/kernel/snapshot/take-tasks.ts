import type { Restrictions } from '../../state/restrictions.ts';
import type { Blame, TaskState, WorkerState } from '../../state/task.ts';
import { TASK_STATE_NAMES, type TaskStateName } from '../../state/task-state-name.ts';
import type {
  SavedBlame,
  SavedRareFields,
  SavedRestrictions,
  SavedSteal,
  TasksPart,
} from './state-parts.ts';
import { COMPUTABLE, idOf, type SnapshotTables, WAITER } from './snapshot-tables.ts';

/** Positions of the states, looked up once for each task. */
const STATE_NUMBERS: ReadonlyMap<TaskStateName, number> = new Map(
  TASK_STATE_NAMES.map((state, position) => [state, position]),
);

/** These tasks, in columns. */
export function tasksPart(
  { groups, workers, clients }: SnapshotTables,
  tasks: readonly TaskState[],
): TasksPart {
  const rare: [number, SavedRareFields][] = [];
  for (const [position, task] of tasks.entries()) {
    if (!task.hasRareFields) continue;
    rare.push([position, rareFieldsOf(task, (worker) => workers.of(worker))]);
  }
  return {
    part: 'tasks',
    keys: tasks.map(({ key }) => key),
    ids: tasks.map(({ id }) => id),
    groups: tasks.map(({ group }) => groups.of(group)),
    states: tasks.map(stateNumber),
    nbytes: tasks.map(({ nbytes }) => nbytes),
    types: tasks.map(({ type }) => type ?? null),
    runIds: tasks.map(({ runId }) => runId),
    negatedUserPriorities: tasks.map(({ negatedUserPriority }) => negatedUserPriority),
    generations: tasks.map(({ generation }) => generation),
    ranks: tasks.map(({ rank }) => rank),
    arrivals: tasks.map(({ arrival }) => arrival),
    waiterCounts: tasks.map(({ waiterCount }) => waiterCount),
    missingCounts: tasks.map(({ missingDependencyCount }) => missingDependencyCount),
    dependentCounts: tasks.map(({ dependentCount }) => dependentCount),
    dependencies: tasks.map(({ dependencies }) => dependencies.map(idOf)),
    dependents: tasks.map(({ dependentsWithForgotten }) => dependentsWithForgotten.map(idOf)),
    whoHas: tasks.map(({ whoHas }) => whoHas.items.map((worker) => workers.of(worker))),
    whoWants: tasks.map(({ whoWants }) => whoWants.items.map((client) => clients.of(client))),
    rare,
  };
}

function stateNumber({ state, countsAsWaiter, runSpec }: TaskState): number {
  const number = STATE_NUMBERS.get(state) ?? 0;
  return number + (countsAsWaiter ? WAITER : 0) + (runSpec === undefined ? 0 : COMPUTABLE);
}

type Place = (worker: WorkerState) => number;

function rareFieldsOf(task: TaskState, place: Place): SavedRareFields {
  const { restrictions, blame, usedWorkers, failure, sweep, steal } = task;
  const { fingerprint, metadata, annotations, erredOn, failedAt, replicas } = task;
  const { retries, suspicious, reschedules } = task;
  return {
    ...(restrictions === undefined ? {} : { restrictions: restrictionsOf(restrictions) }),
    ...(blame === undefined || failure !== undefined ? {} : { blame: savedBlameOf(blame) }),
    ...(task.hasLostDependencies ? { hasLostDependencies: true } : {}),
    ...(retries === 0 ? {} : { retries }),
    ...(suspicious === 0 ? {} : { suspicious }),
    ...(reschedules === 0 ? {} : { reschedules }),
    ...(usedWorkers === undefined ? {} : { usedWorkers: [...usedWorkers] }),
    ...(task.isActor ? { isActor: true } : {}),
    ...(task.isDataProducer ? { isDataProducer: true } : {}),
    ...(task.isQueueable ? {} : { isQueueable: false }),
    ...(replicas === 1 ? {} : { replicas }),
    ...(failure === undefined ? {} : { failure }),
    ...(sweep?.list !== task.dependentsWithForgotten ? {} : { sweep: [sweep.seen, sweep.kept] }),
    ...(failedAt === 0 ? {} : { failedAt }),
    ...(erredOn.size === 0 ? {} : { erredOn: [...erredOn] }),
    ...(steal === undefined ? {} : { steal: stealOf(steal, place) }),
    ...(fingerprint === undefined ? {} : { fingerprint }),
    ...(metadata === undefined ? {} : { metadata }),
    ...(annotations === undefined ? {} : { annotations }),
  };
}

function savedBlameOf(blame: Blame): number | SavedBlame {
  const { task, failure } = blame;
  if (task.state !== 'forgotten' && task.blame === blame) return task.id;
  return { key: task.key, failure };
}

function stealOf(steal: NonNullable<TaskState['steal']>, place: Place): SavedSteal {
  const { state, victim, thief, victimS, thiefS } = steal;
  return { state, victim: place(victim), thief: place(thief), victimS, thiefS };
}

function restrictionsOf(restrictions: Restrictions): SavedRestrictions {
  const { workers, names, hosts, resources, loose } = restrictions;
  return {
    ...(workers === undefined ? {} : { workers: [...workers] }),
    ...(names === undefined ? {} : { names: [...names] }),
    ...(hosts === undefined ? {} : { hosts: [...hosts] }),
    ...(resources === undefined ? {} : { resources: [...resources] }),
    ...(loose === undefined ? {} : { loose }),
  };
}
