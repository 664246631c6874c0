import { beforeEach, describe, expect, it } from 'vitest';
import type { AmmView } from '../../../core/api/index.ts';
import { setWantedReplicas } from '../../../core/state/relations.ts';
import type { WorkerState } from '../../../core/state/task.ts';
import { BalanceMemory, type BalanceMemoryOptions } from '../../../policies/amm/balance-memory.ts';
import { KeepReplicas } from '../../../policies/amm/keep-replicas.ts';
import { ReduceReplicas } from '../../../policies/amm/reduce-replicas.ts';
import { RetireWorker } from '../../../policies/amm/retire-worker.ts';
import { AmmBench } from './amm-kit.ts';

let bench: AmmBench;
let a: WorkerState;
let b: WorkerState;
let c: WorkerState;
beforeEach(() => {
  bench = new AmmBench();
  a = bench.worker('a', 300);
  b = bench.worker('b', 100);
  c = bench.worker('c', 200);
});

const holders = (key: string): string[] =>
  [...bench.cluster.tasks.get(key)!.whoHas].map(({ name }) => name).sort();

describe('retire-worker', () => {
  const retire = (...workers: WorkerState[]): RetireWorker[] => {
    for (const worker of workers) bench.setStatus(worker, 'closing-gracefully');
    return workers.map(({ address }) => new RetireWorker({ address }));
  };

  it('copies what only its worker has, drops what others have too, and leaves', () => {
    bench.task('only', [a]);
    bench.task('shared', [a, c]);
    const [policy] = retire(a);
    const manager = bench.manager([policy!]);
    manager.runOnce();
    expect(bench.moves).toEqual([
      {
        acquire: [{ worker: 'b', keys: ['only'] }],
        remove: [{ worker: 'a', keys: ['shared'] }],
      },
    ]);
    expect([policy!.unique().count, policy!.noRecipients, manager.policies.size]).toEqual([
      1,
      false,
      1,
    ]);
    bench.enactAll();
    expect(policy!.unique().count).toBe(0);
    manager.runOnce();
    bench.enactAll();
    expect([holders('only'), holders('shared')]).toEqual([['b'], ['c']]);
    expect(manager.policies.size).toBe(0);
    expect(policy!.unique().count).toBe(0);
  });

  it('asks for each copy once while it is under way, and for another when it is late', () => {
    bench.task('only', [a]);
    const manager = bench.manager(retire(a));
    manager.runOnce();
    expect(manager.runOnce()).toMatchObject({ suggested: 0, accepted: 0 });
    expect(manager.policies.size).toBe(1);
    bench.nowMs += 31_000;
    expect(manager.runOnce()).toMatchObject({ suggested: 1, accepted: 1 });
  });

  it('chooses another recipient when the first stops running', () => {
    bench.task('only', [a]);
    const manager = bench.manager(retire(a));
    manager.runOnce();
    bench.setStatus(b, 'paused');
    manager.runOnce();
    expect(bench.moves.flatMap(({ acquire }) => acquire.map(({ worker }) => worker))).toEqual([
      'b',
      'c',
    ]);
  });

  it('gives up when no worker can take its results, and says so', () => {
    bench.task('only', [a]);
    bench.setStatus(b, 'paused');
    const [policy] = retire(a, c);
    const manager = bench.manager([policy!]);
    manager.runOnce();
    expect([policy!.noRecipients, manager.policies.size]).toEqual([true, 0]);
  });

  it('does not touch a worker with an actor', () => {
    const actor = bench.task('actor', [a]);
    actor.isActor = true;
    a.actors.add(actor);
    const [policy] = retire(a);
    const manager = bench.manager([policy!]);
    expect(manager.runOnce().suggested).toBe(0);
    expect([policy!.noRecipients, manager.policies.size]).toEqual([true, 0]);
  });

  it('leaves when its worker has left, or holds nothing', () => {
    const policies = [new RetireWorker({ address: 'nobody' }), ...retire(a)];
    const manager = bench.manager(policies);
    manager.runOnce();
    expect(policies.map((policy) => [policy.noRecipients, policy.unique().count])).toEqual([
      [false, 0],
      [false, 0],
    ]);
    expect(manager.policies.size).toBe(0);
  });

  it('two holders that leave at once: one copy goes to a third worker', () => {
    bench.task('x', [a, b]);
    const manager = bench.manager(retire(a, b));
    for (let round = 0; round < 3; round++) {
      manager.runOnce();
      bench.enactAll();
    }
    expect(holders('x')).toEqual(['c']);
    expect(manager.policies.size).toBe(0);
  });

  it('is not done while the only other copy is on a worker that leaves as well', () => {
    const task = bench.task('x', [a, b]);
    bench.reader('y', [task], a);
    bench.reader('z', [task], b);
    const [ofA, ofB] = retire(a, b);
    bench.manager([ofA!, ofB!]);
    expect([ofA!.unique().count, ofB!.unique().count]).toEqual([1, 1]);
  });

  it('does not play ping-pong with reduce-replicas while a task on its worker reads the result', () => {
    const task = bench.task('x', [a]);
    bench.reader('y', [task], a);
    const manager = bench.manager([...retire(a), new ReduceReplicas({})]);
    manager.runOnce();
    bench.enactAll();
    expect(holders('x')).toEqual(['a', 'b']);
    for (let round = 0; round < 3; round++) manager.runOnce();
    expect(bench.moves).toEqual([]);
  });
});

