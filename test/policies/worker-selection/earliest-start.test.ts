import { expect, it } from 'vitest';
import { startS, transferS } from '../../../policies/worker-selection/transfer-cost.ts';
import { SchedulerEnv } from '../../kit/env.ts';
import { builtinPolicies } from '../../kit/ports.ts';

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
