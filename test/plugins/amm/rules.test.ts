import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  drop,
  replicate,
  type Suggestion,
  type SuggestionGenerator,
  type TaskView,
  type WorkerView,
} from '../../../core/api/index.ts';
import type { TaskState, WorkerState } from '../../../core/state/task.ts';
import { trust } from '../../../core/shared/read-only.ts';
import { KeepReplicas } from '../../../policies/amm/keep-replicas.ts';
import { ReduceReplicas } from '../../../policies/amm/reduce-replicas.ts';
import { RetireWorker } from '../../../policies/amm/retire-worker.ts';
import { AmmBench, policyOf } from './amm-kit.ts';

const STATUSES = ['running', 'running', 'running', 'paused', 'closing-gracefully'] as const;

/** A cluster of up to six workers with results on some of them, and tasks that read these. */
const clusters = fc
  .record({
    workers: fc.array(fc.record({ memory: fc.nat(4), status: fc.constantFrom(...STATUSES) }), {
      minLength: 1,
      maxLength: 6,
    }),
    tasks: fc.array(
      fc.record({
        holders: fc.uniqueArray(fc.nat(5), { maxLength: 6 }),
        nbytes: fc.nat(5),
        readers: fc.array(fc.option(fc.nat(5), { nil: undefined }), { maxLength: 3 }),
      }),
      { minLength: 1, maxLength: 6 },
    ),
  })
  .map(({ workers: specs, tasks: results }) => {
    const bench = new AmmBench();
    const workers = specs.map(({ memory, status }, n) => bench.worker(`w${n}`, memory, status));
    const at = (n: number): WorkerState => workers[n % workers.length]!;
    const tasks = results.map(({ holders, nbytes, readers }, n) => {
      const task = bench.task(`x${n}`, [...new Set(holders.map(at))], nbytes);
      readers.forEach((place, reader) => {
        bench.reader(`r${n}-${reader}`, [task], place === undefined ? undefined : at(place));
      });
      return task;
    });
    return { bench, workers, tasks };
  });

const questions = fc.array(
  fc.record({
    isDrop: fc.boolean(),
    task: fc.nat(5),
    candidates: fc.option(fc.array(fc.nat(5), { maxLength: 4 }), { nil: undefined }),
  }),
  { maxLength: 30 },
);

/** The worker that the documents name, by their words alone. */
class Rules {
  readonly memory = new Map<WorkerView, number>();
  readonly coming = new Map<TaskView, Set<WorkerView>>();
  readonly going = new Map<TaskView, Set<WorkerView>>();

  constructor(private readonly bench: AmmBench) {
    for (const worker of bench.cluster.workers.values()) {
      this.memory.set(worker, worker.memory.process);
    }
  }

  answer({ op, task, candidates }: Suggestion): WorkerView | undefined {
    const chosen =
      op === 'replicate' ? this.recipient(task, candidates) : this.dropper(task, candidates);
    if (chosen === undefined) return undefined;
    const table = op === 'replicate' ? this.coming : this.going;
    table.set(task, new Set([...(table.get(task) ?? []), chosen]));
    const change = op === 'replicate' ? task.nbytes : -task.nbytes;
    this.memory.set(chosen, Math.max(0, this.memory.get(chosen)! + change));
    return chosen;
  }

  private recipient(
    task: TaskView,
    candidates: Iterable<WorkerView> | undefined,
  ): WorkerView | undefined {
    if (task.state !== 'memory') return undefined;
    return [...(candidates ?? this.bench.cluster.running)]
      .filter((worker) => worker.status === 'running')
      .filter((worker) => !task.whoHas.has(worker) && this.coming.get(task)?.has(worker) !== true)
      .sort((a, b) => this.memory.get(a)! - this.memory.get(b)! || a.rank - b.rank)[0];
  }

