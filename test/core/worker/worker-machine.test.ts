import { describe, expect, it } from 'vitest';

import { heldRuns } from '../../../core/worker/on-scheduler.ts';
import type { Execute, Send } from '../../../core/worker/events.ts';
import {
  computeTask,
  FAILURE,
  LOCAL,
  type Locations,
  locations,
  P1,
  P2,
  SELF,
  WorkerBench,
} from './builders.ts';

describe('a time to stop', () => {
  it('is reported for the run that it was given for, and for no other', () => {
    const bench = new WorkerBench({ threadCount: 2 });
    bench.compute('x');
    bench.compute('y');
    const abort = { kind: 'abort-execution' };
    const timed = { op: 'free-keys', keys: ['x'], killTimeoutMs: 70 } as const;
    expect(bench.instructions(timed)).toEqual([{ ...abort, key: 'x', killTimeoutMs: 70 }]);
    expect(bench.instructions({ op: 'free-keys', keys: ['y'] })).toEqual([{ ...abort, key: 'y' }]);
  });
});

describe('a run that was taken back', () => {
  const free = (bench: WorkerBench, ...keys: string[]): unknown[] => {
    const runIds = keys.map((key) => bench.kernel.tables.tasks.get(key)?.runId ?? 77);
    return told(bench.instructions({ op: 'free-keys', keys, runIds }));
  };
  const told = (instructions: readonly unknown[]): unknown[] =>
    instructions.flatMap((instruction) => {
      const { message } = instruction as Partial<Send>;
      return message?.op === 'runs-over' ? [message.runIds] : [];
    });

  it('is reported to be over when it is, and at once when it never ran', () => {
    const bench = new WorkerBench();
    bench.compute('runs');
    bench.compute('waits');
    const [runs, waits] = ['runs', 'waits'].map((key) => bench.kernel.tables.tasks.get(key)!.runId);
    expect(free(bench, 'runs', 'waits', 'unknown')).toEqual([[waits, 77]]);
    const end = { op: 'execute-failure', key: 'runs', failure: FAILURE } as const;
    expect(told(bench.instructions(end))).toEqual([[runs]]);
  });

  it('is over when its code is, when its time limit has ended it before', () => {
    const bench = new WorkerBench({ threadCount: 2 });
    bench.compute('late');
    bench.compute('cancelled');
    const [late, cancelled] = ['late', 'cancelled'].map(
      (key) => bench.kernel.tables.tasks.get(key)!.runId,
    );
    expect(free(bench, 'cancelled')).toEqual([]);
    const end = (key: string, overdueRun: number) =>
      ({ op: 'execute-failure', key, failure: FAILURE, overdueRun }) as const;
    expect(bench.instructions(end('late', 1))).toMatchObject([{ message: { isOverdue: true } }]);
    expect(told(bench.instructions(end('cancelled', 2)))).toEqual([]);
    expect(free(bench, 'late')).toEqual([]);
    expect(told(bench.instructions({ op: 'execute-over', runId: 1 }))).toEqual([[late]]);
    expect(told(bench.instructions({ op: 'execute-over', runId: 2 }))).toEqual([[cancelled]]);
  });

  it('is told to a scheduler that comes back, with its limit, while its code goes on', () => {
    const bench = new WorkerBench({ threadCount: 3 });
    for (const key of ['cancelled', 'late', 'wanted']) bench.compute(key, {}, { limit: 'host' });
    const [cancelled, late, wanted] = ['cancelled', 'late', 'wanted'].map(
      (key) => bench.kernel.tables.tasks.get(key)!.runId,
    );
    free(bench, 'cancelled');
    const end = { op: 'execute-failure', key: 'late', failure: FAILURE, overdueRun: 1 } as const;
    bench.instructions(end);
    expect(heldRuns(bench.kernel.tables)).toEqual({
      ...{ keys: ['wanted'], runIds: [wanted], seceded: [false] },
      ending: {
        ...{ runIds: [cancelled, late], limits: ['host', 'host'], seceded: [false, true] },
      },
    });
  });

  it('is over when it becomes a part of the next assignment', () => {
    const bench = new WorkerBench();
    bench.compute('again');
    const { runId } = bench.kernel.tables.tasks.get('again')!;
    expect(free(bench, 'again')).toEqual([]);
    expect(told(bench.instructions(computeTask('again')))).toEqual([[runId]]);
  });

  it.each(['before', 'afterwards'])('is not over when it has seceded %s', (time) => {
    const bench = new WorkerBench();
    bench.compute('a');
    const { runId } = bench.kernel.tables.tasks.get('a')!;
    const secede = { op: 'execute-secede', key: 'a', computeDurationS: 1 } as const;
    if (time === 'before') bench.instructions(secede);
    expect(free(bench, 'a')).toEqual([]);
    if (time === 'afterwards') {
      expect(bench.instructions(secede)).toMatchObject([
        { message: { op: 'long-running', runId } },
      ]);
    }
    const end = { op: 'execute-failure', key: 'a', failure: FAILURE } as const;
    expect(told(bench.instructions(end))).toEqual([[runId]]);
  });
});

describe('a result that the scheduler wants along', () => {
  const value = new Uint8Array([1, 2, 3]);
  const told = (bench: WorkerBench, key: string, nbytes: number): unknown[] =>
    bench
      .instructions({ op: 'execute-success', key, nbytes, type: 't', timings: [], value })
      .flatMap((instruction) => (instruction as Partial<Send>).message ?? []);

  it('is in the news of it when it is small enough', () => {
    const bench = new WorkerBench();
    bench.compute('small', {}, { sendAlongBytes: 3 });
    expect(told(bench, 'small', 3)).toMatchObject([{ op: 'task-finished', key: 'small', value }]);
    bench.compute('large', {}, { sendAlongBytes: 3 });
    expect(told(bench, 'large', 4)[0]).not.toHaveProperty('value');
  });

  it('is not without a request, nor when it is reported again', () => {
    const bench = new WorkerBench();
    bench.compute('x');
    expect(told(bench, 'x', 3)[0]).not.toHaveProperty('value');
    bench.compute('y', {}, { sendAlongBytes: 3 });
    told(bench, 'y', 3);
    const [again] = bench.instructions(computeTask('y', {}, { sendAlongBytes: 3 })) as Send[];
    expect(again?.message).not.toHaveProperty('value');
  });
});

