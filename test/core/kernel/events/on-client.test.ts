import { expect, it } from 'vitest';
import { OTHER_PREFIXES, UNUSED_PREFIXES_MAX } from '../../../../core/state/cluster.ts';
import { SchedulerEnv } from '../../../kit/env.ts';
import { numbered } from '../../../kit/graph.ts';

function cluster(workers = 1): SchedulerEnv {
  const env = new SchedulerEnv();
  env.addWorkers(workers);
  env.client('c');
  env.client('d');
  return env;
}

it('prefixes without tasks are bounded, and those that are dropped are summed up', () => {
  // Each of the many stimuli would check each of the many prefixes.
  const env = new SchedulerEnv({ kernel: { validate: false } });
  env.addWorkers(1);
  env.client('c');
  const { prefixes } = env.cluster;
  for (let index = 0; index < UNUSED_PREFIXES_MAX + 3; index++) {
    const name = `p${index}`.replace(/\d/g, (digit) => 'abcdefghij'[Number(digit)]!);
    env.submit({ [name]: [] });
    env.send({ op: 'client-releases-keys', client: 'c', keys: [name] });
  }
  env.ignoreMessages();
  expect(prefixes.size).toBe(UNUSED_PREFIXES_MAX + 1);
  expect(prefixes.has('pa')).toBe(false);
  expect(prefixes.get(OTHER_PREFIXES)!.stateCounts.forgotten).toBe(3);
  env.submit({ pd: [] });
  expect(prefixes.get('pd')!.stateCounts.released).toBe(3);
});

it('a client that registers twice keeps what it wants', () => {
  const env = cluster();
  env.submit({ a: [] });
  env.client('c');
  expect([...env.cluster.clients.get('c')!.wantsWhat].map(({ key }) => key)).toEqual(['a']);
});

it('a client that leaves gives up what only it wants', () => {
  const env = cluster();
  env.submit({ a: [], b: [] });
  env.submit({ b: [] }, { client: 'd' });
  env.ignoreMessages();
  env.send({ op: 'remove-client', client: 'c' });
  expect(env.states).toEqual({ b: 'processing w1' });
  expect(env.takeWorker('w1')).toEqual(['free-keys a']);
  expect(env.cluster.clients.has('c')).toBe(false);
  env.expectEmpty();
});

it('a client that has left by and by is gone after a restart in the middle', () => {
  const env = new SchedulerEnv({ kernel: { sliceTransitions: 2 } });
  env.submit(numbered('t', 30));
  while (env.kernel.isUnsettled) env.send({ op: 'continue' });
  env.send({ op: 'remove-client', client: 'c' });
  expect(env.kernel.isUnsettled).toBe(true);
  env.send({ op: 'restart' });
  expect(env.kernel.isUnsettled).toBe(false);
  expect([...env.cluster.clients.keys()]).toEqual(['fire-and-forget']);
});

it('an unknown client that leaves is ignored', () => {
  const env = cluster();
  env.send({ op: 'remove-client', client: 'stranger' });
  env.expectEmpty();
});

it('a heartbeat of a client is remembered', () => {
  const env = cluster().advance(1234);
  env.send({ op: 'heartbeat-client', client: 'c' });
  expect(env.cluster.clients.get('c')!.lastSeenMs).toBe(1234);
});

it('wanting a known key keeps it and reports its state', () => {
  const env = cluster();
  env.submit({ a: [], b: [] }, { client: 'd' });
  env.finish('a');
  env.ignoreMessages();
  env.desire('a', 'b');
  expect(env.takeClient()).toEqual(['key-in-memory a on w1']);
  env.send({ op: 'client-releases-keys', client: 'd', keys: ['a', 'b'] });
  expect(env.states).toEqual({ a: 'memory w1', b: 'processing w1' });
});

it('wanting unknown keys is answered by a cancellation', () => {
  const env = cluster();
  env.desire('x', 'y');
  expect(env.takeClient()).toEqual(['cancelled-keys x y']);
  env.expectEmpty();
});

