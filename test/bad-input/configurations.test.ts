import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { checkConfig, startScheduler } from '../../adapters/app/start-scheduler.ts';
import { MemoryLog } from './memory-log.ts';

const folder = mkdtempSync(join(tmpdir(), 'yardmaster-bad-'));
afterAll(() => rmSync(folder, { recursive: true }));

writeFileSync(join(folder, 'throws.mjs'), "throw 'a mere string';");
writeFileSync(
  join(folder, 'no-database.mjs'),
  "export default { name: 'db', apiVersion: 1, setup() { throw new Error('no database'); } };",
);

const plugin = (use: string): string => `scheduler: { plugins: [{ use: '${use}' }] }`;

test.each([
  ['text that is no YAML', 'scheduler: [', 'ERR_CONFIG', ':1:13: '],
  ['a tab', 'scheduler:\n\tvalidate: true', 'ERR_CONFIG', ':2:1: Tabs are not allowed'],
  ['a list', '- a', 'ERR_CONFIG', ':1:1: the configuration must be an object'],
  ['a section that does not exist', 'schedular: {}', 'ERR_CONFIG', 'did you mean "scheduler"?'],
  [
    'an address that nothing speaks',
    'scheduler: { address: "tpc://localhost:1" }',
    'ERR_CONFIG',
    ':1:23: scheduler.address cannot be used: no transport for the address "tpc://localhost:1"; did you mean "tcp"?',
  ],
  ['an unknown plugin', plugin('amn'), 'ERR_PLUGIN_LOAD', 'unknown plugin "amn"'],
  ['a plugin with a near name', plugin('amn'), 'ERR_PLUGIN_LOAD', 'did you mean "amm"?'],
  ['a file that is not there', plugin('./nope.mjs'), 'ERR_PLUGIN_LOAD', 'does not exist'],
  [
    'a file named like a package',
    plugin('throws'),
    'ERR_PLUGIN_LOAD',
    'to name the file, write "./throws.mjs"',
  ],
  [
    'a key that is near to none',
    'scheduler: { policies: { queuing: { with: direct } } }',
    'ERR_CONFIG',
    'scheduler.policies.queuing.with is not known; there are use, options',
  ],
  ['a module that throws no Error', plugin('./throws.mjs'), 'ERR_PLUGIN_LOAD', 'a mere string'],
])('%s is refused with its place and a way out', async (_what, text, code, says) => {
  const config = join(folder, 'cluster.yaml');
  writeFileSync(config, text);
  await expect(checkConfig({ config, log: new MemoryLog() })).rejects.toMatchObject({
    code,
    message: expect.stringContaining(says) as string,
  });
});

test('a plugin that fails in setup stops the scheduler before it listens', async () => {
  const config = join(folder, 'setup.yaml');
  writeFileSync(config, plugin('./no-database.mjs'));
  await expect(startScheduler({ config, log: new MemoryLog() })).rejects.toMatchObject({
    code: 'ERR_PLUGIN_SETUP',
    message: 'plugin "db" (./no-database.mjs) failed in setup: no database',
  });
});
