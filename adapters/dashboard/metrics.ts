import { performance } from 'node:perf_hooks';
import { Counter, Gauge, Registry } from 'prom-client';
import {
  type AmmStatus,
  BRIDGE,
  type ClusterView,
  type PluginContext,
  type PrefixView,
  type TaskStateName,
  type WorkerView,
  YardmasterError,
} from '../../core/api/index.ts';

import { LoopDelay } from './process-figures.ts';

// Figures of the cluster under the names that Dask's scheduler gives them. O(groups + workers).

export function tasksByState({ prefixes }: ClusterView): ReadonlyMap<TaskStateName, number> {
  const found = new Map<TaskStateName, number>();
  for (const { states } of prefixes.values()) {
    for (const [name, count] of Object.entries(states)) {
      const state = name as TaskStateName;
      found.set(state, (found.get(state) ?? 0) + count);
    }
  }
  return found;
}

/** Workers by what they have to do. */
function workersByState(cluster: ClusterView): Readonly<Record<string, number>> {
  const { idle, saturated, running, workers } = cluster;
  let paused = 0;
  for (const { status } of workers.values()) if (status === 'paused') paused++;
  return {
    idle: idle.size,
    partially_saturated: Math.max(0, running.size - idle.size - saturated.size),
    saturated: saturated.size,
    paused,
    retiring: Math.max(0, workers.size - paused - running.size),
  };
}

/** Clients, without the one that stands for all that was fired and forgotten. */
export function clientCount({ clients }: ClusterView): number {
  return clients.size - (clients.has('fire-and-forget') ? 1 : 0);
}

/** `/json/counts.json` of Dask. */
export function countsOf(cluster: ClusterView): Readonly<Record<string, number>> {
  const states = tasksByState(cluster);
  const hosts = new Set<string>();
  let [bytes, memory, processing] = [0, 0, 0];
  for (const worker of cluster.workers.values()) {
    hosts.add(worker.host);
    bytes += worker.nbytes;
    memory += worker.hasWhat.size;
    processing += worker.processing.size;
  }
  return {
    bytes,
    clients: clientCount(cluster),
    cores: cluster.totalThreads,
    erred: states.get('erred') ?? 0,
    hosts: hosts.size,
    idle: cluster.idle.size,
    memory,
    processing,
    released: states.get('released') ?? 0,
    saturated: cluster.saturated.size,
    tasks: cluster.tasks.size,
    unrunnable: cluster.unrunnable.size,
    waiting: states.get('waiting') ?? 0,
    workers: cluster.workers.size,
  };
}

/** The answer of a plugin; null when the plugin is not there. */
export function orNull(run: () => unknown): unknown {
  try {
    return run();
  } catch (error) {
    if (YardmasterError.is(error)) return null;
    throw error;
  }
}

type Labels = Readonly<Record<string, string>>;
type Sample = readonly [value: number, labels?: Labels];
type Read = () => Iterable<Sample>;

interface HookInfo {
  readonly hook: string;
  readonly calls: number;
  readonly errors: number;
  readonly totalMs: number;
}

/** The part of the answer of the command `plugins` that is read here. */
interface PluginInfo {
  readonly name: string;
  readonly errorCount: number;
  readonly hooks: readonly HookInfo[];
}

/**
 * The metrics for Prometheus. Figures that Dask's exporter has are under its names (`dask_scheduler_…`), the others are
 * `yardmaster_…`. Everything is read from the state when it is asked for, so that nothing is counted in between;
 * counters of events with a low rate are the exception.
 */
export class Metrics {
  private readonly registry = new Registry();
  private readonly totals: PrefixTotals;
  private readonly errors = new Map<string, number>();
  private readonly joined = { workers: 0, workersGone: 0, clients: 0, clientsGone: 0 };
  private delay: LoopDelay | undefined;
  private readonly stopCounting: () => void;
  private utilization = performance.eventLoopUtilization();

  constructor(
    private readonly context: PluginContext,
    private readonly viewers: () => number,
  ) {
    this.totals = new PrefixTotals(context.cluster);
    this.stopCounting = this.countEvents();
    this.addDask();
    this.addPrefixes();
    this.addOwn();
    this.addProcess();
  }

  get contentType(): string {
    return this.registry.contentType;
  }

  text(): Promise<string> {
    this.totals.read();
    return this.registry.metrics();
  }

  close(): void {
    this.delay?.stop();
    this.stopCounting();
  }