describe('another priority', () => {
  const move = (bench: WorkerBench, key: string, first: number, runId?: number): string[] => {
    const id = runId ?? bench.kernel.tables.tasks.get(key)!.runId;
    const priorities = [[first, 1, 0]] as const;
    return bench.send({ op: 'set-priority', keys: [key], runIds: [id], priorities });
  };

  it('lets a ready task overtake', () => {
    const bench = new WorkerBench();
    for (const key of ['x', 'y', 'z']) bench.compute(key);
    expect(move(bench, 'y', -1)).toEqual([]);
    expect(bench.succeed('x')).toEqual(['task-finished x', 'execute y']);
  });

  it('lets a task that waits for a resource overtake', () => {
    const bench = new WorkerBench({ threadCount: 2, resources: { gpu: 1 } });
    for (const key of ['x', 'y', 'z']) bench.compute(key, {}, { resources: { gpu: 1 } });
    move(bench, 'y', -1);
    expect(bench.succeed('x')).toEqual(['task-finished x', 'execute y']);
  });

  it('of another assignment changes nothing, nor does one of an unknown task', () => {
    const bench = new WorkerBench();
    for (const key of ['x', 'y', 'z']) bench.compute(key);
    move(bench, 'y', -1, 1_000_000);
    move(bench, 'nothing', -1, 1);
    expect(bench.succeed('x')).toEqual(['task-finished x', 'execute z']);
  });

  it('does not disturb what runs', () => {
    const bench = new WorkerBench();
    bench.compute('x');
    bench.compute('y');
    expect(move(bench, 'x', 9)).toEqual([]);
    expect(bench.succeed('x')).toEqual(['task-finished x', 'execute y']);
  });

  it('counts for the inputs that are still to be fetched', () => {
    const bench = new WorkerBench({ incomingBytesMax: 100 });
    bench.compute('w', { i: { at: [P2], nbytes: 100 } });
    bench.compute('x', { j: { at: [P1], nbytes: 100 } });
    bench.compute('y', { j: [P1], k: { at: [P1], nbytes: 100 } });
    const priority = (key: string): number => bench.kernel.tables.tasks.get(key)!.priority![0]!;
    move(bench, 'y', -2);
    expect([priority('j'), priority('k')]).toEqual([-2, -2]);
    move(bench, 'y', 2);
    expect([priority('j'), priority('k')]).toEqual([0, 2]);
  });
});

describe('a task that secedes', () => {
  const secede = (key: string) => ({ op: 'execute-secede', key, computeDurationS: 3 }) as const;
  const rejoin = (key: string) => ({ op: 'execute-rejoin', key }) as const;

  it('leaves its thread to another one, says so once, and ends like any other', () => {
    const bench = new WorkerBench();
    bench.compute('x', {}, { runId: 7 });
    bench.compute('y');
    const [report] = bench.instructions(secede('x')) as [Send];
    expect(report.message).toMatchObject({
      op: 'long-running',
      key: 'x',
      runId: 7,
      computeDurationS: 3,
    });
    expect(bench.states).toEqual({ x: 'executing', y: 'executing' });
    expect(bench.send(secede('x'))).toEqual([]);
    expect(bench.succeed('x')).toEqual(['task-finished x']);
    expect(bench.succeed('y')).toEqual(['task-finished y']);
  });

  it('keeps its resources', () => {
    const bench = new WorkerBench({ threadCount: 2, resources: { gpu: 1 } });
    bench.compute('x', {}, { resources: { gpu: 1 } });
    expect(bench.send(secede('x'))).toEqual(['long-running x']);
    expect(bench.compute('y', {}, { resources: { gpu: 1 } })).toEqual([]);
    expect(bench.succeed('x')).toEqual(['task-finished x', 'execute y']);
  });

  it('rejoins when a thread is free, before what has not begun, the first to ask first', () => {
    const bench = new WorkerBench();
    for (const key of ['w', 'x', 'y', 'z']) bench.compute(key);
    expect(bench.send(secede('w'))).toEqual(['long-running w', 'execute z']);
    expect(bench.send(secede('z'))).toEqual(['long-running z', 'execute y']);
    expect(bench.send(rejoin('z'), rejoin('w'))).toEqual([]);
    expect(bench.succeed('y')).toEqual(['task-finished y', 'rejoined z']);
    expect(bench.send(rejoin('z'))).toEqual(['rejoined z']);
    expect(bench.succeed('z')).toEqual(['task-finished z', 'rejoined w']);
    expect(bench.succeed('w')).toEqual(['task-finished w', 'execute x']);
  });

  it('rejoins on a paused worker, where nothing else begins', () => {
    const bench = new WorkerBench();
    for (const key of ['w', 'x']) bench.compute(key);
    expect(bench.send(secede('w'))).toEqual(['long-running w', 'execute x']);
    bench.compute('y');
    expect(bench.send({ op: 'pause' }, rejoin('w'))).toEqual([]);
    expect(bench.succeed('x')).toEqual(['task-finished x', 'rejoined w']);
    expect(bench.succeed('w')).toEqual(['task-finished w']);
    expect(bench.send({ op: 'unpause' })).toEqual(['execute y']);
  });

  it('and is cancelled frees nothing twice, and is not reported', () => {
    const bench = new WorkerBench();
    for (const key of ['w', 'x', 'y']) bench.compute(key);
    expect(bench.send({ op: 'free-keys', keys: ['w'] })).toEqual(['abort-execution w']);
    expect(bench.send(secede('w'))).toEqual(['execute y']);
    expect(bench.send({ op: 'execute-failure', key: 'w', failure: FAILURE })).toEqual([]);
  });
});

