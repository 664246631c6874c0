import { beforeEach, describe, expect, it } from 'vitest';
import {
  type AmmRound,
  drop,
  type PluginDecision,
  type RefusalReason,
  replicate,
  type Suggestion,
  type WorkerView,
} from '../../../core/api/index.ts';
import type { WorkerState } from '../../../core/state/task.ts';
import { AmmBench, policyOf, Scripted } from './amm-kit.ts';

let bench: AmmBench;
let a: WorkerState;
let b: WorkerState;
beforeEach(() => {
  bench = new AmmBench();
  a = bench.worker('a', 300);
  b = bench.worker('b', 100);
});

/** What becomes of anything that is yielded, and whether the policy came to its end. */
function suggest(...values: readonly unknown[]): AmmRound & { readonly chosen: unknown[] } {
  const policy = new Scripted(values as readonly Suggestion[]);
  const round = bench.manager([policy]).runOnce();
  expect(bench.errors).toEqual([]);
  return { ...round, chosen: policy.chosen };
}

const candidates = (list: unknown): Iterable<WorkerView> => list as Iterable<WorkerView>;

describe('a suggestion that cannot be meant is refused, and its policy continues', () => {
  it.each<[string, unknown]>([
    ['undefined', [undefined]],
    ['null', [null]],
    ['an address', ['inmemory://a']],
    ['a number', [3]],
    ['an object that is no worker', [{ address: 'a', rank: 0 }]],
    ['an address instead of a list', 'inmemory://a'],
    ['a number instead of a list', 7],
    ['a worker instead of a list', { address: 'a' }],
    ['the table of workers, whose entries are pairs', new Map([['a', {}]])],
    ['nothing', []],
  ])('candidates are %s', (_what, list) => {
    const x = bench.task('x', [a]);
    const y = bench.task('y', [a, b]);
    const round = suggest(replicate(x, candidates(list)), drop(y, candidates(list)), drop(y));
    expect(round.chosen).toEqual([undefined, undefined, a]);
    expect(round).toMatchObject({ suggested: 3, accepted: 1, refused: 2, failures: [] });
    expect(round.refusals).toMatchObject([{ reason: 'unknown-candidates', count: 2 }]);
  });

  it('candidates that are unknown are passed over when others are known', () => {
    const x = bench.task('x', [a]);
    const list = candidates([undefined, null, 'b', b, b]);
    expect(suggest(replicate(x, list)).chosen).toEqual([b]);
  });

  it('candidates may be any iterable, and null means all', () => {
    const x = bench.task('x', [a]);
    const y = bench.task('y', [a, b]);
    function* once(): Generator<WorkerView> {
      yield b;
    }
    const round = suggest(replicate(x, once()), drop(y, candidates(null)));
    expect(round.chosen).toEqual([b, a]);
  });

  it('an endless list of candidates comes to an end', () => {
    function* forever(): Generator<WorkerView> {
      for (;;) yield b;
    }
    expect(suggest(replicate(bench.task('x', [a]), forever())).chosen).toEqual([b]);
  });

  it.each<[string, unknown]>([
    ['undefined', undefined],
    ['null', null],
    ['a key', 'x'],
    ['an imitation', { key: 'x', state: 'memory' }],
  ])('the task is %s', (_what, task) => {
    bench.task('x', [a]);
    const round = suggest({ op: 'drop', task }, { op: 'replicate', task });
    expect(round).toMatchObject({ suggested: 2, accepted: 0, refused: 2, failures: [] });
    expect(round.refusals).toMatchObject([{ reason: 'unknown-task', count: 2 }]);
  });

  it('the task is one that the cluster has forgotten', () => {
    const x = bench.task('x', [a]);
    bench.cluster.tasks.delete('x');
    expect(suggest(replicate(x)).refused).toBe(1);
  });
});

describe('the answer of a round', () => {
  it.each<[RefusalReason, () => Suggestion]>([
    ['not-in-memory', () => replicate(bench.task('x'))],
    ['not-in-memory', () => drop(bench.task('x'))],
    ['not-running', () => replicate(bench.task('x', [a]), [bench.worker('p', 0, 'paused')])],
    ['no-recipient', () => replicate(bench.task('x', [a, b]))],
    ['no-recipient', () => replicate(bench.task('x', [a, b]), [b])],
    ['no-holder', () => drop(bench.task('x', [a, b]), [bench.worker('c')])],
    ['last-copy', () => drop(bench.task('x', [a]))],
    ['last-copy', () => drop(bench.task('x', [a]), [b])],
    [
      'in-use',
      () => {
        const x = bench.task('x', [a, b]);
        bench.reader('y', [x], a);
        return drop(x, [a]);
      },
    ],
    [
      'actor',
      () => {
        const x = bench.task('x', [a]);
        x.isActor = true;
        return replicate(x);
      },
    ],
  ])('says why a suggestion was refused: %s', (reason, make) => {
    const { refusals } = suggest(make());
    expect(refusals).toMatchObject([{ reason, count: 1 }]);
    expect(refusals[0]?.example).toMatch(/^Scripted: (replicate|drop) "x" is refused: /);
  });

  it('names the most frequent reason first, and sums up', () => {
    const x = bench.task('x', [a]);
    const round = suggest(drop(x), ...Array.from({ length: 5 }, () => replicate(x)));
    expect(round).toMatchObject({ suggested: 6, accepted: 1, underWay: 0, refused: 5 });
    expect(round.refusals.map(({ reason, count }) => [reason, count])).toEqual([
      ['no-recipient', 4],
      ['last-copy', 1],
    ]);
  });

  it('says which policy crashed, in every round', () => {
    const broken = policyOf(function* () {
      yield drop(bench.task('x', [a, b]));
      throw new Error('on purpose');
    });
    const manager = bench.manager([broken]);
    const failures = [
      { policy: 'Policy', message: 'threw: on purpose; what it suggested before stands' },
    ];
    for (let round = 0; round < 3; round++) {
      expect(manager.runOnce()).toMatchObject({ accepted: 1, failures });
      bench.cluster.tasks.delete('x');
    }
  });

  it('says that an endless policy was stopped', () => {
    const endless = policyOf(function* () {
      for (;;) yield replicate(bench.cluster.tasks.get('x')!);
    });
    bench.task('x', [a]);
    const { failures } = bench.manager([endless]).runOnce();
    expect(failures).toMatchObject([{ policy: 'Policy' }]);
    expect(failures[0]?.message).toContain('without an end');
  });

  it('an asynchronous run that rejects leaves no promise behind', async () => {
    const later = policyOf(
      // eslint-disable-next-line @typescript-eslint/require-await, require-yield
      async function* () {
        throw new Error('later');
      } as never,
    );
    const { failures } = bench.manager([later]).runOnce();
    await Promise.resolve();
    expect(failures[0]?.message).toContain('asynchronous');
  });
});

