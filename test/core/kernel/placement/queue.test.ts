import { expect, it } from 'vitest';
import type { Queuing } from '../../../../core/api/policies.ts';
import { SchedulerEnv } from '../../../kit/env.ts';
import { numbered } from '../../../kit/graph.ts';
import { builtinPolicies } from '../../../kit/ports.ts';

it('downstream tasks go before queued roots', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ next: ['r-0'], ...numbered('r', 5) });
  env.ignoreMessages();
  env.finish('r-0');
  expect(env.takeWorker('w1')).toEqual(['compute-task next (r-0 on w1)']);
  env.finish('next');
  expect(env.takeWorker('w1')).toEqual(['free-keys r-0', 'compute-task r-2']);
});

it('several slots that open at once are filled at once', () => {
  const env = new SchedulerEnv();
  env.addWorkers(2);
  env.submit(numbered('r', 9));
  env.setStatus('w1', 'paused');
  env.finishAll('r-0', 'r-2');
  env.ignoreMessages();
  env.setStatus('w1', 'running');
  expect(env.takeWorker('w1')).toEqual(['compute-task r-4', 'compute-task r-5']);
});

/** Runs all that is on the worker, several times over. */
function runSome(env: SchedulerEnv, rounds: number, durationS: number, nbytes = 100): void {
  for (let round = 0; round < rounds; round++) {
    const keys = Array.from(env.worker('w1').processing, (task) => task.key);
    for (const key of keys) env.finish(key, { nbytes, durationS });
  }
  env.ignoreMessages();
}

it.each([
  ['sixteen short tasks with small results share a slot', 0.0002, 100, 32],
  ['tasks of a millisecond share it with three others', 0.001, 100, 8],
  ['tasks that take longer have their own', 0.005, 100, 2],
  ['so have short tasks with large results', 0.0002, 10_000_000, 2],
])('%s', (_, durationS, nbytes, expected) => {
  const env = new SchedulerEnv({ kernel: { slotWorkS: 0.004 } });
  env.addWorkers(1);
  env.submit(numbered('r', 200));
  runSome(env, 6, durationS, nbytes);
  expect(env.worker('w1').processing.size).toBe(expected);
});

it('tasks that turn out to be long have separate slots again', () => {
  const env = new SchedulerEnv({ kernel: { slotWorkS: 0.004 } });
  env.addWorkers(1);
  env.submit(numbered('r', 300));
  runSome(env, 6, 0.0002);
  expect(env.worker('w1').processing.size).toBe(32);
  runSome(env, 3, 1);
  expect(env.worker('w1').processing.size).toBe(2);
});

it.each([
  [
    'tasks with a name of their own share slots when the first tasks of others were short',
    0.0002,
    32,
  ],
  ['and have separate slots when those took long', 1, 2],
])('%s', (_, durationS, expected) => {
  const env = new SchedulerEnv({
    kernel: { slotWorkS: 0.004 },
    policies: { queuing: { ...builtinPolicies().queuing, isRootish: () => true } },
  });
  env.addWorkers(1);
  const keys = Array.from({ length: 400 }, (_each, at) => `name${at}`);
  env.submit(Object.fromEntries(keys.map((key) => [key, []])));
  runSome(env, 40, durationS);
  const { processing } = env.worker('w1');
  expect(processing.size).toBe(expected);
  const [last] = [...processing].slice(-1);
  expect(last?.prefix.durationEstimateS).toBeCloseTo(durationS);
});

it('a cancellation frees a slot for a queued task', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit(numbered('r', 4));
  env.ignoreMessages();
  env.release('r-0');
  expect(env.takeWorker('w1')).toEqual(['free-keys r-0', 'compute-task r-2']);
});

it('a reschedule lets the best queued task go first', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit(numbered('r', 4));
  env.ignoreMessages();
  env.reschedule('r-1');
  expect(env.takeWorker('w1')).toEqual(['free-keys r-1', 'compute-task r-1']);
});

it('without queuing nothing is held back', () => {
  const env = new SchedulerEnv({ queuing: { workerSaturation: Infinity } });
  env.addWorkers(1);
  env.submit(numbered('r', 9));
  expect(env.worker('w1').processing.size).toBe(9);
});

it('the queue survives a change of policies, with the slots of the new one', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit(numbered('r', 9));
  const { kernel } = env;
  kernel.replacePorts({
    ...kernel['scope'].ports,
    queuing: { name: 'wide', policy: builtinPolicies({ workerSaturation: 4 }).queuing },
  });
  env.ignoreMessages();
  env.heartbeat('w1');
  expect(env.takeWorker('w1')).toEqual(['compute-task r-2', 'compute-task r-3']);
});

it('a policy may leave a slot open: the task stays queued and is offered again', () => {
  let isOpen = false;
  const hesitant: Queuing = {
    ...builtinPolicies().queuing,
    selectRootish: (_task, cluster) => (isOpen ? cluster.openSlots.peek() : undefined),
  };
  const env = new SchedulerEnv({ policies: { queuing: hesitant } });
  env.addWorkers(1);
  env.submit(numbered('r', 3));
  expect(env.cluster.queued.size).toBe(3);
  isOpen = true;
  env.heartbeat('w1');
  expect(env.takeWorker('w1')).toEqual(['compute-task r-0', 'compute-task r-1']);
});

it('a policy may choose which queued task an open slot is for', () => {
  const asked: string[] = [];
  const last: Queuing = {
    ...builtinPolicies().queuing,
    nextQueued: (worker, cluster) => {
      asked.push(worker.name);
      return [...cluster.queued].at(-1);
    },
  };
  const env = new SchedulerEnv({ policies: { queuing: last } });
  env.addWorkers(2);
  env.submit(numbered('r', 9));
  env.ignoreMessages();
  env.finish('r-1');
  expect(env.takeWorker('w2')).toEqual(['compute-task r-8']);
  expect(asked).toEqual(['w2']);
});

it('a policy without an opinion gets the best queued task', () => {
  const shy: Queuing = { ...builtinPolicies().queuing, nextQueued: () => undefined };
  const env = new SchedulerEnv({ policies: { queuing: shy } });
  env.addWorkers(1);
  env.submit(numbered('r', 4));
  env.ignoreMessages();
  env.finish('r-0');
  expect(env.takeWorker('w1')).toEqual(['compute-task r-2']);
});
