import { expect, it } from 'vitest';
import { SchedulerKernel } from '../../../../core/kernel/kernel.ts';
import { failureOf, type Unnamed } from '../../../kit/env.ts';
import { makePorts } from '../../../kit/ports.ts';

/** More than the arguments that one call can have. */
const WIDTH = 150_000;

it('a failed task with 150 000 dependents blames another failure, and is cancelled with them all', () => {
  // Not validated: that takes the square of the width.
  const kernel = new SchedulerKernel({}, makePorts(), 0);
  const { tasks } = kernel.cluster;
  const client = 'c';
  const send = (stimulus: Unnamed): void =>
    void kernel.handle({ ...stimulus, stimulusId: stimulus.op }, 0);
  const worker = 'tcp://w1:1';
  const identity = {
    address: worker,
    serverId: 'id',
    name: 'w1',
    host: 'w1',
    threadCount: 2,
    memoryLimitBytes: 0,
    resources: {},
  };
  send({ op: 'register-worker', identity, status: 'running' });
  const wide = Array.from({ length: WIDTH }, (_, number) => `d-${number}`);
  const graph: [key: string, dependencies: string[]][] = [
    ['a', []],
    ['b', []],
    ['c', ['a', 'b']],
    ...wide.map((key): [string, string[]] => [key, ['c']]),
  ];
  send({
    op: 'update-graph',
    client,
    tasks: graph.map(([key, dependencies]) => ({ key, dependencies, runSpec: '' })),
    keys: ['a', 'b', ...wide],
  });
  for (const key of ['a', 'b']) {
    const { runId } = tasks.get(key)!;
    send({ op: 'task-erred', worker, key, runId, failure: failureOf(key) });
  }
  send({ op: 'retry', client, keys: ['a'] });
  const last = tasks.get(wide.at(-1)!)!;
  expect(last.state).toBe('erred');
  expect(last.exceptionBlame?.key).toBe('b');
  send({ op: 'cancel-keys', client, keys: ['a', 'b'], force: true });
  expect(tasks.size).toBe(0);
});
