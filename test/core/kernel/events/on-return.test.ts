import { expect, it } from 'vitest';
import { SchedulerEnv } from '../../../kit/env.ts';

/** Two workers, of which the first has computed `x`. Returns the run id. */
function computed(env: SchedulerEnv): number {
  env.addWorker('w1');
  env.submit({ x: [] });
  const { runId } = env.task('x');
  env.finish('x');
  env.ignoreMessages();
  return runId;
}

it('the only worker comes back: what it holds is in memory again, and nothing is computed', () => {
  const env = new SchedulerEnv();
  const runId = computed(env);
  env.removeWorker('w1');
  expect(env.states).not.toEqual({ x: 'memory w1' });
  env.ignoreMessages();
  env.addWorker('w1', { held: { x: runId } });
  expect(env.states).toEqual({ x: 'memory w1' });
  expect(env.takeClient()).toEqual(['key-in-memory x on w1']);
  env.expectEmpty();
});

it('a result that has a copy elsewhere has one more', () => {
  const env = new SchedulerEnv();
  const runId = computed(env);
  env.addWorker('w2');
  env.addKeys('w2', 'x');
  env.removeWorker('w1');
  env.ignoreMessages();
  env.addWorker('w1', { held: { x: runId } });
  expect(env.task('x').whoHas.items.map(({ name }) => name)).toEqual(['w2', 'w1']);
  env.expectEmpty();
});

it('what is being computed elsewhere is freed', () => {
  const env = new SchedulerEnv();
  const runId = computed(env);
  env.addWorker('w2');
  env.removeWorker('w1');
  expect(env.states).toEqual({ x: 'processing w2' });
  env.ignoreMessages();
  env.addWorker('w1', { held: { x: runId } });
  expect(env.states).toEqual({ x: 'processing w2' });
  expect(env.takeWorker('w1')).toEqual(['free-keys x']);
  env.expectEmpty();
});

it('a key that was submitted anew is not mistaken for the old one', () => {
  const env = new SchedulerEnv();
  const runId = computed(env);
  env.removeWorker('w1');
  env.release('x');
  env.submit({ x: [] });
  env.ignoreMessages();
  env.addWorker('w1', { held: { x: runId } });
  // Freed before the new task of that name arrives.
  expect(env.takeWorker('w1')).toEqual(['free-keys x', 'compute-task x']);
  expect(env.states).toEqual({ x: 'processing w1' });
  env.expectEmpty();
});

it('results that are unknown or not needed are freed', () => {
  const env = new SchedulerEnv();
  const runId = computed(env);
  env.removeWorker('w1');
  env.release('x');
  env.ignoreMessages();
  env.addWorker('w1', { held: { x: runId, y: 77 } });
  expect(env.takeWorker('w1')).toEqual(['free-keys x y']);
  env.expectEmpty();
});

it('a chain continues where it was: the inputs of what is held are not computed again', () => {
  const env = new SchedulerEnv();
  env.addWorker('w1');
  env.submit({ a: [], b: ['a'], c: ['b'], d: ['c'] }, { keys: ['d'] });
  const runIds: Record<string, number> = {};
  for (const key of ['a', 'b', 'c']) {
    runIds[key] = env.task(key).runId;
    env.finish(key);
  }
  env.removeWorker('w1');
  env.ignoreMessages();
  env.addWorker('w1', { held: { c: runIds['c']! } });
  expect(env.states).toEqual({ a: 'released', b: 'released', c: 'memory w1', d: 'processing w1' });
  expect(env.takeWorker('w1')).toEqual(['compute-task d (c on w1)']);
  env.expectEmpty();
});

it('a client learns of a result that was lost and is back', () => {
  const env = new SchedulerEnv();
  const runId = computed(env);
  env.removeWorker('w1');
  expect(env.takeClient()).toEqual(['lost-data x']);
  env.ignoreMessages();
  env.addWorker('w1', { held: { x: runId } });
  expect(env.takeClient()).toEqual(['key-in-memory x on w1']);
});

it('a result whose size a returning worker does not report is freed and computed again', () => {
  const env = new SchedulerEnv();
  const runId = computed(env);
  const { identity } = env.worker('w1');
  env.removeWorker('w1');
  env.ignoreMessages();
  const held = { keys: ['x'], runIds: [runId], nbytes: [], types: [] };
  env.send({ op: 'register-worker', identity, status: 'running', held });
  expect(env.takeWorker('w1')).toEqual(['free-keys x', 'compute-task x']);
});

it('a task is not started because of its input when the result that needed it is back, too', () => {
  const env = new SchedulerEnv();
  env.addWorker('w1');
  env.submit({ z: [], e: ['z'], r: ['e'] }, { keys: ['r', 'z'] });
  const runIds: Record<string, number> = {};
  for (const key of ['z', 'e', 'r']) {
    runIds[key] = env.task(key).runId;
    env.finish(key);
  }
  env.removeWorker('w1');
  env.ignoreMessages();
  env.addWorker('w1', { held: { r: runIds['r']!, z: runIds['z']! } });
  expect(env.states).toEqual({ z: 'memory w1', e: 'released', r: 'memory w1' });
});
