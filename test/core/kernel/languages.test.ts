import { expect, it } from 'vitest';

import { SchedulerEnv } from '../../kit/env.ts';

/** Tasks whose key begins with `py` are Python's. */
function mixed(): SchedulerEnv {
  const env = new SchedulerEnv();
  env.kernel.cluster.languageOf = (spec) => {
    return String(spec).startsWith('compute py') ? 'python' : 'javascript';
  };
  return env;
}

it('while all workers speak one language, nothing is restricted and tasks are queued', () => {
  const env = mixed();
  env.addWorker('w1', { language: 'python' });
  env.submit({ 'py-1': [], 'py-2': [], 'py-3': [] });
  expect(env.task('py-3').state).toBe('queued');
});

it('tasks go to workers of their language', () => {
  const env = mixed();
  env.addWorker('w1');
  env.addWorker('w2', { language: 'python' });
  env.submit({ 'py-1': [], 'js-1': [], 'py-2': [] });
  expect(env.takeWorker('w1')).toEqual(['compute-task js-1']);
  expect(env.takeWorker('w2')).toEqual(['compute-task py-1', 'compute-task py-2']);
});

it('a task waits for a worker of its language, also when it would take others for its place', () => {
  const env = mixed();
  env.addWorker('w1');
  env.submit({ 'py-1': { workers: ['tcp://gone:1'], allowOtherWorkers: true } });
  expect(env.task('py-1').state).toBe('no-worker');
  env.addWorker('w2', { language: 'python' });
  expect(env.takeWorker('w2')).toEqual(['compute-task py-1']);
});

it('what was queued before workers of another language came goes to those of its language', () => {
  const env = mixed();
  env.addWorker('w1');
  env.submit({ 'js-1': [], 'js-2': [], 'js-3': [] });
  expect(env.takeWorker('w1')).toEqual(['compute-task js-1', 'compute-task js-2']);
  env.addWorker('w2', { language: 'python' });
  expect(env.takeWorker('w1')).toEqual(['compute-task js-3']);
  env.expectEmpty();
});

it('a translation is no copy: it is freed with the result, and gone with its worker', () => {
  const env = mixed();
  env.addWorker('w1');
  env.addWorker('w2', { language: 'python' });
  env.addWorker('w3', { language: 'python' });
  env.submit({ 'js-1': [] });
  env.finish('js-1');
  env.ignoreMessages();
  env.addKeys('w2', 'js-1');
  env.addKeys('w3', 'js-1');
  expect(env.task('js-1').whoHas.size).toBe(1);
  expect(env.kernel.cluster.replicated.size).toBe(0);
  env.removeWorker('w3');
  env.ignoreMessages();
  env.release('js-1');
  expect(env.takeWorker('w2')).toEqual(['free-keys js-1']);
  expect(env.kernel.cluster.translations.size).toBe(0);
});

it('when the last copy goes, the result is computed again, whatever translations there are', () => {
  const env = mixed();
  env.addWorker('w1');
  env.addWorker('w2', { language: 'python' });
  env.submit({ 'js-1': [] });
  env.finish('js-1');
  env.addKeys('w2', 'js-1');
  env.ignoreMessages();
  env.removeWorker('w1');
  expect(env.task('js-1').state).toBe('no-worker');
  expect(env.takeWorker('w2')).toContain('free-keys js-1');
});

it('copies are not asked of workers of another language', () => {
  const env = mixed();
  env.addWorker('w1');
  env.addWorker('w2', { language: 'python' });
  env.submit({ 'js-1': [] });
  env.finish('js-1');
  env.ignoreMessages();
  env.send({
    op: 'move-replicas',
    acquire: [{ worker: 'tcp://w2:1', keys: ['js-1'] }],
    remove: [],
  });
  env.expectEmpty();
});

it('a worker need not fetch what it has a translation of, neither for a task that is there nor for a later one', () => {
  const env = mixed();
  env.addWorker('w1');
  env.addWorker('w2', { language: 'python', threads: 2 });
  env.submit({ 'js-1': [], 'py-1': ['js-1'] });
  env.finish('js-1');
  expect(env.worker('w2').networkBytes).toBe(100);
  env.addKeys('w2', 'js-1');
  expect(env.worker('w2').networkBytes).toBe(0);
  env.submit({ 'py-2': ['js-1'] });
  expect(env.states).toMatchObject({ 'py-1': 'processing w2', 'py-2': 'processing w2' });
  expect(env.worker('w2').networkBytes).toBe(0);
  env.finishAll('py-1', 'py-2');
  env.removeWorker('w1');
  env.submit({ 'py-3': ['js-1'] });
  env.addWorker('w3');
  expect(env.state('js-1')).toBe('processing');
});
