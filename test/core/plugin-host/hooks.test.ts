import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../../adapters/clocks/index.ts';
import {
  definePlugin,
  HOOK_NAMES,
  type HookTable,
  type SchedulerHooks,
  type YardmasterError,
} from '../../../core/api/index.ts';
import { EventBus, HookRegistry, Observer } from '../../../core/plugin-host/hooks.ts';
import { HandClock } from '../../kit/hand-clock.ts';
import { TestHost } from '../../kit/test-host.ts';
import { cpuMsOf } from '../../kit/cpu.ts';

type Restarted = SchedulerHooks['restarted'];

function registry(): { hooks: HookRegistry; failures: YardmasterError[] } {
  const hooks = new HookRegistry(new VirtualClock());
  const failures: YardmasterError[] = [];
  hooks.onFailure = (_observer, { error, isReported }) => {
    if (isReported) failures.push(error);
  };
  hooks.begin('restart-1');
  return { hooks, failures };
}

function observer(name: string, instance: HookTable): Observer {
  return new Observer(name, 'log', instance);
}

function call(hooks: HookRegistry): void {
  for (const hook of hooks.compile().restarted) hook('restart-1');
}

describe('hooks', () => {
  it('run pre, normal, post, each in the order of registration', () => {
    const { hooks } = registry();
    const order: string[] = [];
    const says =
      (text: string): Restarted =>
      () =>
        void order.push(text);
    hooks.add(observer('a', { restarted: { order: 'post', handler: says('a post') } }));
    hooks.add(observer('b', { restarted: says('b') }));
    hooks.add(observer('c', { restarted: { order: 'pre', handler: says('c pre') } }));
    hooks.add(observer('d', { restarted: says('d') }));
    hooks.add(observer('e', { restarted: { order: 'pre', handler: says('e pre') } }));
    call(hooks);
    expect(order).toEqual(['c pre', 'e pre', 'b', 'd', 'a post']);
  });

  it('all exist in what is compiled, and what is compiled cannot be changed', () => {
    const calls = registry().hooks.compile();
    expect(Object.keys(calls).sort()).toEqual([...HOOK_NAMES].sort());
    expect(Object.isFrozen(calls)).toBe(true);
    expect(Object.isFrozen(calls.restarted)).toBe(true);
  });

  it('the host comes before every plugin', () => {
    const { hooks } = registry();
    const order: string[] = [];
    hooks.add(
      observer('a', { restarted: { order: 'pre', handler: () => void order.push('plugin') } }),
    );
    for (const hook of hooks.compile({ restarted: () => void order.push('host') }).restarted) {
      hook('restart-1');
    }
    expect(order).toEqual(['host', 'plugin']);
  });

  it('that throw do not keep others from running, and say what happened', () => {
    const { hooks, failures } = registry();
    const cause = new TypeError('no such thing');
    let later = 0;
    const thrower = observer('thrower', {
      restarted: () => {
        throw cause;
      },
    });
    hooks.add(thrower);
    hooks.add(
      observer('later', {
        restarted: () => {
          later++;
        },
      }),
    );
    call(hooks);
    call(hooks);
    expect(later).toBe(2);
    expect(failures).toHaveLength(2);
    const [error] = failures;
    expect(error?.code).toBe('ERR_PLUGIN_HOOK');
    expect(error?.message).toBe('the hook restarted of plugin "thrower" threw: no such thing');
    expect(error?.data).toEqual({
      plugin: 'thrower',
      hook: 'restarted',
      stimulusId: 'restart-1',
    });
    expect(error?.cause).toBe(cause);
    expect(thrower.errorCount).toBe(2);
    expect(thrower.counters.get('restarted')).toMatchObject({ calls: 2, errors: 2 });
  });

  it('that are async are refused, and their rejections are reported as well', async () => {
    const { hooks, failures } = registry();
    const slow = async (): Promise<void> => {
      await Promise.resolve();
      throw new Error('too late');
    };
    hooks.add(observer('slow', { restarted: slow as unknown as Restarted }));
    call(hooks);
    expect(failures.map(({ code }) => code)).toEqual(['ERR_HOOK_ASYNC']);
    await new Promise((resolve) => setImmediate(resolve));
    expect(failures.map(({ code, message }) => [code, message])).toEqual([
      [
        'ERR_HOOK_ASYNC',
        'the hook restarted of plugin "slow" returned a promise, which is not awaited; make it synchronous, and start what is slow elsewhere',
      ],
      ['ERR_PLUGIN_HOOK', 'the hook restarted of plugin "slow" threw: too late'],
    ]);
  });

  it('are methods of their plugin', () => {
    const { hooks } = registry();
    class Counter {
      count = 0;
      restarted(): void {
        this.count++;
      }
    }
    const counter = new Counter();
    hooks.add(observer('counter', counter));
    call(hooks);
    expect(counter.count).toBe(1);
  });

  it('of a detached plugin are not called, not even by arrays that exist already', () => {
    const { hooks } = registry();
    let calls = 0;
    const leaving = observer('leaving', {
      restarted: () => {
        calls++;
      },
    });
    hooks.add(leaving);
    const compiled = hooks.compile();
    hooks.remove(leaving);
    for (const hook of compiled.restarted) hook('restart-1');
    expect(calls).toBe(0);
    expect(hooks.compile().restarted).toHaveLength(0);
  });

  it('of a plugin that replaces another take its place', () => {
    const { hooks } = registry();
    const order: string[] = [];
    const first = observer('first', { restarted: () => void order.push('old') });
    hooks.add(first);
    hooks.add(observer('second', { restarted: () => void order.push('second') }));
    hooks.add(observer('first', { restarted: () => void order.push('new') }), first);
    call(hooks);
    expect(order).toEqual(['new', 'second']);
  });

  it('every call is timed, in real time', () => {
    const { hooks } = registry();
    const slow = observer('slow', { restarted: () => busyFor(3) });
    hooks.add(slow);
    const { restarted } = hooks.compile();
    for (let index = 0; index < 3; index++) for (const hook of restarted) hook('r');
    const { calls, errors, totalMs, maxMs } = slow.counters.get('restarted')!;
    expect([calls, errors]).toEqual([3, 0]);
    expect(maxMs).toBeGreaterThanOrEqual(3);
    expect(totalMs).toBeGreaterThanOrEqual(9);
  });

  it.each<[string, unknown, string]>([
    [
      'a misspelt hook',
      { taskTransitions: () => undefined },
      'plugin "p" has a hook "taskTransitions", which does not exist; did you mean "taskTransition"?',
    ],
    [
      'a hook that is not a function',
      { restarted: 5 },
      "the hook restarted of plugin \"p\" is neither a function nor { order: 'pre' | 'post', handler }",
    ],
    [
      'an unknown order',
      { restarted: { order: 'first', handler: () => undefined } },
      "the hook restarted of plugin \"p\" is neither a function nor { order: 'pre' | 'post', handler }",
    ],
  ])('%s is refused', (_name, instance, message) => {
    const { hooks } = registry();
    expect(() => hooks.add(observer('p', instance as HookTable))).toThrow(message);
  });
});