  /** @returns what ends it */
  private countEvents(): () => void {
    const { joined, errors } = this;
    return this.context.get(BRIDGE).observe({
      workerAdded: () => joined.workers++,
      workerRemoved: () => joined.workersGone++,
      clientAdded: () => joined.clients++,
      clientRemoved: () => joined.clientsGone++,
      errorReported: ({ code }) => void errors.set(code, (errors.get(code) ?? 0) + 1),
    });
  }

  private addDask(): void {
    const { joined } = this;
    const { cluster } = this.context;
    const at = 'dask_scheduler_';
    this.gauge(`${at}clients`, 'Number of clients connected', () => [[clientCount(cluster)]]);
    this.counter(`${at}client_connections_added_total`, 'Clients that connected', () => [
      [joined.clients],
    ]);
    this.counter(`${at}client_connections_removed_total`, 'Clients that left', () => [
      [joined.clientsGone],
    ]);
    this.gauge(`${at}desired_workers`, 'Number of workers scheduler needs for task graph', () =>
      this.desiredWorkers(),
    );
    this.gauge(`${at}workers`, 'Number of workers known by scheduler', () =>
      byState(Object.entries(workersByState(cluster))),
    );
    this.counter(`${at}workers_added_total`, 'Workers that joined', () => [[joined.workers]]);
    this.counter(`${at}workers_removed_total`, 'Workers that left', () => [[joined.workersGone]]);
    this.gauge(`${at}tasks`, 'Number of tasks known by scheduler', () =>
      byState([...tasksByState(cluster)].filter(([state]) => state !== 'forgotten')),
    );
    this.gauge(`${at}task_groups`, 'Number of task groups known by scheduler', () => [
      [cluster.groups.size],
    ]);
  }

  private addPrefixes(): void {
    const at = 'dask_scheduler_';
    const { totals } = this;
    this.counter(`${at}tasks_suspicious_total`, 'Deaths of workers while the task was there', () =>
      totals.by('suspicious'),
    );
    this.counter(`${at}tasks_forgotten_total`, 'Tasks that left the scheduler', () => [
      [totals.forgotten],
    ]);
    this.counter(
      `${at}tasks_compute_seconds_total`,
      'Total amount of compute time spent in each prefix',
      () => totals.by('computeS'),
    );
    this.counter(
      `${at}tasks_transfer_seconds_total`,
      'Total amount of transfer time spent in each prefix',
      () => totals.by('transferS'),
    );
    this.gauge(
      `${at}tasks_output_bytes`,
      'Current number of bytes in memory (without duplicates) for each prefix',
      () => totals.by('outputBytes'),
    );
    this.counter(
      `${at}prefix_state_totals_total`,
      'Accumulated count of task prefix in each state',
      () => totals.states(),
    );
  }

  private addOwn(): void {
    const { cluster } = this.context;
    const at = 'yardmaster_';
    this.gauge(`${at}threads`, 'Threads of all workers', () => [[cluster.totalThreads]]);
    this.gauge(`${at}occupancy_seconds`, 'Seconds of work that was sent to workers', () => [
      [cluster.totalOccupancyS],
    ]);
    this.counter(`${at}assignments_total`, 'Tasks sent to workers', () => [
      [cluster.assignedCount],
    ]);
    this.gauge(`${at}tasks_unrunnable`, 'Tasks without a worker that may run them', () => [
      [cluster.unrunnable.size],
    ]);
    this.gauge(`${at}limit_tasks`, 'Tasks with a limit, by its name', () =>
      [...cluster.limits]
        .slice(0, LIMITS_MAX)
        .flatMap(({ name: limit, runningCount, queued }): Sample[] => [
          [runningCount, { limit, state: 'running' }],
          [queued.size, { limit, state: 'waiting' }],
        ]),
    );
    this.counter(`${at}limit_refused_total`, 'Tasks refused because as many waited as may', () =>
      [...cluster.limits.refusals].map(([limit, count]) => [count, { limit }] as const),
    );
    this.gauge(`${at}steals_in_flight`, 'Tasks asked back from workers', () => [
      [cluster.stealsInFlight],
    ]);
    this.gauge(`${at}replicated_results`, 'Results with two or more copies', () => [
      [cluster.replicated.size],
    ]);
    this.counter(`${at}amm_results_total`, 'Copies and drops of the memory manager', () =>
      this.ammMoves().flatMap(({ policy, copies, drops }): Sample[] => [
        [copies, { policy, type: 'copy' }],
        [drops, { policy, type: 'drop' }],
      ]),
    );
    this.gauge(`${at}workers_memory_bytes`, 'Memory of all workers by kind', () =>
      memoryByKind(Array.from(cluster.workers.values(), ({ memory }) => memory)),
    );
    this.addWorkers();
    this.counter(`${at}errors_total`, 'Failures that the scheduler survived, by code', () =>
      [...this.errors].map(([code, count]) => [count, { code }] as const),
    );
    this.counter(`${at}plugin_errors_total`, 'Errors of each plugin', () =>
      this.plugins().map(({ name, errorCount }) => [errorCount, { plugin: name }] as const),
    );
    this.counter(`${at}plugin_hook_calls_total`, 'Calls of the hooks of plugins', () =>
      this.hooks(({ calls }) => calls),
    );
    this.counter(
      `${at}plugin_hook_seconds_total`,
      'Time in the hooks of plugins; of those that are built in, estimated from every 64th call',
      () => this.hooks(({ totalMs }) => totalMs / 1000),
    );
    this.gauge(`${at}dashboard_viewers`, 'Open pages of the dashboard', () => [[this.viewers()]]);
  }

