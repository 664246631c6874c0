import { isRootish } from '../../core/kernel/placement.ts';
import type { KernelScope } from '../../core/kernel/scope.ts';
import type { TaskState, WorkerState } from '../../core/state/task.ts';
import type { TraceChange } from './trace-format.ts';

type Fields = Readonly<Record<string, unknown>>;

/** Numbers that are sums of measured times are compared with this tolerance. */
const TOLERANCE = 1e-6;

/** The fields of a task in a trace, as far as the comparison uses them by name. */
export interface RecordedTask {
  readonly state: string;
  readonly processingOn: string | null;
  readonly whoWants: readonly string[];
}

/** What a trace says about the whole state, gathered from its changes. */
export class ExpectedState {
  private readonly tasks = new Map<string, Fields>();
  private readonly workers = new Map<string, Fields>();
  private last: TraceChange | undefined;

  apply(change: TraceChange): void {
    merge(this.tasks, change.tasks ?? {});
    merge(this.workers, change.workers ?? {});
    this.last = change;
  }

  /** A task as the trace has it. */
  task(key: string): RecordedTask | undefined {
    return this.tasks.get(key) as RecordedTask | undefined;
  }

  get queued(): readonly string[] {
    return this.last?.queued ?? [];
  }

  get unrunnable(): readonly string[] {
    return this.last?.unrunnable ?? [];
  }

  /** Whether a task is on its way that no client and no other task on its way needs. */
  get hasUnneededWork(): boolean {
    return [...this.tasks.values()].some(({ state, waiters, whoWants }) => {
      const isOnItsWay = !['released', 'memory', 'erred'].includes(state as string);
      return isOnItsWay && (waiters as string[]).length + (whoWants as string[]).length === 0;
    });
  }

  workersThat(condition: (fields: Fields) => boolean): Fields[] {
    return [...this.workers.values()].filter(condition);
  }

  /**
   * Both versions of Dask continue to count a needed key that was forgotten. Says whether one is.
   */
  private dropForgottenNeeds(): boolean {
    let found = false;
    for (const [address, fields] of this.workers) {
      const needs = Object.entries((fields['needsWhat'] ?? {}) as Record<string, number>);
      const known = needs.filter(([key]) => this.tasks.has(key));
      if (known.length === needs.length) continue;
      found = true;
      this.workers.set(address, { ...fields, needsWhat: Object.fromEntries(known) });
    }
    return found;
  }

  /**
   * Dask blames dependents of a failed task although they have their results already, and 2022.12.1
   * blames those that failed before once more: any of the failures of a task is right.
   */
  private blame({ state, exceptionBlame }: TaskState, expected: Fields): Fields {
    if (state === 'memory') return {};
    const own = exceptionBlame?.key ?? null;
    const isFailure =
      own !== null && exceptionBlame?.failure !== undefined && this.task(own)?.state === 'erred';
    const isAlsoRight = isFailure && typeof expected['exceptionBlame'] === 'string';
    return { exceptionBlame: isAlsoRight ? expected['exceptionBlame'] : own };
  }

  /** The first difference from the kernel's state, or undefined. */
  difference(scope: KernelScope, ignoreOccupancy: boolean): string | undefined {
    const { cluster } = scope;
    const { last } = this;
    if (last === undefined) return undefined;
    const leaks = this.dropForgottenNeeds();
    ignoreOccupancy ||= leaks;
    return (
      compareEntries('task', this.tasks, cluster.tasks, (task, expected) => ({
        ...taskFields(scope, task),
        ...this.blame(task, expected),
      })) ??
      compareEntries('worker', this.workers, cluster.workers, (worker, expected) =>
        workerFields(scope, worker, expected, ignoreOccupancy),
      ) ??
      compareValue('queued', last.queued, cluster.queued.sorted().map(keyOf)) ??
      compareValue(
        'unrunnable',
        [...last.unrunnable].sort(),
        sortedKeys(cluster.unrunnable.keys()),
      ) ??
      compareValue('durations', last.durations, durations(scope)) ??
      (ignoreOccupancy
        ? undefined
        : compareValue('totalOccupancy', last.totalOccupancy, cluster.totalOccupancyS))
    );
  }
}

