/** A scheduler with a journal that is killed while clients and workers of Dask are connected. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';

import { DaskRuns } from './dask-runs.ts';
import { findDaskPython, skipReason } from './pythons.ts';

const found = findDaskPython();
const SCRIPT = `
import os, sys, time
from distributed import Client

def increment(x):
    return x + 1

client = Client(sys.argv[1], timeout=60)
old = client.submit(increment, 1)
print("first", old.result(), flush=True)
while old.status != "cancelled" or client.status != "running":
    time.sleep(0.05)
print("back", old.status, flush=True)
while not os.path.exists(sys.argv[2]):
    time.sleep(0.05)
print("again", client.submit(increment, 1).result(), flush=True)
client.close()
`;

describe.skipIf(found === undefined)(
  `a scheduler with a journal that is killed under Dask${skipReason(found)}`,
  { timeout: 120_000 },
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'yardmaster-dask-journal-'));
    const runs = new DaskRuns(found?.command ?? '');
    afterAll(async () => {
      await runs.end();
      rmSync(folder, { recursive: true });
    });

    it('has its client back with cancelled futures and no task of it, as after a restart of that of Dask', async () => {
      const flags = [
        '--journal',
        join(folder, 'journal'),
        '--journal-wait',
        '1s',
        '--no-dashboard',
        '--insecure',
      ];
      const first = await runs.scheduler(...flags);
      const worker = runs.worker(first.dask, ['--nthreads', '1']);
      const go = join(folder, 'go');
      const client = runs.script('-c', SCRIPT, first.dask, go);
      expect(await client.firstLine()).toBe('first 2');
      await first.run.end('SIGKILL');
      const [port, daskPort] = [first.own, first.dask].map((url) => new URL(url).port);
      // Of two flags with the same name the last one counts.
      await runs.scheduler(...flags, '--port', port!, '--dask-port', daskPort!);
      while (!/back .*\n/.test(client.stdout)) await client.output();
      expect(client.stdout).toContain('back cancelled\n');
      expect(await worker.exit).toBe(0); // Dask's workers end with their scheduler.
      const tasks = runs.yardmaster('tasks', '--scheduler', first.own);
      expect([await tasks.exit, tasks.stdout]).toEqual([0, 'no tasks\n']);
      writeFileSync(go, '');
      runs.worker(first.dask, ['--nthreads', '1']);
      expect([await client.exit, client.stdout]).toEqual([0, 'first 2\nback cancelled\nagain 2\n']);
    });
  },
);
