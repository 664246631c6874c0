import { expect, it } from 'vitest';
import type { WorkerSelection } from '../../../../core/api/policies.ts';
import { SchedulerEnv } from '../../../kit/env.ts';

/** Workers w1, w2, w3 and data on some of them. */
function withData(where: Readonly<Record<string, readonly string[]>>, nbytes = 100): SchedulerEnv {
  const env = new SchedulerEnv({ kernel: { bandwidth: 100 } });
  env.addWorkers(3);
  for (const [key, workers] of Object.entries(where)) {
    env.scatter({ [key]: workers }, 'c', key.startsWith('big') ? 10 * nbytes : nbytes);
  }
  return env.ignoreMessages();
}

it('single tasks spread over the workers with nothing to do', () => {
  const env = withData({});
  env.submit({ a: [], b: [], c: [] });
  // The cursor counts assignments, the pool holds the idle workers only: 0 of 3, 1 of 2, 2 of 1.
  expect(env.states).toEqual({ a: 'processing w1', b: 'processing w3', c: 'processing w2' });
});

it('a task goes to the holder of its input', () => {
  const env = withData({ x: ['w2'] });
  env.submit({ a: ['x'] });
  expect(env.state('a')).toBe('processing');
  expect(env.states).toMatchObject({ a: 'processing w2' });
});

it('a task goes where the least has to be fetched', () => {
  const env = withData({ x: ['w1'], big: ['w2'] });
  env.submit({ a: ['x', 'big'] });
  expect(env.states).toMatchObject({ a: 'processing w2' });
});

it('work ahead of a holder is weighed against the transfer', () => {
  const env = withData({ x: ['w1', 'w2'] });
  env.submit({ load: { workers: ['tcp://w1:1'] } });
  env.submit({ a: ['x'] });
  expect(env.states).toMatchObject({ a: 'processing w2' });
});

it('equal starts go to the worker with the fewest stored bytes', () => {
  const env = withData({ ballast: ['w1'], x: ['w1', 'w2'] });
  env.submit({ a: ['x'] });
  expect(env.states).toMatchObject({ a: 'processing w2' });
});

it('what is equal in all goes to the worker that came first', () => {
  const env = withData({ x: ['w3', 'w2'] });
  env.submit({ a: ['x'] });
  expect(env.states).toMatchObject({ a: 'processing w2' });
});

it('workers can be ordered by address instead, as text', () => {
  const env = new SchedulerEnv({ kernel: { workerOrder: 'address' } });
  for (const name of ['w10', 'w9', 'w1']) env.addWorker(name);
  expect(env.cluster.workersByRank.map(({ name }) => name)).toEqual(['w10', 'w1', 'w9']);
  env.submit({ a: [] });
  expect(env.states).toEqual({ a: 'processing w10' });
});

it('a holder that is paused is no candidate', () => {
  const env = withData({ x: ['w1'] });
  env.setStatus('w1', 'paused');
  env.submit({ a: ['x'] });
  expect(env.states).toMatchObject({ a: 'processing w2' });
});

it('without any running holder every running worker is a candidate', () => {
  const env = withData({ x: ['w1'] });
  env.submit({ load: { workers: ['tcp://w2:1'] } });
  env.setStatus('w1', 'paused');
  env.submit({ a: ['x'] });
  expect(env.states).toMatchObject({ a: 'processing w3' });
});

it('a restricted task goes to a valid worker, although another one holds its input', () => {
  const env = withData({ x: ['w1'] });
  env.submit({ a: { deps: ['x'], workers: ['tcp://w3:1'] } });
  expect(env.takeWorker('w3')).toEqual(['compute-task a (x on w1)']);
});

it('a valid holder is preferred among the valid workers', () => {
  const env = withData({ x: ['w3'] });
  env.submit({ a: { deps: ['x'], workers: ['tcp://w2:1', 'tcp://w3:1'] } });
  expect(env.states).toMatchObject({ a: 'processing w3' });
});

