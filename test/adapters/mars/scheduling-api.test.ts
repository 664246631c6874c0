import { beforeEach, describe, expect, test } from 'vitest';
import { ref, task } from '../../../adapters/client/index.ts';
import { collectGarbage } from '../../../adapters/executors/collect-garbage.ts';
import { SchedulingApi, type Subtask } from '../../../adapters/mars/mars.ts';
import { eventually } from '../../kit/eventually.ts';
import { add, calls, count, deaf, fail, flaky, gates, inc, never, total } from '../client/tasks.ts';
import type { VirtualCluster } from '../../kit/virtual-cluster.ts';
import { startCluster } from '../../kit/virtual-cluster.ts';

let cluster: VirtualCluster;
let api: SchedulingApi;
beforeEach(() => {
  calls.clear();
});
async function start(workers = 1, options: Parameters<typeof startCluster>[1] = {}): Promise<void> {
  cluster = await startCluster(workers, options);
  api = new SchedulingApi(cluster.client, { sessionId: 's', clock: cluster.clock });
}

/** Subtasks that note the order in which they run. */
function counting(ids: string): Subtask[] {
  return ids.split('').map((id) => ({ id, call: task(count, id) }));
}

async function resultsOf(...ids: string[]): Promise<unknown[]> {
  const futures = ids.map((id) => api.future(id));
  try {
    return await cluster.passing(cluster.client.gather(futures));
  } finally {
    for (const future of futures) future.release();
  }
}

function order(): string {
  return [...calls.keys()].join('');
}

const state = async (id: string): Promise<string | undefined> => {
  const summaries = await cluster.passing(api.getSubtaskScheduleSummaries());
  return summaries.find(({ subtaskId }) => subtaskId === id)?.state;
};

describe('subtasks', () => {
  test('compute with the results of others, in one call or in several', async () => {
    await start(2);
    await cluster.passing(
      api.addSubtasks([
        { id: 'sum', call: task(add, ref('a'), ref('b')) },
        { id: 'a', call: task(inc, 1) },
        { id: 'b', call: task(inc, 2) },
      ]),
    );
    await cluster.passing(
      api.addSubtasks([{ id: 'more', call: task(total, [ref('a'), ref('sum'), 100]) }]),
    );
    expect(await cluster.passing(api.future('sum').result())).toBe(5);
    expect(await cluster.passing(api.future('more').result())).toBe(107);
  });

  test('wait for dependencies whose results they do not use', async () => {
    await start();
    const [x, a] = counting('xa') as [Subtask, Subtask];
    await cluster.passing(api.addSubtasks([{ ...a, dependencies: ['x'] }, x], [[9], [0]]));
    await resultsOf('x', 'a');
    expect(order()).toBe('xa');
  });

  test('run on expected bands, by name or address, and elsewhere only if they may', async () => {
    await start(2);
    const { address } = cluster.worker('worker-0');
    const call = task(inc, 1);
    await cluster.passing(
      api.addSubtasks([
        { id: 'named', call, expectedBands: ['worker-1'] },
        { id: 'addressed', call, expectedBands: [address] },
        { id: 'elsewhere', call, expectedBands: ['gone'] },
        { id: 'nowhere', call, expectedBands: ['gone'], bandsMandatory: true },
      ]),
    );
    await cluster.passing(api.future('elsewhere').result());
    const summaries = await cluster.passing(api.getSubtaskScheduleSummaries());
    const bands = new Map(summaries.map((summary) => [summary.subtaskId, summary.bands]));
    expect(bands.get('named')).toEqual([cluster.worker('worker-1').address]);
    expect(bands.get('addressed')).toEqual([address]);
    expect(await state('nowhere')).toBe('no-worker');
  });

  test('of two sessions may be called alike, and share the durations of their function', async () => {
    await start();
    const other = new SchedulingApi(cluster.client, { sessionId: 't', clock: cluster.clock });
    await cluster.passing(api.addSubtasks([{ id: 'x', call: task(inc, 1) }]));
    await cluster.passing(other.addSubtasks([{ id: 'x', call: task(inc, 2) }]));
    expect(
      await cluster.passing(cluster.client.gather([api.future('x'), other.future('x')])),
    ).toEqual([2, 3]);
    const { tasks } = cluster.local.scheduler.cluster;
    expect([tasks.get('s/x')?.prefix.name, tasks.get('t/x')?.prefix.name]).toEqual(['inc', 'inc']);
  });

  test('that cannot be added are named, and none is added', async () => {
    await start();
    const adding = (...subtasks: Subtask[]): Promise<unknown> =>
      cluster.passing(
        api.addSubtasks(
          subtasks,
          subtasks.map(() => [1, 1]),
        ),
      );
    const x = { id: 'x', call: task(inc, 1) };
    await expect(adding(x, x)).rejects.toThrow('the subtask "x" is there already');
    await expect(adding(x, { id: 'y', call: task(inc, ref('z')) })).rejects.toThrow(
      'task "s/y" depends on "s/z"',
    );
    await expect(adding({ id: 'y', call: inc as never })).rejects.toThrow(
      'write call: task(fn, …)',
    );
    await expect(cluster.passing(api.addSubtasks([x], []))).rejects.toThrow(
      'as many priorities as subtasks (1), got 0',
    );
    expect(await cluster.passing(api.getSubtaskScheduleSummaries())).toEqual([]);
    await adding(x);
    await expect(adding(x)).rejects.toThrow('the subtask "x" is there already');
  });

  test('are tried again as often as the configuration says, or as they say themselves', async () => {
    await start(1, {
      config: { scheduler: { validate: true }, scheduling: { subtaskMaxRetries: 1 } },
    });
    await cluster.passing(
      api.addSubtasks([
        { id: 'a', call: task(flaky, 'a', 1) },
        { id: 'b', call: task(flaky, 'b', 1), retries: 0 },
        { id: 'c', call: task(flaky, 'c', 2), retries: 2 },
      ]),
    );
    expect(await cluster.passing(api.future('a').result())).toBe(2);
    expect(await cluster.passing(api.future('b').error())).toMatchObject({
      message: 'attempt 1 of b',
    });
    expect(await cluster.passing(api.future('c').result())).toBe(3);
  });
});

