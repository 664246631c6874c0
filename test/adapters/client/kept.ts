/** What tests of kept results share: a folder with the log of what tasks ran, and the store. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach } from 'vitest';

interface KeptFolder {
  readonly folder: string;
  readonly log: string;
  readonly store: string;
}

/** Gives each test of a file a new folder, and the paths in it; removes it after the test. */
export function eachInKeptFolder(use: (kept: KeptFolder) => void): void {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'yardmaster-kept-'));
    use({ folder, log: join(folder, 'log'), store: join(folder, 'store') });
  });
  afterEach(() => {
    rmSync(folder, { recursive: true });
  });
}

/** What the log says was run since the last call, sorted. */
export function takenFrom(log: string): string[] {
  const lines = existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : [];
  rmSync(log, { force: true });
  return lines.sort();
}
