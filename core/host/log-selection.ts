import type { LogLine } from '../messages/protocol.ts';

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
