import { messageOf, YardmasterError } from '../api/errors.ts';
import type { Builtins, Logger } from '../api/plugin.ts';
import type { ModuleLimit } from '../shared/limits.ts';
import { trust } from '../shared/read-only.ts';
import { hint, show } from '../shared/words.ts';
import { isPlainObject } from '../util/values.ts';
import { HookRegistry } from './hooks.ts';
import { collaborator, inject } from './injection.ts';
import { BUILTINS, LOGGER, MODULES, type ModuleSource } from '../host/tokens.ts';

/** Milliseconds of real time that a module, and what a plugin loads, has; also where time is virtual. */
const LOAD_TIMEOUT_MS = 10_000;

/** A loaded module that a `use` names. */
export interface Resolved {
  /** A definition, a class or an instance; the caller knows which to expect. */
  readonly exported: unknown;
  /** For messages to people: `counter from ./plugins/counter.js`. */
  readonly source: string;
}

/**
 * Loads what a `use` names: a built-in name, a path that starts with `.` or `/` and is relative to the
 * configuration file, or a package as that file's folder sees it. `#Name` picks an export.
 */
@collaborator
export class PluginResolver {
  constructor(
    @inject(BUILTINS) private readonly builtins: Builtins,
    @inject(MODULES) private readonly modules: ModuleSource,
    /** For what it loads. Default: none. */
    @inject(LOGGER) readonly log?: Logger,
    /** Times the calls of policies that it loads. Default: nobody does. */
    readonly hooks?: HookRegistry,
    private readonly timeoutMs = LOAD_TIMEOUT_MS,
  ) {}

