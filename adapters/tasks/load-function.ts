import { closest } from 'fastest-levenshtein';
import { type ExecutableTask, type FunctionSpec, YardmasterError } from '../../core/api/index.ts';
import type { ModuleLimit } from '../../core/shared/limits.ts';
import {
  type AnyFunction,
  isTaskFunction,
  registeredFunction,
  registeredNames,
} from './define-tasks.ts';
import { checkOwnModule, placesOf, sourceVersion, urlOf } from './modules.ts';

/** The limit on the modules that a worker loads. */
interface Reach {
  readonly modules?: ModuleLimit;
}

interface LoadedFunction {
  readonly fn: AnyFunction;
  readonly version: string;
}

/** By module, then by name. Two lookups per task. */
const loaded = new Map<string, Map<string, LoadedFunction>>();

/** Begins the names of modules of Python, which are refused with advice. */
const PYTHON = 'python:';

const IMPORTING = Symbol.for('yardmaster.importingTaskModule');

/**
 * The module that this process imports right now because a task needs it. Starting a cluster or a
 * client is refused while there is one: each worker would start one, too, when it imports the
 * module.
 */
export function importingTaskModule(): string | undefined {
  return (globalThis as { [IMPORTING]?: string })[IMPORTING];
}

/**
 * Finds the function that a task names, importing its module when it is new here. Returns a promise
 * only in that case.
 *
 * @param reach - says which modules may be imported. Default: all
 * @throws YardmasterError `ERR_FUNCTION_MISSING` when the module cannot be imported or has no such
 * function, `ERR_FUNCTION_VERSION` when its source is another one than the client's, `ERR_MODULE_REFUSED`
 */
export function loadFunction(
  spec: FunctionSpec,
  reach?: Reach,
): AnyFunction | Promise<AnyFunction> {
  const known = loaded.get(spec.module)?.get(spec.name);
  if (known !== undefined) return checkVersion(spec, known);
  const url = urlOf(spec.module);
  const registered = registeredFunction(url, spec.name) as AnyFunction | undefined;
  if (registered !== undefined) return remember(spec, registered, url);
  return importFunction(spec, reach);
}

async function importFunction(spec: FunctionSpec, reach: Reach | undefined): Promise<AnyFunction> {
  const url = locate(spec, reach?.modules);
  checkOwnModule(url);
  // Before the import, so that a change of the file in between is not mistaken for this version.
  sourceVersion(url);
  const exports = await importModule(url);
  const version = sourceVersion(url); // The module may have said another one.
  if (version !== spec.version) throw versionMismatch({ ...spec, module: url }, version);
  const registered = registeredFunction(url, spec.name) as AnyFunction | undefined;
  if (registered !== undefined) return remember(spec, registered, url);
  const exported = Object.hasOwn(exports, spec.name) ? exports[spec.name] : undefined;
  if (typeof exported === 'function') {
    if (!isTaskFunction(exported)) reach?.modules?.checkExports(url);
    return remember(spec, exported as AnyFunction, url);
  }
  throw missingFunction({ ...spec, module: url }, exports);
}

/**
 * The URL that the module has here: in the project of this worker, else where it is in that of the client. Of several,
 * the first of the right version.
 * @throws YardmasterError `ERR_MODULE_REFUSED`, `ERR_FUNCTION_MISSING`
 */
function locate({ module, version }: FunctionSpec, modules: ModuleLimit | undefined): string {
  const plain = urlOf(module);
  if (plain.startsWith(PYTHON)) return plain;
  const places = plain === module ? [] : placesOf(module, modules?.codeRoot);
  const permitted = places.filter((url) => isPermitted(url, modules));
  const [found] = permitted;
  if (found !== undefined) {
    return permitted.find((url) => sourceVersion(url) === version) ?? found;
  }
  modules?.check(plain);
  return plain;
}

function isPermitted(url: string, modules: ModuleLimit | undefined): boolean {
  try {
    modules?.check(url);
    return true;
  } catch {
    return false;
  }
}

/** Modules that are being imported: several at once when several tasks need one. */
const importing = new Set<string>();