describe('a run between two calls of its function', () => {
  const pause = { op: 'execute-pause', key: 'x' } as const;
  const resume = { op: 'execute-resume', key: 'x' } as const;

  it('gives its place in its limit up, and goes on when the scheduler says so', () => {
    const bench = new WorkerBench();
    bench.compute('x', {}, { limit: 'host', runId: 7 });
    expect(bench.send(pause)).toEqual(['run-paused x']);
    expect(bench.send(resume)).toEqual(['run-resumes x']);
    expect(bench.send({ op: 'resume-run', key: 'x', runId: 6 })).toEqual([]);
    expect(bench.send({ op: 'resume-run', key: 'x', runId: 7 })).toEqual(['resumed x']);
  });

  it('goes on at once without a limit', () => {
    const bench = new WorkerBench();
    bench.compute('x');
    expect(bench.send(pause)).toEqual([]);
    expect(bench.send(resume)).toEqual(['resumed x']);
  });
});

describe('computing', () => {
  it('a task without inputs runs at once, and its result is reported', () => {
    const bench = new WorkerBench();
    expect(bench.compute('x')).toEqual(['execute x']);
    expect(bench.succeed('x')).toEqual(['task-finished x']);
    expect(bench.states).toEqual({ x: 'memory' });
  });

  it('the report repeats run id, size, type, times and the event that caused it', () => {
    const bench = new WorkerBench();
    bench.compute('x', {}, { runId: 77 });
    const timings = [{ action: 'compute', startS: 1, stopS: 2 }];
    const [{ message }] = bench.instructions({
      op: 'execute-success',
      key: 'x',
      nbytes: 9,
      type: 'Map',
      timings,
      stimulusId: 'task-finished-1',
    }) as [Send];
    expect(message).toEqual({
      op: 'task-finished',
      key: 'x',
      runId: 77,
      nbytes: 9,
      type: 'Map',
      timings,
      stimulusId: 'task-finished-1',
    });
  });

  it('the instruction carries all that a run needs', () => {
    const bench = new WorkerBench();
    bench.send({ op: 'update-data', keys: ['d'], nbytes: [1] });
    const [execute] = bench.instructions(
      computeTask('x', { d: [SELF] }, { runId: 5, runSpec: 'spec', annotations: { a: 1 } }),
    ) as [Execute];
    expect(execute).toEqual({
      kind: 'execute',
      key: 'x',
      runId: 5,
      runSpec: 'spec',
      dependencies: ['d'],
      isShort: false,
      annotations: { a: 1 },
    });
  });

  it('with the strategy lifo what became ready last runs first, among the same user priority', () => {
    const bench = new WorkerBench({ ready: 'lifo' });
    bench.compute('running');
    bench.compute('old', {}, { priority: [0, 1, 0] });
    bench.compute('urgent', {}, { priority: [-1, 9, 9] });
    bench.send(
      computeTask('second', {}, { priority: [0, 2, 1] }),
      computeTask('first', {}, { priority: [0, 2, 0] }),
    );
    const order = ['running', 'urgent', 'first', 'second', 'old'];
    const begun = order.slice(0, -1).map((key) => bench.succeed(key).at(-1));
    expect(begun).toEqual(order.slice(1).map((key) => `execute ${key}`));
  });

  it('with the strategy lifo a task is as late as its last input', () => {
    const bench = new WorkerBench({ ready: 'lifo' });
    bench.compute('running');
    bench.compute('fetching', { x: [P1] });
    bench.compute('later');
    bench.arrive(P1, 'x');
    expect(bench.succeed('running')).toEqual(['task-finished running', 'execute fetching x']);
  });

  it('with the strategy lifo tasks that need resources take their turn, too', () => {
    const bench = new WorkerBench({ ready: 'lifo', resources: { GPU: 1 } });
    bench.compute('running');
    bench.compute('plain');
    bench.compute('special', {}, { resources: { GPU: 1 }, priority: [0, 99, 0] });
    expect(bench.succeed('running')).toEqual(['task-finished running', 'execute special']);
  });

  it('no more tasks run than there are threads; the best priority goes first', () => {
    const bench = new WorkerBench({ threadCount: 1 });
    bench.compute('first');
    bench.compute('late', {}, { priority: [0, 2, 0] });
    bench.compute('early', {}, { priority: [0, 1, 5] });
    bench.compute('urgent', {}, { priority: [-1, 9, 9] });
    expect(bench.succeed('first')).toEqual(['task-finished first', 'execute urgent']);
    expect(bench.succeed('urgent')).toEqual(['task-finished urgent', 'execute early']);
    expect(bench.fail('early')).toEqual(['task-erred early', 'execute late']);
  });

  it('of tasks of the same priority the oldest submission runs first, in whatever order they come', () => {
    const bench = new WorkerBench();
    bench.compute('a');
    for (const [key, arrival] of Object.entries({ d: 7, b: 2, e: 9, c: 5 })) {
      bench.compute(key, {}, { arrival });
    }
    for (const [done, next] of ['ab', 'bc', 'cd', 'de']) {
      expect(bench.succeed(done!)).toContain(`execute ${next}`);
    }
  });

  it('of tasks of the same priority and submission the newest runs first', () => {
    const bench = new WorkerBench();
    bench.compute('a');
    for (const key of ['b', 'c', 'd']) bench.compute(key);
    expect(bench.succeed('a')).toContain('execute d');
    expect(bench.succeed('d')).toContain('execute c');
  });

  it('of tasks that arrive together the best runs, not the first', () => {
    const bench = new WorkerBench();
    const together = ['worse', 'best'].map((key, index) =>
      computeTask(key, {}, { priority: [0, 1, 1 - index] }),
    );
    expect(bench.send(...together)).toEqual(['execute best']);
  });

  it('a failure is reported and leaves a tombstone until it is freed', () => {
    const bench = new WorkerBench();
    bench.compute('x');
    expect(bench.fail('x')).toEqual(['task-erred x']);
    expect(bench.states).toEqual({ x: 'error' });
    expect(bench.free('x')).toEqual([]);
    expect(bench.states).toEqual({});
  });

  it('a failed task that is asked for again runs again', () => {
    const bench = new WorkerBench();
    bench.compute('x');
    bench.fail('x');
    expect(bench.compute('x')).toEqual(['execute x']);
  });

  it('a task that gives itself back is forgotten', () => {
    const bench = new WorkerBench();
    bench.compute('x');
    expect(bench.send({ op: 'execute-reschedule', key: 'x' })).toEqual(['reschedule x']);
    expect(bench.states).toEqual({});
  });

  it('a task that is here already is reported again, with the new run id', () => {
    const bench = new WorkerBench();
    bench.compute('x');
    bench.succeed('x');
    const [{ message }] = bench.instructions(computeTask('x', {}, { runId: 99 })) as [Send];
    expect(message).toMatchObject({ op: 'task-finished', key: 'x', runId: 99, type: 'number' });
  });

  it('asked twice for a task that runs, it reports the later run id once', () => {
    const bench = new WorkerBench();
    bench.compute('x');
    expect(bench.compute('x', {}, { runId: 1234 })).toEqual([]);
    const [{ message }] = bench.instructions({
      op: 'execute-success',
      key: 'x',
      nbytes: 1,
      type: 'number',
      timings: [],
    }) as [Send];
    expect(message).toMatchObject({ runId: 1234 });
  });

  it('paused, it begins neither runs nor transfers', () => {
    const bench = new WorkerBench();
    bench.send({ op: 'pause' });
    expect(bench.compute('x')).toEqual([]);
    expect(bench.compute('y', { d: [P1] })).toEqual([]);
    expect(bench.send({ op: 'unpause' })).toEqual(['execute x', `gather ${P1} d`]);
  });
});

