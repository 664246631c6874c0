/** The files of a journal: torn, damaged, foreign, in use, and on a disk that fails. */
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { JournalFolder } from '../../../../adapters/app/journal-folder.ts';
import { LocalCluster } from '../../../../adapters/app/local-cluster.ts';
import { readSegment, repairLog } from '../../../../adapters/app/read-log.ts';
import { openScheduler } from '../../../../adapters/app/start-scheduler.ts';
import { startScheduler } from '../../../kit/start-scheduler.ts';
import { task } from '../../../../adapters/client/index.ts';
import { BEAT_MS, FolderLock, LEASE_MS } from '../../../../adapters/log/folder-lock.ts';
import { SYSTEM_FILES } from '../../../../adapters/log/segment-file.ts';
import { SessionSecret } from '../../../../core/scheduler-host/membership.ts';
import { MemoryLog } from '../../../bad-input/memory-log.ts';
import { stride } from '../../../kit/effort.ts';
import { useLive } from '../../../kit/live.ts';
import { leaf } from './fixtures/tasks.js';
import { eventually } from '../../../kit/eventually.ts';

const { folder } = useLive('journal-files');
const log = new MemoryLog();

/** A folder of a journal with so many graphs of one task each, and what is in its segment. */
async function written(name: string, graphs: number): Promise<{ path: string; file: string }> {
  const path = join(folder, name);
  const { scheduler, close } = await openScheduler({ journal: path, log });
  const secretHash = new SessionSecret('so that alice may come back').toString();
  scheduler.enqueue({ op: 'register-client', client: 'alice', secretHash });
  for (let index = 0; index < graphs; index++) {
    const key = `task-${index}`;
    const tasks = [{ key, dependencies: [], runSpec: `${'x'.repeat(600)}${index}` }];
    scheduler.enqueue({ op: 'update-graph', client: 'alice', tasks, keys: [key] });
  }
  await close();
  const [segment = ''] = readdirSync(path).filter((file) => file.endsWith('.ylog'));
  return { path, file: join(path, segment) };
}

async function tasksOf(journal: string): Promise<number> {
  const { scheduler, close } = await openScheduler({ journal, log });
  const { size } = scheduler.kernel.cluster.tasks;
  await close();
  return size;
}

it('a pipe in the place of a segment or a lock does not keep a scheduler waiting', async () => {
  const { path } = await written('pipes', 1);
  execFileSync('mkfifo', [join(path, 'lock.9')]);
  expect(await tasksOf(path)).toBe(1);
  execFileSync('mkfifo', [join(path, '99999999.ylog')]);
  await expect(openScheduler({ journal: path, log })).rejects.toMatchObject({
    code: 'ERR_JOURNAL',
    message: expect.stringContaining('a pipe') as string,
  });
});

it('a scheduler that is started again has its tasks, also a second and a third time', async () => {
  const { path } = await written('again', 20);
  for (let time = 0; time < 3; time++) expect(await tasksOf(path)).toBe(20);
  expect(readdirSync(path).filter((file) => file.endsWith('.ylog'))).toHaveLength(1);
});

it.each([999, 1000, 1001, 2000, 2500])('the release of %i futures is committed', async (count) => {
  const journal = join(folder, `released-${count}`);
  await using cluster = await LocalCluster.start({ mode: 'inline', journal, workers: 1 });
  const client = await cluster.client();
  const futures = await client.scatter(Array.from({ length: count }, (_, index) => index));
  await client.committed();
  for (const future of futures) future.release();
  await client.committed();
  expect(cluster.scheduler.cluster.tasks.size).toBe(0);
});

it('what is looked up in a store of results before it is sent is committed, too', async () => {
  const journal = join(folder, 'persisted');
  await using cluster = await LocalCluster.start({ mode: 'inline', journal, workers: 0 });
  const client = await cluster.client({ resultStore: join(folder, 'results') });
  const futures = Array.from({ length: 50 }, (_, x) => {
    return client.with({ persist: true }).submit(leaf, 'kept', 0, x);
  });
  await client.committed();
  const { tasks } = cluster.scheduler.cluster;
  expect(futures.filter(({ key }) => !tasks.has(key))).toEqual([]);
});

