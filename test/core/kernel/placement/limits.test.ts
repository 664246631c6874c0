import { describe, expect, it } from 'vitest';
import type { RunPaused, RunResumes } from '../../../../core/messages/from-worker.ts';
import { SchedulerEnv } from '../../../kit/env.ts';

const two = { limit: { name: 'host', max: 2 } };
const one = { limit: { name: 'host', max: 1 } };

it('of the tasks with a limit, at most so many run, and others use the workers meanwhile', () => {
  const env = new SchedulerEnv();
  env.addWorkers(4);
  env.submit({ a: two, b: two, c: two, d: two });
  expect(env.states).toMatchObject({ c: 'queued', d: 'queued' });
  expect([...env.cluster.limits]).toMatchObject([{ runningCount: 2, queued: { size: 2 } }]);
  env.submit({ x: {}, y: {} });
  expect(env.state('x')).toMatch('processing');
  expect(env.state('y')).toMatch('processing');
  expect(env.cluster.idle.size).toBe(0);
  env.finish('a');
  expect(env.state('c')).toMatch('processing');
  expect(env.state('d')).toBe('queued');
});

it('the task with the highest priority starts when there is room, also one whose priority has changed', () => {
  const env = new SchedulerEnv();
  env.addWorkers(2);
  env.submit({ a: one, b: one, c: { ...one, userPriority: 1 }, d: one });
  expect(env.state('c')).toMatch('processing');
  env.setPriority({ d: 5 });
  env.finish('c');
  expect(env.state('d')).toMatch('processing');
  env.finish('d');
  expect(env.states).toMatchObject({ a: 'processing w1', b: 'queued' });
});

it('a task that becomes ready while others wait for the limit comes after those with a higher priority', () => {
  const env = new SchedulerEnv();
  env.addWorkers(2);
  env.submit({
    a: one,
    b: { ...one, userPriority: 1 },
    after: { deps: ['a'], ...one },
  });
  env.finish('b');
  env.submit({ urgent: { ...one, userPriority: 1 } });
  env.finish('a');
  expect(env.states).toMatchObject({
    urgent: 'processing w1',
    after: 'queued',
  });
});

it('a run that has failed by its time keeps its place until its code has ended, or its worker is gone', () => {
  const env = new SchedulerEnv();
  env.addWorkers(2);
  env.submit({ a: one, b: one, c: one });
  const { runId } = env.cluster.tasks.get('a')!;
  env.fail('a', { isOverdue: true });
  expect(env.states).toMatchObject({ a: 'erred', b: 'queued' });
  env.send({ op: 'runs-over', worker: env.worker('w1').address, runIds: [runId] });
  expect(env.state('b')).toMatch('processing');
  const { name } = env.cluster.tasks.get('b')!.processingOn!;
  env.fail('b', { isOverdue: true });
  expect(env.state('c')).toBe('queued');
  env.removeWorker(name);
  expect(env.state('c')).toMatch('processing');
});

it('a run that has seceded and is taken back keeps its place until its code has ended, and takes no slot', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1, { tellsRunEnds: true });
  env.submit({ a: one, b: one });
  const { runId, processingOn } = env.cluster.tasks.get('a')!;
  env.send({ op: 'long-running', key: 'a', worker: processingOn!.address, runId });
  env.cancel(['a']);
  expect(env.state('b')).toBe('queued');
  expect(env.cluster.idle.has(processingOn!)).toBe(true);
  env.send({ op: 'runs-over', worker: processingOn!.address, runIds: [runId] });
  expect(env.state('b')).toMatch('processing');
});

it('a run that was taken back before it is known to have seceded gives its slot back, and not its place', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1, { tellsRunEnds: true });
  env.submit({ a: one, b: one });
  const { runId, processingOn } = env.cluster.tasks.get('a')!;
  env.cancel(['a']);
  expect(env.cluster.idle.has(processingOn!)).toBe(false);
  env.send({ op: 'long-running', key: 'a', worker: processingOn!.address, runId });
  expect(env.state('b')).toBe('queued');
  expect(env.cluster.idle.has(processingOn!)).toBe(true);
  env.send({ op: 'runs-over', worker: processingOn!.address, runIds: [runId] });
  expect(env.state('b')).toMatch('processing');
});