describe('resources', () => {
  const bench = (): WorkerBench => new WorkerBench({ threadCount: 3, resources: { gpu: 1 } });
  const onGpu = { resources: { gpu: 1 } };

  it('a task waits until its resources are free, while others pass it', () => {
    const it = bench();
    expect(it.compute('a', {}, onGpu)).toEqual(['execute a']);
    expect(it.compute('b', {}, onGpu)).toEqual([]);
    expect(it.compute('c')).toEqual(['execute c']);
    expect(it.succeed('a')).toEqual(['task-finished a', 'execute b']);
  });

  it('a cancelled run keeps its resources until it has ended', () => {
    const it = bench();
    it.compute('a', {}, onGpu);
    it.compute('b', {}, onGpu);
    expect(it.free('a')).toEqual(['abort-execution a']);
    expect(it.fail('a')).toEqual(['execute b']);
  });

  it('a task that needs more than there is fails, rather than wait for ever', () => {
    const it = bench();
    const [{ message }] = it.instructions(computeTask('x', {}, { resources: { gpu: 2 } })) as [
      Send,
    ];
    expect(message).toMatchObject({
      op: 'task-erred',
      failure: { exceptionText: expect.stringMatching(/needs 2 of the resource "gpu"/) as string },
    });
    expect(it.compute('y', {}, { resources: { tpu: 1 } })).toEqual(['task-erred y']);
  });
});

