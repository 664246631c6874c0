import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, it } from 'vitest';
import { defineWorkerPlugin } from '../../../core/api/index.ts';
import { LocalCluster } from '../../../adapters/app/local-cluster.ts';
import { startWorker } from '../../../adapters/app/start-worker.ts';
import { checkConfig, createScheduler } from '../../../adapters/app/start-scheduler.ts';
import { inc } from '../../adapters/client/tasks.ts';
import { Bench, SCHEDULER } from '../worker/hand-scheduler.ts';
import { diary } from '../worker/fixtures/worker-plugins.mjs';
import { limitLifetime } from '../../../adapters/app/lifetime.ts';
import { MemoryLog } from '../../bad-input/memory-log.ts';

const folder = fileURLToPath(new URL('../worker/fixtures', import.meta.url));
const MODULE = fileURLToPath(new URL('../worker/fixtures/worker-plugins.mjs', import.meta.url));
/** Whose workers load modules when they start, which takes real time. */
class PluginBench extends Bench {
  override async settle<T>(promise: Promise<T>): Promise<T> {
    const state = { isDone: false };
    const mark = (): void => void (state.isDone = true);
    promise.then(mark, mark);
    while (!state.isDone) {
      await new Promise((resolve) => setTimeout(resolve, 1));
      await this.pass(20);
    }
    return promise;
  }
}

const bench = (): Promise<PluginBench> => new PluginBench().listen();
beforeEach(() => {
  diary.length = 0;
});

describe('a plugin of a worker', () => {
  it('observes each step of each task, after it was set up and before it is torn down', async () => {
    const world = await bench();
    const plugins = [{ use: './worker-plugins.mjs', options: { label: 'a' } }];
    const worker = await world.startWorker('alice', { plugins, folder });
    const reports = await world.send(worker, world.compute('x', 'add', [1, 2]));
    expect(reports.map(({ op }) => op)).toEqual(['log-event', 'task-finished']);
    expect(reports[0]).toMatchObject({ topics: ['news'], message: { results: ['x'] } });
    await world.settle(worker.close());
    expect(diary).toEqual([
      'a: setup on alice',
      'a: x released→waiting',
      'a: x waiting→ready',
      'a: x ready→executing',
      'a: x executing→memory',
      'a: closing',
      'a: close on alice',
      'a: aborted',
    ]);
  });

  it('is also given as the definition, the class or the instance itself', async () => {
    const seen: string[] = [];
    const definition = defineWorkerPlugin({
      name: 'defined',
      apiVersion: 1,
      setup: () => ({
        taskTransition: (key, _start, finish) => void seen.push(`${key} ${finish}`),
      }),
    });
    class Status {
      setup(): void {
        seen.push('class');
      }
    }
    const world = await bench();
    const plugins = [definition, Status, { name: 'object', setup: () => void seen.push('object') }];
    const worker = await world.startWorker('alice', { plugins });
    await world.send(worker, world.compute('x', 'add', [1, 2]));
    expect(seen).toEqual(['class', 'object', 'x waiting', 'x ready', 'x executing', 'x memory']);
  });

  it('affects nothing else when it throws: it is logged, and the next plugin and the task continue', async () => {
    const world = await bench();
    const plugins = [{ use: './worker-plugins.mjs#Clumsy' }, { use: './worker-plugins.mjs' }];
    const worker = await world.startWorker('alice', { plugins, folder });
    const reports = await world.send(worker, world.compute('x', 'add', [1, 2]));
    expect(reports.map(({ op }) => op)).toContain('task-finished');
    await world.pass(1000);
    await world.settle(worker.close());
    expect(diary).toContain('steps: x executing→memory');
    expect(world.logged).toContain(
      'the hook taskTransition of plugin "Clumsy" threw: it dropped x',
    );
    expect(world.logged).toContain('a timer of plugin "Clumsy" threw: the timer is clumsy');
    expect(world.logged.some((line) => line.endsWith('failed in close: and the rest'))).toBe(true);
  });

  it('is detached, or closes its worker, when its entry says so', async () => {
    const world = await bench();
    const use = './worker-plugins.mjs#Clumsy';
    const calm = await world.startWorker('alice', {
      plugins: [{ use, onError: 'disable' }],
      folder,
    });
    await world.send(calm, world.compute('x', 'add', [1, 2]));
    expect(world.logged.filter((line) => line.includes('it dropped'))).toHaveLength(1);
    const strict = await world.startWorker('bob', { plugins: [{ use, onError: 'crash' }], folder });
    world.workers.get('bob')!.channel.send({ ...world.compute('y', 'add', [1, 2]) });
    const { error } = await world.settle(strict.finished);
    expect(error).toMatchObject({ code: 'ERR_PLUGIN_HOOK', data: { plugin: 'Clumsy' } });
  });

  it('whose setup fails or takes too long is left out, and the log says why', async () => {
    const world = await bench();
    const plugins = [
      { use: './worker-plugins.mjs#endless' },
      { use: './worker-plugins.mjs#refusing' },
    ];
    const worker = await world.startWorker('worker-1', { plugins, folder });
    const reports = await world.send(worker, world.compute('x', 'add', [1, 2]));
    expect(reports.map(({ op }) => op)).toContain('task-finished');
    expect(world.logged.filter((line) => line.includes('is not there'))).toEqual([
      expect.stringContaining('did not finish setup within 10 s'),
      expect.stringContaining('not with me'),
    ]);
  });

  it('of the same name as another one keeps the worker from starting, and both places are named', async () => {
    const world = await bench();
    const plugins = [{ use: './worker-plugins.mjs' }, { use: './worker-plugins.mjs#steps' }];
    const starting = world.startWorker('alice', { plugins, folder });
    await expect(starting).rejects.toMatchObject({ code: 'ERR_PLUGIN_LOAD' });
    await expect(starting).rejects.toThrow(
      /two worker plugins "steps", from .* at worker\.plugins\[0\]\.use and from .* at worker\.plugins\[1\]\.use/,
    );
    expect(diary).toEqual(['steps: setup on alice', 'steps: close on alice', 'steps: aborted']);
  });

  it.each([
    ['./nowhere.mjs', 'ERR_PLUGIN_LOAD', /does not exist/],
    ['./worker-plugins.mjs#diary', 'ERR_PLUGIN_LOAD', /is no worker-plugin/],
    ['./worker-plugins.mjs#ofTheScheduler', 'ERR_PLUGIN_LOAD', /is a plugin, and a worker-plugin/],
  ])('that is configured wrongly (%s) keeps the worker from starting', async (use, code, text) => {
    const world = await bench();
    const starting = world.startWorker('alice', { plugins: [{ use }], folder });
    await expect(starting).rejects.toMatchObject({ code });
    await expect(starting).rejects.toThrow(text);
    await world.pass(10_000);
    expect(world.clock.timerCount).toBe(0);
  });

  it('with options that it does not take keeps the worker from starting', async () => {
    const world = await bench();
    const plugins = [{ use: './worker-plugins.mjs', options: { lable: 'a' } }];
    await expect(world.startWorker('alice', { plugins, folder })).rejects.toMatchObject({
      code: 'ERR_CONFIG',
    });
  });

  it('hears that the scheduler is gone and back', async () => {
    const world = await bench();
    const plugins = [{ use: './worker-plugins.mjs' }];
    const worker = await world.startWorker('alice', {
      plugins,
      folder,
      onSchedulerLost: 'reconnect',
    });
    await world.goDown();
    await world.listen();
    await world.pass(1000);
    expect(diary.slice(1)).toEqual(['steps: lost', 'steps: back']);
    await world.settle(worker.close());
  });
});

