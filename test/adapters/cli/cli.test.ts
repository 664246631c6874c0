import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { Client } from '../../../adapters/client/index.ts';
import { SocketProxy } from '../../../adapters/testing/faulty-transport.ts';
import { useLive } from '../../kit/live.ts';
import { processId, square } from './fixtures/tasks.js';

const { folder, runs } = useLive('cli');

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

describe('a process whose output nobody reads any more', () => {
  test('serves on, and ends in good order when it is asked to', async () => {
    const flags = ['--port', '0', '--log-level', 'debug', '--no-dashboard'];
    const run = runs.yardmaster('scheduler', ...flags);
    const [address = ''] = await run.addresses(1);
    run.child.stdout!.destroy();
    run.child.stderr!.destroy();
    for (let count = 0; count < 3; count++) {
      const client = await Client.connect(address);
      expect(await client.command('task-counts')).toBeDefined();
      await client.close();
    }
    run.child.kill('SIGTERM');
    expect(await run.exit).toBe(0);
  });

  test('ends in good order when it has shown what it was asked', async () => {
    const run = runs.yardmaster('scheduler', '--port', '0', '--no-dashboard');
    const [address = ''] = await run.addresses(1);
    const top = runs.yardmaster('top', '--scheduler', address);
    top.child.stdout!.destroy();
    expect([await top.exit, top.stderr]).toEqual([0, '']);
  });
});

describe('the command line', () => {
  test('explains itself with examples', async () => {
    const run = runs.yardmaster('worker', '--help');
    expect(await run.exit).toBe(0);
    expect(run.stdout).toMatch(/Examples:\n {2}\$ yardmaster/);
  });

  test('refuses what it does not understand', async () => {
    const cases = [
      [['schedule'], "unknown command 'schedule'"],
      [
        ['worker', 'tcp://127.0.0.1:1', '--threads', '0'],
        '--threads must be a whole number of at least 1 (got 0)',
      ],
      [['worker', 'tcp://127.0.0.1:1', '--resources', 'GPU'], 'not of the form name=value'],
      [['worker', 'tcp://127.0.0.1:1', '--memory-limit', 'lots'], '--memory-limit must be a size'],
      [['worker', 'tcp://127.0.0.1:1', '--memory', 'pause'], 'not of the form name=value'],
      [
        ['worker', 'tcp://127.0.0.1:1', '--memory', 'pause=2'],
        '--memory pause must be a number from 0 to 1',
      ],
      [['worker', 'nowhere'], 'ERR_CONNECT: "nowhere" is not the address of a scheduler'],
      [['worker', 'tcp://127.0.0.1:1'], 'ERR_CONNECT: '],
      [['demo', '--path', join(folder, 'empty')], 'ERR_CONFIG: there are no text files'],
    ] as const;
    await Promise.all(
      cases.map(async ([args, message]) => {
        const run = await runs.command(...args);
        expect([run.code, args]).toEqual([1, args]);
        expect(run.err).toContain(message);
        expect(run.err).not.toMatch(/^ {4}at /m);
        expect(run.out).toBe('');
      }),
    );
  });

  test('shows the stack of an error when asked to', async () => {
    const run = runs.yardmaster('worker', 'nowhere', '--verbose');
    expect(await run.exit).toBe(1);
    expect(run.stderr).toMatch(/^ {4}at /m);
  });
});

describe('check-config', () => {
  test('prints what a configuration would start', async () => {
    const scheduler = { workerTtl: '1 minute', workStealing: { start: false } };
    const path = file('good.json', JSON.stringify({ scheduler }));
    const run = await runs.command('check-config', path);
    expect(run.code).toBe(0);
    expect(run.out).toContain('good.json is fine');
    expect(run.out).toContain('amm');
    expect(run.out).toMatch(
      /- work-stealing .*\n +start: false, so it waits for work-stealing.start\n/,
    );
    expect(run.out.match(/start: false/g)).toHaveLength(1);
  });

  test('names every problem', async () => {
    const path = file('bad.yaml', 'scheduler:\n  allowedFailures: -1\n  workerTtll: 3\n');
    const run = await runs.command('check-config', path);
    expect(run.code).toBe(1);
    expect(run.err).toContain('ERR_CONFIG');
    expect(run.err).toContain('allowedFailures');
    expect(run.err).toContain('workerTtll');
    expect(run.out).toBe('');
  });
});

