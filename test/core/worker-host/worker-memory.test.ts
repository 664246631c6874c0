import { expect, it } from 'vitest';

import {
  type SpillArea,
  type WireMessage,
  type WorkerMetrics,
  YardmasterError,
} from '../../../core/api/index.ts';
import type { WorkerMemoryOptions } from '../../../core/worker-host/worker-options.ts';
import type { HostedWorker } from '../../../core/worker-host/create-worker.ts';
import { Bench, Ref } from '../worker/hand-scheduler.ts';

/** A disk in the hands of the test. */
class Disk implements SpillArea {
  readonly files = new Map<string, Uint8Array>();
  isClosed = false;

  get nbytes(): number {
    return [...this.files.values()].reduce((total, file) => total + file.byteLength, 0);
  }

  write(key: string, value: Uint8Array): void {
    this.files.set(key, value.slice());
  }

  read(key: string): Uint8Array {
    const file = this.files.get(key);
    if (file === undefined) throw new Error('no such file');
    return file.slice();
  }

  delete(key: string): void {
    this.files.delete(key);
  }

  close(): void {
    this.isClosed = true;
  }
}

interface World {
  readonly bench: Bench;
  readonly worker: HostedWorker;
  readonly disk: Disk;
  /** Bytes that the process is said to occupy. */
  readonly process: { nbytes: number };
}

/** A worker with a limit of 10 kB, which looks at its memory every 100 ms. */
async function world(memory: WorkerMemoryOptions = {}): Promise<World> {
  const bench = await new Bench().listen();
  const disk = new Disk();
  const process = { nbytes: 1000 };
  const worker = await bench.startWorker('alice', {
    memoryLimitBytes: 10_000,
    measureMemory: () => process.nbytes,
    memory: { disk, ...memory },
  });
  return { bench, worker, disk, process };
}

const ops = (reports: readonly WireMessage[]): unknown[] =>
  reports.map((report) => [report['op'], report['keys'] ?? report['key'] ?? report['status']]);

const isBeat = (report: WireMessage): boolean => report['op'] === 'heartbeat-worker';

const news = ({ bench, worker }: World): unknown[] =>
  ops(bench.take(worker).filter((report) => !isBeat(report)));

it('results beyond the target are spilled, used from there, and reported in heartbeats', async () => {
  const it = await world();
  const { bench, worker, disk } = it;
  for (const key of ['a', 'b', 'c']) await bench.send(worker, bench.compute(key, 'zeros', [2500]));
  expect([...disk.files.keys()]).toEqual(['a']);
  await bench.pass(500);
  const metrics = bench.take(worker).find(isBeat)!['metrics'] as Record<string, number>;
  expect(metrics['memoryBytes']).toBe(1000);
  expect(metrics['spilledMemoryBytes']).toBe(disk.files.get('a')!.byteLength);
  expect(metrics['spilledDiskBytes']).toBe(disk.nbytes);
  expect(metrics['managedBytes']).toBe(3 * disk.nbytes);
  const where = { a: [worker.address] };
  await bench.send(worker, bench.compute('d', 'echo', [new Ref('a')], where));
  expect(worker.identity.memoryLimitBytes).toBe(10_000);
  expect([...disk.files.keys()]).toEqual(['a', 'b', 'c']);
});

it('heartbeats tell how fast results are written to disk and read from there', async () => {
  const { bench, worker, disk } = await world();
  const traffic = async (): Promise<unknown> => {
    await bench.pass(500);
    return (bench.take(worker).find(isBeat)!['metrics'] as WorkerMetrics).traffic;
  };
  await traffic();
  for (const key of ['a', 'b', 'c']) await bench.send(worker, bench.compute(key, 'zeros', [2500]));
  const one = disk.files.get('a')!.byteLength;
  const idle = { received: 0, sent: 0, diskRead: 0, diskWritten: 0 };
  expect(await traffic()).toEqual({ ...idle, diskWritten: 2 * one });
  expect(await traffic()).toEqual(idle);
  const where = { a: [worker.address] };
  await bench.send(worker, bench.compute('d', 'echo', [new Ref('a')], where));
  expect(await traffic()).toMatchObject({ diskRead: 2 * one });
});

it('results get less memory when the process occupies much besides them', async () => {
  const it = await world();
  const { bench, worker, disk, process } = it;
  process.nbytes = 5000; // Of 6000, which is the target.
  await bench.pass(100);
  for (const key of ['a', 'b']) {
    process.nbytes += 650;
    await bench.send(worker, bench.compute(key, 'zeros', [600]));
  }
  expect([...disk.files.keys()]).toEqual(['a']);
});

it('memory is looked at when much has come, not only by the clock', async () => {
  const it = await world({ monitorIntervalMs: 60_000 });
  const { bench, worker, process } = it;
  await bench.send(worker, bench.compute('a', 'zeros', [100]));
  process.nbytes = 9000;
  const told: unknown[] = [];
  for (const key of ['b', 'c', 'd']) {
    told.push(...ops(await bench.send(worker, bench.compute(key, 'zeros', [500]))));
  }
  expect(told).toContainEqual(['worker-status-change', 'paused']);
});

