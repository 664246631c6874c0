import { type Logger, messageOf, toErrorPayload } from '../../core/api/index.ts';
import { printable } from '../../core/util/values.ts';
import { userFrame } from '../tasks/index.ts';

/** The levels of a log; each includes those after it. */
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/**
 * A logger for people: one line each, `yardmaster worker-1 warning: …`, on the error stream. Stacks
 * are shown at the level `debug` alone.
 *
 * @param name - of the process, shown on each line
 */
export function textLogger(
  name: string,
  level: LogLevel = 'warn',
  write: (line: string) => void = (line) => process.stderr.write(line),
): Logger {
  const from = LOG_LEVELS.indexOf(level);
  const say =
    (own: LogLevel, shown: string) =>
    (fields: object, message?: string): void => {
      if (LOG_LEVELS.indexOf(own) < from) return;
      const { err } = fields as { err?: unknown };
      const text = message ?? (err === undefined ? JSON.stringify(fields) : messageOf(err));
      write(`${printable(`yardmaster ${name} ${shown}: ${text}${detailsOf(err, text, level)}`)}\n`);
    };
  return {
    debug: say('debug', 'debug'),
    info: say('info', 'info'),
    warn: say('warn', 'warning'),
    error: say('error', 'error'),
  };
}

/** The details of an error that its message leaves out. */
function detailsOf(error: unknown, text: string, level: LogLevel): string {
  if (error === undefined) return '';
  const message = messageOf(error);
  const own = (text.includes(message) ? '' : `: ${message}`) + placeOf(error);
  const isShown = level === 'debug' && error instanceof Error && error.stack !== undefined;
  return isShown ? `${own}\n${error.stack}` : own;
}

/** The line of a policy, a plugin or the program that is to blame; empty when there is none. */
function placeOf(error: unknown): string {
  let first = toErrorPayload(error);
  if (first.cause === undefined) return ''; // An error of ours, which says all that is needed.
  while (first.cause !== undefined) first = first.cause;
  const frame = first.stack === undefined ? undefined : userFrame(first.stack);
  return frame === undefined ? '' : ` [${frame}]`;
}
