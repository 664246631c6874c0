import { hash } from 'node:crypto';
import { inspect } from 'node:util';
import { type FunctionSpec, type GraphTask, YardmasterError } from '../../core/api/index.ts';
import { sharedMemoryOf } from '../../core/util/bytes.ts';
import { EVENT_LOOP_RESOURCE, eventLoopShare } from '../../core/util/event-loop.ts';
import { isPlainObject } from '../../core/util/values.ts';
import { wholeNumber } from '../../core/shared/schema.ts';
import {
  isActorClass,
  isCanonical,
  packArguments,
  type PackedArguments,
  type TaskFunction,
  travellingFunction,
} from '../tasks/index.ts';
import type { Future } from './future.ts';
import { checkKey, hashOf } from './keys.ts';
import { allocateWithin, checkFits } from './message-limit.ts';
import {
  checkOptions,
  type GraphArgumentsOf,
  retrySpec,
  setTaskFields,
  type TaskOptions,
  withFurther,
  withLimitOf,
} from './options.ts';

/** A task of a graph: what to call with what. Made by {@link task}. */
export class TaskNode<Result> {
  /** Never set; carries the type. */
  declare readonly result?: Result;

  constructor(
    readonly fn: TaskFunction,
    readonly args: readonly unknown[],
    readonly options: TaskOptions = {},
    /** The inputs that it waits for without using them. */
    readonly needs: readonly (Ref<unknown> | Future<unknown>)[] = [],
  ) {}

  /** The same task with these options over those of the graph. */
  with(options: TaskOptions): TaskNode<Result> {
    return new TaskNode<Result>(this.fn, this.args, withFurther(this.options, options), this.needs);
  }

  /** The same task, which begins after these as well, though it does not use their results. */
  after(...others: readonly (Ref<unknown> | Future<unknown>)[]): TaskNode<Result> {
    return new TaskNode<Result>(this.fn, this.args, this.options, [...this.needs, ...others]);
  }
}

/** Declares a task of a graph. Arguments are values, futures, and {@link ref}s, anywhere inside. */
export function task<Args extends readonly unknown[], Result>(
  fn: TaskFunction<Args, Result>,
  ...args: GraphArgumentsOf<Args>
): TaskNode<Awaited<Result>> {
  return new TaskNode(fn, args);
}

/** Tasks by name. The names are the keys under which the cluster knows the results. */
export type Graph = Readonly<Record<string, TaskNode<unknown>>>;

/** Type of the result of one task of a graph. */
export type ResultIn<G extends Graph, Key extends keyof G> =
  G[Key] extends TaskNode<infer Result> ? Result : never;

/** One task, ready to be sent. */
export interface PackedTask {
  readonly task: GraphTask;
  /** Hash of what it computes; empty where no other task can have its key. */
  readonly definition: string;
  /** Bytes of its arguments. */
  readonly nbytes: number;
  /** Its arguments, as `PackedArguments` has them. */
  readonly content: unknown;
  readonly persist?: TaskOptions['persist'];
  readonly contentKey?: TaskOptions['contentKey'];
  /** The reason why an equal call may give another result; undefined: it gives the same. */
  readonly variesAs: string | undefined;
}

/** The way to the scheduler and its workers. */
interface Way {
  /** Default: no limit. */
  readonly messageBytesMax?: number;
  /** True when all of them are in this process. Default false. */
  readonly sharesMemory?: boolean;
}

/** The parts of the client that packing a graph uses. */
interface GraphSurroundings {
  /** Key of a future of this client; undefined for any other value. Throws for unusable futures. */
  readonly keyOfFuture: (value: unknown) => string | undefined;
  /** True when the client holds a future of this key, so that a `ref` may name it. */
  readonly isKnown: (key: string) => boolean;
  /** As {@link markOf}, of what the client holds. Default: nothing has one. */
  readonly markOf?: (key: string) => string | undefined;
  readonly options: TaskOptions;
  /** Of the client. */
  readonly codeRoot?: string;
  /** Default: to another process, without a limit. */
  readonly way?: Way;
  /** Stands before the names of the graph, to make keys of them. Default: nothing. */
  readonly namespace?: string;
  /** The key for a name of the graph, or of a `ref`. Default: the namespace and the name. */
  readonly keyOfName?: (name: string) => string;
}

/**
 * Serialises what `keys` need of a graph, in the order of the graph. O(tasks + dependencies).
 *
 * @throws YardmasterError `ERR_GRAPH_INVALID` with the task and the key that is missing or not
 *   usable, `ERR_GRAPH_CYCLE` with the tasks of the cycle, `ERR_NOT_SERIALISABLE`
 */
