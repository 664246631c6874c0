/** What a module is made of: the sources that it imports, and theirs. */
import { readFileSync, statSync } from 'node:fs';
import { createRequire, isBuiltin } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { initSync, parse } from 'es-module-lexer';
import { OWN_CODE } from './folders.ts';

/** Where this package is: its own files are no part of a module that imports them. */
const PACKAGE = fileURLToPath(new URL('../../../', import.meta.url)).replace(/dist\/$/, '');

/**
 * The sources of all files that a module imports, directly or not, in the order of the imports, without its own; of a
 * package its name and version instead. Literal specifiers of `import`, `export … from` and `require` count, the latter
 * in comments and strings as well: too much makes a new version where none was needed, too little mixes versions.
 * What cannot be found or read is left out: the import of the module will say so.
 */
export function importedSources(
  path: string,
  source: Uint8Array,
): readonly (Uint8Array | string)[] {
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
    const [imports] = parse(text);
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
      const { version = '' } = JSON.parse(text) as { readonly version?: string };
      return `${name}@${version}`;
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
