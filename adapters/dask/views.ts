import type { Fields } from './wire/codec.ts';
import type {
  ClientView,
  GroupView,
  PrefixView,
  TaskView,
  WorkerView,
} from '../../core/api/index.ts';
import type { DaskContext, ExtensionHooks } from './context.ts';
import { workerIdentity } from './identity.ts';
import type { CompanionEvent } from './companion.ts';

// Tasks, workers, clients and groups, as `yardmaster_companion/state.py` reads them.

/** A task; the order of the fields is that of `TaskState.FIELDS`. */
export function taskFields({ keys }: DaskContext, task: TaskView): unknown[] {
  return [
    keys.wireOf(task.key),
    task.state,
    task.group.name,
    task.prefix.name,
    task.priority ?? null,
    task.nbytes,
    task.type ?? null,
    task.retries,
    task.suspicious,
    task.isActor,
    task.processingOn?.address ?? null,
    task.whoHas.items.map(({ address }) => address),
    task.whoWants.items.map(({ key }) => key),
  ];
}

/** For an event: with what can no longer be asked for when the task is forgotten. O(its dependencies). */
function taskFieldsNow(context: DaskContext, task: TaskView): unknown[] {
  const inputs = task.dependencies.map(({ key }) => context.keys.wireOf(key));
  return [...taskFields(context, task), inputs, task.annotations ?? {}];
}

export function taskLinks({ keys }: DaskContext, task: TaskView): Fields {
  const wires = (tasks: readonly TaskView[]): unknown[] => {
    return tasks.map(({ key }) => keys.wireOf(key));
  };
  const blame = task.exceptionBlame;
  return {
    dependencies: wires(task.dependencies),
    dependents: wires(task.dependents),
    waiting_on: wires(task.waitingOn),
    waiters: wires(task.waiters),
    exception_blame: blame === undefined ? null : keys.wireOf(blame.key),
  };
}

/** Fields that are rarely needed. */
export function taskDetails(task: TaskView): Fields {
  const { restrictions, failure } = task;
  return {
    annotations: task.annotations ?? {},
    metadata: task.metadata ?? {},
    host_restrictions: [...(restrictions?.hosts ?? [])],
    worker_restrictions: [...(restrictions?.workers ?? []), ...(restrictions?.names ?? [])],
    resource_restrictions: new Map(restrictions?.resources ?? []),
    loose_restrictions: restrictions?.loose === true,
    has_lost_dependencies: task.hasLostDependencies,
    // Of the latest assignment; None before the first, as Dask has it.
    run_id: task.runId < 0 ? null : task.runId,
    // Nothing when it failed because of another.
    erred_on: task.state === 'erred' ? [...task.erredOn] : null,
    exception_text: failure?.exceptionText ?? null,
    traceback_text: failure?.tracebackText ?? null,
  };
}

/** A worker; those of Node have no more than what every worker has. */
export function workerFields(context: DaskContext, view: WorkerView): Fields {
  const worker = context.workers.get(view.address);
  const { memory } = view;
  const identity = worker === undefined ? {} : workerIdentity(context, worker);
  const registration = worker?.registration ?? {};
  return {
    ...identity,
    address: view.address,
    name: worker?.name ?? view.name,
    host: view.host,
    nthreads: view.threadCount,
    memory_limit: view.memoryLimitBytes,
    status: view.status.replace('-', '_'),
    nanny: worker?.nanny ?? null,
    pid: registration['pid'] ?? null,
    server_id: registration['server_id'] ?? null,
    versions: registration['versions'] ?? {},
    extra: registration['extra'] ?? {},
    local_directory: registration['local_directory'] ?? null,
    services: registration['services'] ?? {},
    metrics: worker?.metrics ?? {},
    last_seen: view.lastSeenMs / 1000,
    time_delay: 0,
    nbytes: view.nbytes,
    occupancy: view.occupancyS,
    resources: new Map(view.resources),
    used_resources: new Map(view.usedResources),
    memory: {
      process: memory.process,
      managed: memory.managed,
      managed_in_memory: memory.managed,
      managed_total: memory.managedTotal,
      spilled: memory.spilled,
      managed_spilled: memory.spilled,
      unmanaged: memory.unmanaged,
      unmanaged_old: memory.unmanagedOld,
      unmanaged_recent: memory.unmanagedRecent,
      optimistic: memory.optimistic,
    },
  };
}