export function packGraph(
  graph: Graph,
  keys: readonly string[],
  surroundings: GraphSurroundings,
): PackedTask[] {
  const packed = new Map<string, PackedTask>();
  for (const [name, node] of Object.entries(graph)) {
    const key = checkKey(keyOfName(name, surroundings));
    packed.set(key, packNode(key, node, surroundings));
  }
  for (const key of keys) {
    if (packed.has(checkKey(key))) continue;
    throw new YardmasterError(
      'ERR_GRAPH_INVALID',
      `the requested key "${key}" is not in the graph`,
      {
        key,
      },
    );
  }
  for (const { task: made } of packed.values()) {
    for (const dependency of made.dependencies) {
      if (!packed.has(dependency) && !surroundings.isKnown(dependency)) {
        throw new YardmasterError(
          'ERR_GRAPH_INVALID',
          `task "${made.key}" depends on "${dependency}", which is neither in the graph nor a future of this client`,
          { task: made.key, missing: dependency },
        );
      }
    }
  }
  // Includes tasks that no result needs: a cycle is surely a mistake.
  for (const key of inputsFirst(packed)) {
    const marked = withBasis(packed.get(key) as PackedTask, (input) => {
      const other = packed.get(input);
      return other === undefined ? surroundings.markOf?.(input) : markOf(other);
    });
    packed.set(key, marked);
  }
  const needed = reachable(keys, packed);
  return [...packed.values()].filter((item) => needed.has(item.task.key));
}

function packNode(key: string, node: unknown, surroundings: GraphSurroundings): PackedTask {
  if (!(node instanceof TaskNode)) {
    throw new YardmasterError(
      'ERR_GRAPH_INVALID',
      `"${key}" is not a task; write ${key}: task(fn, …), and give plain values as arguments`,
      { task: key },
    );
  }
  const { namespace } = surroundings;
  const keyOf = (value: unknown): string | undefined =>
    value instanceof Ref ? keyOfName(value.key, surroundings) : surroundings.keyOfFuture(value);
  const args = packTaskArguments(key, node.args, keyOf, surroundings.way);
  const options = withLimitOf({ ...surroundings.options, ...node.options }, node.args);
  const { codeRoot } = surroundings;
  const packed = packTask({ key, fn: node.fn, args, options, codeRoot });
  if (node.needs.length === 0 && namespace === undefined) return packed;
  const needs = node.needs.map((other) => keyOf(other) ?? refuseNeed(key));
  // What is called alike is taken to be alike, in whatever namespace it is.
  const names =
    namespace === undefined ? {} : { prefix: node.fn.name, group: `${namespace}${node.fn.name}` };
  const dependencies = [...new Set([...packed.task.dependencies, ...needs])];
  return { ...packed, task: { ...packed.task, ...names, dependencies } };
}

function keyOfName(name: string, { namespace = '', keyOfName: own }: GraphSurroundings): string {
  return own === undefined ? `${namespace}${name}` : own(name);
}

function refuseNeed(task: string): never {
  throw new YardmasterError(
    'ERR_GRAPH_INVALID',
    `task "${task}" is to begin after something that is neither a ref nor a future`,
    { task },
  );
}

/**
 * Arguments of one task; an error names the task.
 * @param way - to the scheduler. Default: to another process, without a limit
 * @throws YardmasterError `ERR_NOT_SERIALISABLE`; `ERR_FRAME` when they do not fit into one message
 */
export function packTaskArguments(
  task: string,
  args: readonly unknown[],
  keyOf: (value: unknown) => string | undefined,
  { messageBytesMax = Infinity, sharesMemory = false }: Way = {},
): ReturnType<typeof packArguments> {
  const what = 'the arguments';
  try {
    const allocate = allocateWithin(messageBytesMax, what);
    const packed = packArguments(args, keyOf, allocate, sharesMemory);
    checkFits(packed.bytes.byteLength, messageBytesMax, what);
    return packed;
  } catch (thrown) {
    const isOfArguments =
      YardmasterError.is(thrown, 'ERR_NOT_SERIALISABLE') || YardmasterError.is(thrown, 'ERR_FRAME');
    if (!isOfArguments) throw thrown;
    throw new YardmasterError(
      thrown.code,
      `task "${task}": ${thrown.message}`,
      { ...thrown.data, task },
      { cause: thrown },
    );
  }
}

