import { describe, expect, it } from 'vitest';
import {
  ActiveMemoryManagerPolicy,
  BRIDGE,
  defineAmmPolicy,
  defineNannyPlugin,
  definePlugin,
  definePolicy,
  defineTransport,
  defineWorkerPlugin,
  type PluginContext,
  type SuggestionGenerator,
  token,
} from '../../../core/api/index.ts';
import { VirtualClock } from '../../../adapters/clocks/index.ts';
import { InlineExecutor } from '../../../adapters/executors/inline.ts';
import { defineTasks } from '../../../adapters/tasks/define-tasks.ts';
import { defineConfig } from '../../../adapters/app/config.ts';
import { EnsureBroadcast } from '../../../policies/amm/ensure-broadcast.ts';
import { checkExecutor, checkStore } from '../../../core/plugin-host/contracts.ts';
import { loadTransports } from '../../../core/plugin-host/load-extensions.ts';
import { PluginResolver } from '../../../core/plugin-host/plugin-resolver.ts';
import type { TestHost } from '../../kit/test-host.ts';
import { identityOf, startHost } from '../../kit/test-host.ts';

/** What the refusal of a plugin that is added at run time says. */
async function refusal(plugin: object, options?: Record<string, unknown>): Promise<string> {
  const host = await startHost();
  const given = options === undefined ? {} : { options };
  const error: unknown = await host.scheduler
    .addPlugin(plugin, given)
    .catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({
    code: expect.stringMatching(/^ERR_PLUGIN_(LOAD|SETUP)$/) as string,
  });
  return (error as Error).message;
}

/** A class with one method, or with one arrow function as a field. */
function classWith(name: string, isField = false): object {
  const Made = class Counter {
    constructor() {
      if (isField) (this as Record<string, unknown>)[name] = () => undefined;
    }
    workerAdded(): void {
      /* A hook that is right, so that the other one is what is refused. */
    }
  };
  if (!isField) Object.defineProperty(Made.prototype, name, { value: () => undefined });
  return new Made();
}

describe('a hook that would never be called is refused', () => {
  it.each([
    ['taskTranstion', 'taskTransition'],
    ['onTaskTransition', 'taskTransition'],
    ['task_transition', 'taskTransition'],
    ['tasktransition', 'taskTransition'],
    ['workerAdd', 'workerAdded'],
    ['workerStatusChange', 'workerStatusChanged'],
    ['graphUpdate', 'graphUpdated'],
    ['transition', 'taskTransition'],
    ['update_graph', 'graphUpdated'],
    ['add_worker', 'workerAdded'],
    ['remove_worker', 'workerRemoved'],
    ['addWorker', 'workerAdded'],
    ['add_client', 'clientAdded'],
    ['remove_client', 'clientRemoved'],
    ['restart', 'restarted'],
    ['log_event', 'eventLogged'],
    ['before_close', 'beforeClose'],
    ['set_up', 'setup'],
    ['teardown', 'close'],
  ])('%s, with the name that was probably meant: %s', async (written, meant) => {
    for (const isField of [false, true]) {
      expect(await refusal(classWith(written, isField))).toMatch(
        new RegExp(
          `plugin "Counter" has a hook "${written}", which does not exist.*did you mean "${meant}"\\?`,
        ),
      );
    }
    const hooks = definePlugin({
      name: 'plain',
      apiVersion: 1,
      setup: (): object => ({ [written]: () => undefined }),
    });
    expect(await refusal(hooks)).toContain(`did you mean "${meant}"?`);
  });

  it('in an object of hooks also by what is less like a known name', async () => {
    const hooks = definePlugin({
      name: 'plain',
      apiVersion: 1,
      setup: (): object => ({ clsoe: () => undefined }),
    });
    expect(await refusal(hooks)).toContain('did you mean "close"?');
  });

  it('also when it is written with an order', async () => {
    const hooks = definePlugin({
      name: 'plain',
      apiVersion: 1,
      setup: (): object => ({ workerAddded: { order: 'pre', handler: () => undefined } }),
    });
    expect(await refusal(hooks)).toContain('did you mean "workerAdded"?');
  });

  it('also when it is inherited', async () => {
    class Base {
      add_worker(): void {
        /* Dask's name. */
      }
    }
    class Derived extends Base {
      setup(): void {
        /* Something that is called. */
      }
    }
    expect(await refusal(new Derived())).toContain('did you mean "workerAdded"?');
    expect(await refusal(Derived)).toContain('did you mean "workerAdded"?');
  });

  it('while methods of a class that are like no hook are its own', async () => {
    class Counter {
      #started = false;
      count = 0;
      workerAdded(): void {
        this.increment();
      }
      increment(): void {
        this.count++;
        this.#restart();
      }
      clone(): this {
        return this;
      }
      stop(): void {
        this.#started = false;
      }
      #restart(): boolean {
        return this.#started;
      }
      get transition(): never {
        throw new Error('a getter is not called by checks');
      }
    }
    const host = await startHost();
    expect(await host.scheduler.addPlugin(new Counter())).toBe('Counter');
  });
});

