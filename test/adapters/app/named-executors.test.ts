/** Executors that a configuration or options name. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { configuration } from '../../../adapters/app/config.ts';
import { builtins } from '../../../adapters/app/builtin-extensions.ts';
import { LocalCluster, type LocalClusterOptions } from '../../../adapters/app/local-cluster.ts';
import type { Submitter } from '../../../adapters/client/submitter.ts';
import { SystemClock } from '../../../adapters/clocks/index.ts';
import { InlineExecutor } from '../../../adapters/executors/inline.ts';
import { workerContext, type WorkerContext } from '../../../adapters/executors/worker-context.ts';
import {
  AllowedModules,
  packArguments,
  sourceVersion,
  type TaskFunction,
} from '../../../adapters/tasks/index.ts';
import { defineExecutor, type ExecutableTask } from '../../../core/api/index.ts';
import { checkConfig } from '../../../core/scheduler-host/create-scheduler.ts';
import { tasks } from '../fixtures/sample-tasks.mjs';

const folder = mkdtempSync(join(tmpdir(), 'yardmaster-executors-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

const add = tasks.add as unknown as TaskFunction<[number, number], number>;

/** An executor that says what it is made with. */
const seen: object[] = [];
const counting = defineExecutor({
  name: 'counting',
  apiVersion: 1,
  optionsSchema: {
    type: 'object',
    additionalProperties: false,
    properties: { limit: { type: 'integer', default: 3 } },
  } as const,
  create: (context, { limit }) => {
    const { threadCount, killGraceMs } = context;
    seen.push({ threadCount, killGraceMs, limit });
    return new InlineExecutor(context);
  },
});

async function sumWith(options: LocalClusterOptions): Promise<unknown> {
  const cluster = await LocalCluster.start({ workers: 1, ...options });
  try {
    return await (await cluster.client()).submit(add, 2, 3).result();
  } finally {
    await cluster.close();
  }
}

describe('a local cluster', () => {
  it('makes an executor by its definition, with options and the settings of the worker', async () => {
    const executor = { use: counting, options: { limit: 7 } };
    expect(await sumWith({ executor, threads: 4, killGraceMs: 250 })).toBe(5);
    expect(seen).toEqual([{ threadCount: 4, killGraceMs: 250, limit: 7 }]);
  });

  it('makes one for each worker, in the mode inline, too', async () => {
    seen.length = 0;
    expect(await sumWith({ executor: counting, workers: 2, mode: 'inline' })).toBe(5);
    expect(seen).toHaveLength(2);
  });

  it('takes an executor as an object for one worker, and refuses it for two', async () => {
    const make = () => new InlineExecutor({ clock: new SystemClock(), threadCount: 2 });
    expect(await sumWith({ executor: make() })).toBe(5);
    await expect(sumWith({ executor: make(), workers: 2 })).rejects.toMatchObject({
      code: 'ERR_EXECUTOR',
      message: expect.stringContaining('serves a worker already: give its definition') as string,
    });
  });

  it('sends no executor in code to processes', async () => {
    await expect(sumWith({ executor: counting, mode: 'processes' })).rejects.toThrow(
      'worker.executor is given in code, which cannot be sent to workers in separate processes; name its module',
    );
  });
});

describe('an executor that has to start before a task begins', () => {
  /** It starts for longer than the tasks may take. */
  class SlowToStart extends InlineExecutor {
    override async run(
      ...[task, signal, slot]: Parameters<InlineExecutor['run']>
    ): ReturnType<InlineExecutor['run']> {
      const begun = setTimeout(200);
      slot?.delay?.(begun);
      await begun;
      return super.run(task, signal, slot);
    }
  }
  const outcomeOf = async (call: (client: Submitter) => Promise<unknown>): Promise<unknown> => {
    const executor = new SlowToStart({ clock: new SystemClock(), threadCount: 1 });
    const cluster = await LocalCluster.start({ workers: 1, executor });
    try {
      return await call((await cluster.client()).with({ timeoutMs: 50 }));
    } finally {
      await cluster.close();
    }
  };

  it('has its tasks timed from when they begin', async () => {
    expect(await outcomeOf((client) => client.submit(add, 2, 3).result())).toBe(5);
  });

  it('has tasks stopped that take too long from then on', async () => {
    const ended = outcomeOf((client) => client.submit(tasks.waitForAbort as never).result());
    await expect(ended).rejects.toMatchObject({ code: 'ERR_TASK_TIMEOUT' });
  });
});