describe('copies that were asked for', () => {
  it('are made, and left alone by reduce-replicas', () => {
    const task = bench.task('x', [a]);
    setWantedReplicas(bench.cluster, task, 2);
    const manager = bench.manager([new KeepReplicas({}), new ReduceReplicas({})]);
    manager.runOnce();
    bench.enactAll();
    expect(holders('x')).toEqual(['a', 'b']);
    expect(manager.runOnce()).toMatchObject({ suggested: 0, accepted: 0 });
  });

  it('beyond their number are dropped', () => {
    const task = bench.task('x', [a, b, c]);
    setWantedReplicas(bench.cluster, task, 2);
    bench.manager([new KeepReplicas({}), new ReduceReplicas({})]).runOnce();
    bench.enactAll();
    expect(holders('x')).toEqual(['b', 'c']);
  });

  it('without a number are made on every worker, also on one that comes later', () => {
    const task = bench.task('x', [a]);
    setWantedReplicas(bench.cluster, task, Infinity);
    const manager = bench.manager([new KeepReplicas({}), new ReduceReplicas({})]);
    manager.runOnce();
    bench.enactAll();
    bench.worker('late');
    expect(manager.runOnce()).toMatchObject({ suggested: 1, accepted: 1 });
    bench.enactAll();
    expect(holders('x')).toEqual(['a', 'b', 'c', 'late']);
  });

  it('more than there are workers: one question a round, which is refused', () => {
    const task = bench.task('x', [a, b]);
    setWantedReplicas(bench.cluster, task, 5);
    bench.setStatus(c, 'paused');
    expect(bench.manager([new KeepReplicas({})]).runOnce()).toMatchObject({
      suggested: 1,
      accepted: 0,
    });
  });

  it('are waited for while there is no result', () => {
    setWantedReplicas(bench.cluster, bench.task('x'), 2);
    expect(bench.manager([new KeepReplicas({})]).runOnce().suggested).toBe(0);
  });

  it('follow a holder that leaves', () => {
    const task = bench.task('x', [a, b]);
    setWantedReplicas(bench.cluster, task, 2);
    bench.setStatus(a, 'closing-gracefully');
    const policies = [new KeepReplicas({}), new RetireWorker({ address: 'a' })];
    const manager = bench.manager([...policies, new ReduceReplicas({})]);
    for (let round = 0; round < 3; round++) {
      manager.runOnce();
      bench.enactAll();
    }
    expect(holders('x')).toEqual(['b', 'c']);
  });
});

