import type { Clock } from '../api/clock.ts';
import type { TaskSummary } from '../api/insight.ts';
import { VERSION } from '../api/plugin.ts';
import type { Config } from '../config/types.ts';
import { versionsHere } from '../host/handshakes.ts';
import { LogBook, selectLines } from '../host/log.ts';
import { SchedulerKernel } from '../kernel/kernel.ts';
import type { InspectReply, InspectRequest, LogLine } from '../messages/protocol.ts';
import { HookRegistry } from '../plugin-host/hooks.ts';
import { collaborator, inject } from '../plugin-host/injection.ts';
import { CLOCK, CONFIG, SERVER_ID } from '../host/tokens.ts';
import type { ClusterState } from '../state/cluster.ts';
import { TASK_STATE_NAMES, type TaskStateName } from '../state/state-names.ts';
import type { TaskState, WorkerState } from '../state/task.ts';
import { builtin, type BuiltinCommand, type Given } from './commands.ts';
import { EventLog } from './event-log.ts';
import { Gatherer } from './gatherer.ts';
import { PluginTable } from './plugin-table.ts';
import { IdleWatch } from './scheduler-life.ts';
import { Sessions } from './sessions.ts';
import { waitingIn } from '../shared/waiting.ts';
import { type Answers, askWorkers, workersNamed } from './worker-commands.ts';

/** Commands that read the state of the scheduler. Answers are plain data; keys and addresses come as pairs. */
@collaborator
export class ClusterCommands {
  readonly commands: readonly BuiltinCommand[];
  private readonly startedMs: number;

  constructor(
    @inject(SERVER_ID) private readonly serverId: string,
    private readonly kernel: SchedulerKernel,
    private readonly sessions: Sessions,
    private readonly eventLog: EventLog,
    private readonly gatherer: Gatherer,
    idleWatch: IdleWatch,
    plugins: PluginTable,
    hooks: HookRegistry,
    @inject(CONFIG) { worker: { killGrace } }: Config,
    @inject(CLOCK) clock: Clock,
  ) {
    this.startedMs = clock.nowMs();
    const { cluster } = kernel;
    this.commands = [
      builtin('identity', () => this.identity()),
      builtin('story', ({ keys = [] }) => kernel.story(...keys)),
      builtin('processing', () => this.perWorker(({ processing }) => keysOf(processing))),
      builtin('has-what', () => this.perWorker(({ hasWhat }) => keysOf(hasWhat))),
      builtin('nbytes', ({ keys = [] }) => this.nbytes(keys)),
      builtin('tasks', ({ keys = [] }) => this.tasks(keys)),
      builtin('task-counts', (given) => countTasks(cluster, given)),
      builtin('what-waits', () => waitingIn(cluster, hooks.slowCalls())),
      builtin('list-tasks', (given) => listTasks(cluster, given).map(summaryOf)),
      builtin('executing', ({ workers = [] }) => this.executing(workers)),
      builtin('idle-since', () => idleWatch.look()),
      builtin('plugins', () => plugins.infos),
      builtin('events', (given) => this.events(given)),
      builtin('kill-grace', () => (Number.isFinite(killGrace) ? killGrace : null)),
    ];
  }

  private identity(): unknown {
    const { kernel, serverId, startedMs } = this;
    const { cluster } = kernel;
    return {
      type: 'scheduler',
      id: serverId,
      version: VERSION,
      addresses: [...this.sessions.addresses],
      startedMs,
      taskCount: cluster.tasks.size,
      clients: [...cluster.clients.keys()],
      threadCount: cluster.totalThreads,
      memoryLimitBytes: cluster.totalMemoryBytes,
      workers: cluster.workersByRank.map((worker) => ({
        ...worker.identity,
        status: worker.status,
        processingCount: worker.processing.size,
        resultCount: worker.hasWhat.size,
        nbytes: worker.nbytes,
        lastSeenMs: worker.lastSeenMs,
        metrics: worker.metrics,
      })),
    };
  }

  private perWorker<T>(
    read: (worker: SchedulerKernel['cluster']['workersByRank'][number]) => T,
  ): (readonly [address: string, value: T])[] {
    return this.kernel.cluster.workersByRank.map(
      (worker) => [worker.address, read(worker)] as const,
    );
  }

