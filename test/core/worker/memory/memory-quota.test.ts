import { expect, it } from 'vitest';

import { configuration } from '../../../../adapters/app/config.ts';
import { P1, WorkerBench } from '../builders.ts';

const quota = (quotaBytes: number, hardLimitBytes = Infinity): WorkerBench =>
  new WorkerBench({ threadCount: 4, memoryQuota: { quotaBytes, hardLimitBytes } });

const says = (memory: number) => ({ annotations: { memory } });

it('tasks begin as long as what they ask for fits, and the next one when enough has ended', () => {
  const bench = quota(100);
  expect(bench.compute('a', {}, says(60))).toEqual(['execute a']);
  expect(bench.compute('b', {}, says(40))).toEqual(['execute b']);
  expect(bench.compute('c', {}, says(50))).toEqual([]);
  expect(bench.succeed('b')).toEqual(['task-finished b']);
  expect(bench.succeed('a')).toEqual(['task-finished a', 'execute c']);
  expect(bench.kernel.tables.quota?.grantedBytes).toBe(50);
});

it('the first that does not fit holds back smaller ones, so that it is not starved', () => {
  const bench = quota(100);
  bench.compute('a', {}, says(60));
  expect(bench.compute('large', {}, { ...says(50), priority: [0, 1, 1] })).toEqual([]);
  expect(bench.compute('small', {}, { ...says(10), priority: [0, 1, 2] })).toEqual([]);
  expect(bench.succeed('a')).toEqual(['task-finished a', 'execute large', 'execute small']);
});

it('what a task needs is learnt from results of its prefix, and its inputs count', () => {
  const bench = quota(1000);
  bench.compute('make-1');
  bench.succeed('make-1', 300);
  expect(bench.compute('make-2')).toEqual(['execute make-2']);
  expect(bench.kernel.tables.quota?.grantedBytes).toBe(600);
  expect(bench.compute('make-3')).toEqual([]);
  bench.succeed('make-2', 100);
  expect(bench.kernel.tables.quota?.grantedBytes).toBe(400);
  bench.compute('use-1', { x: { at: [P1], nbytes: 100 } });
  expect(bench.arrive(P1, 'x')).toEqual(['add-keys x', 'execute use-1 x']);
  expect(bench.kernel.tables.quota?.grantedBytes).toBe(600);
});

it('what a function needs is learnt whatever the keys of its tasks are, and few kinds are kept', () => {
  const bench = quota(1000);
  const of = (name: string) => ({ runSpec: { module: 'file:///tasks.js', name, version: '1' } });
  bench.compute('session/a', {}, of('make'));
  bench.succeed('session/a', 300);
  expect(bench.compute('session/b', {}, of('make'))).toEqual(['execute session/b']);
  expect(bench.kernel.tables.quota?.grantedBytes).toBe(600);
  expect(bench.compute('session/c', {}, of('other'))).toEqual(['execute session/c']);
  expect(bench.kernel.tables.quota?.grantedBytes).toBe(600);
  const { quota: its } = bench.kernel.tables;
  for (let n = 0; n < 20_000; n++) its!.learn({ key: `k${n}_` } as never, 1);
  expect(its!['resultBytes'].size).toBeLessThanOrEqual(10_000);
});

it('a size may be annotated as text', () => {
  const bench = quota(1000);
  bench.compute('a', {}, { annotations: { memory: '600 B' } });
  bench.compute('b', {}, { annotations: { memory: 'much' } });
  expect(bench.kernel.tables.quota?.grantedBytes).toBe(600);
  expect(bench.compute('c', {}, { annotations: { memory: '0.5 kB' } })).toEqual([]);
});

it('a task with an unknown demand runs alone, and one that declares too much fails', () => {
  const bench = quota(100);
  bench.compute('make-1');
  bench.succeed('make-1', 300);
  expect(bench.compute('make-2')).toEqual(['execute make-2']);
  expect(bench.compute('make-3')).toEqual([]);
  const [instruction] = bench.instructions({
    op: 'compute-task',
    key: 'huge',
    runId: 77,
    priority: [0, 1, 0],
    runSpec: 'huge',
    dependencies: { keys: [], nbytes: [], whoHas: [] },
    durationS: 1,
    ...says(101),
  });
  expect(instruction).toMatchObject({
    message: { op: 'task-erred', failure: { exception: { code: 'ERR_OUT_OF_MEMORY' } } },
  });
});

it('beyond the hard limit nothing begins beside others, until the process has become smaller', () => {
  const bench = quota(1000, 500);
  bench.send({ op: 'memory-measured', processBytes: 450 });
  expect(bench.compute('a', {}, says(100))).toEqual(['execute a']);
  expect(bench.compute('b', {}, says(100))).toEqual([]);
  expect(bench.send({ op: 'memory-measured', processBytes: 399 })).toEqual(['execute b']);
});

it('a cancelled run keeps its part until it has ended', () => {
  const bench = quota(100);
  bench.compute('a', {}, says(80));
  bench.free('a');
  expect(bench.compute('b', {}, says(50))).toEqual([]);
  expect(bench.succeed('a')).toContain('execute b');
});

it('is configured with the words of Mars, which take the place of the threshold for pausing', () => {
  const scheduling = { memQuotaSize: '50%', memHardLimit: '2 GiB' };
  const worker = { memoryLimit: '4 GiB', memoryAdmission: 'quota' } as const;
  const { memory } = configuration.loadObject({ scheduling, worker }).config.worker;
  expect(memory).toMatchObject({ quota: 0.5, hardLimit: 2 ** 31, pause: 0, terminate: 0.95 });
  const plain = configuration.loadObject({ scheduling, worker: { memoryAdmission: 'thresholds' } })
    .config.worker.memory;
  expect([plain.quota, plain.pause]).toEqual([undefined, 0.8]);
});
