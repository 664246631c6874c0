import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';

const TESTING = new URL('../../../dist/adapters/testing/index.js', import.meta.url).href;

it('the process of a suite ends after a clause that fails, and skips say why', () => {
  const code = `
import { describe, it } from 'node:test';
import { executorConformance } from '${TESTING}';
const create = (context) => ({
  threadCount: 1,
  run: (task, signal) => context.run(task, { signal }),
  close: () => (signals.shift() ? Promise.resolve() : new Promise(() => undefined)),
});
const signals = [true, true, true];
const own = (name, body) => (/actor|its key|^close/.test(name) ? it(name, body) : undefined);
const harness = () => ({ create, clauseMs: 500, runsInModule: false });
executorConformance('careless', harness, { describe, it: own });`;
  const args = ['--test-reporter=tap', '--input-type=module', '-e', code];
  const { status, stdout } = spawnSync(process.execPath, args, {
    encoding: 'utf8',
    timeout: 20_000,
  });
  expect(stdout).toMatch(/not ok \d+ - close fails what runs/);
  expect(stdout).toContain('# SKIP the executor has no "callActor"');
  expect(stdout).toContain('# SKIP the harness says runsInModule: false');
  expect(status).toBe(1);
});
