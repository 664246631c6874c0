import { expect, it } from 'vitest';
import { SchedulerEnv } from '../../../kit/env.ts';
import { numbered } from '../../../kit/graph.ts';

/** Tasks a and b = a, with a processing on w1 and w2 idle. */
function running(): SchedulerEnv {
  const env = new SchedulerEnv();
  env.addWorkers(2);
  env.submit({ a: [], b: ['a'] });
  return env.ignoreMessages();
}

it('a result from an unknown worker is ignored', () => {
  const env = running();
  env.finish('a', { worker: 'stranger' });
  expect(env.state('a')).toBe('processing');
  env.expectEmpty();
});

it('a result for an unknown task is freed', () => {
  const env = running();
  env.finish('unknown', { worker: 'w2', runId: 0 });
  expect(env.takeWorker('w2')).toEqual(['free-keys unknown']);
  env.expectEmpty();
});

it('a result for a task that has failed is freed', () => {
  const env = running();
  env.fail('a');
  env.ignoreMessages();
  env.finish('a', { worker: 'w1' });
  expect(env.takeWorker('w1')).toEqual(['free-keys a']);
});

it('a result for a queued task is freed', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit(numbered('r', 3));
  env.ignoreMessages();
  env.finish('r-2', { worker: 'w1', runId: 77 });
  expect(env.takeWorker('w1')).toEqual(['free-keys r-2']);
});

it('a stale result from another worker is freed', () => {
  const env = running();
  const { runId } = env.task('a');
  env.removeWorker('w1');
  env.addWorker('w1');
  env.ignoreMessages();
  expect(env.states).toMatchObject({ a: 'processing w2' });
  env.finish('a', { worker: 'w1', runId });
  expect(env.takeWorker('w1')).toEqual(['free-keys a']);
  expect(env.states).toMatchObject({ a: 'processing w2' });
});

it('a stale result from the worker that is computing the task starts it anew', () => {
  const env = running();
  env.finish('a', { runId: 99 });
  expect(env.takeWorker('w1')).toContain('free-keys a');
  expect(env.task('a')).toMatchObject({ state: 'processing', runId: 1 });
});

it('a result with the run id in force from another worker is freed', () => {
  const env = running();
  env.finish('a', { worker: 'w2' });
  expect(env.takeWorker('w2')).toEqual(['free-keys a']);
  expect(env.states).toMatchObject({ a: 'processing w1' });
});

it('a second report of the same result changes nothing', () => {
  const env = running();
  env.finish('a');
  env.ignoreMessages();
  env.finish('a', { worker: 'w1' });
  expect(env.states).toMatchObject({ a: 'memory w1' });
  env.expectEmpty();
});

it('a result that is not needed any more when it arrives is freed', () => {
  const env = running();
  const { runId } = env.task('a');
  env.release('b');
  env.ignoreMessages();
  env.finish('a', { worker: 'w1', runId });
  expect(env.takeWorker('w1')).toEqual(['free-keys a']);
  expect(env.states).toEqual({});
});

// ---- failures ------------------------------------------------------------------------------

it('a failure of a task that is not processing is ignored', () => {
  const env = running();
  env.fail('b', { worker: 'w1' });
  env.fail('unknown', { worker: 'w1', runId: 0 });
  expect(env.states).toEqual({ a: 'processing w1', b: 'waiting' });
  env.expectEmpty();
});

it('a failure from another worker is ignored', () => {
  const env = running();
  env.fail('a', { worker: 'w2' });
  expect(env.states).toMatchObject({ a: 'processing w1' });
  env.expectEmpty();
});

it('a stale failure from the worker that is computing the task starts it anew', () => {
  const env = running();
  env.fail('a', { runId: 99 });
  expect(env.task('a')).toMatchObject({ state: 'processing', runId: 1 });
  expect(env.takeClient()).toEqual([]);
});

it('a retry that is left is used up instead of failing', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: { retries: 2 } });
  env.fail('a');
  env.fail('a');
  expect(env.task('a')).toMatchObject({ state: 'processing', retries: 0 });
  expect(env.takeClient()).toEqual([]);
  env.fail('a');
  expect(env.takeClient()).toEqual(['task-erred a because of a']);
});

// ---- reschedule ----------------------------------------------------------------------------

it('a submission that does not say gets the default number of retries', () => {
  const env = new SchedulerEnv({ kernel: { defaultRetries: 1 } });
  env.addWorkers(1);
  env.submit({ a: [], b: { retries: 0 } });
  env.fail('b');
  env.fail('a');
  expect(env.states).toMatchObject({ a: 'processing w1', b: 'erred' });
  env.fail('a');
  expect(env.state('a')).toBe('erred');
});

it('a rescheduled task is placed anew, and no retry is used up', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: { retries: 1 } });
  env.ignoreMessages();
  env.reschedule('a', 'w1');
  expect(env.takeWorker('w1')).toEqual(['free-keys a', 'compute-task a']);
  expect(env.task('a')).toMatchObject({ retries: 1, suspicious: 0 });
  env.expectEmpty();
});

it('only the worker that has the task may reschedule it', () => {
  const env = running();
  env.reschedule('a', 'w2');
  env.reschedule('b');
  env.reschedule('unknown');
  expect(env.states).toEqual({ a: 'processing w1', b: 'waiting' });
  env.expectEmpty();
});

it('a rescheduled task that no client wants is not placed again', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: [] });
  env.release('a');
  env.ignoreMessages();
  env.reschedule('a');
  env.expectEmpty();
});

// ---- long-running --------------------------------------------------------------------------

it('a seceded task counts as processing, but not as load', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: [] });
  env.secede('a');
  expect(env.worker('w1')).toMatchObject({ occupancyS: 0 });
  expect(env.worker('w1').processing.size).toBe(1);
  expect(env.worker('w1').longRunning.size).toBe(1);
});

it('a seceded task frees a slot for a queued one', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit(numbered('r', 3));
  env.ignoreMessages();
  env.secede('r-0', { durationS: 3 });
  expect(env.takeWorker('w1')).toEqual(['compute-task r-2']);
  expect(env.cluster.prefixes.get('r')!.durationAverageS).toBe(3);
});

it('a task secedes once', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: [], b: [] });
  env.secede('a');
  env.secede('a');
  expect(env.worker('w1').openSlots).toBe(1);
});

it('a stale or foreign report of seceding is ignored', () => {
  const env = running();
  env.secede('a', { runId: 99 });
  env.secede('a', { worker: 'w2' });
  env.secede('b', { worker: 'w1', runId: -1 });
  expect(env.worker('w1').longRunning.size).toBe(0);
});

it('a seceded task that finishes leaves no trace', () => {
  const env = running();
  env.secede('a');
  env.finish('a');
  expect(env.worker('w1').longRunning.size).toBe(0);
  expect(env.states).toEqual({ a: 'memory w1', b: 'processing w1' });
});
