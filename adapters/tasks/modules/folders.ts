import { existsSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';

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
