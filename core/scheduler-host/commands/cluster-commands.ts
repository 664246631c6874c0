import type { TaskSummary } from '../../api/insight.ts';
import { token, type Token } from '../../api/plugin.ts';
import type { Clock } from '../../api/clock.ts';
import { VERSION } from '../../api/version.ts';
import type { Config } from '../../config/types.ts';
import type { SchedulerKernel } from '../../kernel/scheduler-kernel.ts';
import { inject } from '../../plugin-host/injection/di.ts';
import { CLOCK, CONFIG } from '../../plugin-host/injection/tokens.ts';
import { PLUGINS, type PluginTable } from '../plugins/plugin-table.ts';
import type { TaskState } from '../../state/task.ts';
import { EVENT_LOG, type EventLog } from '../event-log.ts';
import { IDLE_WATCH, type IdleWatch } from '../life/idle-watch.ts';
import { type Gatherer, GATHERER } from '../results/gatherer.ts';
import { SESSIONS, type Sessions } from '../sessions/sessions.ts';
import { KERNEL, SERVER_ID } from '../tokens.ts';
import { builtin, type BuiltinCommand, type Given } from './builtin-parameters.ts';
import { countTasks, listTasks } from './task-list.ts';

export const CLUSTER_COMMANDS: Token<ClusterCommands> = token('cluster-commands');

/** Commands that read the state of the scheduler. Answers are plain data; keys and addresses come as pairs. */
export class ClusterCommands {
  readonly commands: readonly BuiltinCommand[];
  private readonly startedMs: number;

  constructor(
    @inject(SERVER_ID) private readonly serverId: string,
    @inject(KERNEL) private readonly kernel: SchedulerKernel,
    @inject(SESSIONS) private readonly sessions: Sessions,
    @inject(EVENT_LOG) private readonly eventLog: EventLog,
    @inject(GATHERER) private readonly gatherer: Gatherer,
    @inject(IDLE_WATCH) idleWatch: IdleWatch,
    @inject(PLUGINS) plugins: PluginTable,
    @inject(CONFIG) { scheduling }: Config,
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
      builtin('list-tasks', (given) => listTasks(cluster, given).map(summaryOf)),
      builtin('executing', ({ workers = [] }) => this.executing(workers)),
      builtin('idle-since', () => idleWatch.look()),
      builtin('plugins', () => plugins.infos),
      builtin('events', (given) => this.events(given)),
      builtin('cancel-timeout', () => scheduling.subtaskCancelTimeout ?? null),
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

  /** What is known of these tasks; unknown ones are left out. */
  private tasks(keys: readonly string[]): TaskSummary[] {
    const { tasks } = this.kernel.cluster;
    return keys.flatMap((key) => {
      const task = tasks.get(key);
      return task === undefined ? [] : summaryOf(task);
    });
  }

  /** What runs on these workers, cancelled tasks included; those that do not answer are left out. */
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
    ...(priority === undefined ? {} : { priority }),
    ...(processingOn === undefined ? {} : { processingOn: processingOn.address }),
    whoHas: whoHas.items.map((worker) => worker.address),
    retriesLeft: retries,
    deaths: suspicious,
    reschedules,
    nbytes,
  };
}