describe('what blocks the scheduler is named', () => {
  const blocked = async (plugin: object, act: (host: TestHost) => unknown): Promise<string[]> => {
    const host = await TestHost.start({ config: { scheduler: { plugins: [{ use: plugin }] } } });
    await act(host);
    await host.close();
    return host.log.messages.filter((text) => text?.includes('blocked')) as string[];
  };
  const join = (host: TestHost): unknown => host.worker('inmemory://w1');

  it('a hook that is slow once, in virtual time, too', async () => {
    const setup = () => ({ workerAdded: () => busyFor(510) });
    const slow = definePlugin({ name: 'slow', apiVersion: 1, setup });
    expect(await blocked(slow, join)).toEqual([
      expect.stringMatching(
        /^register-worker-\S+ blocked the scheduler for \d+ ms: the hook workerAdded of plugin "slow" took \d+ ms in 1 call$/,
      ),
    ]);
  });

  it('a hook whose many calls are slow together', async () => {
    const setup = () => ({ taskTransition: () => busyFor(30) });
    const slow = definePlugin({ name: 'slow', apiVersion: 1, setup });
    const messages = await blocked(slow, async (host) => {
      const client = await host.client();
      const keys = Array.from({ length: 20 }, (_, index) => `x-${index}`);
      const tasks = keys.map((key) => ({ key, dependencies: [], runSpec: key }));
      await client.send({ op: 'update-graph', keys, tasks });
    });
    expect(messages[0]).toMatch(
      /the hook taskTransition of plugin "slow" took \d+ ms in \d\d calls$/,
    );
  });

  it('a call above the budget once a minute, with how many there were', () => {
    const clock = new HandClock();
    const hooks = new HookRegistry(clock);
    const said: string[] = [];
    hooks.onSlow = (message) => said.push(message);
    hooks.slowMs = 20;
    let tookMs = 19;
    hooks.add(observer('slow', { restarted: () => clock.pass(tookMs) }));
    call(hooks);
    expect(said).toEqual([]);
    tookMs = 30;
    for (let count = 0; count < 3; count++) call(hooks);
    clock.pass(60_000);
    call(hooks);
    expect(said).toEqual([
      'the hook restarted of plugin "slow" blocked the scheduler for 30 ms: nothing else was served meanwhile; do less at once, or in a thread',
      'the hook restarted of plugin "slow" blocked the scheduler for 30 ms: nothing else was served meanwhile; do less at once, or in a thread; it did so 2 more times since this was said',
    ]);
  });

  it('a policy, of whose calls one in 16 is timed, and each after a slow stimulus', () => {
    const clock = new HandClock();
    const hooks = new HookRegistry(clock);
    let tookMs = 150;
    const score = hooks.timed('score of the policy of workerSelection "slow"', () =>
      clock.pass(tookMs),
    );
    const callsTimed = (): number => {
      hooks.begin('tasks-1');
      for (let count = 0; count < 16; count++) score();
      return hooks.sharesOfStimulus[0]?.calls ?? 0;
    };
    expect(callsTimed()).toBe(1);
    hooks.end(16 * 150);
    expect(callsTimed()).toBe(16);
    expect([...hooks.slowCalls()]).toEqual([
      ['score of the policy of workerSelection "slow"', 150],
    ]);
    tookMs = 0;
    clock.pass(60_001);
    expect(callsTimed()).toBe(16);
    expect([...hooks.slowCalls()]).toEqual([]);
  });

  it('a timer, once a minute', async () => {
    const slow = definePlugin({
      name: 'slow',
      apiVersion: 1,
      setup: ({ every }) => void every(100, () => busyFor(510)),
    });
    expect(await blocked(slow, ({ clock }) => clock.advanceAsync(250))).toEqual([
      expect.stringMatching(/^a timer of plugin "slow" blocked the scheduler for \d+ ms/),
    ]);
  });
});

it('a hundred thousand events of one stimulus are delivered in order, and what a listener emits after them, in linear time', () => {
  const bus = new EventBus();
  const seen: string[] = [];
  bus.on('event', (topic) => {
    seen.push(topic);
    if (topic === '0') bus.emit('event', 'late', undefined);
  });
  bus.hold();
  const topics = Array.from({ length: 100_000 }, (_, n) => `${n}`);
  for (const topic of topics) bus.emit('event', topic, undefined);
  expect(seen).toEqual([]);
  expect(cpuMsOf(() => bus.release())).toBeLessThan(1500);
  expect(seen).toEqual([...topics, 'late']);
});

/** Computes for so long, in real time. */
function busyFor(ms: number): void {
  for (const startMs = performance.now(); performance.now() - startMs < ms;);
}
