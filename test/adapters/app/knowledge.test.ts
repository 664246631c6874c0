/** Schedulers that begin with what earlier ones have measured. */
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { LocalCluster, type LocalClusterOptions } from '../../../adapters/app/index.ts';
import { replayRecording } from '../../../adapters/app/past.ts';
import { openScheduler } from '../../../adapters/app/start-scheduler.ts';
import { Client } from '../../../adapters/client/index.ts';
import { loadWorkload, Simulation } from '../../../adapters/simulator/index.ts';
import { VirtualClock } from '../../../adapters/clocks/virtual-clock.ts';
import type { KnownPrefix } from '../../../core/state/groups.ts';
import { useLive } from '../../kit/live.ts';
import { leaf } from './journal/fixtures/tasks.js';

const { folder, runs } = useLive('knowledge');

const prefixesIn = (file: string): KnownPrefix[] =>
  (JSON.parse(readFileSync(file, 'utf8')) as { prefixes: KnownPrefix[] }).prefixes;

const LEAF: KnownPrefix = { name: 'leaf', count: 40, durationS: 7, nbytes: 8, spread: 0.1 };

/** A file with this content. */
function fileWith(name: string, prefixes: readonly KnownPrefix[] | string): string {
  const file = join(folder, name);
  writeFileSync(file, typeof prefixes === 'string' ? prefixes : JSON.stringify({ prefixes }));
  return file;
}

/** Runs three tasks on a cluster. Returns what it expected of such tasks before. */
async function run(knowledge: string, options: Partial<LocalClusterOptions> = {}): Promise<number> {
  const config = { scheduler: { knowledge } };
  await using cluster = await LocalCluster.start({
    mode: 'inline',
    workers: 1,
    config,
    ...options,
  });
  const { cluster: view } = cluster.scheduler;
  let expectedS = NaN;
  cluster.scheduler.events.on('graph-submitted', () => {
    const { durationEstimateS = NaN } = view.prefixes.get('leaf') ?? {};
    if (Number.isNaN(expectedS)) expectedS = durationEstimateS;
  });
  const client = await cluster.client();
  await client.gather([1, 2, 3].map((x) => client.submit(leaf, join(folder, 'done'), 20, x)));
  await cluster.close();
  return expectedS;
}

it('a cluster that is started again expects what the one before has measured', async () => {
  const file = join(folder, 'again.json');
  expect(await run(file)).toBe(0.5);
  const [leaf] = prefixesIn(file);
  expect(leaf).toMatchObject({ name: 'leaf', count: 3 });
  expect(leaf?.durationS).toBeGreaterThan(0.015);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(await run(file)).toBe(leaf?.durationS);
  expect(prefixesIn(file)).toMatchObject([{ name: 'leaf', count: 6 }]);
});

it('so do scheduler and workers in processes of their own', async () => {
  const file = fileWith('processes.json', [LEAF]);
  const args = ['--insecure', '--port', '0', '--no-dashboard', '--knowledge', file];
  const scheduler = runs.yardmaster('scheduler', ...args);
  const address = await scheduler.firstLine();
  await runs.yardmaster('worker', address, '--no-nanny').firstLine();
  const client = await Client.connect(address);
  await client.submit(leaf, join(folder, 'done'), 20, 1).result();
  await client.close();
  scheduler.child.kill('SIGTERM');
  await scheduler.exit;
  expect(prefixesIn(file)).toMatchObject([{ name: 'leaf', count: 41 }]);
});

it('a file that cannot be used is named and left as it is, and the scheduler begins without it', async () => {
  const asFolder = join(folder, 'folder.json');
  mkdirSync(asFolder);
  const bad = { ...LEAF, durationS: -1 };
  for (const [file, reason] of [
    [fileWith('half.json', '{"prefixes": [{"na'), /JSON/],
    [fileWith('other.json', '[]'), /prefixes is missing/],
    [fileWith('bad.json', [LEAF, bad]), /prefixes\[1\]\.durationS must be/],
    [asFolder, /it is no file/],
  ] as const) {
    const logged: string[] = [];
    const warn = (_: object, message?: string): void => void logged.push(message ?? '');
    const silent = { debug: warn, info: () => undefined, warn, error: warn };
    const before = file === asFolder ? '' : readFileSync(file, 'utf8');
    expect(await run(file, { log: silent })).toBe(0.5);
    expect(logged.join('\n')).toContain(`the file of knowledge ${file} cannot be used: `);
    expect(logged.join('\n')).toMatch(reason);
    if (file !== asFolder) expect(readFileSync(file, 'utf8')).toBe(before);
  }
});