it('a graph that is refused does not keep what was said after it from being committed', async () => {
  const journal = join(folder, 'refused');
  const config = { scheduler: { limits: { graph: '10kB' } } };
  await using cluster = await LocalCluster.start({ mode: 'inline', journal, workers: 1, config });
  const client = await cluster.client();
  const names = Array.from({ length: 2500 }, (_, index) => `part-${index}`);
  const graph = Object.fromEntries(names.map((name, x) => [name, task(leaf, 'x', 0, x)]));
  const futures = client.compute(graph, names);
  await client.committed();
  await expect(futures[0]?.result()).rejects.toThrow('its graph is larger than');
});

it('a scheduler shows that it lives while it reads a long journal', async () => {
  const { path } = await written('long', 5000);
  let beats = 0;
  const writeFileSync: typeof SYSTEM_FILES.writeFileSync = (file, data, options) => {
    if (file.endsWith('.beat')) beats++;
    SYSTEM_FILES.writeFileSync(file, data, options);
  };
  const files = { ...SYSTEM_FILES, writeFileSync };
  const { close } = await openScheduler({ journal: { folder: path, files }, log });
  expect(beats).toBeGreaterThan(3);
  await close();
});

it('a newest segment whose first page did not reach the disk is left out', async () => {
  const { path } = await written('zeros', 20);
  const garbled = Buffer.alloc(4000, 0xab);
  writeFileSync(join(path, '00000099.ylog'), Buffer.concat([Buffer.alloc(4096), garbled]));
  expect(await tasksOf(path)).toBe(20);
});

it('a journal that is cut at any byte gives a prefix of its entries', async () => {
  const { file } = await written('cut', 110);
  const bytes = readFileSync(file);
  const whole = readSegment(file).entries.map((entry) => entry.stimulusId);
  const copy = join(folder, 'cut.ylog');
  const last = bytes.length - 64 * 1024;
  // All of them take half a minute.
  const step = stride(97);
  for (let length = bytes.length; length > last; length -= length > bytes.length - 800 ? 1 : step) {
    writeFileSync(copy, bytes.subarray(0, length));
    const { entries, checkpoint, torn } = readSegment(copy);
    expect(checkpoint).toBeDefined();
    expect(entries.map(({ stimulusId }) => stimulusId)).toEqual(whole.slice(0, entries.length));
    expect(torn === undefined ? length : torn.offset + torn.nbytes).toBe(length);
  }
});

it('a bit that is flipped is found, or lies in the last frames and is left out', async () => {
  const { file } = await written('flipped', 30);
  const bytes = readFileSync(file);
  const whole = readSegment(file).entries.map((entry) => entry.stimulusId);
  const copy = join(folder, 'flipped.ylog');
  for (let flip = 0; flip < 1000; flip += stride(1)) {
    const at = Math.floor((flip * bytes.length) / 1000);
    bytes[at] = (bytes[at] as number) ^ (1 << (flip % 8));
    writeFileSync(copy, bytes);
    bytes[at] = bytes[at] ^ (1 << (flip % 8));
    try {
      const { entries } = readSegment(copy);
      const ids = entries.map(({ stimulusId }) => stimulusId);
      // The last four bytes of the file header mean nothing.
      expect(at >= 12 && at < 16 ? whole : whole.slice(0, ids.length)).toEqual(ids);
    } catch (error) {
      expect(error).toMatchObject({ code: 'ERR_JOURNAL', data: { file: copy } });
    }
  }
});

it('a damaged frame is refused with its place, and the repair keeps what is before it', async () => {
  const { path, file } = await written('damaged', 30);
  const bytes = readFileSync(file);
  const at = Math.floor(bytes.length / 2);
  bytes[at] = (bytes[at] as number) ^ 1;
  writeFileSync(file, bytes);
  await expect(openScheduler({ journal: path, log })).rejects.toThrow(
    new RegExp(`wrong checksum, at byte \\d+ .*"yardmaster log repair ${file}"`),
  );
  const { keptBytes, copy } = repairLog(file);
  expect(keptBytes).toBeLessThanOrEqual(at);
  expect(readFileSync(copy!).length).toBe(bytes.length);
  const count = await tasksOf(path);
  expect(count).toBeGreaterThan(5);
  expect(count).toBeLessThan(30);
});

