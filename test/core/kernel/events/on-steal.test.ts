import { describe, expect, it } from 'vitest';
import { SchedulerEnv } from '../../../kit/env.ts';
import { type HookCall, recordHooks } from '../../../kit/ports.ts';

/** Four tasks that prefer w1, which has them all; w2 has nothing to do. */
function loaded(special: object = {}, options = {}): SchedulerEnv {
  const env = new SchedulerEnv({ queuing: { workerSaturation: Infinity }, ...options });
  env.addWorker('w1', { resources: { gpu: 2 } });
  env.addWorker('w2', { resources: { gpu: 2 } });
  env.client();
  const prefersFirst = { workers: ['tcp://w1:1'], allowOtherWorkers: true, ...special };
  env.submit(Object.fromEntries(['a', 'b', 'c', 'd'].map((key) => [key, { ...prefersFirst }])));
  expect(env.worker('w1').processing.size).toBe(4);
  return env.ignoreMessages();
}

describe('asking for tasks', () => {
  it('the victim gets one message with the assignments that are meant', () => {
    const env = loaded();
    env.steal('w2', 'b', 'd');
    const [message] = env.takeWorkerMessages('w1');
    expect(message).toMatchObject({
      op: 'steal-request',
      keys: ['b', 'd'],
      runIds: [env.task('b').runId, env.task('d').runId],
    });
    expect(env.states['b']).toBe('processing w1');
    expect([env.task('b').steal?.state, env.task('c').steal]).toEqual(['asked', undefined]);
  });

  it('a task that was asked for is not asked for again before the answer', () => {
    const env = loaded();
    env.steal('w2', 'b');
    env.ignoreMessages();
    env.steal('w2', 'b');
    env.expectEmpty();
  });

  it('nothing is asked for a worker that is not running, nor of the worker itself', () => {
    const env = loaded();
    env.setStatus('w2', 'paused');
    env.ignoreMessages();
    env.steal('w2', 'b');
    env.steal('w1', 'b');
    env.steal('nobody', 'b');
    env.expectEmpty();
  });

  it('a task that has seceded, is unknown or is elsewhere is not asked for', () => {
    const env = loaded();
    env.secede('a');
    env.ignoreMessages();
    env.steal('w2', 'a', 'unknown');
    env.send({
      op: 'steal-tasks',
      proposals: [{ key: 'b', victim: 'tcp://w3:1', thief: 'tcp://w2:1', victimS: 1, thiefS: 1 }],
    });
    env.expectEmpty();
  });

  it('restrictions are kept: a hard one refuses, a preference does not, a resource always does', () => {
    const hard = loaded({ allowOtherWorkers: false });
    hard.steal('w2', 'b');
    expect(hard.cluster.stealsInFlight).toBe(0);
    const lacking = loaded({ resources: { gpu: 1 } });
    lacking.addWorker('w3');
    lacking.ignoreMessages();
    lacking.steal('w3', 'b');
    expect(lacking.cluster.stealsInFlight).toBe(0);
    lacking.steal('w2', 'b');
    expect(lacking.cluster.stealsInFlight).toBe(1);
  });

  it('a worker without memory for the inputs gets nothing', () => {
    const env = new SchedulerEnv({ queuing: { workerSaturation: Infinity } });
    env.addWorker('w1');
    env.addWorker('small', { memoryLimitBytes: 50 });
    env.client();
    env.scatter({ x: ['w1'] });
    env.submit({ a: ['x'], b: ['x'] });
    env.ignoreMessages();
    env.steal('small', 'b');
    env.expectEmpty();
  });
});