describe('check-config', () => {
  const check = (executor: unknown): Promise<string> => {
    const config = { worker: { executor } } as never;
    return checkConfig({ config, configuration, builtins, clock: new SystemClock() });
  };
  const misspelt = { ...counting, creat: () => ({}) };

  it.each([
    ['an unknown name', 'thread', 'unknown executor "thread"'],
    [
      'an unknown option',
      { use: counting, options: { limits: 2 } },
      'worker.executor.options.limits',
    ],
    ['a transport', 'tcp', 'is a transport, and an executor is wanted here'],
    ['another version', { use: { ...counting, apiVersion: 2 } }, 'written for version 2'],
    ['a misspelt field', { use: misspelt }, 'there is no field "creat"; did you mean "create"?'],
    ['a class', { use: InlineExecutor }, 'expected a definition made by defineExecutor'],
  ])('refuses %s as an executor', async (_what, executor, says) => {
    await expect(check(executor)).rejects.toThrow(says);
  });

  it('takes built-in executors and modules', async () => {
    writeFileSync(
      join(folder, 'own.mjs'),
      "export default { kind: 'executor', name: 'own', apiVersion: 1, create: () => ({ threadCount: 1, async run() {}, async close() {} }) };",
    );
    for (const executor of ['threads', 'inline', join(folder, 'own.mjs')]) await check(executor);
  });
});

it('an executor whose method is misspelt is refused with the right name', async () => {
  const executor = new InlineExecutor({ clock: new SystemClock() });
  const callActors = (): void => undefined;
  await expect(sumWith({ executor: Object.assign(executor, { callActors }) })).rejects.toThrow(
    'nothing calls its method "callActors"; did you mean "callActor"?',
  );
});

describe('the context of an executor', () => {
  const silent = (): void => undefined;
  const log = { debug: silent, info: silent, warn: silent, error: silent };
  const contextWith = (modules?: AllowedModules): WorkerContext =>
    workerContext({
      ...{ clock: new SystemClock(), log, threadCount: 1, killGraceMs: 100 },
      ...(modules && { cluster: { scheduler: 'tcp://127.0.0.1:1', transports: [], modules } }),
    });
  const taskOf = ({ module, name, version }: TaskFunction): ExecutableTask => {
    const { bytes } = packArguments([2, 3], () => undefined);
    return { key: 'x', runSpec: { module, name, version, args: bytes }, inputs: new Map() };
  };
  const task = taskOf(add);
  const { signal } = new AbortController();

  it('loads the call of a task without making it', async () => {
    const call = await contextWith().load(task);
    expect(call).toMatchObject({ name: 'add', args: [2, 3] });
    expect(call.fn(...call.args)).toBe(5);
  });

  it('refuses a setting of a run that does not exist', () => {
    const settings = { signal, cal: () => 1 };
    expect(() => contextWith().run(task, settings)).toThrow(
      'context.run: there is no setting "cal"; did you mean "call"?; there are signal, slot, call',
    );
  });

  it('loads no module that the worker does not permit', async () => {
    writeFileSync(join(folder, 'free.mjs'), 'export const free = () => 1;');
    const module = `file://${join(folder, 'free.mjs')}`;
    const free = taskOf({ module, name: 'free', version: sourceVersion(module) } as TaskFunction);
    const refused = { code: 'ERR_MODULE_REFUSED' };
    await expect(contextWith(new AllowedModules([])).load(free)).rejects.toMatchObject(refused);
    expect(await contextWith(new AllowedModules([])).run(free, { signal })).toMatchObject({
      kind: 'failure',
      error: refused,
    });
  });

  it('loads of a package only what defineTasks registered', async () => {
    const path = join(folder, 'node_modules/dependency');
    mkdirSync(path, { recursive: true });
    writeFileSync(join(path, 'index.mjs'), 'export const anything = () => 1;');
    const module = `file://${join(path, 'index.mjs')}`;
    const version = sourceVersion(module);
    const task = taskOf({ module, name: 'anything', version } as TaskFunction);
    await expect(contextWith(new AllowedModules([folder])).load(task)).rejects.toThrow(
      'of which only what defineTasks was given may be called',
    );
  });

  it('makes no actor', async () => {
    const result = await contextWith().run({ ...task, actorAt: 'here' }, { signal });
    expect(result).toMatchObject({ kind: 'failure', error: { code: 'ERR_EXECUTOR' } });
  });
});
