import type { GraphTask } from '../../../core/api/index.ts';
import { findRefusal, isWellFormed } from '../../codecs/msgpack/index.ts';
import { checkKey } from './keys.ts';
import { checkNames, refuseOption } from './option-checks.ts';
import { checkRetries, type RetryRules } from './retry-rules.ts';
import { copyOfPlain } from '../plain-data.ts';
import { type ResultStoreOption, storeSpec } from './result-store-option.ts';
import { checkLimit } from './task-limit.ts';
import { traceParent } from './trace-parent.ts';

export { checkNames, refuseOption } from './option-checks.ts';

/** What is the same for one task wherever it is written down. */
export interface TaskOptions {
  /**
   * Times that the task may fail and is tried again, anywhere and at once; or {@link RetryRules}, by which it is tried
   * again after a while, where it failed. Default 0.
   */
  readonly retries?: number | RetryRules;
  /**
   * Milliseconds that a run may take, its retries by rules included. Then its code is aborted, and it fails with
   * `ERR_TASK_TIMEOUT`. Default: no limit.
   */
  readonly timeoutMs?: number;
  /** Higher runs earlier. Default 0. */
  readonly priority?: number;
  /** Addresses, host names or names of the workers that may compute it. Default: any. */
  readonly workers?: readonly string[];
  /** Whether `workers` is only a preference. Default false. */
  readonly allowOtherWorkers?: boolean;
  /** Amount of each resource that it occupies while it runs: `{ GPU: 1 }`. */
  readonly resources?: Readonly<Record<string, number>>;
  /**
   * At most so many tasks with a limit of this name run at the same time, in the whole cluster: `{ name, max }`, or a
   * function that finds it by the arguments. A task that has to wait takes no place on a worker. Default: no limit.
   */
  readonly limit?:
    | { readonly name: string; readonly max: number }
    | ((...args: never[]) => { readonly name: string; readonly max: number } | undefined);
  /**
   * Copies of the result that the cluster keeps, at least 1; Infinity: on every worker, also on those
   * that come later. Default 1, and more only while they are read.
   */
  readonly replicas?: number;
  /**
   * Keeps the result in a store (`resultStore`), by what it follows from: source and name of the function, arguments,
   * and the same of each input. Submitted again, also to another cluster, it is read instead of computed.
   * `graph-outputs`: only the requested results of a graph. Default false.
   */
  readonly persist?: boolean | 'graph-outputs';
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
  /** Where results are kept that `persist` asks for. Default: of the client. */
  readonly resultStore?: ResultStoreOption;
  /** Aborting cancels what was submitted. */
  readonly signal?: AbortSignal;
  /**
   * Milliseconds after the submission at which what was submitted is given up, wherever it is: its futures fail with
   * `ERR_TASK_TIMEOUT`, and its code is aborted. Default: no limit.
   */
  readonly deadlineMs?: number;
  /**
   * Submissions closer together than this count as simultaneous and get the same order.
   * Milliseconds. Default 100 for `submit` and `map`, 0 for `compute`.
   */
  readonly fifoTimeoutMs?: number;
}

/**
 * The part of a {@link GraphTask} that options decide; undefined when they decide nothing.
 * @throws YardmasterError `ERR_GRAPH_INVALID`
 */
export function taskFields(options: TaskOptions): Partial<GraphTask> | undefined {
  const traceparent = traceParent();
  if (traceparent === undefined && isBare(options)) return undefined;
  const { retries, priority, workers, allowOtherWorkers, resources, replicas } = options;
  const { timeoutMs, limit } = options;
  const named = {
    ...(replicas === undefined ? {} : { replicas }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  };
  const isNamed = replicas !== undefined || timeoutMs !== undefined || traceparent !== undefined;
  const annotations = isNamed
    ? { ...(traceparent === undefined ? {} : { traceparent }), ...options.annotations, ...named }
    : options.annotations;
  return {
    ...(priority === undefined ? {} : { userPriority: priority }),
    ...(typeof retries === 'number' ? { retries } : {}),
    ...(workers === undefined ? {} : { workers: [...workers] }),
    ...(allowOtherWorkers === undefined ? {} : { allowOtherWorkers }),
    ...(resources === undefined ? {} : { resources }),
    // A function has been asked by now.
    ...(typeof limit === 'object' ? { limit } : {}),
    ...(annotations === undefined ? {} : { annotations }),
  };
}

/** Whether nothing is said of the task itself, as of most tasks. */
function isBare(options: TaskOptions): boolean {
  return (
    options.retries === undefined &&
    options.priority === undefined &&
    options.workers === undefined &&
    options.allowOtherWorkers === undefined &&
    options.resources === undefined &&
    options.limit === undefined &&
    options.replicas === undefined &&
    options.timeoutMs === undefined &&
    options.annotations === undefined
  );
}

const OPTIONS: Readonly<Record<keyof SubmitOptions, true>> = {
  key: true,
  namespace: true,
  pure: true,
  retries: true,
  timeoutMs: true,
  deadlineMs: true,
  priority: true,
  workers: true,
  allowOtherWorkers: true,
  resources: true,
  limit: true,
  replicas: true,
  annotations: true,
  persist: true,
  resultStore: true,
  signal: true,
  fifoTimeoutMs: true,
};

/**
 * A copy of the options, so that later changes to them do not matter.
 * @throws YardmasterError `ERR_GRAPH_INVALID` naming the option; `ERR_NOT_SERIALISABLE` with the path of what
 *   cannot be sent
 */
export function checkOptions<Options extends SubmitOptions>(options: Options): Options {
  checkNames(options, Object.keys(OPTIONS));
  const { signal, retries, limit, ...sent } = options;
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    refuseOption('signal', signal, 'an AbortSignal');
  }
  const copies = Object.entries(sent).map(
    ([option, value]) => [option, copyOfPlain(option, value)] as const,
  );
  const checked = Object.fromEntries(copies) as SubmitOptions;
  checkValues(checked);
  if (retries !== undefined) checkRetries(retries);
  if (limit !== undefined) checkLimit(limit);
  return {
    ...checked,
    ...(signal === undefined ? {} : { signal }),
    ...(retries === undefined ? {} : { retries: copyOfRules(retries) }),
    ...(limit === undefined ? {} : { limit: typeof limit === 'function' ? limit : { ...limit } }),
  } as Options;
}