describe('what throws when it is read is refused, with its name or place', () => {
  const thrown = (): never => {
    throw new Error('trap');
  };
  const trap = (): object => new Proxy({}, { get: thrown });
  const plain = { name: 'plain', apiVersion: 1 } as const;

  it.each([
    [
      'a hook',
      definePlugin({
        ...plain,
        setup: () => Object.defineProperty({}, 'taskTransition', { get: thrown }),
      }),
      'the hook taskTransition of plugin "plain" cannot be read: trap',
    ],
    [
      'all that setup returns',
      definePlugin({ ...plain, setup: trap }),
      'plugin "plain" (plain given in code) failed in setup: trap',
    ],
    [
      'a field of a definition',
      {
        ...plain,
        setup: () => undefined,
        get requires(): never {
          return thrown();
        },
      },
      'the definition of the plugin plain (plain given in code) is not right: requires cannot be read: trap',
    ],
    ['everything', trap(), 'the plugin that was given in code cannot be read: trap'],
  ])('%s of a plugin', async (_what, plugin, message) => {
    expect(await refusal(plugin)).toBe(message);
  });

  it.each([
    ['an entry', { plugins: [{ use: trap() }] }, 'the plugin that was given in code'],
    [
      'a plugin in the place of an entry',
      { plugins: [trap()] },
      'the plugin that was given in code',
    ],
    ['a policy', { policies: { ordering: { use: trap() } } }, 'the policy that was given in code'],
    [
      'a policy of the memory manager',
      { activeMemoryManager: { policies: [{ use: trap() }] } },
      'the extension that was given in code',
    ],
  ])('%s of a configuration', async (_what, scheduler, subject) => {
    await expect(startHost(scheduler)).rejects.toMatchObject({
      code: 'ERR_PLUGIN_LOAD',
      message: expect.stringContaining(`${subject} cannot be read: trap`) as string,
    });
  });

  it('a method of a policy', async () => {
    const policy = {
      name: 'odd',
      get score(): never {
        return thrown();
      },
    };
    await expect(startHost({ policies: { workerSelection: { use: policy } } })).rejects.toThrow(
      'score cannot be read: trap',
    );
  });
});

