import { YardmasterError, type GraphTask } from '../../core/api/index.ts';
import { checkKey } from './keys.ts';

/** What is the same for one task wherever it is written down. */
export interface TaskOptions {
  /** Times that the task may fail and is tried again. Whole, at least 0. Default 0. */
  readonly retries?: number;
  /** Higher runs earlier. Default 0. */
  readonly priority?: number;
  /** Addresses, host names or names of the workers that may compute it. Default: any. */
  readonly workers?: readonly string[];
  /** `workers` is a mere preference. Default false. */
  readonly allowOtherWorkers?: boolean;
  /** Amount of each resource that it occupies while it runs: `{ GPU: 1 }`. */
  readonly resources?: Readonly<Record<string, number>>;
  /**
   * Copies of the result that the cluster keeps, at least 1; Infinity: on every worker, also on those
   * that come later. Default 1, and more only while they are read.
   */
  readonly replicas?: number;
  /** For plugins and policies; plain data. */
  readonly annotations?: Readonly<Record<string, unknown>>;
}

/** How to submit. */
export interface SubmitOptions extends TaskOptions {
  /** The name of the task, for one `submit`. Default: name of the function and a hash. */
  readonly key?: string;
  /**
   * The same function with the same arguments is the same task, and runs once. Default true; false
   * for functions whose result depends on more than their arguments.
   */
  readonly pure?: boolean;
  /**
   * Stands before the names of a graph, so that two graphs with the same names are kept apart in the
   * cluster; for `compute`. A `ref` means a name in the same namespace.
   */
  readonly namespace?: string;
  /** Aborting cancels what was submitted. */
  readonly signal?: AbortSignal;
  /**
   * Submissions closer together than this count as simultaneous: none of them precedes the others.
   * Milliseconds. Default 100 for `submit` and `map`, 60 000 for `compute`.
   */
  readonly fifoTimeoutMs?: number;
}

/**
 * The part of a {@link GraphTask} that options decide.
 * @throws YardmasterError `ERR_GRAPH_INVALID`
 */
export function taskFields(options: TaskOptions): Partial<GraphTask> {
  const { retries, priority, workers, allowOtherWorkers, resources, replicas } = options;
  const annotations =
    replicas === undefined ? options.annotations : { ...options.annotations, replicas };
  return {
    ...(priority === undefined ? {} : { userPriority: priority }),
    ...(retries === undefined ? {} : { retries }),
    ...(workers === undefined ? {} : { workers: [...workers] }),
    ...(allowOtherWorkers === undefined ? {} : { allowOtherWorkers }),
    ...(resources === undefined ? {} : { resources }),
    ...(annotations === undefined ? {} : { annotations }),
  };
}

const OPTIONS: Readonly<Record<keyof SubmitOptions, true>> = {
  key: true,
  namespace: true,
  pure: true,
  retries: true,
  priority: true,
  workers: true,
  allowOtherWorkers: true,
  resources: true,
  replicas: true,
  annotations: true,
  signal: true,
  fifoTimeoutMs: true,
};

/** @throws YardmasterError `ERR_GRAPH_INVALID` naming the option */
export function checkOptions<Options extends SubmitOptions>(options: Options): Options {
  for (const option of Object.keys(options)) {
    if (Object.hasOwn(OPTIONS, option)) continue;
    throw new YardmasterError(
      'ERR_GRAPH_INVALID',
      `there is no option "${option}"; there are ${Object.keys(OPTIONS).join(', ')}`,
      { option },
    );
  }
  const { key, retries, priority, workers, resources, fifoTimeoutMs } = options;
  if (key !== undefined) checkKey(key);
  if (retries !== undefined && !(Number.isInteger(retries) && retries >= 0)) {
    refuse('retries', retries, 'a whole number, at least 0');
  }
  if (priority !== undefined) checkPriority(priority);
  if (workers !== undefined && !isListOfStrings(workers)) {
    refuse('workers', workers, 'a list of addresses, host names or worker names, not empty');
  }
  for (const [name, amount] of Object.entries(resources ?? {})) {
    if (!(Number.isFinite(amount) && amount >= 0)) {
      refuse(`resources.${name}`, amount, 'a finite amount, at least 0');
    }
  }
  checkReplicas('replicas', options.replicas);
  checkReplicas('annotations.replicas', options.annotations?.['replicas']);
  if (fifoTimeoutMs !== undefined && !(fifoTimeoutMs >= 0)) {
    refuse('fifoTimeoutMs', fifoTimeoutMs, 'at least 0');
  }
  return options;
}

/** @throws YardmasterError `ERR_GRAPH_INVALID` when it is not a finite number */
export function checkPriority(priority: number): number {
  if (!Number.isFinite(priority)) refuse('priority', priority, 'a finite number');
  return priority;
}

/** @throws YardmasterError `ERR_GRAPH_INVALID` when it is not a finite number, at least 0 */
export function checkTime(option: string, ms: number): void {
  if (!(Number.isFinite(ms) && ms >= 0)) refuse(option, ms, 'a finite number, at least 0');
}

function checkReplicas(option: string, value: unknown): void {
  const isCount = Number.isInteger(value) || value === Infinity;
  if (value === undefined || (isCount && (value as number) >= 1)) return;
  refuse(option, value, 'a whole number, at least 1, or Infinity');
}

function isListOfStrings(value: unknown): boolean {
  return (
    Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === 'string')
  );
}

function refuse(option: string, value: unknown, wanted: string): never {
  throw new YardmasterError(
    'ERR_GRAPH_INVALID',
    `the option ${option} must be ${wanted}, got ${String(value)}`,
    { option },
  );
}
