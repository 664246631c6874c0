import { describe, expect, it } from 'vitest';
import { YardmasterError } from '../../../../core/api/errors.ts';
import type { KernelSlots } from '../../../../core/api/policies.ts';
import type { TaskView, WorkerView } from '../../../../core/api/views.ts';
import { SchedulerEnv } from '../../../kit/env.ts';
import { numbered } from '../../../kit/graph.ts';
import { builtinPolicies } from '../../../kit/ports.ts';
import { ranksOf } from '../../../kit/orders.ts';

const { workerSelection, queuing, ordering, fairness } = builtinPolicies();

function boom(): never {
  throw new Error('boom');
}

/** What a policy may do wrong, and what the report says. */
const FAULTS: readonly (readonly [string, Partial<KernelSlots>, RegExp])[] = [
  ['scores by throwing', { workerSelection: { score: boom } }, /threw: boom/],
  [
    'throws what cannot be described',
    {
      workerSelection: {
        score: () => {
          throw Proxy.revocable(new Error('gone'), { get: boom }).proxy;
        },
      },
    },
    /threw: something was thrown that cannot be described \(Error: boom\)/,
  ],
  [
    'scores NaN',
    { workerSelection: { score: () => NaN } },
    /score of worker .* is the number NaN instead of a finite number/,
  ],
  ['scores Infinity', { workerSelection: { score: () => Infinity } }, /is the number Infinity/],
  ['admits by throwing', { workerSelection: { ...workerSelection, admits: boom } }, /boom/],
  [
    'selects a worker that is not running',
    {
      workerSelection: {
        select: (_task, _candidates, _missingBytes, { workers }) => named('w3', workers),
      },
    },
    /chose tcp:\/\/w3:1 for .*, which is paused/,
  ],
  [
    'selects a worker that does not exist',
    { workerSelection: { select: () => ({ address: 'x' }) as WorkerView } },
    /chose x for .*, which is not a registered worker/,
  ],
  [
    'selects an object without a prototype',
    { workerSelection: { select: () => Object.create(null) as WorkerView } },
    /chose an object of the class Object for .*, instead of one of the workers/,
  ],
  [
    'is undecided about being root-ish',
    { queuing: { ...queuing, isRootish: never } },
    /isRootish with a value of the type undefined instead of true or false/,
  ],
  [
    'places root-ish tasks by throwing',
    { queuing: { ...queuing, isRootish: () => true, selectRootish: boom } },
    /boom/,
  ],
  ['orders too few tasks', { ordering: { order: () => [0] } }, /ranked 1 of 3 tasks/],
  [
    'orders with fractions',
    { ordering: { order: () => [0, 1, 1.5] } },
    /gave the number 1.5 as a rank; ranks are whole/,
  ],
  ['gives two tasks one rank', { ordering: { order: () => [0, 1, 1] } }, /the rank 1 twice, .* b;/],
  [
    'gives two tasks one large rank',
    { ordering: { order: () => [0, 1e9, 1e9] } },
    /the rank 1000000000 twice/,
  ],
  [
    'ranks a task before what it needs',
    { ordering: { order: () => [1, 0, 2] } },
    /ranked a before base, which it needs/,
  ],
  [
    'orders nothing at all',
    { ordering: { order: never } },
    /undefined instead of a rank for each task/,
  ],
  [
    'looks at graphs by throwing',
    { workerSelection: { ...workerSelection, prepare: boom } },
    /boom/,
  ],
  ['looks at roots by throwing', { queuing: { ...queuing, prepare: boom } }, /threw: boom/],
  ['numbers by throwing', { fairness: { generations: boom } }, /threw: boom/],
  ['numbers with NaN', { fairness: { generations: () => NaN } }, /gave the generation NaN/],
  [
    'numbers too few tasks',
    { fairness: { isPerTask: true, generations: () => [1, 2] } },
    /gave 2 generations to 3 tasks/,
  ],
  [
    'numbers one task with Infinity',
    { fairness: { isPerTask: true, generations: () => [1, Infinity, 2] } },
    /gave the number Infinity as a generation instead/,
  ],
  [
    'numbers tasks one by one without having seen them',
    { fairness: { generations: () => [1] } },
    /does not say that it isPerTask/,
  ],
  [
    'minds tasks that are over',
    { fairness: { ...fairness, taskOver: boom } },
    /slot fairness threw: boom/,
  ],
];