test('a future of a subtask that goes on is garbage when it was released', async () => {
  await start();
  await cluster.passing(api.addSubtasks([{ id: 'x', call: task(never, 'x') }]));
  const ask = (): WeakRef<object> => {
    const future = api.future('x');
    future.release();
    return new WeakRef(future);
  };
  const reference = ask();
  await eventually(() => {
    collectGarbage();
    expect(reference.deref() === undefined).toBe(true);
  });
});

describe('priorities', () => {
  test('order by tuples, the largest first', async () => {
    await start();
    const priorities = [[0], [1, 5], [1, 7], [2, -3], [1], [1, 7, 1]];
    await cluster.passing(api.addSubtasks(counting('abcdef'), priorities));
    await resultsOf(...'abcdef'.split(''));
    expect(order()).toBe('dfcbea');
  });

  test('are changed until the subtask begins, and the answer says whether that has an effect', async () => {
    await start(1, { threads: 1 });
    await cluster.passing(api.addSubtasks([{ id: 'first', call: task(deaf, 'first') }]));
    await cluster.until(() => gates.has('first'));
    await cluster.passing(
      api.addSubtasks(
        counting('abcdefgh'),
        Array.from({ length: 8 }, (_, n) => [0, -n]),
      ),
    );
    const update = (id: string, priority: number | number[]): Promise<boolean> =>
      cluster.passing(api.updateSubtaskPriority(id, priority));
    expect(await update('g', [0, 1])).toBe(true);
    expect(await update('c', -1)).toBe(true);
    // It runs; and this one lies on the worker, where nothing comes before it.
    expect(await update('first', 7)).toBe(false);
    expect(cluster.local.scheduler.cluster.tasks.get('s/a')?.state).toBe('processing');
    expect(await update('a', -2)).toBe(false);
    expect(await update('a', 2)).toBe(true);
    gates.get('first')?.();
    await resultsOf(...'abcdefgh'.split(''));
    expect(order()).toBe('agbdefhc');
    expect(await update('c', 3)).toBe(false);
    await expect(update('z', 3)).rejects.toThrow('the subtask "z" is not in this session');
  });

  test('that have to move to make space do so in the scheduler, too', async () => {
    await start();
    const blocked = { dependencies: ['first'] };
    await cluster.passing(api.addSubtasks([{ id: 'first', call: task(never, 'first') }]));
    // Ever closer to 0, until there is no number left between two of them.
    const tuples = Array.from({ length: 60 }, (_, n) => [0, 2 ** -n]);
    for (const [n, tuple] of tuples.entries()) {
      const subtask = { id: `n${n}`, call: task(inc, n), ...blocked };
      await cluster.passing(
        api.addSubtasks([subtask, { ...subtask, id: `zero${n}` }], [tuple, [0, 0]]),
      );
    }
    await cluster.passing(cluster.client.identity());
    const { tasks } = cluster.local.scheduler.cluster;
    const values = tuples.map((_, n) => tasks.get(`s/n${n}`)!.negatedUserPriority);
    expect(values).toEqual(values.toSorted((a, b) => a - b));
    expect(new Set(values).size).toBe(60);
    expect(tasks.get('s/zero5')!.negatedUserPriority).toBeGreaterThan(values.at(-1)!);
  });
});