  /** Under the names that Dask's workers give them, with the worker as a label. */
  private addWorkers(): void {
    const each = (read: (worker: WorkerView) => readonly Sample[]): Sample[] =>
      [...this.context.cluster.workers.values()]
        .slice(0, WORKERS_MAX)
        .flatMap((worker) =>
          read(worker).map(([value, labels]): Sample => [
            value,
            { worker: worker.name, ...labels },
          ]),
        );
    const known = (value: number | undefined): Sample[] => (value === undefined ? [] : [[value]]);
    this.gauge('dask_worker_threads', 'Number of worker threads', () =>
      each(({ threadCount }) => [[threadCount]]),
    );
    this.gauge('dask_worker_tasks', 'Tasks of each worker', () =>
      each(({ processing, hasWhat }) => [
        [processing.size, { state: 'processing' }],
        [hasWhat.size, { state: 'memory' }],
      ]),
    );
    this.gauge('dask_worker_memory_bytes', 'Memory of each worker by kind', () =>
      each(({ memory }) => memoryByKind([memory])),
    );
    this.gauge('yardmaster_worker_memory_limit_bytes', 'Limit of the memory of each worker', () =>
      each(({ memoryLimitBytes: limit }) => known(limit > 0 ? limit : undefined)),
    );
    this.gauge('yardmaster_worker_cpu_ratio', 'Cores that each worker keeps busy', () =>
      each(({ metrics: { cpuPercent } }) =>
        known(cpuPercent === undefined ? undefined : cpuPercent / 100),
      ),
    );
    this.gauge('yardmaster_worker_event_loop_delay_seconds', 'Largest delay of timers', () =>
      each(({ metrics: { loopDelayMs } }) =>
        known(loopDelayMs === undefined ? undefined : loopDelayMs / 1000),
      ),
    );
    this.gauge('yardmaster_worker_bytes_per_second', 'Results that each worker moves', () =>
      each(({ metrics: { traffic = {} } }) =>
        Object.entries(traffic).map(([type, rate]) => [rate, { type }] as const),
      ),
    );
    this.gauge('yardmaster_worker_occupancy_seconds', 'Seconds of work at each worker', () =>
      each(({ occupancyS }) => [[occupancyS]]),
    );
  }

  private addProcess(): void {
    const at = 'yardmaster_';
    this.gauge(`${at}event_loop_delay_seconds`, 'Delay of timers since the last reading', () =>
      this.loopDelay(),
    );
    this.gauge(`${at}event_loop_utilization_ratio`, 'Busy share since the last reading', () => {
      const now = performance.eventLoopUtilization();
      const { utilization } = performance.eventLoopUtilization(now, this.utilization);
      this.utilization = now;
      return [[utilization]];
    });
    this.gauge('process_resident_memory_bytes', 'Memory of the process', () => [
      [process.memoryUsage.rss()],
    ]);
    this.counter('process_cpu_seconds_total', 'CPU time of the process', () => {
      const { user, system } = process.cpuUsage();
      return [[(user + system) / 1e6]];
    });
  }

  private gauge(name: string, help: string, read: Read): void {
    this.add(Gauge, name, help, read);
  }

  private counter(name: string, help: string, read: Read): void {
    this.add(Counter, name, help, read);
  }

  private add(Metric: typeof Gauge | typeof Counter, name: string, help: string, read: Read): void {
    new Metric({
      ...{ name, help, labelNames: [...LABELS], registers: [this.registry] },
      collect() {
        this.reset();
        for (const [value, labels = {}] of read()) this.inc(labels, value);
      },
    });
  }