it.each([1, Infinity])('a client that is back wants what it names alone, in slices of %d', (n) => {
  const env = new SchedulerEnv({ kernel: { sliceTransitions: n } });
  env.client('c');
  env.client('d');
  const keys = Array.from({ length: 20 }, (_, index) => `k-${index}`);
  for (const key of keys) env.submit({ [key]: [] });
  env.submit({ 'k-7': [] }, { client: 'd' });
  env.ignoreMessages().desireOnly('k-3', 'k-5', 'unknown');
  while (env.kernel.isUnsettled) env.send({ op: 'continue' });
  expect(Object.keys(env.states).sort()).toEqual(['k-3', 'k-5', 'k-7']);
  expect(env.takeClient()).toEqual(['cancelled-keys unknown']);
});

it('a client that is back and names nothing wants nothing', () => {
  const env = cluster(0);
  env.submit({ a: [], b: [] });
  env.desireOnly();
  expect(env.states).toEqual({});
});

it('a service exists as soon as it wants a key', () => {
  const env = cluster();
  env.submit({ a: [] });
  env.send({ op: 'client-desires-keys', client: 'published-set', keys: ['a'] });
  env.release('a');
  expect(env.states).toEqual({ a: 'processing w1' });
});

it('a result that no client wants any more is freed and forgotten', () => {
  const env = cluster();
  env.submit({ a: [], b: ['a'] });
  env.finishAll('a', 'b');
  env.ignoreMessages();
  env.release('b');
  expect(env.takeWorker('w1')).toEqual(['free-keys b']);
  expect(env.states).toEqual({});
  env.expectEmpty();
});

it('a result that a waiting task needs is kept when its client releases it', () => {
  const env = cluster();
  env.submit({ a: [], b: [], c: ['a', 'b'] }, { keys: ['a', 'c'] });
  env.finish('a');
  env.release('a');
  expect(env.state('a')).toBe('memory');
  env.finish('b');
  env.finish('c');
  expect(env.state('a')).toBe('released');
});

it('a failed task that no client wants is forgotten with its dependencies', () => {
  const env = cluster();
  env.submit({ a: [], b: ['a'] });
  env.fail('a');
  env.release('b');
  expect(env.states).toEqual({});
});

it('a client that wants a key twice releases it once', () => {
  const env = cluster();
  env.submit({ a: [] });
  env.submit({ a: [] }, { client: 'd' });
  env.release('a');
  expect(env.states).toEqual({ a: 'processing w1' });
});

// ---- cancel --------------------------------------------------------------------------------

it('cancelling takes along what depends on the key', () => {
  const env = cluster();
  env.submit({ a: [], b: ['a'], c: ['b'] }, { keys: ['a', 'b', 'c'] });
  env.ignoreMessages();
  env.cancel(['a']);
  expect(env.takeClient()).toEqual(['cancelled-keys c b a']);
  expect(env.takeWorker('w1')).toEqual(['free-keys a']);
  expect(env.states).toEqual({});
  env.expectEmpty();
});

it('cancelling stops at an intermediate that no client wants', () => {
  const env = cluster();
  env.submit({ a: [], b: ['a'], c: ['b'] }, { keys: ['a', 'c'] });
  env.ignoreMessages();
  env.cancel(['a']);
  expect(env.takeClient()).toEqual(['cancelled-keys a']);
  expect(env.states).toEqual({ a: 'processing w1', b: 'waiting', c: 'waiting' });
  env.cancel(['b']);
  env.expectEmpty();
});

it('cancelling by force passes intermediates that no client wants', () => {
  const env = cluster();
  env.submit({ a: [], b: ['a'], c: ['b'] }, { keys: ['a', 'c'] });
  env.ignoreMessages();
  env.cancel(['a'], { force: true });
  expect(env.takeClient()).toEqual(['cancelled-keys c a']);
  expect(env.states).toEqual({});
});

