import { expect, it } from 'vitest';
import { YardmasterError } from '../../../../core/api/errors.ts';
import { TASK_STATE_NAMES, type TaskStateName } from '../../../../core/state/state-names.ts';
import { transition, TRANSITIONS } from '../../../../core/kernel/transitions.ts';
import { SchedulerEnv } from '../../../kit/env.ts';
import { numbered } from '../../../kit/graph.ts';

/** Written out here: the table of the kernel is what is tested. */
const DIRECT = {
  released: ['waiting', 'erred', 'forgotten'],
  waiting: ['released', 'no-worker', 'queued', 'processing', 'memory'],
  'no-worker': ['released', 'processing', 'erred'],
  queued: ['released', 'processing', 'erred'],
  processing: ['released', 'memory', 'erred'],
  memory: ['released', 'erred', 'forgotten'],
  erred: ['released'],
  forgotten: [],
} satisfies Record<TaskStateName, readonly TaskStateName[]>;

function caught(action: () => void): YardmasterError {
  try {
    action();
  } catch (error) {
    if (YardmasterError.is(error)) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

it('there are 21 direct transitions', () => {
  expect(Object.values(DIRECT).flat()).toHaveLength(21);
});

it.each(TASK_STATE_NAMES)('the direct transitions from %s are those of the documents', (start) => {
  expect(Object.keys(TRANSITIONS[start]).toSorted()).toEqual(DIRECT[start].toSorted());
});

it.each(['queued', 'released'])('a %s task cannot fail without a cause', (state) => {
  const env = new SchedulerEnv();
  env.addWorker('w1', { threads: 1 });
  env.submit({ a: [], b: ['a'] });
  env.finish('a');
  env.finish('b');
  env.submit(numbered('r', 9));
  const task = [...env.cluster.tasks.values()].find((one) => one.state === state)!;
  const error = caught(() => transition(env.kernel['scope'], task, 'erred'));
  expect(error.code).toBe('ERR_INVARIANT');
  expect(error.message).toContain(`${task.key} erred without anything to blame`);
});

it('a transition without a direct way goes through released and is observed as two', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: { retries: 1 } });
  const stimulus = env.fail('a');
  expect(env.story(stimulus)).toEqual([
    'a processing -> released {a: waiting}',
    'a released -> waiting {a: processing}',
    'a waiting -> processing {}',
  ]);
});

it('an impossible transition is a bug and carries the story of the task', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: [], b: ['a'] });
  env.finishAll('a', 'b');
  const error = caught(() => transition(env.kernel['scope'], env.task('a'), 'queued'));
  expect(error.code).toBe('ERR_TRANSITION');
  expect(error.message).toContain('impossible transition of a from released to queued');
  expect(error.message).toContain('a: memory -> released');
});

it('a transition to the present state is none', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: [] });
  const before = env.kernel.transitionCounter;
  transition(env.kernel['scope'], env.task('a'), 'processing');
  expect(env.kernel.transitionCounter).toBe(before);
});

it('a fuse ends endless loops and names the task', () => {
  const env = new SchedulerEnv({ kernel: { transitionCounterMax: 5 } });
  env.addWorkers(1);
  const error = caught(() => env.submit(numbered('r', 9)));
  expect(error.code).toBe('ERR_INVARIANT');
  expect(error.message).toMatch(/more than 5 transitions.*<Task r-\d/);
});

it('transitions are counted over the whole life', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: [] });
  expect(env.kernel.transitionCounter).toBe(2);
  env.finish('a');
  expect(env.kernel.transitionCounter).toBe(3);
});
