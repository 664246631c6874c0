import { expect, it } from 'vitest';
import { SchedulerEnv } from '../../../kit/env.ts';
import { numbered } from '../../../kit/graph.ts';

// ---- register ------------------------------------------------------------------------------

it('a worker is registered under its address, name, host and resources', () => {
  const env = new SchedulerEnv();
  env.addWorker('w1', { name: 'alice', host: 'h1', threads: 3, resources: { gpu: 2 } });
  const { cluster } = env;
  expect(cluster.aliases.get('alice')).toBe('tcp://w1:1');
  expect([...cluster.hosts.get('h1')!]).toEqual(['tcp://w1:1']);
  expect(cluster.resources.get('gpu')?.get('tcp://w1:1')).toBe(2);
  expect(cluster.totalThreads).toBe(3);
  expect([...cluster.running].map(({ name }) => name)).toEqual(['alice']);
});

it('a worker with a taken address or name is not registered', () => {
  const env = new SchedulerEnv();
  env.addWorker('w1');
  env.addWorker('w1', { threads: 7 });
  env.addWorker('w2', { name: 'w1' });
  expect(env.cluster.workers.size).toBe(1);
  expect(env.cluster.totalThreads).toBe(1);
});

it('a paused worker that registers gets nothing', () => {
  const env = new SchedulerEnv();
  env.submit({ a: [] });
  env.addWorker('w1', { status: 'paused' });
  expect(env.states).toEqual({ a: 'queued' });
  env.expectEmpty();
});

it('a worker that registers with a heartbeat has its metrics', () => {
  const env = new SchedulerEnv();
  const metrics = {
    memoryBytes: 5,
    managedBytes: 0,
    spilledMemoryBytes: 0,
    spilledDiskBytes: 0,
  };
  env.addWorker('w1', { metrics });
  expect(env.worker('w1').memory.process).toBe(5);
});

// ---- heartbeat -----------------------------------------------------------------------------

it('a heartbeat of an unknown worker is ignored', () => {
  const env = new SchedulerEnv();
  env.heartbeat('stranger');
  env.expectEmpty();
});

it('a heartbeat moves the bandwidth of the cluster by the share of one worker', () => {
  const env = new SchedulerEnv({ kernel: { bandwidth: 100 } });
  env.addWorkers(2);
  env.heartbeat('w1', { bandwidth: 300 });
  expect(env.cluster.costs.bandwidth).toBe(200);
});

it('a bandwidth that nobody has set gives way to the first measurements', () => {
  const env = new SchedulerEnv({ kernel: { bandwidth: 100, isBandwidthGuessed: true } });
  env.addWorkers(3);
  env.heartbeat('w1', { bandwidth: 300 });
  expect(env.cluster.costs.bandwidth).toBe(300);
  env.heartbeat('w2', { bandwidth: 500 });
  expect(env.cluster.costs.bandwidth).toBe(400);
  env.heartbeat('w2', { bandwidth: 700 });
  expect(env.cluster.costs.bandwidth).toBeCloseTo(500, 9);
});

it('a heartbeat shows the clock offset of the worker', () => {
  const env = new SchedulerEnv().advance(1000);
  env.addWorker('w1');
  env.heartbeat('w1', { workerNowMs: 900 });
  expect(env.worker('w1')).toMatchObject({ timeDelayMs: 100, lastSeenMs: 1000 });
});

it('a task that runs for twice its average makes the average unknown', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ 'a-1': [], 'a-2': [] });
  env.finish('a-1', { durationS: 1 });
  env.heartbeat('w1', { executing: { 'a-2': 2.5 } });
  const prefix = env.cluster.prefixes.get('a')!;
  expect(prefix.durationAverageS).toBe(-1);
  expect(prefix.durationEstimateS).toBe(5);
  expect(env.worker('w1').occupancyS).toBe(5);
});

