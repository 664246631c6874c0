import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { YardmasterError } from '../../../core/api/index.ts';
import { importedSources } from './imported-sources.ts';

/** Versions as they were when a module was first asked for; a running process keeps its modules too. */
const versions = new Map<string, string>();

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
