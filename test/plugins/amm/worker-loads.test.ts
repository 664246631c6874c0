import fc from 'fast-check';
import { expect, it, vi } from 'vitest';
import type { WorkerView } from '../../../core/api/index.ts';
import { findWorkers, WorkerList } from '../../../plugins/amm/movement.ts';
import { type WorkerLoad, WorkerLoads } from '../../../plugins/amm/memory-manager.ts';
import { AmmBench } from './amm-kit.ts';

/** The rule, without a heap. */
function scan(loads: WorkerLoads, running: ReadonlySet<WorkerView>, refused: ReadonlySet<string>) {
  const free = [...loads.all].filter(
    ({ worker }) => running.has(worker) && !refused.has(worker.name),
  );
  return free.sort((a, b) => a.memory - b.memory || a.worker.rank - b.worker.rank)[0];
}

it('the emptiest worker is found, whatever changes and whichever workers are refused', () => {
  const step = fc.record({
    worker: fc.nat(39),
    memory: fc.integer({ min: 0, max: 5 }),
    refused: fc.array(fc.nat(39), { maxLength: 40 }),
  });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 40 }), fc.array(step, { maxLength: 30 }), (n, steps) => {
      const bench = new AmmBench();
      const workers = Array.from({ length: n }, (_, index) =>
        bench.worker(`w${index}`, index % 3, index % 7 === 6 ? 'paused' : 'running'),
      );
      const running = new Set<WorkerView>(bench.cluster.running);
      const loads = new WorkerLoads(bench.cluster, 'process').refresh();
      const task = bench.task('x', [bench.worker('other')]);
      for (const { worker, memory, refused } of steps) {
        const names = new Set(refused.map((index) => `w${index}`));
        const excluded = workers.filter(({ name }) => names.has(name));
        const found = loads.emptiest(task, new WorkerList(excluded));
        expect(found?.worker.name).toBe(scan(loads, running, names)?.worker.name);
        const load = loads.of(workers[worker % n]!) as WorkerLoad;
        loads.setMemory(load, memory);
      }
    }),
  );
});

it('a worker that is not registered has no load', () => {
  const bench = new AmmBench();
  const gone = bench.worker('gone', 7);
  bench.worker('stays');
  bench.cluster.removeWorker(gone);
  const loads = new WorkerLoads(bench.cluster, 'process').refresh();
  expect(loads.of(gone)).toBeUndefined();
  expect(loads.of({ rank: 0 } as WorkerView)).toBeUndefined();
  expect([...loads.all].map(({ worker }) => worker.name)).toEqual(['stays']);
});

it('workers are found by address, name or host, and not gone through for each name that fits none', () => {
  const bench = new AmmBench();
  const [a, b] = [bench.worker('a'), bench.worker('b')];
  const { cluster } = bench;
  const walks = vi.spyOn(cluster.workers, 'values');
  const strangers = Array.from({ length: 100 }, (_, n) => `stranger-${n}`);
  const { found, unknown } = findWorkers(cluster, [b.address, 'a', ...strangers]);
  expect(found).toEqual([b, a]);
  expect(unknown).toEqual(strangers);
  expect(walks.mock.calls.length).toBeLessThan(5);
  const onHost = [...cluster.workers.values()].filter(({ host }) => host === a.host);
  expect(findWorkers(cluster, [a.host]).found).toEqual(onHost);
  expect(findWorkers(cluster, [a.host], 'name').unknown).toEqual([a.host]);
});