interface TaskParts {
  readonly fn: TaskFunction;
  readonly args: PackedArguments;
  readonly options: TaskOptions;
  /** True when the result depends on the arguments alone. Default true. */
  readonly isPure?: boolean;
  /** Places of arguments with a value for each of many calls. Default: one call. */
  readonly each?: readonly number[];
  /** Of the client. */
  readonly codeRoot: string | undefined;
  /** The key, or how it follows from the hash of what the task computes. */
  readonly key: string | ((hash: string) => string);
  /** True when no other task can have the key. Default false. */
  readonly isUnique?: boolean;
}

const ACTOR = { actor: true } as const;

/** One task as it travels. */
export function packTask(parts: TaskParts): PackedTask {
  const { fn, args, options, key, codeRoot, isPure = true, isUnique = false, each } = parts;
  const retry = retrySpec(options.retries, codeRoot, each !== undefined);
  const { module, name, version } = travellingFunction(fn, codeRoot);
  const one = { module, name, version, args: args.bytes };
  const call = each === undefined ? one : { ...one, each };
  const named = each === undefined ? one : { ...one, name: `${name}[${each.join()}]` };
  // To hash arguments that V8 has serialised also finds in them what would arrive empty.
  const isHashed = !isUnique || !isCanonical(args.bytes);
  const definition = isHashed ? hashOf(named, args.content) : '';
  const isActor = isActorClass(fn);
  const task = {
    key: typeof key === 'string' ? key : key(definition),
    dependencies: args.dependencies,
    runSpec: specOf(call, retry, typeof key === 'string' ? definition : undefined),
    ...(isActor ? ACTOR : undefined),
  };
  setTaskFields(task, optionsFor(fn, options));
  return {
    task,
    definition,
    nbytes: args.bytes.byteLength,
    content: args.content,
    persist: options.persist,
    contentKey: options.contentKey,
    variesAs: variationOf(isActor, isPure, version, args.bytes),
  };
}

function variationOf(
  isActor: boolean,
  isPure: boolean,
  version: string,
  args: Uint8Array,
): string | undefined {
  if (isActor) return 'it is an actor';
  if (!isPure) return 'it is not pure (pure: false)';
  // Memory that is shared may have changed the next time.
  if (sharedMemoryOf(args) !== undefined) return 'shared memory is among its arguments';
  return version === ''
    ? 'the source of its function, of another language, is not known here'
    : undefined;
}

/** Hexadecimal digits of a definition that travel: 64 bits tell two computations apart. */
const DEFINITION_DIGITS = 16;

/** A key that follows from the definition needs no definition beside it. */
function specOf(
  call: FunctionSpec,
  retry: FunctionSpec['retry'],
  definition: string | undefined,
): FunctionSpec {
  if (retry === undefined && definition === undefined) return call;
  return {
    ...call,
    ...(retry === undefined ? {} : { retry }),
    ...(definition === undefined ? {} : { definition: definition.slice(0, DEFINITION_DIGITS) }),
  };
}

/**
 * Stands for what a result follows from, where its key does not: the author of its key, or of that of an input, may give
 * the key to something else later.
 */
export function markOf({ task, definition }: PackedTask): string | undefined {
  const { definition: named, basis = '' } = task.runSpec as FunctionSpec;
  return named === undefined && basis === '' ? undefined : `${definition}${basis}`;
}

/** Adds what its inputs follow from. @param markOfInput - as {@link markOf} */
export function withBasis(
  item: PackedTask,
  markOfInput: (key: string) => string | undefined,
): PackedTask {
  const marks = item.task.dependencies.map(markOfInput);
  if (marks.every((mark) => mark === undefined)) return item;
  const basis = hash('sha256', marks.join(), 'hex').slice(0, DEFINITION_DIGITS);
  const runSpec = { ...(item.task.runSpec as FunctionSpec), basis };
  return { ...item, task: { ...item.task, runSpec } };
}

/** A concurrent function takes a share of an event loop, unless the options say how much. */
function optionsFor({ concurrency }: TaskFunction, options: TaskOptions): TaskOptions {
  if (concurrency === undefined) return options;
  const share = { [EVENT_LOOP_RESOURCE]: eventLoopShare(concurrency) };
  return { ...options, resources: { ...share, ...options.resources } };
}

/**
 * Depth-first walk with an explicit stack: chains may be longer than the call stack.
 * @throws YardmasterError `ERR_GRAPH_CYCLE`
 */
function inputsFirst(packed: ReadonlyMap<string, PackedTask>): ReadonlySet<string> {
  const finished = new Set<string>();
  const path = new Set<string>();
  const stack: { readonly key: string; readonly rest: Iterator<string> }[] = [];
  const enter = (key: string): void => {
    path.add(key);
    stack.push({ key, rest: dependenciesOf(key, packed) });
  };
  for (const root of packed.keys()) {
    if (!finished.has(root)) enter(root);
    for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
      const next = top.rest.next();
      if (next.done === true) {
        finished.add(top.key);
        path.delete(top.key);
        stack.pop();
      } else if (path.has(next.value)) throw cycleError([...path], next.value);
      else if (packed.has(next.value) && !finished.has(next.value)) enter(next.value);
    }
  }
  return finished;
}

