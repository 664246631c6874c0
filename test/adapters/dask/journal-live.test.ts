/** A scheduler with a journal that is killed while clients and workers of Dask are connected. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { DaskRuns } from './dask-runs.ts';
import { findDaskPython, skipReason } from './pythons.ts';

const found = findDaskPython();
const SCRIPT = fileURLToPath(new URL('./fixtures/journal.py', import.meta.url));

const FLAGS = ['--journal-wait', '1s', '--no-dashboard', '--insecure'];

describe.skipIf(found === undefined)(
  `a scheduler with a journal that is killed under Dask${skipReason(found)}`,
  () => {
    let folder: string;
    let runs: DaskRuns;
    beforeEach(() => {
      folder = mkdtempSync(join(tmpdir(), 'yardmaster-dask-journal-'));
      runs = new DaskRuns(found?.command ?? '');
    });
    afterEach(async () => {
      await runs.end();
      rmSync(folder, { recursive: true });
    });

    /** A scheduler, and the same again on the same ports when it is called once more. */
    const journalled = (): (() => ReturnType<DaskRuns['scheduler']>) => {
      let ports: string[] = [];
      return async () => {
        const flags = ['--journal', join(folder, 'journal'), ...FLAGS, ...ports];
        const scheduler = await runs.scheduler(...flags);
        const [own, dask] = [scheduler.own, scheduler.dask].map((url) => new URL(url).port);
        // Of two flags with the same name the last one counts.
        ports = ['--port', own!, '--dask-port', dask!];
        return scheduler;
      };
    };

    it('has its client back with cancelled futures and no task of it, as after a restart of that of Dask, and computes all kinds of graphs', async () => {
      const start = journalled();
      const first = await start();
      const worker = runs.worker(first.dask, ['--nthreads', '1']);
      const go = join(folder, 'go');
      const client = runs.script(SCRIPT, 'returning', first.dask, go);
      expect(await client.firstLine()).toBe('first');
      await first.run.end('SIGKILL');
      const second = await start();
      while (!/back .*\n/.test(client.stdout)) await client.output();
      expect(client.stdout).toContain('back cancelled\n');
      expect(await worker.exit).toBe(0); // Dask's workers end with their scheduler.
      const tasks = runs.yardmaster('tasks', '--scheduler', first.own);
      expect([await tasks.exit, tasks.stdout]).toEqual([0, 'no tasks\n']);
      writeFileSync(go, '');
      runs.worker(first.dask, ['--nthreads', '1']);
      expect([await client.exit, client.stdout]).toEqual([0, 'first\nback cancelled\nagain\n']);
      expect(first.run.stderr + second.run.stderr).not.toMatch(/ERR_|cannot/);
    });

    it('gives another client what one had submitted whose machine is gone as well, under the same keys', async () => {
      const start = journalled();
      const first = await start();
      runs.worker(first.dask, ['--nthreads', '1']);
      const go = join(folder, 'go');
      const lost = runs.script(SCRIPT, 'waiting', first.dask, go);
      expect(await lost.firstLine()).toBe('submitted');
      await first.run.end('SIGKILL');
      await lost.end('SIGKILL');
      const second = await start();
      runs.worker(first.dask, ['--nthreads', '1']);
      writeFileSync(go, '');
      const other = runs.script(SCRIPT, 'same', first.dask, go);
      expect([await other.exit, other.stdout, other.stderr]).toEqual([
        0,
        'same\n',
        expect.any(String),
      ]);
      expect(first.run.stderr + second.run.stderr).not.toMatch(/ERR_|cannot/);
    });
  },
);
