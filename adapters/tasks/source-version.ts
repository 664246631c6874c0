import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { YardmasterError } from '../../core/api/index.ts';

/** Versions as they were when a module was first asked for; a running process keeps its modules too. */
const versions = new Map<string, string>();

/**
 * The SHA-256 of a module's own source, in hexadecimal. Modules that it imports do not count.
 * Read once per process: a module that is loaded does not change when its file does.
 *
 * @param module - a `file:` or `data:` URL
 * @throws YardmasterError `ERR_FUNCTION_MISSING` when the source cannot be read
 */
export function sourceVersion(module: string): string {
  const known = versions.get(module);
  if (known !== undefined) return known;
  const version = createHash('sha256').update(readSource(module)).digest('hex');
  versions.set(module, version);
  return version;
}

function readSource(module: string): Uint8Array | string {
  if (module.startsWith('data:')) return module;
  try {
    const url = new URL(module);
    if (url.protocol === 'file:') return readFileSync(fileURLToPath(url));
  } catch (cause) {
    throw new YardmasterError(
      'ERR_FUNCTION_MISSING',
      `the module ${module} cannot be read: deploy it under this path wherever tasks are submitted or run`,
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
