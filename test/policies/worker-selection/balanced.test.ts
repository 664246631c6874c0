import { expect, it } from 'vitest';
import type { ScoringSelection, WorkerSelection } from '../../../core/api/policies.ts';
import { direct } from '../../../policies/queuing/direct.ts';
import { balanced } from '../../../policies/worker-selection/balanced.ts';
import { SchedulerEnv } from '../../kit/env.ts';
import { numbered } from '../../kit/graph.ts';
import { made } from '../../kit/made.ts';

/** One worker thread each, 100 bytes per second, and a task is expected to take 0.5 s. */
function cluster(
  workers: number,
  options: Partial<Parameters<typeof balanced.create>[0]> = {},
): SchedulerEnv {
  const policies = { workerSelection: made(balanced, options), queuing: made(direct) };
  const env = new SchedulerEnv({ policies, kernel: { bandwidth: 100 } });
  env.addWorkers(workers);
  return env;
}

function perWorker(env: SchedulerEnv, workers: number): number[] {
  return Array.from({ length: workers }, (_, n) => env.worker(`w${n + 1}`).processing.size);
}

it('a task stays with its input while the transfer takes longer than the work ahead', () => {
  const env = cluster(3);
  env.scatter({ x: ['w1'] }, 'c', 40);
  env.submit({ a: ['x'] });
  // 0.5 s of work on w1 against twice a transfer of 0.4 s.
  env.submit({ b: ['x'] });
  expect(env.states).toMatchObject({ a: 'processing w1', b: 'processing w1' });
  // Now it is 1 s.
  env.submit({ c: ['x'] });
  expect(env.states).toMatchObject({ c: 'processing w2' });
});

it('tasks do not pile up where their small input is', () => {
  const env = cluster(4);
  env.scatter({ x: ['w1'] }, 'c', 1);
  env.submit(numbered('a', 8, ['x']));
  expect(perWorker(env, 4)).toEqual([2, 2, 2, 2]);
});

it('an input that many tasks need is paid for by all those that a worker is going to have', () => {
  const env = cluster(3);
  env.scatter({ x: ['w1'], y: ['w1'] }, 'c', 100);
  env.submit({ b: ['y'], ...numbered('a', 12, ['x']) });
  expect(perWorker(env, 3)).toEqual([5, 4, 4]);
});

it('a slow worker is given less', () => {
  const env = cluster(2);
  const byHand = { workers: ['w1', 'w2'] };
  env.submit(numbered('a', 20, byHand));
  for (const [name, seconds] of [
    ['w1', 0.5],
    ['w2', 1.5],
  ] as const) {
    for (const task of [...env.worker(name).processing])
      env.finish(task.key, { durationS: seconds });
  }
  expect(env.worker('w1').pace).toBe(1);
  expect(env.worker('w2').pace).toBeGreaterThan(2);
  env.submit(numbered('b', 12));
  expect(perWorker(env, 2)).toEqual([9, 3]);
});

it('an input that few tasks need stays where it is, in a small cluster, too', () => {
  const env = cluster(2);
  env.scatter({ x: ['w1'] }, 'c', 1_000_000);
  env.submit(numbered('a', 9, ['x']));
  expect(perWorker(env, 2)).toEqual([9, 0]);
});

it('an input on its way to a worker counts as being there', () => {
  const env = cluster(2);
  env.scatter({ x: ['w1'] }, 'c', 40);
  env.submit({ load: { workers: ['w1'] }, load2: { workers: ['w1'] } });
  env.submit({ a: ['x'] });
  // 1.0 s of work on w1 against 0.8 s: w2 fetches x.
  expect(env.states).toMatchObject({ a: 'processing w2' });
  env.submit({ load3: { workers: ['w1'] } });
  env.submit({ b: ['x'] });
  // 1.5 s on w1; w2 has 0.5 s of work and half of 0.4 s ahead, and needs nothing more.
  expect(env.states).toMatchObject({ b: 'processing w2' });
});