describe('the answer', () => {
  it('a task that had not begun goes to the thief with a new run id', () => {
    const env = loaded();
    const { runId } = env.task('b');
    env.steal('w2', 'b');
    env.ignoreMessages();
    env.answerSteal('b', 'ready');
    expect(env.takeWorker('w2')).toEqual(['compute-task b']);
    expect(env.takeWorker('w1')).toEqual([]);
    expect(env.task('b').runId).toBeGreaterThan(runId);
    expect(env.states['b']).toBe('processing w2');
    expect(env.cluster.stealsInFlight).toBe(0);
    expect(env.task('b').steal).toMatchObject({ state: 'moved', victim: env.worker('w1') });
  });

  it.each(['waiting', 'constrained'])('%s is as good as ready', (state) => {
    const env = loaded();
    env.steal('w2', 'b');
    env.answerSteal('b', state);
    expect(env.states['b']).toBe('processing w2');
  });

  it.each(['executing', 'long-running', 'memory', 'cancelled', 'resumed'])(
    'a task that is %s stays, and is not asked for again',
    (state) => {
      const env = loaded();
      env.steal('w2', 'b');
      env.ignoreMessages();
      env.answerSteal('b', state);
      expect(env.states['b']).toBe('processing w1');
      env.takeEvents();
      env.steal('w2', 'b');
      env.expectEmpty();
      expect(env.task('b').steal?.state).toBe('refused');
      env.finish('b');
      expect(env.task('b').steal).toBeUndefined();
    },
  );

  it('resources, occupancy and idleness move with the task', () => {
    const env = loaded({ resources: { gpu: 1 } });
    expect(env.worker('w1').usedResources.get('gpu')).toBe(4);
    const { totalOccupancyS } = env.cluster;
    for (const key of ['b', 'c', 'd']) {
      env.steal('w2', key);
      env.answerSteal(key, 'constrained');
    }
    const [w1, w2] = [env.worker('w1'), env.worker('w2')];
    expect([w1.usedResources.get('gpu'), w2.usedResources.get('gpu')]).toEqual([1, 3]);
    expect([w1.occupancyS, w2.occupancyS]).toEqual([0.5, 1.5]);
    expect(env.cluster.totalOccupancyS).toBe(totalOccupancyS);
    expect(env.cluster.idle.has(w1)).toBe(false);
    expect([...env.cluster.saturated]).toEqual([]);
  });

  it('what the thief has to fetch is booked there', () => {
    const env = new SchedulerEnv({ queuing: { workerSaturation: Infinity } });
    env.addWorkers(2);
    env.client();
    env.scatter({ x: ['w1'] }, 'c', 3000);
    env.submit({ a: ['x'], b: ['x'] });
    env.steal('w2', 'b');
    env.ignoreMessages();
    env.answerSteal('b', 'ready');
    expect(env.takeWorker('w2')).toEqual(['compute-task b (x on w1)']);
    expect(env.worker('w2').networkBytes).toBe(3000);
  });

  it('the step is observed by plugins and is in the story', () => {
    const calls: HookCall[] = [];
    const env = loaded({}, { hooks: { taskTransition: recordHooks(calls).taskTransition } });
    env.steal('w2', 'b');
    calls.length = 0;
    const stimulusId = env.answerSteal('b', 'ready');
    expect(env.story(stimulusId)).toEqual(['b processing -> processing {}']);
    expect(calls.map(({ args }) => args.slice(1))).toEqual([
      ['processing', 'processing', stimulusId, { worker: 'tcp://w1:1' }],
    ]);
  });

  it('what happened is published under the topic stealing', () => {
    const env = loaded();
    env.steal('w2', 'b', 'c', 'd');
    env.answerSteal('b', 'executing');
    env.answerSteal('c', 'ready');
    const messages = env.takeEvents().filter(({ topic }) => topic === 'stealing');
    expect(messages.map(({ message }) => message)).toMatchObject([
      { action: 'asked', count: 3, tasks: [{ key: 'b' }, { key: 'c' }, { key: 'd' }] },
      { action: 'answered', worker: 'tcp://w1:1', refused: ['b'] },
      { action: 'answered', worker: 'tcp://w1:1', moved: ['c'] },
    ]);
  });
});