describe('scheduler and worker', () => {
  test('compute for a client, and end in good order', async () => {
    const scheduler = runs.yardmaster('scheduler', '--port', '0', '--no-dashboard');
    const address = await scheduler.firstLine();
    expect(address).toMatch(/^tls:\/\/127\.0\.0\.1:\d+$/);
    const worker = runs.yardmaster(
      ...['worker', address, '--name', 'w1', '--threads', '1', '--resources', 'GPU=2'],
    );
    expect(await worker.firstLine()).toMatch(/^tls:\/\/127\.0\.0\.1:\d+$/);

    const client = await Client.connect(address);
    expect(await client.submit(square, 12).result()).toBe(144);
    const { workers } = await client.identity();
    expect(workers).toMatchObject([{ name: 'w1', threadCount: 1, resources: { GPU: 2 } }]);
    const twice = runs.yardmaster('scheduler', '--port', address.split(':')[2]!);
    expect(await twice.exit).toBe(1);
    expect(twice.stderr).toContain('ERR_CONNECT');
    await client.close();

    worker.child.kill('SIGTERM');
    expect(await worker.exit).toBe(0);
    scheduler.child.kill('SIGINT');
    expect(await scheduler.exit).toBe(130);
    expect(scheduler.stdout).toBe(`${address}\n`);
  });

  test('end when the other is gone: the worker says so', async () => {
    const scheduler = runs.yardmaster('scheduler', '--port', '0', '--no-dashboard');
    const address = await scheduler.firstLine();
    const [told, abandoned] = [
      runs.yardmaster('worker', address, '-t', '1', '--no-nanny'),
      runs.yardmaster('worker', address, '-t', '1'),
    ];
    await Promise.all([told.firstLine(), abandoned.firstLine()]);
    told.child.kill('SIGINT');
    expect(await told.exit).toBe(130);
    scheduler.child.kill('SIGKILL');
    expect(await abandoned.exit).toBe(1);
    expect(abandoned.stderr).toContain('ERR_CLOSED: the scheduler');
  });

  test('keep what is known: a worker that is asked to end gives its results away first', async () => {
    const scheduler = runs.yardmaster('scheduler', '--port', '0', '--no-dashboard');
    const address = await scheduler.firstLine();
    const [leaver, stayer] = [
      runs.yardmaster('worker', address, '-t', '1', '-n', 'leaver'),
      runs.yardmaster('worker', address, '-t', '1', '-n', 'stayer', '--no-nanny'),
    ];
    await Promise.all([leaver.firstLine(), stayer.firstLine()]);
    const client = await Client.connect(address);
    const options = { workers: ['leaver'], allowOtherWorkers: true };
    const future = client.with(options).submit(processId);
    await future.settled();
    leaver.child.kill('SIGTERM');
    expect(await leaver.exit).toBe(0);
    // Computed again it would be the id of the other process.
    expect(await future.result()).not.toBe(stayer.child.pid);
    expect((await client.identity()).workers).toMatchObject([{ name: 'stayer' }]);
    await client.close();
  });

  test('keep what is known when the signal reaches worker and nanny, as from systemd or SLURM', async () => {
    const scheduler = runs.yardmaster('scheduler', '--port', '0', '--no-dashboard');
    const address = await scheduler.firstLine();
    const leaver = runs.group('worker', address, '-t', '1', '-n', 'leaver');
    const stayer = runs.yardmaster('worker', address, '-t', '1', '-n', 'stayer', '--no-nanny');
    await Promise.all([leaver.firstLine(), stayer.firstLine()]);
    const client = await Client.connect(address);
    const options = { workers: ['leaver'], allowOtherWorkers: true };
    const future = client.with(options).submit(processId);
    await future.settled();
    process.kill(-leaver.child.pid!, 'SIGTERM');
    expect(await leaver.exit).toBe(0);
    expect(await future.result()).not.toBe(stayer.child.pid);
    await client.close();
  });

  test('are whole again when the process of the worker is killed, and end without a rest', async () => {
    const scheduler = runs.yardmaster('scheduler', '--port', '0', '--no-dashboard');
    const address = await scheduler.firstLine();
    const flags = ['-t', '1', '-n', 'w1', '--log-format', 'text'];
    const worker = runs.yardmaster('worker', address, ...flags);
    const line = await worker.firstLine();
    const client = await Client.connect(address);
    const pid = await client.submit(processId).result();
    expect(pid).not.toBe(worker.child.pid);
    process.kill(pid, 'SIGKILL');
    const again = await client.with({ pure: false }).submit(processId).result();
    expect([pid, worker.child.pid]).not.toContain(again);
    expect(worker.stderr).toMatch(/nanny of w1 warning: .*was killed by SIGKILL/);
    expect(worker.stdout).toBe(`${line}\n`);
    await client.close();
    // Its nanny is gone.
    worker.child.kill('SIGKILL');
    await worker.exit;
    while (isAlive(again)) await new Promise((resolve) => setTimeout(resolve, 10));
  });

  test('find together again: a nanny replaces a worker that the scheduler has dropped', async () => {
    const scheduler = runs.yardmaster('scheduler', '--port', '0', '--insecure');
    const port = Number(new URL(await scheduler.firstLine()).port);
    const at = { host: '127.0.0.1', port: 0 };
    const proxy = await SocketProxy.start({ host: '127.0.0.1', port }, at);
    const address = `tcp://127.0.0.1:${proxy.port}`;
    await runs.yardmaster('worker', address, '-t', '1', '-n', 'w1').firstLine();
    const client = await Client.connect(await scheduler.firstLine());
    const before = await client.submit(processId).result();
    proxy.cut();
    const after = await client.with({ pure: false }).submit(processId).result();
    expect(after).not.toBe(before);
    expect((await client.identity()).workers).toMatchObject([{ name: 'w1', pid: after }]);
    await client.close();
    await proxy.close();
  });

  test('end together when the scheduler is asked to', async () => {
    const scheduler = runs.yardmaster('scheduler', '--port', '0', '--no-dashboard');
    const worker = runs.yardmaster('worker', await scheduler.firstLine(), '-t', '1');
    await worker.firstLine();
    scheduler.child.kill('SIGTERM');
    expect([await scheduler.exit, await worker.exit]).toEqual([0, 0]);
  });
});

