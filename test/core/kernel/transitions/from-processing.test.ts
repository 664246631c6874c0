import { expect, it } from 'vitest';
import { SchedulerEnv } from '../../../kit/env.ts';

function running(): SchedulerEnv {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: [], b: ['a'] });
  return env.ignoreMessages();
}

it('a finished task frees its worker and sends its dependents', () => {
  const env = running();
  env.finish('a', { nbytes: 7, type: 'string' });
  expect(env.takeWorker('w1')).toEqual(['compute-task b (a on w1)']);
  expect(env.task('a')).toMatchObject({ nbytes: 7, type: 'string', state: 'memory' });
  expect(env.task('a').group.types).toEqual(new Map([['string', 1]]));
  expect([...env.worker('w1').processing].map(({ key }) => key)).toEqual(['b']);
  env.expectEmpty();
});

it('the time of a computation is learned by its prefix', () => {
  const env = running();
  env.finish('a', { durationS: 3 });
  expect(env.task('a').prefix.durationAverageS).toBe(3);
  expect(env.task('a').group.durationS).toBe(3);
});

it('the newest computation weighs one half in the average', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ 'a-1': [], 'a-2': [] });
  env.finish('a-1', { durationS: 1 });
  env.finish('a-2', { durationS: 2 });
  expect(env.cluster.prefixes.get('a')!.durationAverageS).toBe(1.5);
});

it('the metadata of the reports are merged', () => {
  const env = running();
  env.finish('a', { metadata: { lines: 3 } });
  expect(env.task('a').metadata).toEqual({ lines: 3 });
});

it('a failed task fails what waits for it, and its client hears who is to blame', () => {
  const env = running();
  env.fail('a');
  expect(env.states).toEqual({ a: 'erred', b: 'erred' });
  expect(env.takeClientMessages()).toMatchObject([
    { op: 'task-erred', key: 'b', blame: 'a', failure: { exceptionText: 'a threw' } },
  ]);
  expect([...env.task('a').erredOn]).toEqual(['tcp://w1:1']);
  expect(env.cluster.erredTasks.map(({ key }) => key)).toEqual(['a']);
  env.expectEmpty();
});

it('a failure does not touch results that were computed before', () => {
  const env = running();
  env.finish('a');
  env.submit({ a: [] });
  env.fail('b');
  expect(env.states).toEqual({ a: 'memory w1', b: 'erred' });
});

it('a task that is taken back is freed on its worker', () => {
  const env = running();
  env.release('b');
  expect(env.takeWorker('w1')).toEqual(['free-keys a']);
  expect(env.worker('w1')).toMatchObject({ occupancyS: 0 });
  env.expectEmpty();
});

it('a task that fails because an actor is lost is freed on its worker', () => {
  const env = new SchedulerEnv();
  env.addWorkers(2);
  env.submit({ actor: { actor: true, workers: ['tcp://w1:1'] } });
  env.finish('actor');
  env.submit({ user: { deps: ['actor'], workers: ['tcp://w2:1'] } });
  env.ignoreMessages();
  env.removeWorker('w1');
  expect(env.takeWorker('w2')).toContain('free-keys user');
  expect(env.states).toEqual({ actor: 'erred', user: 'erred' });
});

it('a history of failures is kept, newest first and bounded', () => {
  const env = new SchedulerEnv({ kernel: { erredTasksMax: 2 } });
  env.addWorkers(1);
  env.submit({ a: [], b: [], c: [] });
  for (const key of ['a', 'b', 'c']) env.fail(key);
  expect(env.cluster.erredTasks).toMatchObject([
    { key: 'c', exceptionText: 'c threw', erredOn: ['tcp://w1:1'] },
    { key: 'b' },
  ]);
});
