import { isAbsolute } from 'node:path';
import { pathToFileURL } from 'node:url';

import { YardmasterError } from '../../../core/api/index.ts';
import { show } from '../../../core/shared/words.ts';

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
