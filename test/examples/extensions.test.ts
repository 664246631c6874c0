import { execFile } from 'node:child_process';
import { mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { exampleProject, hasTypes } from './example-project.ts';

const exec = promisify(execFile);

/** Runs `npm test` of an example, which has to pass this many tests. */
async function passes(cwd: string, count: number): Promise<void> {
  const output = await exec('npm', ['test'], { cwd }).catch((ended: unknown) => ended);
  const { stdout } = output as { readonly stdout: string };
  // A test that failed, with what it says, first.
  expect(/^\s*not ok .*(?:\n.*){20}/m.exec(stdout)?.[0]).toBeUndefined();
  expect(stdout).toMatch(new RegExp(`^# pass ${count}$`, 'm'));
}

function projectOf(name: string, packages: readonly string[]): string {
  const folder = exampleProject(name, packages);
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

async function isConfigured(cwd: string): Promise<void> {
  const cli = join(cwd, 'node_modules/yardmaster/dist/bundle/cli.js');
  const { stdout } = await exec(process.execPath, [cli, 'check-config', 'cluster.yaml'], { cwd });
  expect(stdout).toMatch(/^cluster.yaml is fine/);
}

test('the examples of policies, rules, plugins and a transport pass their tests', async () => {
  const folder = projectOf('extensions', ['ws']);
  await isConfigured(folder);
  await passes(folder, 7 + 42);
});

test.skipIf(!hasTypes)('the template of an extension compiles and passes its tests', async () => {
  const folder = projectOf('extension-template', ['typescript']);
  symlinkSync(folder, join(folder, 'node_modules/yardmaster-name-rule'));
  mkdirSync(join(folder, 'node_modules/.bin'));
  symlinkSync('../typescript/bin/tsc', join(folder, 'node_modules/.bin/tsc'));
  await passes(folder, 2);
  await isConfigured(folder);
});
