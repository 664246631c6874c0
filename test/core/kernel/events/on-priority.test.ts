import fc from 'fast-check';
import { expect, it } from 'vitest';
import { byPriority } from '../../../../core/state/task.ts';
import { SchedulerEnv } from '../../../kit/env.ts';
import { numbered } from '../../../kit/graph.ts';

/** One worker with two open slots and six root-ish tasks: r-0 and r-1 are there, four are queued. */
function queued(): SchedulerEnv {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit(numbered('r', 6));
  return env.ignoreMessages();
}

function queue(env: SchedulerEnv): string[] {
  return env.cluster.queued.sorted().map(({ key }) => key);
}

it('a raised queued task takes the next slot', () => {
  const env = queued();
  env.setPriority({ 'r-4': 1 });
  env.takeEvents();
  env.expectEmpty();
  env.finish('r-0');
  expect(env.takeWorker('w1')).toEqual(['compute-task r-4']);
});

it('a lowered queued task leaves the queue last', () => {
  const env = queued();
  env.setPriority({ 'r-2': -1 });
  expect(queue(env)).toEqual(['r-3', 'r-4', 'r-5', 'r-2']);
});

it('each task gets its own priority, and 0 is what it was', () => {
  const env = queued();
  env.setPriority({ 'r-2': 1, 'r-3': 2, 'r-4': 3 });
  expect(queue(env)).toEqual(['r-4', 'r-3', 'r-2', 'r-5']);
  env.setPriority({ 'r-2': 0, 'r-3': 0, 'r-4': 0 });
  expect(queue(env)).toEqual(['r-2', 'r-3', 'r-4', 'r-5']);
  expect(Object.is(env.task('r-2').negatedUserPriority, 0)).toBe(true);
});

it('the last task of the queue may be moved after it has left', () => {
  const env = queued();
  env.release('r-5');
  env.submit({ late: ['r-5'], 'r-5': [] }, { keys: ['r-5'] });
  env.setPriority({ 'r-5': -9 });
  env.submit({ 'r-6': { userPriority: -3 } });
  env.setPriority({ 'r-4': -5 });
  expect(queue(env)).toEqual(['r-2', 'r-3', 'r-6', 'r-4', 'r-5']);
});

it('the worker that was sent a task is notified', () => {
  const env = queued();
  env.setPriority({ 'r-1': 7, 'r-0': 7, 'r-3': 7 });
  expect(env.takeWorker('w1')).toEqual(['set-priority r-1 -7/1/1, r-0 -7/1/0']);
});

it('the worker of a task that has seceded is not notified', () => {
  const env = queued();
  env.secede('r-0');
  env.ignoreMessages();
  env.setPriority({ 'r-0': 7 });
  env.takeEvents();
  env.expectEmpty();
});

it('a waiting task has its priority when its inputs are there', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: [], b: ['a'] });
  env.setPriority({ b: 2 });
  env.ignoreMessages();
  env.finish('a');
  const [message] = env.takeWorkerMessages('w1');
  expect(message).toMatchObject({ op: 'compute-task', key: 'b', priority: [-2, 1, 1] });
});

it('the inputs that are still to be computed are raised with it, and never lowered', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  const graph = { done: [], a: ['done'], b: ['a'], c: { deps: ['b'], userPriority: 9 }, d: ['c'] };
  env.submit(graph);
  env.finish('done');
  env.ignoreMessages();
  env.setPriority({ d: 4 }, { raiseInputs: true });
  const priorities = (): Record<string, number> =>
    Object.fromEntries('abcd'.split('').map((key) => [key, -env.task(key).negatedUserPriority]));
  expect(priorities()).toEqual({ a: 4, b: 4, c: 9, d: 4 });
  expect(env.takeWorker('w1')).toEqual(['set-priority a -4/1/1']);
  env.setPriority({ d: -4 }, { raiseInputs: true });
  expect(priorities()).toEqual({ a: 4, b: 4, c: 9, d: -4 });
});

it('without raiseInputs the task moves alone', () => {
  const env = new SchedulerEnv();
  env.submit({ a: [], b: ['a'] });
  env.setPriority({ b: 2 });
  expect(Math.abs(env.task('a').negatedUserPriority)).toBe(0);
});

it('the event names what moved and what could not be', () => {
  const env = queued();
  env.scatter({ data: ['w1'] });
  env.ignoreMessages();
  const stimulusId = env.setPriority({ 'r-3': 1, 'r-4': 0, unknown: 1, data: 1 });
  expect(env.takeEvents()).toEqual([
    {
      topic: 'scheduler',
      message: {
        action: 'set-priority',
        client: 'c',
        stimulusId,
        count: 1,
        keys: ['r-3'],
        ignored: ['unknown', 'data'],
      },
    },
  ]);
  expect(env.story(stimulusId)).toEqual(['r-3 queued -> queued {}']);
});

it('a client moves only what it wants', () => {
  const env = queued();
  env.client('d');
  env.setPriority({ 'r-4': 5 }, { client: 'd' });
  env.setPriority({ 'r-4': 5 }, { client: 'nobody' });
  expect(queue(env)).toEqual(['r-2', 'r-3', 'r-4', 'r-5']);
});

it('a failed task has its new priority when it is computed once more', () => {
  const env = queued();
  env.fail('r-0');
  env.setPriority({ 'r-0': -3 });
  env.retry('r-0');
  expect(queue(env).at(-1)).toBe('r-0');
});

it('a task waiting for a worker is taken by its new priority', () => {
  const env = new SchedulerEnv();
  const gpu = { resources: { gpu: 1 } };
  env.submit({ a: gpu, b: gpu });
  env.setPriority({ b: 1 });
  env.addWorker('w1', { resources: { gpu: 1 } });
  expect(env.takeWorker('w1')).toEqual(['compute-task b', 'compute-task a']);
});

it('whatever is moved, tasks leave the queue by priority and every one runs', () => {
  const move = fc.record({
    index: fc.nat(29),
    priority: fc.integer({ min: -3, max: 3 }),
    finishes: fc.nat(2),
  });
  fc.assert(
    fc.property(fc.array(move, { maxLength: 60 }), (moves) => {
      const env = new SchedulerEnv();
      env.addWorkers(2);
      env.submit(numbered('r', 30));
      const running = (): string[] =>
        env.cluster.workersByRank.flatMap(({ processing }) =>
          [...processing].map(({ key }) => key),
        );
      for (const { index, priority, finishes } of moves) {
        env.setPriority({ [`r-${index}`]: priority });
        for (const key of running().slice(0, finishes)) {
          const expected = [...env.cluster.queued].sort(byPriority)[0];
          env.finish(key);
          if (expected !== undefined) expect(expected.state).toBe('processing');
        }
      }
      for (let left = running(); left.length > 0; left = running()) env.finishAll(...left);
      expect(Object.values(env.states).filter((state) => !state.startsWith('memory'))).toEqual([]);
    }),
    { numRuns: 25 },
  );
});
