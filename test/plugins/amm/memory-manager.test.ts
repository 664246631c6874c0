import { beforeEach, describe, expect, it } from 'vitest';
import {
  ActiveMemoryManagerPolicy,
  type AmmView,
  defineAmmPolicy,
  drop,
  replicate,
  type Suggestion,
  type SuggestionGenerator,
} from '../../../core/api/index.ts';
import { EnsureBroadcast } from '../../../policies/amm/ensure-broadcast.ts';
import { ReduceReplicas } from '../../../policies/amm/reduce-replicas.ts';
import type { WorkerState } from '../../../core/state/task.ts';
import { AmmBench, policyOf, Scripted } from './amm-kit.ts';

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

describe('one more copy', () => {
  it('goes to the running worker with the least memory that has none', () => {
    const task = bench.task('x', [a]);
    expect(bench.ask(replicate(task))).toEqual(['b']);
    expect(bench.moves).toEqual([{ acquire: [{ worker: 'b', keys: ['x'] }], remove: [] }]);
  });

  it('counts what was accepted before in the round', () => {
    const x = bench.task('x', [a], 150);
    const y = bench.task('y', [a], 10);
    expect(bench.ask(replicate(x), replicate(y), replicate(x), replicate(x))).toEqual([
      ...['b', 'c', 'c'],
      undefined,
    ]);
    expect(bench.moves[0]?.acquire).toEqual([
      { worker: 'b', keys: ['x'] },
      { worker: 'c', keys: ['y', 'x'] },
    ]);
  });

  it('ties go to the lowest rank, whatever the order of the candidates', () => {
    const even = new AmmBench();
    const [first, second, third] = ['p', 'q', 'r'].map((name) => even.worker(name, 50));
    const task = even.task('x', [first!]);
    expect(even.ask(replicate(task, [third!, second!]))).toEqual(['q']);
  });

  it('goes to a given candidate only', () => {
    expect(bench.ask(replicate(bench.task('x', [a]), [c, a]))).toEqual(['c']);
  });

  it.each<[string, (t: AmmBench) => Suggestion]>([
    ['the task is not in memory', (t) => replicate(t.task('x'))],
    ['the task is processing', (t) => replicate(t.reader('x', [], a))],
    [
      'the task is an actor',
      (t) => {
        const task = t.task('x', [a]);
        task.isActor = true;
        return replicate(task);
      },
    ],
    ['no candidate is given', (t) => replicate(t.task('x', [a]), [])],
    ['every worker has it', (t) => replicate(t.task('x', [a, b, c]))],
    ['every candidate has it', (t) => replicate(t.task('x', [a, b]), [a, b])],
    ['the candidate is paused', (t) => replicate(t.task('x', [a]), [t.worker('p', 0, 'paused')])],
    [
      'the candidate is retiring',
      (t) => replicate(t.task('x', [a]), [t.worker('r', 0, 'closing-gracefully')]),
    ],
    [
      'the candidate has left',
      (t) => {
        const gone = t.worker('gone');
        t.cluster.removeWorker(gone);
        return replicate(t.task('x', [a]), [gone]);
      },
    ],
  ])('is refused when %s', (_reason, suggest) => {
    expect(bench.ask(suggest(bench))).toEqual([undefined]);
    expect(bench.moves).toEqual([]);
  });
});

