import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';

import { YardmasterError } from '../../../core/api/index.ts';

/** The nearest folder with a `package.json`, else the folder itself; its real path. */
export function projectOf(folder: string): string {
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
export function ancestors(folder: string): readonly string[] {
  const parent = dirname(folder);
  return parent === folder ? [folder] : [folder, ...ancestors(parent)];
}

/** Folders with the code of this package, in a checkout and as it is published. */
export const OWN_CODE = /^(?:dist\/)?(?:core|adapters|bundle|plugins|policies)\//;
/** Modules of it that are made for workers: all that they do when they are imported is to define tasks. */
const OWN_TASKS =
  /^(?:dist\/)?(?:adapters\/(?:peers\/hardware-tasks|demo\/tasks)|bundle\/(?:(?:hardware|demo)-)?tasks(?:-[\w-]{8})?)\.[jt]s$/;

/**
 * What a module of this package is, of any copy of it: `tasks` were made for workers; other `code` was not, and may do
 * whatever its callers want, such as to import a path. Undefined for modules of others.
 * @param path - a real path
 */
export function ownModule(path: string): 'tasks' | 'code' | undefined {
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
