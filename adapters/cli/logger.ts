import { pino } from 'pino';
import type { Logger } from '../../core/api/index.ts';

/** Logs as JSON lines on the error stream, so that stdout has results alone. */
export function stderrLogger(level: string, name: string): Logger {
  // Synchronous: the last lines before an exit are the ones that matter.
  return pino({ level, name }, pino.destination({ fd: 2, sync: true }));
}