  private dropper(
    task: TaskView,
    candidates: Iterable<WorkerView> | undefined,
  ): WorkerView | undefined {
    const gone = this.going.get(task) ?? new Set();
    if (task.whoHas.size - gone.size < 2) return undefined;
    const holders = [...new Set(candidates ?? task.whoHas)].filter(
      (worker) => task.whoHas.has(worker) && !gone.has(worker),
    );
    const isBusy = (worker: WorkerView): boolean =>
      task.waiters.some(({ processingOn }) => processingOn === worker);
    const free = holders.filter((worker) => !isBusy(worker));
    const busy = holders.filter(isBusy);
    const isLastRunning = free.length === 1 && free[0]!.status === 'running';
    if (isLastRunning && busy.length > 0 && busy.every(({ status }) => status !== 'running')) {
      return undefined;
    }
    const isLeaving = (worker: WorkerView): number => Number(worker.status !== 'running');
    return free.sort(
      (a, b) =>
        isLeaving(b) - isLeaving(a) || this.memory.get(b)! - this.memory.get(a)! || a.rank - b.rank,
    )[0];
  }
}

it('every suggestion is answered as the documents say, and memory follows', () => {
  fc.assert(
    fc.property(clusters, questions, ({ bench, workers, tasks }, asked) => {
      const rules = new Rules(bench);
      const policy = policyOf(function* (amm): SuggestionGenerator {
        for (const { isDrop, task: n, candidates: places } of asked) {
          const task = tasks[n % tasks.length]!;
          const candidates = places?.map((place) => workers[place % workers.length]!);
          const suggestion = isDrop ? drop(task, candidates) : replicate(task, candidates);
          const chosen = yield suggestion;
          expect(chosen?.name).toBe(rules.answer(suggestion)?.name);
          expect([...amm.workersMemory]).toEqual([...rules.memory]);
          const pending = amm.pending.get(task);
          expect([...(pending?.replicate ?? [])]).toEqual([...(rules.coming.get(task) ?? [])]);
          expect([...(pending?.drop ?? [])]).toEqual([...(rules.going.get(task) ?? [])]);
        }
      });
      trust(policy.constructor); // It compares the state itself.
      bench.manager([policy]).runOnce();
      expect(bench.errors).toEqual([]);
    }),
    { numRuns: 300 },
  );
});

it('whatever policies run, no result is lost and none is taken from a task that reads it', () => {
  fc.assert(
    fc.property(clusters, fc.nat(5), ({ bench, workers, tasks }, leaving) => {
      const worker = workers[leaving % workers.length]!;
      bench.setStatus(worker, 'closing-gracefully');
      const before = tasks.filter(({ whoHas }) => whoHas.size > 0);
      const inUse = before.flatMap((task) =>
        readPlaces(task).map((place) => [task, place] as const),
      );
      const retire = new RetireWorker({ address: worker.address });
      const manager = bench.manager([new KeepReplicas({}), retire, new ReduceReplicas({})]);
      for (let round = 0; round < 6; round++) {
        manager.runOnce();
        bench.enactAll();
        for (const task of before) expect(task.whoHas.size).toBeGreaterThan(0);
        for (const [task, place] of inUse) expect(task.whoHas.has(place)).toBe(true);
      }
      // It ends: it has moved everything, or it cannot, or a task that reads a copy holds it back.
      const isHeldBack = inUse.some(([, place]) => place === worker);
      if (!isHeldBack) expect(manager.policies.has(retire)).toBe(false);
      if (!retire.noRecipients) {
        const only = [...worker.hasWhat].filter(({ whoHas }) => whoHas.size === 1);
        expect(only).toEqual([]);
      }
    }),
    { numRuns: 300 },
  );
});

/** Workers that hold the result and process a task that reads it. */
function readPlaces(task: TaskState): WorkerState[] {
  return [...task.whoHas].filter((worker) =>
    task.waiters.some(({ processingOn }) => processingOn === worker),
  );
}