function never(): never {
  return undefined as never;
}

function named(name: string, workers: ReadonlyMap<string, WorkerView>): WorkerView | undefined {
  return [...workers.values()].find((worker) => worker.name === name);
}

function cluster(policies: Partial<KernelSlots>, validate: boolean): SchedulerEnv {
  const env = new SchedulerEnv({ policies, kernel: { validate } });
  env.addWorkers(3);
  env.setStatus('w3', 'paused');
  return env;
}

const graph = { base: [], a: ['base'], b: ['base'] };

describe.each(FAULTS)('a policy that %s', (_fault, policies, message) => {
  it('is overruled by the built-in one, and reported', () => {
    const env = cluster(policies, false);
    env.submit(graph, { keys: ['a', 'b'] });
    env.finish('base');
    expect([env.state('a'), env.state('b')]).toEqual(['processing', 'processing']);
    const [failure] = env.policyFailures;
    expect(failure).toMatchObject({ slot: Object.keys(policies)[0], policy: 'custom' });
    expect(failure!.error.code).toBe('ERR_POLICY');
    expect(failure!.error.message).toMatch(message);
  });

  it('is an error in validate mode', () => {
    const env = cluster(policies, true);
    const run = (): void => {
      env.submit(graph, { keys: ['a', 'b'] });
      env.finish('base');
    };
    expect(run).toThrow(message);
  });
});

it('a policy that selects against the restrictions of a task is overruled', () => {
  const policies: Partial<KernelSlots> = {
    workerSelection: {
      select: (_task, _candidates, _missingBytes, { workers }) => named('w1', workers),
    },
  };
  const env = cluster(policies, false);
  env.submit({ a: { workers: ['tcp://w2:1'] } });
  expect(env.states).toEqual({ a: 'processing w2' });
  expect(env.policyFailures[0]!.error.message).toContain('against the restrictions');
});

it('a queuing policy that takes restricted tasks for root-ish is not asked about them', () => {
  const policies = {
    queuing: { ...queuing, isRootish: () => true, selectRootish: boom },
  };
  const env = cluster(policies, true);
  env.submit({ a: { workers: ['tcp://w2:1'] } });
  expect(env.states).toEqual({ a: 'processing w2' });
});

it('the cause of a failure is kept', () => {
  const env = cluster({ workerSelection: { score: () => 0, pickFromPool: boom } }, true);
  env.setStatus('w3', 'running');
  try {
    env.submit({ a: [] });
    expect.unreachable();
  } catch (error) {
    expect(YardmasterError.is(error, 'ERR_POLICY')).toBe(true);
    expect((error as Error).cause).toMatchObject({ message: 'boom' });
  }
});

it('a policy is overruled for one decision only', () => {
  let calls = 0;
  const flaky: KernelSlots['ordering'] = {
    order: (tasks, keys) => (calls++ === 0 ? boom() : ranksOf(ordering, tasks, keys)),
  };
  const env = cluster({ ordering: flaky }, false);
  env.submit(numbered('a', 2));
  env.submit(numbered('b', 2));
  expect(calls).toBe(2);
  expect(env.policyFailures).toHaveLength(1);
});

it('a queuing policy that gives an open slot to a task that is not queued is overruled', () => {
  const nextQueued = (): TaskView => env.task('r-0');
  const env = cluster({ queuing: { ...queuing, nextQueued } }, false);
  env.submit(numbered('r', 7));
  expect(env.policyFailures).toEqual([]);
  env.finish('r-0');
  expect(env.state('r-4')).toBe('processing');
  expect(env.policyFailures[0]!.error.message).toMatch(
    /gave an open slot of tcp:\/\/w1:1 to r-0, which is not queued/,
  );
});
