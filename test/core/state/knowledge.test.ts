import { expect, it } from 'vitest';
import type { KernelOptions } from '../../../core/kernel/ports.ts';
import { UNUSED_PREFIXES_MAX } from '../../../core/state/cluster.ts';
import type { KnownPrefix } from '../../../core/state/groups.ts';
import { SchedulerEnv } from '../../kit/env.ts';
import { numbered } from '../../kit/graph.ts';

const LOAD: KnownPrefix = { name: 'load', count: 20, durationS: 3, nbytes: 5000, spread: 0.5 };

/** A scheduler that begins with this knowledge, and one worker. */
function knowing(prefixes: readonly KnownPrefix[], kernel: Partial<KernelOptions> = {}) {
  const env = new SchedulerEnv({ kernel });
  env.addWorker('w1', { threads: 40 });
  env.send({ op: 'recall-prefixes', prefixes });
  return env;
}

const prefixOf = (env: SchedulerEnv, name: string) => env.kernel.cluster.prefixes.get(name)!;

it('tasks of a known prefix are expected to take as long as they did', () => {
  const env = knowing([LOAD]);
  env.submit({ 'load-1': [], 'other-1': [] });
  expect(env.worker('w1').occupancyS).toBe(3 + 0.5);
});

it('a prefix of which tasks have run, and none is processing, learns what is known', () => {
  const env = knowing([]);
  env.submit({ 'load-1': [] });
  env.finish('load-1');
  env.send({ op: 'recall-prefixes', prefixes: [LOAD] });
  expect(prefixOf(env, 'load').durationEstimateS).toBe(3);
  env.submit({ 'load-2': [] });
  env.send({ op: 'recall-prefixes', prefixes: [{ ...LOAD, count: 30, durationS: 9 }] });
  expect(prefixOf(env, 'load').durationEstimateS).toBe(3);
});

it('of two sources the one that has measured more is believed', () => {
  const env = knowing([{ ...LOAD, count: 2 }]);
  env.submit(numbered('load', 3));
  env.finishAll('load-0', 'load-1', 'load-2');
  const { durationEstimateS } = prefixOf(env, 'load');
  env.send({ op: 'recall-prefixes', prefixes: [{ ...LOAD, count: 5 }] });
  expect(prefixOf(env, 'load').durationEstimateS).toBe(durationEstimateS);
});

it('a duration that the configuration states wins', () => {
  const env = knowing([LOAD], { defaultTaskDurationsS: new Map([['load', 7]]) });
  env.submit({ 'load-1': [] });
  expect(env.worker('w1').occupancyS).toBe(7);
});

it('short tasks of a known prefix share slots from the first on', () => {
  const tiny = { ...LOAD, durationS: 0.0001, nbytes: 8 };
  const env = knowing([tiny], { slotWorkS: 0.004 });
  env.submit({ 'load-1': [] });
  expect(prefixOf(env, 'load').sharing.tasksPerSlot).toBe(16);
});

it('what is measured outweighs what was known before the tenth task, and is no pace of the worker', () => {
  const env = knowing([{ ...LOAD, count: 1e6 }]);
  env.submit(numbered('load', 9));
  for (let n = 0; n < 9; n++) env.finish(`load-${n}`, { durationS: 20 });
  expect(env.kernel.cluster.knowledge()[0]!.durationS).toBeGreaterThan(12);
  expect(prefixOf(env, 'load').durationEstimateS).toBeGreaterThan(19);
  expect(env.worker('w1').pace).toBe(1);
});

it('another run gets durations, their spread and sizes of what was measured', () => {
  const env = knowing([]);
  env.submit({ ...numbered('load', 3), ...numbered('tiny', 2) });
  env.finish('load-0', { durationS: 1, nbytes: 100 });
  env.finish('load-1', { durationS: Math.E ** 2, nbytes: 300 });
  env.finish('tiny-0', { durationS: 0.0001, nbytes: 1 });
  env.finish('tiny-1', { durationS: 0.0003, nbytes: 1 });
  const durationS = (1 + Math.E ** 2) / 2;
  const first = [
    { name: 'load', count: 2, durationS, nbytes: 200, spread: 2 },
    { name: 'tiny', count: 2, durationS: expect.closeTo(0.0002) as number, nbytes: 1, spread: 0 },
  ];
  expect(env.kernel.cluster.knowledge()).toEqual(first);
  const next = knowing(env.kernel.cluster.knowledge());
  next.submit({ 'load-3': [] });
  next.finish('load-3', { durationS, nbytes: 200 });
  expect(next.kernel.cluster.knowledge()).toEqual([
    first[1],
    { name: 'load', count: 3, durationS, nbytes: 200, spread: Math.SQRT2 },
  ]);
});

it('a restart of the cluster keeps what earlier runs have found out', () => {
  const env = knowing([LOAD]);
  env.submit({ 'load-1': [] });
  env.send({ op: 'restart' });
  env.submit({ 'load-2': [] });
  expect(prefixOf(env, 'load').durationEstimateS).toBe(3);
});

it('prefixes that were used last come last, and the longest unused ones are left out', () => {
  const old = Array.from({ length: UNUSED_PREFIXES_MAX }, (_, n) => ({ ...LOAD, name: `p${n}` }));
  const env = knowing(old);
  env.submit({ 'p0-1': [], 'new-1': [] });
  env.finishAll('p0-1', 'new-1');
  const names = env.kernel.cluster.knowledge().map(({ name }) => name);
  expect(names).toHaveLength(UNUSED_PREFIXES_MAX);
  expect(names[0]).toBe('p2');
  expect(names.slice(-2)).toEqual(['p0', 'new']);
});