describe('what is of another kind is refused, with where it belongs', () => {
  class Duck {
    *run(): Generator<never> {
      /* A policy of the memory manager that extends nothing. */
    }
  }
  class OfWorkers {
    statusChanged(): void {
      /* A hook of workers. */
    }
  }
  class OfNannies {
    processEnded(): void {
      /* A hook of nannies. */
    }
  }
  const transport = defineTransport({ name: 'x', apiVersion: 1, create: () => ({}) as never });
  const policy = definePolicy('workerSelection', {
    name: 'p',
    apiVersion: 1,
    create: () => ({ score: () => 0 }),
  });

  it.each<[name: string, what: object, place: string]>([
    [
      'an instance of an AMM policy',
      new EnsureBroadcast({ key: 'x' }),
      'scheduler.activeMemoryManager.policies',
    ],
    ['an AMM policy class', EnsureBroadcast, 'scheduler.activeMemoryManager.policies'],
    ['an AMM policy that extends nothing', Duck, 'scheduler.activeMemoryManager.policies'],
    [
      'a worker plugin',
      defineWorkerPlugin({ name: 'w', apiVersion: 1, setup: () => undefined }),
      'worker.plugins',
    ],
    ['a class with hooks of workers', OfWorkers, 'worker.plugins'],
    ['an instance with hooks of workers', new OfWorkers(), 'worker.plugins'],
    ['a class with hooks of nannies', OfNannies, 'worker.nannyPlugins'],
    ['a transport', transport, 'scheduler.transport'],
    ['a policy', policy, 'scheduler.policies.workerSelection'],
    [
      'an object with the methods of a policy',
      { name: 'p', generations: () => 0 },
      'scheduler.policies.fairness or use scheduler.replacePolicy(slot, policy)',
    ],
  ])('%s given as a plugin', async (_name, what, place) => {
    const message = await refusal(what);
    expect(message).toContain('and a plugin is wanted here');
    expect(message).toContain(`name it under ${place}`);
  });

  it.each<[name: string, what: unknown, says: string]>([
    [
      'an executor',
      new InlineExecutor({ clock: new VirtualClock() }),
      'is an executor, and a plugin is wanted here: name it under worker.executor or use startWorker(address, { executor })',
    ],
    ['the class of an executor', InlineExecutor, 'is an executor'],
    ['undefined', undefined, 'it is undefined; is its import right?'],
    ['a list of plugins', [{}], 'it is a list; give its entries one by one'],
    ['a promise', Promise.resolve({}), 'it is a promise: await it first'],
    ['an entry', { use: './x.js' }, 'it is an entry of a configuration'],
    ['a module', { default: {} }, 'it is a module: give one of its exports'],
    ['a configuration', { scheduler: { plugins: [] } }, 'it is a configuration'],
    [
      'a definition of an unknown kind',
      { kind: 'extension', name: 'x', setup: () => undefined },
      'its kind is "extension"; there are plugin,',
    ],
    ['a number', 3, 'expected a definition made by definePlugin, a class or an instance'],
  ])('%s given as a plugin is refused with what it is', async (_name, what, says) => {
    expect(await refusal(what as object)).toContain(says);
  });

  it('a plugin given as a policy, and as a transport', async () => {
    const plugin = definePlugin({ name: 'p', apiVersion: 1, setup: () => undefined });
    await expect(startHost({ policies: { queuing: { use: plugin } } })).rejects.toThrow(
      'a policy is wanted here: name it under scheduler.plugins',
    );
    await expect(startHost({ transport: { use: plugin } })).rejects.toThrow(
      'a transport is wanted here: name it under scheduler.plugins',
    );
    await expect(
      startHost({ activeMemoryManager: { policies: [{ use: plugin }] } }),
    ).rejects.toThrow('it is a plugin, which belongs under scheduler.plugins');
  });

  it('a class or an object of which nothing would ever be called', async () => {
    class Idle {
      readonly options = {};
    }
    expect(await refusal(new Idle())).toContain('has neither a hook nor a method setup');
    expect(await refusal({ name: 'nothing' })).toContain('has neither a hook nor a method setup');
    expect(await refusal({ kind: 'plugin', name: 'x', apiVersion: 1 })).toContain(
      'setup must be a function; hooks are what it returns (got nothing)',
    );
  });
});

describe('what a plugin does wrong while it is made and set up', () => {
  it('a constructor that throws is reported with the options that it got', async () => {
    class Picky {
      constructor({ size }: { size: { value: number } }) {
        this.size = size.value;
      }
      readonly size: number;
      workerAdded(): void {
        /* A hook. */
      }
    }
    expect(await refusal(Picky, { sise: 1 })).toMatch(
      /^the constructor of Picky from Picky given in code threw: Cannot read.*; it got one argument, the options \{"sise":1\}$/,
    );
    await expect(
      startHost({ activeMemoryManager: { policies: [{ use: throwingPolicy() }] } }),
    ).rejects.toThrow('the constructor of Throwing from Throwing given in code threw: no idea');
  });

  it.each<[what: string, register: (context: PluginContext) => void, says: string]>([
    [
      'twice under one name',
      (context) => {
        context.command('reset', () => 1);
        context.command('reset', () => 2);
      },
      'registers the command "reset" twice',
    ],
    [
      'without a name',
      (context) => context.command((() => 1) as never, undefined as never),
      "registers a command without a name: write context.command('name', handler)",
    ],
    [
      'without a handler',
      (context) => context.command('reset', undefined as never),
      'registers the command "reset" without a function',
    ],
  ])('a command %s is refused', async (_what, register, says) => {
    const setup = (context: PluginContext): void => register(context);
    expect(await refusal(definePlugin({ name: 'p', apiVersion: 1, setup }))).toContain(says);
  });
});

