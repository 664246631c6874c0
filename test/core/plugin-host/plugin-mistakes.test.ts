import { describe, expect, it } from 'vitest';
import {
  BRIDGE,
  defineAmmPolicy,
  defineNannyPlugin,
  definePlugin,
  definePolicy,
  defineTransport,
  defineWorkerPlugin,
} from '../../../core/api/index.ts';
import { VirtualClock } from '../../../adapters/clocks/index.ts';
import { defineTasks } from '../../../adapters/tasks/define-tasks.ts';
import { defineConfig } from '../../../adapters/app/config.ts';
import { EnsureBroadcast } from '../../../policies/amm/ensure-broadcast.ts';
import { checkExecutor, checkStore } from '../../../core/plugin-host/contracts.ts';
import { loadTransports } from '../../../core/plugin-host/load-extensions.ts';
import { ModuleFiles } from '../../../core/plugin-host/module-files.ts';
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

  it.each<[name: string, what: object, place: string]>([
    [
      'an instance of an AMM policy',
      new EnsureBroadcast({ key: 'x' }),
      'scheduler.activeMemoryManager.policies',
    ],
    ['an AMM policy class', EnsureBroadcast, 'scheduler.activeMemoryManager.policies'],
    ['an AMM policy that extends nothing', Duck, 'scheduler.activeMemoryManager.policies'],
    ['a class with hooks of workers', OfWorkers, 'worker.plugins'],
    ['an instance with hooks of workers', new OfWorkers(), 'worker.plugins'],
    ['a class with hooks of nannies', OfNannies, 'worker.nannyPlugins'],
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
});

describe('a definition is checked field by field', () => {
  const fields = { kind: 'plugin', name: 'p', apiVersion: 1, setup: (): void => undefined };

  it('while fields that are for people are left alone', async () => {
    const host = await startHost();
    expect(await host.scheduler.addPlugin({ ...fields, version: '1.2.3', homepage: 'x' })).toBe(
      'p',
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

describe('a transport is checked', () => {
  const methods = { listen: () => undefined, connect: () => undefined };
  const definition = (create: () => unknown): object =>
    defineTransport({ name: 'own', apiVersion: 1, create: create as never });

  it('also one that is given in code', async () => {
    const make = (given: object): Promise<unknown> =>
      loadTransports(
        [given as never],
        new PluginResolver({}, new ModuleFiles('.')),
        new VirtualClock(),
      );
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
  class Spelt {
    threadCount = 1;
    close = nothing;
    runn = nothing;
    helper = nothing;
  }

  it('may have methods of its own that begin with _, and in a class any', () => {
    checkStore({ ...store, _own: nothing }, 'x');
    checkExecutor(Object.assign(new Spelt(), { run: nothing, runn: undefined }), 'x');
  });
});