describe('who counts as idle or saturated while tasks are asked for', () => {
  const addresses = (workers: Iterable<{ name: string }>): string[] =>
    [...workers].map(({ name }) => name).sort();

  /** All four tasks that prefer w1 are asked for; returns their keys. */
  const askForFour = (env: SchedulerEnv): string[] => {
    const keys = ['a', 'b', 'c', 'd'];
    const wish = { victim: 'tcp://w1:1', thief: 'tcp://w2:1', victimS: 0.5, thiefS: 0.5 };
    env.send({ op: 'steal-tasks', proposals: keys.map((key) => ({ key, ...wish })) });
    return keys;
  };

  it('the victim is judged without what is asked of it, at once', () => {
    const env = loaded();
    env.addWorker('w3');
    env.submit(
      Object.fromEntries(['e', 'f', 'g'].map((key) => [key, { workers: ['tcp://w1:1'] }])),
    );
    expect(addresses(env.cluster.saturated)).toEqual(['w1']);
    askForFour(env);
    expect(addresses(env.cluster.saturated)).toEqual([]);
  });

  it('a victim that was only looked at is judged anew too', () => {
    const env = loaded();
    env.submit(
      Object.fromEntries(['e', 'f', 'g'].map((key) => [key, { workers: ['tcp://w1:1'] }])),
    );
    expect(addresses(env.cluster.saturated)).toEqual([]);
    // The average per thread has fallen since.
    for (const name of ['w3', 'w4', 'w5']) env.addWorker(name);
    expect(addresses(env.cluster.saturated)).toEqual([]);
    env.send({ op: 'steal-tasks', proposals: [], victims: ['tcp://w1:1', 'tcp://gone:1'] });
    expect(addresses(env.cluster.saturated)).toEqual(['w1']);
  });

  it('a victim that is asked for more than it has counts with what it has', () => {
    const env = loaded();
    const wish = { victim: 'tcp://w1:1', thief: 'tcp://w2:1', victimS: 100, thiefS: 1 };
    env.send({ op: 'steal-tasks', proposals: [{ key: 'b', ...wish }] });
    expect(env.worker('w1').inFlightS).toBe(-100);
    expect(addresses(env.cluster.idle)).toEqual(['w2']);
  });

  it('after a refusal victim and thief count with what they have', () => {
    const env = loaded();
    env.addWorker('w3');
    env.submit(
      Object.fromEntries(['e', 'f', 'g'].map((key) => [key, { workers: ['tcp://w1:1'] }])),
    );
    const keys = askForFour(env);
    expect(addresses(env.cluster.saturated)).toEqual([]);
    env.send({
      op: 'steal-response',
      worker: 'tcp://w1:1',
      keys,
      runIds: keys.map((key) => env.task(key).runId),
      states: keys.map(() => 'executing'),
    });
    expect(addresses(env.cluster.saturated)).toEqual(['w1']);
  });
});

describe('what happens in between', () => {
  it('a response about another assignment, or from another worker, has no effect', () => {
    const env = loaded();
    env.steal('w2', 'b');
    env.ignoreMessages();
    env.answerSteal('b', 'ready', { runId: env.task('b').runId - 1 });
    env.answerSteal('b', 'ready', { worker: 'w2' });
    expect(env.states['b']).toBe('processing w1');
    expect(env.cluster.stealsInFlight).toBe(1);
    env.takeEvents();
    env.expectEmpty();
  });

  it('a task that is finished or cancelled is not in flight any more', () => {
    const env = loaded();
    env.steal('w2', 'b', 'c');
    env.finish('b');
    env.cancel(['c']);
    expect(env.cluster.stealsInFlight).toBe(0);
  });

  it('the thief is gone or paused: the task is placed anew', () => {
    for (const leave of [
      (env: SchedulerEnv) => env.removeWorker('w2'),
      (env: SchedulerEnv) => env.setStatus('w2', 'paused'),
    ]) {
      const env = loaded();
      env.steal('w2', 'b');
      leave(env);
      env.ignoreMessages();
      env.answerSteal('b', 'ready');
      expect(env.takeWorker('w1')).toEqual(['free-keys b', 'compute-task b']);
    }
  });

  it('the victim has never heard of the task: it is placed anew', () => {
    const env = loaded();
    env.steal('w2', 'b');
    env.answerSteal('b', 'unknown');
    expect(env.state('b')).toBe('processing');
    expect(env.cluster.stealsInFlight).toBe(0);
    expect(env.story('b').at(-1)).toContain('waiting -> processing');
  });

  it('the victim dies: its tasks are placed anew, and its answer is late', () => {
    const env = loaded();
    env.steal('w2', 'b');
    const { runId } = env.task('b');
    env.removeWorker('w1');
    expect(env.cluster.stealsInFlight).toBe(0);
    env.answerSteal('b', 'ready', { worker: 'w1', runId });
    expect(env.states['b']).toBe('processing w2');
  });

  it('an unrequested answer that gives the task up does not lose it', () => {
    const env = loaded();
    env.answerSteal('b', 'ready');
    expect(env.state('b')).toBe('processing');
    expect(env.story('b').at(-1)).toContain('waiting -> processing');
  });

  it('a task that comes back to its victim may be stolen again', () => {
    const env = loaded();
    env.steal('w2', 'b');
    env.answerSteal('b', 'ready');
    env.steal('w1', 'b');
    env.answerSteal('b', 'ready');
    expect(env.states['b']).toBe('processing w1');
  });

  it('a restart forgets what was asked', () => {
    const env = loaded();
    env.steal('w2', 'b', 'c');
    env.answerSteal('b', 'executing');
    env.send({ op: 'restart' });
    expect(env.cluster.stealsInFlight).toBe(0);
    expect(env.worker('w2').inFlightS).toBe(0);
  });
});
