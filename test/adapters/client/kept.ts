/** What tests of kept results share: a folder with the log of what tasks ran, and the store. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A new folder, to be removed after the test, and the paths in it. */
export function keptFolder(): { folder: string; log: string; store: string } {
  const folder = mkdtempSync(join(tmpdir(), 'yardmaster-kept-'));
  return { folder, log: join(folder, 'log'), store: join(folder, 'store') };
}

/** What the log says was run since the last call, sorted. */
export function takenFrom(log: string): string[] {
  const lines = existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : [];
  rmSync(log, { force: true });
  return lines.sort();
}
