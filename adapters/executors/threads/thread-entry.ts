import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { YardmasterError } from '../../../core/api/index.ts';

/**
 * Path of what threads run: that of this package, compiled, also when this file runs uncompiled. Where a bundler has
 * made this code a part of another file, its `thread-main` next to that.
 * @throws YardmasterError `ERR_CONFIG` when there is neither
 */
export function threadEntry(): string {
  try {
    return createRequire(import.meta.url).resolve('#thread-main');
  } catch {
    const names = ['./thread-main.js', './thread-main.mjs'];
    const paths = names.map((name) => fileURLToPath(new URL(name, import.meta.url)));
    const found = paths.find((path) => existsSync(path));
    if (found !== undefined) return found;
    throw new YardmasterError(
      'ERR_CONFIG',
      `threads run ${paths[0]}, which does not exist: give the bundler yardmaster/thread-main as a second entry of this name, or leave yardmaster out of the bundle`,
      { path: paths[0] },
    );
  }
}
