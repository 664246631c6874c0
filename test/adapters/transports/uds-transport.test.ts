import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer } from 'node:net';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { SocketProxy, SystemClock, transportConformance } from '../../../adapters/testing/index.ts';
import uds from './uds-transport.ts';

const folder = mkdtempSync(join(tmpdir(), 'yardmaster-uds-'));
afterAll(() => rmSync(folder, { recursive: true }));

const clock = new SystemClock();
const options = { folder, closeTimeoutMs: 200 };
const pathOf = (address: string): string => {
  const [, name, number] = /^uds:\/\/(\w+):(\d+)$/.exec(address) ?? [];
  return join(folder, `${name ?? ''}-${number ?? ''}.sock`);
};
let proxies = 0;
const silent = createServer(() => undefined);
beforeAll(() => new Promise<void>((resolve) => silent.listen(pathOf('uds://silent:1'), resolve)));
afterAll(() => void silent.close());

transportConformance(
  'unix domain sockets',
  () => ({
    transport: uds.create({ clock }, options),
    listenAddress: 'uds://node:0',
    vacantAddress: 'uds://vacant:1',
    silentAddress: 'uds://silent:1',
    small: {
      transport: uds.create({ clock }, { ...options, frameBytesMax: 4096 }),
      frameBytesMax: 4096,
      isReachable: true,
    },
    proxy: async (target) => {
      const address = `uds://proxy:${++proxies}`;
      const proxy = await SocketProxy.start({ path: pathOf(target) }, { path: pathOf(address) });
      return Object.assign(proxy, { address });
    },
  }),
  { describe, it },
);
