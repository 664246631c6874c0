import { readFileSync } from 'node:fs';
import type { Server } from 'node:net';

import { FailureCount, isReported } from '../../../core/util/failure-count.ts';

const CONNECTIONS_MAX = 65_536;

/** Open files that are left for everything else than connections. */
const OTHER_FILES = 128;

/**
 * Connections that the open files of this process allow: beyond that, the system accepts none, and files,
 * threads and connections to others fail as well.
 */
export function defaultConnectionsMax(): number {
  const filesMax = openFilesMax();
  const reserve = Math.min(OTHER_FILES, Math.ceil(filesMax / 2));
  return Math.min(CONNECTIONS_MAX, filesMax - reserve);
}

/** Closes connections beyond the limit, and warns of the 1st, 2nd, 4th, 8th and so on. */
export function limitConnections(server: Server, address: string, connectionsMax: number): void {
  const failures = new FailureCount();
  const warn = (kind: string, what: string): void => {
    const count = failures.add(kind);
    if (isReported(count)) process.emitWarning(`${address}: ${what} (${count} so far)`);
  };
  server.maxConnections = connectionsMax;
  server.on('drop', () => {
    warn('drop', `a connection was refused, because ${connectionsMax} are open`);
  });
  server.on('error', (cause) => {
    // One connection could not be accepted (too many open files, say); the next one may.
    warn('error', `a connection was not accepted: ${cause.message}`);
  });
}

/** The limit of open files (`ulimit -n`); Infinity where the system does not say. */
function openFilesMax(): number {
  try {
    const limits = readFileSync('/proc/self/limits', 'utf8');
    const soft = /^Max open files\s+(\d+)/m.exec(limits)?.[1];
    return soft === undefined ? Infinity : Number(soft);
  } catch {
    return Infinity;
  }
}