it('a file that cannot be written is named, and nothing is left behind', async () => {
  const logged: string[] = [];
  const warn = (_: object, message?: string): void => void logged.push(message ?? '');
  const log = { debug: warn, info: () => undefined, warn, error: warn };
  const nowhere = join(folder, 'none', 'knowledge.json');
  expect(await run(nowhere, { log })).toBe(0.5);
  expect(logged.join('\n')).toContain(`the file of knowledge ${nowhere} cannot be written: `);
  expect(existsSync(join(folder, 'none'))).toBe(false);
});

it('the file is brought up to date every minute, and only when something is new', async () => {
  const file = fileWith('minute.json', [LEAF]);
  const clock = new VirtualClock();
  const config = { scheduler: { knowledge: file } };
  const { scheduler, close } = await openScheduler({ config, clock });
  const { ino } = statSync(file);
  clock.advance(60_000);
  expect(statSync(file).ino).toBe(ino);
  scheduler.enqueue({ op: 'recall-prefixes', prefixes: [{ ...LEAF, name: 'more' }] });
  clock.advance(60_000);
  expect(prefixesIn(file).map(({ name }) => name)).toEqual(['leaf', 'more']);
  await close();
  expect(readdirSync(folder).filter((name) => name.startsWith('minute.json'))).toHaveLength(1);
});

it('a recording of a scheduler that began with knowledge is replayed with the same decisions', async () => {
  const record = join(folder, 'known.ylog');
  expect(await run(fileWith('recorded.json', [LEAF]), { record })).toBe(LEAF.durationS);
  writeFileSync(join(folder, 'recorded.json'), '');
  const { difference, isComplete, stateChecks } = await replayRecording(record, { validate: true });
  expect({ difference, isComplete, stateChecks }).toEqual({
    difference: undefined,
    isComplete: true,
    stateChecks: 1,
  });
});

it('a recording that begins later has the knowledge in its first state', async () => {
  const record = join(folder, 'later.ylog');
  const config = { scheduler: { knowledge: fileWith('later.json', [LEAF]) } };
  await using cluster = await LocalCluster.start({ mode: 'inline', workers: 1, config });
  await cluster.record(record);
  const client = await cluster.client();
  await client.submit(leaf, join(folder, 'done'), 5, 1).result();
  await cluster.close();
  const result = await replayRecording(record, { validate: true });
  expect(result.difference).toBeUndefined();
  expect(result.kernel.cluster.knowledge()).toMatchObject([{ name: 'leaf', count: 41 }]);
});

it('a simulation with the same configuration knows as much, and leaves the file as it is', async () => {
  const file = fileWith('simulated.json', [{ ...LEAF, name: 'inc' }]);
  const text = readFileSync(file, 'utf8');
  const config = { scheduler: { knowledge: file } };
  await using simulation = await Simulation.start({ config });
  simulation.submit(await loadWorkload('map:3@100ms,1MB'));
  await simulation.run();
  expect(simulation.kernel.cluster.knowledge()).toMatchObject([{ name: 'inc', count: 43 }]);
  expect(readFileSync(file, 'utf8')).toBe(text);
});

it('a scheduler that continues from a journal takes whichever has measured more, journal or file', async () => {
  const journal = join(folder, 'journal');
  const file = join(folder, 'beside.json');
  await run(file, { journal });
  writeFileSync(file, JSON.stringify({ prefixes: [LEAF] }));
  const config = { scheduler: { knowledge: file } };
  const again = await openScheduler({ config, journal: { folder: journal, workerWaitMs: 0 } });
  expect(again.scheduler.kernel.cluster.knowledge()).toMatchObject([LEAF]);
  await again.close();
  const without = await openScheduler({ journal: { folder: journal, workerWaitMs: 0 } });
  expect(without.scheduler.kernel.cluster.knowledge()).toMatchObject([LEAF]);
  await without.close();
});