it('code that nobody wants any more counts again when its worker comes back, until it has ended', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1, { tellsRunEnds: true });
  const ending = { runIds: [71, 72], limits: ['host', ''], seceded: [true, false] };
  const runs = { keys: [], runIds: [], seceded: [], ending };
  const back = env.addWorker('back', { threads: 2, tellsRunEnds: true, held: {}, runs });
  env.submit({ a: one, b: one });
  expect(env.states).toEqual({ a: 'queued', b: 'queued' });
  expect(env.worker('back').endingRuns.size).toBe(1);
  env.send({ op: 'runs-over', worker: back, runIds: [71, 72] });
  expect([env.state('a'), env.state('b')].filter((state) => state === 'queued')).toHaveLength(1);
  expect(env.worker('back').endingRuns.size).toBe(0);
});

it('failures, cancellations and lost workers give the place to the next one', () => {
  const env = new SchedulerEnv();
  env.addWorkers(2);
  env.submit({ a: one, b: one, c: one, d: one });
  env.fail('a');
  expect(env.state('b')).toMatch('processing');
  env.cancel(['b']);
  expect(env.state('c')).toMatch('processing');
  env.removeWorker(env.cluster.tasks.get('c')!.processingOn!.name);
  expect(env.state('c')).toMatch('processing');
  expect(env.state('d')).toBe('queued');
  env.cancel(['d']);
  env.finish('c');
  expect(env.cluster.tasks.has('d')).toBe(false);
});

it('a run that was taken back counts until its worker says that it has ended, or is gone', () => {
  const env = new SchedulerEnv();
  env.addWorkers(2, { tellsRunEnds: true });
  env.submit({ a: one, b: one });
  const { runId, processingOn } = env.cluster.tasks.get('a')!;
  env.cancel(['a']);
  expect(env.state('b')).toBe('queued');
  env.send({ op: 'runs-over', worker: processingOn!.address, runIds: [runId] });
  expect(env.state('b')).toMatch('processing');
  const { name } = env.cluster.tasks.get('b')!.processingOn!;
  env.submit({ c: one });
  env.cancel(['b']);
  expect(env.state('c')).toBe('queued');
  env.removeWorker(name);
  expect(env.state('c')).toMatch('processing');
});

it('the submission that names a limit last says how many may run', () => {
  const env = new SchedulerEnv();
  env.addWorkers(4);
  env.submit({ a: one, b: one, c: one, d: one });
  env.submit({ e: { limit: { name: 'host', max: 3 }, userPriority: -1 } });
  expect(env.states).toMatchObject({
    b: 'processing w3',
    c: 'processing w2',
    d: 'queued',
  });
  env.submit({ f: { ...one, userPriority: -1 } });
  env.finishAll('a', 'b');
  expect(env.state('d')).toBe('queued');
  env.finish('c');
  expect(env.states).toMatchObject({
    d: 'processing w4',
    e: 'queued',
    f: 'queued',
  });
});

it('a task that suits no worker does not hold up others with its limit, and waits for the limit when a worker comes', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: { ...one, workers: ['tcp://w9:1'] }, b: one, c: one });
  expect(env.states).toEqual({
    a: 'no-worker',
    b: 'processing w1',
    c: 'queued',
  });
  env.addWorker('w9');
  expect(env.state('a')).toBe('queued');
  env.finish('b');
  expect(env.states).toMatchObject({ a: 'processing w9', c: 'queued' });
});

it('without a worker they wait, fail when that takes too long, and start in order when one comes', () => {
  const env = new SchedulerEnv({ kernel: { noWorkersTimeoutMs: 1000 } });
  env.addWorker('w1');
  env.submit({ a: one, b: one, c: one });
  env.removeWorker('w1', { expected: true });
  env.addWorker('w2');
  expect(env.states).toEqual({ a: 'processing w2', b: 'queued', c: 'queued' });
  env.removeWorker('w2', { expected: true });
  env.send({ op: 'check-no-workers-timeout' });
  env.advance(2000);
  env.send({ op: 'check-no-workers-timeout' });
  expect(env.states).toEqual({ a: 'erred', b: 'erred', c: 'erred' });
});

it('a stolen task keeps its place', () => {
  const env = new SchedulerEnv();
  env.addWorker('w1');
  env.submit({ a: one, b: one });
  env.addWorker('w2');
  env.steal('w2', 'a');
  env.answerSteal('a', 'ready', { worker: 'w1' });
  expect(env.states).toEqual({ a: 'processing w2', b: 'queued' });
  env.finish('a');
  expect(env.state('b')).toMatch('processing');
});

it('a limit is forgotten with its last task', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: one, b: one });
  env.finishAll('a', 'b');
  expect(env.cluster.limits.size).toBe(1);
  env.release('a', 'b');
  expect(env.cluster.limits.size).toBe(0);
});

