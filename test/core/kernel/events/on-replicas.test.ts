import { describe, expect, it } from 'vitest';
import { SchedulerEnv } from '../../../kit/env.ts';

/** Workers w1, w2 and w3, and x (pure data) on w1. */
function withData(): SchedulerEnv {
  const env = new SchedulerEnv();
  env.addWorkers(3);
  env.client();
  env.scatter({ x: ['w1'] });
  return env.ignoreMessages();
}

it('a copy that a worker announces is booked', () => {
  const env = withData();
  env.addKeys('w2', 'x');
  expect(env.states).toEqual({ x: 'memory w1 w2' });
  expect([...env.cluster.replicated].map(({ key }) => key)).toEqual(['x']);
  expect(env.worker('w2').nbytes).toBe(100);
  env.expectEmpty();
});

it('a copy that is announced twice counts once', () => {
  const env = withData();
  env.addKeys('w2', 'x');
  env.addKeys('w2', 'x');
  expect(env.worker('w2').nbytes).toBe(100);
});

it('copies of what is not in memory are refused, in one message', () => {
  const env = withData();
  env.submit({ a: [] }, { keys: ['a'] });
  env.ignoreMessages();
  env.addKeys('w2', 'a', 'x', 'unknown');
  expect(env.takeWorker('w2')).toEqual(['remove-replicas a unknown']);
  expect(env.state('a')).toBe('processing');
  env.expectEmpty();
});

it('an unknown worker announces nothing', () => {
  const env = withData();
  env.addKeys('stranger', 'x', 'unknown');
  expect(env.states).toEqual({ x: 'memory w1' });
  env.expectEmpty();
});

it('a copy that a worker dropped is gone, and the result stays', () => {
  const env = withData();
  env.addKeys('w2', 'x');
  env.releaseWorkerData('w1', 'x');
  expect(env.states).toEqual({ x: 'memory w2' });
  expect(env.cluster.replicated.size).toBe(0);
  env.expectEmpty();
});

it('a wanted result whose last copy is dropped is computed again', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: [] });
  env.finish('a');
  env.ignoreMessages();
  env.releaseWorkerData('w1', 'a');
  expect(env.takeClient()).toEqual(['lost-data a']);
  expect(env.takeWorker('w1')).toEqual(['compute-task a']);
});

it('a result that its holder denies again and again is computed again', () => {
  const env = new SchedulerEnv();
  env.addWorkers(2);
  env.submit({ a: [], b: [] });
  env.finish('a');
  env.finish('b');
  const [holder] = env.cluster.tasks.get('a')!.whoHas.items;
  const asks = holder === env.worker('w1') ? 'w2' : 'w1';
  env.ignoreMessages();
  env.send({
    op: 'request-refresh-who-has',
    worker: env.worker(asks).address,
    keys: ['a', 'b'],
    deniedBy: holder!.address,
  });
  expect(env.state('a')).toBe('processing');
  expect(env.state('b')).toMatch(/^memory/);
  expect(env.takeWorker(holder!.name)).toContain('free-keys a');
});

it('one report may contain many dropped copies, known or not', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: [], b: [] });
  env.finish('a');
  env.finish('b');
  env.ignoreMessages();
  env.releaseWorkerData('w1', 'a', 'unknown', 'b');
  expect(env.takeClient()).toEqual(['lost-data b', 'lost-data a']);
  expect(env.takeWorker('w1')).toEqual(['compute-task b', 'compute-task a']);
});

it('pure data whose last copy is dropped is cancelled', () => {
  const env = withData();
  env.releaseWorkerData('w1', 'x');
  expect(env.takeClient()).toEqual(['lost-data x', 'cancelled-keys x']);
  expect(env.states).toEqual({});
});

it('dropping what the worker does not hold changes nothing', () => {
  const env = withData();
  env.releaseWorkerData('w2', 'x');
  env.releaseWorkerData('w1', 'unknown');
  env.releaseWorkerData('stranger', 'x');
  expect(env.states).toEqual({ x: 'memory w1' });
  env.expectEmpty();
});

it('an actor whose state a worker dropped has failed', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: { actor: true } });
  env.finish('a');
  env.ignoreMessages();
  env.releaseWorkerData('w1', 'a');
  expect(env.takeClient()).toEqual(['task-erred a because of a']);
  expect(env.worker('w1').actors.size).toBe(0);
});

it('copies of an actor do not outlive it', () => {
  const env = new SchedulerEnv();
  env.addWorkers(2);
  env.submit({ a: { actor: true } });
  env.finish('a');
  env.addKeys('w2', 'a');
  env.ignoreMessages();
  env.releaseWorkerData('w1', 'a');
  expect(env.states).toEqual({ a: 'erred' });
  expect(env.takeWorker('w2')).toEqual(['free-keys a']);
});

it('a worker that asks gets the holders of known keys, and frees unknown ones', () => {
  const env = withData();
  env.send({ op: 'request-refresh-who-has', worker: 'tcp://w2:1', keys: ['x', 'unknown'] });
  expect(env.takeWorker('w2')).toEqual(['refresh-who-has x on w1', 'free-keys unknown']);
  env.expectEmpty();
});

it('an unknown worker that asks is not answered', () => {
  const env = withData();
  env.send({ op: 'request-refresh-who-has', worker: 'tcp://stranger:1', keys: ['x'] });
  env.expectEmpty();
});