describe('one copy less', () => {
  it('goes from the worker with the most memory', () => {
    const task = bench.task('x', [a, b, c]);
    expect(bench.ask(drop(task), drop(task), drop(task))).toEqual(['a', 'c', undefined]);
    expect(bench.moves).toEqual([
      {
        acquire: [],
        remove: [
          { worker: 'a', keys: ['x'] },
          { worker: 'c', keys: ['x'] },
        ],
      },
    ]);
  });

  it('counts what was accepted before, but never below nothing', () => {
    const x = bench.task('x', [a, b], 250);
    const y = bench.task('y', [a, b], 1);
    const memory: number[] = [];
    const policy = policyOf(function* (amm: AmmView): SuggestionGenerator {
      yield drop(x);
      memory.push(amm.workersMemory.get(a) ?? NaN);
      yield drop(y);
      memory.push(amm.workersMemory.get(b) ?? NaN);
      yield drop(bench.task('z', [b, c], 500));
      memory.push(amm.workersMemory.get(c) ?? NaN);
    });
    bench.manager([policy]).runOnce();
    expect(memory).toEqual([50, 99, 0]);
  });

  it('a holder that is not running goes first, whatever its memory', () => {
    const paused = bench.worker('paused', 1, 'paused');
    expect(bench.ask(drop(bench.task('x', [a, paused])))).toEqual(['paused']);
  });

  it('among holders that are not running, the one with the most memory', () => {
    const small = bench.worker('small', 1, 'paused');
    const large = bench.worker('large', 2, 'closing-gracefully');
    expect(bench.ask(drop(bench.task('x', [a, small, large])))).toEqual(['large']);
  });

  it('ties go to the lowest rank', () => {
    const even = new AmmBench();
    const [first, second] = ['p', 'q'].map((name) => even.worker(name, 50));
    expect(even.ask(drop(even.task('x', [second!, first!])))).toEqual(['p']);
  });

  it('not from where a task is processing that reads it', () => {
    const task = bench.task('x', [a, b, c]);
    bench.reader('y', [task], a);
    expect(bench.ask(drop(task))).toEqual(['c']);
  });

  it('a reader that waits elsewhere is no obstacle', () => {
    const task = bench.task('x', [a, b]);
    bench.reader('y', [task]);
    expect(bench.ask(drop(task))).toEqual(['a']);
  });

  it.each<[string, (t: AmmBench) => Suggestion]>([
    ['it is the last copy', (t) => drop(t.task('x', [a]))],
    ['there is none', (t) => drop(t.task('x'))],
    ['no candidate is given', (t) => drop(t.task('x', [a, b]), [])],
    ['no candidate has a copy', (t) => drop(t.task('x', [a, b]), [c])],
    [
      'the task is an actor',
      (t) => {
        const task = t.task('x', [a, b]);
        task.isActor = true;
        return drop(task);
      },
    ],
    [
      'every holder needs it',
      (t) => {
        const task = t.task('x', [a, b]);
        t.reader('y', [task], a);
        t.reader('z', [task], b);
        return drop(task);
      },
    ],
    [
      'the candidate needs it',
      (t) => {
        const task = t.task('x', [a, b]);
        t.reader('y', [task], a);
        return drop(task, [a]);
      },
    ],
    [
      'it would be the only running copy while a paused holder is busy with it',
      (t) => {
        const paused = t.worker('paused', 0, 'paused');
        const task = t.task('x', [a, paused]);
        t.reader('y', [task], paused);
        return drop(task);
      },
    ],
  ])('is refused when %s', (_reason, suggest) => {
    expect(bench.ask(suggest(bench))).toEqual([undefined]);
    expect(bench.moves).toEqual([]);
  });

  it('two running copies: one goes even while a paused holder is busy with it', () => {
    const paused = bench.worker('paused', 0, 'paused');
    const task = bench.task('x', [a, b, paused]);
    bench.reader('y', [task], paused);
    expect(bench.ask(drop(task))).toEqual(['a']);
  });

  it('the only running copy goes when one of the busy holders runs', () => {
    const paused = bench.worker('paused', 0, 'paused');
    const task = bench.task('x', [a, b, paused]);
    bench.reader('y', [task], paused);
    bench.reader('z', [task], b);
    expect(bench.ask(drop(task))).toEqual(['a']);
  });

  it('asking a thousand times is fine', () => {
    const task = bench.task('x', [a, b, c]);
    const answers = bench.ask(...Array.from({ length: 1000 }, () => drop(task)));
    expect(answers.filter((name) => name !== undefined)).toEqual(['a', 'c']);
    expect(bench.errors).toEqual([]);
  });
});