describe('cancelling', () => {
  test('takes what is waiting and queued away, and says which runs continue', async () => {
    await start();
    await cluster.passing(api.addSubtasks([{ id: 'deaf', call: task(deaf, 'x') }]));
    await cluster.passing(
      api.addSubtasks([{ id: 'next', call: task(inc, ref('deaf')) }, ...counting('abcd')]),
    );
    const future = api.future('deaf');
    await cluster.until(() => gates.has('x'));
    const result = await cluster.passing(
      api.cancelSubtasks(['deaf', 'next', 'c', 'c', 'nothing', 'nothing'], { killTimeoutMs: 20 }),
    );
    expect(result).toEqual({
      cancelled: ['deaf', 'next', 'c'],
      ended: [],
      unknown: ['nothing'],
      // It is in this very thread, which cannot be ended.
      running: ['deaf'],
    });
    expect(await cluster.passing(future.error())).toMatchObject({ code: 'ERR_CANCELLED' });
    gates.get('x')?.();
    await resultsOf('a', 'b', 'd');
    expect(order()).toBe('abd');
    expect(() => api.future('c')).toThrow('was finished or cancelled');
  });

  test('ends copies of their futures, too', async () => {
    await start();
    await cluster.passing(api.addSubtasks([{ id: 'x', call: task(never, 'x') }]));
    const copy = api.future('x').clone();
    await cluster.passing(api.cancelSubtasks(['x']));
    expect(copy.status).toBe('cancelled');
  });

  test('waits for runs that stop when they are aborted', async () => {
    await start();
    await cluster.passing(api.addSubtasks([{ id: 'x', call: task(never, 'x') }]));
    await cluster.until(() => calls.has('x'));
    expect(await cluster.passing(api.cancelSubtasks(['x']))).toMatchObject({
      cancelled: ['x'],
      running: [],
    });
  });

  test('names what was cancelled along with them', async () => {
    await start();
    await cluster.passing(
      api.addSubtasks([
        { id: 'a', call: task(never, 'a') },
        { id: 'b', call: task(inc, ref('a')) },
        { id: 'c', call: task(inc, ref('b')), dependencies: ['other'] },
        { id: 'other', call: task(inc, 1) },
      ]),
    );
    expect(await cluster.passing(api.cancelSubtasks(['a']))).toEqual({
      cancelled: ['a', 'b', 'c'],
      ended: [],
      unknown: [],
      running: [],
    });
    const summaries = await cluster.passing(api.getSubtaskScheduleSummaries());
    const cancelled = summaries.filter(({ isCancelled }) => isCancelled);
    expect(cancelled.map(({ subtaskId }) => subtaskId)).toEqual(['a', 'b', 'c']);
    expect(() => api.future('c')).toThrow('was finished or cancelled');
  });

  test('waits for as long as the configuration says', async () => {
    await start(1, {
      config: {
        scheduler: { validate: true, sendAlong: 0 },
        scheduling: { subtaskCancelTimeout: '300 ms' },
      },
    });
    await cluster.passing(api.addSubtasks([{ id: 'deaf', call: task(deaf, 'y') }]));
    await cluster.until(() => gates.has('y'));
    const beganMs = cluster.clock.nowMs();
    const { running } = await cluster.passing(api.cancelSubtasks(['deaf']));
    expect(running).toEqual(['deaf']);
    expect(cluster.clock.nowMs() - beganMs).toBeLessThan(3000); // By default five seconds.
    gates.get('y')?.();
  });

  test('leaves results alone', async () => {
    await start();
    await cluster.passing(api.addSubtasks(counting('a')));
    await cluster.passing(api.future('a').result());
    expect(await cluster.passing(api.cancelSubtasks(['a']))).toMatchObject({
      cancelled: [],
      ended: ['a'],
    });
    expect(await cluster.passing(api.future('a').result())).toBe(1);
    await expect(cluster.passing(api.cancelSubtasks(['a'], { killTimeoutMs: -1 }))).rejects.toThrow(
      'killTimeoutMs must be a number of at least 0 and finite',
    );
  });
});