describe('a worker that cannot reach the holder of an input', () => {
  /** Workers w1, w2 and w3; x on w1; the task y, which needs it, on w2. */
  function onW2(names = ['w1', 'w2', 'w3'], restrict = ['w2']): SchedulerEnv {
    const env = new SchedulerEnv();
    for (const name of names) env.addWorker(name);
    env.client();
    env.scatter({ x: ['w1'] });
    env.submit({ y: { deps: ['x'], workers: restrict } });
    return env.ignoreMessages();
  }
  const cannotReach = (env: SchedulerEnv, worker: string, peer = 'w1'): void => {
    const unreachable = { address: `tcp://${peer}:1`, reason: 'no route' };
    const keys = ['x'];
    env.send({ op: 'request-refresh-who-has', worker: `tcp://${worker}:1`, keys, unreachable });
  };

  it('loses the task to a worker where it was not tried', () => {
    const env = onW2(['w1', 'w2', 'w3'], ['w2', 'w3']);
    expect(env.state('y')).toBe('processing');
    const first = env.task('y').processingOn!.name;
    const other = first === 'w2' ? 'w3' : 'w2';
    cannotReach(env, first);
    expect(env.takeWorker(first)).toContain('free-keys y');
    expect(env.task('y').processingOn?.name).toBe(other);
  });

  it('tries again without another worker, and fails with the reason in the end', () => {
    const env = onW2();
    for (let attempt = 0; attempt < 3; attempt++) {
      cannotReach(env, 'w2');
      expect(env.task('y').processingOn?.name).toBe('w2');
      expect(env.takeWorker('w2')).toEqual(['refresh-who-has x on w1']);
    }
    cannotReach(env, 'w2');
    expect(env.state('y')).toBe('erred');
    expect(env.task('y').failure?.exception).toMatchObject({
      code: 'ERR_UNREACHABLE',
      message: expect.stringMatching(
        /tcp:\/\/w2:1 could not reach tcp:\/\/w1:1: no route/,
      ) as string,
    });
    expect(env.takeWorker('w2')).toContain('free-keys y');
  });

  it('changes nothing when the holder has left, or does not hold it', () => {
    const env = onW2();
    cannotReach(env, 'w2', 'w3');
    cannotReach(env, 'w2', 'gone');
    cannotReach(env, 'w3');
    expect(env.task('y').processingOn?.name).toBe('w2');
    expect(env.task('y').suspicious).toBe(0);
  });
});

it('a worker is asked to fetch what it does not hold', () => {
  const env = withData();
  env.moveReplicas({ acquire: { w1: ['x'], w2: ['x', 'unknown'] } });
  expect(env.takeWorker('w2')).toEqual(['acquire-replicas x on w1']);
  env.expectEmpty();
});

it('a copy counts when the worker announces it, not when it is asked to fetch it', () => {
  const env = withData();
  env.moveReplicas({ acquire: { w2: ['x'] } });
  expect(env.states).toEqual({ x: 'memory w1' });
});

it('a paused worker is not asked to fetch', () => {
  const env = withData();
  env.setStatus('w2', 'paused');
  env.ignoreMessages();
  env.moveReplicas({ acquire: { w2: ['x'] } });
  env.expectEmpty();
});

it('a surplus copy is dropped and counts as gone at once', () => {
  const env = withData();
  env.addKeys('w2', 'x');
  env.moveReplicas({ remove: { w1: ['x'] } });
  expect(env.takeWorker('w1')).toEqual(['remove-replicas x']);
  expect(env.states).toEqual({ x: 'memory w2' });
  env.expectEmpty();
});

it('the last copy is never dropped', () => {
  const env = withData();
  env.addKeys('w2', 'x');
  env.moveReplicas({ remove: { w1: ['x'], w2: ['x'], w3: ['x'] } });
  expect(env.takeWorker('w1')).toEqual(['remove-replicas x']);
  expect(env.states).toEqual({ x: 'memory w2' });
  env.expectEmpty();
});

it('copies are requested before others are dropped, so that moving takes two rounds', () => {
  const env = withData();
  const move = { acquire: { w2: ['x'] }, remove: { w1: ['x'] } };
  env.moveReplicas(move);
  expect(env.takeWorker('w1')).toEqual([]);
  expect(env.takeWorker('w2')).toEqual(['acquire-replicas x on w1']);
  env.addKeys('w2', 'x');
  env.moveReplicas(move);
  expect(env.takeWorker('w1')).toEqual(['remove-replicas x']);
  expect(env.states).toEqual({ x: 'memory w2' });
  env.expectEmpty();
});

it('an actor is neither copied nor dropped', () => {
  const env = new SchedulerEnv();
  env.addWorkers(2);
  env.submit({ a: { actor: true } });
  env.finish('a');
  env.addKeys('w2', 'a');
  env.ignoreMessages();
  env.moveReplicas({ acquire: { w2: ['a'] }, remove: { w1: ['a'] } });
  expect(env.states).toEqual({ a: 'memory w1 w2' });
  env.expectEmpty();
});

it('a worker that refuses to drop a copy announces it again', () => {
  const env = withData();
  env.addKeys('w2', 'x');
  env.moveReplicas({ remove: { w1: ['x'] } });
  env.addKeys('w1', 'x');
  expect(env.states).toEqual({ x: 'memory w2 w1' });
});

it('a copy that is dropped under a task that needs it there has to be fetched', () => {
  const env = new SchedulerEnv({ kernel: { bandwidth: 100 } });
  env.addWorkers(2);
  env.scatter({ x: ['w1'] });
  env.submit({ a: { deps: ['x'], workers: ['tcp://w1:1'] } });
  env.addKeys('w2', 'x');
  expect(env.worker('w1').networkBytes).toBe(0);
  env.moveReplicas({ remove: { w1: ['x'] } });
  expect(env.worker('w1').networkBytes).toBe(100);
  env.finish('a');
  expect(env.worker('w1').networkBytes).toBe(0);
});