it('a spilled input that is damaged is reported, and its task goes back, to be run again later', async () => {
  const it = await world();
  const { bench, worker, disk } = it;
  for (const key of ['a', 'b', 'c']) await bench.send(worker, bench.compute(key, 'zeros', [2500]));
  disk.files.clear();
  bench.take(worker);
  const where = { a: [worker.address] };
  const reports = await bench.send(worker, bench.compute('d', 'echo', [new Ref('a')], where));
  expect(ops(reports)).toEqual([
    ['release-worker-data', ['a']],
    ['reschedule', 'd'],
  ]);
  expect(bench.logged.join()).toContain('"a" cannot be read: no such file; it counts as lost');
});

it('a peer that asks for a lost result does not get it, and the scheduler is notified', async () => {
  const it = await world();
  const { bench, worker, disk } = it;
  for (const key of ['a', 'b', 'c']) await bench.send(worker, bench.compute(key, 'zeros', [2500]));
  disk.files.clear();
  bench.take(worker);
  const peer = await bench.peer(worker);
  const reply = await bench.settle(peer.request('get-data', { keys: ['a', 'b'] }));
  expect(reply).toMatchObject({ keys: ['b'] });
  expect(news(it)).toEqual([['release-worker-data', ['a']]]);
});

it('a full disk is reported once, and nothing is lost', async () => {
  const it = await world({ maxSpillBytes: 3000 });
  const { bench, worker, disk } = it;
  const keys = ['a', 'b', 'c', 'd', 'e'];
  for (const key of keys) await bench.send(worker, bench.compute(key, 'zeros', [2500]));
  expect([...disk.files.keys()]).toEqual(['a']);
  const told = bench.logged.filter((line) => line.includes('cannot be spilled'));
  expect(told).toHaveLength(1);
  expect(told[0]).toMatch(/"b" \(\d+ bytes\).*3000 bytes on disk \(worker.memory.maxSpill\)/);
  const peer = await bench.peer(worker);
  expect(await bench.settle(peer.request('get-data', { keys }))).toMatchObject({ keys });
});

it('beyond the pause threshold nothing begins; below it work continues', async () => {
  const it = await world();
  const { bench, worker, process } = it;
  process.nbytes = 9000;
  await bench.pass(200);
  expect(news(it)).toEqual([['worker-status-change', 'paused']]);
  await bench.send(worker, bench.compute('x', 'add', [1, 2]));
  await bench.pass(300);
  expect(news(it)).toEqual([]);
  process.nbytes = 5000;
  await bench.pass(100);
  expect(news(it)).toEqual([
    ['worker-status-change', 'running'],
    ['task-finished', 'x'],
  ]);
});

it('when waiting does not help, one task runs at a time', async () => {
  const it = await world();
  const { bench, worker, process } = it;
  process.nbytes = 9000;
  await bench.pass(300);
  news(it);
  const tasks = ['x', 'y'].map((key) => bench.compute(key, 'waitForAbort', []));
  await bench.send(worker, ...tasks, bench.compute('z', 'add', [1, 2]));
  await bench.pass(2000);
  expect(news(it)).toEqual([['worker-status-change', 'running']]);
  await bench.pass(500);
  const beats = bench.take(worker).filter(isBeat);
  expect(beats.at(-1)!['executing']).toHaveLength(1);
  expect(bench.logged.join()).toContain('resumes one task at a time');
});

it('a worker that the scheduler has paused stays paused, however much memory is free', async () => {
  const it = await world();
  const { bench, worker, process } = it;
  const pause = { op: 'worker-status-change', status: 'paused', stimulusId: 'p' } as const;
  await bench.send(worker, pause);
  process.nbytes = 9000;
  await bench.pass(300);
  process.nbytes = 1000;
  await bench.pass(300);
  expect(news(it)).toEqual([]);
  const resume = { op: 'worker-status-change', status: 'running', stimulusId: 'r' } as const;
  expect(ops(await bench.send(worker, resume))).toEqual([['worker-status-change', 'running']]);
});

it('garbage is collected before the worker pauses', async () => {
  const process = { nbytes: 1000 };
  const bench = await new Bench().listen();
  const worker = await bench.startWorker('alice', {
    memoryLimitBytes: 10_000,
    measureMemory: () => process.nbytes,
    memory: { collectGarbage: () => (process.nbytes = 2000) },
  });
  process.nbytes = 9000;
  await bench.pass(1000);
  expect(process.nbytes).toBe(2000);
  expect(bench.take(worker).filter((report) => !isBeat(report))).toEqual([]);
});