it('cancelling a task that another client wants ends only the want of the caller', () => {
  const env = cluster();
  env.submit({ a: [] });
  env.submit({ a: [] }, { client: 'd' });
  env.ignoreMessages();
  env.cancel(['a']);
  expect(env.takeClient('c')).toEqual(['cancelled-keys a']);
  expect(env.takeClient('d')).toEqual([]);
  expect(env.states).toEqual({ a: 'processing w1' });
});

it('cancelling by force ends the wants of all clients, and notifies them', () => {
  const env = cluster();
  env.submit({ a: [] });
  env.submit({ b: ['a'] }, { client: 'd' });
  env.ignoreMessages();
  env.cancel(['a'], { force: true });
  expect(env.takeClient('c')).toEqual(['cancelled-keys a']);
  expect(env.takeClient('d')).toEqual(['cancelled-keys b']);
  expect(env.states).toEqual({});
});

it('the reason of a cancellation is passed on', () => {
  const env = cluster();
  env.submit({ a: [] });
  env.send({ op: 'cancel-keys', client: 'c', keys: ['a'], force: false, reason: 'too slow' });
  expect(env.takeClientMessages()).toMatchObject([{ keys: ['a'], reason: 'too slow' }]);
});

it('cancelling unknown keys, or as an unknown client, does nothing', () => {
  const env = cluster();
  env.submit({ a: [] });
  env.ignoreMessages();
  env.cancel(['unknown']);
  env.cancel(['a'], { client: 'stranger' });
  expect(env.states).toEqual({ a: 'processing w1' });
  env.expectEmpty();
});

it('a queued task that is cancelled leaves the queue', () => {
  const env = cluster();
  const graph = Object.fromEntries([0, 1, 2, 3].map((n) => [`r-${n}`, []]));
  env.submit(graph);
  expect(env.state('r-3')).toBe('queued');
  env.cancel(['r-3']);
  expect(env.cluster.queued.size).toBe(1);
  expect(env.state('r-3')).toBeUndefined();
});

// ---- scatter -------------------------------------------------------------------------------

it('scattered data is in memory, wanted by its client and reported', () => {
  const env = cluster(2);
  env.scatter({ x: ['w1', 'w2'] });
  expect(env.takeClient()).toEqual(['key-in-memory x on w1 w2']);
  expect(env.states).toEqual({ x: 'memory w1 w2' });
  expect(env.task('x')).toMatchObject({ nbytes: 100, type: 'data', runSpec: undefined });
  env.expectEmpty();
});

it('scattered data is freed when no client wants it', () => {
  const env = cluster();
  env.scatter({ x: ['w1'] });
  env.release('x');
  expect(env.takeWorker('w1')).toEqual(['free-keys x']);
  expect(env.states).toEqual({});
});

it('scattered data is tasks to depend on', () => {
  const env = cluster();
  env.scatter({ x: ['w1'] });
  env.submit({ a: ['x'] });
  expect(env.takeWorker('w1')).toEqual(['compute-task a (x on w1)']);
});

it('data whose workers are gone is cancelled', () => {
  const env = cluster();
  env.scatter({ x: ['gone'] });
  expect(env.takeClient()).toEqual(['cancelled-keys x']);
  expect(env.states).toEqual({});
});

it('data whose new workers are gone stays where it was', () => {
  const env = cluster();
  env.scatter({ x: ['w1'] });
  env.ignoreMessages();
  env.scatter({ x: ['gone'] });
  expect(env.takeClient()).toEqual(['key-in-memory x on w1']);
  expect(env.states).toEqual({ x: 'memory w1' });
});

it('data for a task that is being computed replaces the computation', () => {
  const env = cluster(2);
  env.submit({ a: [], b: ['a'], c: ['b'] }, { keys: ['c'] });
  env.finish('a');
  expect(env.states).toMatchObject({ a: 'memory w1', b: 'processing w1' });
  env.ignoreMessages();
  env.scatter({ b: ['w2'] });
  expect(env.takeWorker('w1')).toEqual(['free-keys b', 'free-keys a']);
  expect(env.takeWorker('w2')).toEqual(['compute-task c (b on w2)']);
  expect(env.states).toEqual({ a: 'released', b: 'memory w2', c: 'processing w2' });
});

