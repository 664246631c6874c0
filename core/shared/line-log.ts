import type { Logger } from '../api/plugin.ts';

/** A log that adds a line for each warning and error, for tests and simulations to look at. */
export function lineLog(lines: string[]): Logger {
  const add = (level: string, fields: object, message?: string): void => {
    const { err } = fields as { err?: unknown };
    lines.push(`${level}: ${message ?? (err instanceof Error ? err.message : '')}`);
  };
  return {
    debug: () => undefined,
    info: () => undefined,
    warn: (fields, message) => add('warning', fields, message),
    error: (fields, message) => add('error', fields, message),
  };
}
