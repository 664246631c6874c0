import { expect, it } from 'vitest';
import { SchedulerEnv } from '../../kit/env.ts';
import { numbered } from '../../kit/graph.ts';

it('an actor is listed by its worker while it is made and while it lives', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: { actor: true } });
  expect(env.worker('w1').actors.size).toBe(1);
  env.finish('a');
  expect(env.worker('w1').actors.size).toBe(1);
  env.release('a');
  expect(env.worker('w1').actors.size).toBe(0);
});

it('an actor goes where the fewest actors are, not where its input is', () => {
  const env = new SchedulerEnv();
  env.addWorkers(2);
  env.scatter({ x: ['w1'] });
  env.submit({ first: { deps: ['x'], actor: true } });
  env.submit({ second: { deps: ['x'], actor: true } });
  expect(env.states).toMatchObject({ first: 'processing w1', second: 'processing w2' });
});

it('an actor is never queued', () => {
  const env = new SchedulerEnv();
  env.submit(numbered('r', 4, { actor: true }));
  expect(new Set(Object.values(env.states))).toEqual(new Set(['no-worker']));
});

it('a wanted actor fails with its worker', () => {
  const env = new SchedulerEnv();
  env.addWorkers(2);
  env.submit({ a: { actor: true, workers: ['tcp://w1:1'] } });
  env.finish('a');
  env.ignoreMessages();
  env.removeWorker('w1');
  expect(env.takeClientMessages()).toMatchObject([
    { op: 'task-erred', key: 'a', failure: { exception: { code: 'ERR_ACTOR_LOST' } } },
  ]);
  expect(env.states).toEqual({ a: 'erred' });
});

it('what was computed with a lost actor stays', () => {
  const env = new SchedulerEnv();
  env.addWorkers(2);
  const graph = {
    a: { actor: true, workers: ['tcp://w1:1'] },
    b: { deps: ['a'], workers: ['tcp://w2:1'] },
  };
  env.submit(graph, { keys: ['a', 'b'] });
  env.finishAll('a', 'b');
  env.submit({ late: ['a', 'b'] });
  env.removeWorker('w1');
  expect(env.states).toEqual({ a: 'erred', late: 'erred', b: 'memory w2' });
});

it('an actor that dies while it is made is made again elsewhere', () => {
  const env = new SchedulerEnv();
  env.addWorkers(2);
  env.submit({ a: { actor: true } });
  env.removeWorker('w1');
  expect(env.states).toEqual({ a: 'processing w2' });
  expect(env.worker('w2').actors.size).toBe(1);
});

it('an actor that is taken back while it is made leaves its worker', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: { actor: true } });
  env.release('a');
  expect(env.worker('w1').actors.size).toBe(0);
});

it('actors of a large group do not wait for open slots', () => {
  const env = new SchedulerEnv();
  env.addWorkers(2);
  env.submit(numbered('r', 9, { actor: true }));
  expect(env.worker('w1').actors.size + env.worker('w2').actors.size).toBe(9);
});