it('a worker that got data is not asked to free it because it was computing it', () => {
  const env = cluster();
  env.submit({ a: [] });
  env.ignoreMessages();
  env.scatter({ a: ['w1'] });
  expect(env.takeWorker('w1')).toEqual([]);
  expect(env.states).toEqual({ a: 'memory w1' });
});

it('a result that arrives late for scattered data is freed', () => {
  const env = cluster(2);
  env.submit({ a: [] });
  const { runId } = env.task('a');
  env.scatter({ a: ['w2'] });
  env.ignoreMessages();
  env.finish('a', { worker: 'w1', runId });
  expect(env.takeWorker('w1')).toEqual(['free-keys a']);
  expect(env.states).toEqual({ a: 'memory w2' });
});

it('data for a failed task lets its dependents continue', () => {
  const env = cluster();
  env.submit({ a: [], b: ['a'] });
  env.fail('a');
  env.ignoreMessages();
  env.scatter({ a: ['w1'] });
  expect(env.takeClient()).toEqual(['key-in-memory a on w1', 'task-retried b']);
  expect(env.takeWorker('w1')).toEqual(['compute-task b (a on w1)']);
});

it('data for an actor makes plain data of it', () => {
  const env = cluster(2);
  env.submit({ a: { actor: true } });
  env.scatter({ a: ['w2'] });
  expect(env.task('a').isActor).toBe(false);
  expect(env.worker('w1').actors.size).toBe(0);
});

// ---- reports, restart ----------------------------------------------------------------------

it('a client that asks for a key gets its state, or that it is unknown', () => {
  const env = cluster();
  env.submit({ a: [], b: [], c: [] });
  env.finish('a');
  env.fail('b');
  env.ignoreMessages();
  for (const key of ['a', 'b', 'c', 'unknown']) env.send({ op: 'report-key', client: 'c', key });
  expect(env.takeClient()).toEqual([
    'key-in-memory a on w1',
    'task-erred b because of b',
    'cancelled-keys unknown',
  ]);
  env.send({ op: 'report-key', client: 'stranger', key: 'a' });
  env.expectEmpty();
});

it('a restart forgets all tasks of all clients and keeps workers and clients', () => {
  const env = cluster(2);
  env.submit({ a: [], b: ['a'], c: ['b'] });
  env.scatter({ x: ['w1'] }, 'd');
  env.submit({ lonely: { workers: ['tcp://none:1'] }, bad: [] }, { client: 'd' });
  env.finish('a');
  env.fail('bad');
  env.ignoreMessages();
  env.send({ op: 'restart' });
  expect(env.states).toEqual({});
  expect(env.takeClient('c')).toEqual(['restart']);
  expect(env.takeClient('d')).toEqual(['restart']);
  expect(env.cluster.workers.size).toBe(2);
  expect(env.cluster.groups.size + env.cluster.prefixes.size).toBe(0);
  expect(env.cluster.erredTasks).toEqual([]);
  expect(env.worker('w1')).toMatchObject({ occupancyS: 0, nbytes: 0 });
});

it('what the scheduler learned about durations is forgotten in a restart', () => {
  const env = cluster();
  env.submit({ 'a-1': [] });
  env.finish('a-1', { durationS: 7 });
  env.send({ op: 'restart' });
  env.submit({ 'a-2': [] });
  expect(env.task('a-2').prefix.durationAverageS).toBe(-1);
});

// ---- fire and forget -----------------------------------------------------------------------

const forget = (env: SchedulerEnv, key: string): void =>
  void env.send({ op: 'client-desires-keys', client: 'fire-and-forget', keys: [key] });

