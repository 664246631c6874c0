import { describe, expect, it } from 'vitest';
import type { KernelSlots } from '../../../core/api/policies.ts';
import { earliestStart } from '../../../policies/worker-selection/earliest-start.ts';
import { startS, transferS } from '../../../policies/queuing/co-assign.ts';
import { SchedulerEnv } from '../../kit/env.ts';
import { builtinPolicies } from '../../kit/ports.ts';
import { made } from '../../kit/made.ts';

const { workerSelection } = builtinPolicies();

it('the score is the work ahead per thread and the time to fetch what is missing', () => {
  const env = new SchedulerEnv({ kernel: { bandwidth: 100 } });
  env.addWorkers(2, { threads: 2 });
  env.scatter({ x: ['w1'] });
  env.submit({ load: { workers: ['tcp://w2:1'] }, a: ['x'] });
  const { cluster } = env;
  const task = env.task('a');
  expect(transferS(task, env.worker('w2'), cluster)).toBe(1);
  expect(transferS(task, env.worker('w1'), cluster)).toBe(0);
  expect(startS(task, env.worker('w2'), cluster)).toBe(0.5 / 2 + 1);
  expect(workerSelection.score!(task, env.worker('w2'), 100, cluster)).toBe(0.5 / 2 + 1);
});

it('inputs of unknown size count with the default size', () => {
  const env = new SchedulerEnv({ kernel: { bandwidth: 1, defaultDataSize: 7 } });
  env.addWorkers(1);
  env.submit({ a: [], b: ['a'] });
  expect(transferS(env.task('b'), env.worker('w1'), env.cluster)).toBe(7);
});

it('among workers with something to do the least occupied one is taken', () => {
  const env = new SchedulerEnv();
  env.addWorkers(3);
  for (const worker of ['w1', 'w1', 'w2', 'w3', 'w3']) {
    env.submit({ [`load${env.cluster.tasks.size}-x`]: { workers: [`tcp://${worker}:1`] } });
  }
  const { cluster } = env;
  const choice = workerSelection.pickFromPool!(env.task('load0-x'), cluster.running, cluster);
  expect(choice?.name).toBe('w2');
});

it('from 20 workers on they take turns, whatever they have to do', () => {
  const env = new SchedulerEnv();
  env.addWorkers(20, { threads: 2 });
  env.submit(Object.fromEntries(Array.from({ length: 25 }, (_, n) => [`t${n}-x`, []])));
  expect(env.states['t0-x']).toBe('processing w1');
  expect(env.states['t19-x']).toBe('processing w20');
  expect(env.states['t24-x']).toBe('processing w5');
});

it('among several with nothing to do the cursor decides', () => {
  const env = new SchedulerEnv();
  env.addWorkers(4, { threads: 2 });
  const graph = Object.fromEntries(Array.from({ length: 6 }, (_, n) => [`x${n}y`, []]));
  env.submit(graph);
  expect(Object.values(env.states).map((state) => state.slice(-2))).toEqual([
    'w1',
    'w2',
    'w3',
    'w4',
    'w1',
    'w2',
  ]);
});

describe('a task that asks for a GPU, whose input is where all GPUs are taken', () => {
  function cluster(
    workerSelection: KernelSlots['workerSelection'] = builtinPolicies().workerSelection,
  ): SchedulerEnv {
    const env = new SchedulerEnv({ kernel: { bandwidth: 100 }, policies: { workerSelection } });
    for (const name of ['w1', 'w2']) env.addWorker(name, { threads: 8, resources: { gpu: 1 } });
    env.addWorker('w3', { threads: 8 });
    env.scatter({ x: ['w1'], large: ['w1'] }, 'c', 20);
    env.submit({ busy: { deps: ['x'], resources: { gpu: 1 }, workers: ['w1'] } });
    return env;
  }

  it('goes to an idle GPU', () => {
    const env = cluster();
    env.submit({ a: { deps: ['x'], resources: { gpu: 1 } } });
    expect(env.states).toMatchObject({ busy: 'processing w1', a: 'processing w2' });
  });

  it('waits there when the transfer would take longer', () => {
    const env = cluster();
    env.scatter({ huge: ['w1'] }, 'c', 1000);
    env.submit({ a: { deps: ['huge'], resources: { gpu: 1 } } });
    expect(env.states).toMatchObject({ a: 'processing w1' });
  });

  it('is divided by the free GPUs, with inputs and without', () => {
    for (const deps of [[], ['x']]) {
      const env = cluster();
      const graph = Array.from({ length: 5 }, (_, n) => [`a${n}`, { deps, resources: { gpu: 1 } }]);
      env.submit(Object.fromEntries(graph) as never);
      const counts = ['w1', 'w2'].map((name) => env.worker(name).usedResources.get('gpu'));
      expect(counts).toEqual([3, 3]);
    }
  });

  it('waits there with the rule of Dask', () => {
    const env = cluster(made(earliestStart, { resources: 'offered' }));
    env.submit({ a: { deps: ['x'], resources: { gpu: 1 } } });
    expect(env.states).toMatchObject({ a: 'processing w1' });
  });
});