describe('fetching', () => {
  it('missing inputs are fetched before the run', () => {
    const bench = new WorkerBench();
    expect(bench.compute('y', { a: [P1], b: [P1] })).toEqual([`gather ${P1} a b`]);
    expect(bench.states).toEqual({ y: 'waiting', a: 'flight', b: 'flight' });
    expect(bench.arrive(P1, 'a', 'b')).toEqual(['add-keys b a', 'execute y a b']);
  });

  it('a peer is asked for one thing at a time', () => {
    const bench = new WorkerBench();
    bench.compute('y', { a: [P1] });
    expect(bench.compute('z', { b: [P1] })).toEqual([]);
    expect(bench.arrive(P1, 'a')).toEqual(['add-keys a', 'execute y a', `gather ${P1} b`]);
  });

  it('inputs that are needed together are asked for together', () => {
    const bench = new WorkerBench();
    const together = [computeTask('y', { a: [P1] }), computeTask('z', { b: [P1] })];
    expect(bench.send(...together)).toEqual([`gather ${P1} b a`]);
  });

  it('a peer on this host is preferred, then the one that has more', () => {
    const bench = new WorkerBench();
    expect(bench.compute('y', { a: [P1, LOCAL] })).toEqual([`gather ${LOCAL} a`]);
    const other = new WorkerBench();
    const gathers = other.compute('y', { a: [P1, P2], b: [P1], c: [P1, P2] });
    expect(gathers).toEqual([`gather ${P1} a b c`]);
  });

  it('the most urgent task decides which peer is asked first', () => {
    const bench = new WorkerBench({ incomingTransfersMax: 1, throttleThresholdBytes: 0 });
    const gathers = bench.send(
      computeTask('late', { a: [LOCAL], b: [LOCAL] }, { priority: [0, 2, 0] }),
      computeTask('early', { c: [P1] }, { priority: [0, 1, 0] }),
    );
    expect(gathers).toEqual([`gather ${P1} c`]);
  });

  it('no more bytes are under way than allowed, but never nothing', () => {
    const bench = new WorkerBench({ incomingBytesMax: 150 });
    const where = { a: { at: [P1], nbytes: 1000 }, b: { at: [P2], nbytes: 100 } };
    const [gather] = bench.compute('y', where);
    expect(bench.states['a'] === 'flight').not.toBe(bench.states['b'] === 'flight');
    const peer = gather!.includes(P1) ? P1 : P2;
    expect(bench.arrive(peer, peer === P1 ? 'a' : 'b')).toHaveLength(2);
  });

  it('one message asks for no more bytes than fit, but for one task in any case', () => {
    const bench = new WorkerBench({ messageBytesMax: 250 });
    const where = Object.fromEntries(
      ['a', 'b', 'c'].map((key) => [key, { at: [P1], nbytes: 100 }]),
    );
    expect(bench.compute('y', where)).toEqual([`gather ${P1} a b`]);
    const large = new WorkerBench({ messageBytesMax: 10 });
    expect(large.compute('y', where)).toEqual([`gather ${P1} a`]);
  });

  it('many small transfers are not limited; many bytes in many transfers are', () => {
    const where = { a: [P1], b: [P2] };
    const few = new WorkerBench({ incomingTransfersMax: 1, throttleThresholdBytes: 1_000 });
    expect(few.compute('y', where)).toHaveLength(2);
    const many = new WorkerBench({ incomingTransfersMax: 1, throttleThresholdBytes: 100 });
    expect(many.compute('y', where)).toHaveLength(1);
  });

  it('what a peer lacks is fetched from another', () => {
    const bench = new WorkerBench();
    bench.compute('y', { a: [LOCAL, P1] });
    expect(bench.arrive(LOCAL)).toEqual([`gather ${P1} a`]);
    expect(bench.arrive(P1)).toEqual([]);
    expect(bench.states).toEqual({ y: 'waiting', a: 'missing' });
  });

  it('a missing input is asked for at the scheduler, and fetched when it knows', () => {
    const bench = new WorkerBench();
    bench.compute('y', { a: [P1] });
    bench.send({ op: 'gather-network-failure', worker: P1 });
    expect(bench.send({ op: 'find-missing' })).toEqual(['request-refresh-who-has a']);
    const nobody = { op: 'refresh-who-has', replicas: locations({ a: [] }) } as const;
    expect(bench.send(nobody)).toEqual([]);
    const known = { op: 'refresh-who-has', replicas: locations({ a: [P2] }) } as const;
    expect(bench.send(known)).toEqual([`gather ${P2} a`]);
    bench.arrive(P2, 'a');
    expect(bench.send({ op: 'find-missing' })).toEqual([]);
  });

  it('a busy peer is left alone for a while; others are asked at once', () => {
    const bench = new WorkerBench();
    bench.compute('y', { a: [LOCAL, P1] });
    expect(bench.send({ op: 'gather-busy', worker: LOCAL })).toEqual([
      `retry-busy-later ${LOCAL}`,
      `gather ${P1} a`,
    ]);
    expect(bench.send({ op: 'gather-busy', worker: P1 })).toEqual([
      `retry-busy-later ${P1}`,
      'request-refresh-who-has a',
    ]);
    expect(bench.send({ op: 'retry-busy-worker', worker: P1 })).toEqual([`gather ${P1} a`]);
  });

  it('a peer that is busy for minutes on end counts as one that cannot be reached', () => {
    const bench = new WorkerBench();
    bench.compute('y', { a: [P1] });
    let sent: readonly unknown[] = [];
    let answers = 0;
    for (; answers < 5000 && !JSON.stringify(sent).includes('unreachable'); answers++) {
      sent = bench.instructions({ op: 'gather-busy', worker: P1 });
      bench.send({ op: 'retry-busy-worker', worker: P1 });
    }
    expect(answers).toBe(2000);
    const reason = 'it has answered 2000 times that it is busy';
    expect(sent).toMatchObject([
      {
        message: {
          op: 'request-refresh-who-has',
          keys: ['a'],
          unreachable: { address: P1, reason },
        },
      },
    ]);
    expect(bench.states).toMatchObject({ a: 'missing' });
  });

  it('a peer that is busy now and then is asked for ever', () => {
    const bench = new WorkerBench();
    for (let round = 0; round < 3; round++) {
      bench.compute(`y-${round}`, { [`a-${round}`]: [P1] });
      for (let answers = 0; answers < 1500; answers++) {
        bench.send({ op: 'gather-busy', worker: P1 });
        bench.send({ op: 'retry-busy-worker', worker: P1 });
      }
      expect(bench.states).toMatchObject({ [`a-${round}`]: 'flight' });
      bench.send({ op: 'gather-success', worker: P1, keys: [`a-${round}`], nbytes: [1] });
    }
  });

  it('a peer whose connection breaks counts as gone with all it held', () => {
    const bench = new WorkerBench({ incomingTransfersMax: 1, throttleThresholdBytes: 0 });
    bench.compute('y', { a: [P1], b: [P1, P2] }, { priority: [0, 0, 0] });
    bench.compute('z', { c: [P1] });
    expect(bench.send({ op: 'gather-network-failure', worker: P1 })).toEqual([`gather ${P2} b`]);
    expect(bench.states).toMatchObject({ a: 'missing', c: 'missing', b: 'flight' });
  });

  it('a peer that answers three times without a result is reported as one that denies it', () => {
    const bench = new WorkerBench();
    bench.compute('y', { a: [P1], b: [P1] });
    const answer = (keys: string[]): string[] =>
      bench.send({ op: 'gather-success', worker: P1, keys, nbytes: keys.map(() => 1) });
    const again = (): string[] =>
      bench.send({ op: 'refresh-who-has', replicas: locations({ a: [P1] }) });
    answer(['b']);
    expect(bench.states).toMatchObject({ a: 'missing', b: 'memory' });
    expect(again()).toEqual([`gather ${P1} a`]);
    expect(answer([])).toEqual([]);
    again();
    const sent = bench.instructions({ op: 'gather-success', worker: P1, keys: [], nbytes: [] });
    expect(sent).toMatchObject([
      { message: { op: 'request-refresh-who-has', keys: ['a'], deniedBy: P1 } },
    ]);
  });

  describe('a peer that the scheduler knows and that cannot be reached', () => {
    const fail = (bench: WorkerBench, peer = P1): readonly Send[] =>
      bench
        .instructions({ op: 'gather-network-failure', worker: peer, reason: 'no route' })
        .filter((instruction): instruction is Send => instruction.kind === 'send');
    const refresh = (bench: WorkerBench, where: Locations): string[] =>
      bench.send({ op: 'refresh-who-has', replicas: locations(where) });
    const report = {
      op: 'request-refresh-who-has',
      keys: ['a'],
      unreachable: { address: P1, reason: 'no route' },
    };

    it('is reported after each third failure in succession', () => {
      const bench = new WorkerBench();
      bench.compute('y', { a: [P1] });
      const reports = Array.from({ length: 6 }, () => {
        const sent = fail(bench).map(({ message }) => message);
        refresh(bench, { a: [P1] });
        return sent;
      });
      expect(reports).toMatchObject([[], [], [report], [], [], [report]]);
    });

    it('is not while another holder may give the result', () => {
      const bench = new WorkerBench();
      bench.compute('y', { a: [P1, P2] });
      for (let round = 0; round < 2; round++) {
        expect([...fail(bench, P1), ...fail(bench, P2)]).toEqual([]);
        refresh(bench, { a: [P1, P2] });
      }
      expect(fail(bench, P1)).toEqual([]);
      expect(fail(bench, P2)).toHaveLength(1);
    });

    it('counts anew after a transfer that succeeded, and after it has left', () => {
      for (const end of ['arrive', 'remove'] as const) {
        const bench = new WorkerBench();
        bench.compute('y', { a: [P1] });
        for (let round = 0; round < 2; round++) {
          fail(bench);
          refresh(bench, { a: [P1] });
        }
        if (end === 'arrive') {
          bench.arrive(P1, 'a');
          bench.succeed('y');
        } else bench.send({ op: 'remove-worker', worker: P1 });
        bench.compute('z', { b: [P1] });
        if (end === 'remove') expect(fail(bench)).toEqual([]);
        refresh(bench, { b: [P1] });
        expect(fail(bench)).toEqual([]);
      }
    });

    it('does not keep a copy waiting that no task needs', () => {
      const bench = new WorkerBench();
      bench.send({ op: 'acquire-replicas', replicas: locations({ a: [P1] }) });
      for (let round = 0; round < 2; round++) {
        fail(bench);
        refresh(bench, { a: [P1] });
      }
      expect(fail(bench)).toHaveLength(1);
      expect(bench.states).toEqual({});
    });
  });

  it('a peer that the scheduler removes is forgotten; what is under way ends by itself', () => {
    const bench = new WorkerBench();
    bench.compute('y', { a: [P1] });
    bench.compute('z', { b: [P1] });
    expect(bench.send({ op: 'remove-worker', worker: P1 })).toEqual([]);
    expect(bench.states).toMatchObject({ a: 'flight', b: 'missing' });
    expect(bench.send({ op: 'gather-network-failure', worker: P1 })).toEqual([]);
    expect(bench.states).toMatchObject({ a: 'missing' });
    expect(bench.kernel.tables.failedTransfers.size).toBe(0);
  });

  it('copies that cannot be kept fail the tasks that need them', () => {
    const bench = new WorkerBench();
    bench.compute('y', { a: [P1] });
    expect(bench.send({ op: 'gather-failure', worker: P1, failure: FAILURE })).toEqual([
      'task-erred y',
    ]);
    expect(bench.states).toEqual({ y: 'error' });
  });

  it('an input that is no longer needed is not fetched', () => {
    const bench = new WorkerBench();
    bench.compute('busy', { a: [P1] });
    bench.compute('y', { b: [P1] });
    expect(bench.free('y')).toEqual([]);
    expect(bench.states).toEqual({ busy: 'waiting', a: 'flight' });
    expect(bench.arrive(P1, 'a')).toEqual(['add-keys a', 'execute busy a']);
  });

  it('this worker is never its own peer', () => {
    const bench = new WorkerBench();
    bench.compute('y', { a: [SELF] });
    expect(bench.states).toEqual({ y: 'waiting', a: 'missing' });
  });
});

