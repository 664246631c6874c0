/** What the author of a task says about it: that it makes data, and nothing about its size. */
import { expect, it } from 'vitest';
import type { Queuing } from '../../../core/api/policies.ts';
import { coAssign } from '../../../policies/queuing/co-assign.ts';
import { family } from '../../../policies/queuing/family.ts';
import { rootish } from '../../../policies/queuing/root-ish.ts';
import { SchedulerEnv } from '../../kit/env.ts';
import { made } from '../../kit/made.ts';

const POLICIES: readonly (readonly [name: string, queuing: Queuing])[] = [
  ['root-ish', made(rootish)],
  ['co-assign', made(coAssign)],
  ['family', made(family)],
];

const W1 = 'tcp://w1:1';

function isRootish(queuing: Queuing, mark: Readonly<Record<string, unknown>>): boolean {
  const env = new SchedulerEnv({ policies: { queuing } });
  env.addWorkers(1, { threads: 8 });
  env.client();
  env.send({
    op: 'update-graph',
    client: 'c',
    keys: ['load'],
    tasks: [
      { key: 'a', dependencies: [], runSpec: 1 },
      { key: 'b', dependencies: ['a'], runSpec: 1 },
      { key: 'load', dependencies: ['b'], runSpec: 1, ...mark },
    ],
  });
  return queuing.isRootish(env.task('load'), env.cluster);
}

it.each(POLICIES)(
  'with %s a data producer is root-ish, however small its group',
  (_name, queuing) => {
    expect(isRootish(queuing, {})).toBe(false);
    expect(isRootish(queuing, { dataProducer: true })).toBe(true);
  },
);

it.each(POLICIES)('with %s the annotation rootish wins over everything', (_name, queuing) => {
  expect(isRootish(queuing, { annotations: { rootish: true } })).toBe(true);
  expect(isRootish(queuing, { annotations: { rootish: false }, dataProducer: true })).toBe(false);
});

it('a restricted data producer is not root-ish', () => {
  expect(isRootish(made(rootish), { dataProducer: true, resources: { gpu: 1 } })).toBe(false);
});

it('a result without a size has nbytes -1, and keeps the size that it had', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: [] });
  const finish = (nbytes?: number): void => {
    const { runId } = env.task('a');
    const size = nbytes === undefined ? {} : { nbytes };
    env.send({
      op: 'task-finished',
      key: 'a',
      worker: W1,
      runId,
      type: 'int',
      timings: [],
      ...size,
    });
  };
  finish();
  expect(env.task('a')).toMatchObject({ state: 'memory', nbytes: -1 });
  expect(env.worker('w1').nbytes).toBe(1024);
  env.client();
  const data = { op: 'update-data', client: 'c' } as const;
  env.send({ ...data, items: [{ key: 'x', workers: [W1] }] });
  expect(env.task('x').nbytes).toBe(-1);
  env.send({ ...data, items: [{ key: 'x', nbytes: 7, workers: [W1] }] });
  env.send({ ...data, items: [{ key: 'x', workers: [W1] }] });
  expect(env.task('x').nbytes).toBe(7);
});