it('inputs of unknown size count with the default size', () => {
  const env = new SchedulerEnv({ kernel: { defaultDataSize: 50, bandwidth: 100 } });
  env.addWorkers(2);
  env.submit({ a: { workers: ['tcp://w1:1'] } });
  env.finish('a', { nbytes: 0 });
  env.submit({ b: { deps: ['a'], workers: ['tcp://w2:1'] } });
  expect(env.worker('w2').occupancyS).toBe(0.5);
});

// ---- oversized inputs ----------------------------------------------------------------------

it('a task whose inputs exceed the memory of its worker fails before it is sent', () => {
  const env = new SchedulerEnv();
  env.addWorker('w1', { memoryLimitBytes: 150 });
  env.scatter({ x: ['w1'], y: ['w1'] });
  env.submit({ a: ['x', 'y'], b: ['a'] });
  env.takeClient();
  expect(env.takeWorker('w1')).toEqual([]);
  expect(env.states).toMatchObject({ a: 'erred', b: 'erred' });
  expect(env.task('a').failure?.exceptionText).toBe(
    'a needs 200 bytes of inputs at once, and worker tcp://w1:1 has 150 bytes of memory in all. ' +
      'Make the inputs smaller, or reduce them in steps.',
  );
  expect(env.worker('w1').occupancyS).toBe(0);
});

it('inputs that just fit are accepted', () => {
  const env = new SchedulerEnv();
  env.addWorker('w1', { memoryLimitBytes: 200 });
  env.scatter({ x: ['w1'], y: ['w1'] });
  env.submit({ a: ['x', 'y'] });
  expect(env.state('a')).toBe('processing');
});

it('oversized inputs are tried where that is configured', () => {
  const env = new SchedulerEnv({ kernel: { refuseOversizedInputs: false } });
  env.addWorker('w1', { memoryLimitBytes: 1 });
  env.scatter({ x: ['w1'] });
  env.submit({ a: ['x'] });
  expect(env.state('a')).toBe('processing');
});

// ---- what a policy can say -----------------------------------------------------------------

function withPolicy(workerSelection: WorkerSelection): SchedulerEnv {
  const env = new SchedulerEnv({ policies: { workerSelection } });
  env.addWorkers(3);
  return env;
}

it('a policy scores candidates by what they lack; the lowest score wins', () => {
  const seen: [string, number][] = [];
  const env = withPolicy({
    score: (_task, worker, missingBytes) => {
      seen.push([worker.name, missingBytes]);
      return -worker.rank;
    },
  });
  env.scatter({ x: ['w1'], y: ['w1', 'w2'] });
  env.submit({ a: ['x', 'y'] });
  expect(seen).toEqual([
    ['w1', 0],
    ['w2', 100],
  ]);
  expect(env.states).toMatchObject({ a: 'processing w2' });
});

it('a policy that selects sees the admitted candidates by rank', () => {
  const seen: string[] = [];
  const env = withPolicy({
    admits: (_task, worker) => worker.name !== 'w2',
    select: (_task, candidates) => {
      seen.push(...candidates.map(({ name }) => name));
      return candidates.at(-1);
    },
  });
  env.submit({ a: { workers: ['tcp://w3:1', 'tcp://w2:1', 'tcp://w1:1'] } });
  expect(seen).toEqual(['w1', 'w3']);
  expect(env.states).toEqual({ a: 'processing w3' });
});

it('a policy that selects no worker parks the task in no-worker', () => {
  const env = withPolicy({ select: () => undefined });
  env.submit({ a: [] });
  expect(env.states).toEqual({ a: 'no-worker' });
});

it('a policy may place tasks without inputs and restrictions by itself', () => {
  const env = withPolicy({ score: () => 0, pickFromPool: (_task, pool) => pool.at(2) });
  env.submit({ a: [] });
  expect(env.states).toEqual({ a: 'processing w3' });
});
