import { createHash } from 'node:crypto';
import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { createRequire, isBuiltin } from 'node:module';
import { dirname, isAbsolute, join, parse, relative, resolve, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { initSync, parse as parseImports } from 'es-module-lexer';
import { type FunctionSpec, YardmasterError } from '../../core/api/index.ts';
import type { ModuleLimit } from '../../core/shared/limits.ts';
import { show } from '../../core/shared/words.ts';
import type { TaskFunction } from './define-tasks.ts';

/** Permits every file. */
const ALL = '*';

/**
 * The places of the modules that a worker loads because a client names them. Decided by the real path: a symbolic
 * link leads nowhere else. Of Yardmaster itself the modules with tasks are always permitted, and no others.
 */
export class AllowedModules implements ModuleLimit {
  /**
   * @param folders - real paths; a file permits itself
   * @param codeRoot - the project in which modules are looked for that clients name relative to theirs
   */
  constructor(
    readonly folders: readonly string[],
    readonly codeRoot = projectOf(process.cwd()),
  ) {}

  /**
   * @param entries - folders and files, which start with `.` or `/`, or names of packages as they are seen from
   *   the folder; `*` permits every file. Default: the project in which modules are looked for
   * @param codeRoot - that project. Default: the project of the current folder
   * @throws YardmasterError `ERR_CONFIG` when there is no such folder or package
   */
  static of(
    entries: readonly string[] | undefined,
    folder: string,
    codeRoot?: string,
  ): AllowedModules {
    const root = codeRoot === undefined ? projectOf(process.cwd()) : codeRootAt(codeRoot);
    if (entries === undefined) return new AllowedModules(unlessRoot([root]), root);
    return new AllowedModules(
      entries.map((entry) => placeOf(entry, folder)),
      root,
    );
  }

  /**
   * @param module - a URL, or an absolute path
   * @throws YardmasterError `ERR_MODULE_REFUSED`
   */
  check(module: string): void {
    const path = pathOf(module);
    if (path === undefined) throw refused(module, 'is not a file, and only files are permitted');
    const real = realPath(path);
    checkOwn(module, real);
    if (isBelow(PACKAGE_FOLDER, real) && ownModule(real) === 'tasks') return;
    if (this.folders.some((folder) => isBelow(folder, real))) return;
    throw refused(
      module,
      `is in none of the folders from which this worker may load modules: ${this.folders.join(', ')}`,
    );
  }

  checkExports(module: string): void {
    const real = realPath(pathOf(module) ?? module);
    const isPermitted = this.folders.some(
      (folder) =>
        isBelow(folder, real) &&
        (folder === parse(folder).root ||
          !relative(folder, real).split(sep).includes('node_modules')),
    );
    if (isPermitted) return;
    throw refused(
      module,
      'belongs to a package, of which only what defineTasks was given may be called',
    );
  }
}

const PACKAGE_FOLDER = projectOf(import.meta.dirname);

/**
 * Refuses modules of Yardmaster that are not made for workers: some of their functions import what they are given, which
 * would permit every file.
 * @param module - a URL, or an absolute path
 * @throws YardmasterError `ERR_MODULE_REFUSED`
 */
export function checkOwnModule(module: string): void {
  const path = pathOf(module);
  if (path !== undefined) checkOwn(module, realPath(path));
}

function checkOwn(module: string, real: string): void {
  if (ownModule(real) !== 'code') return;
  const shown = shownModule(module);
  throw new YardmasterError(
    'ERR_MODULE_REFUSED',
    `${shown} is a module of Yardmaster that is not made for tasks; call what you need of it in a function of your own module`,
    { module: shown },
  );
}

function shownModule(module: string): string {
  return module.length > 200 ? `${module.slice(0, 200)}…` : module;
}

function refused(module: string, why: string): YardmasterError {
  const shown = shownModule(module);
  return new YardmasterError(
    'ERR_MODULE_REFUSED',
    `${shown} ${why}; start the worker in the folder of the project, or permit the module's folder or package: worker.allowModules, --allow-modules`,
    { module: shown },
  );
}

/** Undefined for what is not a file. */
function pathOf(module: string): string | undefined {
  if (isAbsolute(module)) return module;
  try {
    return fileURLToPath(module);
  } catch {
    return undefined;
  }
}

/** Of a file that does not exist: what its nearest folder that does leads to. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const parent = dirname(path);
    return parent === path ? path : join(realPath(parent), path.slice(parent.length));
  }
}

function placeOf(entry: string, folder: string): string {
  if (entry === ALL) return parse(resolve(folder)).root;
  const isPath = entry.startsWith('.') || isAbsolute(entry);
  const place = isPath ? resolve(folder, entry) : packageOf(entry, folder);
  if (place !== undefined && existsSync(place)) return realpathSync(place);
  throw new YardmasterError(
    'ERR_CONFIG',
    isPath
      ? `worker.allowModules names ${place}, which does not exist`
      : `worker.allowModules names the package "${entry}", which is not installed where ${folder} can import it; to name a folder, write "./${entry}"`,
    { entry },
  );
}

function packageOf(name: string, folder: string): string | undefined {
  return ancestors(folder)
    .map((ancestor) => join(ancestor, 'node_modules', name))
    .find((place) => existsSync(place));
}

/** A process that was started in `/` has no project: nothing would be refused. */
function unlessRoot(folders: readonly string[]): readonly string[] {
  return folders.filter((folder) => folder !== parse(folder).root);
}

/** @param place - a folder, or a file, which is below itself */
function isBelow(place: string, path: string): boolean {
  return path === place || path.startsWith(place.endsWith(sep) ? place : place + sep);
}

/** The nearest folder with a `package.json`, else the folder itself; its real path. */
function projectOf(folder: string): string {
  const project = ancestors(folder).find((ancestor) => existsSync(join(ancestor, 'package.json')));
  return realpathSync(project ?? folder);
}

/**
 * The real path of the project that `codeRoot` names.
 *
 * @param folder - relative to the current folder
 * @throws YardmasterError `ERR_CONFIG` when there is no such folder
 */
export function codeRootAt(folder: string): string {
  if (existsSync(folder)) return realpathSync(folder);
  throw new YardmasterError(
    'ERR_CONFIG',
    `codeRoot (--code-root) names ${folder}, which does not exist`,
    { folder },
  );
}

/** A folder and those above it, the innermost first. */
function ancestors(folder: string): readonly string[] {
  const parent = dirname(folder);
  return parent === folder ? [folder] : [folder, ...ancestors(parent)];
}

/** Folders with the code of this package, in a checkout and as it is published. */
const OWN_CODE = /^(?:dist\/)?(?:core|adapters|bundle|plugins|policies)\//;
/** Modules of it that are made for workers: all that they do when they are imported is to define tasks. */
const OWN_TASKS =
  /^(?:dist\/)?(?:adapters\/(?:peers\/hardware-tasks|demo\/tasks)|bundle\/(?:(?:hardware|demo)-)?tasks(?:-[\w-]{8})?)\.[jt]s$/;

/**
 * The kind of a module of this package, of any copy of it: `tasks` were made for workers; other `code` was not, and may do
 * whatever its callers want, such as to import a path. Undefined for modules of others.
 * @param path - a real path
 */
function ownModule(path: string): 'tasks' | 'code' | undefined {
  const root = ancestors(dirname(path)).find((folder) => existsSync(join(folder, 'package.json')));
  if (root === undefined) return undefined;
  const within = relative(root, path).replaceAll(sep, '/');
  if (!OWN_CODE.test(within) || nameIn(join(root, 'package.json')) !== 'yardmaster')
    return undefined;
  return OWN_TASKS.test(within) ? 'tasks' : 'code';
}

function nameIn(manifest: string): unknown {
  try {
    return (JSON.parse(readFileSync(manifest, 'utf8')) as { readonly name?: unknown }).name;
  } catch {
    return undefined;
  }
}

// What a module is made of: the sources that it imports, and theirs.

/** The folder of this package: its own files are no part of a module that imports them. */
const PACKAGE = fileURLToPath(new URL('../../', import.meta.url)).replace(/dist\/$/, '');

/**
 * The sources of all files that a module imports, directly or not, in the order of the imports, without its own; of a
 * package its name and version instead. Literal specifiers of `import`, `export … from` and `require` count, the latter
 * in comments and strings as well: too much makes a new version where none was needed, too little mixes versions.
 * What cannot be found or read is left out: the import of the module will say so.
 */
function importedSources(path: string, source: Uint8Array): readonly (Uint8Array | string)[] {
  const found: (Uint8Array | string)[] = [];
  const seen = new Set([path]);
  const walk = (importer: string, code: Uint8Array): void => {
    for (const specifier of specifiersIn(code)) {
      const target = targetOf(specifier, importer);
      if (target === undefined || seen.has(target)) continue;
      seen.add(target);
      if (!target.startsWith('/')) {
        found.push(target);
        continue;
      }
      const imported = ifReadable(() => readFileSync(target));
      if (imported === undefined) continue;
      found.push(imported);
      if (/\.[mc]?[jt]s$/.test(target)) walk(target, imported);
    }
  };
  walk(path, source);
  return found;
}

/** Whatever can be an import, in comments and strings, too. */
const LIKE_IMPORT = /\b(?:from|import)(?:[\s(]|\/\*.*?\*\/)*["']([^"']+)["']/gs;
const LIKE_REQUIRE = /\brequire\s*\(\s*["'`]([^"'`\n]+)["'`]\s*\)/g;

function specifiersIn(code: Uint8Array): readonly string[] {
  const text = Buffer.from(code).toString();
  const required = namesIn(text, LIKE_REQUIRE);
  // Most modules of tasks import this package alone. The lexer costs each thread some milliseconds.
  if (namesIn(text, LIKE_IMPORT).every(isForeign)) return required;
  initSync();
  try {
    const [imports] = parseImports(text);
    return [...imports.flatMap(({ n }) => n ?? []), ...required];
  } catch {
    return required; // Not a module that can be run, or of another language.
  }
}

function namesIn(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].map(([, name = '']) => name);
}

/** A path, or a package with its version; undefined for what is no part of the module. */
function targetOf(specifier: string, importer: string): string | undefined {
  const plain = specifier.replace(/[?#].*$/, '');
  if (plain.startsWith('file:')) return ownless(ifReadable(() => fileURLToPath(plain)));
  if (/^(?:\.{0,2}\/|\.\.?$)/.test(plain))
    return ownless(fileAt(resolve(dirname(importer), plain)));
  const name = /^(?:@[^/]+\/)?[^/:#]+/.exec(plain)?.[0];
  if (name === undefined || isForeign(plain)) return undefined;
  return packageVersion(name, dirname(importer));
}

/** No part of a module that imports it: Node's, or ours. */
function isForeign(specifier: string): boolean {
  return specifier === 'yardmaster' || specifier.startsWith('yardmaster/') || isBuiltin(specifier);
}

function ownless(path: string | undefined): string | undefined {
  if (path?.startsWith(PACKAGE) === true && OWN_CODE.test(path.slice(PACKAGE.length)))
    return undefined;
  return path;
}

/** TypeScript may name the file that a compiler would make of another one; `require` may leave out the ending. */
function fileAt(path: string): string | undefined {
  const candidates = [path, path.replace(/\.([mc]?)js$/, '.$1ts'), `${path}.ts`];
  const found = candidates.find((each) => ifReadable(() => statSync(each))?.isFile() === true);
  return found ?? ifReadable(() => createRequire(path).resolve(path));
}

function packageVersion(name: string, folder: string): string | undefined {
  for (let at = folder; ; at = dirname(at)) {
    const text = ifReadable(() =>
      readFileSync(join(at, 'node_modules', name, 'package.json'), 'utf8'),
    );
    if (text !== undefined) {
      const manifest = ifReadable(() => JSON.parse(text) as { readonly version?: string } | null);
      return `${name}@${manifest?.version ?? ''}`;
    }
    if (at === dirname(at)) return undefined;
  }
}

function ifReadable<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/**
 * The URL of a module, which may be given as an absolute path, such as `__filename`.
 *
 * @param caller - what was called with it, for the message
 * @throws YardmasterError `ERR_FUNCTION_MISSING` when it is neither
 */
export function moduleUrl(caller: string, module: unknown): string {
  if (typeof module === 'string') {
    if (isAbsolute(module)) return pathToFileURL(module).href;
    if (URL.canParse(module)) return module;
  } else if (module instanceof URL) return module.href;
  throw new YardmasterError(
    'ERR_FUNCTION_MISSING',
    `${caller} wants the URL of the module that workers import, got ${show(module)}; write import.meta.url, or __filename in CommonJS`,
  );
}

const VERSIONS = Symbol.for('yardmaster.versions');

/**
 * Versions as they were when a module was first asked for; a running process keeps its modules too. Shared by all copies
 * of this package: a module gives its version to the one that it imports.
 */
const versions = ((globalThis as { [VERSIONS]?: Map<string, string> })[VERSIONS] ??= new Map<
  string,
  string
>());

/** The author of a module says what its version is, in the place of its source. */
export function pinVersion(module: string, version: string): void {
  versions.set(module, digestOf(`version ${version}`));
}

/**
 * The SHA-256 of a module's source and of all that it imports, in hexadecimal; packages count with name and version.
 * Read once per process: a module that is loaded does not change when its file does.
 *
 * @param module - a `file:` or `data:` URL
 * @throws YardmasterError `ERR_FUNCTION_MISSING` when the source cannot be read
 */
export function sourceVersion(module: string): string {
  const known = versions.get(module);
  if (known !== undefined) return known;
  const version = versionOf(module);
  versions.set(module, version);
  return version;
}

function versionOf(module: string): string {
  if (module.startsWith('data:')) return digestOf(module);
  const { path, source } = read(module);
  const own = digestOf(source);
  const imported = importedSources(path, source);
  return imported.length === 0 ? own : digestOf([own, ...imported.map(digestOf)].join('\n'));
}

function digestOf(source: Uint8Array | string): string {
  return createHash('sha256').update(source).digest('hex');
}

function read(module: string): { readonly path: string; readonly source: Uint8Array } {
  try {
    const url = new URL(module);
    if (url.protocol === 'file:') {
      const path = fileURLToPath(url);
      return { path, source: readFileSync(path) };
    }
  } catch (cause) {
    throw new YardmasterError(
      'ERR_FUNCTION_MISSING',
      `the module ${module} cannot be read: deploy it to the project of each worker (--code-root), or under this path`,
      { module },
      { cause },
    );
  }
  throw new YardmasterError(
    'ERR_FUNCTION_MISSING',
    `tasks come from modules with a file: or data: URL, not from ${module}`,
    { module },
  );
}

// How modules of tasks are named between machines on which their project lies in different folders.

/** As in rsync: what follows is the same on all machines, what precedes is not. */
const MARK = '/./';
const PACKAGES = '/node_modules/';

/** By root, which is empty where none was given, and URL. Files do not move while a process runs. */
const namesByRoot = new Map<string, Map<string, string>>();

/**
 * The URL of a module with a mark (`/./`) after the root of its project, or after `node_modules`. The root is the
 * first of these that contains the module: `codeRoot`, the project of the current folder, the nearest folder with a
 * `package.json`. What is not a file keeps its URL.
 *
 * @param codeRoot - a real path
 */
export function travellingName(module: string, codeRoot = ''): string {
  let names = namesByRoot.get(codeRoot);
  if (names === undefined) namesByRoot.set(codeRoot, (names = new Map<string, string>()));
  const known = names.get(module);
  if (known !== undefined) return known;
  const name = markedName(module, codeRoot);
  names.set(module, name);
  return name;
}

/**
 * The name by which a worker finds a function.
 * @param codeRoot - see {@link travellingName}
 */
export function travellingFunction(
  { module, name, version }: TaskFunction,
  codeRoot?: string,
): Pick<FunctionSpec, 'module' | 'name' | 'version'> {
  return { module: travellingName(module, codeRoot), name, version };
}

function markedName(module: string, codeRoot: string): string {
  if (!module.startsWith('file:') || module.includes(MARK)) return module;
  const packages = module.lastIndexOf(PACKAGES);
  if (packages >= 0) {
    const end = packages + PACKAGES.length;
    return `${module.slice(0, end)}./${module.slice(end)}`;
  }
  const path = fileURLToPath(module);
  const root = rootOf(path, codeRoot);
  const start = `${pathToFileURL(root).href}/`;
  if (root === parse(root).root || !module.startsWith(start)) return module;
  return `${start}./${module.slice(start.length)}`;
}

function rootOf(path: string, codeRoot: string): string {
  if (codeRoot !== '' && path.startsWith(codeRoot + sep)) return codeRoot;
  const here = projectOf(process.cwd());
  return path.startsWith(here + sep) ? here : projectOf(dirname(path));
}

/** The part of a name that is the same on other machines. */
export function commonName(name: string): string {
  const at = name.indexOf(MARK);
  return at < 0 ? name : name.slice(at + MARK.length);
}

/** The URL that a name has where it was made. */
export function urlOf(name: string): string {
  return name.replace(MARK, '/');
}

/**
 * The paths at which a module can be on this machine: in the project of this process, and at its place in that of the client.
 * Files
 * that do not exist are left out.
 *
 * @param root - of the project of this process; default: that of the current folder
 */
export function placesOf(name: string, root: string = projectOf(process.cwd())): string[] {
  const at = name.indexOf(MARK);
  const own = at < 0 ? [] : ownPlaces(name.slice(0, at + 1), name.slice(at + MARK.length), root);
  const places = new Set([...own, urlOf(name)]);
  return [...places].filter((url) => !url.startsWith('file:') || existsSync(fileURLToPath(url)));
}

function ownPlaces(before: string, path: string, root: string): string[] {
  const folders = before.endsWith(PACKAGES)
    ? ancestors(root).map((folder) => join(folder, 'node_modules'))
    : [root];
  return folders.map((folder) => new URL(`./${path}`, pathToFileURL(folder + sep)).href);
}
