import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it, test } from 'vitest';
import { SystemClock } from '../../adapters/clocks/index.ts';
import { storeConformance } from '../../adapters/testing/index.ts';
import type { StoreDefinition } from '../../core/api/index.ts';
import { exampleProject } from './example-project.ts';

const folder = exampleProject('stores');
afterAll(() => {
  rmSync(folder, { recursive: true });
});

const { default: brotli } = (await import(join(folder, 'brotli-store.js'))) as {
  default: StoreDefinition<object>;
};
storeConformance(
  'the store that compresses',
  () => {
    const results = mkdtempSync(join(tmpdir(), 'yardmaster-brotli-'));
    return {
      open: () => brotli.create({ clock: new SystemClock() }, { folder: results, quality: 1 }),
      damage: async (key, change) => {
        const path = join(results, key);
        writeFileSync(path, change(readFileSync(path)));
        return Promise.resolve();
      },
      close: () => {
        rmSync(results, { recursive: true });
      },
    };
  },
  { describe, it },
);

test('a cluster that names the store reads from it what another one has computed, in tasks of tasks, too', async () => {
  const run = promisify(execFile);
  const main = (): Promise<{ stdout: string }> =>
    run(process.execPath, ['main.js'], { cwd: folder });
  const lines = async (): Promise<string[]> => (await main()).stdout.trim().split('\n').sort();
  expect(await lines()).toEqual(['101 101 201 301', 'counts 1400', 'counts 400', 'counts 800']);
  expect(await lines()).toEqual(['101 101 201 301']);
});