describe('replicas', () => {
  const acquire = { op: 'acquire-replicas', replicas: locations({ a: [P1] }) } as const;

  it('a copy is fetched on request, after the inputs of tasks', () => {
    const bench = new WorkerBench({ incomingTransfersMax: 1, throttleThresholdBytes: 0 });
    const both = [acquire, computeTask('y', { b: [P2] })];
    expect(bench.send(...both)).toEqual([`gather ${P2} b`]);
    expect(bench.arrive(P2, 'b')).toEqual(['add-keys b', 'execute y b', `gather ${P1} a`]);
    expect(bench.arrive(P1, 'a')).toEqual(['add-keys a']);
  });

  it('a copy that is here already is not fetched', () => {
    const bench = new WorkerBench();
    bench.send(acquire);
    bench.arrive(P1, 'a');
    expect(bench.send(acquire)).toEqual([]);
  });

  it('a wanted copy is fetched even if the task that needed it too is freed', () => {
    const bench = new WorkerBench();
    bench.compute('y', { a: [P1] });
    bench.send(acquire);
    bench.free('y');
    expect(bench.states).toEqual({ a: 'flight' });
    expect(bench.arrive(P1, 'a')).toEqual(['add-keys a']);
  });

  it('a copy is dropped on request, unless a task here is about to use it', () => {
    const bench = new WorkerBench();
    bench.compute('run');
    bench.send(acquire);
    bench.arrive(P1, 'a');
    bench.compute('y', { a: [SELF] });
    const remove = { op: 'remove-replicas', keys: ['a', 'unknown'] } as const;
    expect(bench.send(remove)).toEqual(['add-keys a']);
    bench.free('y');
    expect(bench.send(remove)).toEqual(['drop-data a', 'release-worker-data a']);
    expect(bench.states).toEqual({ run: 'executing' });
  });

  it('results that are freed together are reported together', () => {
    const bench = new WorkerBench();
    bench.send({ op: 'update-data', keys: ['a', 'b'], nbytes: [7, 7] });
    expect(bench.free('a', 'b')).toEqual(['drop-data b', 'release-worker-data b a', 'drop-data a']);
  });

  it('results that different messages free are reported separately, each with its cause', () => {
    const bench = new WorkerBench();
    bench.send({ op: 'update-data', keys: ['a', 'b'], nbytes: [7, 7] });
    const events = ['a', 'b'].map((key) => {
      return { op: 'free-keys', keys: [key], stimulusId: `free-${key}` } as const;
    });
    const told = bench.kernel.handleAll(events, 0).filter(({ kind }) => kind === 'send');
    expect(told).toMatchObject([
      { message: { keys: ['a'], stimulusId: 'free-a' } },
      { message: { keys: ['b'], stimulusId: 'free-b' } },
    ]);
  });

  it('a result that is freed while a task is about to use it has to be fetched again', () => {
    const bench = new WorkerBench();
    bench.compute('run');
    bench.send({ op: 'update-data', keys: ['a'], nbytes: [7] });
    bench.compute('y', { a: [SELF] });
    expect(bench.free('a')).toEqual(['drop-data a', 'release-worker-data a']);
    expect(bench.states).toEqual({ run: 'executing', y: 'waiting', a: 'missing' });
    expect(bench.free('y')).toEqual([]);
    expect(bench.states).toEqual({ run: 'executing' });
  });
});

