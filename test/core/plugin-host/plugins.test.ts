import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import {
  BRIDGE,
  definePlugin,
  definePolicy,
  type PluginContext,
  type SchedulerPlugin,
  token,
  type WorkerSelection,
  YardmasterError,
} from '../../../core/api/index.ts';
import { RemotePlugins } from '../../../core/plugin-host/plugin-host.ts';
import { checkConfig } from '../../../core/scheduler-host/create-scheduler.ts';
import { builtins } from '../../../adapters/app/builtin-extensions.ts';
import { configuration } from '../../../adapters/app/config.ts';
import { identityOf, MemoryLog, settle, TestHost, startHost } from '../../kit/test-host.ts';
import { InMemoryTransport } from '../../../adapters/transports/memory.ts';
import { VirtualClock } from '../../../adapters/clocks/index.ts';

const folders: string[] = [];

async function folderWith(files: Readonly<Record<string, string>>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'yardmaster-plugins-'));
  folders.push(folder);
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  return folder;
}

afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true });
});

async function errorOf(promise: Promise<unknown>): Promise<YardmasterError> {
  const error: unknown = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(YardmasterError.is(error)).toBe(true);
  return error as YardmasterError;
}

/** A plugin that writes down what happens to it. */
function diary(name: string, lines: string[], more: object = {}) {
  return definePlugin({
    name,
    apiVersion: 1,
    setup: () => {
      lines.push(`${name} setup`);
      return {
        start: () => void lines.push(`${name} start`),
        workerAdded: (worker) => void lines.push(`${name} sees ${worker.name}`),
        beforeClose: () => void lines.push(`${name} beforeClose`),
        close: () => void lines.push(`${name} close`),
      };
    },
    ...more,
  });
}

function addWorker(host: TestHost, name: string): void {
  host.scheduler.enqueue({
    op: 'register-worker',
    identity: identityOf(`inmemory://${name}`, { name }),
    status: 'running',
  });
}

