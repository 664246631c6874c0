import type { Clock } from '../api/clock.ts';
import { YardmasterError } from '../api/errors.ts';
import type { Logger } from '../api/plugin.ts';
import type { LogLine } from '../messages/protocol.ts';
import { nextInRing } from '../util/collections.ts';
import { countData, countText, type FailureCount, isReported } from '../util/failure-count.ts';
import { wellFormed } from '../util/values.ts';

const LINES_MAX = 1000;
/** Of the fields of a line, as text. */
const FIELDS_LENGTH_MAX = 4000;

/** A logger that also keeps the newest lines, from `info` up, for those who ask from afar. */
export class LogBook implements Logger {
  private readonly ring: LogLine[] = [];
  private next = 0;

  constructor(
    private readonly log: Logger,
    private readonly clock: Clock,
    private readonly inspect: Inspect,
  ) {}

  /** The newest lines, oldest first. */
  lines(countMax = LINES_MAX): readonly LogLine[] {
    const ordered = [...this.ring.slice(this.next), ...this.ring.slice(0, this.next)];
    return countMax >= ordered.length ? ordered : ordered.slice(ordered.length - countMax);
  }

  debug(fields: object, message?: string): void {
    this.log.debug(fields, message);
  }

  info(fields: object, message?: string): void {
    this.keep('info', fields, message);
    this.log.info(fields, message);
  }

  warn(fields: object, message?: string): void {
    this.keep('warn', fields, message);
    this.log.warn(fields, message);
  }

  error(fields: object, message?: string): void {
    this.keep('error', fields, message);
    this.log.error(fields, message);
  }

  private keep(level: LogLine['level'], fields: object, message = ''): void {
    const line = {
      atMs: this.clock.nowMs(),
      level,
      message: wellFormed(message),
      fields: textOf(fields, this.inspect),
    };
    if (this.ring.length < LINES_MAX) {
      this.ring.push(line);
      return;
    }
    this.ring[this.next] = line;
    this.next = nextInRing(this.next, LINES_MAX);
  }
}

/** Shows objects to people; `inspect` of `node:util` where there is Node. */
export type Inspect = (
  value: object,
  options: { readonly depth: number; readonly breakLength: number },
) => string;

/** As text at once, so that nothing is kept alive and all of it can travel. */
function textOf(fields: object, inspect: Inspect): string {
  let text: string;
  try {
    text = inspect(fields, { depth: 4, breakLength: Infinity });
  } catch (thrown) {
    text = `fields that cannot be shown: ${String(thrown)}`;
  }
  return wellFormed(text.slice(0, FIELDS_LENGTH_MAX));
}

/** Levels of log lines, the least serious first. */
export const LOG_LEVELS = ['info', 'warn', 'error'] as const;

/** Which lines of a log are wanted. */
interface LogSelection {
  /** The newest lines of each log, at most this many. Default: all. */
  readonly count?: number;
  /** By the clock of the process that logged them, in milliseconds. */
  readonly sinceMs?: number;
  /** And what is more serious. Default `info`. */
  readonly level?: LogLine['level'];
  readonly newestFirst?: boolean;
}

/** @param lines - oldest first */
export function selectLines(
  lines: readonly LogLine[],
  { count = Infinity, sinceMs = -Infinity, level = 'info', newestFirst = false }: LogSelection,
): readonly LogLine[] {
  const lowest = LOG_LEVELS.indexOf(level);
  const chosen = lines.filter(
    (line) => line.atMs >= sinceMs && LOG_LEVELS.indexOf(line.level) >= lowest,
  );
  const newest = chosen.slice(Math.max(0, chosen.length - count));
  return newestFirst ? newest.reverse() : newest;
}

/** Says in each line from which extension it is: `{ plugin: 'counter' }`. */
export function namedLogger(log: Logger, from: object): Logger {
  return {
    debug: (fields, message) => log.debug({ ...from, ...fields }, message),
    info: (fields, message) => log.info({ ...from, ...fields }, message),
    warn: (fields, message) => log.warn({ ...from, ...fields }, message),
    error: (fields, message) => log.error({ ...from, ...fields }, message),
  };
}

/**
 * Decides whether a failure that may repeat in every call is reported: the 1st, 2nd, 4th, 8th and so on are.
 * @param kind - what is counted
 * @param of - for the end of the message: `(failure 4 of this policy)`
 * @returns the error to report, with its number from the second one on; undefined: it is only counted
 */
export function nextToReport(
  failures: FailureCount,
  error: YardmasterError,
  { kind, of }: { readonly kind: string; readonly of: string },
): YardmasterError | undefined {
  const count = failures.add(kind);
  if (!isReported(count)) return undefined;
  if (count === 1) return error;
  const { code, message, data, cause } = error;
  const counted = { ...data, ...countData(count) };
  return new YardmasterError(code, message + countText(count, of), counted, { cause });
}