it('`why` says that a task waits for its limit', () => {
  const env = new SchedulerEnv();
  env.addWorkers(3);
  env.submit({ a: two, b: two, c: two });
  expect(env.kernel.insight.why('c').now).toContain(
    'waits for its limit, one of 1: 2 of 2 of host run',
  );
});

const short = { limit: { name: 'host', max: 1, maxQueued: 2 } };
const codeOf = (env: SchedulerEnv, key: string): unknown =>
  (env.cluster.tasks.get(key)?.failure?.exception as { code?: string } | undefined)?.code;

it('a task that would wait for a limit behind as many as may fails at once, and with it what needs it', () => {
  const env = new SchedulerEnv();
  env.addWorkers(2);
  env.submit({ a: short, b: short, c: short, d: short, after: { deps: ['d'] } });
  expect(env.states).toMatchObject({ b: 'queued', c: 'queued', d: 'erred', after: 'erred' });
  expect(codeOf(env, 'd')).toBe('ERR_QUEUE_FULL');
  env.finish('a');
  env.submit({ e: short, f: { limit: { ...short.limit, maxQueued: 3 } } });
  expect(env.states).toMatchObject({ b: 'processing w2', c: 'queued', e: 'queued', f: 'queued' });
  env.submit({ g: short, h: { limit: { ...short.limit, maxQueued: 0 } } });
  expect(env.states).toMatchObject({ e: 'queued', f: 'queued', g: 'erred', h: 'erred' });
});

const retryAfterMs = (env: SchedulerEnv, key: string): unknown =>
  (env.cluster.tasks.get(key)?.failure?.exception as { data?: Record<string, unknown> } | undefined)
    ?.data?.['retryAfterMs'];

it('a task that is refused is told when one of those that wait starts, by what such tasks take', () => {
  const env = new SchedulerEnv();
  env.addWorkers(2);
  env.submit({ 'a-1': short });
  env.finish('a-1', { durationS: 4 });
  const two = { limit: { ...short.limit, max: 2, maxQueued: 1 } };
  env.submit({ 'a-2': two, 'a-3': two, 'a-4': two, 'a-5': two });
  expect(retryAfterMs(env, 'a-5')).toBe(2000);
});

it('or by the rate, when that is later', () => {
  const env = new SchedulerEnv();
  env.addWorkers(2);
  const one = { limit: { ...paced.limit, maxQueued: 1 } };
  env.submit({ a: one, b: one, c: one });
  env.advance(40).submit({ d: one });
  expect(retryAfterMs(env, 'd')).toBe(60);
});

it('a run that is lost waits again although the queue is full, and a task that was refused may be retried', () => {
  const env = new SchedulerEnv();
  env.addWorker('w1');
  env.submit({ a: short, b: short, c: short, d: short });
  env.setPriority({ b: 1 });
  env.removeWorker('w1');
  env.addWorker('w3');
  expect(env.states).toMatchObject({ b: 'processing w3', a: 'queued', c: 'queued', d: 'erred' });
  env.finish('b');
  env.send({ op: 'retry', client: 'c', keys: ['d'] });
  expect(env.states).toMatchObject({ a: 'processing w3', c: 'queued', d: 'queued' });
});

const paced = { limit: { name: 'api', intervalMs: 100, burst: 2 } };

it('tasks of a rate start in bursts after a pause, and then one in each interval', () => {
  const env = new SchedulerEnv();
  env.addWorker('w1', { threads: 8 });
  env.submit({ a: paced, b: paced, c: paced, d: paced, e: paced });
  expect(env.states).toMatchObject({ b: 'processing w1', c: 'queued', d: 'queued', e: 'queued' });
  expect(env.kernel.wakeAtMs).toBeCloseTo(100);
  expect(env.kernel.insight.why('d').now).toContain(
    'waits for its limit, one of 3: 2 of api run; one starts every 100 ms, this one in 200 ms at the earliest',
  );
  env.advance(99).send({ op: 'continue' });
  expect(env.state('c')).toBe('queued');
  env.finishAll('a', 'b');
  env.advance(1).send({ op: 'continue' });
  expect(env.states).toMatchObject({ c: 'processing w1', d: 'queued' });
  env.advance(1000).send({ op: 'continue' });
  expect(env.states).toMatchObject({ d: 'processing w1', e: 'processing w1' });
  expect(env.kernel.wakeAtMs).toBeUndefined();
});

