import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import {
  type GraphTask,
  type RetrySpec,
  type StoreSpec,
  type TaskLimitDescription,
  YardmasterError,
} from '../../core/api/index.ts';
import {
  ANY,
  checkCall,
  either,
  FLAG,
  FUNCTION,
  RESULT_STORE,
  type Rules,
  type Schema,
  wholeNumber,
} from '../../core/shared/schema.ts';
import { inBackground } from '../../core/shared/timers.ts';
import { show } from '../../core/shared/words.ts';
import { isPromise } from '../../core/util/values.ts';
import { findRefusal, pathText } from '../codecs/msgpack.ts';
import { isTaskFunction, type TaskFunction, travellingFunction } from '../tasks/index.ts';
import type { Future } from './future.ts';
import type { Ref } from './graph.ts';
import { checkKey } from './keys.ts';

/** The options of a task that are the same wherever it is written down. */
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
  /** True when `workers` is only a preference. Default false. */
  readonly allowOtherWorkers?: boolean;
  /** Amount of each resource that it occupies while it runs: `{ GPU: 1 }`. */
  readonly resources?: Readonly<Record<string, number>>;
  /**
   * The limit of all tasks in the cluster that name it, or a function that finds it by the arguments. A task that has to
   * wait takes no place on a worker. Default: no limit.
   */
  readonly limit?: TaskLimit | ((...args: never[]) => TaskLimit | undefined);
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
  /**
   * `result`: what depends on it is kept by its result, and not by what that follows from. When it is computed again to
   * an equal result, its dependents are read. It is kept, and so is what lies between it and what persists. Default: what it
   * follows from.
   */
  readonly contentKey?: 'result';
  /** On whose behalf: tenants share the cluster when `weighted-fair-share` is configured with `by: tenant`. */
  readonly tenant?: string;
  /** For plugins and policies; plain data. */
  readonly annotations?: Readonly<Record<string, unknown>>;
}

/** The options of a submission. */
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
  /** The store of results that `persist` asks for. Default: that of the client. */
  readonly resultStore?: ResultStoreOption;
  /** Aborting cancels what was submitted. */
  readonly signal?: AbortSignal;
  /**
   * Milliseconds after the submission at which what was submitted is given up, wherever it is: its futures fail with
   * `ERR_TASK_TIMEOUT`, and its code is aborted. Default: no limit.
   */
  readonly deadlineMs?: number;
  /**
   * Calls that may be open at the same time of those that are made through one `with` that names this, and through what is
   * derived from it: running and waiting ones. Another one throws `ERR_QUEUE_FULL` at once. Default: any number.
   */
  readonly maxOpen?: number;
  /**
   * Submissions closer together than this count as simultaneous and get the same order.
   * Milliseconds. Default 100 for `submit` and `map`, 0 for `compute`.
   */
  readonly fifoTimeoutMs?: number;
}

export type Writable<T> = { -readonly [Field in keyof T]: T[Field] };

/**
 * Sets the fields of a task that options decide.
 * @throws YardmasterError `ERR_GRAPH_INVALID`
 */
export function setTaskFields(task: Writable<GraphTask>, options: TaskOptions): void {
  const { priority, retries, workers, allowOtherWorkers, resources, limit } = options;
  if (priority !== undefined) task.userPriority = priority;
  if (typeof retries === 'number') task.retries = retries;
  if (workers !== undefined) task.workers = [...workers];
  if (allowOtherWorkers !== undefined) task.allowOtherWorkers = allowOtherWorkers;
  if (resources !== undefined) task.resources = resources;
  // A function has been asked by now.
  if (typeof limit === 'object') task.limit = describeLimit(limit);
  const annotations = annotationsOf(options);
  if (annotations !== undefined) task.annotations = annotations;
}

