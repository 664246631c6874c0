/** The state of the scheduler in the form of Dask's cluster dumps, which `DumpArtefact` reads. */
import type {
  GroupView,
  PrefixView,
  TaskFailure,
  TaskView,
  WorkerView,
} from '../../../../core/api/index.ts';
import type { DaskContext, DaskWorker, Fields } from '../../context.ts';
import { reprOf } from '../../bridge/key-table.ts';
import { toPlain } from '../../codec/plain.ts';
import { asList } from '../../codec/values.ts';
import { erredOnOf, runIdOf } from '../../companion/views.ts';
import { schedulerIdentity, workerIdentity } from './identity.ts';
import { type Transition, transitionRow } from './transitions.ts';

/** Names of fields that a dump is to leave out, on every level. */
export function excludedBy(request: Fields): ReadonlySet<string> {
  return new Set((asList(request['exclude']) ?? []).map(String));
}

/** Plain data. O(tasks). */
export async function schedulerState(
  context: DaskContext,
  excluded: ReadonlySet<string>,
): Promise<Fields> {
  const { cluster, plugin, workers, keys } = context;
  const story = (await plugin.run('story', { keys: [] })) as readonly Transition[];
  const topics = plugin.run('events') as readonly (readonly [topic: string, count: number])[];
  const parts: Record<string, () => unknown> = {
    transition_log: () => story.map((record) => transitionRow(record, keys)),
    transition_counter: () => context.tallies.transitionCount,
    tasks: () => new Map(mapped(cluster.tasks.values(), (task) => taskEntry(context, task))),
    task_groups: () =>
      new Map(mapped(cluster.groups.values(), (group) => [group.name, groupState(group)])),
    workers: () =>
      new Map(mapped(workers.values(), (worker) => [worker.address, workerState(context, worker)])),
    clients: () =>
      new Map(
        mapped(cluster.clients.values(), (client) => [
          client.key,
          {
            client_key: client.key,
            wants_what: mapped(client.wantsWhat, reprOfTask),
            last_seen: client.lastSeenMs / 1000,
          },
        ]),
      ),
    memory: () => totalMemory(cluster.workers.values()),
    events: () => new Map(topics.map(([topic]) => [topic, plugin.run('events', { topic })])),
    extensions: () => ({}),
  };
  const state: Record<string, unknown> = {
    ...schedulerIdentity(context, 0),
    status: 'running',
    thread_id: process.pid,
  };
  delete state['workers'];
  for (const [name, part] of Object.entries(parts)) {
    if (!excluded.has(name)) state[name] = part();
  }
  return toPlain(without(excluded, state)) as Fields;

  function taskEntry(of: DaskContext, task: TaskView): [unknown, Fields] {
    return [of.keys.wireOf(task.key), without(excluded, taskState(of, task))];
  }
}

function mapped<T, R>(items: Iterable<T>, make: (item: T) => R): R[] {
  return Array.from(items, make);
}

/** Without the fields of these names, on this level and the one below. */
function without(excluded: ReadonlySet<string>, fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !excluded.has(name)));
}

function taskState({ keys }: DaskContext, task: TaskView): Fields {
  const { restrictions, failure } = task;
  const words: Partial<TaskFailure> = failure ?? {};
  return {
    key: keys.wireOf(task.key),
    state: task.state,
    priority: task.priority ?? null,
    run_spec: task.runSpec === undefined ? null : '<run_spec>',
    dependencies: task.dependencies.map(reprOfTask),
    dependents: task.dependents.map(reprOfTask),
    waiting_on: task.waitingOn.map(reprOfTask),
    waiters: task.waiters.map(reprOfTask),
    who_has: task.whoHas.items.map(reprOfWorker),
    who_wants: task.whoWants.items.map(({ key }) => `<Client '${key}'>`),
    processing_on: task.processingOn === undefined ? null : reprOfWorker(task.processingOn),
    nbytes: task.nbytes,
    type: task.type ?? null,
    retries: task.retries,
    suspicious: task.suspicious,
    actor: task.isActor,
    exception: failure === undefined ? null : (words.exceptionText ?? null),
    exception_text: words.exceptionText ?? '',
    traceback: words.tracebackText ?? null,
    traceback_text: words.tracebackText ?? '',
    exception_blame: task.exceptionBlame === undefined ? null : reprOfTask(task.exceptionBlame),
    erred_on: erredOnOf(task),
    has_lost_dependencies: task.hasLostDependencies,
    run_id: runIdOf(task),
    host_restrictions: restrictions?.hosts ?? [],
    worker_restrictions: [...(restrictions?.workers ?? []), ...(restrictions?.names ?? [])],
    resource_restrictions: restrictions?.resources ?? {},
    loose_restrictions: restrictions?.loose ?? false,
    annotations: task.annotations ?? {},
    metadata: task.metadata ?? {},
    group: reprOfGroup(task.group),
    group_key: task.group.name,
    prefix: reprOfPrefix(task.prefix),
  };
}