it('a task starts with the first stimulus at which its rate allows it, whatever the time', () => {
  for (const intervalMs of [1000 / 3, 1000 / 7, 0.3]) {
    const env = new SchedulerEnv();
    env.addWorker('w1', { threads: 64 });
    const fast = { limit: { name: 'api', intervalMs } };
    env.submit(Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`t${n}x`, fast])));
    // Each stimulus checks that no task waits for a limit with room.
    for (let step = 0; step < 400; step++) env.advance(intervalMs / 8).send({ op: 'continue' });
    expect(env.cluster.limits.get('api')).toMatchObject({ runningCount: 40, queued: { size: 0 } });
  }
});

it('a limit may bound the rate, those that run and those that wait', () => {
  const env = new SchedulerEnv();
  env.addWorker('w1', { threads: 8 });
  const all = { limit: { ...paced.limit, max: 1, maxQueued: 2 } };
  env.submit({ a: all, b: all, c: all, d: all });
  expect(env.states).toMatchObject({ a: 'processing w1', b: 'queued', c: 'queued', d: 'erred' });
  env.advance(1000).send({ op: 'continue' });
  expect(env.state('b')).toBe('queued');
  env.finish('a');
  env.finish('b');
  expect(env.states).toMatchObject({ c: 'processing w1' });
});

it('what has started counts when a limit comes back that no task had meanwhile', () => {
  const env = new SchedulerEnv();
  env.addWorker('w1', { threads: 8 });
  env.submit({ a: paced, b: paced });
  env.finishAll('a', 'b');
  env.release('a', 'b');
  expect([...env.cluster.limits]).toMatchObject([{ name: 'api', taskCount: 0 }]);
  env.submit({ c: paced });
  expect(env.state('c')).toBe('queued');
  env.advance(100).send({ op: 'continue' });
  env.finish('c');
  env.advance(1000).release('c');
  expect(env.cluster.limits.size).toBe(0);
});

it('a stolen task does not start twice, one whose worker is lost does', () => {
  const env = new SchedulerEnv();
  env.addWorker('w1');
  env.submit({ a: paced, b: { ...paced, userPriority: -1 } });
  env.addWorker('w2');
  env.steal('w2', 'b');
  env.answerSteal('b', 'ready', { worker: 'w1' });
  expect(env.kernel.wakeAtMs).toBeUndefined();
  env.advance(100);
  env.submit({ c: paced });
  expect(env.state('c')).toMatch('processing');
  env.removeWorker('w2');
  expect(env.state('b')).toBe('queued');
});

it('a faster rate counts at once for those that wait', () => {
  const env = new SchedulerEnv();
  env.addWorker('w1', { threads: 8 });
  const hourly = { limit: { name: 'api', intervalMs: 3_600_000 } };
  env.submit({ a: hourly, b: hourly });
  env.advance(1000);
  env.submit({ c: { ...paced, userPriority: -1 } });
  env.advance(100).send({ op: 'continue' });
  expect(env.states).toMatchObject({ b: 'processing w1', c: 'queued' });
});

it('no time is set for tasks that do not wait any longer, and another one when they wait longer', () => {
  const env = new SchedulerEnv();
  env.addWorker('w1', { threads: 8 });
  env.submit({ a: paced, b: paced, c: paced });
  expect(env.kernel.wakeAtMs).toBeCloseTo(100);
  const slower = { limit: { ...paced.limit, intervalMs: 400 } };
  env.submit({ d: slower });
  expect(env.kernel.wakeAtMs).toBeCloseTo(400);
  env.cancel(['c', 'd']);
  expect(env.kernel.wakeAtMs).toBeUndefined();
});

it('terms are taken over once from a graph whose tasks name a limit with equal ones', () => {
  const env = new SchedulerEnv();
  env.addWorker('w1', { threads: 8 });
  const first = { ...paced.limit };
  env.submit({ a: { limit: first }, b: { limit: { ...first } }, c: { limit: { ...first } } });
  expect(env.cluster.limits.get('api')!.terms).toEqual(first);
  const { terms } = env.cluster.limits.get('api')!;
  env.submit({ d: { limit: { ...first } }, e: { limit: { ...first } } });
  expect(env.cluster.limits.get('api')!.terms).toBe(terms);
});

