import { describe, expect, it } from 'vitest';
import { coAssign, CoAssignment } from '../../../policies/queuing/co-assign.ts';
import { rootish, slotLimit } from '../../../policies/queuing/root-ish.ts';
import { SchedulerEnv } from '../../kit/env.ts';
import { numbered, type TerseGraph } from '../../kit/graph.ts';
import { made } from '../../kit/made.ts';

/** Slots of a worker by threads (rows) and saturation 0.01, 0.5, 1.0, 1.1, 1.5, 2.0. */
const SLOTS: readonly (readonly [threads: number, ...slots: number[]])[] = [
  [1, 1, 1, 1, 2, 2, 2],
  [2, 1, 1, 2, 3, 3, 4],
  [4, 1, 2, 4, 5, 6, 8],
  [8, 1, 4, 8, 9, 12, 16],
  [10, 1, 5, 10, 11, 15, 20],
  [11, 1, 6, 11, 13, 17, 22],
  [16, 1, 8, 16, 18, 24, 32],
  [20, 1, 10, 20, 22, 30, 40],
  [64, 1, 32, 64, 71, 96, 128],
];

it.each(SLOTS)('a worker with %i threads has the slots of the table', (threads, ...slots) => {
  const got = [0.01, 0.5, 1, 1.1, 1.5, 2].map((saturation) => slotLimit(saturation, threads));
  expect(got).toEqual(slots);
});

it.each([
  [Infinity, false],
  ['inf' as const, false],
  [1.1, true],
])('with saturation %s the policy holds tasks back: %s', (workerSaturation, holdsBack) => {
  expect(made(rootish, { workerSaturation }).holdsBack).toBe(holdsBack);
});

describe('a task is root-ish', () => {
  const { isRootish } = made(rootish);

  function isRoot(graph: TerseGraph, key: string, threads = 2): boolean {
    const env = new SchedulerEnv();
    env.addWorkers(1, { threads });
    env.submit(graph);
    return isRootish(env.task(key), env.cluster);
  }

  it('when its group has more than two tasks per thread', () => {
    expect(isRoot(numbered('r', 5), 'r-0')).toBe(true);
    expect(isRoot(numbered('r', 4), 'r-0')).toBe(false);
  });

  it('unless it is restricted', () => {
    expect(isRoot(numbered('r', 5, { workers: ['tcp://w1:1'] }), 'r-0')).toBe(false);
  });

  it('also when all of the group read a few common inputs', () => {
    const inputs = numbered('i', 4);
    expect(isRoot({ ...inputs, ...numbered('r', 9, Object.keys(inputs)) }, 'r-0')).toBe(true);
  });

  it('unless the groups that it depends on have five tasks or more', () => {
    const inputs = numbered('i', 5);
    expect(isRoot({ ...inputs, ...numbered('r', 9, ['i-0']) }, 'r-0')).toBe(false);
  });

  it('unless it depends on five groups or more', () => {
    const inputs = { a: [], b: [], c: [], d: [], e: [] };
    expect(isRoot({ ...inputs, ...numbered('r', 9, Object.keys(inputs)) }, 'r-0')).toBe(false);
  });

  it('when there is no thread at all', () => {
    const env = new SchedulerEnv();
    env.submit({ a: [] });
    expect(isRootish(env.task('a'), env.cluster)).toBe(true);
  });

  it('within limits that can be configured', () => {
    const env = new SchedulerEnv();
    env.addWorkers(1);
    env.submit({ i: [], ...numbered('r', 9, ['i']) });
    const strict = made(rootish, { rootishTaskgroupDependencies: 1 });
    expect(strict.isRootish(env.task('r-0'), env.cluster)).toBe(false);
    const narrow = made(rootish, { rootishTaskgroup: 1 });
    expect(narrow.isRootish(env.task('r-0'), env.cluster)).toBe(false);
  });
});

describe('co-assignment', () => {
  function coAssigned(): SchedulerEnv {
    return new SchedulerEnv({ policies: { queuing: made(coAssign) } });
  }

  function where(env: SchedulerEnv, count: number): string {
    return Array.from({ length: count }, (_, n) => env.states[`x-${n}`]!.slice(-2)).join(' ');
  }

  it('sends neighbours to the same worker, each its share of the group', () => {
    const env = coAssigned();
    env.addWorkers(3);
    env.submit(numbered('x', 9));
    expect(where(env, 9)).toBe('w1 w1 w1 w2 w2 w2 w3 w3 w3');
  });

  it('gives a worker with more threads a larger share', () => {
    const env = coAssigned();
    env.addWorker('w1', { threads: 1 });
    env.addWorker('w2', { threads: 2 });
    env.submit(numbered('x', 9));
    expect(where(env, 9)).toBe('w1 w1 w1 w2 w2 w2 w2 w2 w2');
  });

  it('starts a new run when the worker of the last neighbour pauses', () => {
    const env = coAssigned();
    env.addWorkers(2);
    env.submit({ gate: { workers: ['tcp://w2:1'] }, ...numbered('x', 8, ['gate']) });
    env.finish('gate');
    const first = where(env, 4);
    expect(first).toBe('w2 w2 w2 w2');
    env.setStatus('w2', 'paused');
    env.submit({ 'x-8': ['gate'], 'x-9': ['gate'] });
    expect(env.states['x-9']).toBe('processing w1');
  });

  it('ends the run with the last task of the group', () => {
    const env = new SchedulerEnv();
    env.addWorkers(2);
    env.submit(numbered('x', 8));
    const runs = new CoAssignment();
    const [first, last] = ['x-0', 'x-7'].map((key) => env.task(key));
    const { group } = first!;
    group.states.waiting = 2;
    const worker = runs.select(first!, env.cluster);
    expect(runs.snapshot(env.cluster)).toEqual([['x', worker?.address, 3]]);
    group.states.waiting = 1;
    runs.select(last!, env.cluster);
    expect(runs.snapshot(env.cluster)).toEqual([]);
  });

  it('has a memory for each policy: one that is asked as a shadow does not move the other', () => {
    const env = coAssigned();
    env.addWorkers(2);
    env.kernel.insight.startShadow('queuing', { name: 'again', policy: made(coAssign) });
    env.submit(numbered('x', 8));
    expect(where(env, 8)).toBe('w1 w1 w1 w1 w2 w2 w2 w2');
    const report = env.kernel.insight.shadowReport('queuing');
    expect([report?.decisions, report?.failures]).toEqual([8, 0]);
  });

  it('waits in no-worker when no worker runs', () => {
    const env = coAssigned();
    env.submit(numbered('x', 3));
    expect(env.states['x-0']).toBe('no-worker');
    env.addWorkers(1);
    expect(env.states['x-0']).toBe('processing w1');
  });
});