function merge(known: Map<string, Fields>, changes: Readonly<Record<string, Fields | null>>): void {
  for (const [key, fields] of Object.entries(changes)) {
    if (fields === null) known.delete(key);
    else known.set(key, { ...known.get(key), ...fields });
  }
}

function compareEntries<T>(
  kind: string,
  expected: ReadonlyMap<string, Fields>,
  actual: ReadonlyMap<string, T>,
  fieldsOf: (item: T, expected: Fields) => Fields,
): string | undefined {
  for (const key of actual.keys()) {
    if (!expected.has(key)) return `${kind} ${key} should not be there`;
  }
  for (const [key, fields] of expected) {
    const item = actual.get(key);
    if (item === undefined) return `${kind} ${key} is missing`;
    const own = fieldsOf(item, fields);
    for (const [field, value] of Object.entries(fields)) {
      if (!(field in own)) continue;
      const difference = compareValue(`${kind} ${key}.${field}`, value, own[field]);
      if (difference !== undefined) return difference;
    }
  }
  return undefined;
}

function taskFields(scope: KernelScope, task: TaskState): Fields {
  return {
    state: task.state,
    processingOn: task.processingOn?.address ?? null,
    whoHas: [...task.whoHas].map((worker) => worker.address).sort(),
    waitingOn: sortedKeys(task.waitingOn),
    waiters: sortedKeys(task.waiters),
    whoWants: [...task.whoWants].map((client) => client.key).sort(),
    deps: sortedKeys(task.dependencies),
    nbytes: task.nbytes,
    retries: task.retries,
    suspicious: task.suspicious,
    priority: task.priority === undefined ? null : task.priority.map((part) => part + 0),
    hasLostDeps: task.hasLostDependencies,
    erredOn: [...task.erredOn].sort(),
    rootish: isRootish(scope, task),
  };
}

function workerFields(
  { cluster }: KernelScope,
  worker: WorkerState,
  expected: Fields,
  ignoreOccupancy: boolean,
): Fields {
  return {
    status: worker.status.replaceAll('-', '_'),
    nthreads: worker.threadCount,
    processing: sortedKeys(worker.processing),
    longRunning: sortedKeys(worker.longRunning),
    hasWhat: sortedKeys(worker.hasWhat),
    nbytes: worker.nbytes,
    ...(ignoreOccupancy ? {} : { occupancy: worker.occupancyS }),
    usedResources: Object.fromEntries(worker.usedResources),
    actors: sortedKeys(worker.actors),
    ...(ignoreOccupancy
      ? {}
      : { needsWhat: Object.fromEntries([...worker.needsWhat].map(([task, n]) => [task.key, n])) }),
    idle: cluster.idle.has(worker),
    openSlots: cluster.openSlots.has(worker),
    // Dask 2022.12.1 leaves a worker that stops running among the saturated ones.
    ...(expected['status'] === 'running' ? { saturated: cluster.saturated.has(worker) } : {}),
  };
}

function durations({ cluster }: KernelScope): Fields {
  const known = [...cluster.prefixes.values()].filter((prefix) => prefix.durationAverageS >= 0);
  return Object.fromEntries(known.map((prefix) => [prefix.name, prefix.durationAverageS]));
}

function keyOf(task: TaskState): string {
  return task.key;
}

function sortedKeys(tasks: Iterable<TaskState>): string[] {
  return [...tasks].map(keyOf).sort();
}

function compareValue(what: string, expected: unknown, actual: unknown): string | undefined {
  if (isSame(expected, actual)) return undefined;
  return `${what} is ${JSON.stringify(actual)} instead of ${JSON.stringify(expected)}`;
}

function isSame(expected: unknown, actual: unknown): boolean {
  if (typeof expected === 'number' && typeof actual === 'number') {
    return Math.abs(expected - actual) <= TOLERANCE * Math.max(1, Math.abs(expected));
  }
  if (Array.isArray(expected)) {
    if (!Array.isArray(actual) || actual.length !== expected.length) return false;
    return expected.every((item, index) => isSame(item, actual[index]));
  }
  if (typeof expected === 'object' && expected !== null) {
    if (typeof actual !== 'object' || actual === null) return false;
    const names = new Set([...Object.keys(expected), ...Object.keys(actual)]);
    for (const name of names) {
      if (!isSame((expected as Fields)[name], (actual as Fields)[name])) return false;
    }
    return true;
  }
  return expected === actual;
}