it('what a worker claims to run and was not sent counts for nothing', () => {
  const env = new SchedulerEnv();
  env.addWorkers(2);
  env.submit({ a: [] });
  env.heartbeat('w2', { executing: { a: 9, unknown: 9 } });
  expect(env.worker('w2').executing.size).toBe(0);
  expect(env.cluster.prefixes.get('a')!.maxExecTimeS).toBe(-1);
});

// ---- status --------------------------------------------------------------------------------

it('a paused worker keeps its tasks and gets no more', () => {
  const env = new SchedulerEnv();
  env.addWorkers(2);
  env.submit({ a: [] });
  env.setStatus('w1', 'paused');
  env.submit({ b: [], c: [] });
  expect(env.states).toEqual({ a: 'processing w1', b: 'processing w2', c: 'processing w2' });
});

it('a paused worker is neither idle nor saturated, nor has it an open slot', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.setStatus('w1', 'paused');
  const { idle, saturated, openSlots, running } = env.cluster;
  expect([idle.size, saturated.size, openSlots.size, running.size]).toEqual([0, 0, 0, 0]);
});

it('a change of status is published', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.setStatus('w1', 'paused');
  env.setStatus('w1', 'paused');
  env.setStatus('stranger', 'paused');
  expect(env.takeEvents()).toEqual([
    {
      topic: 'tcp://w1:1',
      message: { action: 'worker-status-change', before: 'running', after: 'paused' },
    },
  ]);
});

it('queued tasks wait until a paused worker runs again', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit(numbered('r', 4));
  env.setStatus('w1', 'paused');
  env.finish('r-0');
  expect(env.state('r-2')).toBe('queued');
  env.setStatus('w1', 'running');
  expect(env.state('r-2')).toBe('processing');
});

// ---- departure -----------------------------------------------------------------------------

it('a worker that leaves is asked to close, and its peers are notified', () => {
  const env = new SchedulerEnv();
  env.addWorkers(3);
  env.removeWorker('w1', { expected: true, close: true });
  expect(env.takeWorker('w1')).toEqual(['close scheduler-remove-worker']);
  expect(env.takeWorker('w2')).toEqual(['remove-worker w1']);
  expect(env.takeWorker('w3')).toEqual(['remove-worker w1']);
  expect(env.takeEvents().map(({ topic }) => topic)).toEqual(['tcp://w1:1', 'all']);
  env.expectEmpty();
});

it('a worker that leaves is in no container any more', () => {
  const env = new SchedulerEnv();
  env.addWorker('w1', { resources: { gpu: 1 } });
  env.removeWorker('w1');
  const { workers, aliases, hosts, resources, totalThreads, workersByRank } = env.cluster;
  expect([workers.size, aliases.size, hosts.size, resources.size, totalThreads]).toEqual([
    0, 0, 0, 0, 0,
  ]);
  expect(workersByRank).toEqual([]);
});

it('an unknown worker that leaves is ignored', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.removeWorker('stranger');
  env.expectEmpty();
});

it('what a worker was processing goes to another one', () => {
  const env = new SchedulerEnv();
  env.addWorkers(2);
  env.submit({ a: [] });
  env.ignoreMessages();
  env.removeWorker('w1');
  expect(env.takeWorker('w2')).toEqual(['compute-task a', 'remove-worker w1']);
  expect(env.task('a')).toMatchObject({ suspicious: 1 });
  expect(env.task('a').prefix.suspicious).toBe(1);
});

it('an expected departure makes nothing suspicious', () => {
  const env = new SchedulerEnv();
  env.addWorkers(2);
  env.submit({ a: [] });
  env.removeWorker('w1', { expected: true });
  expect(env.task('a').suspicious).toBe(0);
});

it('results that only the worker had are computed again where they are needed', () => {
  const env = new SchedulerEnv();
  env.addWorkers(2);
  env.submit({ a: { workers: ['tcp://w1:1', 'tcp://w2:1'] }, b: ['a'] });
  env.finish('a');
  expect(env.states).toEqual({ a: 'memory w1', b: 'processing w1' });
  env.removeWorker('w1');
  expect(env.states).toEqual({ a: 'processing w2', b: 'waiting' });
});