/** A worker that has left, of which only the address is known. */
export function goneWorkerFields(address: unknown): Fields {
  const memory = { process: 0, managed: 0, spilled: 0, unmanaged: 0, optimistic: 0 };
  const tables = { processing: [], has_what: [], long_running: [], actors: [] };
  return { address, name: address, status: 'closed', nthreads: 0, metrics: {}, memory, ...tables };
}

export function clientFields({ clients }: DaskContext, client: ClientView): Fields {
  return {
    client_key: client.key,
    last_seen: client.lastSeenMs / 1000,
    versions: { packages: { distributed: clients.get(client.key)?.dialect.version ?? null } },
  };
}

export function groupFields(group: GroupView): Fields {
  return {
    name: group.name,
    _prefix: group.prefix.name,
    _dependencies: Array.from(group.dependencies, ({ name }) => name),
    states: { ...group.states },
    nbytes_total: group.nbytesTotal,
    types: [...group.types.keys()],
    duration: group.durationS,
    all_durations: new Map([['compute', group.durationS], ...group.otherDurationsS]),
  };
}

export function prefixFields(prefix: PrefixView): Fields {
  return {
    name: prefix.name,
    duration_average: prefix.durationAverageS,
    suspicious: prefix.suspicious,
    nbytes_total: prefix.nbytesTotal,
    state_counts: { ...prefix.stateCounts },
  };
}

// Events of the scheduler, in the form that the hooks of scheduler plugins in Python receive.

/** Fields of a worker's report that Dask does not hand to plugins. */
const REPORT_ENVELOPE: ReadonlySet<string> = new Set(['op', 'key', 'stimulus_id', 'run_id']);

/** The source and the receiver of events. */
interface EventFeedPort {
  readonly context: DaskContext;
  /** True when a plugin has this hook. */
  isWanted(hook: string): boolean;
  send(event: CompanionEvent): void;
}

/** Makes an event of what happens, when a plugin wants it. Otherwise it is one look at a set. */
export class EventFeed {
  /** The reports of workers about tasks whose transition is about to follow, by key. */
  private readonly reports = new Map<string, Fields>();

  constructor(private readonly port: EventFeedPort) {}

  /** Called when a worker has reported the end of a task. */
  readonly onReport = (
    message: Fields,
    key: string,
    worker: { readonly address: string },
  ): void => {
    if (!this.port.isWanted('transition')) return;
    const fields = Object.entries(message).filter(([name]) => !REPORT_ENVELOPE.has(name));
    this.reports.set(key, { ...Object.fromEntries(fields), worker: worker.address });
  };

  readonly hooks: ExtensionHooks = {
    taskTransition: (task, start, finish, stimulusId, details) => {
      const { port } = this;
      if (!port.isWanted('transition')) return;
      const report = start === 'processing' ? this.reports.get(task.key) : undefined;
      if (report !== undefined || finish === 'forgotten') this.reports.delete(task.key);
      const { keys } = port.context;
      const { cause, worker } = details;
      const outcome: Record<string, unknown> = report === undefined ? {} : { ...report };
      if (worker !== undefined) outcome['worker'] = worker;
      if (cause !== undefined) outcome['cause'] = keys.wireOf(cause);
      const fields = taskFieldsNow(port.context, task);
      port.send(['transition', fields[0], start, finish, stimulusId, fields, outcome]);
    },
    graphUpdated: ({ client, keys, tasks, stimulusId }) => {
      const { port } = this;
      if (!port.isWanted('update_graph')) return;
      const table = port.context.keys;
      const wires = keys.map((key) => table.wireOf(key));
      const listed = tasks.map((task) => this.listed(task));
      port.send(['update_graph', { client, keys: wires, tasks: listed, stimulus_id: stimulusId }]);
    },
    workerAdded: ({ address }) => this.send('add_worker', address),
    workerRemoved: ({ address }, stimulusId) => this.send('remove_worker', address, stimulusId),
    clientAdded: ({ key }) => this.send('add_client', key),
    clientRemoved: ({ key }) => this.send('remove_client', key),
    eventLogged: (topic, message) => this.send('log_event', topic, message),
  };

  restarted(): void {
    this.send('restart');
  }

  /** Nothing is wanted any more. */
  clear(): void {
    this.reports.clear();
  }

  private send(name: string, ...fields: unknown[]): void {
    if (this.port.isWanted(name)) this.port.send([name, ...fields]);
  }

  private listed({ key, priority, dependencies, annotations }: TaskView): unknown[] {
    const { keys } = this.port.context;
    return [
      keys.wireOf(key),
      priority ?? null,
      dependencies.map((input) => keys.wireOf(input.key)),
      annotations ?? null,
    ];
  }
}