async function importModule(module: string): Promise<Record<string, unknown>> {
  const holder = globalThis as { [IMPORTING]?: string };
  importing.add(module);
  holder[IMPORTING] = module;
  try {
    return (await import(/* @vite-ignore */ /* webpackIgnore: true */ module)) as Record<
      string,
      unknown
    >;
  } catch (cause) {
    if (module.startsWith(PYTHON)) throw notJavaScript(module);
    const reason = isUntranslated(cause)
      ? `Node ${process.versions.node} cannot load TypeScript; run workers with Node 22.18 or newer, or compile it first`
      : cause instanceof Error
        ? cause.message
        : String(cause);
    throw new YardmasterError(
      'ERR_FUNCTION_MISSING',
      `the module ${module} could not be imported: ${reason}`,
      { module },
      { cause },
    );
  } finally {
    importing.delete(module);
    holder[IMPORTING] = [...importing].at(-1);
  }
}

/** Node does not strip types: it is too old, or was started without. */
function isUntranslated(cause: unknown): boolean {
  const { code, message } = cause as { readonly code?: unknown; readonly message?: string };
  return code === 'ERR_UNKNOWN_FILE_EXTENSION' && /"\.[mc]?ts"/.test(message ?? '');
}

function remember(spec: FunctionSpec, fn: AnyFunction, url: string): AnyFunction {
  const entry: LoadedFunction = { fn, version: sourceVersion(url) };
  const ofModule = loaded.get(spec.module) ?? new Map<string, LoadedFunction>();
  loaded.set(spec.module, ofModule.set(spec.name, entry));
  return checkVersion(spec, entry);
}

function checkVersion(spec: FunctionSpec, { fn, version }: LoadedFunction): AnyFunction {
  if (version !== spec.version) throw versionMismatch(spec, version);
  return fn;
}

function versionMismatch(spec: FunctionSpec, actual: string): YardmasterError {
  const { name, version: expected } = spec;
  const module = urlOf(spec.module);
  return new YardmasterError(
    'ERR_FUNCTION_VERSION',
    `"${name}" was submitted from version ${short(expected)} of ${module}, but this worker has ` +
      `version ${short(actual)}. If the file was changed after the program was started, restart the program, or import ` +
      'the module anew there (import("./tasks.js?v=2")); otherwise deploy the source of the program here, and restart the worker',
    { module, name, expected, actual },
  );
}

/** A longer name is not compared with those that exist. */
const NAME_LENGTH_MAX = 100;

function missingFunction(spec: FunctionSpec, exports: Record<string, unknown>): YardmasterError {
  const { module, name } = spec;
  const exported = Object.keys(exports).filter((key) => typeof exports[key] === 'function');
  const names = [...new Set([...registeredNames(module), ...exported])];
  // The time that the search takes grows with the length of the name, which a client chooses.
  const nearest =
    names.length === 0 || name.length > NAME_LENGTH_MAX ? undefined : closest(name, names);
  const found = Object.hasOwn(exports, name) && !isTaskFunction(exports[name]);
  const shown = name.length > NAME_LENGTH_MAX ? `${name.slice(0, NAME_LENGTH_MAX)}…` : name;
  const what = found ? `exports "${shown}", but not as a function` : `has no function "${shown}"`;
  const none =
    names.length === 0 ? 'it has no functions at all' : `it has ${names.length} functions`;
  const hint = nearest === undefined ? none : `did you mean "${nearest}"?`;
  return new YardmasterError('ERR_FUNCTION_MISSING', `${module} ${what}; ${hint}`, {
    module,
    name,
    available: names,
    nearest,
  });
}

function notJavaScript(module: string): YardmasterError {
  return new YardmasterError(
    'ERR_FUNCTION_MISSING',
    `${module} is a module of Python, and this worker runs JavaScript: start the scheduler with --dask, and connect a dask worker`,
    { module },
  );
}

function short(version: string): string {
  return version.slice(0, 12);
}

/**
 * The function that a task calls.
 * @throws YardmasterError `ERR_PROTOCOL` when it names no function
 */
export function functionSpec({ key, runSpec }: ExecutableTask): FunctionSpec {
  const spec = (runSpec ?? {}) as Partial<FunctionSpec>;
  if (
    typeof spec.module === 'string' &&
    typeof spec.name === 'string' &&
    typeof spec.version === 'string' &&
    spec.args instanceof Uint8Array
  ) {
    return spec as FunctionSpec;
  }
  throw new YardmasterError(
    'ERR_PROTOCOL',
    `the task "${key}" does not name a function as { module, name, version, args }`,
    { key },
  );
}
