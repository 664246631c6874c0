/** Which addresses `yardmaster scheduler --dask` opens. */
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';

import { Runs } from '../../../kit/runs.ts';
import { type Certificates, hasOpenssl, makeCertificates } from '../certificates.ts';

const folder = mkdtempSync(join(tmpdir(), 'yardmaster-listening-'));
const hasProc = existsSync('/proc/self/net/tcp');
const runs = new Runs();

afterEach(() => runs.end());
afterAll(() => rmSync(folder, { recursive: true }));

/** Ports on which a process listens. */
function portsOf(pid: number): number[] {
  const inodes = new Set(
    readdirSync(`/proc/${pid}/fd`).map((fd) => {
      try {
        return /socket:\[(\d+)\]/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1];
      } catch {
        return undefined; // Closed meanwhile.
      }
    }),
  );
  return ['tcp', 'tcp6'].flatMap((table) =>
    readFileSync(`/proc/${pid}/net/${table}`, 'utf8')
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      .filter((row) => row[3] === '0A' && inodes.has(row[9]))
      .map((row) => Number.parseInt(row[1]!.split(':')[1]!, 16)),
  );
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

const portIn = (address: string): number => Number(address.split(':').at(-1));

describe.skipIf(!hasOpenssl || !hasProc)('a scheduler whose address for Dask is encrypted', () => {
  let files: Certificates;
  let flags: string[];
  beforeAll(() => {
    files = makeCertificates(folder, 'ours');
    flags = ['--tls-ca-file', files.ca, '--tls-cert', files.cert, '--tls-key', files.key];
  });

  test.each([
    ['free ports', ['--port', '0', '--dask-port', '0']],
    ['one free port', ['--port', '0']],
    ['a free port for Dask', ['--dask-port', '0']],
  ])('listens there and nowhere else, with %s', async (_, ports) => {
    const run = runs.yardmaster('scheduler', '--dask', ...ports, ...flags);
    const address = await run.firstLine();
    expect(address).toMatch(/^tls:/);
    expect(portsOf(run.child.pid!)).toEqual([portIn(address)]);
    expect(run.stdout.trim().split('\n')).toEqual([address]);
  });

  test('opens nothing plain when its configuration names the plugin', async () => {
    const config = join(folder, 'tls.json');
    const tls = { caFile: files.ca, cert: files.cert, key: files.key };
    const dask = { use: 'dask', options: { address: 'tls://127.0.0.1:0', tls } };
    writeFileSync(config, JSON.stringify({ scheduler: { plugins: [dask] } }));
    const run = runs.yardmaster('scheduler', '--config', config, '--port', '0');
    const address = await run.firstLine();
    expect(portsOf(run.child.pid!)).toEqual([portIn(address)]);
  });

  test('does not start when the plugin of its configuration listens without encryption', async () => {
    const config = join(folder, 'plain.json');
    const dask = { use: 'dask', options: { address: 'tcp://127.0.0.1:0' } };
    writeFileSync(config, JSON.stringify({ scheduler: { plugins: [dask] } }));
    const run = runs.yardmaster('scheduler', '--config', config, '--dask', ...flags);
    expect(await run.exit).toBe(1);
    expect(run.stderr).toContain('ERR_CONFIG');
  });

  test('is not started by certificates alone', async () => {
    const run = runs.yardmaster('scheduler', '--port', '0', ...flags);
    expect(await run.exit).toBe(1);
    expect(run.stderr).toContain('needs OU scheduler');
  });

  test('is found by the configuration of Dask, too', async () => {
    const config = join(folder, 'dask');
    writeFileSync(
      `${config}.yaml`,
      `distributed: {comm: {require-encryption: true, tls: {ca-file: ${files.ca}, scheduler: {cert: ${files.cert}, key: ${files.key}}}}}`,
    );
    const wired = new Runs({ DASK_CONFIG: `${config}.yaml` });
    try {
      const run = wired.yardmaster('scheduler', '--dask', '--port', '0');
      const address = await run.firstLine();
      expect(address).toMatch(/^tls:/);
      expect(portsOf(run.child.pid!)).toEqual([portIn(address)]);
    } finally {
      await wired.end();
    }
  });
});

describe('the port of a scheduler for Dask', () => {
  test('is the one that --port names, as with dask scheduler', async () => {
    const port = await freePort();
    const run = runs.yardmaster('scheduler', '--dask', '--port', String(port));
    const [dask, own] = await run.addresses(2);
    expect(portIn(dask!)).toBe(port);
    expect(portIn(own!)).not.toBe(port);
  });

  test('is the one that --dask-port names, and --port then names the other one', async () => {
    const [daskPort, port] = [await freePort(), await freePort()];
    const flags = ['--port', String(port), '--dask-port', String(daskPort)];
    const [dask, own] = await runs.yardmaster('scheduler', '--dask', ...flags).addresses(2);
    expect([portIn(dask!), portIn(own!)]).toEqual([daskPort, port]);
  });
});