/** The requested keys and all they depend on. */
function reachable(
  keys: readonly string[],
  packed: ReadonlyMap<string, PackedTask>,
): ReadonlySet<string> {
  const needed = new Set(keys);
  for (const key of needed) {
    for (const dependency of packed.get(key)?.task.dependencies ?? []) needed.add(dependency);
  }
  return needed;
}

function dependenciesOf(key: string, packed: ReadonlyMap<string, PackedTask>): Iterator<string> {
  return (packed.get(key)?.task.dependencies ?? [])[Symbol.iterator]();
}

function cycleError(path: readonly string[], key: string): YardmasterError {
  const cycle = [...path.slice(path.indexOf(key)), key];
  return new YardmasterError('ERR_GRAPH_CYCLE', `the graph has a cycle: ${cycle.join(' -> ')}`, {
    cycle,
  });
}

/**
 * The names that are asked for of a graph.
 * @throws YardmasterError `ERR_GRAPH_INVALID`
 */
export function requestedKeys(graph: unknown, keys: unknown): readonly string[] {
  if (!isPlainObject(graph)) {
    throw new YardmasterError(
      'ERR_GRAPH_INVALID',
      `compute wants a graph: an object with a task(…) for each name, got ${inspect(graph, { depth: 0 })}`,
    );
  }
  const list: unknown = typeof keys === 'string' ? [keys] : keys;
  if (Array.isArray(list) && list.every((key) => typeof key === 'string')) return list;
  throw new YardmasterError(
    'ERR_GRAPH_INVALID',
    `compute wants the name of a task of the graph whose result is needed, or a list of them, got ${inspect(keys, { depth: 0 })}`,
  );
}

/** Stands for the result of another task of the same graph. */
export class Ref<T> {
  /** Never set; carries the type. */
  declare readonly type?: T;

  // No property of its own: outside of a graph, it would pass for an object with a key.
  readonly #key: string;

  constructor(key: string) {
    this.#key = key;
  }

  get key(): string {
    return this.#key;
  }
}

/**
 * The result of the task of this name: `task(add, ref('a'), 1)`.
 * Say `ref<number>('a')` to have the type checked; a plain `ref('a')` fits everywhere.
 */
export function ref<T = never>(key: string): Ref<T> {
  return new Ref<T>(checkKey(key));
}

const FAN_IN = 8;

/**
 * Submits a tree of calls, each for a group of neighbours; the last group of a level may be smaller, and a group of
 * one is passed to the next level as it is.
 *
 * @throws YardmasterError `ERR_GRAPH_INVALID`
 */
export function reduceTree(
  parts: readonly unknown[],
  options: { readonly fanIn?: number },
  submit: (group: readonly unknown[]) => Future<unknown>,
): Future<unknown> {
  const { fanIn = FAN_IN } = checkOptions('client.reduce', options, { fanIn: wholeNumber(2) });
  if (parts.length === 0) {
    throw new YardmasterError(
      'ERR_GRAPH_INVALID',
      'reduce got no parts; there is nothing to combine',
    );
  }
  if (parts.length <= fanIn) return submit(parts);
  const made = new Set<Future<unknown>>();
  let level = parts;
  try {
    while (level.length > fanIn) {
      const next: unknown[] = [];
      for (let at = 0; at < level.length; at += fanIn) {
        const group = level.slice(at, at + fanIn);
        if (group.length === 1) next.push(group[0]);
        else {
          const future = submit(group);
          made.add(future);
          next.push(future);
        }
      }
      level = next;
    }
    return submit(level);
  } finally {
    // The tasks above them keep them; without these nothing does.
    for (const future of made) future.release();
  }
}

/** The same value for every row of a `map`: as many as the other columns have. Made by {@link all}. */
export class Constant<T> implements Iterable<T> {
  constructor(readonly value: T) {}

  /** It would not end. @throws YardmasterError `ERR_GRAPH_INVALID` */
  [Symbol.iterator](): Iterator<T> {
    throw new YardmasterError(
      'ERR_GRAPH_INVALID',
      'all(value) is for map only, beside a sequence that says how many calls there are',
    );
  }
}

/** Gives every call of a `map` the same argument: `client.map(resize, images, all({ width: 200 }))`. */
export function all<T>(value: T): Iterable<T> {
  return new Constant(value);
}