describe('ids', () => {
  test('of finished and cancelled subtasks can be used again while others of their batch are open', async () => {
    await start(3);
    await cluster.passing(
      api.addSubtasks([
        { id: 'a', call: task(inc, 1) },
        { id: 'b', call: task(never, 'b') },
        { id: 'open', call: task(never, 'open') },
        { id: 'needs', call: task(add, ref('a'), ref('open')) },
      ]),
    );
    await resultsOf('a');
    await cluster.passing(api.finishSubtasks(['a']));
    await cluster.passing(api.cancelSubtasks(['b']));
    await cluster.passing(
      api.addSubtasks([
        { id: 'a', call: task(inc, 10) },
        { id: 'b', call: task(inc, 20) },
        { id: 'sum', call: task(add, ref('a'), ref('b')) },
      ]),
    );
    expect(await resultsOf('a', 'b', 'sum')).toEqual([11, 21, 32]);
    expect(await state('open')).toBe('processing');
  });

  test('of two clients with one session do not mix their results', async () => {
    await start();
    const client = await cluster.passing(cluster.local.client());
    const other = new SchedulingApi(client, { sessionId: 's', clock: cluster.clock });
    await cluster.passing(api.addSubtasks([{ id: 'x', call: task(inc, 1) }]));
    const adding = other.addSubtasks([
      { id: 'y', call: task(inc, 3) },
      { id: 'x', call: task(inc, 2) },
    ]);
    await expect(cluster.passing(adding)).rejects.toMatchObject({
      code: 'ERR_GRAPH_INVALID',
      data: { key: 's/x', owner: cluster.client.id },
    });
    await cluster.passing(other.addSubtasks([{ id: 'y', call: task(inc, 3) }]));
    expect(await resultsOf('x')).toEqual([2]);
    await cluster.passing(api.close());
    await cluster.until(() => !cluster.local.scheduler.cluster.tasks.has('s/x'));
    await cluster.passing(other.addSubtasks([{ id: 'x', call: task(inc, 2) }]));
    expect(await cluster.passing(other.future('x').result())).toBe(3);
    // What a client had is free when it is gone.
    await cluster.passing(client.close());
    await cluster.until(() => !cluster.local.scheduler.cluster.tasks.has('s/x'));
    const last = new SchedulingApi(cluster.client, { sessionId: 's', clock: cluster.clock });
    await cluster.passing(last.addSubtasks([{ id: 'y', call: task(inc, 5) }]));
    expect(await cluster.passing(last.future('y').result())).toBe(6);
  });
});

describe('finishing', () => {
  test('releases results that no client holds and no subtask needs', async () => {
    await start();
    await cluster.passing(api.addSubtasks(counting('abc')));
    await resultsOf('a', 'b', 'c');
    const a = api.future('a');
    await cluster.passing(
      api.addSubtasks([
        { id: 'waits', call: task(add, ref('c'), ref('never')) },
        { id: 'never', call: task(never, 'x') },
      ]),
    );
    await cluster.passing(api.finishSubtasks(['a', 'b', 'c'], { bands: ['x', undefined, 'y'] }));
    const { tasks } = cluster.local.scheduler.cluster;
    await cluster.until(() => !tasks.has('s/b'));
    expect([tasks.get('s/a')?.state, tasks.get('s/c')?.state]).toEqual(['memory', 'memory']);
    expect(await cluster.passing(a.result())).toBe(1);
  });

  test('cancels what has not ended, and frees its name for another one', async () => {
    await start();
    await cluster.passing(api.addSubtasks([{ id: 'x', call: task(never, 'x') }]));
    await cluster.passing(api.finishSubtasks(['x', 'unknown']));
    const { tasks } = cluster.local.scheduler.cluster;
    await cluster.until(() => !tasks.has('s/x'));
    await cluster.passing(api.addSubtasks([{ id: 'x', call: task(inc, 1) }]));
    expect(await cluster.passing(api.future('x').result())).toBe(2);
  });

  test('always schedules the next', async () => {
    await start();
    await expect(cluster.passing(api.finishSubtasks([], { scheduleNext: false }))).rejects.toThrow(
      'scheduleNext must be true: what can run next is always sent at once',
    );
    await expect(cluster.passing(api.finishSubtasks(['a'], { bands: [] }))).rejects.toThrow(
      'as many bands',
    );
  });
});