describe('what setup asks of its context and cannot get is refused', () => {
  const inSetup = (use: (context: PluginContext) => unknown): object =>
    definePlugin({ name: 'p', apiVersion: 1, setup: (context) => void use(context) });

  it.each([
    ['1s', '"1s"'],
    [0, '0'],
    [-5, '-5'],
    [NaN, 'NaN'],
    [Infinity, 'Infinity'],
    [undefined, 'nothing'],
  ])('a timer every %s', async (interval, shown) => {
    const message = await refusal(
      inSetup((context) => context.every(interval as number, () => undefined)),
    );
    expect(message).toContain(
      `every() of plugin "p" takes a number of milliseconds above 0, got ${shown}`,
    );
  });

  it('a timer that calls nothing', async () => {
    const message = await refusal(inSetup((context) => context.every(10, undefined as never)));
    expect(message).toContain('every() of plugin "p" takes a function to call, got nothing');
  });

  it.each(['on', 'once', 'off'] as const)(
    'events.%s of an event that does not exist',
    async (how) => {
      const { events } = (await startHost()).scheduler;
      expect(() => events[how]('worker-add' as 'worker-added', () => undefined)).toThrow(
        'there is no event "worker-add"; did you mean "worker-added"?; there are worker-added,',
      );
    },
  );

  it('a listener that is no function', async () => {
    const { events } = (await startHost()).scheduler;
    expect(() => events.on('worker-added', 'notify' as never)).toThrow(
      'a listener of the event "worker-added" must be a function',
    );
  });

  it.each<[what: string, use: (context: PluginContext) => unknown]>([
    ['get', (context) => context.get(undefined as never)],
    ['provide', (context) => context.provide(undefined as never, {})],
  ])('%s with an undefined token', async (how, use) => {
    const message = await refusal(inSetup(use));
    expect(message).toContain(
      `${how}() of plugin "p" takes a token, got nothing; is its import right?`,
    );
  });

  it('a service that it provides twice', async () => {
    const service = token<number>('twice');
    const message = await refusal(
      inSetup((context) => {
        context.provide(service, 1);
        context.provide(service, 2);
      }),
    );
    expect(message).toContain('plugin "p" provides the service "twice" twice');
  });

  it.each<[returned: unknown, shown: string]>([
    [5, '5'],
    ['hooks', '"hooks"'],
    [true, 'true'],
    [[{}], '[{}]'],
    [() => undefined, 'function (anonymous)'],
  ])('setup that returns %o', async (returned, shown) => {
    const setup = (): never => returned as never;
    for (const plugin of [
      definePlugin({ name: 'p', apiVersion: 1, setup }),
      { name: 'p', setup, workerAdded: () => undefined },
    ]) {
      expect(await refusal(plugin)).toContain(
        `its setup returned ${shown}: it returns the hooks of the plugin as an object, or nothing`,
      );
    }
  });
});

describe('a definition is checked field by field', () => {
  const fields = { kind: 'plugin', name: 'p', apiVersion: 1, setup: (): void => undefined };

  it.each<[what: string, wrong: object, says: string]>([
    [
      'a misspelt field',
      { optionSchema: {} },
      'there is no field "optionSchema"; did you mean "optionsSchema"?',
    ],
    ['a hook beside setup', { workerAdded: () => undefined }, 'there is no field "workerAdded"'],
    ['a list of text', { requires: 'amm' }, 'requires must be a list of names (got "amm")'],
    ['a schema', { optionsSchema: 'none' }, 'optionsSchema must be a JSON schema'],
    ['no version', { apiVersion: undefined }, 'for which version it is written: apiVersion: 1'],
    ['a load that is no function', { load: {} }, 'load must be a function'],
    ['providers that are no list', { provide: {} }, 'provide must be a list of providers'],
  ])('%s', async (_what, wrong, says) => {
    expect(await refusal({ ...fields, ...wrong })).toContain(says);
  });

  it('while fields that are for people are left alone', async () => {
    const host = await startHost();
    expect(await host.scheduler.addPlugin({ ...fields, version: '1.2.3', homepage: 'x' })).toBe(
      'p',
    );
  });

  it('a class with a misspelt schema', async () => {
    class Counter {
      static optionSchema = { type: 'object' };
      workerAdded(): void {
        /* A hook. */
      }
    }
    expect(await refusal(Counter, {})).toContain(
      'has a static "optionSchema", which nothing reads; did you mean "optionsSchema"?',
    );
  });
});