  /** None while the Active Memory Manager is not there to answer. */
  private desiredWorkers(): Sample[] {
    const wanted = orNull(() =>
      this.context.run('amm.adaptiveTarget', { targetDurationMs: 5_000 }),
    );
    return typeof wanted === 'number' ? [[wanted]] : [];
  }

  private ammMoves(): AmmStatus['moves'] {
    const status = orNull(() => this.context.run('amm.status')) as AmmStatus | null;
    return status?.moves ?? [];
  }

  private plugins(): readonly PluginInfo[] {
    return this.context.run('plugins') as readonly PluginInfo[];
  }

  private hooks(read: (info: HookInfo) => number): Sample[] {
    return this.plugins().flatMap(({ name: plugin, hooks }) =>
      hooks.map((info) => [read(info), { plugin, hook: info.hook }] as const),
    );
  }

  /** Measured from the first reading on, because it wakes the process regularly. */
  private loopDelay(): Sample[] {
    if (this.delay === undefined) {
      this.delay = new LoopDelay();
      this.delay.start();
      return [];
    }
    const quantiles = [0.5, 0.99, 1];
    const delays = this.delay.take(...quantiles);
    return quantiles.map(
      (quantile, at) => [(delays[at] ?? 0) / 1000, { quantile: String(quantile) }] as const,
    );
  }
}

function memoryByKind(memories: readonly WorkerView['memory'][]): Sample[] {
  let [managed, unmanaged, spilled] = [0, 0, 0];
  for (const memory of memories) {
    managed += memory.managed;
    unmanaged += memory.process - memory.managed;
    spilled += memory.spilled;
  }
  return [
    [managed, { type: 'managed' }],
    [unmanaged, { type: 'unmanaged' }],
    [spilled, { type: 'spilled' }],
  ];
}

const LABELS = [
  'worker',
  'state',
  'limit',
  'policy',
  'task_prefix_name',
  'type',
  'code',
  'plugin',
  'hook',
  'quantile',
] as const;

function byState(counts: Iterable<readonly [state: string, count: number]>): Sample[] {
  return Array.from(counts, ([state, count]) => [count, { state }] as const);
}

/** Prefixes with figures of their own; those that come later are summed. */
const PREFIXES_MAX = 200;
/** Workers with figures of their own, those that have been there for longest. */
const WORKERS_MAX = 200;
/** Limits whose tasks are reported, the oldest. */
const LIMITS_MAX = 200;
const OTHERS = '(others)';

interface Totals {
  suspicious: number;
  computeS: number;
  transferS: number;
  outputBytes: number;
  readonly states: Map<string, number>;
}

/** Sums by prefix that never fall. */
class PrefixTotals {
  /** By name of the prefix. */
  private current = new Map<string, Totals>();
  private readonly named = new Set<string>();
  forgotten = 0;

  constructor(private readonly cluster: ClusterView) {}

  /** Reads the cluster. O(prefixes). */
  read(): void {
    this.current = new Map();
    this.forgotten = 0;
    for (const prefix of this.cluster.prefixes.values()) this.readPrefix(prefix);
  }

  by(
    field: 'suspicious' | 'computeS' | 'transferS' | 'outputBytes',
  ): readonly (readonly [number, { readonly task_prefix_name: string }])[] {
    return [...this.current].map(([name, totals]) => [totals[field], { task_prefix_name: name }]);
  }

  states(): readonly (readonly [number, { task_prefix_name: string; state: string }])[] {
    return [...this.current].flatMap(([name, { states }]) =>
      [...states].map(([state, count]) => [count, { task_prefix_name: name, state }] as const),
    );
  }

  private readPrefix(prefix: PrefixView): void {
    const { stateCounts } = prefix;
    const totals = this.totalsOf(prefix.name);
    totals.suspicious += prefix.suspicious;
    totals.computeS += prefix.computedS;
    totals.transferS += prefix.transferredS;
    totals.outputBytes += prefix.nbytesTotal;
    for (const [state, count] of Object.entries(stateCounts)) {
      totals.states.set(state, (totals.states.get(state) ?? 0) + count);
    }
    this.forgotten += stateCounts.forgotten;
  }

  private totalsOf(prefix: string): Totals {
    if (this.named.size < PREFIXES_MAX) this.named.add(prefix);
    const name = this.named.has(prefix) ? prefix : OTHERS;
    const found = this.current.get(name);
    if (found !== undefined) return found;
    const states = new Map<string, number>();
    const fresh = { suspicious: 0, computeS: 0, transferS: 0, outputBytes: 0, states };
    this.current.set(name, fresh);
    return fresh;
  }
}