describe('summaries', () => {
  test('say where subtasks are, past ones first', async () => {
    await start(1, { threads: 1 });
    const subtasks = [
      { id: 'done', call: task(inc, 1), taskId: 'one' },
      { id: 'bad', call: task(fail, 'no'), taskId: 'one' },
      { id: 'old', call: task(inc, 2), taskId: 'two' },
    ];
    await cluster.passing(api.addSubtasks(subtasks, [2, [1, 2], 0]));
    await cluster.passing(Promise.all(subtasks.map(({ id }) => api.future(id).settled())));
    await cluster.passing(
      api.addSubtasks([
        { id: 'run', call: task(never, 'run'), retries: 3 },
        { id: 'gone', call: task(never, 'gone') },
      ]),
    );
    await cluster.passing(api.finishSubtasks(['old']));
    await cluster.passing(api.cancelSubtasks(['gone']));
    const { address } = cluster.worker('worker-0');
    const flags = { isFinished: false, isFailed: false, isCancelled: false };
    const none = { numReschedules: 0, retriesLeft: 0 };
    expect(await cluster.passing(api.getSubtaskScheduleSummaries())).toEqual([
      {
        subtaskId: 'old',
        taskId: 'two',
        state: 'memory',
        bands: [address],
        priority: [0],
        ...none,
        ...flags,
        isFinished: true,
      },
      {
        subtaskId: 'gone',
        state: 'processing',
        bands: [address],
        priority: [0],
        ...none,
        ...flags,
        isCancelled: true,
      },
      {
        subtaskId: 'done',
        taskId: 'one',
        state: 'memory',
        bands: [address],
        priority: [2],
        ...none,
        ...flags,
        isFinished: true,
      },
      {
        subtaskId: 'bad',
        taskId: 'one',
        state: 'erred',
        bands: [],
        priority: [1, 2],
        ...none,
        ...flags,
        isFailed: true,
      },
      {
        subtaskId: 'run',
        state: 'processing',
        bands: [address],
        priority: [0],
        ...none,
        ...flags,
        retriesLeft: 3,
      },
    ]);
    const one = await cluster.passing(api.getSubtaskScheduleSummaries('one'));
    expect(one.map(({ subtaskId }) => subtaskId)).toEqual(['done', 'bad']);
  });

  test('of the past are kept up to a number', async () => {
    await start();
    const short = new SchedulingApi(cluster.client, { historyLength: 2, clock: cluster.clock });
    await cluster.passing(short.addSubtasks(counting('abc')));
    await cluster.passing(short.finishSubtasks(['a', 'b', 'c']));
    const past = await cluster.passing(short.getSubtaskScheduleSummaries());
    expect(past.map(({ subtaskId }) => subtaskId)).toEqual(['b', 'c']);
  });

  test('count the workers that died', async () => {
    await start(2);
    await cluster.passing(api.addSubtasks([{ id: 'x', call: task(never, 'x') }]));
    await cluster.until(() => calls.has('x'));
    const [{ bands: [address] } = { bands: [] }] = await cluster.passing(
      api.getSubtaskScheduleSummaries(),
    );
    cluster.local.scheduler.enqueue({
      op: 'remove-worker',
      worker: address!,
      expected: false,
      close: true,
    });
    await cluster.until(() => calls.get('x') === 2);
    const [summary] = await cluster.passing(api.getSubtaskScheduleSummaries());
    expect(summary).toMatchObject({ state: 'processing', numReschedules: 1 });
    expect(summary?.bands).not.toEqual([address]);
  });
});