  /** Sizes of these results, or of all that are known. */
  private nbytes(keys: readonly string[]): (readonly [key: string, nbytes: number])[] {
    const { tasks } = this.kernel.cluster;
    const asked =
      keys.length === 0 ? [...tasks.values()] : keys.flatMap((key) => tasks.get(key) ?? []);
    return asked.filter((task) => task.nbytes >= 0).map((task) => [task.key, task.nbytes] as const);
  }

  /** The summaries of these tasks; unknown ones are left out. */
  private tasks(keys: readonly string[]): TaskSummary[] {
    const { tasks } = this.kernel.cluster;
    return keys.flatMap((key) => {
      const task = tasks.get(key);
      return task === undefined ? [] : summaryOf(task);
    });
  }

  /** The tasks that run on these workers, cancelled ones included; workers that do not answer are left out. */
  private async executing(
    workers: readonly string[],
  ): Promise<(readonly [address: string, keys: readonly string[]])[]> {
    const asked = workers.map(
      async (address) => [address, await this.gatherer.executingOn(address)] as const,
    );
    const answers = await Promise.allSettled(asked);
    return answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
  }

  private events({ topic }: Given<'events'>): unknown {
    return topic === undefined ? this.eventLog.summary() : this.eventLog.of(topic);
  }
}

function keysOf(tasks: Iterable<TaskState>): string[] {
  return [...tasks].map((task) => task.key);
}

function summaryOf(task: TaskState): TaskSummary {
  const { key, state, priority, processingOn, whoHas, retries, suspicious, reschedules, nbytes } =
    task;
  return {
    key,
    state,
    priority,
    ...(processingOn === undefined ? {} : { processingOn: processingOn.address }),
    whoHas: whoHas.items.map((worker) => worker.address),
    retriesLeft: retries,
    deaths: suspicious,
    reschedules,
    nbytes,
  };
}

interface Keyed {
  readonly key: string;
}

const keyOf = ({ key }: Keyed): string => key;
const addressOf = ({ address }: { readonly address: string }): string => address;

/** Everything that the scheduler knows of tasks, workers and clients, as plain data. O(all of it). */
function describeCluster(cluster: ClusterState): Readonly<Record<string, unknown>> {
  return {
    tasks: [...cluster.tasks.values()].map(describeTask),
    workers: cluster.workersByRank.map(describeWorker),
    clients: [...cluster.clients.values()].map((client) => ({
      key: client.key,
      lastSeenMs: client.lastSeenMs,
      wantsWhat: [...client.wantsWhat].map(keyOf),
    })),
  };
}

function describeTask(task: TaskState): Readonly<Record<string, unknown>> {
  return {
    key: task.key,
    state: task.state,
    group: task.group.name,
    priority: task.priority,
    dependencies: [...task.dependencies].map(keyOf),
    dependents: [...task.dependents].map(keyOf),
    waitingOn: [...task.waitingOn].map(keyOf),
    whoHas: task.whoHas.items.map(addressOf),
    whoWants: task.whoWants.items.map(keyOf),
    processingOn: task.processingOn?.address,
    nbytes: task.nbytes,
    type: task.type,
    runId: task.runId,
    retries: task.retries,
    suspicious: task.suspicious,
    replicas: task.replicas,
    blame: task.exceptionBlame?.key,
    exception: task.failure?.exceptionText,
  };
}

function describeWorker(worker: WorkerState): Readonly<Record<string, unknown>> {
  return {
    ...worker.identity,
    status: worker.status,
    occupancyS: worker.occupancyS,
    processing: [...worker.processing].map(keyOf),
    hasWhat: [...worker.hasWhat].map(keyOf),
    usedResources: [...worker.usedResources],
    metrics: worker.metrics,
    lastSeenMs: worker.lastSeenMs,
  };
}

/** A worker that has not answered within this time is listed as silent. */
const ANSWER_TIMEOUT_MS = 10_000;

/**
 * Commands that query all processes of the cluster in parallel. A worker that does not answer in
 * time does not delay the result: its entry is the error.
 */