describe('the life of a plugin', () => {
  it('goes setup, start, hooks in order, and ends in reverse', async () => {
    const lines: string[] = [];
    const host = await startHost({ plugins: [diary('a', lines), diary('b', lines)] });
    addWorker(host, 'w1');
    await host.close();
    expect(lines).toEqual([
      ...['a setup', 'b setup', 'a start', 'b start', 'a sees w1', 'b sees w1'],
      ...['b beforeClose', 'a beforeClose', 'b close', 'a close'],
    ]);
  });

  it('has a module, options with defaults, and a class form', async () => {
    const folder = await folderWith({
      'counter.mjs': `
        export default {
          kind: 'plugin', name: 'counter', apiVersion: 1,
          optionsSchema: { type: 'object', properties: {
            every: { type: 'integer', minimum: 1, default: 7 }, pause: { type: 'number', unit: 'ms' } } },
          setup: ({ command }, options) => { command('options', () => options); },
        };
        export class Greeter {
          constructor(options) { this.options = options; }
          setup({ command }) { command('options', () => this.options); }
        }`,
    });
    await writeFile(
      join(folder, 'cluster.yaml'),
      `scheduler:
  plugins:
    - { use: ./counter.mjs, options: { pause: 3s } }
    - { use: './counter.mjs#Greeter', options: { greeting: hi } }
`,
    );
    const host = await TestHost.start({ config: join(folder, 'cluster.yaml') });
    expect(host.scheduler.command('counter.options')).toEqual({ every: 7, pause: 3000 });
    expect(host.scheduler.command('Greeter.options')).toEqual({ greeting: 'hi' });
    expect(host.scheduler.plugins.map(({ name, source }) => `${name}: ${source}`)).toEqual([
      'amm: built-in amm',
      'work-stealing: built-in work-stealing',
      'coordination: built-in coordination',
      'report: built-in report',
      'counter: ./counter.mjs',
      'Greeter: ./counter.mjs',
    ]);
  });

  it('all problems of all plugins are reported together, with their places', async () => {
    const folder = await folderWith({
      'counter.mjs': `export default { kind: 'plugin', name: 'counter', apiVersion: 1,
        optionsSchema: { type: 'object', required: ['every'],
          properties: { every: { type: 'integer', minimum: 1 } } }, setup: () => undefined };`,
      'old.mjs': `export default { kind: 'plugin', name: 'old', apiVersion: 0, setup() {} };`,
      'cluster.yaml': `scheduler:
  policies: { queuing: { use: depth-first } }
`,
      'plugins.yaml': `scheduler:
  plugins:
    - { use: ./counter.mjs, options: { every: 0, evry: 1 } }
    - { use: ./counter.mjs }
    - { use: metrcs }
    - { use: ./old.mjs }
    - { use: ./counter.mjs, options: { every: 1 } }
    - { use: ./counter.mjs, options: { every: 2 } }
`,
    });
    const messageOf = async (file: string): Promise<string[]> => {
      const clock = new VirtualClock();
      const config = join(folder, file);
      const error = await errorOf(
        checkConfig({ config, configuration, builtins, clock, log: new MemoryLog() }),
      );
      return error.message.replaceAll(folder, 'FOLDER').split('\n');
    };
    expect(await messageOf('plugins.yaml')).toEqual([
      'the configuration has 6 problems:',
      '  FOLDER/plugins.yaml:3:47: scheduler.plugins[0].options.every must be a whole number of at least 1 (got 0) — counter from ./counter.mjs',
      '  FOLDER/plugins.yaml:3:50: scheduler.plugins[0].options.evry is not known; did you mean "every"? — counter from ./counter.mjs',
      '  FOLDER/plugins.yaml:4:7: scheduler.plugins[1].options.every must be a whole number of at least 1 (got nothing) — counter from ./counter.mjs',
      '  FOLDER/plugins.yaml:5:14: scheduler.plugins[2].use: unknown plugin "metrcs": nothing of that name is built in, and no package of that name can be imported from FOLDER; a package has to be installed there',
      '  FOLDER/plugins.yaml:6:14: scheduler.plugins[3].use: old (./old.mjs) cannot be loaded: it is written for version 0 of the contract of extensions, and this is version 1: install a newer version of it, or change it as docs/plugins.md#versions says',
      '  FOLDER/plugins.yaml:8:14: scheduler.plugins[5].use: there are two plugins "counter", from ./counter.mjs at FOLDER/plugins.yaml:7:14: scheduler.plugins[4].use and from ./counter.mjs at FOLDER/plugins.yaml:8:14: scheduler.plugins[5].use; remove one, or give it another name',
    ]);
    expect(await messageOf('cluster.yaml')).toEqual([
      'FOLDER/cluster.yaml:2:31: scheduler.policies.queuing.use: depth-first (built-in depth-first) is a policy for ordering and cannot fill queuing: name it under scheduler.policies.ordering, or define it for queuing',
    ]);
  });

  it('a setup that throws stops the boot, closes what was set up, and names the plugin', async () => {
    const lines: string[] = [];
    const failing = definePlugin({
      name: 'failing',
      apiVersion: 1,
      setup: () => {
        throw new Error('no database');
      },
    });
    const error = await errorOf(startHost({ plugins: [diary('a', lines), failing] }));
    expect(error.code).toBe('ERR_PLUGIN_SETUP');
    expect(error.message).toBe(
      'plugin "failing" (failing given in code) failed in setup: no database',
    );
    expect(error.data).toEqual({ plugin: 'failing', phase: 'setup' });
    expect((error.cause as Error).message).toBe('no database');
    expect(lines).toEqual(['a setup', 'a beforeClose', 'a close']);
  });

  it('a setup that never ends fails after ten seconds and says the likely cause', async () => {
    const host = await startHost();
    const adding = errorOf(
      host.scheduler.addPlugin(
        definePlugin({
          name: 'stuck',
          apiVersion: 1,
          setup: () => new Promise<void>(() => undefined),
        }),
      ),
    );
    await settle(host.clock);
    await host.clock.advanceAsync(10_000);
    const error = await adding;
    expect(error.message).toBe(
      'plugin "stuck" (stuck given in code) did not finish setup within 10 s; it probably awaits a promise that never settles',
    );
    expect(host.scheduler.plugins.map(({ name }) => name)).toEqual([
      'amm',
      'work-stealing',
      'coordination',
      'report',
    ]);
  });

  it('what a setup makes after its time is closed', async () => {
    const host = await startHost();
    const lines: string[] = [];
    let end: (instance: object) => void = () => undefined;
    const setup = (): Promise<object> => new Promise((resolve) => (end = resolve));
    const adding = errorOf(
      host.scheduler.addPlugin(definePlugin({ name: 'late', apiVersion: 1, setup })),
    );
    await settle(host.clock);
    await host.clock.advanceAsync(10_000);
    await adding;
    end({ close: () => void lines.push('closed') });
    await settle(host.clock);
    expect(lines).toEqual(['closed']);
  });

  it('timers of a plugin end with it', async () => {
    const lines: string[] = [];
    const host = await startHost();
    const plugin = definePlugin({
      name: 'timed',
      apiVersion: 1,
      setup: ({ clock }) => {
        clock.setTimer(100, () => void lines.push('late'));
      },
    });
    await host.scheduler.addPlugin(plugin);
    await host.scheduler.removePlugin('timed');
    await host.clock.advanceAsync(200);
    expect(lines).toEqual([]);
  });

  it('a plugin that is gone does not close the scheduler', async () => {
    const host = await startHost();
    const plugin = definePlugin({
      name: 'gone',
      apiVersion: 1,
      setup: ({ clock }) => {
        return {
          close: () => {
            setTimeout(
              () =>
                clock.setTimer(1, () => {
                  throw new Error('late');
                }),
              0,
            );
          },
        };
      },
    });
    await host.scheduler.addPlugin(plugin, { onError: 'crash' });
    await host.scheduler.removePlugin('gone');
    await new Promise((resolve) => setTimeout(resolve, 10));
    await host.clock.advanceAsync(200);
    expect(host.scheduler.crash).toBeUndefined();
  });

  it('a start may take as long as its plugin says', async () => {
    const host = await startHost();
    let end = (): void => undefined;
    const adding = host.scheduler.addPlugin(
      definePlugin({
        name: 'patient',
        apiVersion: 1,
        setup: () => ({
          startTimeoutMs: Infinity,
          start: () => new Promise<void>((resolve) => (end = resolve)),
        }),
      }),
    );
    await settle(host.clock);
    await host.clock.advanceAsync(600_000);
    end();
    await adding;
    expect(host.scheduler.plugins.map(({ name }) => name)).toContain('patient');
  });

  it('a start that fails takes the plugin out again', async () => {
    const lines: string[] = [];
    const host = await startHost();
    const plugin = definePlugin({
      name: 'halfway',
      apiVersion: 1,
      setup: () => ({
        start: () => Promise.reject(new Error('port taken')),
        close: () => void lines.push('closed'),
      }),
    });
    const error = await errorOf(host.scheduler.addPlugin(plugin));
    expect(error.message).toBe(
      'plugin "halfway" (halfway given in code) failed in start: port taken',
    );
    expect(lines).toEqual(['closed']);
    expect(host.scheduler.plugins.map(({ name }) => name)).toEqual([
      'amm',
      'work-stealing',
      'coordination',
      'report',
    ]);
  });

  it('an error in close is reported, and the others are closed', async () => {
    const lines: string[] = [];
    const bad = { name: 'bad', close: () => Promise.reject(new Error('stuck file')) };
    const host = await startHost({ plugins: [diary('a', lines), bad] });
    await host.close();
    expect(lines.at(-1)).toBe('a close');
    expect(host.log.messages).toContain(
      'plugin "bad" (bad given in code) failed in close: stuck file',
    );
  });

  it('requires is checked at boot and on removal', async () => {
    const lines: string[] = [];
    const b = diary('b', lines, { requires: ['a'] });
    const early = await errorOf(startHost({ plugins: [b, diary('a', lines)] }));
    expect(early.message).toBe('plugin "b" requires "a"; list it before "b"');
    const host = await startHost({ plugins: [diary('a', lines), b] });
    const late = await errorOf(host.scheduler.removePlugin('a'));
    expect(late.message).toBe(
      'plugin "a" cannot be removed: plugin "b" requires it; remove that first',
    );
  });

  it('removal ends timers, commands, services and the signal', async () => {
    let ticks = 0;
    let signal: AbortSignal | undefined;
    const service = token<number>('answer');
    const plugin = definePlugin({
      name: 'ticker',
      apiVersion: 1,
      setup: (context) => {
        signal = context.signal;
        context.every(100, () => {
          ticks++;
        });
        context.command('ticks', () => ticks);
        context.provide(service, 42);
      },
    });
    const reader = (name: string) =>
      definePlugin({
        name,
        apiVersion: 1,
        setup: (context) => {
          context.command('read', () => context.get(service));
        },
      });
    const host = await startHost({ plugins: [plugin, reader('reader')] });
    expect(host.scheduler.command('reader.read')).toBe(42);
    await host.clock.advanceAsync(1000);
    expect(host.scheduler.command('ticker.ticks')).toBe(10);
    await host.scheduler.removePlugin('ticker');
    await host.clock.advanceAsync(1000);
    expect(ticks).toBe(10);
    expect(signal?.aborted).toBe(true);
    expect(() => host.scheduler.command('ticker.ticks')).toThrow(
      'there is no command "ticker.ticks"',
    );
    expect(() => host.scheduler.command('reader.read')).toThrow(
      'no plugin provides the service "answer"; list the plugin that does before the one that asks',
    );
    await expect(host.scheduler.removePlugin('ticker')).rejects.toThrow(
      'there is no plugin "ticker" to remove; there are amm, work-stealing, coordination, report, reader',
    );
  });

  it('its commands that are not answered fail when it is removed, replaced, disabled or closed', async () => {
    const waiter = (more: object = {}) =>
      definePlugin({
        name: 'waiter',
        apiVersion: 1,
        setup: ({ command, signal }) => {
          command('never', () => new Promise(() => undefined));
          command('aborted', () => {
            return new Promise((_resolve, reject) => {
              signal.addEventListener('abort', () => reject(new Error('said by the plugin')));
            });
          });
          return more;
        },
      });
    const host = await startHost({ plugins: [waiter()] });
    const ask = (name: string): Promise<unknown> => {
      const answer = host.scheduler.command(`waiter.${name}`) as Promise<unknown>;
      answer.catch(() => undefined);
      return answer;
    };
    const gone = { code: 'ERR_CLOSED', data: { plugin: 'waiter' } };
    const [pending, aborted] = [ask('never'), ask('aborted')];
    await host.scheduler.removePlugin('waiter');
    await expect(pending).rejects.toMatchObject(gone);
    await expect(aborted).rejects.toThrow('said by the plugin');

    await host.scheduler.addPlugin(waiter());
    const before = ask('never');
    await host.scheduler.addPlugin(waiter());
    await expect(before).rejects.toMatchObject(gone);

    await host.scheduler.removePlugin('waiter');
    const breaking = {
      eventLogged: () => {
        throw new Error('no');
      },
    };
    await host.scheduler.addPlugin(waiter(breaking), { onError: 'disable' });
    const [disabled, said] = [ask('never'), ask('aborted')];
    host.scheduler.enqueue({ op: 'log-event', topics: ['x'], message: 1 });
    await settle(host.clock);
    await expect(disabled).rejects.toMatchObject(gone);
    await expect(said).rejects.toThrow('said by the plugin');

    await host.scheduler.removePlugin('waiter');
    await host.scheduler.addPlugin(waiter());
    const last = ask('never');
    await host.scheduler.close();
    await expect(last).rejects.toMatchObject(gone);
  });

  it('a built-in plugin that is removed is not in the report any more', async () => {
    const host = await startHost();
    expect(host.scheduler.bootReport()).toContain('- work-stealing');
    await host.scheduler.removePlugin('work-stealing');
    expect(host.scheduler.bootReport()).not.toContain('work-stealing');
    expect(host.scheduler.bootReport()).toContain('- amm');
  });

  it('two plugins cannot provide one service', async () => {
    const service = token<number>('one');
    const provider = (name: string) =>
      definePlugin({
        name,
        apiVersion: 1,
        setup: ({ provide }) => provide(service, 1),
      });
    const host = await startHost({ plugins: [provider('first')] });
    const error = await errorOf(host.scheduler.addPlugin(provider('second')));
    expect(error.message).toContain(
      'plugin "second" cannot provide the service "one": plugin "first" does already; remove one of both',
    );
    expect(host.scheduler.plugins.map(({ name }) => name)).toEqual([
      'amm',
      'work-stealing',
      'coordination',
      'report',
      'first',
    ]);
  });

  it('a timer that throws is reported and continues', async () => {
    const host = await startHost({
      plugins: [
        definePlugin({
          name: 'ticker',
          apiVersion: 1,
          setup: (context) => {
            context.every(100, () => {
              throw new Error('tick failed');
            });
          },
        }),
      ],
    });
    await host.clock.advanceAsync(250);
    expect(host.log.messages).toEqual(
      Array(2).fill('a timer of plugin "ticker" threw: tick failed'),
    );
    expect(host.scheduler.plugins.at(-1)?.errorCount).toBe(2);
  });
});

