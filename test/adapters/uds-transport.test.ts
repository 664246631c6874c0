import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { SystemClock, transportConformance } from '../../adapters/testing/index.ts';
import uds from './uds-transport.ts';

const folder = mkdtempSync(join(tmpdir(), 'yardmaster-uds-'));
afterAll(() => rmSync(folder, { recursive: true }));

transportConformance(
  'unix domain sockets',
  () => ({
    transport: uds.create({ clock: new SystemClock() }, { folder }),
    listenAddress: 'uds://node:0',
    vacantAddress: 'uds://vacant:1',
  }),
  { describe, it },
);

it('the transport of docs/transport-example.md is the one that is tested here', () => {
  const read = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8');
  const code = read('./uds-transport.ts').replace('../../adapters/app/index.ts', 'yardmaster');
  expect(read('../../docs/transport-example.md')).toContain(`\`\`\`ts\n${code}\`\`\``);
});
