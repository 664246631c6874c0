/** The flags of `dask scheduler`, taken by `yardmaster scheduler --dask`. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, afterEach, describe, expect, test } from 'vitest';

import { SystemClock } from '../../../../adapters/clocks/index.ts';
import { Comm } from '../../../../adapters/dask/wire/comm.ts';
import { checkDaskFlags, listeningOf, statusOptionsOf } from '../../../../adapters/cli/flags.ts';
import { writePidFile } from '../../../../adapters/cli/with-client.ts';
import { Runs } from '../../../kit/runs.ts';
import { DaskBench } from '../peers.ts';
import { findDaskPython, skipReason } from '../pythons.ts';

const folder = mkdtempSync(join(tmpdir(), 'yardmaster-flags-'));
const runs = new Runs({ DASK_CONFIG: join(folder, 'none'), HOME: folder });
const configured = new Runs({
  HOME: folder,
  DASK_DISTRIBUTED__SCHEDULER__IDLE_TIMEOUT: '3s',
  DASK_DISTRIBUTED__SCHEDULER__BLOCKED_HANDLERS: "['identity']",
  DASK_DISTRIBUTED__SCHEDULER__HTTP__ROUTES: "['x']",
});
const withPolicies = new Runs({
  HOME: folder,
  DASK_DISTRIBUTED__SCHEDULER__ACTIVE_MEMORY_MANAGER__POLICIES:
    "[{'class': 'my_package.Pin', 'key': 'x'}, {'class': 'other.Spread'}]",
});
const clock = new SystemClock();
const python = findDaskPython();
const PORTS = ['--dask', '--port', '0', '--dask-port', '0', '--dashboard-address', ':0'];
const loopback = Object.entries(networkInterfaces()).find(([, addresses]) =>
  addresses?.some(({ address }) => address === '127.0.0.1'),
)?.[0];

afterEach(() => Promise.all([runs.end(), configured.end(), withPolicies.end()]));
afterAll(() => rmSync(folder, { recursive: true }));

async function ask(address: string, op: string): Promise<Record<string, unknown>> {
  const comm = await Comm.connect(address, { clock });
  comm.write({ op, reply: true });
  const answer = (await comm.read()) as Record<string, unknown>;
  await comm.close();
  return answer;
}

describe('yardmaster scheduler --dask', () => {
  test('writes the scheduler file and the file of its process id, and deletes them at the end', async () => {
    const files = { scheduler: join(folder, 'scheduler.json'), pid: join(folder, 'pid') };
    const flags = ['--scheduler-file', files.scheduler, '--pid-file', files.pid, '--no-show'];
    const run = runs.yardmaster('scheduler', ...PORTS, ...flags);
    const address = await run.firstLine();
    const identity = JSON.parse(readFileSync(files.scheduler, 'utf8')) as Record<string, unknown>;
    expect(identity).toMatchObject({ type: 'Scheduler', address, workers: {} });
    expect(readFileSync(files.pid, 'utf8')).toBe(`${run.child.pid}\n`);
    await run.end();
    expect([existsSync(files.scheduler), existsSync(files.pid)]).toEqual([false, false]);
  });

  test.skipIf(loopback === undefined)(
    'listens on a network interface, and announces its contact address to peers',
    async () => {
      const flags = ['--interface', loopback!, '--contact-address', 'cluster.example'];
      const run = runs.yardmaster('scheduler', ...PORTS, ...flags, '--no-dashboard');
      const contact = await run.firstLine();
      expect(contact).toMatch(/^tcp:\/\/cluster\.example:\d+$/);
      const address = contact.replace('cluster.example', '127.0.0.1');
      expect(await ask(address, 'identity')).toMatchObject({ address: contact, services: {} });
    },
  );

  test('closes by itself when it has been idle for the time of a flag', async () => {
    const run = runs.yardmaster('scheduler', ...PORTS, '--idle-timeout', '100 ms');
    expect(await run.exit).toBe(0);
  });

  test("takes Dask's configuration, and names once what it ignores", async () => {
    const run = configured.yardmaster('scheduler', ...PORTS, '--log-format', 'text');
    const answer = await ask(await run.firstLine(), 'identity');
    expect(answer).toMatchObject({ status: 'uncaught-error' });
    expect(await run.exit).toBe(0);
    expect(run.stderr.match(/distributed\.scheduler\.http\.routes/g)).toHaveLength(1);
  });

  test('warns of each policy of the memory manager that is a Python class, and starts', async () => {
    const run = withPolicies.yardmaster('scheduler', ...PORTS, '--log-format', 'text');
    expect(await run.firstLine()).toMatch(/^tcp:/);
    for (const name of ['my_package.Pin', 'other.Spread']) {
      const says = `the policy ${name} is a Python class and does not run`;
      await run.prints(says);
      expect(run.stderr.split(says)).toHaveLength(2);
    }
    await run.prints('docs/dask.md#dasks-own-configuration');
    expect(run.stderr).not.toContain('have no effect here');
  });

  test('loads a JavaScript module first, relative to the current folder', async () => {
    const module = join(folder, 'first.mjs');
    writeFileSync(
      module,
      'export const setup = () => { process.stderr.write("loaded first\\n"); };',
    );
    const run = runs.yardmaster('scheduler', ...PORTS, '--preload', module);
    await run.prints('loaded first');
  });

  test.skipIf(python === undefined)(
    `runs dask_setup of a Python module beside the scheduler${skipReason(python)}`,
    async () => {
      const [module, file] = [join(folder, 'first.py'), join(folder, 'noted')];
      writeFileSync(
        module,
        `def note(text):
    with open(${JSON.stringify(file)}, "a") as f:
        f.write(text)

async def dask_setup(scheduler):
    import asyncio
    await asyncio.sleep(11)
    note(scheduler.address + " ")

def dask_teardown(scheduler):
    note("over")
`,
      );
      const flags = ['--preload', module, '--python', python!.command];
      const run = runs.yardmaster('scheduler', ...PORTS, ...flags);
      const address = await run.firstLine();
      // Longer than any other plugin may take: modules that load models do.
      expect(run.stderr).toMatch(/Python still preloads .*\.py after 10 s; the scheduler waits/);
      expect(readFileSync(file, 'utf8')).toBe(`${address} `);
      await run.end();
      expect(readFileSync(file, 'utf8')).toBe(`${address} over`);
      const missing = ['--preload', 'no_such_module', '--python', python!.command];
      const failing = runs.yardmaster('scheduler', ...PORTS, ...missing);
      expect(await failing.exit).toBe(1);
      expect(failing.stderr).toContain('no_such_module');
    },
  );

  test('refuses what it cannot do, with the reason', async () => {
    const cases = [
      [['--dask', '--jupyter'], 'is not a Python process'],
      [['--scheduler-file', 'x'], '--scheduler-file is a flag of `dask scheduler`; add --dask'],
      [['--dask', '--idle-timeout', 'soon'], 'It must be a time'],
      [['--dask', '--scheduler-file', '/no/f'], 'the scheduler file /no/f cannot be written'],
    ] as const;
    await Promise.all(
      cases.map(async ([flags, message]) => {
        const ports = flags[0] === '--dask' ? ['--dask-port', '0', '--port', '0'] : ['--port', '0'];
        const run = runs.yardmaster('scheduler', ...flags, ...ports);
        expect([await run.exit, flags]).toEqual([1, flags]);
        expect(run.stderr).toContain(message);
        expect(run.stdout).toBe('');
      }),
    );
  });
});

describe('flags that name addresses', () => {
  test.each([
    [{ host: 'tcp://0.0.0.0:9000' }, { host: '0.0.0.0', port: 9000, protocol: 'tcp' }],
    [{ host: 'tls://' }, { protocol: 'tls' }],
    [
      { host: 'node-1', port: 5 },
      { host: 'node-1', port: 5 },
    ],
    [{ host: '::1' }, { host: '::1' }],
    [{ host: '[::1]:80' }, { host: '::1', port: 80 }],
    [{ protocol: 'tcp://' }, { protocol: 'tcp' }],
  ])('%o means %o', (flags, listening) => {
    expect(listeningOf(flags)).toEqual(listening);
  });

  test.each([
    ['8787', { statusPort: 8787 }],
    [':0', { statusPort: 0 }],
    ['0.0.0.0:80', { statusHost: '0.0.0.0', statusPort: 80 }],
    ['http://h:1/', { statusHost: 'h', statusPort: 1 }],
    ['node-1', { statusHost: 'node-1' }],
  ])('--dashboard-address %s', (dashboardAddress, options) => {
    expect(statusOptionsOf({ dashboardAddress })).toEqual(options);
  });

  test('what cannot be meant is refused', () => {
    expect(() => listeningOf({ host: 'a:1', port: 2 })).toThrow('leave one out');
    expect(() => listeningOf({ host: '::1', interface: 'lo' })).toThrow('leave one out');
    expect(() => listeningOf({ interface: 'eth99' })).toThrow('no network interface "eth99"');
    expect(() => listeningOf({ protocol: 'ucx' })).toThrow('it can be tcp or tls');
    expect(() => statusOptionsOf({ dashboardAddress: 'a:b' })).toThrow('is not of the form');
    expect(() => checkDaskFlags({ protocol: 'tcp' }, false)).toThrow('add --dask');
    expect(() => checkDaskFlags({ daskPort: 1 }, false)).toThrow(
      '--dask-port is a flag for Dask; add --dask',
    );
    expect(() => checkDaskFlags({ python: 'python3' }, false)).toThrow('add --dask');
    expect(() => checkDaskFlags({ schedulerPython: false }, false)).toThrow('add --dask');
    expect(checkDaskFlags({ schedulerPython: true }, false)).toEqual([]);
    expect(statusOptionsOf({ dashboard: 9000, dashboardAddress: '127.0.0.2:80' })).toEqual({
      statusHost: '127.0.0.2',
      statusPort: 9000,
    });
    expect(() => writePidFile('/no/such/f')).toThrow('/no/such/f cannot be written');
  });
});

describe('heartbeats', () => {
  test('the more workers there are, the more rarely each reports', async () => {
    const bench = await DaskBench.start();
    try {
      const intervals: unknown[] = [];
      for (let index = 0; index < 12; index++) {
        const { first } = await bench.worker(10_000 + index);
        intervals.push((first as Record<string, unknown>)['heartbeat-interval']);
      }
      expect([intervals[0], intervals.at(-1)]).toEqual([0.5, 1]);
    } finally {
      await bench.close();
    }
  });

  test('the more clients there are, the more rarely each reports', async () => {
    const bench = await DaskBench.start();
    try {
      for (let index = 0; index < 11; index++) await bench.client(`Client-${index}`, '2026.7.1');
      const last = await bench.client('Client-last', '2026.7.1');
      last.comm.send({ op: 'heartbeat-client' });
      const answer = await last.next('adjust-heartbeat-interval');
      expect(answer).toMatchObject({ interval: 10 });
    } finally {
      await bench.close();
    }
  });
});
