import type { Logger } from '../api/plugin.ts';

/** Says in each line which plugin it is from. */
export function namedLogger(log: Logger, plugin: string): Logger {
  return {
    debug: (fields, message) => log.debug({ plugin, ...fields }, message),
    info: (fields, message) => log.info({ plugin, ...fields }, message),
    warn: (fields, message) => log.warn({ plugin, ...fields }, message),
    error: (fields, message) => log.error({ plugin, ...fields }, message),
  };
}
