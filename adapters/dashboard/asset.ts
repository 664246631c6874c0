import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

/** A file that the build of the pages made; undefined when it did not. */
export async function asset(name: string): Promise<string | undefined> {
  try {
    const root = dirname(createRequire(import.meta.url).resolve('yardmaster/package.json'));
    return await readFile(join(root, 'dist/adapters/dashboard/assets', name), 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'MODULE_NOT_FOUND') return undefined;
    throw error;
  }
}