it('what costs the same goes to the holder: fetching takes a moment', () => {
  const env = cluster(2);
  env.scatter({ empty: ['w2'] }, 'c', 0);
  env.submit({ a: ['empty'] });
  expect(env.states).toMatchObject({ a: 'processing w2' });
});

it('tasks are divided by the resources that are free, not all sent to the first worker', () => {
  const env = new SchedulerEnv({ policies: { workerSelection: made(balanced) } });
  env.addWorker('w1', { threads: 8, resources: { gpu: 1 } });
  env.addWorker('w2', { threads: 2, resources: { gpu: 2 } });
  env.addWorker('w3', { threads: 8 });
  env.submit(numbered('a', 9, { resources: { gpu: 1 } }));
  expect(perWorker(env, 3)).toEqual([3, 6, 0]);
});

it('the least busy workers that are allowed are found among many', () => {
  const env = cluster(40, { holders: 2, others: 2 });
  const allowed = Array.from({ length: 30 }, (_, n) => `w${n + 1}`);
  const load = allowed.filter((name) => name !== 'w17');
  env.submit(Object.fromEntries(load.map((name) => [`load-${name}`, { workers: [name] }])));
  env.submit({ a: { workers: allowed } });
  expect(env.states).toMatchObject({ a: 'processing w17' });
});

// ---- the number of candidates ---------------------------------------------------------------

/** Counts how often the score is asked for. */
function counting(options: Partial<Parameters<typeof balanced.create>[0]>): {
  policy: WorkerSelection;
  seen: string[];
} {
  const real = made(balanced, options) as ScoringSelection;
  const seen: string[] = [];
  const score: ScoringSelection['score'] = (task, worker, missingBytes, view) => {
    seen.push(worker.name);
    return real.score(task, worker, missingBytes, view);
  };
  return { policy: { ...real, score }, seen };
}

it('however many workers hold inputs, a few are asked about', () => {
  const { policy, seen } = counting({ holders: 3, others: 2 });
  const env = new SchedulerEnv({ policies: { workerSelection: policy } });
  env.addWorkers(30);
  const inputs = Object.fromEntries(
    Array.from({ length: 30 }, (_, n) => [`x${n}`, [`w${n + 1}`]] as const),
  );
  env.scatter(inputs);
  env.scatter({ big: ['w21'] }, 'c', 5000);
  env.submit({ load: { workers: ['w1'] } });
  seen.length = 0;
  env.submit({ a: [...Object.keys(inputs), 'big'] });
  expect(env.states).toMatchObject({ a: 'processing w21' });
  // The holder of the most, two of the equals that are not busy, and the two least busy of all.
  expect(seen.toSorted()).toEqual(['w2', 'w21', 'w3']);
});

it('an input with a copy everywhere makes no worker a candidate', () => {
  const { policy, seen } = counting({ holders: 3, others: 2 });
  const env = new SchedulerEnv({ policies: { workerSelection: policy } });
  env.addWorkers(40);
  env.scatter({ x: Array.from({ length: 40 }, (_, n) => `w${n + 1}`), y: ['w30'] });
  env.submit({ a: ['x', 'y'] });
  expect(seen.toSorted()).toEqual(['w1', 'w2', 'w30']);
  expect(env.states).toMatchObject({ a: 'processing w30' });
});

it('when every slot is taken the others take turns', () => {
  const { policy, seen } = counting({ holders: 1, others: 2 });
  const env = new SchedulerEnv({ policies: { workerSelection: policy } });
  env.addWorkers(10);
  env.scatter({ x: ['w1'] });
  env.submit(numbered('root', 30));
  expect(env.cluster.openSlots.size).toBe(0);
  env.submit({ a: ['x'] });
  env.submit({ b: ['x'] });
  expect(seen).toEqual(['w1', 'w2', 'w1', 'w2', 'w3']);
});
