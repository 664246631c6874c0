/** How `.ci/run` counts: a run that tested nothing must not look like one that passed. */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { ROOT } from './source-files.ts';

/** The counts after some calls, in an environment. */
function countsAfter(calls: string, environment: Readonly<Record<string, string>> = {}): string {
  const script = `source .ci/counts.sh; { ${calls}; } >/dev/null; echo "$passed $failed $skipped"`;
  const env = { ...process.env, CI: '', CI_ALLOW_MISSING: '', FAILURES: '', ...environment };
  return execFileSync('bash', ['-c', script], { cwd: ROOT, env, encoding: 'utf8' }).trim();
}

it('counts of several lines are added up, skipped tests included', () => {
  expect(
    countsAfter("add_counts '7 passed, 2 failed, 3 skipped'; add_counts '1 passed, 0 failed'"),
  ).toBe('8 2 3');
});

it.each(["''", "'0 passed, 0 failed'", "'0 passed, 0 failed, 0 skipped'"])(
  'a step whose count is %s has failed',
  (line) => {
    expect(countsAfter(`add_counts ${line}`)).toBe('0 1 0');
  },
);

it('what failed is named before the counts, which are alone on the last line', () => {
  const calls = "failure 'the demo'; add_counts '3 passed, 1 failed' cases; finish";
  const script = `FAILURES=$(mktemp); source .ci/counts.sh; ${calls}`;
  const { stdout, status } = spawnSync('bash', ['-c', script], { cwd: ROOT, encoding: 'utf8' });
  expect(stdout.trimEnd().split('\n')).toEqual([
    '=== what failed',
    '  the demo',
    '  cases: 3 passed, 1 failed',
    '3 passed, 2 failed, 0 skipped',
  ]);
  expect(status).toBe(1);
});

it('what cannot run on a machine of a developer is counted as skipped', () => {
  expect(countsAfter("missing shared 'no cases'")).toBe('0 0 1');
});

it('what cannot run in CI has failed', () => {
  expect(countsAfter("missing shared 'no cases'", { CI: 'true' })).toBe('0 1 0');
});

it('what CI_ALLOW_MISSING names is skipped in CI, and nothing else', () => {
  const environment = { CI: 'true', CI_ALLOW_MISSING: 'browser shared' };
  expect(countsAfter("missing shared 'no cases'", environment)).toBe('0 0 1');
  expect(countsAfter("missing dask 'no Python'", environment)).toBe('0 1 0');
});

/** What `.ci/release-notes.mjs` prints for a version of a changelog. */
function notesOf(
  version: string,
  changelog: string,
): { readonly out: string; readonly err: string } {
  const file = join(mkdtempSync(join(tmpdir(), 'yardmaster-notes-')), 'changelog.md');
  writeFileSync(file, changelog);
  const words = ['.ci/release-notes.mjs', version, file];
  const { stdout, stderr } = spawnSync(process.execPath, words, { cwd: ROOT, encoding: 'utf8' });
  rmSync(dirname(file), { recursive: true });
  return { out: stdout.trim(), err: stderr.trim() };
}

it('the notes of a release are what the changelog says about its version', () => {
  const changelog =
    '# Changelog\n\n## 0.2.0 (2027-01-31)\n\nAdded\n\n- b\n\n## 0.1.0 (unreleased)\n\n- a\n';
  expect(notesOf('0.2.0', changelog)).toEqual({ out: 'Added\n\n- b', err: '' });
  expect(notesOf('0.1.0', changelog).err).toContain('write the day of the release');
  expect(notesOf('0.3.0', changelog).err).toContain('has no heading "## 0.3.0 (date)"');
});

it.each(['ci', 'release'])('the workflow %s runs scripts that exist', (name) => {
  const workflow = readFileSync(join(ROOT, `.github/workflows/${name}.yml`), 'utf8');
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    readonly scripts: Readonly<Record<string, string>>;
  };
  const named = [...workflow.matchAll(/npm run -s ([\w:-]+)/g)].map(([, script = '']) => script);
  const files = [...workflow.matchAll(/\.ci\/[\w.-]+/g)].map(([path]) => path);
  expect(named.filter((script) => !Object.hasOwn(scripts, script))).toEqual([]);
  expect(files.length).toBeGreaterThan(0);
  expect(files.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  expect(Object.keys(parse(workflow) as object)).toContain('jobs');
});
