import { YardmasterError } from '../../api/errors.ts';
import type { TaskSummary } from '../../api/insight.ts';
import type { Caller, CommandHandler, NewStimulus } from '../../api/plugin.ts';
import { hint } from '../../config/errors.ts';
import type { SchedulerKernel } from '../../kernel/scheduler-kernel.ts';
import type { TaskState } from '../../state/task.ts';
import type { DataReservations } from '../sessions/data-reservations.ts';
import type { Diagnostics } from './diagnostics.ts';
import type { EventLog } from '../event-log.ts';
import type { IdleWatch } from '../idle-watch.ts';
import { KeyClaims } from '../sessions/key-claims.ts';
import type { LoadedPlugin } from '../../plugin-host/loaded-plugin.ts';
import { PendingAnswers } from '../../host/pending-answers.ts';
import type { PluginInfo } from '../../plugin-host/plugin-info.ts';
import type { PluginLifecycle } from '../../plugin-host/plugin-lifecycle.ts';
import type { PolicyAdmin } from './policy-admin.ts';
import type { WorkerPluginRegistry } from './worker-plugin-registry.ts';
import { VERSION } from '../../api/version.ts';
import type { WorkerCommands } from './worker-commands.ts';
import { BUILTIN_PARAMETERS, builtin, type BuiltinName, type Given } from './builtin-parameters.ts';
import { checkParameters } from './check-parameters.ts';
import { countTasks, listTasks } from './task-list.ts';

/** What the built-in commands read. */
export interface CommandScope {
  readonly serverId: string;
  readonly startedMs: number;
  readonly kernel: SchedulerKernel;
  readonly events: EventLog;
  readonly lifecycle: PluginLifecycle;
  addresses(): readonly string[];
  plugins(): readonly PluginInfo[];
  enqueue(stimulus: NewStimulus): void;
  readonly policies: PolicyAdmin;
  readonly idle: IdleWatch;
  readonly pluginRegistries: readonly WorkerPluginRegistry[];
  readonly diagnostics: Diagnostics;
  readonly reservations: DataReservations;
  readonly workerCommands: WorkerCommands;
  /** Milliseconds that a cancelled subtask has to stop, if the configuration says it. */
  readonly cancelTimeoutMs: number | undefined;
  /** Keys of the tasks that occupy a thread of the worker. */
  executingOn(address: string): Promise<readonly string[]>;
}

/**
 * Calls that clients make by name: the built-in ones, and `<plugin>.<command>`. Answers are plain
 * data; keys and addresses come as pairs and never as names of fields.
 */
export class Commands {
  private readonly builtin: ReadonlyMap<string, CommandHandler>;
  /** Of the built-in commands; plugins have their own. */
  private readonly answers = new PendingAnswers();

  constructor(private readonly scope: CommandScope) {
    const { kernel } = scope;
    this.builtin = new Map<string, CommandHandler>([
      builtin('identity', () => this.identity()),
      builtin('story', ({ keys = [] }) => kernel.story(...keys)),
      builtin('processing', () => this.perWorker(({ processing }) => keysOf(processing))),
      builtin('has-what', () => this.perWorker(({ hasWhat }) => keysOf(hasWhat))),
      builtin('nbytes', ({ keys = [] }) => this.nbytes(keys)),
      builtin('tasks', ({ keys = [] }) => this.tasks(keys)),
      builtin('task-counts', () => countTasks(kernel.cluster)),
      builtin('list-tasks', (given) => listTasks(kernel.cluster, given).map(summaryOf)),
      builtin('executing', ({ workers = [] }) => this.executing(workers)),
      builtin('idle-since', () => scope.idle.look()),
      builtin('plugins', () => scope.plugins()),
      builtin('commands', () => this.names()),
      builtin('events', (given) => this.events(given)),
      builtin('cancel-timeout', () => scope.cancelTimeoutMs ?? null),
      ...new KeyClaims({ cluster: this.scope.kernel.cluster }).commands,
      ...this.scope.reservations.commands,
      ...this.scope.policies.commands,
      ...this.scope.pluginRegistries.flatMap(({ commands }) => [...commands]),
      ...this.scope.diagnostics.commands,
      ...this.scope.workerCommands.commands,
    ]);
  }