describe('cancelled and resumed', () => {
  it('a freed run is asked to abort; whatever it comes to is dropped', () => {
    for (const end of ['succeed', 'fail'] as const) {
      const bench = new WorkerBench();
      bench.compute('x');
      expect(bench.free('x')).toEqual(['abort-execution x']);
      expect(bench.states).toEqual({ x: 'cancelled(executing)' });
      expect(bench[end]('x')).toEqual(end === 'succeed' ? ['drop-data x'] : []);
      expect(bench.states).toEqual({});
    }
  });

  it('a cancelled run occupies its thread until it ends', () => {
    const bench = new WorkerBench();
    bench.compute('x');
    bench.free('x');
    expect(bench.compute('y')).toEqual([]);
    expect(bench.fail('x')).toEqual(['execute y']);
  });

  it('a task that is asked for again runs again after its cancelled run', () => {
    const bench = new WorkerBench();
    bench.compute('x');
    bench.free('x');
    expect(bench.compute('x', {}, { runSpec: 'new' })).toEqual([]);
    expect(bench.states).toEqual({ x: 'resumed(executing→waiting)' });
    const [drop, execute] = bench.instructions({
      op: 'execute-success',
      key: 'x',
      nbytes: 1,
      type: 'number',
      timings: [],
    });
    expect(drop).toEqual({ kind: 'drop-data', key: 'x' });
    expect(execute).toMatchObject({ kind: 'execute', runSpec: 'new' });
    expect(bench.succeed('x')).toEqual(['task-finished x']);
  });

  it('a cancelled run whose result is needed from elsewhere is followed by a transfer', () => {
    const bench = new WorkerBench();
    bench.compute('x');
    bench.free('x');
    expect(bench.compute('y', { x: [P1] })).toEqual([]);
    expect(bench.states).toEqual({ x: 'resumed(executing→fetch)', y: 'waiting' });
    expect(bench.fail('x')).toEqual([`gather ${P1} x`]);
    expect(bench.arrive(P1, 'x')).toEqual(['add-keys x', 'execute y x']);
  });

  it('a freed transfer that brings something brings it for nothing', () => {
    const bench = new WorkerBench();
    bench.compute('y', { a: [P1] });
    bench.free('y');
    expect(bench.states).toEqual({ a: 'cancelled(flight)' });
    expect(bench.arrive(P1, 'a')).toEqual(['drop-data a']);
    expect(bench.states).toEqual({});
  });

  it('a freed transfer that is wanted again continues', () => {
    const bench = new WorkerBench();
    bench.compute('y', { a: [P1] });
    bench.free('y');
    expect(bench.compute('z', { a: [P1] })).toEqual([]);
    expect(bench.states).toEqual({ a: 'flight', z: 'waiting' });
    expect(bench.arrive(P1, 'a')).toEqual(['add-keys a', 'execute z a']);
  });

  it('a task in flight that is to be computed here is computed after the transfer', () => {
    const bench = new WorkerBench();
    bench.compute('y', { a: [P1] });
    expect(bench.compute('a')).toEqual([]);
    expect(bench.states).toEqual({ y: 'waiting', a: 'resumed(flight→waiting)' });
    expect(bench.send({ op: 'gather-network-failure', worker: P1 })).toEqual(['execute a']);
    expect(bench.succeed('a')).toEqual(['task-finished a', 'execute y a']);
  });

  it('a resumed task that is freed is cancelled again', () => {
    const bench = new WorkerBench();
    bench.compute('x');
    bench.free('x');
    bench.compute('x');
    expect(bench.free('x')).toEqual([]);
    expect(bench.states).toEqual({ x: 'cancelled(executing)' });
  });
});