describe('a round', () => {
  it('shows pending and memory to policies, and nothing between rounds', () => {
    const task = bench.task('x', [a, b], 10);
    const seen: unknown[] = [];
    const policy = policyOf(function* (amm) {
      yield replicate(task);
      yield drop(task);
      const moves = amm.pending.get(task);
      seen.push([...(moves?.replicate ?? [])], [...(moves?.drop ?? [])]);
      seen.push([...amm.workersMemory.values()]);
    });
    const manager = bench.manager([policy]);
    expect(manager.runOnce()).toMatchObject({ suggested: 2, accepted: 2 });
    expect(seen).toEqual([[c], [a], [290, 100, 210]]);
    expect(manager.pending.size).toBe(0);
    expect(manager.workersMemory.size).toBe(0);
  });

  it('compares by the configured measure', () => {
    const measured = new AmmBench();
    const large = measured.worker('large', 500);
    const full = measured.worker('full', 400);
    measured.task('ballast', [full], 350);
    const task = measured.task('x', [large, full], 10);
    const policy = new Scripted([drop(task)]);
    measured.manager([policy], 'managed').runOnce();
    expect(policy.chosen).toEqual([full]);
  });

  it('a policy that throws ends its own round; its earlier suggestions stand, others continue', () => {
    const task = bench.task('x', [a, b, c]);
    let cleaned = false;
    const cause = new Error('not today');
    const bad = policyOf(function* () {
      try {
        yield drop(task);
        throw cause;
      } finally {
        cleaned = true;
      }
    });
    const good = new Scripted([drop(task)]);
    bench.manager([bad, good]).runOnce();
    expect(cleaned).toBe(true);
    expect(good.chosen).toEqual([c]);
    expect(bench.moves[0]?.remove.map(({ worker }) => worker)).toEqual(['a', 'c']);
    expect(bench.errors.map(({ code, message }) => `${code} ${message}`)).toEqual([
      'ERR_POLICY policy "Policy" of the Active Memory Manager threw: not today; what it suggested before stands',
    ]);
    expect(bench.errors[0]?.cause).toBe(cause);
  });

  it('a suggestion that is none ends the policy, whose finally runs', () => {
    let cleaned = false;
    const bad = policyOf(function* () {
      try {
        yield { op: 'move', task: bench.task('x', [a]) } as unknown as Suggestion;
      } finally {
        cleaned = true;
      }
    });
    bench.manager([bad]).runOnce();
    expect(cleaned).toBe(true);
    expect(bench.errors[0]?.message).toContain(
      '"move" is not a suggestion; yield replicate(task) or drop(task)',
    );
  });

  it('what is no suggestion, or asynchronous, ends the policy with advice', () => {
    const yields = (value: unknown) =>
      policyOf(function* () {
        yield value as Suggestion;
      });
    const later = policyOf(
      // eslint-disable-next-line @typescript-eslint/require-await
      async function* () {
        yield drop(bench.task('y', [a, b]));
      } as unknown as () => SuggestionGenerator,
    );
    const noGenerator = policyOf((() => undefined) as unknown as () => SuggestionGenerator);
    const policies = [yields(undefined), yields({}), yields(['move']), later, noGenerator];
    bench.manager(policies).runOnce();
    expect(bench.errors.map(({ message }) => /threw: ([^;]*);/.exec(message)?.[1])).toEqual([
      'undefined is not a suggestion',
      '"undefined" is not a suggestion',
      '"move" is not a suggestion',
      'its run is asynchronous',
      'its run returns undefined and no generator',
    ]);
  });

  it('a suggestion may be written as an array, as in Dask', () => {
    const task = bench.task('x', [a, b, c]);
    const chosen: unknown[] = [];
    const policy = policyOf(function* () {
      chosen.push(yield ['drop', task, [c]] as unknown as Suggestion);
      chosen.push(yield ['drop', task] as unknown as Suggestion);
      chosen.push(yield ['replicate', task, null] as unknown as Suggestion);
    });
    bench.manager([policy]).runOnce();
    expect(chosen).toEqual([c, a, undefined]);
  });

  it('an endless policy is stopped by its time, its finally runs, and what it had stands', () => {
    const task = bench.task('x', [a, b]);
    let cleaned = false;
    const endless = policyOf(function* () {
      try {
        for (;;) {
          bench.nowMs += 1;
          yield drop(task);
        }
      } finally {
        cleaned = true;
      }
    });
    bench.manager([endless]).runOnce();
    expect(cleaned).toBe(true);
    expect(bench.moves).toHaveLength(1);
    expect(bench.errors[0]?.message).toBe(
      'policy "Policy" of the Active Memory Manager made 1024 suggestions in one round without an end; it continues in the next round',
    );
  });

  it('an endless policy is stopped by the number of its suggestions when time stands still', () => {
    const task = bench.task('x');
    const endless = policyOf(function* () {
      for (;;) yield drop(task);
    });
    expect(bench.manager([endless]).runOnce().suggested).toBe(1_000_000);
    expect(bench.errors).toHaveLength(1);
  });

  it('cannot be started by a policy', () => {
    const manager = bench.manager([]);
    manager.policies.add(
      // eslint-disable-next-line require-yield
      policyOf(function* () {
        manager.runOnce();
      }),
    );
    manager.runOnce();
    expect(bench.errors[0]?.message).toContain('a policy cannot start another one');
  });

  it('a policy leaves by itself, and one that was removed in the round does not run', () => {
    const order: string[] = [];
    class Leaver extends ActiveMemoryManagerPolicy<string> {
      // eslint-disable-next-line require-yield
      override *run(): SuggestionGenerator {
        order.push(this.options);
        for (const policy of [...this.manager.policies]) this.manager.policies.delete(policy);
      }
    }
    const manager = bench.manager([new Leaver('first'), new Leaver('second')]);
    manager.runOnce();
    manager.runOnce();
    expect(order).toEqual(['first']);
    expect(manager.policies.size).toBe(0);
  });

  it('without anything accepted, nothing is asked of the kernel', () => {
    bench.manager([new ReduceReplicas({})]).runOnce();
    expect(bench.moves).toEqual([]);
  });
});

