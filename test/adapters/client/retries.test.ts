import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LocalCluster } from '../../../adapters/app/local-cluster.ts';
import { retryDelayMs } from '../../../adapters/tasks/run-task.ts';
import { waiting } from '../executors/fixtures/waiting-tasks.mjs';
import {
  aborted,
  attemptsOf,
  calledMs,
  failsFor,
  hasCode,
  isBroken,
  isTransient,
  waitsForAbort,
  watch,
} from './retry-tasks.ts';
import { inc } from './tasks.ts';
import { VirtualCluster } from '../../kit/virtual-cluster.ts';

describe('retries by rules', () => {
  let cluster: VirtualCluster;
  beforeAll(async () => {
    cluster = await VirtualCluster.start(1);
    watch.nowMs = () => cluster.clock.nowMs();
  });
  afterAll(() => cluster.passing(cluster.local.close()));
  const waits = (label: string): number[] => {
    const times = calledMs.get(label) ?? [];
    return times.slice(1).map((ms, index) => Math.round(ms - times[index]!));
  };

  test('a task that fails is called again after waits that grow, and gives its result', async () => {
    const client = cluster.client.with({ retries: { times: 3, backoffMs: 100, factor: 3 } });
    const future = client.submit(failsFor, 'grows', 3, 'E_BUSY');
    expect(await cluster.passing(future.result())).toBe('after 4');
    expect(waits('grows')).toEqual([100, 300, 900]);
  });

  test('after the last retry the error is that of the last call', async () => {
    const client = cluster.client.with({ retries: { times: 2, backoffMs: 10, factor: 1 } });
    const future = client.submit(failsFor, 'gives up', 9, 'E_BUSY');
    await expect(cluster.passing(future.result())).rejects.toThrow('failure 3');
    expect(waits('gives up')).toEqual([10, 10]);
  });

  test('the error says how often the task was called, beside its own data', async () => {
    const rules = { times: 2, backoffMs: 10, retryIf: isTransient };
    const client = cluster.client.with({ retries: rules });
    const busy = client.submit(failsFor, 'counted', 9, 'E_BUSY');
    const expected = { code: 'E_BUSY', message: 'failure 3', data: { attempts: 3, times: 9 } };
    await expect(cluster.passing(busy.result())).rejects.toMatchObject(expected);
    const broken = client.submit(failsFor, 'counted once', 9, 'E_BROKEN');
    await expect(cluster.passing(broken.result())).rejects.toMatchObject({ data: { attempts: 1 } });
    const plain = cluster.client.submit(failsFor, 'not counted', 9, 'E_BUSY');
    const error: unknown = await cluster.passing(plain.result()).catch((thrown: unknown) => thrown);
    expect(error).not.toHaveProperty('data.attempts');
  });

  test('a task knows which attempt it is, and each item of a chunk its own', async () => {
    const client = cluster.client.with({ retries: { times: 3, backoffMs: 10 } });
    expect(await cluster.passing(client.submit(attemptsOf, 'alone', 3).result())).toEqual([
      1, 2, 3,
    ]);
    const items = client.map(attemptsOf, ['first', 'second'], [2, 3], { chunk: 2 });
    const all = async (): Promise<number[][]> => {
      const found: number[][] = [];
      for await (const item of items) found.push(item);
      return found;
    };
    expect(await cluster.passing(all())).toEqual([
      [1, 2],
      [1, 2, 3],
    ]);
    expect(await cluster.passing(cluster.client.submit(attemptsOf, 'once', 1).result())).toEqual([
      1,
    ]);
  });

  test('retryIf decides in the worker which errors are worth a retry', async () => {
    const client = cluster.client.with({
      retries: { times: 5, backoffMs: 10, retryIf: isTransient },
    });
    const future = client.submit(failsFor, 'broken', 2, 'E_BROKEN');
    await expect(cluster.passing(future.result())).rejects.toThrow('failure 1');
    const other = client.submit(failsFor, 'busy', 2, 'E_BUSY');
    expect(await cluster.passing(other.result())).toBe('after 3');
  });

  test('retryIf says yes with anything that counts as true', async () => {
    const client = cluster.client.with({
      retries: { times: 5, backoffMs: 10, retryIf: hasCode },
    });
    const future = client.submit(failsFor, 'matched', 2, 'E_BUSY');
    expect(await cluster.passing(future.result())).toBe('after 3');
  });

  test('a retryIf that throws fails the task, whose own error is the cause', async () => {
    const client = cluster.client.with({
      retries: { times: 5, backoffMs: 10, retryIf: isBroken },
    });
    const failing = client.submit(failsFor, 'ruled', 2, 'E_BUSY').error();
    expect(await cluster.passing(failing)).toMatchObject({
      ...{ name: 'TypeError', message: 'a mistake in the rule', data: { attempts: 1 } },
      cause: { message: 'failure 1', code: 'E_BUSY' },
    });
  });

  test('a task that waits for its retry leaves its thread to others', async () => {
    const slow = cluster.client.with({ retries: { times: 1, backoffMs: 5000 } });
    const failing = slow.submit(failsFor, 'slow', 1, 'E_BUSY');
    const startMs = cluster.clock.nowMs();
    expect(await cluster.passing(cluster.client.submit(inc, 41).result())).toBe(42);
    expect(cluster.clock.nowMs() - startMs).toBeLessThan(5000);
    expect(await cluster.passing(failing.result())).toBe('after 2');
  });

  test('jitter shortens a wait by up to its share, the same for the same key and attempt', () => {
    const rules = { backoffMs: 1000, factor: 2, jitter: 0.5 };
    const delays = Array.from({ length: 200 }, (_, index) =>
      retryDelayMs(rules, `key-${index}`, 2),
    );
    expect(Math.min(...delays)).toBeGreaterThanOrEqual(1000);
    expect(Math.max(...delays)).toBeLessThanOrEqual(2000);
    expect(Math.max(...delays) - Math.min(...delays)).toBeGreaterThan(800);
    expect(retryDelayMs(rules, 'key-7', 2)).toBe(delays[7]);
  });

  test.each([
    [{ times: -1 }, 'retries.times'],
    [{ times: 1, factor: 0.5 }, 'retries.factor'],
    [{ times: 1, jitter: 2 }, 'retries.jitter'],
    [{ times: 1, backOffMs: 5 }, 'backOffMs'],
    [{ times: 1, retryIf: () => true }, 'retries.retryIf'],
  ])('rules that cannot be are refused: %o', (retries, option) => {
    expect(() => cluster.client.with({ retries: retries as never })).toThrow(option);
  });

  test('a run that takes longer than timeoutMs is aborted, and fails with ERR_TASK_TIMEOUT', async () => {
    const future = cluster.client.with({ timeoutMs: 500 }).submit(waitsForAbort, 'too long');
    const startMs = cluster.clock.nowMs();
    await expect(cluster.passing(future.result())).rejects.toMatchObject({
      code: 'ERR_TASK_TIMEOUT',
      data: { timeoutMs: 500 },
    });
    expect(cluster.clock.nowMs() - startMs).toBeGreaterThanOrEqual(500);
    expect(aborted).toContain('too long');
  });

  test('what has not ended at its deadline is given up, and its code is aborted', async () => {
    const late = cluster.client.with({ deadlineMs: 300 });
    const running = late.submit(waitsForAbort, 'late');
    const queued = late.submit(failsFor, 'never called', 0, '');
    const expected = { code: 'ERR_TASK_TIMEOUT', data: { deadlineMs: 300 } };
    await expect(cluster.passing(running.result())).rejects.toMatchObject(expected);
    await expect(cluster.passing(queued.result())).rejects.toMatchObject(expected);
    await cluster.until(() => aborted.includes('late'));
    expect(calledMs.has('never called')).toBe(false);
  });

  test('what ends before its deadline keeps its result', async () => {
    const future = cluster.client.with({ deadlineMs: 300 }).submit(inc, 1);
    expect(await cluster.passing(future.result())).toBe(2);
    cluster.clock.advance(1000);
    expect(future.status).toBe('finished');
  });
});