  /**
   * Settles as the promise does, or rejects when that takes too long. Modules are read in real time, whatever the
   * clock of the host is.
   * @param what - what did not end, for the message: `the plugin "./x.js" did not load`
   * @throws YardmasterError `ERR_PLUGIN_LOAD`
   */
  async inTime<T>(loading: Promise<T>, what: string, why: string): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => {
        const message = `${what} within ${this.timeoutMs / 1000} s; ${why}`;
        const data = { timeoutMs: this.timeoutMs };
        reject(new YardmasterError('ERR_PLUGIN_LOAD', message, data));
      }, this.timeoutMs);
    });
    try {
      return await Promise.race([loading, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * @param what - what it is expected to be, for messages: `plugin`, `policy`
   * @param slot - the policy slot that it is for: built-in names are looked up as `slot/name` first
   * @param limit - where it may be, when a client names it. Default: everywhere
   * @throws YardmasterError `ERR_PLUGIN_LOAD`, `ERR_MODULE_REFUSED`
   */
  async resolve(use: unknown, what: string, slot?: string, limit?: ModuleLimit): Promise<Resolved> {
    if (typeof use !== 'string') return givenInCode(use, what);
    const { module, name } = splitUse(use);
    if (Object.hasOwn(this.builtins, `${slot ?? ''}/${module}`) && name === undefined) {
      return {
        exported: await this.loadBuiltin(`${slot ?? ''}/${module}`),
        source: `built-in ${module}`,
      };
    }
    if (Object.hasOwn(this.builtins, module) && name === undefined) {
      return { exported: await this.loadBuiltin(module), source: `built-in ${module}` };
    }
    const path = this.locate(module, what);
    limit?.check(path);
    const namespace = await this.importModule(path, use, what);
    return {
      exported: pickExport(namespace, name, use, what),
      source: this.modules.sourceOf(path, use),
    };
  }

  /** True when what `use` names is part of this package, so that no other module is imported for it. */
  isBuiltin(use: unknown, slot?: string): boolean {
    if (typeof use !== 'string') return true;
    return [`${slot ?? ''}/${use}`, use].some((name) => Object.hasOwn(this.builtins, name));
  }

  /**
   * Loads the whole module that a `use` names, or takes what is given in code.
   * @throws YardmasterError `ERR_PLUGIN_LOAD`
   */
  async resolveModule(use: unknown, what: string): Promise<Resolved> {
    if (typeof use !== 'string') return givenInCode(use, what);
    const path = this.locate(use, what);
    return {
      exported: await this.importModule(path, use, what),
      source: this.modules.sourceOf(path, use),
    };
  }

  /** A `use` by the path of its module, which means the same from every folder. @throws YardmasterError `ERR_PLUGIN_LOAD` */
  pathOf(use: string, what: string): string {
    const { module, name } = splitUse(use);
    const path = this.locate(module, what);
    return name === undefined ? path : `${path}#${name}`;
  }

  private importModule(
    path: string,
    use: string,
    what: string,
  ): Promise<Readonly<Record<string, unknown>>> {
    return this.inTime(
      this.modules.import(path, use, what),
      `the ${what} "${use}" did not load`,
      'a top-level await of it, or of a module that it imports, probably never settles',
    );
  }

  private locate(module: string, what: string): string {
    const names = Object.keys(this.builtins).map((key) => key.slice(key.lastIndexOf('/') + 1));
    return this.modules.locate(module, what, names);
  }

  private async loadBuiltin(name: string): Promise<unknown> {
    try {
      const exported = await this.builtins[name]?.();
      if (typeof exported === 'object' || typeof exported === 'function') trust(exported as object);
      return exported;
    } catch (cause) {
      throw loadError(`the built-in "${name}" cannot be loaded: ${messageOf(cause)}`, name, cause);
    }
  }
}

/** `./policies.js#Name` → the module and the export. */
function splitUse(use: string): { module: string; name: string | undefined } {
  const hash = use.lastIndexOf('#');
  if (hash <= 0) return { module: use, name: undefined };
  return { module: use.slice(0, hash), name: use.slice(hash + 1) };
}

function pickExport(
  namespace: Readonly<Record<string, unknown>>,
  name: string | undefined,
  use: string,
  what: string,
): unknown {
  // A CommonJS module is the default export of its namespace; compiled ones nest another inside.
  const inner = namespace['default'] as Readonly<Record<string, unknown>> | undefined;
  const found =
    name === undefined
      ? ((isCompiled(inner) ? inner['default'] : undefined) ?? inner)
      : (namespace[name] ?? inner?.[name]);
  const isList = name === undefined && inner !== undefined && isListOfExtensions(inner);
  if (found !== undefined && !isList) return found;
  const names = Object.keys(isList ? inner : namespace).filter((key) => key !== 'module.exports');
  const missing = name === undefined ? 'no default export' : `no export "${name}"`;
  const { module } = splitUse(use);
  const near = name === undefined ? '' : hint(name, names);
  const others = names.map((key) => `${module}#${key}`).join(', ');
  const advice =
    names.length === 0
      ? '; it exports nothing: write export default …'
      : near || `; pick one of its exports: ${others}`;
  throw loadError(`the ${what} "${use}" has ${missing}${advice}`, use);
}

/** True when a CommonJS module has exports that are extensions, and is none itself. */
function isListOfExtensions(exported: object): boolean {
  if (!isPlainObject(exported) || isCompiled(exported)) return false;
  if ('kind' in exported || 'name' in exported) return false;
  const values = Object.values(exported);
  return values.length > 0 && values.every((value) => isDeclared(value));
}

/** True when it is a class, or says what it is. */
function isDeclared(value: unknown): boolean {
  if (typeof value === 'function') return /^class\b/.test(Function.prototype.toString.call(value));
  return typeof (value as { kind?: unknown } | null | undefined)?.kind === 'string';
}

function isCompiled(
  inner: Readonly<Record<string, unknown>> | undefined,
): inner is Readonly<Record<string, unknown>> {
  return (inner as { __esModule?: unknown } | null | undefined)?.__esModule === true;
}

/** @throws YardmasterError `ERR_PLUGIN_LOAD` when it throws as soon as it is looked at */
function givenInCode(exported: unknown, what: string): Resolved {
  try {
    return { exported, source: `${describe(exported)} given in code` };
  } catch (cause) {
    const message = `the ${what} that was given in code cannot be read: ${messageOf(cause)}`;
    throw loadError(message, what, cause);
  }
}

function describe(value: unknown): string {
  if (value === undefined || value === null) return String(value);
  const { name } = value as { name?: unknown };
  if (typeof name === 'string' && name !== '') return name;
  const { constructor } = value as { constructor?: { name?: string } };
  return constructor?.name ?? show(value);
}

/** An extension that cannot be had; `use` is what names it. */
export function loadError(message: string, use: string, cause?: unknown): YardmasterError {
  return new YardmasterError(
    'ERR_PLUGIN_LOAD',
    message,
    { use },
    cause === undefined ? {} : { cause },
  );
}
