import { existsSync, readFileSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, isAbsolute, join, normalize, relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { messageOf } from '../api/errors.ts';
import type { Builtins } from '../api/plugin.ts';
import type { ModuleSource } from '../host/tokens.ts';
import { hint } from '../shared/words.ts';
import { loadError, PluginResolver } from './plugin-resolver.ts';

/** Of files with modules. */
const ENDINGS = ['.js', '.mjs', '.cjs', '.ts'];

/** The files and installed packages that a folder sees, by Node's rules. */
export class ModuleFiles implements ModuleSource {
  constructor(readonly folder: string) {}

  locate(named: string, what: string, builtins: readonly string[]): string {
    const module = named.startsWith('file:') ? fileURLToPath(named) : named;
    if (module.startsWith('.') || isAbsolute(module)) {
      const path = resolve(this.folder, module);
      if (existsSync(path)) return path;
      throw loadError(
        `the ${what} "${module}" does not exist: there is no file ${path}${this.fileOf(module) ?? ''}; paths are relative to the configuration file, or to the current folder if there is none`,
        module,
      );
    }
    const path = resolvePackage(module, this.folder);
    if (path !== undefined) return path;
    const suggestion =
      this.fileOf(module) ?? (hint(module, builtins) || '; a package has to be installed there');
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
    return file && `; to name the file, write "./${normalize(file)}"`;
  }

  async import(
    path: string,
    use: string,
    what: string,
  ): Promise<Readonly<Record<string, unknown>>> {
    try {
      return await importUrl(path);
    } catch (cause) {
      const why = `${messageOf(cause)}${await adviceOn(cause, path)}`;
      throw loadError(`the ${what} "${use}" cannot be loaded: ${why}`, use, cause);
    }
  }

  sourceOf(path: string, use: string): string {
    const isPath = use.startsWith('.') || isAbsolute(use);
    const shown = isPath ? `./${relative(this.folder, path)}` : use;
    return shown.startsWith('./../') ? shown.slice(2) : shown;
  }
}

/** Loads what a `use` names as the files of a folder see it. Default: nothing is built in. */
export function resolverIn(folder: string, builtins: Builtins = {}): PluginResolver {
  return new PluginResolver(builtins, new ModuleFiles(folder));
}

async function importUrl(path: string): Promise<Readonly<Record<string, unknown>>> {
  return (await import(
    /* @vite-ignore */ /* webpackIgnore: true */ pathToFileURL(path).href
  )) as Record<string, unknown>;
}

const PACKAGE = 'yardmaster';
/** The message of Node that a module has no such export. */
const NO_EXPORT =
  /module '(?<entry>yardmaster(?:\/[\w-]+)?)' does not provide an export named '(?<name>\w+)'/;

/** The message of Node that a package has no such entry. */
const NO_ENTRY = /subpath '\.(?<subpath>\/[\w./-]+)' is not defined by "exports" in .*yardmaster/;

/** The advice on a module that cannot be imported. */
async function adviceOn(thrown: unknown, path: string): Promise<string> {
  const message = messageOf(thrown);
  const { name } = NO_EXPORT.exec(message)?.groups ?? {};
  if (name !== undefined) return adviceOnName(name, dirname(path));
  const { subpath } = NO_ENTRY.exec(message)?.groups ?? {};
  if (subpath !== undefined) {
    return `; the entries of the package are ${entriesOf(PACKAGE, dirname(path)).join(', ')}`;
  }
  const known = MISTAKES.find(([pattern]) => pattern.test(message));
  if (known !== undefined) return known[1];
  // Node reports the position of a syntax error only on its own error stream.
  if ((thrown as Error | undefined)?.name === 'SyntaxError')
    return `; "node --check ${path}" shows where`;
  const isTypeScript = /\.[cm]?tsx?$/.test(path);
  return (thrown as { code?: unknown } | undefined)?.code === 'ERR_UNKNOWN_FILE_EXTENSION' &&
    isTypeScript
    ? '; run with "--import tsx", or compile it to JavaScript first'
    : '';
}

/** Mistakes by Node's message, with the advice on them. */
const MISTAKES: readonly (readonly [message: RegExp, advice: string])[] = [
  [/outside a module/, '; name the file .mjs, or set "type": "module" in its package.json'],
  [/ in ES module scope/, '; write import and export default, or name the file .cjs'],
  [/^Cannot find package/, '; install it where that module is'],
  [/^Cannot find module/, '; a path of an import needs the ending of the file'],
  [/not an Error was thrown/, '; throw an Error, which says where'],
];

/** The entry of a name of this package, which was imported from elsewhere. */
async function adviceOnName(name: string, folder: string): Promise<string> {
  const entries = entriesOf(PACKAGE, folder);
  const known = new Set<string>();
  for (const entry of entries) {
    const path = resolvePackage(entry, folder);
    if (path === undefined) continue;
    const namespace = await importUrl(path).catch(() => ({}));
    if (Object.hasOwn(namespace, name)) return `; import ${name} from "${entry}"`;
    for (const each of Object.keys(namespace)) known.add(each);
  }
  return `; no entry of the package has ${name}${hint(name, [...known])} A type is imported with "import type"`;
}

/**
 * The path of the module of a package, as seen from a folder: Node's rules for `import`.
 *
 * `import.meta.resolve` of Node 20 cannot look from another folder, and `require.resolve` refuses
 * packages that export for `import` alone. So the package's own `exports` is read first, and
 * `require.resolve` is left for packages without one.
 *
 * @returns the path of a file, or undefined when there is no such package or it does not export that
 */
function resolvePackage(specifier: string, fromFolder: string): string | undefined {
  const { name, subpath } = splitSpecifier(specifier);
  const found = findPackage(name, fromFolder);
  if (found?.manifest.exports !== undefined) {
    const target = resolveExports(found.manifest.exports, subpath);
    return target === undefined ? undefined : join(found.folder, target);
  }
  try {
    const path = createRequire(join(fromFolder, 'resolve.js')).resolve(specifier);
    return isAbsolute(path) ? path : undefined; // A module of Node itself is not an extension.
  } catch {
    return undefined;
  }
}

/** The entries of a package, as they are imported: `yardmaster/plugin`. Those with a pattern are left out. */
function entriesOf(name: string, fromFolder: string): readonly string[] {
  const exports = findPackage(name, fromFolder)?.manifest.exports;
  if (typeof exports !== 'object' || exports === null || Array.isArray(exports)) return [];
  const subpaths = Object.keys(exports).filter((key) => key.startsWith('.') && !key.includes('*'));
  return subpaths.map((subpath) => name + subpath.slice(1));
}

type Exports = string | null | readonly Exports[] | { readonly [key: string]: Exports };

interface Manifest {
  readonly name?: string;
  readonly exports?: Exports;
}

/** Conditions under which `import` reads `exports`; the package's own order decides between them. */
const CONDITIONS = new Set(['node', 'import', 'module-sync', 'default']);

function splitSpecifier(specifier: string): { name: string; subpath: string } {
  const parts = specifier.split('/');
  const length = specifier.startsWith('@') ? 2 : 1;
  const rest = parts.slice(length).join('/');
  return { name: parts.slice(0, length).join('/'), subpath: rest === '' ? '.' : `./${rest}` };
}

/** The nearest package of that name, which may be the one that the folder itself belongs to. */
function findPackage(
  name: string,
  fromFolder: string,
): { folder: string; manifest: Manifest } | undefined {
  let isOwnScope = true;
  for (let folder = fromFolder; ; folder = dirname(folder)) {
    const own = isOwnScope ? readManifest(folder) : undefined;
    if (own !== undefined) {
      if (own.name === name && own.exports !== undefined) return { folder, manifest: own };
      isOwnScope = false;
    }
    const installed = join(folder, 'node_modules', name);
    if (isFolder(installed)) return { folder: installed, manifest: readManifest(installed) ?? {} };
    if (dirname(folder) === folder) return undefined;
  }
}

function readManifest(folder: string): Manifest | undefined {
  const path = join(folder, 'package.json');
  if (!existsSync(path)) return undefined;
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Manifest;
  } catch {
    return undefined; // Loading the package will say what is wrong with it.
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

function resolveExports(exports: Exports, subpath: string): string | undefined {
  const isMap =
    typeof exports === 'object' &&
    exports !== null &&
    !Array.isArray(exports) &&
    Object.keys(exports).some((key) => key.startsWith('.'));
  if (!isMap) return subpath === '.' ? pick(exports, '') : undefined;
  const map = exports as Readonly<Record<string, Exports>>;
  const exact = map[subpath];
  if (exact !== undefined && !subpath.includes('*')) return pick(exact, '');
  const patterns = Object.keys(map)
    .filter((key) => key.includes('*'))
    .map((key) => ({ key, parts: key.split('*') as [string, string] }))
    .filter(
      ({ parts: [before, after] }) =>
        subpath.startsWith(before) &&
        subpath.endsWith(after) &&
        subpath.length > before.length + after.length,
    )
    .sort((a, b) => b.parts[0].length - a.parts[0].length || b.key.length - a.key.length);
  const best = patterns[0];
  if (best === undefined) return undefined;
  const [before, after] = best.parts;
  const middle = subpath.slice(before.length, subpath.length - after.length);
  return pick(map[best.key] as Exports, middle);
}

/** The first target whose conditions hold. */
function pick(target: Exports, star: string): string | undefined {
  if (typeof target === 'string') {
    const path = target.replaceAll('*', star);
    return path.startsWith('./') && !path.split('/').includes('..') ? path : undefined;
  }
  if (target === null) return undefined;
  if (Array.isArray(target)) {
    for (const item of target as readonly Exports[]) {
      const found = pick(item, star);
      if (found !== undefined) return found;
    }
    return undefined;
  }
  for (const [condition, inner] of Object.entries(target)) {
    if (!CONDITIONS.has(condition)) continue;
    if (inner === null) return undefined;
    const found = pick(inner, star);
    if (found !== undefined) return found;
  }
  return undefined;
}
