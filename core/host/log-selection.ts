import { isPlainObject } from '../config/prepare.ts';
import { hint } from '../config/errors.ts';
import type { LogLine } from '../messages/protocol.ts';
import { wrongParameter } from './wrong-parameter.ts';

const LEVELS: readonly LogLine['level'][] = ['info', 'warn', 'error'];
const KNOWN: readonly string[] = [
  'timeoutMs',
  'workers',
  'count',
  'sinceMs',
  'level',
  'newestFirst',
];

/** Which lines of a log are wanted. */
export interface LogSelection {
  /** Of each log the newest so many. */
  readonly count: number | undefined;
  /** By the clock of the process that logged them, in milliseconds. */
  readonly sinceMs: number | undefined;
  /** And what is more serious. */
  readonly level: LogLine['level'];
  readonly newestFirst: boolean;
}

/** @throws YardmasterError `ERR_PROTOCOL` naming the field, also when there is no such field */
export function logSelectionIn(given: unknown): LogSelection {
  const options = given ?? {};
  if (!isPlainObject(options)) throw wrongParameter('logs', 'parameters', 'an object');
  const stranger = Object.keys(options).find((name) => !KNOWN.includes(name));
  if (stranger !== undefined) {
    throw wrongParameter('logs', stranger, `nothing${hint(stranger, KNOWN)}`);
  }
  const { count, sinceMs, level = 'info', newestFirst = false } = options;
  if (count !== undefined && (!Number.isInteger(count) || (count as number) < 1)) {
    throw wrongParameter('logs', 'count', 'a whole number, at least 1');
  }
  if (sinceMs !== undefined && !Number.isFinite(sinceMs)) {
    throw wrongParameter('logs', 'sinceMs', 'milliseconds since 1970');
  }
  if (!LEVELS.includes(level as LogLine['level'])) {
    throw wrongParameter('logs', 'level', `one of ${LEVELS.join(', ')}`);
  }
  if (typeof newestFirst !== 'boolean') {
    throw wrongParameter('logs', 'newestFirst', 'true or false');
  }
  return {
    count: count as number | undefined,
    sinceMs: sinceMs as number | undefined,
    level: level as LogLine['level'],
    newestFirst,
  };
}

/** @param lines - oldest first */
export function selectLines(
  lines: readonly LogLine[],
  { count = Infinity, sinceMs = -Infinity, level, newestFirst }: LogSelection,
): readonly LogLine[] {
  const lowest = LEVELS.indexOf(level);
  const chosen = lines.filter(
    (line) => line.atMs >= sinceMs && LEVELS.indexOf(line.level) >= lowest,
  );
  const newest = chosen.slice(Math.max(0, chosen.length - count));
  return newestFirst ? newest.reverse() : newest;
}
