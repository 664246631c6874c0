import { expect, it } from 'vitest';
import { InputLocations } from '../../../../core/kernel/placement.ts';
import { SchedulerEnv } from '../../../kit/env.ts';

function withResult() {
  const env = new SchedulerEnv();
  env.addWorkers(2);
  env.submit({ a: [] });
  env.finish('a', { nbytes: 10 });
  env.ignoreMessages();
  return env;
}

it('what is said about a single input is made once for those that follow each other', () => {
  const env = withResult();
  const locations = new InputLocations();
  const first = locations.of([env.task('a')]);
  expect(first).toMatchObject({ keys: ['a'], nbytes: [10] });
  expect(locations.of([env.task('a')])).toBe(first);
});

it('a further copy is reported', () => {
  const env = withResult();
  const locations = new InputLocations();
  const { whoHas } = locations.of([env.task('a')]);
  const [holder] = whoHas[0]!;
  const other = [...env.cluster.workers.keys()].find((address) => address !== holder)!;
  env.send({ op: 'add-keys', worker: other, keys: ['a'] });
  expect(locations.of([env.task('a')]).whoHas).toEqual([[holder, other]]);
  env.ignoreMessages();
});

it('another input is described by itself, and so are several', () => {
  const env = withResult();
  env.submit({ b: [] });
  env.finish('b', { nbytes: 20 });
  const [a, b] = [env.task('a'), env.task('b')];
  const locations = new InputLocations();
  expect(locations.of([a]).keys).toEqual(['a']);
  expect(locations.of([b])).toMatchObject({ keys: ['b'], nbytes: [20] });
  expect(locations.of([a, b]).keys).toEqual(['a', 'b']);
  expect(locations.of([b]).keys).toEqual(['b']);
  expect(locations.of([]).keys).toEqual([]);
  env.ignoreMessages();
});
