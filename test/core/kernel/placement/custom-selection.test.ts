/** A worker selection policy of a user's own decides for every task that the slot can decide. */
import { expect, it } from 'vitest';
import type { Queuing, WorkerSelection } from '../../../../core/api/policies.ts';
import { family } from '../../../../policies/queuing/family.ts';
import { rootish } from '../../../../policies/queuing/root-ish.ts';
import { SchedulerEnv } from '../../../kit/env.ts';
import { made } from '../../../kit/made.ts';

/** The policy `pack` of the README: fills one worker before the next is used. */
const pack: WorkerSelection = {
  score(_task, worker) {
    const load = worker.processing.size;
    return load < 2 * worker.threadCount ? -load : load;
  },
};

/** The policy `fill` of the guide: the first worker with a free slot, wherever the inputs are. */
const fill: WorkerSelection = {
  reach: 'all',
  select: (_task, candidates) =>
    candidates.find(({ processing, threadCount }) => processing.size < 2 * threadCount),
};

function cluster(
  workers: number,
  threads: number,
  policies: { workerSelection?: WorkerSelection; queuing?: Queuing } = {},
): SchedulerEnv {
  const env = new SchedulerEnv({ policies: { workerSelection: pack, ...policies } });
  env.addWorkers(workers, { threads });
  return env;
}

function submit(env: SchedulerEnv, count: number, name = (n: number) => `t${n}-x`): void {
  env.submit(Object.fromEntries(Array.from({ length: count }, (_, n) => [name(n), []])));
}

/** Tasks on each worker, in the order of registration. */
function loads(env: SchedulerEnv): number[] {
  return env.cluster.workersByRank.map(({ processing }) => processing.size);
}

it('tasks without inputs fill one worker before the next is used', () => {
  const env = cluster(3, 2);
  submit(env, 4);
  expect(loads(env)).toEqual([4, 0, 0]);
  env.submit({ more: [], again: [] });
  expect(loads(env)).toEqual([4, 2, 0]);
});

it('a policy that selects fills one worker before the next, also with tasks whose inputs are elsewhere', () => {
  const env = cluster(3, 1, { workerSelection: fill });
  env.scatter({ x: ['w3'] });
  env.submit({ a: [], b: ['x'], c: [], d: ['x'], e: [] });
  expect(loads(env)).toEqual([2, 2, 1]);
  expect(env.states).toMatchObject({ a: 'processing w1', b: 'processing w1', c: 'processing w2' });
  env.submit({ f: [], g: [] });
  expect(loads(env)).toEqual([2, 2, 2]);
  expect(env.state('g')).toBe('no-worker');
  env.finish('a');
  expect(env.states).toMatchObject({ g: 'processing w1' });
});

it('with reach "all" restrictions hold', () => {
  const env = cluster(3, 1, { workerSelection: fill });
  env.scatter({ x: ['w1'] });
  env.submit({ a: { deps: ['x'], workers: ['tcp://w3:1', 'tcp://w2:1'] } });
  expect(env.state('a')).toBe('processing');
  expect(loads(env)).toEqual([0, 1, 0]);
});

it('root-ish tasks fill the slots of one worker before the next is used', () => {
  const env = cluster(3, 2);
  env.submit({ first: [], second: [] });
  expect(loads(env)).toEqual([2, 0, 0]);
  // A collection of 14 is root-ish on 6 threads: each worker of 2 threads has 3 slots.
  env.submit(Object.fromEntries(Array.from({ length: 14 }, (_, n) => [`('r-1', ${n})`, []])));
  expect(loads(env)).toEqual([3, 3, 3]);
  expect(env.cluster.queued.size).toBe(7);
});

it('a slot that opens is filled where the policy wants', () => {
  const env = cluster(2, 1);
  const key = (n: number): string => `('r-1', ${n})`;
  submit(env, 6, key);
  expect(loads(env)).toEqual([2, 2]);
  const chosen: WorkerSelection = { score: (_task, { name }) => (name === 'w2' ? 0 : 1) };
  const second = cluster(2, 1, { workerSelection: chosen });
  submit(second, 6, key);
  const [one, other] = [key(0), key(2)];
  expect(second.states[one]).toBe('processing w2');
  expect(second.states[other]).toBe('processing w1');
  second.finish(other);
  expect(loads(second)).toEqual([2, 2]);
  env.finish(key(0));
  expect(loads(env)).toEqual([2, 2]);
});

