import { existsSync, readFileSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, isAbsolute, join } from 'node:path';

/**
 * Where the module of a package is, as seen from a folder: Node's rules for `import`.
 *
 * `import.meta.resolve` of Node 20 cannot look from another folder, and `require.resolve` refuses
 * packages that export for `import` alone. So the package's own `exports` is read first, and
 * `require.resolve` is left for packages without one.
 *
 * @returns the path of a file, or undefined when there is no such package or it does not export that
 */
export function resolvePackage(specifier: string, fromFolder: string): string | undefined {
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
export function entriesOf(name: string, fromFolder: string): readonly string[] {
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
