/** The commands that look at a running cluster and operate it, against a real one. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Client, type Future } from '../../../adapters/client/index.ts';
import { type Ended, Runs } from '../../kit/runs.ts';
import { square } from './fixtures/tasks.js';

const folder = mkdtempSync(join(tmpdir(), 'yardmaster-operations-'));
const runs = new Runs();
let address: string;
let client: Client;
let held: readonly Future<number>[];
let failed: Future<number>;

beforeAll(async () => {
  const config = join(folder, 'cluster.yaml');
  writeFileSync(config, 'scheduler: { policies: { queuing: { use: family } } }\n');
  const scheduler = runs.yardmaster('scheduler', '--port', '0', '--config', config);
  address = await scheduler.firstLine();
  const workers = ['ann', 'bob', 'cid'].map((name) =>
    runs.yardmaster('worker', address, '-t', '1', '-n', name, '--no-nanny'),
  );
  await Promise.all(workers.map((worker) => worker.firstLine()));
  client = await Client.connect(address);
  held = client.map(square, [1, 2, 3]);
  await Promise.all(held.map((future) => future.settled()));
  failed = client.with({ workers: ['nowhere'] }).submit(square, 99);
});

afterAll(async () => {
  await client.close();
  await runs.end('SIGKILL');
  rmSync(folder, { recursive: true });
});

const cli = (...args: string[]): Promise<Ended> => runs.command(...args, '-s', address);

async function json(...args: string[]): Promise<unknown> {
  const { code, out, err } = await cli(...args, '--json');
  expect([code, err]).toEqual([0, '']);
  return JSON.parse(out);
}

describe('yardmaster workers', () => {
  test('lists the workers with what they do, also as JSON', async () => {
    const [{ code, out }, workers] = await Promise.all([cli('workers'), json('workers')]);
    expect(code).toBe(0);
    expect(out).toMatch(/^name +address +status +threads +tasks +results +stored +memory\n/);
    expect(out).toMatch(/\nann +tls:\S+ +running +1 +0 +\d+ +\d+ B +[\d.]+ MiB\n/);
    const names = (workers as { name: string }[]).map(({ name }) => name);
    expect(names.sort()).toEqual(['ann', 'bob', 'cid']);
  });
});

describe('yardmaster tasks', () => {
  test('counts by prefix and state, also as JSON', async () => {
    const [{ out }, counts] = await Promise.all([cli('tasks'), json('tasks')]);
    expect(out).toMatch(/^prefix +waiting +no-worker .*\nsquare +0 +1 +0 +0 +3 /);
    expect(counts).toEqual([{ prefix: 'square', states: { 'no-worker': 1, memory: 3 } }]);
  });

  test('lists those in a state, and those that are named', async () => {
    const key = held[0]!.key;
    const [stored, some, unknown] = await Promise.all([
      json('tasks', '--state', 'memory', '--limit', '2'),
      cli('tasks', '--state', 'no-worker'),
      cli('tasks', key, 'never-there'),
    ]);
    expect(stored).toHaveLength(2);
    expect(some.out).toMatch(new RegExp(`^key +state +worker +stored\n${failed.key} +no-worker`));
    expect(unknown.code).toBe(1);
    expect(unknown.out).toContain(key);
    expect(unknown.err).toBe('the scheduler does not know never-there\n');
  });

  test('names the states when there is no such', async () => {
    const { code, err } = await cli('tasks', '--state', 'procesing');
    expect(code).toBe(1);
    expect(err).toContain('(got "procesing"); did you mean "processing"?');
  });
});

test('tasks are chosen by their keys, or by what they have in common', async () => {
  const { code, err } = await cli('tasks', failed.key, '--state', 'erred');
  expect([code, err]).toEqual([1, expect.stringContaining('by their keys, or by --state')]);
});

describe('yardmaster top', () => {
  test.each(['inf', '60d', '0'])('does not look without a pause: --interval %s', async (pause) => {
    const { code, err } = await cli('top', '--interval', pause);
    expect([code, err]).toEqual([1, expect.stringContaining('It must be a time')]);
  });

  test('looks once where there is no terminal', async () => {
    const { out, code } = await cli('top');
    expect(code).toBe(0);
    expect(out).toMatch(/^tls:.*: 3 workers, 3 threads$/m);
    expect(out).toMatch(/^square +1 +0 +3 +0 +3 *$/m);
    expect(out).toContain(`No worker takes 1 task, such as ${failed.key}: `);
  });
});

describe('yardmaster why', () => {
  test('without a key records decisions all the same', async () => {
    expect((await cli('why', '--record', '5')).code).toBe(0);
    expect(await json('why', failed.key)).toMatchObject({ isRecording: true });
    expect((await cli('why', failed.key, '--record', '0')).out).toContain('not being recorded');
  });

  test('without a key says why work is slow, also as JSON', async () => {
    const [{ code, out }, found] = await Promise.all([cli('why'), json('why')]);
    expect(code).toBe(0);
    expect(out).toContain('\n1. Tasks were kept from idle threads (');
    expect(out).toContain('square by a restriction to certain workers for ');
    expect(found).toMatchObject({ findings: [{ rule: 'restrictions' }] });
  });
});

describe('yardmaster amm', () => {
  test('stops, starts, and runs one round', async () => {
    expect((await cli('amm', 'stop')).out).toMatch(
      /^stopped, interval 2000 ms, measure optimistic/,
    );
    expect(await json('amm')).toMatchObject({ running: false });
    expect(await json('amm', 'run')).toMatchObject({ accepted: 0, failures: [] });
    expect((await cli('amm', 'start')).out).toMatch(/^running.*\n(.*\n)*- reduce-replicas/);
  });

  test('shows why suggestions of the last round were refused, and which policies failed', async () => {
    const module = `export class Moody { *run() { yield ['replicate', undefined]; throw new Error('no mood'); } }`;
    writeFileSync(join(folder, 'moody.mjs'), module);
    const config = join(folder, 'moody.yaml');
    const policies = '[{ use: ./moody.mjs#Moody }]';
    writeFileSync(
      config,
      `scheduler: { activeMemoryManager: { start: false, policies: ${policies} } }\n`,
    );
    const scheduler = runs.yardmaster('scheduler', '--port', '0', '--config', config);
    const itsAddress = await scheduler.firstLine();
    const run = async (...args: string[]): Promise<string> =>
      (await runs.command('amm', ...args, '-s', itsAddress)).out;
    expect(await run()).not.toContain('last round');
    expect(await run('run')).toContain('Moody failed');
    const text = await run();
    expect(text).toMatch(/\nlast round: accepted 0 of 1 suggestion, 0 copies under way\n/);
    expect(text).toMatch(/\nrefused 1: unknown-task \(such as Moody: replicate is refused: /);
    expect(text).toMatch(/\nMoody failed: .*no mood/);
  });

  test('is set, and policies are added and removed', async () => {
    const set = await cli('amm', 'set', '--interval', '5s', '--measure', 'managed');
    expect(set.out).toMatch(/^running, interval 5000 ms, measure managed\n/);
    expect((await cli('amm', 'add', 'balance-memory')).out).toContain('\n- balance-memory');
    expect(await json('amm', 'remove', 'balance-memory')).toMatchObject({
      policies: [{ name: 'keep-replicas' }, { name: 'reduce-replicas' }],
    });
    const [unknown, file] = await Promise.all([
      cli('amm', 'remove', 'balance-memory'),
      cli('amm', 'add', './mine.js'),
    ]);
    expect([unknown.code, file.code]).toEqual([1, 1]);
    expect([unknown.err, file.err]).toEqual([
      expect.stringMatching(/^ERR_/),
      expect.stringMatching(/^ERR_PLUGIN_LOAD/),
    ]);
  });
});

describe('yardmaster policy', () => {
  test('lists, replaces, and restores what the configuration says', async () => {
    expect(await json('policy', 'list')).toMatchObject({ queuing: 'family' });
    const options = ['--options', '{"workerSaturation": 2}'];
    const replaced = await cli('policy', 'replace', 'queuing', 'root-ish', ...options);
    expect(replaced.out).toMatch(/^slot +policy\n(.*\n)*queuing +root-ish\n/);
    expect(await json('policy', 'restore', 'queuing')).toMatchObject({ queuing: 'family' });
    await client.policies.replace('ordering', 'fifo');
    await client.policies.restore('ordering');
    expect(await client.policies.current()).toMatchObject({ ordering: 'depth-first' });
  });

  test('says what is wrong with a slot, a policy, or its options', async () => {
    const [slot, policy, options] = await Promise.all([
      cli('policy', 'restore', 'queueing'),
      cli('policy', 'replace', 'queuing', 'rootish'),
      cli('policy', 'replace', 'queuing', 'root-ish', '--options', '3'),
    ]);
    expect(slot.err).toContain(
      'ERR_SLOT: there is no policy slot "queueing"; did you mean "queuing"?',
    );
    expect(policy.err).toContain('did you mean "root-ish"?');
    expect(options.err).toContain('It must be an object as JSON');
    expect([slot.code, policy.code, options.code]).toEqual([1, 1, 1]);
  });
});

describe('yardmaster retire', () => {
  test('demands which workers, and lists those that it cannot retire', async () => {
    const [none, unknown] = await Promise.all([cli('retire'), cli('retire', 'nobody')]);
    expect(none.code).toBe(1);
    expect(none.err).toContain('ERR_CONFIG: say which workers to retire');
    expect([unknown.code, unknown.out]).toEqual([1, 'kept nobody: unknown\n']);
  });

  test('retires workers by name and by number, and keeps their results', async () => {
    const named = await cli('retire', 'ann');
    expect([named.code, named.err]).toEqual([0, '']);
    expect(named.out).toMatch(/^retired ann \(tls:\S+\)\n$/);
    expect(await json('retire', '--count', '1')).toMatchObject({ retired: [{}], kept: [] });
    expect((await client.identity()).workers).toHaveLength(1);
    expect(await client.gather(held)).toEqual([1, 4, 9]);
  });
});

test('a scheduler that is not there is an error that names it', async () => {
  const run = await runs.command('workers', '-s', 'tcp://127.0.0.1:1');
  expect(run.code).toBe(1);
  expect(run.err).toMatch(/^ERR_CONNECT: .*127\.0\.0\.1:1/);
});

test('an address may lack its scheme', async () => {
  const { code, out } = await runs.command('workers', '-s', address.replace('tls://', ''));
  expect([code, out]).toEqual([0, expect.stringContaining(' running ')]);
});

test('without an address the one of the environment is asked', async () => {
  process.env['YARDMASTER_SCHEDULER'] = address;
  try {
    expect(await runs.command('workers')).toMatchObject({ code: 0, err: '' });
  } finally {
    delete process.env['YARDMASTER_SCHEDULER'];
  }
});

test('a scheduler says where its dashboard is', async () => {
  const scheduler = runs.yardmaster('scheduler', '--port', '0');
  await scheduler.firstLine();
  while (!scheduler.stderr.includes('/status?token=')) await scheduler.output();
});

test('CommonJS code can require the package', () => {
  const project = join(folder, 'commonjs');
  mkdirSync(join(project, 'node_modules'), { recursive: true });
  symlinkSync(
    new URL('../../..', import.meta.url).pathname,
    join(project, 'node_modules/yardmaster'),
  );
  const code = "console.log(typeof require('yardmaster').LocalCluster.start)";
  const output = execFileSync(process.execPath, ['-e', code], { cwd: project, encoding: 'utf8' });
  expect(output).toBe('function\n');
});
