import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach } from 'vitest';
import { Runs } from './runs.ts';

/** What the tests of a file start and write. */
export interface Live {
  /** Is deleted after the last test. */
  readonly folder: string;
  /** Processes, which are killed after each test. */
  readonly runs: Runs;
  /** Called after each test, the last one first. */
  readonly stops: (() => unknown)[];
}

/**
 * Processes, connections and files for the tests of one file; ends them.
 * @param env - variables of the processes, besides those of this one
 */
export function useLive(name: string, env?: NodeJS.ProcessEnv): Live {
  const folder = mkdtempSync(join(tmpdir(), `yardmaster-${name}-`));
  const runs = new Runs(env);
  const stops: (() => unknown)[] = [];
  afterEach(async () => {
    for (const stop of stops.splice(0).reverse()) await stop();
    await runs.end('SIGKILL');
  });
  afterAll(() => {
    rmSync(folder, { recursive: true });
  });
  return { folder, runs, stops };
}
