import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DaskRuns } from './dask-runs.ts';
import { findDaskPython, skipReason } from './pythons.ts';

// Only when it is asked for: it takes a minute, and a Python with all of Dask.
const isAsked = (process.env['DASK_PYTHON'] ?? '') !== '';
const python = isAsked ? findDaskPython() : undefined;
const reason = isAsked ? skipReason(python) : ' (skipped: DASK_PYTHON is not set)';

const SCRIPT = fileURLToPath(new URL('./interop.py', import.meta.url));

const facts = Array.from(
  readFileSync(SCRIPT, 'utf8').matchAll(/^@fact\("(?<text>.*)"\)$/gm),
  (match) => match.groups!['text']!,
);

describe.skipIf(python === undefined)(`Dask's own client and workers${reason}`, () => {
  const outcomes = new Map<string, string | null>();
  let runs: DaskRuns;
  let complaints = '';

  beforeAll(async () => {
    runs = new DaskRuns(python!.command);
    const scheduler = await runs.scheduler();
    const workers = [
      ['--name', 'alice', '--resources', 'GPU=2'],
      ['--name', 'bob'],
    ].map((flags) => runs.worker(scheduler.dask, ['--nthreads', '1', ...flags]));
    const client = runs.script(SCRIPT, scheduler.dask);
    await client.exit;
    for (const line of client.stdout.split('\n').filter(Boolean)) {
      const { fact, error } = JSON.parse(line) as { fact: string; error: string | null };
      outcomes.set(fact, error);
    }
    complaints = [client, scheduler.run, ...workers].map(({ stderr }) => stderr).join('');
  });

  afterAll(() => runs.end());

  it.each(facts)('%s', (fact) => {
    expect(outcomes.has(fact), `it did not come to this: ${complaints.slice(-2000)}`).toBe(true);
    expect(outcomes.get(fact)).toBe(null);
  });
});