describe('arguments', () => {
  const call = task(inc, 1);
  test.each<[string, (its: SchedulingApi) => unknown, RegExp]>([
    ['subtasks', (its) => its.addSubtasks('x' as never), /subtasks must be a list/],
    [
      'a subtask',
      (its) => its.addSubtasks([null as never]),
      /a subtask: its argument must be an object/,
    ],
    ['an id', (its) => its.addSubtasks([{ id: 5 as never, call }]), /id must be text/],
    [
      'a field',
      (its) => its.addSubtasks([{ id: 'x', call, retires: 1 } as never]),
      /retires is not known; did you mean "retries"/,
    ],
    ['retries', (its) => its.addSubtasks([{ id: 'x', call, retries: '1' as never }]), /retries/],
    [
      'mandatory',
      (its) => its.addSubtasks([{ id: 'x', call, bandsMandatory: 1 as never }]),
      /bandsM/,
    ],
    ['taskId', (its) => its.addSubtasks([{ id: 'x', call, taskId: 1 as never }]), /taskId/],
    ['priorities', (its) => its.addSubtasks([{ id: 'x', call }], 3 as never), /priorities must be/],
    [
      'a priority',
      (its) => its.addSubtasks([{ id: 'x', call }], ['5' as never]),
      /priority must be/,
    ],
    ['NaN', (its) => its.addSubtasks([{ id: 'x', call }], [NaN]), /finite/],
    ['a new priority', (its) => its.updateSubtaskPriority('x', '5' as never), /priority must be/],
    ['an id to update', (its) => its.updateSubtaskPriority(5 as never, 5), /id must be/],
    ['ids to cancel', (its) => its.cancelSubtasks('x' as never), /ids must be/],
    [
      'an option',
      (its) => its.cancelSubtasks([], { killTimeout: 5 } as never),
      /killTimeout is not known; did you mean "killTimeoutMs"/,
    ],
    ['ids to finish', (its) => its.finishSubtasks('x' as never), /ids must be/],
    ['bands', (its) => its.finishSubtasks([], { bands: 'x' as never }), /bands must be/],
    ['taskId asked for', (its) => its.getSubtaskScheduleSummaries(5 as never), /taskId must be/],
  ])('of a wrong type are refused: %s', async (_what, run, message) => {
    await start();
    const running = Promise.resolve(run(api));
    const error = await cluster.passing(running).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'ERR_GRAPH_INVALID' });
    expect((error as Error).message).toMatch(message);
  });

  test('of a session are checked', async () => {
    await start();
    const open = (options: object) => () => new SchedulingApi(cluster.client, options);
    expect(open({ sessionID: 'x' })).toThrow('sessionID is not known; did you mean "sessionId"?');
    expect(open({ sessionId: 5 })).toThrow('sessionId must be text');
    expect(open({ historyLength: -1 })).toThrow('historyLength must be');
  });

  test('a closed session refuses everything', async () => {
    await start();
    await cluster.passing(api.addSubtasks(counting('a')));
    const closing = api.close();
    const calls = [
      api.addSubtasks(counting('b')),
      api.updateSubtaskPriority('a', 1),
      api.cancelSubtasks(['a']),
      api.finishSubtasks(['a']),
      api.getSubtaskScheduleSummaries(),
    ];
    for (const refused of calls) {
      await expect(refused).rejects.toMatchObject({ code: 'ERR_CLOSED', data: { sessionId: 's' } });
    }
    expect(() => api.future('a')).toThrow('the session "s" is closed');
    await cluster.passing(closing);
  });
});

test('a session that has made its client closes it, and leaves nothing behind', async () => {
  await start();
  const { clock, local } = cluster;
  const { transport } = cluster;
  const own = await cluster.passing(
    SchedulingApi.connect('own', local.address, { clock, transports: [transport] }),
  );
  await cluster.passing(own.addSubtasks(counting('ab')));
  await cluster.passing(own.close());
  await cluster.until(() => cluster.local.scheduler.cluster.tasks.size === 0);
  await expect(cluster.passing(own.addSubtasks(counting('c')))).rejects.toThrow('closed');
});

test('subtasks that have ended keep no place in the order', async () => {
  await start(2, { scheduler: { validate: false } });
  for (let round = 0; round < 4; round++) {
    const ids = Array.from({ length: 400 }, (_, n) => `${round}-${n}`);
    const subtasks = ids.map((id, n) => ({ id, call: task(inc, n) }));
    const priorities = subtasks.map((_, n) => [round, n]);
    await cluster.passing(api.addSubtasks(subtasks, priorities));
    await resultsOf(...ids);
  }
  expect(api['order']['labels'].size).toBeLessThanOrEqual(1000);
});