it.each([
  ['root-ish with queuing off', made(rootish, { workerSaturation: Infinity }), [5, 5, 4]],
  ['root-ish with many slots', made(rootish, { workerSaturation: 2 }), [4, 4, 4]],
])('%s leaves the placement of root-ish tasks to the policy', (_name, queuing, expected) => {
  const env = cluster(3, 2, { queuing });
  env.submit(Object.fromEntries(Array.from({ length: 14 }, (_, n) => [`('r-1', ${n})`, []])));
  expect(loads(env)).toEqual(expected);
});

it("a policy of one's own places the roots of families, too", () => {
  const last: WorkerSelection = { score: (_task, { rank }) => -rank };
  const env = cluster(3, 2, { workerSelection: last, queuing: made(family) });
  submit(env, 3);
  expect(loads(env)).toEqual([0, 0, 3]);
});

it('a policy that leaves root-ish tasks alone does not place the roots of families', () => {
  const last: WorkerSelection = { placesRootish: false, score: (_task, { rank }) => -rank };
  const env = cluster(3, 2, { workerSelection: last, queuing: made(family) });
  const roots = Object.fromEntries(Array.from({ length: 3 }, (_, n) => [`x-${n}`, []]));
  env.submit({ ...roots, sum: Object.keys(roots) });
  expect(loads(env)).toEqual([3, 0, 0]);
});

it('a task without inputs may go to a busy worker while others are idle, also within a reach', () => {
  const busiest: WorkerSelection = {
    reach: { holders: 2, others: 3 },
    score: (_task, worker) => -worker.processing.size,
  };
  const env = cluster(3, 8, { workerSelection: busiest });
  submit(env, 5);
  expect(loads(env).toSorted((a, b) => b - a)).toEqual([5, 0, 0]);
});

it('a policy that scores all workers alike spreads tasks without inputs by load', () => {
  const env = cluster(3, 2, { workerSelection: { score: () => 0 } });
  submit(env, 6);
  expect(loads(env)).toEqual([2, 2, 2]);
});

it('a policy with pickFromPool sees the workers with open slots for root-ish tasks', () => {
  const pools: number[] = [];
  const last: WorkerSelection = {
    score: () => 0,
    pickFromPool(_task, pool) {
      pools.push(pool.size);
      return pool.at(pool.size - 1);
    },
  };
  const env = cluster(2, 1, { workerSelection: last });
  submit(env, 6, (n) => `('r-1', ${n})`);
  expect(loads(env)).toEqual([2, 2]);
  expect(pools).toEqual([2, 2, 1, 1]);
});

it('a policy that refuses all open slots keeps root-ish tasks queued until it wants one', () => {
  const one: WorkerSelection = {
    admits: (_task, { processing }) => processing.size < 1,
    score: () => 0,
  };
  const env = cluster(2, 1, { workerSelection: one });
  const key = (n: number): string => `('r-1', ${n})`;
  submit(env, 6, key);
  expect(loads(env)).toEqual([1, 1]);
  expect(env.cluster.queued.size).toBe(4);
  env.finish(key(0));
  expect(loads(env)).toEqual([1, 1]);
  expect(env.cluster.queued.size).toBe(3);
});

it('a policy that selects a worker without an open slot for a root-ish task is reported', () => {
  const first: WorkerSelection = {
    select: (_task, _candidates, _missingBytes, { running }) => [...running][0],
  };
  const env = cluster(2, 1, { workerSelection: first });
  expect(() => {
    submit(env, 6, (n) => `('r-1', ${n})`);
  }).toThrow(/has no open slot/);
});

it('a slot limit that is no number is refused with what is allowed', () => {
  const queuing: Queuing = { ...made(rootish), slotLimit: () => NaN };
  expect(() => cluster(1, 1, { queuing })).toThrow(
    /the number NaN as its slot limit; allowed are numbers from 1 on, and Infinity for no limit/,
  );
});

it('a policy reads the time of the event that it decides in', () => {
  const times: number[] = [];
  const env = cluster(2, 1, {
    workerSelection: {
      score(_task, _worker, _missingBytes, { nowMs }) {
        times.push(nowMs);
        return 0;
      },
    },
  });
  env.advance(250);
  env.submit({ a: [] });
  expect(times).toEqual([250, 250]);
});
