import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { WorkerState } from '../../../core/state/task.ts';
import {
  planRebalance,
  type RebalanceMove,
  type RebalanceRules,
} from '../../../policies/amm/balance-memory.ts';
import { AmmBench } from './amm-kit.ts';

const EVEN: RebalanceRules = { measure: 'managed', senderMin: 0, recipientMax: 1, gap: 0 };
const DASK: RebalanceRules = { measure: 'managed', senderMin: 0.3, recipientMax: 0.6, gap: 0.1 };

/** Workers with a limit of 1000 bytes that hold results of these sizes. */
function cluster(...results: readonly (readonly number[])[]): {
  bench: AmmBench;
  workers: WorkerState[];
} {
  const bench = new AmmBench();
  const workers = results.map((sizes, index) => {
    const worker = bench.worker(`w${index}`, 1e6, 'running', 1000);
    sizes.forEach((nbytes, n) => bench.task(`w${index}-${n}`, [worker], nbytes));
    return worker;
  });
  return { bench, workers };
}

const after = (workers: readonly WorkerState[], moves: readonly RebalanceMove[]): number[] => {
  const nbytes = new Map(workers.map((worker) => [worker.address, worker.nbytes]));
  for (const { task, from, to } of moves) {
    nbytes.set(from.address, nbytes.get(from.address)! - task.nbytes);
    nbytes.set(to.address, nbytes.get(to.address)! + task.nbytes);
  }
  return [...nbytes.values()];
};

const named = (moves: readonly RebalanceMove[]): string[] =>
  moves.map(({ task, from, to }) => `${task.key}: ${from.name} -> ${to.name}`);

describe('a plan to rebalance', () => {
  it('moves the oldest results of the fullest worker to the emptiest', () => {
    const { workers } = cluster([100, 100, 100, 100], [], [100]);
    const moves = planRebalance(workers, EVEN);
    expect(named(moves)).toEqual(['w0-0: w0 -> w1']);
    expect(after(workers, moves)).toEqual([300, 100, 100]);
  });

  it('does nothing where all is even, or within the band', () => {
    expect(planRebalance(cluster([300], [300]).workers, EVEN)).toEqual([]);
    const { workers } = cluster([340], [300]);
    expect(planRebalance(workers, { ...EVEN, gap: 0.1 })).toEqual([]);
  });

  it('takes nothing from a worker that uses little', () => {
    const { workers } = cluster([100, 100], []);
    expect(planRebalance(workers, DASK)).toEqual([]);
  });

  it('gives nothing to a worker that uses much', () => {
    const { workers } = cluster([450, 450], [650]);
    const rules = { ...EVEN, recipientMax: 0.6 };
    expect(planRebalance(workers, rules)).toEqual([]);
  });

  it('never moves so much that sender and recipient change sides', () => {
    const { workers } = cluster([600], [0]);
    expect(planRebalance(workers, EVEN)).toEqual([]);
    const small = cluster([500, 100, 50], []).workers;
    expect(named(planRebalance(small, EVEN))).toEqual(['w0-1: w0 -> w1', 'w0-2: w0 -> w1']);
  });

  it('passes a worker over that has the result already', () => {
    const { bench, workers } = cluster([], [], [50]);
    const [full, empty, other] = workers;
    bench.task('both', [full!, empty!], 10);
    for (let n = 0; n < 4; n++) bench.task(`x${n}`, [full!], 100);
    const [first] = planRebalance([full!, empty!, other!], EVEN);
    expect(first).toMatchObject({ task: { key: 'both' }, to: { name: 'w2' } });
  });

  it('moves only what it is allowed to', () => {
    const { workers } = cluster([100, 100, 100, 100], []);
    const moves = planRebalance(workers, EVEN, ({ key }) => key === 'w0-3');
    expect(named(moves)).toEqual(['w0-3: w0 -> w1']);
  });

  it('gives nothing to a worker that is not running, and takes no actor', () => {
    const { bench, workers } = cluster([100, 100, 100], []);
    bench.setStatus(workers[1]!, 'paused');
    expect(planRebalance(workers, EVEN)).toEqual([]);
    bench.setStatus(workers[1]!, 'running');
    for (const task of workers[0]!.hasWhat) task.isActor = true;
    expect(planRebalance(workers, EVEN)).toEqual([]);
  });

  it('of no workers is empty', () => {
    expect(planRebalance([], EVEN)).toEqual([]);
  });

  it('brings no worker to the other side of the mean, and makes the spread no wider', () => {
    const sizes = fc.array(fc.integer({ min: 0, max: 300 }), { maxLength: 12 });
    fc.assert(
      fc.property(fc.array(sizes, { minLength: 1, maxLength: 6 }), (results) => {
        const { workers } = cluster(...results);
        const before = workers.map(({ nbytes }) => nbytes);
        const mean = Math.floor(before.reduce((sum, n) => sum + n, 0) / before.length);
        const moves = planRebalance(workers, EVEN);
        const then = after(workers, moves);
        then.forEach((nbytes, index) => {
          const was = before[index]!;
          if (was >= mean) expect(nbytes).toBeGreaterThanOrEqual(mean);
          else expect(nbytes).toBeLessThanOrEqual(mean);
        });
        expect(new Set(moves.map(({ task }) => task)).size).toBe(moves.length);
        expect(Math.max(...then)).toBeLessThanOrEqual(Math.max(...before));
      }),
    );
  });
});