@collaborator
export class Diagnostics {
  readonly commands: readonly BuiltinCommand[];

  constructor(
    private readonly kernel: SchedulerKernel,
    private readonly sessions: Sessions,
    private readonly events: EventLog,
    private readonly logBook: LogBook,
    private readonly plugins: PluginTable,
  ) {
    this.commands = [
      builtin('versions', ({ timeoutMs }) => this.versions(timeoutMs)),
      builtin('logs', (given) => this.logs(given)),
      builtin('dump-state', ({ timeoutMs }) => this.dump(timeoutMs)),
    ];
  }

  private async versions(timeoutMs: number | undefined): Promise<unknown> {
    const { clients } = this.kernel.cluster;
    return {
      scheduler: versionsHere(),
      clients: [...clients.values()].map(({ key, versions }) => [key, versions]),
      workers: await this.ask({ what: 'versions' }, timeoutMs),
    };
  }

  private async logs({ workers: named, timeoutMs, ...selection }: Given<'logs'>): Promise<unknown> {
    const answers = await this.ask({ what: 'logs' }, timeoutMs, named);
    const workers = answers.map(([address, answer]) => {
      const { lines } = answer as { readonly lines?: readonly LogLine[] };
      return [address, lines === undefined ? answer : { lines: selectLines(lines, selection) }];
    });
    return { scheduler: selectLines(this.logBook.lines(), selection), workers };
  }

  private async dump(timeoutMs: number | undefined): Promise<unknown> {
    const { kernel, events, logBook } = this;
    // Asked first, described at once: both see about the same moment.
    const asked = this.ask({ what: 'state' }, timeoutMs);
    const scheduler = {
      ...versionsHere(),
      ...describeCluster(kernel.cluster),
      story: kernel.story(),
      plugins: this.plugins.infos,
      events: events.summary(),
      logs: logBook.lines(),
    };
    return { scheduler, workers: await asked };
  }

  private ask(
    request: InspectRequest,
    timeoutMs = ANSWER_TIMEOUT_MS,
    named?: readonly string[],
  ): Promise<Answers<InspectReply>> {
    const { sessions } = this;
    const { cluster } = this.kernel;
    return askWorkers(
      { cluster, sessions },
      workersNamed(cluster, named),
      { method: 'inspect', parameters: { ...request } },
      timeoutMs,
    );
  }
}

const LIMIT = 100;

/** The number of tasks of a prefix in each state. */
interface PrefixCounts {
  readonly prefix: string;
  /** Without states of which there are none. */
  readonly states: Readonly<Partial<Record<TaskStateName, number>>>;
  /** The number of results and of failures of its tasks since the scheduler started; on request. */
  readonly ever?: { readonly done: number; readonly failed: number };
}

/**
 * Counts of the tasks that exist, by prefix, in the order in which prefixes came. O(groups).
 * @param withPast - also what has ever been done, and prefixes of which there are no tasks any more
 */
function countTasks(
  { prefixes }: ClusterState,
  { withPast = false }: Given<'task-counts'>,
): readonly PrefixCounts[] {
  const counts: PrefixCounts[] = [];
  for (const { name, states, stateCounts } of prefixes.values()) {
    const present = TASK_STATE_NAMES.filter((state) => state !== 'forgotten' && states[state] > 0);
    if (present.length === 0 && !withPast) continue;
    counts.push({
      prefix: name,
      states: Object.fromEntries(present.map((state) => [state, states[state]])),
      ...(withPast ? { ever: { done: stateCounts.memory, failed: stateCounts.erred } } : {}),
    });
  }
  return counts;
}

/** Tasks in a state, or of a prefix, in the order in which they came; at most `limit`. O(tasks) at worst. */
function listTasks(
  { tasks }: ClusterState,
  { state, prefix, limit = LIMIT }: Given<'list-tasks'>,
): readonly TaskState[] {
  const found: TaskState[] = [];
  for (const task of tasks.values()) {
    if (found.length >= limit) break;
    if (state !== undefined && task.state !== state) continue;
    if (prefix !== undefined && task.prefix.name !== prefix) continue;
    found.push(task);
  }
  return found;
}