describe('requests under way', () => {
  it('are pending in later rounds and count as memory until they have arrived', () => {
    const task = bench.task('x', [a], 50);
    const seen: unknown[] = [];
    const look = policyOf(function* (amm) {
      seen.push([[...(amm.pending.get(task)?.replicate ?? [])], amm.workersMemory.get(b)]);
      seen.push(yield replicate(task, [b]));
    });
    const manager = bench.manager([look]);
    manager.runOnce();
    manager.runOnce();
    bench.enactAll();
    manager.runOnce();
    expect(seen).toEqual([[[], 100], b, [[b], 150], b, [[], 100], undefined]);
  });

  it('are forgotten when the result or the recipient is gone', () => {
    const x = bench.task('x', [a]);
    const y = bench.task('y', [a]);
    const manager = bench.manager([new Scripted([replicate(x, [b]), replicate(y, [c])])]);
    manager.runOnce();
    bench.cluster.removeWorker(b);
    y.state = 'released';
    const counted: number[] = [];
    manager.policies.clear();
    manager.policies.add(
      // eslint-disable-next-line require-yield
      policyOf(function* ({ pending }) {
        counted.push(pending.size);
      }),
    );
    manager.runOnce();
    expect(counted).toEqual([0]);
  });

  it('have more time the more their recipient waits for', () => {
    const large = bench.task('large', [a], 10e9);
    const small = bench.task('small', [a], 10);
    const policy = new Scripted([replicate(large, [b]), replicate(small, [b])]);
    const manager = bench.manager([policy]);
    // 100 MB a second: 10 GB take 100 s.
    for (const nowMs of [0, 229_000, 231_000]) {
      bench.nowMs = nowMs;
      manager.runOnce();
    }
    expect(policy.chosen).toEqual([b, b, b, b, b, b]);
    expect(bench.moves).toHaveLength(2);
  });
});

describe('many workers', () => {
  it('asking for all copies of a result at once gives each worker one', () => {
    const wide = new AmmBench();
    const [first] = Array.from({ length: 200 }, (_, index) => wide.worker(`w${index}`, index));
    const task = wide.task('x', [first!]);
    const chosen = wide.ask(...Array.from({ length: 250 }, () => replicate(task)));
    expect(new Set(chosen).size).toBe(200);
    expect(chosen.slice(0, 3)).toEqual(['w1', 'w2', 'w3']);
    expect(chosen.slice(199)).toEqual(Array(51).fill(undefined));
  });

  it('all copies but one are dropped from the fullest down', () => {
    const wide = new AmmBench();
    const all = Array.from({ length: 200 }, (_, index) => wide.worker(`w${index}`, index));
    const task = wide.task('x', all);
    const chosen = wide.ask(...Array.from({ length: 200 }, () => drop(task)));
    expect(chosen.slice(0, 2)).toEqual(['w199', 'w198']);
    expect(chosen.slice(198)).toEqual(['w1', undefined]);
  });
});

