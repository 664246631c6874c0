import { expect, it } from 'vitest';
import { SchedulerEnv } from '../../../kit/env.ts';
import { addressOf } from '../../../kit/in-short.ts';

interface Given {
  readonly at: readonly string[];
  readonly fingerprint?: string;
  readonly reservation?: number;
  readonly type?: string;
  readonly nbytes?: number;
}

function cluster(): SchedulerEnv {
  const env = new SchedulerEnv();
  env.addWorkers(3);
  env.client('c');
  env.client('d');
  return env;
}

/** A client put data under the key x. */
function put(env: SchedulerEnv, client: string, { at, nbytes = 100, ...rest }: Given): void {
  const items = [{ key: 'x', nbytes, workers: at.map(addressOf), ...rest }];
  env.send({ op: 'update-data', client, items });
}

it('data with another fingerprint is refused, and freed where it was put', () => {
  const env = cluster();
  put(env, 'c', { at: ['w1'], fingerprint: 'one', type: 'number' });
  env.ignoreMessages();
  put(env, 'd', { at: ['w1', 'w2'], fingerprint: 'other', type: 'number' });
  expect(env.takeClient('d')).toEqual(['data-refused x']);
  expect(env.takeWorker('w2')).toEqual(['free-keys x']);
  expect(env.states).toEqual({ x: 'memory w1' });
  env.expectEmpty();
  env.release('x');
  expect(env.states).toEqual({});
});

it('the same data is one more copy', () => {
  const env = cluster();
  put(env, 'c', { at: ['w1'], fingerprint: 'one', type: 'number' });
  put(env, 'd', { at: ['w2'], fingerprint: 'one', type: 'number' });
  expect(env.states).toEqual({ x: 'memory w1 w2' });
});

it.each([
  ['another type', { at: ['w2'], type: 'string' }, 'data-refused x'],
  ['another size', { at: ['w2'], type: 'number', nbytes: 8 }, 'data-refused x'],
  ['the same type and size', { at: ['w2'], type: 'number' }, 'key-in-memory x on w1 w2'],
  ['an estimated size and no type', { at: ['w2'], nbytes: 8 }, 'key-in-memory x on w1 w2'],
])('data without a fingerprint, of %s, is judged by what is known', (_, given, answer) => {
  const env = cluster();
  put(env, 'c', { at: ['w1'], type: 'number' });
  put(env, 'd', given);
  expect(env.takeClient('d')).toEqual([answer]);
});

it('a result that was computed is not mixed with data', () => {
  const env = cluster();
  env.submit({ x: { workers: [addressOf('w1')] } });
  env.finish('x');
  put(env, 'd', { at: ['w2'], fingerprint: 'one', type: 'number' });
  expect(env.takeClient('d')).toEqual(['data-refused x']);
  expect(env.states).toEqual({ x: 'memory w1' });
});

it.each([
  ['processing', 'w1'],
  ['waiting', 'w2'],
])('data under the key of a task that is %s and wanted is refused', (state, at) => {
  const env = cluster();
  env.submit({
    a: { workers: [addressOf('w3')] },
    x: { deps: state === 'waiting' ? ['a'] : [], workers: [addressOf('w1')] },
  });
  expect(env.state('x')).toBe(state);
  env.ignoreMessages();
  put(env, 'd', { at: [at], fingerprint: 'one', type: 'number' });
  expect(env.takeClient('d')).toEqual(['data-refused x']);
  expect(env.state('x')).toBe(state);
  env.ignoreMessages();
});

it('data under the key of a task that nobody wants takes its place', () => {
  const env = cluster();
  env.submit({ x: [], y: ['x'] });
  env.finishAll('x', 'y');
  env.ignoreMessages();
  expect(env.state('x')).toBe('released');
  put(env, 'd', { at: ['w1'], fingerprint: 'one', type: 'number' });
  expect(env.states).toEqual({ x: 'memory w1', y: 'memory w1' });
});

it('lost data can be replaced by other data', () => {
  const env = cluster();
  put(env, 'c', { at: ['w1'], fingerprint: 'one', type: 'number' });
  env.removeWorker('w1');
  put(env, 'd', { at: ['w2'], fingerprint: 'other', type: 'number' });
  expect(env.states).toEqual({ x: 'memory w2' });
});

it('the news that a worker has dropped what was there before the data is not about the data', () => {
  const env = cluster();
  put(env, 'c', { at: ['w1'], fingerprint: 'one', reservation: 5 });
  const dropped = { op: 'release-worker-data', worker: addressOf('w1'), keys: ['x'] } as const;
  env.send({ ...dropped, reservation: 4 });
  expect(env.states).toEqual({ x: 'memory w1' });
  env.send({ ...dropped, reservation: 5 });
  expect(env.states).toEqual({});
});

it('of two values under one key in one message the first counts', () => {
  const env = cluster();
  const item = { key: 'x', nbytes: 1, type: 'number' };
  const items = [
    { ...item, workers: [addressOf('w1')], fingerprint: 'one' },
    { ...item, workers: [addressOf('w2')], fingerprint: 'other' },
  ];
  env.send({ op: 'update-data', client: 'c', items });
  expect(env.states).toEqual({ x: 'memory w1' });
  expect(env.takeClient('c')).toEqual(['key-in-memory x on w1', 'data-refused x']);
});
