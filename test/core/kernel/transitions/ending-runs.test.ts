import { expect, it } from 'vitest';
import { SchedulerEnv } from '../../../kit/env.ts';
import { numbered } from '../../../kit/graph.ts';

function env(tellsRunEnds = true): SchedulerEnv {
  const made = new SchedulerEnv();
  made.addWorkers(1, { threads: 2, tellsRunEnds });
  return made;
}

it('a run that is cancelled keeps its slot until the worker says that it is over', () => {
  const scheduler = env();
  scheduler.submit(numbered('r', 12));
  const worker = scheduler.worker('w1');
  const first = scheduler.cluster.tasks.get('r-0')!;
  const { runId } = first;
  const sent = worker.processing.size;
  scheduler.ignoreMessages();
  scheduler.release('r-0');
  expect([...worker.endingRuns]).toEqual([runId]);
  // Its place is not given to another task.
  expect(worker.processing.size).toBe(sent - 1);
  expect(scheduler.takeWorkerMessages('w1')).toMatchObject([
    { op: 'free-keys', keys: ['r-0'], runIds: [runId] },
  ]);
  scheduler.send({ op: 'runs-over', worker: worker.address, runIds: [runId, 999] });
  expect(worker.endingRuns.size).toBe(0);
  expect(worker.processing.size).toBe(sent);
});

it('a worker that does not report the ends of runs counts as having stopped them at once', () => {
  const scheduler = env(false);
  scheduler.submit(numbered('r', 12));
  const worker = scheduler.worker('w1');
  const sent = worker.processing.size;
  scheduler.ignoreMessages();
  scheduler.release('r-0');
  expect(worker.endingRuns.size).toBe(0);
  expect(worker.processing.size).toBe(sent);
  const [freed] = scheduler.takeWorkerMessages('w1');
  expect(freed).toEqual({
    op: 'free-keys',
    keys: ['r-0'],
    stimulusId: expect.any(String) as string,
  });
});

it('a worker with a run that has not ended is not idle', () => {
  const scheduler = env();
  scheduler.submit({ a: {}, b: {} });
  scheduler.release('a', 'b');
  const worker = scheduler.worker('w1');
  expect(worker.processing.size).toBe(0);
  expect(worker.runCount).toBe(2);
  expect(scheduler.cluster.idle.has(worker)).toBe(false);
});

it('data that a client puts where the task runs ends the account of its run', () => {
  const scheduler = env();
  scheduler.submit({ a: {} });
  scheduler.scatter({ a: ['w1'] });
  expect(scheduler.worker('w1').endingRuns.size).toBe(0);
});
