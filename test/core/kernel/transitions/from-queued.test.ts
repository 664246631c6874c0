import { expect, it } from 'vitest';
import { SchedulerEnv } from '../../../kit/env.ts';
import { numbered } from '../../../kit/graph.ts';

/** One worker with two open slots and six root-ish tasks: r-0 and r-1 are there, four are queued. */
function queued(): SchedulerEnv {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit(numbered('r', 6));
  return env.ignoreMessages();
}

it('the best queued task takes a slot that opens', () => {
  const env = queued();
  env.finish('r-1');
  expect(env.takeWorker('w1')).toEqual(['compute-task r-2']);
});

it('queued tasks leave in the order of their priorities, not of their arrival', () => {
  const env = queued();
  env.submit({ 'r-9': { userPriority: 1 } });
  env.ignoreMessages();
  env.finish('r-0');
  expect(env.takeWorker('w1')).toEqual(['compute-task r-9']);
});

it('a queued task that no client wants leaves the queue', () => {
  const env = queued();
  env.release('r-2', 'r-3');
  expect(env.cluster.queued.sorted().map(({ key }) => key)).toEqual(['r-4', 'r-5']);
  env.expectEmpty();
});

it('a queued task that lost its input waits until it is there again', () => {
  const env = new SchedulerEnv();
  env.addWorkers(2);
  env.submit({ base: { workers: ['tcp://w2:1'] }, ...numbered('r', 6, ['base']) });
  env.finish('base');
  expect(env.state('r-5')).toBe('queued');
  env.releaseWorkerData('w2', 'base');
  expect(env.state('r-5')).toBe('waiting');
  expect(env.cluster.queued.size).toBe(0);
  env.finish('base');
  expect(env.state('r-5')).toBe('queued');
});

it('a queued task fails with an actor that it uses', () => {
  const env = new SchedulerEnv();
  env.addWorkers(2);
  env.submit({ base: { actor: true, workers: ['tcp://w2:1'] }, ...numbered('r', 9, ['base']) });
  env.finish('base');
  expect(env.state('r-8')).toBe('queued');
  env.removeWorker('w2');
  expect(env.state('r-8')).toBe('erred');
  expect(env.cluster.queued.size).toBe(0);
});

it('queued tasks spread over the workers by the share of their threads in use', () => {
  const env = new SchedulerEnv();
  env.submit(numbered('r', 9));
  env.addWorker('w1', { threads: 1 });
  env.addWorker('w2', { threads: 4 });
  expect(env.worker('w1').processing.size).toBe(2);
  expect(env.worker('w2').processing.size).toBe(5);
  expect(env.cluster.queued.size).toBe(2);
});