/** Modules take real time to load, so the clock is real, too. */
function startCluster(workers: number): Promise<LocalCluster> {
  return LocalCluster.start({ mode: 'inline', workers, log: new MemoryLog() });
}

describe('a plugin that a client registers', () => {
  it('comes to all workers, and to those that come later before their first task', async () => {
    const cluster = await startCluster(2);
    const client = await cluster.client();
    const name = await client.registerWorkerPlugin({
      use: MODULE,
      options: { label: 'b' },
      name: 'mine',
    });
    expect(name).toBe('mine');
    expect([...diary].sort()).toEqual(['b: setup on worker-0', 'b: setup on worker-1']);
    await cluster.scaleTo(3);
    expect(diary).toContain('b: setup on worker-2');
    await client.submit(inc, 1).result();
    expect(diary.some((line) => line.includes('executing→memory'))).toBe(true);
    await client.unregisterWorkerPlugin('mine');
    expect(diary.filter((line) => line.includes('close'))).toHaveLength(3);
    diary.length = 0;
    await client.submit(inc, 2).result();
    await cluster.scaleTo(4);
    expect(diary).toEqual([]);
    await cluster.close();
  });

  it('takes the place of one of the same name, or leaves it', async () => {
    const cluster = await startCluster(1);
    const client = await cluster.client();
    const register = (label: string, idempotent = false): Promise<string> =>
      client.registerWorkerPlugin({ use: MODULE, options: { label }, name: 'one', idempotent });
    await register('first');
    await register('second');
    await register('third', true);
    expect(diary).toEqual([
      'first: setup on worker-0',
      'second: setup on worker-0',
      'first: close on worker-0',
      'first: aborted',
    ]);
    await cluster.close();
  });

  it('that one worker refuses is nowhere, and the client gets the worker and the reason', async () => {
    const cluster = await startCluster(2);
    const client = await cluster.client();
    const use = `${MODULE}#refusing`;
    const registering = client.registerWorkerPlugin({ use, name: 'r' });
    await expect(registering).rejects.toMatchObject({ code: 'ERR_PLUGIN_SETUP' });
    await expect(registering).rejects.toThrow(/1 of 2 workers refused it, .* not with me/);
    expect(diary).toEqual(['refusing: setup on worker-0', 'refusing: close on worker-0']);
    expect(await client.command('worker-plugins')).toEqual([]);
    await expect(client.unregisterWorkerPlugin('r')).rejects.toThrow(
      'no worker plugin "r" was registered',
    );
    await cluster.close();
  });

  it('must be a module that a worker can name', async () => {
    const cluster = await startCluster(1);
    const client = await cluster.client();
    const use = (() => 1) as unknown as string;
    await expect(client.registerWorkerPlugin({ use })).rejects.toThrow('code cannot travel');
    const missing = client.registerWorkerPlugin({ use: './nowhere.mjs' });
    await expect(missing).rejects.toThrow(/1 of 1 worker refused it, .* does not exist/);
    await cluster.close();
  });
});