  /**
   * A promise that this returns settles at the latest when the plugin of the command, or the scheduler, is
   * gone: with `ERR_CLOSED`.
   * @throws YardmasterError `ERR_PROTOCOL` when there is no such command, or for wrong parameters; what the
   * command throws
   */
  run(name: string, parameters: unknown, caller: Caller): unknown {
    const builtinHandler = this.builtin.get(name);
    const plugin = builtinHandler === undefined ? this.pluginOf(name) : undefined;
    const ofPlugin = plugin?.commands.get(name.slice(name.indexOf('.') + 1));
    const handler = builtinHandler ?? ofPlugin?.handler;
    if (handler !== undefined) {
      const schema =
        ofPlugin === undefined ? BUILTIN_PARAMETERS[name as BuiltinName] : ofPlugin.parameters;
      const given = schema === undefined ? parameters : checkParameters(name, schema, parameters);
      const answer: unknown = handler(given, caller);
      return isPromise(answer) ? (plugin?.answers ?? this.answers).add(answer) : answer;
    }
    throw new YardmasterError(
      'ERR_PROTOCOL',
      `there is no command "${name}"${suggestion(name, this.names())}`,
      { command: name },
    );
  }

  /** The scheduler is closed: what still waits for an answer fails. */
  close(error: Error): void {
    this.answers.failAll(error);
  }

  private names(): string[] {
    const ofPlugins = this.scope.lifecycle.all.flatMap((plugin) =>
      [...plugin.commands.keys()].map((command) => `${plugin.name}.${command}`),
    );
    return [...this.builtin.keys(), ...ofPlugins];
  }

  private pluginOf(name: string): LoadedPlugin | undefined {
    const dot = name.indexOf('.');
    return dot < 0 ? undefined : this.scope.lifecycle.get(name.slice(0, dot));
  }

  private identity(): unknown {
    const { kernel, serverId, startedMs } = this.scope;
    const { cluster } = kernel;
    return {
      type: 'scheduler',
      id: serverId,
      version: VERSION,
      addresses: this.scope.addresses(),
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
    return this.scope.kernel.cluster.workersByRank.map(
      (worker) => [worker.address, read(worker)] as const,
    );
  }

  /** Sizes of these results, or of all that are known. */
  private nbytes(keys: readonly string[]): (readonly [key: string, nbytes: number])[] {
    const { tasks } = this.scope.kernel.cluster;
    const asked =
      keys.length === 0 ? [...tasks.values()] : keys.flatMap((key) => tasks.get(key) ?? []);
    return asked.filter((task) => task.nbytes >= 0).map((task) => [task.key, task.nbytes] as const);
  }

  /** What is known of these tasks; unknown ones are left out. */
  private tasks(keys: readonly string[]): TaskSummary[] {
    const { tasks } = this.scope.kernel.cluster;
    return keys.flatMap((key) => {
      const task = tasks.get(key);
      return task === undefined ? [] : summaryOf(task);
    });
  }

  /** What runs on these workers, cancelled tasks included; those that do not answer are left out. */
  private async executing(
    workers: readonly string[],
  ): Promise<(readonly [address: string, keys: readonly string[]])[]> {
    const { scope } = this;
    const asked = workers.map(
      async (address) => [address, await scope.executingOn(address)] as const,
    );
    const answers = await Promise.allSettled(asked);
    return answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
  }

  private events({ topic }: Given<'events'>): unknown {
    return topic === undefined ? this.scope.events.summary() : this.scope.events.of(topic);
  }
}

/** The nearest name, or the commands of the same plugin, or where to find all. */
function suggestion(name: string, known: readonly string[]): string {
  const near = hint(name, known);
  if (near !== '') return near;
  const dot = name.indexOf('.');
  const ofPlugin = known.filter((one) => dot > 0 && one.startsWith(name.slice(0, dot + 1)));
  if (ofPlugin.length > 0) return `; that plugin has ${ofPlugin.join(', ')}`;
  return '; the command "commands" lists all';
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as { readonly then?: unknown } | undefined | null)?.then === 'function';
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