describe('refusals are recorded for why', () => {
  it('once, until something else happens to the task', () => {
    const recorded: PluginDecision[] = [];
    const x = bench.task('x', [a]);
    const policy = new Scripted([drop(x), drop(x), replicate(x), replicate(x)]);
    const manager = bench.manager([policy], 'process', {
      isRecording: true,
      record: (decision) => recorded.push(decision),
    });
    manager.runOnce();
    expect(recorded.map(({ kind, outcome, rule }) => [kind, outcome, rule])).toEqual([
      ['drop', 'refused', 'it would be the last copy'],
      ['replicate', 'b', 'one more copy: the least memory of 1 worker without one'],
      ['replicate', 'refused', 'every running candidate has a copy or gets one'],
    ]);
  });
});

describe('requested copies', () => {
  it('are not dropped below their number, unless it is forced', () => {
    const c = bench.worker('c', 200);
    const x = bench.task('x', [a, b, c]);
    x.replicas = 2;
    const round = suggest(drop(x), drop(x), drop(x, undefined, { force: true }), drop(x));
    expect(round.chosen).toEqual([a, undefined, c, undefined]);
    expect(round.refusals).toMatchObject([
      { reason: 'replicas-wanted', count: 1 },
      { reason: 'last-copy', count: 1 },
    ]);
  });

  it('more than there are workers: each worker keeps its copy', () => {
    const x = bench.task('x', [a, b]);
    x.replicas = Infinity;
    expect(suggest(drop(x)).refusals).toMatchObject([{ reason: 'replicas-wanted' }]);
  });
});

describe('a slow network', () => {
  const rounds = (count: number, wanted: number, byWhoHas: boolean): void => {
    const x = bench.task('x', [a]);
    for (let n = 0; n < 8; n++) bench.worker(`more-${n}`, 200 + n);
    const policy = policyOf(function* (amm) {
      const copies = byWhoHas ? x.whoHas.size : amm.copies(x);
      for (let missing = wanted - copies; missing > 0; missing--) yield replicate(x);
    });
    const manager = bench.manager([policy]);
    for (let round = 0; round < count; round++) {
      manager.runOnce();
      bench.nowMs += 2_000;
    }
  };
  const asked = (): number => bench.moves.reduce((sum, { acquire }) => sum + acquire.length, 0);

  it.each([true, false])('a policy that wants 2 copies gets 2 (counted by whoHas: %s)', (by) => {
    rounds(5, 2, by);
    expect(asked()).toBe(1);
  });

  it('a policy that wants 4 copies gets 4, each asked for once', () => {
    rounds(5, 4, true);
    expect(asked()).toBe(3);
  });

  it('the answer is the worker that the copy is under way to, and the round counts it', () => {
    const x = bench.task('x', [a]);
    const policy = new Scripted([replicate(x)]);
    const manager = bench.manager([policy]);
    expect(manager.runOnce()).toMatchObject({ accepted: 1, underWay: 0 });
    expect(manager.runOnce()).toMatchObject({ accepted: 0, underWay: 1, refused: 0 });
    expect(policy.chosen).toEqual([b, b]);
  });

  it('a copy that is under way elsewhere does not count for given candidates', () => {
    const c = bench.worker('c', 500);
    const x = bench.task('x', [a]);
    const manager = bench.manager([new Scripted([replicate(x)])]);
    manager.runOnce();
    const other = new Scripted([replicate(x, [c]), replicate(x, [b]), replicate(x, [b, c])]);
    manager.policies.clear();
    manager.policies.add(other);
    expect(manager.runOnce()).toMatchObject({ accepted: 1, underWay: 1, refused: 1 });
    expect(other.chosen).toEqual([c, b, undefined]);
  });

  it('a policy that counts what is under way asks for more beyond it', () => {
    const c = bench.worker('c', 500);
    const x = bench.task('x', [a]);
    const manager = bench.manager([new Scripted([replicate(x)])]);
    manager.runOnce();
    const beyond = new Scripted([replicate(x, undefined, { beyondPending: true })]);
    manager.policies.add(beyond);
    manager.runOnce();
    expect(beyond.chosen).toEqual([c]);
  });
});