describe('a module that is preloaded', () => {
  it('is set up before the worker, and torn down after it, in reverse order', async () => {
    const world = await bench();
    const worker = await world.settle(
      startWorker(SCHEDULER, {
        name: 'alice',
        executor: 'inline',
        preload: [
          { use: './preload.mjs', options: { label: 'one' } },
          { use: './preload.mjs', options: { label: 'bad' } },
        ],
        plugins: [{ use: './worker-plugins.mjs' }],
        folder,
        transports: [world.transport],
        clock: world.clock,
        log: new MemoryLog(),
      }),
    );
    await world.settle(worker.close());
    expect(diary).toEqual([
      'one: setup of a worker',
      'bad: setup of a worker',
      'steps: setup on alice',
      'steps: closing',
      'steps: close on alice',
      'steps: aborted',
      'bad: close of a worker',
      'one: close of a worker',
    ]);
  });

  it('is there for a scheduler, too; one that throws is logged', async () => {
    const log = new MemoryLog();
    const preload = [{ use: `${folder}/preload.mjs`, options: { label: 'bad' } }];
    const scheduler = await createScheduler({ config: { scheduler: { preload } }, log });
    await scheduler.close();
    expect(diary).toEqual(['bad: setup of a scheduler', 'bad: close of a scheduler']);
    expect(log.text).toContain('preload.mjs failed: it does not want to');
  });

  it('with a function teardown is refused with the name that is meant', async () => {
    const old = { setup: () => undefined, teardown: () => undefined };
    const config = { scheduler: { preload: [{ use: old }] } };
    await expect(createScheduler({ config, log: new MemoryLog() })).rejects.toThrow(
      'exports a function teardown, which nothing calls; did you mean "close"?',
    );
  });

  it('that does not exist, or has nothing to call, keeps the scheduler from starting', async () => {
    for (const [name, text] of [
      ['nowhere.mjs', 'does not exist'],
      ['worker-plugins.mjs', 'neither a function setup nor a function close'],
    ]) {
      const config = { scheduler: { preload: [`${folder}/${name}`] } };
      await expect(createScheduler({ config, log: new MemoryLog() })).rejects.toThrow(text);
    }
  });
});

describe('a configuration that is only checked', () => {
  it.each([
    [{ plugins: ['./nowhere.mjs'] }, 'does not exist'],
    [{ plugins: [`${MODULE}#ofTheScheduler`] }, 'a worker-plugin is wanted here'],
    [{ nannyPlugins: [MODULE] }, 'a nanny-plugin is wanted here'],
    [{ plugins: [{ use: MODULE, options: { lable: 1 } }] }, 'worker.plugins[0].options.lable'],
    [{ nannyPreload: [MODULE] }, 'neither a function setup nor a function close'],
  ])('has what workers need loaded: %j', async (worker, text) => {
    await expect(checkConfig({ config: { worker }, log: new MemoryLog() })).rejects.toThrow(text);
    expect(diary).toEqual([]);
  });
});

describe('the lifetime of a worker', () => {
  const LIFETIME = {
    lifetime: 60_000,
    lifetimeStagger: 0,
    lifetimeRestart: false,
    retireTimeout: 10_000,
  };

  it('ends with its results elsewhere and the worker closed; it may want to be started again', async () => {
    const world = await bench();
    const worker = await world.startWorker('alice');
    await world.send(worker, world.compute('x', 'add', [1, 2]));
    const told: unknown[] = [];
    world.answers.set('command', (parameters) => void told.push(parameters));
    const lifetime = { ...LIFETIME, lifetimeStagger: 10_000, lifetimeRestart: true };
    limitLifetime(worker, lifetime, { clock: world.clock, log: new MemoryLog() }, () => 0.25);
    await world.pass(54_000);
    expect(told).toEqual([]);
    await world.pass(1500);
    expect(told).toMatchObject([{ command: 'amm.retireSelf' }]);
    expect(await world.settle(worker.finished)).toEqual({
      reason: 'its lifetime of 55 s is over',
      restart: true,
    });
  });

  it('ends with the worker, however that came', async () => {
    const world = await bench();
    const worker = await world.startWorker('alice');
    const log = new MemoryLog();
    limitLifetime(worker, LIFETIME, { clock: world.clock, log });
    await world.settle(worker.close());
    await world.pass(10_000);
    expect(world.clock.timerCount).toBe(0);
  });
});