it('without a worker as many wait as may run and wait, and others fail', () => {
  const env = new SchedulerEnv();
  env.submit({ a: short, b: short, c: short, d: short });
  expect(env.states).toEqual({ a: 'no-worker', b: 'no-worker', c: 'no-worker', d: 'erred' });
  expect(codeOf(env, 'd')).toBe('ERR_QUEUE_FULL');
  env.cancel(['b']);
  env.submit({ e: short, f: short });
  expect(env.states).toMatchObject({ e: 'no-worker', f: 'erred' });
  env.addWorker('w1');
  expect(env.states).toMatchObject({ a: 'processing w1', c: 'queued', e: 'queued' });
  env.removeWorker('w1', { expected: true });
  env.submit({ g: short });
  expect(env.states).toMatchObject({ a: 'queued', g: 'erred' });
});

it('without a worker the starts that a rate allows at once do not count as waiting', () => {
  const env = new SchedulerEnv();
  const one = { limit: { ...paced.limit, maxQueued: 1 } };
  env.submit({ a: one, b: one, c: one, d: one });
  expect(env.states).toEqual({ a: 'no-worker', b: 'no-worker', c: 'no-worker', d: 'erred' });
});

describe('a run that waits for its next try', () => {
  /** `a` is paused, and `b` runs in its place. */
  const paused = () => {
    const env = new SchedulerEnv();
    env.addWorkers(2, { tellsRunEnds: true });
    env.submit({ a: one, b: one, c: one });
    const { runId, processingOn } = env.cluster.tasks.get('a')!;
    const worker = processingOn!.address;
    const tell = (op: 'run-paused' | 'run-resumes') =>
      env.send({ op, key: 'a', worker, runId } as RunPaused | RunResumes);
    tell('run-paused');
    const goesOn = () => env.takeWorker('w1').filter((said) => said === 'resume-run a').length;
    goesOn();
    return { env, tell, goesOn };
  };

  it('leaves its place in the limit to others', () => {
    const { env } = paused();
    expect(env.states).toMatchObject({ a: 'processing w1', b: 'processing w2', c: 'queued' });
    expect([...env.cluster.limits]).toMatchObject([{ runningCount: 1 }]);
  });

  it('goes on as soon as there is room, before others start', () => {
    const { env, tell, goesOn } = paused();
    tell('run-resumes');
    expect(goesOn()).toBe(0);
    env.finish('b');
    expect(goesOn()).toBe(1);
    expect(env.state('c')).toBe('queued');
    env.finish('a');
    expect(env.state('c')).toMatch('processing');
  });

  it('goes on at once when it has its place, as when it asks a second time', () => {
    const { env, tell, goesOn } = paused();
    tell('run-resumes');
    env.finish('b');
    goesOn();
    tell('run-resumes');
    expect(goesOn()).toBe(1);
  });

  it.each(['run-paused', 'run-resumes'] as const)(
    'leaves nothing behind when it ends (%s)',
    (op) => {
      const { env, tell } = paused();
      tell(op);
      env.finish('a');
      expect([...env.cluster.limits]).toMatchObject([{ runningCount: 1 }]);
      env.finish('b');
      env.finish('c');
      expect(env.states).toMatchObject({ a: 'memory w1', b: 'memory w2', c: 'memory w1' });
    },
  );

  it('is what `why` says of it', () => {
    const { env, tell } = paused();
    const now = () => env.kernel.insight.why('a').now;
    expect(now()).toContain('it waits for its next attempt');
    tell('run-resumes');
    expect(now()).toContain('its next attempt waits for its limit: 1 of 1 of host run');
  });

  it('counts, and may go on, when its worker has come back', () => {
    const env = new SchedulerEnv();
    env.addWorker('w1', { tellsRunEnds: true });
    env.submit({ a: one, b: one });
    const { runId } = env.task('a');
    env.send({ op: 'run-paused', key: 'a', worker: env.worker('w1').address, runId });
    env.removeWorker('w1');
    env.cancel(['b']);
    env.ignoreMessages();
    const ending = { runIds: [], limits: [], seceded: [] };
    const runs = { keys: ['a'], runIds: [runId], seceded: [false], ending };
    env.addWorker('w1', { tellsRunEnds: true, held: {}, runs });
    expect(env.takeWorker('w1')).toContain('resume-run a');
    expect([...env.cluster.limits]).toMatchObject([{ runningCount: 1, paused: { size: 0 } }]);
  });

  it('counts from when its worker is lost or it is cancelled as any other', () => {
    const { env, tell } = paused();
    tell('run-resumes');
    env.cancel(['a']);
    expect([...env.cluster.limits]).toMatchObject([{ runningCount: 2, resuming: { size: 0 } }]);
    env.removeWorker('w1');
    expect([...env.cluster.limits]).toMatchObject([{ runningCount: 1 }]);
  });
});