describe('data that clients put', () => {
  it('is there for tasks and is not reported', () => {
    const bench = new WorkerBench();
    expect(bench.send({ op: 'update-data', keys: ['a'], nbytes: [7] })).toEqual([]);
    expect(bench.compute('y', { a: [SELF] })).toEqual(['execute y a']);
    expect(bench.kernel.tables.nbytes).toBe(7);
  });

  it('replaces a result that is here', () => {
    const bench = new WorkerBench();
    bench.send({ op: 'update-data', keys: ['a'], nbytes: [7] });
    bench.send({ op: 'update-data', keys: ['a'], nbytes: [9] });
    expect(bench.kernel.tables.nbytes).toBe(9);
  });

  it('outlives orders that are about what was there before it', () => {
    const bench = new WorkerBench();
    const put = { op: 'update-data', keys: ['a'], nbytes: [7], reservation: 5 } as const;
    bench.send(put);
    expect(bench.send({ op: 'free-keys', keys: ['a'], reservation: 4 })).toEqual([]);
    expect(bench.send({ op: 'remove-replicas', keys: ['a'], reservation: 4 })).toEqual([]);
    const told = bench.instructions({ op: 'free-keys', keys: ['a'], reservation: 5 });
    expect(told).toContainEqual({
      kind: 'send',
      message: expect.objectContaining({ op: 'release-worker-data', reservation: 5 }) as object,
    });
    expect(bench.states).toEqual({});
  });

  it('is not the result of a task of its key, whichever comes first', () => {
    const bench = new WorkerBench();
    bench.compute('run');
    bench.compute('x');
    bench.send({ op: 'update-data', keys: ['y'], nbytes: [7] });
    expect(bench.send({ op: 'update-data', keys: ['x'], nbytes: [7] })).toEqual(['drop-data x']);
    expect(bench.compute('y')).toEqual(['drop-data y', 'release-worker-data y']);
    expect(bench.states).toEqual({ run: 'executing', x: 'ready', y: 'ready' });
    expect(bench.kernel.tables.nbytes).toBe(0);
  });

  it('is refused under the key of what runs or flies', () => {
    const bench = new WorkerBench();
    bench.compute('x');
    bench.compute('y', { a: [P1] });
    const put = { op: 'update-data', keys: ['x', 'a'], nbytes: [7, 7] } as const;
    expect(bench.send(put)).toEqual(['drop-data x', 'drop-data a']);
    expect(bench.states).toMatchObject({ x: 'executing', a: 'flight' });
  });
});

describe('the machine itself', () => {
  it('returns the story of a task, and of a stimulus', () => {
    const bench = new WorkerBench();
    bench.compute('x', {}, { stimulusId: 'why' });
    bench.compute('other');
    expect(bench.kernel.story('x').map(({ start, finish }) => `${start}→${finish}`)).toEqual([
      'released→waiting',
      'waiting→ready',
      'ready→executing',
    ]);
    expect(bench.kernel.story('why').every(({ key }) => key === 'x')).toBe(true);
  });

  it('keeps only the latest of its story', () => {
    const bench = new WorkerBench({ transitionLogLength: 4 });
    for (const key of ['a', 'b', 'c']) bench.compute(key);
    const records = bench.kernel.story();
    expect(records).toHaveLength(4);
    expect(records.at(-1)).toMatchObject({ key: 'c', finish: 'ready' });
  });

  it('a broken state is an error with the story of the task', () => {
    const bench = new WorkerBench();
    bench.compute('x');
    bench.succeed('x');
    bench.kernel.tables.tasks.get('x')!.state = 'ready';
    const broken = (): unknown => bench.send({ op: 'find-missing' });
    expect(broken).toThrow(
      expect.objectContaining({
        code: 'ERR_INVARIANT',
        data: expect.objectContaining({ key: 'x' }) as object,
      }),
    );
  });

  it('a run that ends without having begun is an error', () => {
    expect(() => new WorkerBench().succeed('x')).toThrow(/"x" ended but did not run/);
  });

  it('endless transitions blow a fuse', () => {
    const bench = new WorkerBench({ transitionCounterMax: 5 });
    bench.compute('x');
    bench.succeed('x');
    expect(() => bench.compute('y')).toThrow(expect.objectContaining({ code: 'ERR_TRANSITION' }));
  });

  it('the same events give the same instructions, whatever the order of holders', () => {
    const where = (turned: boolean): Record<string, string[]> => {
      const peers = [P1, P2, 'tcp://10.0.0.4:1', 'tcp://10.0.0.5:1'];
      return { a: turned ? peers.toReversed() : peers };
    };
    expect(new WorkerBench().compute('y', where(true))).toEqual(
      new WorkerBench().compute('y', where(false)),
    );
  });
});

describe('work stealing', () => {
  it('gives back what has not begun, and says in which state it was', () => {
    const bench = new WorkerBench({ resources: { gpu: 1 } });
    const ids: Record<string, number> = {};
    const compute = (key: string, where: Locations = {}, more = {}): void => {
      const task = computeTask(key, where, more);
      ids[key] = task.runId;
      bench.send(task);
    };
    compute('runs');
    compute('ready');
    compute('constrained', {}, { resources: { gpu: 1 } });
    compute('waiting', { input: [P1] });
    const keys = ['runs', 'ready', 'constrained', 'waiting', 'unheard'];
    const runIds = keys.map((key) => ids[key] ?? 1);
    const [{ message }] = bench.instructions({ op: 'steal-request', keys, runIds }) as [Send];
    expect(message).toMatchObject({
      op: 'steal-response',
      keys,
      runIds,
      states: ['executing', 'ready', 'constrained', 'waiting', 'unknown'],
    });
    // The input that only the stolen task needed is on its way and not wanted any more.
    expect(bench.states).toEqual({ runs: 'executing', input: 'cancelled(flight)' });
    expect(bench.succeed('runs')).toEqual(['task-finished runs']);
  });

  it('keeps a task of which a newer assignment has come', () => {
    const bench = new WorkerBench();
    bench.compute('first');
    const older = computeTask('x');
    bench.send(older);
    bench.compute('x');
    const runIds = [older.runId];
    const [{ message }] = bench.instructions({ op: 'steal-request', keys: ['x'], runIds }) as [
      Send,
    ];
    expect(message).toMatchObject({ states: ['ready'], runIds });
    expect(bench.state('x')).toBe('ready');
  });

  it('what is stolen back is computed as if nothing had happened', () => {
    const bench = new WorkerBench();
    bench.compute('first');
    const task = computeTask('x');
    bench.send(task);
    expect(bench.send({ op: 'steal-request', keys: ['x'], runIds: [task.runId] })).toEqual([
      'steal-response x',
    ]);
    expect(bench.state('x')).toBeUndefined();
    bench.compute('x');
    expect(bench.succeed('first')).toEqual(['task-finished first', 'execute x']);
  });
});