describe('plugins at run time', () => {
  it('an instance of a class is added, counts, and is found by its class name', async () => {
    class Counter implements SchedulerPlugin {
      workers = 0;
      workerAdded(): void {
        this.workers++;
      }
    }
    const host = await startHost();
    const counter = new Counter();
    const added: string[] = [];
    host.scheduler.events.on('plugin-added', (name) => added.push(name));
    expect(await host.scheduler.addPlugin(counter)).toBe('Counter');
    addWorker(host, 'w1');
    expect(counter.workers).toBe(1);
    await host.scheduler.removePlugin('Counter');
    addWorker(host, 'w2');
    expect(counter.workers).toBe(1);
    expect(added).toEqual(['Counter']);
  });

  it('the same name replaces and closes the old one, in its place', async () => {
    const lines: string[] = [];
    const host = await startHost({ plugins: [diary('a', lines), diary('b', lines)] });
    lines.length = 0;
    await host.scheduler.addPlugin(
      definePlugin({
        name: 'a',
        apiVersion: 1,
        setup: () => ({ workerAdded: () => void lines.push('new a') }),
      }),
    );
    addWorker(host, 'w1');
    expect(lines).toEqual(['a close', 'new a', 'b sees w1']);
    expect(host.scheduler.plugins.map(({ name }) => name)).toEqual([
      'amm',
      'work-stealing',
      'coordination',
      'report',
      'a',
      'b',
    ]);
  });

  it('idempotent keeps the old one', async () => {
    const lines: string[] = [];
    const host = await startHost({ plugins: [diary('a', lines)] });
    lines.length = 0;
    await host.scheduler.addPlugin(diary('a', lines), { idempotent: true });
    addWorker(host, 'w1');
    expect(lines).toEqual(['a sees w1']);
  });

  it('a replacement that fails leaves the old one at work', async () => {
    const lines: string[] = [];
    const host = await startHost({ plugins: [diary('a', lines)] });
    lines.length = 0;
    const failing = definePlugin({
      name: 'a',
      apiVersion: 1,
      setup: () => Promise.reject(new Error('broken')),
    });
    await errorOf(host.scheduler.addPlugin(failing));
    addWorker(host, 'w1');
    expect(lines).toEqual(['a sees w1']);
  });

  it('one that a replacement took the place of is set up again when that cannot start', async () => {
    const lines: string[] = [];
    const host = await startHost({ plugins: [diary('a', lines), diary('b', lines)] });
    const start = (): never => {
      throw new Error('port taken');
    };
    const failing = definePlugin({ name: 'a', apiVersion: 1, setup: () => ({ start }) });
    expect(await errorOf(host.scheduler.addPlugin(failing))).toMatchObject({
      message: expect.stringContaining('failed in start: port taken') as string,
    });
    lines.length = 0;
    addWorker(host, 'w1');
    expect(lines).toEqual(['a sees w1', 'b sees w1']);
  });

  it('a plain object needs a name, and an arrow function is no plugin', async () => {
    const host = await startHost();
    await expect(host.scheduler.addPlugin({ workerAdded: () => undefined })).rejects.toThrow(
      "a plugin that is given as a plain object needs a name: { name: 'counter', … }",
    );
    await expect(host.scheduler.addPlugin(() => undefined)).rejects.toThrow('is no plugin');
  });

  it('what a plugin enqueues in a hook runs after the present stimulus', async () => {
    const order: string[] = [];
    const host = await startHost({
      plugins: [
        definePlugin({
          name: 'follower',
          apiVersion: 1,
          setup: ({ enqueue }) => ({
            workerAdded: (worker, id) => {
              order.push(`added ${worker.name} ${id}`);
              if (worker.name !== 'w1') return;
              enqueue({
                op: 'register-worker',
                identity: identityOf('inmemory://w2', { name: 'w2' }),
                status: 'running',
              });
              order.push('enqueued');
            },
          }),
        }),
      ],
    });
    host.scheduler.events.on('worker-added', (worker) => order.push(`told ${worker.name}`));
    addWorker(host, 'w1');
    expect(order).toEqual([
      'added w1 register-worker-1',
      'enqueued',
      'told w1',
      'added w2 register-worker-2',
      'told w2',
    ]);
  });
});

