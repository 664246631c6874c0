import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';

import { LocalCluster, type LocalClusterOptions } from '../../../adapters/app/local-cluster.ts';
import { Client } from '../../../adapters/client/index.ts';
import { AccessFile, accessOfRole, newAccess } from '../../../adapters/transports/tls.ts';
import { bad } from '../../bad-input/fixtures/bad-tasks.js';
import { Runs } from '../../kit/runs.ts';

const folder = mkdtempSync(join(tmpdir(), 'yardmaster-local-keys-'));
const VARIABLES = ['YARDMASTER_HOME', 'YARDMASTER_ACCESS', 'YARDMASTER_TLS_CERT'];
const before = VARIABLES.map((name) => [name, process.env[name]] as const);
const runs = new Runs();
let homes = 0;
let home: string;

beforeEach(() => {
  home = join(folder, `home-${homes++}`);
  process.env['YARDMASTER_HOME'] = home;
});
afterEach(async () => {
  await runs.end('SIGKILL');
  for (const [name, value] of before) {
    if (value === undefined) Reflect.deleteProperty(process.env, name);
    else process.env[name] = value;
  }
});
afterAll(() => rmSync(folder, { recursive: true }));

const files = (): string[] => readdirSync(join(home, 'access')).sort();

async function started(options: LocalClusterOptions = {}): Promise<LocalCluster> {
  const cluster = await LocalCluster.start({ mode: 'processes', workers: 2, ...options });
  onTestFinished(() => cluster.close());
  return cluster;
}

/** Also moves data between the workers. */
async function computes(cluster: LocalCluster): Promise<void> {
  const client = await cluster.client();
  const echoes = client.map(bad.echo, [1, 2, 3]);
  const [scattered] = await client.scatter([5], { workers: ['worker-0'] });
  const sum = client.with({ workers: ['worker-1'] }).submit(bad.echo, [echoes, scattered]);
  expect(await sum.result()).toEqual([[1, 2, 3], 5]);
}

describe('a local cluster of processes', () => {
  it('has keys that processes of the same user find, and refuses those of others', async () => {
    const cluster = await started();
    expect(cluster.address).toMatch(/^tls:\/\/127\.0\.0\.1:/);
    await computes(cluster);
    const [name] = files();
    expect(name).toBe(`${new URL(cluster.address).port}.json`);
    expect(statSync(join(home, 'access', name!)).mode & 0o777).toBe(0o600);
    const own = await Client.connect(cluster.address);
    expect(await own.submit(bad.echo, 7).result()).toBe(7);
    await own.close();
    const addresses = [cluster.address, ...cluster.scheduler.cluster.workers.keys()];
    for (const address of addresses) {
      expect(address).toMatch(/^tls:/);
      const plain = Client.connect(address.replace('tls:', 'tcp:'), { timeoutMs: 3000 });
      await expect(plain).rejects.toMatchObject({
        code: expect.stringMatching(/ERR_PROTOCOL|ERR_CONNECT/) as string,
      });
    }
    process.env['YARDMASTER_HOME'] = join(folder, 'of-another-user');
    await expect(Client.connect(cluster.address)).rejects.toMatchObject({ code: 'ERR_ACCESS' });
    process.env['YARDMASTER_HOME'] = home;
    await cluster.close();
    expect(files()).toEqual([]);
  });

  it.runIf(existsSync('/proc/self/environ'))(
    'gives its workers no key by their command line or environment',
    async () => {
      const cluster = await started({ workers: 1 });
      const { keys } = new AccessFile(join(home, 'access', files()[0]!)).read();
      for (const what of ['cmdline', 'environ']) {
        const text = readFileSync(`/proc/${cluster.pids[0]!}/${what}`, 'utf8');
        for (const key of Object.values(keys)) expect(text).not.toContain(key);
      }
    },
  );

  it('has keys of its own where the environment names those of another cluster', async () => {
    const access = join(folder, 'client.json');
    new AccessFile(access).write(accessOfRole(newAccess(), 'client'));
    process.env['YARDMASTER_ACCESS'] = access;
    process.env['YARDMASTER_TLS_CERT'] = join(folder, 'of-another-cluster.pem');
    await computes(await started());
  });

  it('has keys where no home folder can be written, which its workers are given', async () => {
    const file = join(folder, 'file');
    writeFileSync(file, '');
    process.env['YARDMASTER_HOME'] = join(file, 'home');
    const cluster = await started();
    await computes(cluster);
    await expect(Client.connect(cluster.address)).rejects.toMatchObject({ code: 'ERR_ACCESS' });
  });

  it('deletes the keys of clusters that were killed', async () => {
    const lost = (pid: number, host: string): void => {
      const path = join(home, 'access', `${pid}.json`);
      new AccessFile(path).write({ ...newAccess(), owner: { pid, host } });
    };
    const gone = runs.start(process.execPath, ['-e', '0']);
    await gone.exit;
    lost(gone.child.pid!, hostname());
    mkdirSync(join(home, 'access', `${gone.child.pid!}.sockets`), { mode: 0o700 });
    lost(process.ppid, hostname());
    lost(1_000_001, 'another-machine');
    new AccessFile(join(home, 'access', 'lasting.json')).write(newAccess());
    const cluster = await started({ workers: 0 });
    const port = new URL(cluster.address).port;
    const left = ['1000001.json', 'lasting.json', `${process.ppid}.json`, `${port}.json`];
    expect(files()).toEqual([...left, `${port}.sockets`].sort());
  });

  it('is plain when the configuration names tcp as transport', async () => {
    const cluster = await started({ config: { scheduler: { transport: 'tcp' } } });
    expect(cluster.address).toMatch(/^tcp:/);
    await computes(cluster);
  });
});

it.each(['inline', 'threads', 'processes'] as const)(
  'a local cluster with TLS as its transport takes a free port, and its data ports have the key for data (%s)',
  async (mode) => {
    const cluster = await started({ mode, config: { scheduler: { transport: 'tls' } } });
    expect(cluster.address).toMatch(/^tls:\/\/127\.0\.0\.1:(?!8786$)/);
    await computes(cluster);
  },
);