it('a fire-and-forget task is computed although its client is gone, and then released', () => {
  const env = cluster();
  env.submit({ a: [] });
  forget(env, 'a');
  env.send({ op: 'remove-client', client: 'c' });
  expect(env.states).toEqual({ a: 'processing w1' });
  env.finish('a');
  expect(env.states).toEqual({});
});

it('a fire-and-forget task that fails is released', () => {
  const env = cluster();
  env.submit({ a: [], b: ['a'] });
  forget(env, 'b');
  env.release('b');
  env.fail('a');
  expect(env.states).toEqual({});
});

it('a task that is done already cannot be kept by fire-and-forget', () => {
  const env = cluster();
  env.submit({ a: [], b: [] });
  env.finish('a');
  env.fail('b');
  forget(env, 'a');
  forget(env, 'b');
  env.release('a', 'b');
  expect(env.states).toEqual({});
});

it('workers receive the time that cancelled runs may continue, when the client sets it', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: [], b: [] });
  env.ignoreMessages();
  env.send({ op: 'cancel-keys', client: 'c', keys: ['a'], force: false, killTimeoutMs: 70 });
  expect(env.takeWorkerMessages('w1')).toMatchObject([{ keys: ['a'], killTimeoutMs: 70 }]);
  env.cancel(['b']);
  expect(env.takeWorkerMessages('w1')[0]).not.toHaveProperty('killTimeoutMs');
});

// ---- very many keys are named, and cancelled ----------------------------------------------------

const NAMED = Array.from({ length: 12 }, (_, n) => `x-${n}`);

/** `d` wants all of them and `other`, and names the former again while `c` cancels them: `delay` slices later. */
function namedWhileCancelled(delay: number, isAll: boolean): SchedulerEnv {
  const env = new SchedulerEnv({ kernel: { sliceTransitions: 2 } });
  env.client('c');
  env.client('d');
  const go = (slices: number): void => {
    for (; slices > 0 && env.kernel.isUnsettled; slices--) env.send({ op: 'continue' });
  };
  const keys = [...NAMED, 'other'];
  env.submit(Object.fromEntries(keys.map((key) => [key, []])), { client: 'd', keys });
  go(Infinity);
  env.ignoreMessages();
  env.send({ op: 'cancel-keys', client: 'c', keys: NAMED, force: true });
  go(delay);
  env.send({ op: 'client-desires-keys', client: 'd', keys: NAMED, isAll });
  go(Infinity);
  return env;
}

const wantedBy = (env: SchedulerEnv): string[] =>
  Array.from(env.cluster.clients.get('d')!.wantsWhat, ({ key }) => key);

// The works take turns, so it depends on the delay which of them comes to a key first.
const DELAYS = Array.from({ length: 30 }, (_, delay) => delay);

it('what is cancelled while a client names very many keys stays so, as the client was told', () => {
  for (const delay of DELAYS) {
    const env = namedWhileCancelled(delay, false);
    const told = env.takeClientMessages('d').flatMap((message) => {
      return message.op === 'cancelled-keys' ? message.keys : [];
    });
    const wanted = wantedBy(env);
    expect(wanted.filter((key) => told.includes(key))).toEqual([]);
    expect(new Set([...told, ...wanted]).size).toBe(NAMED.length + 1);
  }
});

it('a client that names all that it wants gives up the rest, also when some of it is cancelled meanwhile', () => {
  for (const delay of DELAYS) {
    const env = namedWhileCancelled(delay, true).ignoreMessages();
    expect(wantedBy(env)).not.toContain('other');
  }
});

it('a restart ends the naming of very many keys, and keeps nothing of it', () => {
  const env = new SchedulerEnv({ kernel: { sliceTransitions: 2 } });
  env.client('d');
  env.send({ op: 'client-desires-keys', client: 'd', keys: NAMED });
  expect(env.cluster.clients.get('d')!.cancelled).toBeDefined();
  env.send({ op: 'restart' });
  expect(env.cluster.clients.get('d')!.cancelled).toBeUndefined();
});
