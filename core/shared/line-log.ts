import type { Logger } from '../api/plugin.ts';

/**
 * A log that adds a line for each warning and error.
 * @param lines - a list for tests and simulations to look at, or what else takes a line
 */
export function lineLog(lines: { push(line: string): void }): Logger {
  const add = (level: string, fields: object, message?: string): void => {
    const { err } = fields as { err?: unknown };
    const text = message ?? (err instanceof Error ? err.message : JSON.stringify(fields));
    lines.push(`${level}: ${text}`);
  };
  return {
    debug: () => undefined,
    info: () => undefined,
    warn: (fields, message) => add('warning', fields, message),
    error: (fields, message) => add('error', fields, message),
  };
}
