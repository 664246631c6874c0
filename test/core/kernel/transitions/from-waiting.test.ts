import { expect, it } from 'vitest';
import { SchedulerEnv } from '../../../kit/env.ts';
import { numbered } from '../../../kit/graph.ts';

it('a ready task goes to a worker with the addresses and sizes of its inputs', () => {
  const env = new SchedulerEnv();
  env.addWorkers(2);
  env.scatter({ x: ['w1', 'w2'] }, 'c', 7);
  env.submit({ a: ['x'] });
  const [message] = env.takeWorkerMessages('w1');
  expect(message).toEqual({
    op: 'compute-task',
    key: 'a',
    runId: 0,
    priority: [0, 1, 0],
    arrival: 0,
    runSpec: 'compute a',
    dependencies: { keys: ['x'], nbytes: [7], whoHas: [['tcp://w1:1', 'tcp://w2:1']] },
    durationS: 0.5,
    stimulusId: 'update-graph-4',
  });
});

it('resources, actors and annotations are part of the message', () => {
  const env = new SchedulerEnv();
  env.addWorker('w1', { resources: { gpu: 2 } });
  env.submit({ a: { resources: { gpu: 1 }, actor: true, annotations: { note: 1 } } });
  expect(env.takeWorkerMessages('w1')).toMatchObject([
    { resources: { gpu: 1 }, actor: true, annotations: { note: 1 } },
  ]);
});

it('every assignment has a unique run id', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: [], b: [] });
  env.reschedule('a');
  const runIds = env.takeWorkerMessages('w1').flatMap((m) => ('runId' in m ? [m.runId] : []));
  expect(runIds).toEqual([0, 1, 2]);
});

it('a task for which no worker runs waits in no-worker with the time of entry', () => {
  const env = new SchedulerEnv().advance(5);
  env.submit({ a: { workers: ['tcp://w9:1'] } });
  expect(env.states).toEqual({ a: 'no-worker' });
  expect([...env.cluster.unrunnable.values()]).toEqual([5]);
});

it('an unrestricted task is queued when there is no worker at all', () => {
  const env = new SchedulerEnv();
  env.submit({ a: [] });
  expect(env.states).toEqual({ a: 'queued' });
});

it('root-ish tasks beyond the open slots are queued', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit(numbered('r', 4));
  expect(env.states).toEqual({
    'r-0': 'processing w1',
    'r-1': 'processing w1',
    'r-2': 'queued',
    'r-3': 'queued',
  });
});

it('a waiting task that no client wants is forgotten with its inputs', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: [], b: ['a'] });
  env.ignoreMessages();
  env.release('b');
  expect(env.takeWorker('w1')).toEqual(['free-keys a']);
  expect(env.states).toEqual({});
});

it('a waiting task that no client wants stays known while others depend on it', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: [], b: ['a'], c: ['b'] }, { keys: ['b', 'c'] });
  env.finishAll('a', 'b', 'c');
  env.releaseWorkerData('w1', 'b');
  expect(env.state('b')).toBe('waiting');
  env.release('b');
  expect(env.states).toEqual({ a: 'released', b: 'released', c: 'memory w1' });
});

it('a result that arrives for a task that waits again is ignored', () => {
  const env = new SchedulerEnv();
  env.addWorkers(2);
  env.submit({ a: { workers: ['tcp://w1:1'] }, b: { deps: ['a'], workers: ['tcp://w2:1'] } });
  env.finish('a');
  const { runId } = env.task('b');
  env.releaseWorkerData('w1', 'a');
  expect(env.state('b')).toBe('waiting');
  env.ignoreMessages();
  const stimulus = env.finish('b', { worker: 'w2', runId });
  expect(env.states).toEqual({ a: 'processing w1', b: 'waiting' });
  expect(env.story(stimulus)).toEqual(['b waiting -> waiting {}']);
  env.expectEmpty();
});
