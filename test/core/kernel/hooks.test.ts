import { expect, it } from 'vitest';
import type { SchedulerHooks } from '../../../core/api/hooks.ts';
import type { TaskView, WorkerView } from '../../../core/api/views.ts';
import { SchedulerEnv } from '../../kit/env.ts';
import { type HookCall, recordHooks } from '../../kit/ports.ts';

function observed(): { env: SchedulerEnv; calls: HookCall[] } {
  const calls: HookCall[] = [];
  const env = new SchedulerEnv({ hooks: recordHooks(calls) });
  return { env, calls };
}

const args = <Name extends keyof SchedulerHooks>(
  calls: readonly HookCall[],
  name: Name,
): Parameters<SchedulerHooks[Name]>[] =>
  calls
    .filter(({ hook }) => hook === name)
    .map((call) => call.args as Parameters<SchedulerHooks[Name]>);

it('every transition is observed with its cause, also one that ended where it began', () => {
  const { env, calls } = observed();
  const stimulus = env.submit({ a: [] });
  const told = args(calls, 'taskTransition').map(([task, start, finish, id]) => {
    return [task.key, start, finish, id === stimulus];
  });
  expect(told).toEqual([
    ['a', 'released', 'waiting', true],
    ['a', 'waiting', 'waiting', true],
    ['a', 'waiting', 'queued', true],
  ]);
});

it('a transition through released is observed as two', () => {
  const { env, calls } = observed();
  env.addWorkers(1);
  env.submit({ a: { retries: 1 } });
  calls.length = 0;
  env.fail('a');
  const told = args(calls, 'taskTransition').map(([, start, finish]) => `${start} ${finish}`);
  expect(told).toEqual(['processing released', 'released waiting', 'waiting processing']);
});

it('a transition that a report caused has the report', () => {
  const { env, calls } = observed();
  env.addWorkers(1);
  env.submit({ a: [] });
  calls.length = 0;
  env.finish('a', { nbytes: 5, type: 'list', durationS: 2 });
  const [[, , , , details]] = args(calls, 'taskTransition') as [
    Parameters<SchedulerHooks['taskTransition']>,
  ];
  expect(details).toMatchObject({
    worker: 'tcp://w1:1',
    nbytes: 5,
    type: 'list',
    timings: [{ action: 'compute', startS: 0, stopS: 2 }],
  });
});

it('a failure is observed with its cause and the failure itself', () => {
  const { env, calls } = observed();
  env.addWorkers(1);
  env.submit({ a: [] });
  env.fail('a');
  const details = args(calls, 'taskTransition').at(-1)![4];
  expect(details).toMatchObject({ cause: 'a', failure: { exceptionText: 'a threw' } });
});

it('a forgotten task can be read in the hook and is out of the tables', () => {
  let seen: { task: TaskView; isKnown: boolean } | undefined;
  const env: SchedulerEnv = new SchedulerEnv({
    hooks: {
      taskTransition: [
        (task, _start, finish) => {
          if (finish === 'forgotten') seen = { task, isKnown: env.cluster.tasks.has(task.key) };
        },
      ],
    },
  });
  env.submit({ a: [] });
  env.release('a');
  expect(seen).toMatchObject({ task: { key: 'a', state: 'forgotten' }, isKnown: false });
});

it('a graph is observed before its first transition', () => {
  const { env, calls } = observed();
  env.addWorkers(1);
  calls.length = 0;
  const stimulusId = env.submit({ a: [], b: ['a'], lost: ['unknown'] });
  expect(calls.map(({ hook }) => hook)[0]).toBe('graphUpdated');
  const [[update]] = args(calls, 'graphUpdated') as [
    [Parameters<SchedulerHooks['graphUpdated']>[0]],
  ];
  expect(update).toMatchObject({ client: 'c', keys: ['b'], stimulusId });
  expect(update.tasks.map(({ key }) => key)).toEqual(['a', 'b']);
});

it('a refused graph is not observed', () => {
  const { env, calls } = observed();
  env.submit({ a: ['a'] }, { keys: ['a'] });
  expect(calls).toEqual([]);
});

it('a worker is observed when it is registered, before the tasks that waited for it', () => {
  const { env, calls } = observed();
  env.submit({ a: [] });
  calls.length = 0;
  env.addWorkers(1);
  expect(calls.map(({ hook }) => hook)).toEqual(['workerAdded', 'taskTransition']);
  const [[worker, stimulusId]] = args(calls, 'workerAdded') as [[WorkerView, string]];
  expect(worker).toMatchObject({ name: 'w1', status: 'running' });
  expect(stimulusId).toMatch(/^register-worker-/);
});

it('the departure of a worker is observed with the results that it held, after its tasks were placed anew', () => {
  const { env, calls } = observed();
  env.addWorkers(2);
  env.scatter({ x: ['w1'] });
  env.submit({ a: { workers: ['tcp://w1:1'] } });
  env.finish('a');
  env.submit({ b: { workers: ['tcp://w1:1'] } });
  calls.length = 0;
  env.removeWorker('w1');
  expect(calls.at(-1)?.hook).toBe('workerRemoved');
  const [[worker, , loss]] = args(calls, 'workerRemoved') as [
    Parameters<SchedulerHooks['workerRemoved']>,
  ];
  expect(worker.status).toBe('closed');
  expect(loss).toEqual({ expected: false, processing: ['b'], recomputed: ['a'], lost: ['x'] });
});

it('a status is observed when it changes', () => {
  const { env, calls } = observed();
  env.addWorkers(1);
  calls.length = 0;
  env.setStatus('w1', 'running');
  env.setStatus('w1', 'paused');
  expect(args(calls, 'workerStatusChanged').map(([{ status }]) => status)).toEqual(['paused']);
});

it('clients that connect and leave are observed once', () => {
  const { env, calls } = observed();
  env.client('c');
  env.client('c');
  env.send({ op: 'remove-client', client: 'c' });
  expect(calls.map(({ hook }) => hook)).toEqual(['clientAdded', 'clientRemoved']);
});

it('a restart is observed after all tasks were forgotten', () => {
  const { env, calls } = observed();
  env.submit({ a: [] });
  calls.length = 0;
  env.send({ op: 'restart' });
  expect(calls.at(-1)?.hook).toBe('restarted');
  expect(args(calls, 'taskTransition').at(-1)![2]).toBe('forgotten');
});

it('observers of one hook run in their order', () => {
  const order: string[] = [];
  const env = new SchedulerEnv({
    hooks: { clientAdded: [() => order.push('first'), () => order.push('second')] },
  });
  env.client();
  expect(order).toEqual(['first', 'second']);
});
