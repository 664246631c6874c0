import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { startScheduler } from '../kit/start-scheduler.ts';
import { MemoryLog } from './memory-log.ts';

const folder = mkdtempSync(join(tmpdir(), 'yardmaster-bad-'));
afterAll(() => rmSync(folder, { recursive: true }));

writeFileSync(
  join(folder, 'no-database.mjs'),
  "export default { name: 'db', apiVersion: 1, setup() { throw new Error('no database'); } };",
);

const plugin = (use: string): string => `scheduler: { plugins: [{ use: '${use}' }] }`;

test('a plugin that fails in setup stops the scheduler before it listens', async () => {
  const config = join(folder, 'setup.yaml');
  writeFileSync(config, plugin('./no-database.mjs'));
  await expect(startScheduler({ config, log: new MemoryLog() })).rejects.toMatchObject({
    code: 'ERR_PLUGIN_SETUP',
    message: 'plugin "db" (./no-database.mjs) failed in setup: no database',
  });
});
