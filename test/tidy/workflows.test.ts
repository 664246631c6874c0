/** What the workflows of CI may do. */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { ROOT } from './source-files.ts';

const FOLDER = join(ROOT, '.github/workflows');

interface Step {
  readonly uses?: string;
  readonly run?: string;
  readonly with?: Readonly<Record<string, unknown>>;
}
interface Workflow {
  readonly permissions: Readonly<Record<string, string>>;
  readonly jobs: Readonly<
    Record<
      string,
      { readonly permissions?: Readonly<Record<string, string>>; readonly steps?: Step[] }
    >
  >;
}

const workflows = readdirSync(FOLDER).map((file) => {
  const text = readFileSync(join(FOLDER, file), 'utf8');
  return { file, text, workflow: parse(text) as Workflow };
});

describe.each(workflows)('the workflow $file', ({ text, workflow }) => {
  const steps = Object.values(workflow.jobs).flatMap((job) => job.steps ?? []);

  it('pins each action by the SHA of a commit, with its version beside it', () => {
    const used = [...text.matchAll(/uses: (.*)/g)].map(([, action]) => action as string);
    const others = used.filter((action) => !action.startsWith('./'));
    expect(others.length).toBeGreaterThan(0);
    for (const action of others)
      expect(action).toMatch(/^[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  });

  it('may read alone unless a job says more, and leaves no credentials', () => {
    expect(workflow.permissions).toEqual({ contents: 'read' });
    const checkouts = steps.filter(({ uses = '' }) => uses.startsWith('actions/checkout'));
    for (const step of checkouts) expect(step.with).toMatchObject({ 'persist-credentials': false });
  });
});

it('a release is published without a token, by what the registry trusts, after everything has been checked', () => {
  const { text, workflow } = workflows.find(({ file }) => file === 'release.yml')!;
  const { publish } = workflow.jobs;
  expect(text).not.toMatch(/secrets\.|NODE_AUTH_TOKEN/);
  expect(publish).toMatchObject({ needs: 'check', environment: 'npm' });
  expect(publish?.permissions).toMatchObject({ 'id-token': 'write' });
  const [last] = publish!.steps!.filter(({ run = '' }) => run.startsWith('npm publish'));
  expect(last?.run).toContain('--provenance');
});

const isThere = spawnSync('zizmor', ['--version']).status === 0;
it.skipIf(!isThere)('a scanner of workflows finds nothing', () => {
  const { status, stdout } = spawnSync('zizmor', ['--offline', '--no-progress', FOLDER], {
    encoding: 'utf8',
  });
  expect([status, stdout]).toEqual([0, expect.anything()]);
});