describe('balance-memory', () => {
  const options: BalanceMemoryOptions = {
    senderMin: 0.3,
    recipientMax: 0.6,
    gap: 0.1,
    bytesPerRound: 1e9,
  };
  const limit = 1000;

  /** The memory of each worker is that of its results. */
  function balance(more: Partial<BalanceMemoryOptions> = {}) {
    const policy = new BalanceMemory({ ...options, ...more });
    const manager = bench.manager([policy], 'managed');
    return {
      round: () => {
        const result = manager.runOnce();
        bench.enactAll();
        return result;
      },
    };
  }

  function workers(...bytes: number[]): WorkerState[] {
    bench = new AmmBench();
    return bytes.map((count, index) => {
      const worker = bench.worker(`w${index}`, 1e6, 'running', limit);
      for (let n = 0; n < count / 100; n++) bench.task(`w${index}-${n}`, [worker], 100);
      return worker;
    });
  }

  const bytesOf = (all: readonly WorkerState[]): number[] => all.map(({ nbytes }) => nbytes);

  it('moves results from the fullest to the emptiest until they are even', () => {
    const all = workers(900, 100, 200);
    const { round } = balance();
    round();
    round();
    expect(bytesOf(all)).toEqual([400, 400, 400]);
    expect(round()).toMatchObject({ suggested: 0, accepted: 0 });
  });

  it('compares parts of the limit, not bytes', () => {
    bench = new AmmBench();
    const small = bench.worker('small', 1e6, 'running', 1000);
    const large = bench.worker('large', 1e6, 'running', 10_000);
    for (let n = 0; n < 6; n++) bench.task(`s${n}`, [small], 100);
    for (let n = 0; n < 12; n++) bench.task(`l${n}`, [large], 100);
    const { round } = balance();
    for (let n = 0; n < 3; n++) round();
    // Of the small one 60 % were in use, of the large one 12 %.
    expect(bytesOf([small, large])).toEqual([200, 1600]);
  });

  it('leaves workers alone that use little, or have no limit', () => {
    workers(200, 0);
    expect(balance().round().suggested).toBe(0);
    bench = new AmmBench();
    const full = bench.worker('full', 1e6, 'running', 0);
    bench.worker('empty', 0, 'running', 0);
    bench.task('x', [full], 100_000);
    expect(balance().round().suggested).toBe(0);
  });

  it('limits the bytes on their way', () => {
    workers(900, 0);
    const { round } = balance({ bytesPerRound: 250 });
    expect(round().accepted).toBe(2);
  });

  it('moves one result that is larger than that, alone', () => {
    bench = new AmmBench();
    const full = bench.worker('full', 1e6, 'running', limit);
    bench.worker('empty', 1e6, 'running', limit);
    for (const key of ['x', 'y', 'z']) bench.task(key, [full], 300);
    expect(balance({ bytesPerRound: 10 }).round().accepted).toBe(1);
  });

  it('leaves alone what a task reads that could run, and what waits for other inputs goes', () => {
    const [full] = workers(900, 0);
    const tasks = [...full!.hasWhat];
    for (const task of tasks.slice(0, 7)) bench.reader(`reads-${task.key}`, [task], full);
    bench.reader('later', [tasks[7]!, bench.task('missing')]);
    expect(balance().round().accepted).toBe(2);
    expect(bytesOf([full!])).toEqual([900]);
  });

  it('skips what is on disk: the oldest results, as many bytes as were spilled', () => {
    const [full, empty] = workers(900, 0);
    full!.metrics = { ...full!.metrics, spilledMemoryBytes: 200 };
    balance().round();
    expect([...empty!.hasWhat][0]?.key).toBe('w0-2');
  });

  it('never fills a worker beyond its part', () => {
    const all = workers(900, 900, 500);
    balance({ recipientMax: 0.55, gap: 0.02 }).round();
    expect(bytesOf(all)[2]).toBe(500);
  });

  it('keeps the original while it is in use, and drops it later', () => {
    const [full, empty] = workers(900, 0);
    const { round } = balance();
    round();
    const [moved] = [...empty!.hasWhat];
    const reader = bench.reader('reader', [moved!], full);
    round();
    expect(full!.hasWhat.has(moved!)).toBe(true);
    reader.processingOn = undefined;
    round();
    expect(full!.hasWhat.has(moved!)).toBe(false);
  });

  it('can be tested without a manager', () => {
    const view: Partial<AmmView> = {
      cluster: bench.cluster,
      scheduler: bench.cluster,
      workersMemory: new Map(),
      pending: new Map(),
      policies: new Set(),
      intervalMs: 2000,
      measure: 'process',
      copies: (task) => task.whoHas.size,
    };
    expect([...new BalanceMemory(options).run(view as AmmView)]).toEqual([]);
  });
});
