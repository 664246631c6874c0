import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DaskRuns } from '../dask-runs.ts';
import { findDaskPython, skipReason } from '../pythons.ts';

// Only when it is asked for: it takes a minute, and a Python with all of Dask.
const isAsked = (process.env['DASK_PYTHON'] ?? '') !== '';
const python = isAsked ? findDaskPython() : undefined;
const reason = isAsked ? skipReason(python) : ' (skipped: DASK_PYTHON is not set)';

const SCRIPT = fileURLToPath(new URL('../fixtures/scheduler_python.py', import.meta.url));

const facts = Array.from(
  readFileSync(SCRIPT, 'utf8').matchAll(/^@fact\("(?<text>.*)"\)$/gm),
  (match) => match.groups!['text']!,
);

describe.skipIf(python === undefined)(`Python that belongs to the scheduler${reason}`, () => {
  const outcomes = new Map<string, string | null>();
  const folders: string[] = [];
  let runs: DaskRuns;
  let complaints = '';

  beforeAll(async () => {
    runs = new DaskRuns(python!.command);
    const scheduler = await runs.scheduler();
    for (const name of ['alice', 'bob']) {
      // Nannies that share a folder unpack uploads over each other.
      const folder = mkdtempSync(join(tmpdir(), 'scheduler-python-'));
      folders.push(folder);
      const flags = ['--nthreads', '1', '--name', name, '--local-directory', folder];
      runs.worker(scheduler.dask, flags);
    }
    const client = runs.script(SCRIPT, scheduler.dask);
    await client.exit;
    for (const line of client.stdout.split('\n').filter(Boolean)) {
      const { fact, error } = JSON.parse(line) as { fact: string; error: string | null };
      outcomes.set(fact, error);
    }
    complaints = [client, scheduler.run].map(({ stderr }) => stderr).join('');
  });

  afterAll(async () => {
    await runs.end();
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  });

  it.each(facts)('%s', (fact) => {
    expect(outcomes.has(fact), `it did not come to this: ${complaints.slice(-2000)}`).toBe(true);
    expect(outcomes.get(fact)).toBe(null);
  });
});