function annotationsOf(options: TaskOptions): GraphTask['annotations'] {
  const { annotations, replicas, timeoutMs, tenant } = options;
  const traceparent = traceParent();
  const isAlone = traceparent === undefined && replicas === undefined;
  if (isAlone && timeoutMs === undefined && tenant === undefined) return annotations;
  return {
    ...(traceparent === undefined ? {} : { traceparent }),
    ...annotations,
    ...(replicas === undefined ? {} : { replicas }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(tenant === undefined ? {} : { tenant }),
  };
}

/**
 * The limit as the scheduler counts.
 * @throws YardmasterError `ERR_GRAPH_INVALID` when it bounds nothing, or its rate is out of bounds
 */
function describeLimit({ name, max, maxQueued, rate, burst }: TaskLimit): TaskLimitDescription {
  const described: Writable<TaskLimitDescription> = { name };
  if (max !== undefined) described.max = max;
  if (maxQueued !== undefined) described.maxQueued = maxQueued;
  if (rate !== undefined) {
    const [amount = '', unit = 's'] = rate.split('/');
    const intervalMs = UNITS_MS[unit as keyof typeof UNITS_MS] / Number(amount);
    if (!(intervalMs >= INTERVAL_MIN_MS && intervalMs <= INTERVAL_MAX_MS)) {
      refuseOption('limit.rate', rate, 'between one in a day and a million in a second');
    }
    described.intervalMs = intervalMs;
    described.burst = burst ?? 1 + BURST_MS / intervalMs;
  } else if (max === undefined) refuseOption('limit.max', max, 'given, or limit.rate');
  return described;
}

/** The code under which clients refuse options. */
const REFUSED = 'ERR_GRAPH_INVALID';

/** Text that can be sent. */
export const SENDABLE: Schema = {
  ...{ type: 'string', pattern: '^\\P{Cs}*$' },
  wanted: 'text without half of a surrogate pair',
};
const NAMED: Schema = { ...SENDABLE, minLength: 1, wanted: `${SENDABLE.wanted}, and not empty` };
/** No integer so large that it would lose digits on its way. */
const FINITE: Schema = {
  type: 'number',
  minimum: -Number.MAX_SAFE_INTEGER,
  maximum: Number.MAX_SAFE_INTEGER,
  wanted: 'a finite number',
};
export const AMOUNT: Schema = { ...FINITE, minimum: 0, wanted: 'a finite number, at least 0' };
const TIME: Schema = { ...AMOUNT, exclusiveMinimum: 0, wanted: 'a finite number above 0' };
const COPIES: Schema = { ...wholeNumber(1), infinite: true };
export const WORKERS: Schema = {
  ...{ type: 'array', items: { type: 'string' }, minItems: 1 },
  wanted: 'a list of addresses, host names or worker names, not empty',
};

/** A number of starts in a second, a minute or an hour. */
export type Rate = `${number}/${keyof typeof UNITS_MS}`;

const UNITS_MS = { s: 1000, min: 60_000, h: 3_600_000 };
const RATE_WANTED = "a number in a time, such as '100/s', '30/min' or '500/h'";
/** Milliseconds from one start to the next. */
const INTERVAL_MIN_MS = 0.001;
const INTERVAL_MAX_MS = 86_400_000;
/** A timer may be as late as that without fewer starts than the rate allows. */
const BURST_MS = 10;

/** Of all tasks in the cluster with a limit of this name; the submission that names it last counts. */
export interface TaskLimit {
  readonly name: string;
  /** Tasks that may run at the same time, at least 1. Default: any number. */
  readonly max?: number;
  /** Tasks that may start: `100/s`, `30/min` or `500/h`. Default: any number. */
  readonly rate?: Rate;
  /** Starts that may follow each other at once after a pause, at least 1. Default 1, and what comes in 10 ms. */
  readonly burst?: number;
  /** Tasks that may wait; another one that would have to fails with `ERR_QUEUE_FULL`. Default: any number. */
  readonly maxQueued?: number;
}

const LIMIT: Schema = {
  type: 'object',
  additionalProperties: false,
  required: ['name'],
  properties: {
    name: NAMED,
    max: wholeNumber(1),
    rate: { type: 'string', pattern: '^\\d+(\\.\\d+)?/(s|min|h)$', wanted: RATE_WANTED },
    burst: { type: 'number', minimum: 1, maximum: Number.MAX_SAFE_INTEGER },
    maxQueued: wholeNumber(0),
  } satisfies Rules<TaskLimit>,
};

const RETRY_RULES: Rules<RetryRules> = {
  times: wholeNumber(0),
  backoffMs: { ...AMOUNT, default: 1000 },
  factor: { type: 'number', minimum: 1, maximum: Number.MAX_VALUE, default: 2 },
  jitter: { type: 'number', minimum: 0, maximum: 1, default: 0 },
  retryIf: FUNCTION,
};
const RETRIES: Schema = {
  type: 'object',
  additionalProperties: false,
  required: ['times'],
  properties: RETRY_RULES,
};

const SUBMIT_RULES: Rules<SubmitOptions> = {
  key: ANY,
  namespace: SENDABLE,
  pure: FLAG,
  retries: either(wholeNumber(0), RETRIES),
  timeoutMs: TIME,
  deadlineMs: TIME,
  priority: FINITE,
  workers: WORKERS,
  allowOtherWorkers: FLAG,
  resources: { type: 'object', additionalProperties: AMOUNT },
  limit: {
    ...either(LIMIT, FUNCTION),
    wanted: "an object such as { name: 'database', max: 4 }, or a function",
  },
  replicas: COPIES,
  tenant: NAMED,
  annotations: { type: 'object', properties: { replicas: COPIES }, additionalProperties: true },
  persist: either(FLAG, { const: 'graph-outputs' }),
  contentKey: { const: 'result', wanted: "'result'" },
  resultStore: RESULT_STORE,
  maxOpen: wholeNumber(1),
  signal: { methods: ['throwIfAborted'], wanted: 'an AbortSignal' },
  fifoTimeoutMs: { type: 'number', minimum: 0 },
};

/** Options that travel as they are given, and of which the rules do not say all that can be sent. */
const COPIED = [
  ...(['workers', 'resources', 'annotations', 'resultStore', 'replicas', 'fifoTimeoutMs'] as const),
] satisfies readonly (keyof SubmitOptions)[];

/**
 * Checks the options of a call of a client.
 * @param call - as it is written: `client.gather`
 * @throws YardmasterError `ERR_GRAPH_INVALID` with every problem
 */
export function checkOptions<Options extends object>(
  call: string,
  options: Options,
  rules: Rules<Options>,
): Options {
  return checkCall(call, options, rules, REFUSED);
}

/**
 * A copy of the options of a submission, so that later changes to them do not matter.
 * @throws YardmasterError `ERR_GRAPH_INVALID` with every problem; `ERR_FUNCTION_MISSING`; `ERR_NOT_SERIALISABLE` with the
 *   path of what cannot be sent
 */
export function checkSubmission<Options extends SubmitOptions>(options: Options): Options {
  const checked: SubmitOptions = checkOptions<SubmitOptions>('submission', options, SUBMIT_RULES);
  const { key, retries } = checked;
  if (key !== undefined) checkKey(key);
  if (typeof checked.limit === 'object') describeLimit(checked.limit);
  const retryIf = typeof retries === 'object' ? retries.retryIf : undefined;
  if (retryIf !== undefined && !isTaskFunction(retryIf)) {
    throw new YardmasterError(
      'ERR_FUNCTION_MISSING',
      'retries.retryIf is called in the worker and is not known there; define it with defineTasks(import.meta.url, { … })',
      { option: 'retries.retryIf' },
    );
  }
  const own = checked as Record<string, unknown>;
  for (const option of COPIED) {
    if (own[option] !== undefined) own[option] = copyOfPlain(option, own[option]);
  }
  return checked as Options;
}

/**
 * Options with others over them; one that is undefined there is taken away.
 * @param before - have been checked
 * @throws YardmasterError as {@link checkSubmission}, and {@link checkStore}
 */
export function withFurther<Options extends SubmitOptions>(
  before: Options,
  further: Options,
): Options {
  const both = checkSubmission(further);
  checkStore(both.resultStore);
  for (const option of Object.keys(before) as (keyof Options)[]) {
    if (!Object.hasOwn(further, option)) both[option] = before[option];
  }
  return both;
}

/** @throws YardmasterError `ERR_GRAPH_INVALID` when it is not a finite number that can be sent */
export function checkPriority(priority: number): number {
  checkOptions('setPriority', { priority }, { priority: FINITE });
  return priority;
}

/** @throws YardmasterError `ERR_GRAPH_INVALID` */
export function refuseOption(option: string, value: unknown, wanted: string): never {
  throw new YardmasterError(REFUSED, `${option} must be ${wanted} (got ${show(value)})`, {
    option,
  });
}

/** The rules by which a task that has failed is tried again, on the thread where it failed. */
export interface RetryRules {
  /** The number of repetitions, at most. */
  readonly times: number;
  /** Milliseconds before the first retry. Default 1000. */
  readonly backoffMs?: number;
  /** Each further wait is this many times as long. At least 1. Default 2. */
  readonly factor?: number;
  /** From 0 to 1: the share of a wait by which it may be shorter, so that many do not come at once. Default 0. */
  readonly jitter?: number;
  /** Says of an error whether a retry is of use. A function of `defineTasks`, called in the worker. Default: always. */
  readonly retryIf?: TaskFunction<[error: Error], boolean | Promise<boolean>>;
}

/**
 * @param retries - checked, and so with defaults
 * @param isByItem - the calls of a chunk are tried again one by one, also by a plain number
 * @returns the rules as they travel; undefined when the scheduler alone counts the retries
 */
export function retrySpec(
  retries: number | RetryRules | undefined,
  codeRoot?: string,
  isByItem = false,
): RetrySpec | undefined {
  if (isByItem && typeof retries === 'number' && retries > 0) {
    return { times: retries, backoffMs: 0, factor: 1, jitter: 0 };
  }
  if (typeof retries !== 'object' || retries.times === 0) return undefined;
  const { times, backoffMs, factor, jitter, retryIf } = retries as Required<RetryRules>;
  const rules = { times, backoffMs, factor, jitter };
  const isAsked = (retryIf as TaskFunction | undefined) !== undefined;
  return isAsked ? { ...rules, retryIf: travellingFunction(retryIf, codeRoot) } : rules;
}

/**
 * The store of results: the path of a folder; the same with a limit, of which about as much is kept; a bucket
 * of S3; or a module or package whose export `defineStore` made, by its path, URL or name.
 */
export type ResultStoreOption = string | StoreSpec;

/** @param from - the folder that paths are relative to. Default: the current one */
export function storeSpec(option: ResultStoreOption, from = '.'): StoreSpec {
  if (typeof option === 'string') return { folder: resolve(from, option) };
  if ('s3' in option) return option;
  if ('folder' in option) return { ...option, folder: resolve(from, option.folder) };
  const { use } = option;
  return { ...option, use: /^[./]/.test(use) ? resolve(from, use) : use };
}

/**
 * A folder that is not there yet is made by what is kept first.
 * @throws YardmasterError `ERR_RESULT_STORE` when a file is in its place
 */
export function checkStore(option: ResultStoreOption | undefined): void {
  if (option === undefined) return;
  const spec = storeSpec(option);
  if (!('folder' in spec) || !isFile(spec.folder)) return;
  const { folder } = spec;
  const message = `results cannot be kept in ${folder}, where a file is: give resultStore a folder`;
  throw new YardmasterError('ERR_RESULT_STORE', message, { folder });
}

function isFile(path: string): boolean {
  try {
    return !statSync(path).isDirectory();
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOTDIR';
  }
}

/**
 * The options with the limit of one call.
 * @throws YardmasterError `ERR_GRAPH_INVALID` when the function finds something that is no limit
 */
export function withLimitOf<Options extends TaskOptions>(
  options: Options,
  args: readonly unknown[],
): Options {
  const { limit: find } = options;
  // Most tasks have none, and a copy for each would cost more than the rest of this.
  if (typeof find !== 'function') return options;
  const limit: unknown = find(...(args as never[]));
  if (typeof limit === 'function' || isPromise(limit)) {
    if (isPromise(limit)) inBackground(limit, () => undefined);
    const wanted = 'an object or undefined at once when its function is called';
    refuseOption('limit', limit, `${wanted}; await what that needs before the call`);
  }
  if (limit !== undefined) checkOptions('submission', { limit }, { limit: SUBMIT_RULES.limit });
  return { ...options, limit };
}

/**
 * The span within which the program is now, when it uses OpenTelemetry, as the W3C writes it. All copies of its API in a
 * process share one object under this symbol, and keep the active span under the other: nothing is loaded for it here.
 */
const API = Symbol.for('opentelemetry.js.api.1');
const SPAN = Symbol.for('OpenTelemetry Context Key SPAN');

interface SharedApi {
  readonly context?: {
    active(): { getValue(key: symbol): { spanContext(): SpanContext } | undefined };
  };
}

interface SpanContext {
  readonly traceId: string;
  readonly spanId: string;
  readonly traceFlags: number;
}

/** `00-TRACE-SPAN-FLAGS`; undefined outside of spans. */
function traceParent(): string | undefined {
  const api = (globalThis as { readonly [API]?: SharedApi })[API];
  const span = api?.context?.active().getValue(SPAN);
  if (span === undefined) return undefined;
  const { traceId, spanId, traceFlags } = span.spanContext();
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
}

/** Values that hold no futures. */
type Leaf =
  | string
  | number
  | boolean
  | bigint
  | symbol
  | null
  | undefined
  | Date
  | RegExp
  | ArrayBuffer
  | ArrayBufferView
  | ((...args: never) => unknown);

type Nested<T, Handle> = T extends Leaf
  ? never
  : T extends ReadonlyMap<infer K, infer V>
    ? ReadonlyMap<K, V | Handle>
    : T extends ReadonlySet<infer V>
      ? ReadonlySet<V | Handle>
      : never;

/** An argument for a parameter `T` of a task: the value, its future, or a structure with futures. */
export type Argument<T> =
  | T
  | Future<T>
  | (T extends Leaf
      ? never
      : T extends ReadonlyMap<unknown, unknown> | ReadonlySet<unknown>
        ? Nested<T, Future<unknown>>
        : T extends object
          ? { [Part in keyof T]: Argument<T[Part]> }
          : never);

/** The same inside a graph, where names of other tasks of the graph may be given too. */
export type GraphArgument<T> =
  | T
  | Future<T>
  | Ref<T>
  | (T extends Leaf
      ? never
      : T extends ReadonlyMap<unknown, unknown> | ReadonlySet<unknown>
        ? Nested<T, Future<unknown> | Ref<unknown>>
        : T extends object
          ? { [Part in keyof T]: GraphArgument<T[Part]> }
          : never);

/** The arguments of a task function, each with futures anywhere. */
export type ArgumentsOf<Args extends readonly unknown[]> = {
  [Index in keyof Args]: Argument<Args[Index]>;
};

/** The arguments of a task in a graph. */
export type GraphArgumentsOf<Args extends readonly unknown[]> = {
  [Index in keyof Args]: GraphArgument<Args[Index]>;
};

/** One sequence for each argument of a task function. */
export type ColumnsOf<Args extends readonly unknown[]> = {
  [Index in keyof Args]: Iterable<Argument<Args[Index]>>;
};

/** A structure with each future replaced by its result. */
export type Gathered<T> =
  T extends Future<infer Result>
    ? Result
    : T extends Leaf
      ? T
      : T extends ReadonlyMap<infer K, infer V>
        ? Map<K, Gathered<V>>
        : T extends ReadonlySet<infer V>
          ? Set<Gathered<V>>
          : T extends object
            ? { [Part in keyof T]: Gathered<T[Part]> }
            : T;

/**
 * A copy of what a caller hands over, so that later changes to it do not matter: it is sent at the end of
 * the turn. O(values).
 *
 * @param what - how the message calls the value: `annotations`
 * @throws YardmasterError `ERR_NOT_SERIALISABLE` with the path of what cannot be sent
 */
function copyOfPlain<T>(what: string, value: T): T {
  checkPlain(what, value);
  return copyOf(value) as T;
}

/** @throws YardmasterError `ERR_NOT_SERIALISABLE` with the path of what cannot be sent */
function checkPlain(what: string, value: unknown): void {
  const refusal = findRefusal(value);
  if (refusal === undefined) return;
  const { path, reason } = refusal;
  const where = pathText([what, ...path]);
  throw new YardmasterError('ERR_NOT_SERIALISABLE', `${where} cannot be sent: ${reason}`, {
    path: where,
    reason,
  });
}

function copyOf(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Uint8Array) return value.slice();
  if (Array.isArray(value)) return value.map(copyOf);
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, copyOf(item)]));
}