describe('timeoutMs is a bound for a task that', () => {
  test.each([
    ['computes', 'spins'],
    ['is inside native code', 'blocks'],
  ] as const)('%s; another thread takes the place of its own', async (_, name) => {
    // The time limit has no grace period on top of it.
    const config = { worker: { killGrace: '1 hour' } };
    await using cluster = await LocalCluster.start({ workers: 1, threads: 1, config });
    const client = await cluster.client();
    await client.submit(waiting.add, 1, 1).result();
    const startMs = performance.now();
    const endless = client.with({ timeoutMs: 500 }).submit(waiting[name], 8);
    await expect(endless.result()).rejects.toMatchObject({ code: 'ERR_TASK_TIMEOUT' });
    expect(performance.now() - startMs).toBeGreaterThan(490);
    expect(await client.submit(waiting.add, 1, 2).result()).toBe(3);
  });

  test('waits for what it does not abort, without harm to others that wait on its thread', async () => {
    await using cluster = await LocalCluster.start({ workers: 1, threads: 1 });
    const client = await cluster.client();
    const parents = client.map(waiting.parent, [1, 2, 3]);
    const late = client.with({ timeoutMs: 200 }).submit(waiting.leaf, 2500);
    await expect(late.result()).rejects.toMatchObject({ code: 'ERR_TASK_TIMEOUT' });
    expect(await client.gather(parents)).toHaveLength(3);
    expect(await client.submit(waiting.add, 1, 2).result()).toBe(3);
  });
});

describe('a task in a thread that waits for its retry', () => {
  test('leaves its place in a limit to others, and goes on when it has one again', async () => {
    await using cluster = await LocalCluster.start({ workers: 1, threads: 1 });
    const client = (await cluster.client()).with({ limit: { name: 'one', max: 1 } });
    const retries = (backoffMs: number) => client.with({ retries: { times: 1, backoffMs } });
    const patient = retries(60_000).submit(waiting.failsOnce);
    expect(await client.submit(waiting.add, 1, 2).result()).toBe(3);
    expect(patient.status).toBe('pending');
    patient.cancel();
    expect(await retries(1).with({ pure: false }).submit(waiting.failsOnce).result()).toBe(2);
  });
});
