import { YardmasterError } from '../../core/api/index.ts';
import { checkCall, type Rules } from '../../core/shared/schema.ts';
import { show } from '../../core/shared/words.ts';
import { type ActorClassOf, type AnyClass, isClass, markAsActorClass } from './actor-class.ts';
import { localActor } from './actor-handle.ts';
import { moduleUrl, pinVersion, sourceVersion } from './modules.ts';

/** The handle of what `defineTasks` is given under one name. */
export type DefinedTask<F extends AnyFunction | AnyClass> = F extends AnyClass
  ? ActorClassOf<F>
  : F extends AnyFunction
    ? TaskFunctionOf<F>
    : never;

const BRAND = Symbol.for('yardmaster.task');
const REGISTRY = Symbol.for('yardmaster.tasks');

type Definition = AnyFunction | AnyClass;
type Registry = Map<string, Map<string, Definition>>;

/** Shared by all copies of this package in the process, because modules may import another one. */
function registry(): Registry {
  const holder = globalThis as { [REGISTRY]?: Registry };
  return (holder[REGISTRY] ??= new Map<string, Map<string, Definition>>());
}

/**
 * Makes functions of a module known as tasks. Call it at the top level of the module that workers
 * shall import, which should do nothing else when it is imported:
 *
 * ```ts
 * export const { parse, merge } = defineTasks(import.meta.url, {
 *   parse(text: string) { return JSON.parse(text); },
 *   async merge(...parts: object[]) { return Object.assign({}, ...parts); },
 * });
 * ```
 *
 * All that another module exports, which need not know of tasks: `defineTasks(new URL('work.js', import.meta.url), work)`
 * after `import * as work from './work.js'`.
 *
 * @param module - `import.meta.url` of that module; in CommonJS `__filename`
 * @param functions - by name; they are called without `this`. A class makes actors
 * @param options - `version`: stands for the source of the module and all that it imports, until its author changes it
 * @throws YardmasterError `ERR_FUNCTION_MISSING` when something is not a function, or the module is no URL
 */
export function defineTasks<Functions extends Record<string, AnyFunction | AnyClass>>(
  module: string | URL,
  functions: Functions,
  options: { readonly version?: string } = {},
): { readonly [Name in keyof Functions]: DefinedTask<Functions[Name]> } {
  const url = moduleUrl('defineTasks', module);
  checkFunctions(functions, url);
  const { version } = checkCall('defineTasks', options, OPTIONS, 'ERR_CONFIG');
  if (version !== undefined) pinVersion(url, version);
  const registered = registry().get(url) ?? new Map<string, Definition>();
  registry().set(url, registered);
  const handles: Record<string, unknown> = {};
  for (const [name, fn] of Object.entries(functions)) {
    checkFunction(fn, name, url);
    registered.set(name, fn);
    handles[name] = makeHandle(url, name, fn);
  }
  return handles as { readonly [Name in keyof Functions]: DefinedTask<Functions[Name]> };
}

const OPTIONS: Rules<{ readonly version?: string }> = { version: { type: 'string', minLength: 1 } };

/**
 * The handle of a function that a module exports.
 *
 * @param module - URL of the module that exports it, or its absolute path
 * @param name - of the export; default: the name of the function
 * @throws YardmasterError `ERR_FUNCTION_MISSING` when it has no name or is not a function
 */
export function taskOf<F extends AnyFunction>(
  module: string | URL,
  fn: F,
  name?: string,
): TaskFunctionOf<F> {
  const url = moduleUrl('taskOf', module);
  checkFunction(fn, name ?? 'fn', url);
  const exported = name ?? fn.name;
  if (exported === '') {
    throw new YardmasterError(
      'ERR_FUNCTION_MISSING',
      `a function of ${url} has no name: give the name under which it is exported`,
      { module: url },
    );
  }
  return makeHandle(url, exported, fn) as TaskFunctionOf<F>;
}

/** True when a value is what `defineTasks` or `taskOf` gave, also by another copy of this package. */
export function isTaskFunction(value: unknown): value is TaskFunction {
  return typeof value === 'function' && BRAND in value;
}

/** The function that `defineTasks` received under this name in this process, if it did. */
export function registeredFunction(module: string, name: string): Definition | undefined {
  return registry().get(module)?.get(name);
}

/** The names that `defineTasks` received from a module. */
export function registeredNames(module: string): string[] {
  return [...(registry().get(module)?.keys() ?? [])];
}

/**
 * The handle of a function that workers of another language call. Here it cannot be called.
 *
 * @param module - how the workers find it; begins with the name of the language
 * @param refuse - throws: called instead of the function
 */
