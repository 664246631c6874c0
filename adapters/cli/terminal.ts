import { createRequire } from 'node:module';
import type * as Pino from 'pino';
import stringWidth from 'string-width';
import { type Logger, YardmasterError } from '../../core/api/index.ts';
import { printable, printableLines } from '../../core/util/values.ts';
import { LOG_LEVELS, type LogLevel, textLogger } from '../app/text-log.ts';

/**
 * Writes text that may contain names and messages of peers: all that commands print goes through it, or through
 * `printableLines` where they move the cursor themselves. A line that a peer has a part in is made by `printable`.
 * @param stream - default: the standard output
 */
export function say(text: string, stream: NodeJS.WritableStream = process.stdout): void {
  stream.write(printableLines(text));
}

/** Rows in columns as wide as they need; numbers are aligned at the right. A name with line feeds stays in its row. */
export function textTable(
  titles: readonly string[],
  cells: readonly (readonly (string | number)[])[],
): string {
  const rows = cells.map((row) =>
    row.map((cell) => (typeof cell === 'number' ? cell : printable(cell.replaceAll('\n', '\\n')))),
  );
  const lines = [titles, ...rows];
  const widths = titles.map((_, column) =>
    Math.max(...lines.map((line) => stringWidth(String(line[column])))),
  );
  const isNumber = titles.map((_, column) =>
    rows.every((row) => typeof row[column] === 'number' || row[column] === ''),
  );
  return lines
    .map((line) =>
      line
        .map((cell, column) => {
          const width = widths[column] as number;
          const text = String(cell);
          const space = ' '.repeat(width - stringWidth(text));
          return isNumber[column] === true ? space + text : text + space;
        })
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** Columns by which `top` sorts workers; the first letter of each is a key while it runs. */
export const TOP_SORTS = ['tasks', 'cpu', 'memory', 'name'] as const;
export type TopSort = (typeof TOP_SORTS)[number];

/** Causes that are shown. */
const CAUSES_MAX = 5;

/**
 * The text of an error for people: code and message, and the messages of its causes.
 * @param verbose - with the stack
 */
export function errorText(error: unknown, verbose: boolean): string {
  const lines = [headline(error)];
  let cause = causeOf(error);
  for (let depth = 0; cause !== undefined && depth < CAUSES_MAX; depth++) {
    if (!isSaid(cause, lines.join('\n'))) lines.push(`  because: ${headline(cause)}`);
    cause = causeOf(cause);
  }
  if (verbose && error instanceof Error && error.stack !== undefined) lines.push(error.stack);
  return lines.join('\n');
}

/** A message that repeats its cause, as many do, needs no second line. Of a list each line may be elsewhere. */
function isSaid(cause: unknown, text: string): boolean {
  const message = messageOf(cause);
  if (text.includes(message)) return true;
  const [first = '', ...rest] = message.split('\n').map((line) => line.trim());
  const parts = rest.length > 0 && first.endsWith(':') ? rest : [first, ...rest];
  return parts.every((part) => text.includes(part));
}

function headline(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown };
  const prefix = YardmasterError.is(error) || typeof code === 'string' ? `${String(code)}: ` : '';
  return `${prefix}${messageOf(error)}`;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function causeOf(error: unknown): unknown {
  return error instanceof Error ? error.cause : undefined;
}

export { LOG_LEVELS };

const require = createRequire(import.meta.url);

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
    code,
    ...(isStackWanted || !YardmasterError.is(error) ? { stack } : {}),
    ...(cause === undefined ? {} : { cause: errorFields(cause, isStackWanted) }),
  };
}