it('damage in the first part of the only segment is refused, and so is its repair, which would leave nothing', async () => {
  const { path, file } = await written('first-part', 30);
  // The second scheduler begins its segment with all tasks.
  await (await openScheduler({ journal: path, log })).close();
  const [name = ''] = readdirSync(path).filter((entry) => entry.endsWith('.ylog'));
  const segment = join(path, name);
  expect(segment).not.toBe(file);
  const bytes = readFileSync(segment);
  for (const at of [20, Math.floor(bytes.length / 3)]) {
    const flipped = Buffer.from(bytes);
    flipped[at]! ^= 1;
    writeFileSync(segment, flipped);
    await expect(openScheduler({ journal: path, log })).rejects.toThrow(
      /at byte \d+ .*without which nothing can be restored: restore it from a copy/,
    );
    expect(() => repairLog(segment)).toThrow('restore the file from a copy');
    expect(readFileSync(segment)).toEqual(flipped);
  }
});

describe('a folder that cannot be used', () => {
  it('is refused with what is there instead of it', () => {
    const file = join(folder, 'a-file');
    const link = join(folder, 'a-link');
    writeFileSync(file, '');
    symlinkSync(join(folder, 'nowhere'), link);
    expect(() => JournalFolder.open(file)).toThrow('because it is a file; name a folder');
    expect(() => JournalFolder.open(link)).toThrow('because a symbolic link leads to nothing');
  });

  it('is refused while another scheduler has it, and free when that has ended', async () => {
    const path = join(folder, 'shared');
    const first = await openScheduler({ journal: path, log });
    await expect(openScheduler({ journal: path, log })).rejects.toThrow(
      `the journal ${path} is in use by process ${process.pid}; stop that scheduler, or give this one another folder`,
    );
    await first.close();
    await (await openScheduler({ journal: path, log })).close();
  });

  it('is taken over from a process that has died, and from one whose id another has now', () => {
    for (const owner of [{ pid: 2 ** 22 - 1 }, { pid: process.pid, startedAt: '1' }]) {
      const path = join(folder, `stale-${owner.pid}`);
      mkdirSync(path);
      FolderLock.take(path).release();
      const [name = ''] = readdirSync(path);
      FolderLock.take(path);
      const taken = readdirSync(path).find((file) => /^lock\.\d+$/.test(file))!;
      expect(taken).not.toBe(name);
      const here = JSON.parse(readFileSync(join(path, taken), 'utf8')) as object;
      writeFileSync(join(path, taken), JSON.stringify({ ...here, ...owner }));
      FolderLock.take(path).release();
    }
  });

  it('is refused when it belongs to a scheduler of another machine', () => {
    const path = join(folder, 'elsewhere');
    mkdirSync(path);
    writeFileSync(join(path, 'lock.1'), JSON.stringify({ pid: 1, host: 'elsewhere.example' }));
    expect(() => FolderLock.take(path)).toThrow(/in use by process 1 of elsewhere\.example/);
  });

  describe('whose owner cannot be seen, because it is of another host or container', () => {
    /** A folder with the lock of such an owner, and the path of its heartbeat. */
    function locked(name: string, owner: object): { path: string; beat: string } {
      const path = join(folder, name);
      mkdirSync(path);
      FolderLock.take(path);
      const [lock = ''] = readdirSync(path).filter((file) => /^lock\.\d+$/.test(file));
      const here = JSON.parse(readFileSync(join(path, lock), 'utf8')) as object;
      writeFileSync(join(path, lock), JSON.stringify({ ...here, ...owner }));
      return { path, beat: join(path, `${lock}.beat`) };
    }

    const OTHERS: readonly (readonly [string, object])[] = [
      ['another host', { host: 'elsewhere.example', pid: 1 }],
      ['another container of the same name', { pidNamespace: 'pid:[1]', pid: process.pid }],
    ];

    it.each(OTHERS)('is taken over when the heart of %s has stopped', async (what, owner) => {
      const { path } = locked(`stopped-${what}`, owner);
      const startMs = performance.now();
      const { scheduler, close } = await openScheduler({ journal: path, log });
      expect(performance.now() - startMs).toBeGreaterThan(LEASE_MS - 100);
      expect(scheduler.crash).toBeUndefined();
      await close();
    });

    it.each(OTHERS)('is refused while the heart of %s beats', async (what, owner) => {
      const { path, beat } = locked(`beating-${what}`, owner);
      let beats = 0;
      const timer = setInterval(() => writeFileSync(beat, `b${++beats}`), BEAT_MS);
      const opened = openScheduler({ journal: path, log });
      await expect(opened).rejects.toMatchObject({
        code: 'ERR_JOURNAL',
        message: expect.stringContaining('whose heartbeat goes on') as string,
      });
      clearInterval(timer);
    });

    it('ends the scheduler that had it, when that continues after a long pause', async () => {
      const path = join(folder, 'paused');
      const { scheduler, closed, close } = await openScheduler({ journal: path, log });
      // Another one has taken over.
      writeFileSync(join(path, 'lock.99'), '{}');
      await expect(closed).rejects.toThrow('another scheduler has taken over the journal');
      expect(scheduler.crash).toMatchObject({ code: 'ERR_JOURNAL' });
      await close();
    });
  });

  it('is taken over from a process that has ended and was not waited for', async () => {
    const path = join(folder, 'zombie');
    mkdirSync(path);
    FolderLock.take(path);
    // The shell is replaced by a program that never waits for its child.
    const parent = spawn('sh', ['-c', 'sleep 0.1 & echo $!; exec sleep 60'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const [pid] = (await once(parent.stdout, 'data')) as [Buffer];
    const stat = (): string => readFileSync(`/proc/${Number(pid)}/stat`, 'utf8');
    const startedAt = stat().split(' ')[21];
    await eventually(() => expect(stat()).toContain(') Z '));
    const [lock = ''] = readdirSync(path).filter((file) => /^lock\.\d+$/.test(file));
    const here = JSON.parse(readFileSync(join(path, lock), 'utf8')) as object;
    writeFileSync(join(path, lock), JSON.stringify({ ...here, pid: Number(pid), startedAt }));
    FolderLock.take(path).release();
    parent.kill();
  });

  it('is refused without rights, as a file, and with a segment that is a link or a recording', async () => {
    const file = join(folder, 'a-file');
    writeFileSync(file, '');
    await expect(openScheduler({ journal: file, log })).rejects.toMatchObject({
      code: 'ERR_JOURNAL',
    });
    if (process.getuid?.() !== 0) {
      const closed = join(folder, 'closed');
      mkdirSync(closed);
      chmodSync(closed, 0);
      await expect(openScheduler({ journal: closed, log })).rejects.toThrow('EACCES');
      chmodSync(closed, 0o700);
    }
    const { path, file: segment } = await written('linked', 1);
    renameSync(segment, join(folder, 'moved.ylog'));
    symlinkSync(join(folder, 'moved.ylog'), segment);
    await expect(openScheduler({ journal: path, log })).rejects.toThrow('it is a symbolic link');
    const recording = join(folder, 'run.ylog');
    await (await openScheduler({ record: recording, log })).close();
    const other = join(folder, 'recorded');
    mkdirSync(other);
    copyFileSync(recording, join(other, '00000001.ylog'));
    await expect(openScheduler({ journal: other, log })).rejects.toThrow('is a recording');
  });

  it('is refused in another version of the format', async () => {
    const { path, file } = await written('version', 1);
    const bytes = readFileSync(file);
    bytes[8] = 9;
    writeFileSync(file, bytes);
    await expect(openScheduler({ journal: path, log })).rejects.toThrow(/has the format 9/);
  });

  it('begins empty when its first segment was being made', async () => {
    const { path, file } = await written('first', 3);
    writeFileSync(join(path, '00000001.ylog'), readFileSync(file).subarray(0, 40));
    if (!file.endsWith('00000001.ylog')) renameSync(file, join(folder, 'away.ylog'));
    expect(JournalFolder.open(path).read().entries).toEqual([]);
  });
});

it('a scheduler without a journal says so to a client that asks for a commitment', async () => {
  const { Client } = await import('../../../../adapters/client/index.ts');
  const running = await startScheduler({ log }, 'tcp://127.0.0.1:0');
  const client = await Client.connect(running.address);
  await expect(client.committed()).rejects.toMatchObject({ code: 'ERR_JOURNAL' });
  await client.close();
  await running.close();
});