export function foreignFunction<F extends AnyFunction>(
  module: string,
  name: string,
  refuse: () => never,
): TaskFunctionOf<F> {
  const handle = (): never => refuse();
  Object.defineProperties(handle, {
    [BRAND]: { value: true },
    module: { value: module, enumerable: true },
    name: { value: name, enumerable: true },
    // Its source is where its workers are.
    version: { value: '', enumerable: true },
  });
  return handle as unknown as TaskFunctionOf<F>;
}

function makeHandle(module: string, name: string, fn: Definition): unknown {
  const handle = isClass(fn) ? classHandle(fn) : (...args: never[]): unknown => fn(...args);
  Object.defineProperties(handle, {
    [BRAND]: { value: true },
    module: { value: module, enumerable: true },
    name: { value: name, enumerable: true },
    version: { get: () => sourceVersion(module), enumerable: true },
  });
  const concurrency = concurrencyOf(fn);
  if (concurrency !== undefined) {
    Object.defineProperty(handle, 'concurrency', { value: concurrency, enumerable: true });
  }
  return handle;
}

/** Called: an actor in this process. With `new`: an object like any other. */
function classHandle(made: AnyClass): AnyFunction {
  const handle = function (...args: never[]): object {
    const target: unknown = new.target;
    return target === undefined
      ? localActor(new made(...args))
      : Reflect.construct<never[], object>(made, args);
  };
  markAsActorClass(handle, made);
  return handle;
}

function checkFunctions(functions: unknown, module: string): void {
  const isObject = typeof functions === 'object' && functions !== null;
  if (isObject && Object.keys(functions).length > 0) return;
  throw new YardmasterError(
    'ERR_FUNCTION_MISSING',
    `defineTasks wants an object with the functions of ${module}, such as { parse, merge }, got ${show(functions)}`,
    { module },
  );
}

function checkFunction(fn: unknown, name: string, module: string): void {
  if (typeof fn === 'function') return;
  throw new YardmasterError(
    'ERR_FUNCTION_MISSING',
    `"${name}" of ${module} is ${fn === null ? 'null' : typeof fn}, not a function`,
    { module, name },
  );
}

/** Any function: the parameters are `never` so that every one of them fits. */
export type AnyFunction = (...args: never[]) => unknown;

/**
 * A function that workers can find: it knows the module that it comes from. Calling it runs it here
 * and now, like the function it was made of.
 */
export interface TaskFunction<Args extends readonly unknown[] = never[], Returned = unknown> {
  (...args: Args): Returned;
  /** URL of the module that defines it. */
  readonly module: string;
  /** Name under which `defineTasks` received it, or of the export. */
  readonly name: string;
  /**
   * SHA-256 of the module's source, read when first asked for, or of the version that its author has given.
   * @throws YardmasterError `ERR_FUNCTION_MISSING` when the source cannot be read
   */
  readonly version: string;
  /** The number of calls that may run in a thread at once, if the function was given to `concurrent`. */
  readonly concurrency?: number;
}

/** The handle of a function type, with the type parameters that it has: `submit(first<number>, [1, 2])`. */
export type TaskFunctionOf<F extends AnyFunction> = F &
  Pick<TaskFunction, 'module' | 'name' | 'version' | 'concurrency'>;

const LIMIT = Symbol.for('yardmaster.concurrency');

/**
 * Says that a task function waits most of its time, for the network or for files, so that up to `limit` of it may run
 * in each thread at once:
 *
 * ```ts
 * export const { fetchPage } = defineTasks(import.meta.url, {
 *   fetchPage: concurrent(50, async (url: string) => {
 *     const page = await fetch(url, { signal: currentTask().signal });
 *     return page.text();
 *   }),
 * });
 * ```
 *
 * Such tasks occupy no thread. Each takes a share, 1/`limit`, of the resource `event-loop`, of which a worker has one
 * for each of its threads.
 *
 * @throws YardmasterError `ERR_CONFIG` when the limit is not a whole number from 1 to 1 000 000
 */
export function concurrent<F extends AnyFunction>(limit: number, fn: F): F {
  if (!Number.isInteger(limit) || limit < 1 || limit > 1_000_000) {
    throw new YardmasterError(
      'ERR_CONFIG',
      `concurrent(${limit}, ${fn.name || 'fn'}): the limit must be a whole number from 1 to 1000000`,
      { limit },
    );
  }
  const limited = (...args: never[]): unknown => fn(...args);
  Object.defineProperties(limited, { name: { value: fn.name }, [LIMIT]: { value: limit } });
  return limited as F;
}

/** The limit that {@link concurrent} has given to a function. */
function concurrencyOf(fn: object): number | undefined {
  return (fn as { readonly [LIMIT]?: number })[LIMIT];
}