it('results that another worker has, too, stay', () => {
  const env = new SchedulerEnv();
  env.addWorkers(2);
  env.submit({ a: [] });
  env.finish('a');
  env.addKeys('w2', 'a');
  env.removeWorker('w1');
  expect(env.states).toEqual({ a: 'memory w2' });
  expect(env.cluster.replicated.size).toBe(0);
});

it('a task under which too many workers died fails', () => {
  const env = new SchedulerEnv({ kernel: { allowedFailures: 1 } });
  env.addWorkers(2);
  env.submit({ a: [], b: ['a'] });
  env.removeWorker('w1');
  expect(env.states).toMatchObject({ a: 'processing w2' });
  env.ignoreMessages();
  env.removeWorker('w2');
  const [message] = env.takeClientMessages();
  expect(message).toMatchObject({
    op: 'task-erred',
    key: 'b',
    blame: 'a',
    failure: {
      exception: { code: 'ERR_KILLED_WORKER', data: { lastWorker: 'tcp://w2:1' } },
    },
  });
  expect(env.states).toEqual({ a: 'erred', b: 'erred' });
});

it('deaths are forgiven without end where that is configured', () => {
  const env = new SchedulerEnv({ kernel: { allowedFailures: Infinity } });
  env.submit({ a: [] });
  for (let round = 0; round < 20; round++) {
    env.addWorkers(1);
    env.removeWorker('w1');
  }
  expect(env.states).toEqual({ a: 'queued' });
});

it('tasks that were only held, not processed, are not suspicious', () => {
  const env = new SchedulerEnv();
  env.addWorkers(2);
  env.submit({ a: [] });
  env.finish('a');
  env.removeWorker('w1');
  expect(env.task('a').suspicious).toBe(0);
});

it('the last worker that leaves puts its root-ish tasks back into the queue', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit(numbered('r', 4));
  env.removeWorker('w1');
  expect(new Set(Object.values(env.states))).toEqual(new Set(['queued']));
});

// ---- time to live --------------------------------------------------------------------------

it('a worker that is silent for longer than its time to live is removed', () => {
  const env = new SchedulerEnv({ kernel: { workerTtlMs: 60_000 } });
  env.addWorkers(2);
  env.submit({ a: [] });
  env.advance(60_000).heartbeat('w2');
  env.ignoreMessages();
  env.send({ op: 'check-worker-ttl' });
  expect(env.cluster.workers.size).toBe(2);
  env.advance(1);
  env.send({ op: 'check-worker-ttl' });
  expect(env.states).toEqual({ a: 'processing w2' });
  expect(env.takeWorker('w1')).toEqual(['close scheduler-remove-worker']);
  expect(env.takeEvents()[0]).toMatchObject({
    topic: 'scheduler',
    message: { action: 'worker-ttl-timed-out', worker: 'tcp://w1:1' },
  });
});

it('ten heartbeats are forgiven, however short the time to live is', () => {
  const env = new SchedulerEnv({ kernel: { workerTtlMs: 1 } });
  env.addWorkers(1);
  env.advance(5000).send({ op: 'check-worker-ttl' });
  expect(env.cluster.workers.size).toBe(1);
  env.advance(1).send({ op: 'check-worker-ttl' });
  expect(env.cluster.workers.size).toBe(0);
});

it('without a time to live no worker is removed', () => {
  const env = new SchedulerEnv({ kernel: { workerTtlMs: Infinity } });
  env.addWorkers(1);
  env.advance(1e12).send({ op: 'check-worker-ttl' });
  expect(env.cluster.workers.size).toBe(1);
});