describe('a definition that is missing or empty is refused where it is written', () => {
  const module = 'file:///srv/tasks.js';
  const definers: readonly (readonly [
    name: string,
    define: (definition: never) => unknown,
    code: string,
    shape: string,
  ])[] = [
    ['definePlugin', definePlugin, 'ERR_PLUGIN_LOAD', '{ name, apiVersion: 1, setup }'],
    ['defineWorkerPlugin', defineWorkerPlugin, 'ERR_PLUGIN_LOAD', '{ name, apiVersion: 1, setup }'],
    ['defineNannyPlugin', defineNannyPlugin, 'ERR_PLUGIN_LOAD', '{ name, apiVersion: 1, setup }'],
    [
      'definePolicy',
      (given) => definePolicy('ordering', given),
      'ERR_PLUGIN_LOAD',
      '{ name, apiVersion: 1, create }',
    ],
    ['defineTransport', defineTransport, 'ERR_PLUGIN_LOAD', '{ name, apiVersion: 1, create }'],
    [
      'defineAmmPolicy',
      defineAmmPolicy,
      'ERR_PLUGIN_LOAD',
      '{ name, apiVersion: 1, *run(amm, options) { … } }',
    ],
    ['defineConfig', defineConfig, 'ERR_CONFIG', '{ scheduler: { … }, worker: { … } }'],
    [
      'defineTasks',
      (given) => defineTasks(module, given),
      'ERR_FUNCTION_MISSING',
      '{ parse, merge }',
    ],
  ];
  const nothing = (): void => undefined;
  const run = function* (): Generator {
    /* It suggests nothing. */
  };
  const mistakes: readonly (readonly [given: unknown, shown: string])[] = [
    [undefined, 'nothing'],
    [null, 'null'],
    ['mine', '"mine"'],
    [nothing, 'function nothing'],
    [[], '[]'],
    [{}, '{}'],
  ];
  const everything = definers
    .flatMap(([name, define, code, shape]) =>
      mistakes.map(([given, shown]) => ({ name, define, code, shape, given, shown })),
    )
    // In a configuration everything has a default.
    .filter(({ name, shown }) => name !== 'defineConfig' || shown !== '{}');

  it.each(everything)('$name($shown)', ({ name, define, code, shape, given, shown }) => {
    expect(() => define(given as never)).toThrow(
      expect.objectContaining({
        code,
        message: expect.stringMatching(new RegExp(`^${name} wants .*, got `)) as string,
      }),
    );
    expect(() => define(given as never)).toThrow(`such as ${shape}, got ${shown}`);
  });

  it.each([
    [
      { name: 'mine' },
      'definition of the policy mine is not right: it does not say for which version it is written: apiVersion: 1; run must be a generator function, *run(amm, options) { … } (got nothing)',
    ],
    [
      { name: 'mine', run: [] },
      'run must be a generator function, *run(amm, options) { … } (got [])',
    ],
    [
      { name: 'mine', run: async () => Promise.resolve() },
      'run must be a generator function, *run(amm, options) { … }, without async',
    ],
    [{ name: '', run }, 'name must be text that is not empty (got "")'],
    [{ run }, 'name must be text that is not empty (got nothing)'],
  ])('a function policy of the memory manager without one of its parts: %o', (given, says) => {
    expect(() => defineAmmPolicy(given as never)).toThrow(says);
  });

  it.each([
    [undefined, 'nothing'],
    ['orderng', '"orderng"'],
    [{ name: 'mine', apiVersion: 1, create: () => ({}) }, '{"name":"mine","apiVersion":1}'],
  ])('definePolicy without the name of a slot: %o', (slot, shown) => {
    expect(() =>
      definePolicy(slot as never, { name: 'mine', apiVersion: 1, create: () => ({}) as never }),
    ).toThrow(
      `definePolicy wants the name of a slot first, one of workerSelection, queuing, ordering, fairness, stealing, got ${shown}`,
    );
  });
});

