import { expect, it } from 'vitest';
import { RunningTasks, waitingIn } from '../../../core/shared/waiting.ts';
import { SchedulerEnv } from '../../kit/env.ts';

const limited = (name: string): object => ({ limit: { name, max: 1 } });

it('says which limits tasks wait for, and sums up those beyond three', () => {
  const env = new SchedulerEnv();
  env.addWorkers(5, { threads: 4 });
  const names = ['a', 'b', 'c', 'd', 'e'];
  const tasks = names.flatMap((name) => [1, 2, 3].map((n) => [`${name}${n}`, limited(name)]));
  env.submit(Object.fromEntries(tasks) as Record<string, object>);
  expect(waitingIn(env.cluster).map(({ text }) => text)).toEqual([
    '2 tasks wait for the limit a, a2 first: 1 of 1 run.',
    '2 tasks wait for the limit b, b2 first: 1 of 1 run.',
    '2 tasks wait for the limit c, c2 first: 1 of 1 run.',
    '4 tasks wait for other limits.',
  ]);
});

it('names extensions that everything had to wait for', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1, { threads: 1 });
  const slowCalls = new Map([['the hook taskTransition of plugin "audit"', 120.4]]);
  expect(waitingIn(env.cluster, slowCalls).map(({ text }) => text)).toEqual([
    'The scheduler stood still for 120 ms lately, because of the hook taskTransition of plugin "audit".',
  ]);
});

it('says that a limit lets one start from time to time, when that is what tasks wait for', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1, { threads: 4 });
  const limit = { limit: { name: 'api', max: 3, intervalMs: 10_000 } };
  env.submit({ a: limit, b: limit, c: limit });
  expect(waitingIn(env.cluster).map(({ text }) => text)).toEqual([
    '2 tasks wait for the limit api, b first: one starts every 10 s, all within 20 s.',
  ]);
});

it('counts what waits on each worker, and names the fullest while threads elsewhere are idle', () => {
  const env = new SchedulerEnv();
  env.addWorkers(3, { threads: 2 });
  const only = { workers: ['tcp://w1:1'] };
  env.submit(Object.fromEntries(Array.from({ length: 10 }, (_, n) => [`resize-${n}`, only])));
  expect(waitingIn(env.cluster).map(({ text }) => text)).toEqual([
    '8 tasks wait on the workers behind those that run, 8 of them on w1, while 4 of 6 threads are idle: no idle worker may run tasks such as resize-0, because of a restriction to certain workers.',
  ]);
});

it('names the task that runs far longer than those before it', () => {
  const env = new SchedulerEnv();
  env.addWorkers(2, { threads: 4 });
  const keys = Array.from({ length: 7 }, (_, n) => `crunch-${n}`);
  env.submit(Object.fromEntries(keys.map((key) => [key, []])));
  for (const key of keys.slice(0, 6)) env.finish(key, { durationS: 0.5 });
  const [, place] = /^tcp:..(w\d)/.exec(env.task('crunch-6').processingOn!.address)!;
  env.heartbeat(place!, { executing: { 'crunch-6': 480 } });
  expect(waitingIn(env.cluster).map(({ text }) => text)).toEqual([
    `1 task runs far longer than usual: crunch-6 for 8 min on ${place}, where 6 before took 500 ms.`,
  ]);
});

it('names what runs, the longest first, and those that began since their worker told', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1, { threads: 2 });
  const sentence = (): string => new RunningTasks(env.cluster).sentence.text;
  expect(sentence()).toBe('No task runs.');
  env.submit({ a: {}, b: {}, c: {} });
  env.heartbeat('w1', { executing: { a: 1, b: 2 } });
  expect(sentence()).toBe('2 tasks run: b on w1 for 2 s, a on w1 for 1 s.');
  env.finish('b');
  expect(sentence()).toBe('2 tasks run: a on w1 for 1 s, c on w1.');
});

it('names the worker that died most often, and whether it is back, while there is work', () => {
  const env = new SchedulerEnv();
  env.addWorkers(2, { threads: 1 });
  env.submit({ 'tag-0': {}, 'tag-1': {}, 'tag-2': {} });
  const during = [...env.cluster.workers.values()][1]!.processing;
  const [task] = Array.from(during, ({ key }) => key);
  env.removeWorker('w2');
  const sentence = (): string | undefined =>
    waitingIn(env.cluster).find(({ text }) => text.includes('died'))?.text;
  expect(sentence()).toBe(`w2 died while it had ${task}, and is not back.`);
  env.addWorker('w2', { threads: 1 });
  expect(sentence()).toBeUndefined();
  env.removeWorker('w2');
  env.addWorker('w2', { threads: 1 });
  expect(sentence()).toMatch(/^w2 died 2 times while it had tag-\d\.$/);
});