describe('onError', () => {
  const thrower = {
    name: 'thrower',
    calls: 0,
    workerAdded(): void {
      this.calls++;
      throw new Error('oops');
    },
  };

  it('log: the scheduler continues, and so does the plugin', async () => {
    const host = await startHost({ plugins: [{ use: { ...thrower } }] });
    const errors: string[] = [];
    host.scheduler.events.on('error', ({ code, message }) => errors.push(`${code} ${message}`));
    addWorker(host, 'w1');
    addWorker(host, 'w2');
    expect(host.scheduler.cluster.workers.size).toBe(2);
    expect(errors).toEqual(
      Array(2).fill('ERR_PLUGIN_HOOK the hook workerAdded of plugin "thrower" threw: oops'),
    );
    expect(host.scheduler.plugins.at(-1)).toMatchObject({
      name: 'thrower',
      enabled: true,
      errorCount: 2,
      hooks: [{ hook: 'workerAdded', calls: 2, errors: 2 }],
    });
  });

  it('disable: the plugin is not called again', async () => {
    const instance = { ...thrower };
    const host = await startHost({ plugins: [{ use: instance, onError: 'disable' }] });
    addWorker(host, 'w1');
    addWorker(host, 'w2');
    expect(instance.calls).toBe(1);
    expect(host.scheduler.plugins.at(-1)).toMatchObject({ name: 'thrower', enabled: false });
  });

  it('crash: the scheduler says why and closes', async () => {
    const crashes: YardmasterError[] = [];
    const host = await startHost(
      { plugins: [{ use: { ...thrower }, onError: 'crash' }] },
      { onCrash: (error: YardmasterError) => crashes.push(error) },
    );
    let closed = false;
    host.scheduler.events.on('closed', () => (closed = true));
    addWorker(host, 'w1');
    addWorker(host, 'w2');
    await host.settle();
    expect(crashes.map(({ code, message }) => `${code} ${message}`)).toEqual([
      'ERR_PLUGIN_HOOK the scheduler closes: plugin "thrower" failed and its onError is crash: the hook workerAdded of plugin "thrower" threw: oops',
    ]);
    expect(host.scheduler.crash).toBe(crashes[0]);
    expect(closed).toBe(true);
    expect(host.scheduler.cluster.workers.size).toBe(1);
  });
});