const WHAT = ['timer', 'async timer', 'observer'] as const;

describe('onError holds for timers and observers as for hooks', () => {
  const failing = (what: (typeof WHAT)[number]) =>
    definePlugin({
      name: 'failing',
      apiVersion: 1,
      setup: (context) => {
        const fail = (): void => {
          throw new Error('oops');
        };
        const failLater = (): unknown => Promise.reject(new Error('oops'));
        if (what === 'timer') context.every(100, fail);
        if (what === 'async timer') context.every(100, failLater);
        if (what === 'observer') context.get(BRIDGE).observe({ workerAdded: fail });
      },
    });
  const trigger = async (host: TestHost, times: number): Promise<void> => {
    for (let count = 0; count < times; count++) {
      const address = `inmemory://w${count}`;
      host.scheduler.enqueue({
        op: 'register-worker',
        identity: identityOf(address),
        status: 'running',
      });
      await host.clock.advanceAsync(100);
    }
  };
  const infoOf = (host: TestHost) => host.scheduler.plugins.find(({ name }) => name === 'failing');

  it.each(WHAT)('disable takes the plugin of a %s away', async (what) => {
    const host = await startHost({ plugins: [{ use: failing(what), onError: 'disable' }] });
    await trigger(host, 3);
    expect(infoOf(host)).toMatchObject({ enabled: false, errorCount: 1 });
  });

  it.each(WHAT)('crash closes the scheduler of a %s', async (what) => {
    const host = await startHost({ plugins: [{ use: failing(what), onError: 'crash' }] });
    await trigger(host, 1);
    expect(host.scheduler.crash?.message).toMatch(
      /onError is crash: (a timer|the hook workerAdded) of plugin "failing"/,
    );
  });

  it.each(WHAT)('a %s that fails again and again is logged at 1, 2, 4, 8', async (what) => {
    const host = await startHost({ plugins: [failing(what)] });
    await trigger(host, 9);
    expect(infoOf(host)).toMatchObject({ enabled: true, errorCount: 9 });
    expect(
      host.log.messages.map((message) => /\(failure (\d+) of/.exec(message ?? '')?.[1]),
    ).toEqual([undefined, undefined, '4', '8']);
  });

  it('hooks that fail again and again are logged at 1, 2, 4, 8 as well', async () => {
    const hook = definePlugin({
      name: 'failing',
      apiVersion: 1,
      setup: () => ({
        workerAdded: () => {
          throw new Error('oops');
        },
      }),
    });
    const host = await startHost({ plugins: [hook] });
    await trigger(host, 9);
    expect(infoOf(host)).toMatchObject({ errorCount: 9 });
    expect(host.log.messages).toHaveLength(4);
  });

  it('a hook for errors that throws is not called with its own failure', async () => {
    let calls = 0;
    const loop = definePlugin({
      name: 'failing',
      apiVersion: 1,
      setup: ({ report }) => ({
        errorReported: () => {
          calls++;
          throw new Error('again');
        },
        workerAdded: () => report(new Error('first') as never),
      }),
    });
    const host = await startHost({ plugins: [loop] });
    await trigger(host, 1);
    expect(calls).toBe(1);
  });

  it('observers end with their plugin', async () => {
    const seen: string[] = [];
    const listening = definePlugin({
      name: 'listening',
      apiVersion: 1,
      setup: (context) => {
        context.get(BRIDGE).observe({ workerAdded: ({ name }) => void seen.push(name) });
      },
    });
    const host = await startHost({ plugins: [listening] });
    await trigger(host, 1);
    await host.scheduler.removePlugin('listening');
    host.scheduler.enqueue({
      op: 'register-worker',
      identity: identityOf('inmemory://late'),
      status: 'running',
    });
    expect(seen).toEqual(['inmemory://w0']);
  });

  it('an async hook is reported once, and each rejection counts', async () => {
    const slow = definePlugin({
      name: 'failing',
      apiVersion: 1,
      setup: () => ({
        workerAdded: (() => Promise.reject(new Error('late'))) as unknown as () => void,
      }),
    });
    const host = await startHost({ plugins: [slow] });
    await trigger(host, 3);
    expect(infoOf(host)).toMatchObject({ errorCount: 4 });
    expect(host.log.messages).toEqual([
      expect.stringContaining('returned a promise'),
      expect.stringContaining('threw: late'),
      expect.stringContaining('threw: late'),
    ]);
  });
});

function throwingPolicy(): object {
  return class Throwing extends ActiveMemoryManagerPolicy {
    constructor() {
      super({});
      throw new Error('no idea');
    }
    override *run(): SuggestionGenerator {
      /* Never made. */
    }
  };
}

describe('a transport is checked', () => {
  const methods = { listen: () => undefined, connect: () => undefined };
  const definition = (create: () => unknown): object =>
    defineTransport({ name: 'own', apiVersion: 1, create: create as never });

  it.each<[string, object, string]>([
    [
      'a transport without a scheme',
      methods,
      'its scheme must be the part of its addresses before',
    ],
    ['one that cannot connect', { scheme: 'own', listen: methods.listen }, 'its connect must be'],
    [
      'a definition whose transport has no scheme',
      definition(() => methods),
      'what create of own from own given in code returned is no transport that can be used: its scheme must be',
    ],
    [
      'a definition that makes nothing',
      definition(() => undefined),
      'create of own from own given in code returned nothing',
    ],
    ['a definition without create', definition(undefined as never), 'create must be a function'],
  ])('%s is refused', async (_what, transport, says) => {
    await expect(startHost({ transport: { use: transport } })).rejects.toMatchObject({
      code: 'ERR_PLUGIN_LOAD',
      message: expect.stringContaining(says) as string,
    });
  });

  it('also one that is given in code', async () => {
    const make = (given: object): Promise<unknown> =>
      loadTransports([given as never], new PluginResolver({}, '.'), new VirtualClock());
    await expect(make(methods)).rejects.toThrow('given in code is no transport that can be used');
    await expect(make(definition(() => methods))).rejects.toThrow(
      'what create of own from own given in code returned is no transport',
    );
  });
});

describe('a command that throws is named, with its plugin', () => {
  class Refused extends Error {}
  const commands = definePlugin({
    name: 'counter',
    apiVersion: 1,
    setup(context) {
      context.command('reset', () => {
        throw new TypeError('no such thing');
      });
      context.command('later', () => Promise.reject(new Error('too late')));
      context.command('refuse', () => {
        throw new Refused('on purpose');
      });
    },
  });

  it.each([
    ['reset', 'the command "counter.reset" of plugin "counter" threw: no such thing'],
    ['later', 'the command "counter.later" of plugin "counter" threw: too late'],
  ])('%s', async (command, message) => {
    const host = await startHost({ plugins: [commands] });
    const client = await host.client();
    await expect(
      client.request('command', { command: `counter.${command}`, parameters: {} }),
    ).rejects.toMatchObject({ code: 'ERR_PLUGIN_HOOK', message });
  });

  it('but an error of a class of its own arrives as it is', async () => {
    const host = await startHost({ plugins: [commands] });
    const client = await host.client();
    await expect(
      client.request('command', { command: 'counter.refuse', parameters: {} }),
    ).rejects.toMatchObject({ message: 'on purpose' });
  });
});

describe('what a definition made', () => {
  const nothing = (): void => undefined;
  const store = { has: nothing, read: nothing, write: nothing, delete: nothing };
  const { write, ...unwritten } = store;
  const close = nothing;
  class Spelt {
    threadCount = 1;
    close = nothing;
    runn = nothing;
    helper = nothing;
  }

  it.each<[string, () => void, string]>([
    ['runn', () => checkExecutor({ threadCount: 1, runn: nothing, close }, 'x'), 'mean "run"'],
    ['runn in a class', () => checkExecutor(new Spelt(), 'x'), 'method "runn"; did you mean "run"'],
    ['wirte', () => checkStore({ ...unwritten, wirte: write }, 'x'), 'mean "write"'],
    ['forget', () => checkStore({ ...store, forget: nothing }, 'x'), 'its method "forget"'],
  ])('is refused with a method %s', (_what, made, says) => {
    expect(made).toThrow(says);
  });

  it('may have methods of its own that begin with _, and in a class any', () => {
    checkStore({ ...store, _own: nothing }, 'x');
    checkExecutor(Object.assign(new Spelt(), { run: nothing, runn: undefined }), 'x');
  });
});