describe('reduce-replicas', () => {
  const kept = (): number => {
    const manager = bench.manager([new ReduceReplicas({})]);
    manager.runOnce();
    const dropped = bench.moves.flatMap(({ remove }) => remove).length;
    return 3 - dropped;
  };

  it('leaves one copy of results that no task reads', () => {
    bench.task('x', [a, b, c]);
    expect(kept()).toBe(1);
  });

  it.each([
    { onA: 1, onB: 0, waiting: 0, copies: 1 },
    { onA: 2, onB: 0, waiting: 0, copies: 1 },
    { onA: 1, onB: 1, waiting: 0, copies: 2 },
    { onA: 0, onB: 0, waiting: 2, copies: 2 },
    { onA: 1, onB: 1, waiting: 1, copies: 3 },
    { onA: 5, onB: 5, waiting: 0, copies: 2 },
    { onA: 25, onB: 0, waiting: 0, copies: 3 },
  ])(
    '$onA readers on a, $onB on b, $waiting not placed: $copies copies stay',
    ({ onA, onB, waiting, copies }) => {
      const task = bench.task('x', [a, b, c]);
      for (let index = 0; index < onA; index++) bench.reader(`a${index}`, [task], a);
      for (let index = 0; index < onB; index++) bench.reader(`b${index}`, [task], b);
      for (let index = 0; index < waiting; index++) bench.reader(`w${index}`, [task]);
      expect(kept()).toBe(copies);
    },
  );

  it('two of it in one round do not drop twice', () => {
    bench.task('x', [a, b, c]);
    bench.manager([new ReduceReplicas({}), new ReduceReplicas({})]).runOnce();
    expect(bench.moves[0]?.remove).toHaveLength(2);
  });

  it('drops again a copy that was suggested in the same round', () => {
    const task = bench.task('x', [a, b]);
    const manager = bench.manager([new Scripted([replicate(task)]), new ReduceReplicas({})]);
    expect(manager.runOnce()).toMatchObject({ suggested: 3, accepted: 2 });
  });
});

describe('policies without a manager', () => {
  const parts = (): Partial<AmmView> => ({
    cluster: bench.cluster,
    scheduler: bench.cluster,
    workersMemory: new Map(),
    pending: new Map(),
    policies: new Set(),
    intervalMs: 2000,
    measure: 'process',
    copies: (task) => task.whoHas.size,
  });
  const view = (): AmmView => parts() as AmmView;

  it('ensure-broadcast asks for a copy on every worker that has none', () => {
    bench.task('x', [a]);
    const policy = new EnsureBroadcast({ key: 'x' });
    const generator = policy.run(view());
    const ops: (string | undefined)[] = [];
    for (let step = generator.next(); step.done !== true; step = generator.next(b)) {
      ops.push(step.value.op);
    }
    expect(ops).toEqual(['replicate', 'replicate']);
  });

  it('ensure-broadcast stops at the first refusal, and knows no other keys', () => {
    bench.task('x', [a]);
    expect([...new EnsureBroadcast({ key: 'x' }).run(view())]).toHaveLength(1);
    expect([...new EnsureBroadcast({ key: 'y' }).run(view())]).toEqual([]);
  });

  it('a function is a policy as well, with its options and a way to leave', () => {
    const Evacuate = defineAmmPolicy({
      name: 'evacuate',
      apiVersion: 1,
      optionsSchema: {
        type: 'object',
        required: ['address'],
        properties: { address: { type: 'string' } },
      },
      *run(amm, { address }) {
        const leaving = amm.cluster.workers.get(address);
        if (leaving === undefined) {
          amm.policies.delete(this);
          return;
        }
        for (const task of leaving.hasWhat) {
          if ((yield drop(task, [leaving])) === undefined) yield replicate(task);
        }
      },
    });
    bench.task('shared', [a, b]);
    bench.task('only', [a]);
    const manager = bench.manager([new Evacuate({ address: 'a' }), new Evacuate({ address: 'z' })]);
    manager.runOnce();
    expect(Evacuate.name).toBe('evacuate');
    expect(manager.policies.size).toBe(1);
    expect(bench.moves).toEqual([
      {
        acquire: [{ worker: 'b', keys: ['only'] }],
        remove: [{ worker: 'a', keys: ['shared'] }],
      },
    ]);
  });
});