describe('slots', () => {
  /** Prefers the worker whose name sorts last. */
  const lastByName: WorkerSelection = {
    score: (_task, worker) => -worker.name.charCodeAt(worker.name.length - 1),
  };
  const place = (host: TestHost, key: string): string | undefined => {
    host.scheduler.enqueue({ op: 'register-client', client: 'c' });
    host.scheduler.enqueue({
      op: 'update-graph',
      client: 'c',
      tasks: [{ key, dependencies: [], runSpec: 'f', workers: ['w1', 'w2', 'w3'] }],
      keys: [key],
    });
    return host.scheduler.cluster.tasks.get(key)?.processingOn?.name;
  };
  const three = (host: TestHost): void => {
    for (const name of ['w1', 'w2', 'w3']) addWorker(host, name);
  };

  it('an instance given in code fills a slot', async () => {
    const host = await startHost({ policies: { workerSelection: lastByName } });
    three(host);
    expect(place(host, 'x')).toBe('w3');
    expect(host.scheduler.bootReport()).toContain('- workerSelection: ');
  });

  it('a plugin fills a slot for as long as it is there', async () => {
    const host = await startHost({
      plugins: [
        definePlugin({
          name: 'last',
          apiVersion: 1,
          setup: ({ providePolicy }) => providePolicy('workerSelection', lastByName),
        }),
      ],
    });
    three(host);
    expect(place(host, 'x')).toBe('w3');
    expect(host.scheduler.plugins.at(-1)?.slots).toEqual(['workerSelection']);
    await host.scheduler.removePlugin('last');
    expect(place(host, 'y')).toBe('w1');
  });

  it('a policy of a configured plugin stays when the configured policy is restored', async () => {
    const filling = definePlugin({
      name: 'last',
      apiVersion: 1,
      setup: ({ providePolicy }) => providePolicy('workerSelection', lastByName),
    });
    const host = await startHost({ plugins: [filling] });
    const { policies } = host.scheduler;
    const inCharge = policies.current.workerSelection;
    await policies.restore('workerSelection');
    expect(policies.current.workerSelection).toBe(inCharge);
    three(host);
    expect(place(host, 'x')).toBe('w3');
    await host.scheduler.removePlugin('last');
    await host.scheduler.addPlugin(filling);
    const late = await errorOf(policies.restore('workerSelection'));
    expect(late.code).toBe('ERR_SLOT');
    expect(late.message).toMatch(
      /plugin "last", which the configuration does not list, .*removePlugin/,
    );
    await host.scheduler.removePlugin('last');
    await policies.restore('workerSelection');
    expect(policies.current.workerSelection).toBe('locality-first');
  });

  it('two transports of one scheme are refused with the places of both', async () => {
    const clock = new VirtualClock();
    const transports = [new InMemoryTransport(clock), new InMemoryTransport(clock)];
    const twice = await errorOf(TestHost.start({ transports }));
    expect(twice.code).toBe('ERR_CONFIG');
    expect(twice.message).toMatch(/^transports\[0\] and transports\[1\] both speak .*"inmemory"/);
  });

  it('two providers of one slot are named both', async () => {
    const provider = (name: string) =>
      definePlugin({
        name,
        apiVersion: 1,
        setup: ({ providePolicy }) => providePolicy('workerSelection', lastByName),
      });
    const twice = await errorOf(startHost({ plugins: [provider('one'), provider('two')] }));
    expect(twice.code).toBe('ERR_SLOT');
    expect(twice.message).toBe(
      'the slot workerSelection has two providers: "one" from plugin "one" and "two" from plugin "two"; remove one of both',
    );
    const host = await startHost({ policies: { workerSelection: 'earliest-start' } });
    const late = await errorOf(host.scheduler.addPlugin(provider('one')));
    expect(late.message).toBe(
      'the slot workerSelection has two providers: "earliest-start" from the configuration and "one" from plugin "one"; remove one of both',
    );
  });

  it('a policy is replaced while tasks run, by definition, class, instance or name', async () => {
    const host = await startHost();
    three(host);
    expect(place(host, 'a')).toBe('w1');
    await host.scheduler.replacePolicy('workerSelection', lastByName);
    expect(place(host, 'b')).toBe('w3');
    const byLetter = definePolicy('workerSelection', {
      name: 'by-letter',
      apiVersion: 1,
      optionsSchema: {
        type: 'object',
        required: ['letter'],
        properties: { letter: { type: 'string' } },
      },
      create: ({ letter }) => ({
        score: (_task, worker) => (worker.name.endsWith(letter) ? 0 : 1),
      }),
    });
    await host.scheduler.replacePolicy('workerSelection', byLetter, { letter: '2' });
    expect(place(host, 'c')).toBe('w2');
    class Last {
      score = lastByName.score;
    }
    await host.scheduler.replacePolicy('workerSelection', Last);
    expect(place(host, 'd')).toBe('w3');
    await host.scheduler.replacePolicy('workerSelection', 'earliest-start');
    expect(place(host, 'e')).toBe('w1');
    await expect(
      host.scheduler.replacePolicy('workerSelection', byLetter, { later: '2' }),
    ).rejects.toThrow('options.later is not known; did you mean "letter"? — by-letter');
    await expect(host.scheduler.replacePolicy('queuing', lastByName)).rejects.toThrow(
      'cannot fill the slot queuing: it has no method isRootish',
    );
    const both = { score: () => 0, select: () => undefined };
    await expect(
      host.scheduler.replacePolicy('workerSelection', both as never),
    ).rejects.toMatchObject({
      code: 'ERR_SLOT',
      message: expect.stringContaining('it has both score and select; keep one') as string,
    });
    await expect(
      host.scheduler.replacePolicy('workerSelection', { admits: () => true }),
    ).rejects.toThrow('it has no method score or select');
  });

  it('a policy that throws is reported, and the built-in one decides', async () => {
    const host = await startHost({
      validate: false, // A check asks each policy once more.
      policies: {
        workerSelection: {
          name: 'shaky',
          score: () => {
            throw new Error('division by zero');
          },
        },
      },
    });
    three(host);
    expect(place(host, 'x')).toBe('w1');
    expect(host.log.messages[0]).toContain(
      'policy "shaky" of slot workerSelection threw: division by zero',
    );
  });
});