it('time in which the scheduler itself stood still is no silence of its workers', () => {
  const env = new SchedulerEnv({ kernel: { workerTtlMs: 60_000 } });
  env.addWorkers(2);
  env.advance(500_000).send({ op: 'scheduler-stalled', stalledMs: 499_000 });
  env.send({ op: 'check-worker-ttl' });
  expect(env.cluster.workers.size).toBe(2);
  env.heartbeat('w2');
  env.advance(59_001).send({ op: 'check-worker-ttl' });
  expect([...env.cluster.workers.values()].map(({ name }) => name)).toEqual(['w2']);
});

it('a worker that was heard after a stall is not forgiven it later', () => {
  const env = new SchedulerEnv({ kernel: { workerTtlMs: 60_000 } });
  env.addWorkers(1);
  env.advance(500_000).heartbeat('w1');
  env.send({ op: 'scheduler-stalled', stalledMs: 499_000 });
  env.advance(60_001).send({ op: 'check-worker-ttl' });
  expect(env.cluster.workers.size).toBe(0);
});

it('workers that are silent are removed together, and a task does not hop from one to the next', () => {
  const env = new SchedulerEnv({ kernel: { workerTtlMs: 60_000, allowedFailures: 3 } });
  env.addWorkers(9);
  env.submit({ a: [] });
  env.advance(60_001).send({ op: 'check-worker-ttl' });
  expect(env.cluster.workers.size).toBe(0);
  expect(env.task('a').suspicious).toBe(1);
  env.addWorker('w10');
  expect(env.states).toEqual({ a: 'processing w10' });
});

it('workers that are lost together are removed together, and a task among them counts one hop', () => {
  const env = new SchedulerEnv({ kernel: { allowedFailures: 1 } });
  env.addWorkers(4);
  env.submit({ a: { workers: ['tcp://w1:1', 'tcp://w2:1', 'tcp://w3:1'] } });
  const workers = ['tcp://w1:1', 'tcp://w2:1', 'tcp://w3:1', 'tcp://w1:1', 'tcp://stranger:1'];
  env.send({ op: 'workers-lost', workers });
  expect(env.cluster.workers.size).toBe(1);
  expect(env.task('a').suspicious).toBe(1);
  expect(env.states).toEqual({ a: 'no-worker' });
});

it('a result that only silent workers hold is computed by another one', () => {
  const env = new SchedulerEnv({ kernel: { workerTtlMs: 60_000 } });
  env.addWorkers(3);
  env.submit({ a: [], b: ['a'] }, { keys: ['a', 'b'] });
  env.finish('a');
  env.addKeys('w2', 'a');
  env.advance(60_001).heartbeat('w3');
  env.ignoreMessages();
  env.send({ op: 'check-worker-ttl' });
  expect(env.states).toEqual({ a: 'processing w3', b: 'waiting' });
  expect(env.takeWorker('w3')).toEqual(['compute-task a', 'remove-worker w1', 'remove-worker w2']);
});

// ---- no workers for too long ---------------------------------------------------------------

const impatient = { kernel: { noWorkersTimeoutMs: 1000 } };

it('time in which the scheduler stood still is no time for which a task has waited', () => {
  const env = new SchedulerEnv(impatient);
  env.submit({ a: { workers: ['tcp://w9:1'] } });
  env.advance(5000).send({ op: 'scheduler-stalled', stalledMs: 4500 });
  env.send({ op: 'check-no-workers-timeout' });
  expect(env.state('a')).toBe('no-worker');
  env.advance(500).send({ op: 'check-no-workers-timeout' });
  expect(env.state('a')).toBe('erred');
});