describe('demo', () => {
  test('finds near-duplicates in a folder on worker processes, and checks itself', async () => {
    const pages = mkdtempSync(join(folder, 'texts-'));
    for (let index = 0; index < 120; index++) {
      // Each third text is a copy of the first one.
      const start = index % 3 === 0 ? 0 : index;
      const words = Array.from({ length: 300 }, (_, at) => `word${(start + at * at) % 997}`);
      writeFileSync(join(pages, `page${String(index).padStart(3, '0')}.txt`), words.join(' '));
    }
    const policies =
      'policies: { queuing: family, workerSelection: balanced, fairness: weighted-fair-share }';
    const config = file('policies.yaml', `scheduler:\n  ${policies}\n`);
    const [report, record] = [join(folder, 'demo.html'), join(folder, 'demo.ylog')];
    const written = ['--report', report, '--record', record];
    const asked = ['--path', pages, '--config', config];
    const run = runs.yardmaster('demo', ...asked, ...written);
    expect(await run.exit).toBe(0);
    expect(run.stdout).toMatch(/^Dashboard {2}http:\/\/127\.0\.0\.1:\d+\/status(\?token=\S+)?$/m);
    expect(run.stdout).toMatch(/^Kill {7}worker-\d, process \d+, after \d+ tasks/m);
    expect(run.stdout).toMatch(/^Why {8}\S.+$/m);
    expect(run.stdout).toMatch(/\nCheck {6}passed: .*\nTime {7}\d worker/);
    expect(readFileSync(report, 'utf8')).toContain('The critical path has');
    const replay = await runs.command('replay', record);
    expect(replay.code).toBe(0);
    expect(replay.out).toMatch(/^identical: /m);
    expect(run.stdout).toMatch(/^ +40 texts, at least 100 % alike\n +page000.txt\n +page117.txt$/m);
    expect(run.stdout).toMatch(/\d+ tasks in [\d.]+ s: \d+ tasks per second/);
    expect(run.stderr).toMatch(/(\d+) of \1 tasks done/);
  });

  test('comes to the same result when workers are killed meanwhile', async () => {
    const text = Array.from({ length: 300 }, (_, at) => `term${(at * 7) % 89}`).join(' ');
    const pages = mkdtempSync(join(folder, 'pages-'));
    for (let index = 0; index < 300; index++) {
      writeFileSync(join(pages, `p${index}.txt`), `${text} anchor${index % 5}`);
    }
    const run = runs.yardmaster('demo', '--path', pages, '--chaos', '3', '--seed', '7');
    expect([await run.exit, run.stderr]).toEqual([0, expect.any(String)]);
    expect(run.stdout.match(/killed worker-\d, process \d+, after \d+ tasks/g)).toHaveLength(3);
    expect(run.stdout).toContain('3 of 3 kills');
    expect(run.stdout).toContain('Check      passed');
  });

  test('stops its workers when it is interrupted', async () => {
    const run = runs.yardmaster('demo', '--path', 'node_modules');
    while (!run.stdout.includes('Graph')) await run.output();
    const pids = /worker processes (\d+), (\d+)/.exec(run.stdout)!.slice(1).map(Number);
    run.child.kill('SIGINT');
    expect(await run.exit).toBe(130);
    expect(run.stdout).not.toContain('Check');
    for (const pid of pids) expect(() => process.kill(pid, 0)).toThrow('ESRCH');
  });
});