it('the context of a plugin has twelve members; what few plugins need is a service', async () => {
  let members: string[] = [];
  const curious = definePlugin({
    name: 'curious',
    apiVersion: 1,
    setup: (context) => {
      members = Object.keys({ ...context });
      expect(Object.keys({ ...context.get(BRIDGE) })).toContain('connect');
    },
  });
  await startHost({ plugins: [curious] });
  expect(members).toHaveLength(12);
});

it('an error that a plugin reports again and again is counted, and logged ever more rarely', async () => {
  let context: PluginContext | undefined;
  const failing = definePlugin({
    name: 'failing',
    apiVersion: 1,
    setup: (given) => {
      context = given;
    },
  });
  const host = await startHost({ plugins: [failing] });
  for (let count = 0; count < 7; count++) {
    context!.report(new YardmasterError('ERR_POLICY', 'the policy is stuck'));
  }
  context!.report(new YardmasterError('ERR_POLICY', 'the policy is slow'));
  expect(host.log.messages).toEqual([
    'the policy is stuck',
    'the policy is stuck',
    'the policy is stuck (failure 4 of this kind)',
    'the policy is slow',
  ]);
  expect(host.scheduler.plugins.find(({ name }) => name === 'failing')?.errorCount).toBe(8);
});

describe('checkConfig', () => {
  it('loads and checks everything, sets nothing up, and shows the tree', async () => {
    const lines: string[] = [];
    const report = await checkConfig({
      config: { scheduler: { policies: { queuing: 'co-assign' }, plugins: [diary('a', lines)] } },
      configuration,
      builtins,
      clock: new VirtualClock(),
      log: new MemoryLog(),
    });
    expect(lines).toEqual([]);
    expect(report.split('\n')).toEqual([
      'policies',
      '- workerSelection: locality-first',
      '- queuing: co-assign',
      '- ordering: depth-first',
      '- fairness: fifo',
      '- stealing: calm',
      'plugins',
      '- amm (built-in amm)',
      '    policies[0]: ReduceReplicas from built-in reduce-replicas',
      '- work-stealing (built-in work-stealing)',
      '- coordination (built-in coordination)',
      '- report (built-in report)',
      '- a (a given in code)',
    ]);
  });
});