it('beyond the last threshold the worker gives up without a goodbye, and deletes what it spilled', async () => {
  const { bench, worker, disk, process } = await world();
  process.nbytes = 9800;
  await bench.pass(2300);
  const end = await bench.settle(worker.finished);
  expect(end.error).toBeInstanceOf(YardmasterError);
  expect(end.error).toMatchObject({ code: 'ERR_OUT_OF_MEMORY', data: { processBytes: 9800 } });
  expect(ops(bench.take(worker))).not.toContainEqual(['worker-status-change', 'closing']);
  expect(disk.isClosed).toBe(true);
});

it('a worker that cannot measure its memory for lack of file descriptors continues with what it knew', async () => {
  const { bench, worker, process } = await world();
  await bench.pass(500);
  let nbytes = process.nbytes;
  const failing = (): number => {
    throw Object.assign(new Error('EMFILE: too many open files, uv_resident_set_memory'), {
      code: 'EMFILE',
    });
  };
  Object.defineProperty(process, 'nbytes', { get: failing, configurable: true });
  await bench.pass(2000);
  expect(ops(bench.take(worker))).not.toContainEqual(['worker-status-change', 'closing']);
  nbytes = 9800;
  Object.defineProperty(process, 'nbytes', { get: () => nbytes, configurable: true });
  await bench.pass(2300);
  expect((await bench.settle(worker.finished)).error).toMatchObject({ code: 'ERR_OUT_OF_MEMORY' });
});

it('without a limit the memory is not measured', async () => {
  const bench = await new Bench().listen();
  let looks = 0;
  await bench.startWorker('alice', { measureMemory: () => ++looks });
  const atStart = looks;
  await bench.pass(450);
  expect(looks).toBe(atStart);
});

/** As columnar tables are: views of one buffer that is larger than what they show. */
const whole = new ArrayBuffer(100_000);
const table = {
  names: ['a', 'b'],
  columns: [new Float64Array(whole, 0, 100), new Int32Array(whole, 800, 50)],
};

it.each([
  ['a string', 'x'.repeat(3000), 3000],
  ['a string beyond Latin-1', '\u{1F600}'.repeat(1000), 4000],
  ['a typed array', new Float64Array(500), 4000],
  ['a Buffer', Buffer.alloc(2000), 2000],
  ['a view of a larger buffer', new Uint8Array(whole, 10, 2000), 2000],
  ['a table of columns', table, 1000],
  ['a Map', new Map(Array.from({ length: 500 }, (_, index) => [index, index])), 2000],
  ['a Set', new Set(Array.from({ length: 500 }, (_, index) => index)), 1000],
])('the size of %s is that of its bytes, which are what is kept', async (_, value, atLeast) => {
  const { bench, worker } = await world({ thresholds: { target: 0 } });
  const [finished] = await bench.send(worker, bench.compute('x', 'echo', [value]));
  const peer = await bench.peer(worker);
  const reply = await bench.settle(peer.request('get-data', { keys: ['x'] }));
  const [kept] = (reply as { values: Uint8Array[] }).values;
  expect(finished!['nbytes']).toBe(kept!.byteLength);
  expect(kept!.buffer.byteLength).toBeLessThan(1.25 * kept!.byteLength + 100);
  expect(kept!.byteLength).toBeGreaterThanOrEqual(atLeast);
  expect(kept!.byteLength).toBeLessThan(1.6 * atLeast + 200);
});

it('beyond the threshold "pause" a worker gives to one at a time, also while it retires or crawls', async () => {
  const it = await world();
  const { bench, worker, process } = it;
  await bench.send(worker, bench.compute('large', 'zeros', [2 ** 21]));
  await bench.send(worker, bench.compute('small', 'zeros', [100]));
  bench.take(worker);
  const peer = await bench.peer(worker);
  const ask = (keys: readonly string[]): Promise<WireMessage> =>
    bench.settle(peer.request('get-data', { keys, mayBeBusy: true, inParts: true }));
  /** Whether another peer gets the answer `busy` while a large result is on its way. */
  const givesToOneOnly = async (): Promise<boolean> => {
    const { parts } = (await ask(['large'])) as { readonly parts?: { readonly handle: number }[] };
    expect(parts).toHaveLength(1);
    const { busy } = await ask(['small']);
    peer.send({ op: 'drop-parts', handles: parts!.map(({ handle }) => handle) });
    await bench.pass(0);
    return busy === true;
  };
  expect(await givesToOneOnly()).toBe(false);
  process.nbytes = 9000;
  await bench.pass(300);
  expect(news(it)).toEqual([['worker-status-change', 'paused']]);
  expect(await givesToOneOnly()).toBe(true);
  await bench.pass(2000);
  expect(news(it)).toEqual([['worker-status-change', 'running']]); // One task at a time.
  expect(await givesToOneOnly()).toBe(true);
  const op = 'worker-status-change';
  await bench.send(worker, { op, status: 'closing-gracefully', stimulusId: 'r' });
  expect(await givesToOneOnly()).toBe(true);
  process.nbytes = 1000;
  await bench.pass(2000);
  expect(await givesToOneOnly()).toBe(false);
});