it('a task that no worker suits fails after the timeout, naming its restrictions', () => {
  const env = new SchedulerEnv(impatient);
  env.addWorkers(1);
  env.submit({ a: { workers: ['tcp://w9:1'], resources: { gpu: 2 } }, b: ['a'] });
  env.advance(999).send({ op: 'check-no-workers-timeout' });
  expect(env.state('a')).toBe('no-worker');
  env.advance(1).send({ op: 'check-no-workers-timeout' });
  const [message] = env.takeClientMessages();
  expect(message).toMatchObject({ op: 'task-erred', key: 'b', blame: 'a' });
  expect(JSON.stringify(message)).toMatch(
    /ERR_NO_WORKER.*: worker tcp:\/\/w9:1, 2 gpu \(no worker offers any\)\./,
  );
  expect(env.states).toEqual({ a: 'erred', b: 'erred' });
});

it('queued tasks fail when there has been no worker for too long', () => {
  const env = new SchedulerEnv(impatient);
  env.submit({ a: [] });
  env.advance(1000).send({ op: 'check-no-workers-timeout' });
  expect(env.states).toEqual({ a: 'erred' });
  expect(env.takeEvents()).toMatchObject([
    { topic: 'scheduler', message: { action: 'no-workers-timeout-exceeded', key: 'a' } },
  ]);
});

it('a worker that came in between starts the clock anew', () => {
  const env = new SchedulerEnv(impatient);
  env.submit(numbered('r', 5));
  env.advance(900).addWorkers(1);
  env.advance(50).removeWorker('w1');
  env.advance(100).send({ op: 'check-no-workers-timeout' });
  expect(env.state('r-4')).toBe('queued');
  env.advance(900).send({ op: 'check-no-workers-timeout' });
  expect(env.state('r-4')).toBe('erred');
});

it('queued tasks wait without end while a worker runs', () => {
  const env = new SchedulerEnv(impatient);
  env.addWorkers(1);
  env.submit(numbered('r', 5));
  env.advance(10_000).send({ op: 'check-no-workers-timeout' });
  expect(env.state('r-4')).toBe('queued');
});

it('without a timeout they wait for ever', () => {
  const env = new SchedulerEnv();
  env.submit({ a: [], b: { workers: ['tcp://w9:1'] } });
  env.advance(1e12).send({ op: 'check-no-workers-timeout' });
  expect(env.states).toEqual({ a: 'queued', b: 'no-worker' });
});

// ---- events, keep-alive --------------------------------------------------------------------

it('what a worker logs is published under each of its topics', () => {
  const env = new SchedulerEnv();
  env.send({ op: 'log-event', topics: ['a', 'b'], message: { hello: 1 } });
  expect(env.takeEvents()).toEqual([
    { topic: 'a', message: { hello: 1 } },
    { topic: 'b', message: { hello: 1 } },
  ]);
});

it('a keep-alive does nothing', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.send({ op: 'keep-alive', worker: 'tcp://w1:1' });
  env.expectEmpty();
});

// ---- taken out of service by the scheduler -----------------------------------------------------

it('a worker that is taken out of service is notified, gets no new tasks, and can be taken back', () => {
  const env = new SchedulerEnv();
  const worker = env.addWorker('w1');
  env.send({ op: 'set-worker-status', worker, status: 'closing-gracefully' });
  expect(env.takeWorker('w1')).toEqual(['worker-status-change closing-gracefully']);
  expect(env.worker('w1').status).toBe('closing-gracefully');
  env.submit({ a: [] });
  expect(env.states).toEqual({ a: 'no-worker' });
  env.ignoreMessages();
  env.setStatus('w1', 'closing-gracefully'); // It confirms.
  env.expectEmpty();
  env.send({ op: 'set-worker-status', worker, status: 'running' });
  expect(env.states).toEqual({ a: 'processing w1' });
  expect(env.takeWorker('w1')[0]).toBe('worker-status-change running');
});

it('setting the status that a worker has, or that of an unknown worker, does nothing', () => {
  const env = new SchedulerEnv();
  const worker = env.addWorker('w1');
  env.send({ op: 'set-worker-status', worker, status: 'running' });
  env.send({ op: 'set-worker-status', worker: 'stranger', status: 'paused' });
  env.expectEmpty();
});