describe('plugins that clients have registered, when a worker comes back', () => {
  const remotes = (refused: readonly string[] = []) => {
    const calls: string[] = [];
    const remote = new RemotePlugins(
      {
        add: ({ use }) => {
          calls.push(`add ${String(use)}`);
          return refused.includes(String(use))
            ? Promise.reject(new Error('no'))
            : Promise.resolve('');
        },
        remove: (name) => {
          calls.push(`remove ${name}`);
          return Promise.resolve(true);
        },
      },
      () => undefined,
    );
    return { remote, calls };
  };

  it('one that was replaced meanwhile is added again, and equal ones are left alone', async () => {
    const { remote, calls } = remotes();
    await remote.agree([
      { name: 'a', use: 'v1' },
      { name: 'b', use: 'b', options: { n: 1 } },
    ]);
    await remote.agree([
      { name: 'a', use: 'v2' },
      { name: 'b', use: 'b', options: { n: 1 } },
    ]);
    expect(calls).toEqual(['add v1', 'add b', 'add v2']);
  });

  it('one that could not be added is tried again', async () => {
    const { remote, calls } = remotes(['bad']);
    await remote.agree([{ name: 'a', use: 'bad' }]);
    await remote.agree([{ name: 'a', use: 'bad' }]);
    expect(calls).toEqual(['add bad', 'add bad']);
  });

  it('one that is added meanwhile is known afterwards', async () => {
    const { remote, calls } = remotes();
    const agreed = remote.agree([{ name: 'a', use: 'a' }]);
    await remote.answer({ op: 'plugin', action: 'add', plugin: { name: 'b', use: 'b' } });
    await agreed;
    await remote.agree([{ name: 'a', use: 'a' }]);
    expect(calls).toEqual(['add a', 'add b', 'remove b']);
  });
});