function copyOfRules(retries: number | RetryRules): number | RetryRules {
  return typeof retries === 'number' ? retries : { ...retries };
}

function checkValues(options: SubmitOptions): void {
  const { key, namespace, priority, workers, fifoTimeoutMs } = options;
  if (key !== undefined) checkKey(key);
  if (namespace !== undefined) checkText('namespace', namespace);
  for (const limit of ['timeoutMs', 'deadlineMs'] as const) {
    const ms = options[limit];
    if (ms !== undefined && !(isAmount(ms) && ms > 0)) {
      refuseOption(limit, ms, 'a finite number above 0');
    }
  }
  if (priority !== undefined) checkPriority(priority);
  if (workers !== undefined) checkWorkers(workers);
  for (const flag of ['pure', 'allowOtherWorkers'] as const) {
    const value: unknown = options[flag];
    if (value !== undefined && typeof value !== 'boolean') {
      refuseOption(flag, value, 'true or false');
    }
  }
  const { persist, resultStore } = options;
  if (![undefined, true, false, 'graph-outputs'].includes(persist)) {
    refuseOption('persist', persist, 'true, false or graph-outputs');
  }
  if (resultStore !== undefined) storeSpec(resultStore);
  checkAmounts(options.resources);
  checkReplicas('replicas', options.replicas);
  if (!isFields(options.annotations ?? {})) {
    refuseOption('annotations', options.annotations, 'an object with plain data');
  }
  checkReplicas('annotations.replicas', options.annotations?.['replicas']);
  if (fifoTimeoutMs !== undefined && !(fifoTimeoutMs >= 0)) {
    refuseOption('fifoTimeoutMs', fifoTimeoutMs, 'at least 0');
  }
}

/** @throws YardmasterError `ERR_GRAPH_INVALID` when it is not a finite number that can be sent */
export function checkPriority(priority: number): number {
  if (!isAmount(priority)) refuseOption('priority', priority, 'a finite number');
  return priority;
}

/** @throws YardmasterError `ERR_GRAPH_INVALID` when it is not a finite number, at least 0 */
export function checkTime(option: string, ms: number): void {
  if (!(isAmount(ms) && ms >= 0)) refuseOption(option, ms, 'a finite number, at least 0');
}

/** @throws YardmasterError `ERR_GRAPH_INVALID` when it is not text that can be sent */
export function checkText(option: string, text: string): void {
  if (typeof text !== 'string' || !isWellFormed(text)) {
    refuseOption(option, text, 'text without half of a surrogate pair');
  }
}

/** @throws YardmasterError `ERR_GRAPH_INVALID` when it is not a list of names that is not empty */
export function checkWorkers(workers: unknown): void {
  if (isListOfStrings(workers)) return;
  refuseOption('workers', workers, 'a list of addresses, host names or worker names, not empty');
}

function checkAmounts(resources: unknown): void {
  if (resources === undefined) return;
  if (!isFields(resources)) refuseOption('resources', resources, 'an object such as { GPU: 1 }');
  for (const [name, amount] of Object.entries(resources)) {
    if (!(isAmount(amount) && amount >= 0)) {
      refuseOption(`resources.${name}`, amount, 'a finite amount, at least 0');
    }
  }
}

function checkReplicas(option: string, value: unknown): void {
  const isCount = Number.isSafeInteger(value) || value === Infinity;
  if (value === undefined || (isCount && (value as number) >= 1)) return;
  refuseOption(option, value, 'a whole number, at least 1, or Infinity');
}

/** Finite, and no integer so large that it would lose digits on its way. */
function isAmount(value: unknown): value is number {
  return Number.isFinite(value) && findRefusal(value) === undefined;
}

function isFields(value: unknown): value is object {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof Uint8Array)
  );
}

function isListOfStrings(value: unknown): boolean {
  return (
    Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === 'string')
  );
}