/** The attributes of Dask's `WorkerState`. */
export function workerState(context: DaskContext, worker: DaskWorker): Fields {
  const identity = workerIdentity(context, worker);
  const { registration } = worker;
  const view = context.cluster.workers.get(worker.address);
  const known = view === undefined ? {} : placeState(view);
  return {
    address: worker.address,
    name: worker.name,
    pid: registration['pid'] ?? null,
    server_id: registration['server_id'] ?? null,
    scheduler: context.address,
    nanny: worker.nanny ?? null,
    host: identity['host'],
    status: identity['status'],
    nthreads: identity['nthreads'],
    memory_limit: identity['memory_limit'],
    last_seen: identity['last_seen'],
    local_directory: identity['local_directory'],
    services: identity['services'],
    resources: identity['resources'],
    extra: registration['extra'] ?? {},
    metrics: worker.metrics,
    time_delay: 0,
    ...known,
  };
}

function placeState(view: WorkerView): Fields {
  const counts = new Map<string, number>();
  for (const { prefix } of view.processing) {
    counts.set(prefix.name, (counts.get(prefix.name) ?? 0) + 1);
  }
  return {
    nbytes: view.nbytes,
    occupancy: view.occupancyS,
    has_what: mapped(view.hasWhat, reprOfTask),
    processing: mapped(view.processing, reprOfTask),
    executing: {},
    long_running: mapped(view.longRunning, reprOfTask),
    actors: mapped(view.actors, reprOfTask),
    needs_what: view.needsWhat.size,
    used_resources: view.usedResources,
    task_prefix_count: counts,
    bandwidth: view.metrics.bandwidth ?? 0,
    memory: memoryOf(view),
  };
}

function memoryOf({ metrics }: WorkerView): Fields {
  const { memoryBytes: process, managedBytes: managed, spilledMemoryBytes: spilled } = metrics;
  return { process, managed, unmanaged: Math.max(0, process - managed), spilled };
}

function totalMemory(workers: Iterable<WorkerView>): Fields {
  const sum: Record<string, number> = { process: 0, managed: 0, unmanaged: 0, spilled: 0 };
  for (const worker of workers) {
    for (const [name, bytes] of Object.entries(memoryOf(worker))) {
      sum[name] = (sum[name] ?? 0) + Number(bytes);
    }
  }
  return sum;
}

function groupState(group: GroupView): Fields {
  return {
    name: group.name,
    prefix: reprOfPrefix(group.prefix),
    states: group.states,
    dependencies: mapped(group.dependencies, reprOfGroup),
    nbytes_total: group.nbytesTotal,
    types: [...group.types.keys()],
  };
}

function reprOfTask({ key, state }: TaskView): string {
  return `<TaskState ${reprOf(key)} ${state}>`;
}

function reprOfWorker({ address, name, status }: WorkerView): string {
  return `<WorkerState '${address}', name: ${name}, status: ${status}>`;
}

function reprOfGroup({ name, states }: GroupView): string {
  return `<${name}: ${statesText(states)}>`;
}

function reprOfPrefix({ name, states }: PrefixView): string {
  return `<${name}: ${statesText(states)}>`;
}

function statesText(states: Readonly<Record<string, number>>): string {
  return Object.entries(states)
    .filter(([, count]) => count > 0)
    .map(([state, count]) => `${state}: ${count}`)
    .join(' ');
}
