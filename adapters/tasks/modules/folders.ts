import { existsSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The nearest folder with a `package.json`, else the folder itself; its real path. */
export function projectOf(folder: string): string {
  const project = ancestors(folder).find((ancestor) => existsSync(join(ancestor, 'package.json')));
  return realpathSync(project ?? folder);
}

/** A folder and those above it, the innermost first. */
export function ancestors(folder: string): readonly string[] {
  const parent = dirname(folder);
  return parent === folder ? [folder] : [folder, ...ancestors(parent)];
}
