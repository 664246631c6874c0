import { createRequire } from 'node:module';
import type * as Pino from 'pino';
import { type Logger, YardmasterError } from '../../core/api/index.ts';
import { printableLines } from '../../core/util/printable.ts';
import { LOG_LEVELS, type LogLevel, textLogger } from '../app/text-log.ts';

export { LOG_LEVELS };

const require = createRequire(import.meta.url);

/** What the flags say about logs. */
export interface LogFlags {
  readonly logLevel: LogLevel;
  /** Default: text on a terminal, otherwise JSON. */
  readonly logFormat?: 'text' | 'json';
}

/** Logs on the error stream, so that stdout has results alone: for people, or one JSON object per line. */
export function stderrLogger({ logLevel, logFormat }: LogFlags, name: string): Logger {
  const format = logFormat ?? (process.stderr.isTTY ? 'text' : 'json');
  if (format === 'text') return textLogger(name, logLevel);
  // Loaded here: it would take a tenth of the start of a worker process that logs text.
  const { pino } = require('pino') as typeof Pino;
  const level: Pino.LevelWithSilent = logLevel;
  const serializers = { err: (error: unknown) => errorFields(error, logLevel === 'debug') };
  // Synchronous: the last lines before an exit are the ones that matter.
  const formatters = { log: withoutOwnNames };
  const destination = pino.destination({ fd: 2, sync: true });
  // JSON leaves some of the characters that terminals obey as they are; shown, they are JSON for the same text.
  const write = (line: string): void => void destination.write(printableLines(line));
  return pino({ level, name, serializers, formatters }, { write });
}

/** Fields that every line has. */
const OWN_FIELDS = ['name', 'level', 'time', 'pid', 'hostname', 'msg'];

/**
 * Fields with the names that every line has would appear twice: such fields are grouped under
 * `about`.
 */
export function withoutOwnNames(fields: Record<string, unknown>): Record<string, unknown> {
  if (!OWN_FIELDS.some((field) => Object.hasOwn(fields, field))) return fields;
  const entries = Object.entries(fields);
  const about = entries.filter(([field]) => OWN_FIELDS.includes(field));
  const rest = entries.filter(([field]) => !OWN_FIELDS.includes(field));
  return { ...Object.fromEntries(rest), about: Object.fromEntries(about) };
}

/** Our own errors say all that a stack would; of others it is the best part. */
function errorFields(error: unknown, isStackWanted: boolean): object {
  if (!(error instanceof Error)) return { message: String(error) };
  const { name, message, stack, cause } = error;
  const { code } = error as { code?: unknown };
  return {
    name,
    message,
    ...(code === undefined ? {} : { code }),
    ...(isStackWanted || !YardmasterError.is(error) ? { stack } : {}),
    ...(cause === undefined ? {} : { cause: errorFields(cause, isStackWanted) }),
  };
}
