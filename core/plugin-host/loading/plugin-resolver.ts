import { existsSync, statSync } from 'node:fs';
import { isAbsolute, relative, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { YardmasterError } from '../../api/errors.ts';
import { type Builtins, token, type Token } from '../../api/plugin.ts';
import { hint, show } from '../../shared/words.ts';
import type { ModuleLimit } from '../../shared/module-limit.ts';
import { inject } from '../injection/di.ts';
import { resolvePackage } from './package-resolution.ts';
import { BUILTINS, CONFIG_FOLDER } from '../injection/tokens.ts';

export const RESOLVER: Token<PluginResolver> = token('plugin-resolver');

/** Of files with modules. */
const ENDINGS = ['.js', '.mjs', '.cjs', '.ts'];

/** What a `use` names, loaded. */
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
export class PluginResolver {
  constructor(
    @inject(BUILTINS) private readonly builtins: Builtins,
    @inject(CONFIG_FOLDER) private readonly folder: string,
  ) {}

  /**
   * @param what - what it is expected to be, for messages: `plugin`, `policy`
   * @param slot - the policy slot that it is for: built-in names are looked up as `slot/name` first
   * @param modules - where it may be, when a client names it. Default: everywhere
   * @throws YardmasterError `ERR_PLUGIN_LOAD`, `ERR_MODULE_REFUSED`
   */
  async resolve(
    use: unknown,
    what: string,
    slot?: string,
    modules?: ModuleLimit,
  ): Promise<Resolved> {
    if (typeof use !== 'string') return { exported: use, source: `${describe(use)} given in code` };
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
    modules?.check(path);
    const namespace = await importModule(path, use, what);
    return { exported: pickExport(namespace, name, use, what), source: this.sourceOf(path, use) };
  }

  /**
   * Loads the whole module that a `use` names, or takes what is given in code.
   * @throws YardmasterError `ERR_PLUGIN_LOAD`
   */
  async resolveModule(use: unknown, what: string): Promise<Resolved> {
    if (typeof use !== 'string') return { exported: use, source: `${describe(use)} given in code` };
    const path = this.locate(use, what);
    return { exported: await importModule(path, use, what), source: this.sourceOf(path, use) };
  }

  private async loadBuiltin(name: string): Promise<unknown> {
    try {
      return await this.builtins[name]?.();
    } catch (cause) {
      throw loadError(`the built-in "${name}" cannot be loaded: ${messageOf(cause)}`, name, cause);
    }
  }

  private locate(module: string, what: string): string {
    if (module.startsWith('.') || isAbsolute(module)) {
      const path = resolve(this.folder, module);
      if (existsSync(path)) return path;
      throw loadError(
        `the ${what} "${module}" does not exist: there is no file ${path}; paths are relative to the configuration file, or to the current folder if there is none`,
        module,
      );
    }
    const path = resolvePackage(module, this.folder);
    if (path !== undefined) return path;
    const suggestion = this.fileOf(module) ?? hint(module, Object.keys(this.builtins));
    throw loadError(
      `unknown ${what} "${module}": nothing of that name is built in, and no package of that name can be imported from ${this.folder}${suggestion}`,
      module,
    );
  }

  /** The mistake of beginners: a file beside the configuration, named as if it were a package. */
  private fileOf(module: string): string | undefined {
    const file = ['', ...ENDINGS]
      .map((ending) => `${module}${ending}`)
      .find((name) => statSync(resolve(this.folder, name), { throwIfNoEntry: false })?.isFile());
    return file && `; to name the file, write "./${file}"`;
  }

  private sourceOf(path: string, use: string): string {
    const isPath = use.startsWith('.') || isAbsolute(use);
    const shown = isPath ? `./${relative(this.folder, path)}` : use;
    return shown.startsWith('./../') ? shown.slice(2) : shown;
  }
}

/** `./policies.js#Name` → the module and the export. */
function splitUse(use: string): { module: string; name: string | undefined } {
  const hash = use.lastIndexOf('#');
  if (hash <= 0) return { module: use, name: undefined };
  return { module: use.slice(0, hash), name: use.slice(hash + 1) };
}

async function importModule(
  path: string,
  use: string,
  what: string,
): Promise<Readonly<Record<string, unknown>>> {
  try {
    return (await import(
      /* @vite-ignore */ /* webpackIgnore: true */ pathToFileURL(path).href
    )) as Record<string, unknown>;
  } catch (cause) {
    const why = `${messageOf(cause)}${adviceOn(cause, path)}`;
    throw loadError(`the ${what} "${use}" cannot be loaded: ${why}`, use, cause);
  }
}

/** Node reports the position of a syntax error only on its own error stream. */
function adviceOn(thrown: unknown, path: string): string {
  if ((thrown as Error | undefined)?.name === 'SyntaxError')
    return `; "node --check ${path}" shows where`;
  const isTypeScript = /\.[cm]?tsx?$/.test(path);
  return (thrown as { code?: unknown } | undefined)?.code === 'ERR_UNKNOWN_FILE_EXTENSION' &&
    isTypeScript
    ? '; run with "--import tsx", or compile it to JavaScript first'
    : '';
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
  if (found !== undefined) return found;
  const names = Object.keys(namespace).filter((key) => key !== 'module.exports');
  const missing = name === undefined ? 'no default export' : `no export "${name}"`;
  const advice =
    name === undefined && names.length > 0
      ? `; pick one of its exports: ${names.map((key) => `${use}#${key}`).join(', ')}`
      : hint(name ?? '', names);
  throw loadError(`the ${what} "${use}" has ${missing}${advice}`, use);
}

function isCompiled(
  inner: Readonly<Record<string, unknown>> | undefined,
): inner is Readonly<Record<string, unknown>> {
  return (inner as { __esModule?: unknown } | null | undefined)?.__esModule === true;
}

function describe(value: unknown): string {
  if (value === undefined || value === null) return String(value);
  const { name } = value as { name?: unknown };
  if (typeof name === 'string' && name !== '') return name;
  const { constructor } = value as { constructor?: { name?: string } };
  return constructor?.name ?? show(value);
}

function loadError(message: string, use: string, cause?: unknown): YardmasterError {
  return new YardmasterError(
    'ERR_PLUGIN_LOAD',
    message,
    { use },
    cause === undefined ? {} : { cause },
  );
}

function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
