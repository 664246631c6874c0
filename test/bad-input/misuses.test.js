/**
 * Deliberate mistakes of authors who write their first extension in plain JavaScript, from the guides. What comes of each is
 * an error or a line of the log that names the thing, says what is wrong with it, and what to do.
 */
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import * as executors from '../../adapters/app/entries/executor.ts';
import * as forPlugins from '../../adapters/app/entries/plugin.ts';
import * as policies from '../../adapters/app/entries/policy.ts';
import { defineTransport } from '../../adapters/app/entries/transport.ts';
import { LocalCluster } from '../../adapters/app/local-cluster.ts';
import { checkConfig } from '../../adapters/app/start-scheduler.ts';
import { startWorker } from '../../adapters/app/start-worker.ts';
import { Client } from '../../adapters/client/index.ts';
import { VirtualClock } from '../../adapters/clocks/index.ts';
import { InlineExecutor } from '../../adapters/executors/inline.ts';
import { InMemoryTransport } from '../../adapters/transports/memory.ts';
import { startHost } from '../kit/test-host.ts';
import { bad } from './fixtures/bad-tasks.js';
import { MemoryLog } from './memory-log.ts';

const { BRIDGE, token, tokens } = forPlugins;
const { ActiveMemoryManagerPolicy, drop, replicate } = policies;

const folder = mkdtempSync(join(tmpdir(), 'yardmaster-misuses-'));
afterAll(() => rmSync(folder, { recursive: true }));

const nothing = () => undefined;
const ends = async () => undefined;
const forever = () => new Promise(nothing);
const fail = () => {
  throw new Error('oops');
};
const failText = () => {
  throw 'oops';
};

/** What the author of a mistake is told: lines of the log, warnings of the process, and the message of the error. */
async function told(act) {
  const log = new MemoryLog();
  const warned = ({ message }) => log.lines.push(message);
  process.on('warning', warned);
  try {
    await act(log);
  } catch (error) {
    log.lines.push(error.message);
  }
  process.off('warning', warned);
  return log.lines;
}

/** Rows: what is done, and three parts of one message: the name of the thing, the fault, the remedy. */
function misuses(what, rows) {
  describe(what, () => {
    it.each(Object.entries(rows))('%s', async (_title, [act, expected]) => {
      const lines = await told(act);
      const parts = expected.split(' | ');
      expect(parts).toHaveLength(3);
      const isClear = (line) => parts.every((part) => line.includes(part));
      expect(lines.filter(isClear), lines.join('\n')).not.toEqual([]);
    });
  });
}

// Ways to make a mistake.

const made = (define, name) => (fields) =>
  define({ name, apiVersion: 1, create: nothing, ...fields });
const plugin = (fields) =>
  forPlugins.definePlugin({ name: 'p', apiVersion: 1, setup: nothing, ...fields });
const policy = (slot, fields) =>
  policies.definePolicy(slot, { name: 'own', apiVersion: 1, create: nothing, ...fields });
const rule = made(policies.defineRule, 'own');
const transport = made(defineTransport, 'own');
const executor = made(executors.defineExecutor, 'own');
const store = made(executors.defineStore, 'own');
const workerPlugin = (fields) =>
  forPlugins.defineWorkerPlugin({ name: 'w', apiVersion: 1, setup: nothing, ...fields });

/** Adds a plugin to a scheduler that runs. */
const added = (given, options) => async () => {
  const { scheduler } = await startHost();
  await scheduler.addPlugin(given, options);
};
const defined = (wrong) =>
  added({ kind: 'plugin', name: 'p', apiVersion: 1, setup: nothing, ...wrong });
const inSetup = (setup) => added(plugin({ setup }));
const takes = (properties, more) =>
  plugin({ optionsSchema: { type: 'object', properties, ...more } });
const started = (section) => () => startHost(section);

/** Runs a few tasks on a cluster in this thread, after something else. */
const cluster =
  (options, act = nothing) =>
  async (log) => {
    const running = await LocalCluster.start({ mode: 'inline', workers: 1, log, ...options });
    try {
      const client = await running.client();
      if ((await act(client, running)) === 'enough') return;
      const roots = client.map(bad.echo, [1, 2, 3]);
      await client.gather(client.submit(bad.echo, roots));
    } finally {
      await running.close();
    }
  };
const scheduler = (section, act) => cluster({ config: { scheduler: section } }, act);
const hooks = (hooksOf, more) =>
  scheduler({
    plugins: [
      { use: plugin({ setup: typeof hooksOf === 'function' ? hooksOf : () => hooksOf }), ...more },
    ],
  });
const command = (declared, name, parameters) =>
  scheduler(
    { plugins: [plugin({ setup: (context) => void context.command('reset', ...declared) })] },
    (client) => client.command(name, parameters),
  );
/** A task that a policy gives to no worker waits. */
const waits = async (client) => {
  client.submit(bad.echo, 1).error().catch(nothing);
  await client.identity();
  return 'enough';
};
const filled = (slot, members, act) =>
  scheduler({ policies: { [slot]: policy(slot, { create: () => members }) } }, act);
const ruled = (members, weight = 1) =>
  scheduler({ policies: { rules: [{ use: rule({ create: () => members }), weight }] } });
const round = (run) =>
  scheduler(
    {
      activeMemoryManager: {
        start: false,
        policies: [policies.defineAmmPolicy({ name: 'own', apiVersion: 1, run })],
      },
    },
    async (client) => {
      const data = await client.scatter({ a: 1 });
      const { refusals } = await client.amm.runOnce();
      if (refusals.length > 0) throw new Error(refusals[0].example);
      return data && 'enough';
    },
  );
const managed = (use, options) =>
  started({ activeMemoryManager: { policies: [options === undefined ? use : { use, options }] } });
const carried = (create) =>
  cluster({
    transport: transport({ create: ({ clock }) => create(new InMemoryTransport(clock)) }),
    timeoutMs: 3000,
  });
/** A transport in memory with another method. */
const wired = (wrong) =>
  carried((inner) => ({
    scheme: inner.scheme,
    listen: (...given) => inner.listen(...given),
    connect: (...given) => inner.connect(...given),
    ...wrong,
  }));
/** An executor that runs tasks, with some members wrong. */
const running = (wrong, act) => {
  const create = (context) => {
    const inner = new InlineExecutor(context);
    const run = (...given) => inner.run(...given);
    return { threadCount: 1, run, close: () => inner.close(), ...wrong };
  };
  return cluster({ executor: executor({ create }) }, act);
};
let stores = 0;
/** Keeps a result in a store, some of whose methods are wrong. */
const kept = (methods, fields = 'apiVersion: 1') => {
  const name = `store-${stores++}.mjs`;
  const own =
    'has: async () => false, read: async () => {}, write: async () => {}, delete: async () => {}';
  const use = join(folder, name);
  const code = `export default { kind: 'store', name: 'own', create: () => ({ ${own}, ${methods} }), ${fields} };`;
  return async (log) => {
    writeFileSync(use, code);
    const keep = (client) => client.with({ persist: true }).submit(bad.echo, name).result();
    await cluster({ resultStore: { use } }, keep)(log);
  };
};
const local = (hooksOf, more) =>
  cluster({ config: { worker: { plugins: [workerPlugin({ setup: () => hooksOf, ...more })] } } });
const write = (text, modules) => {
  for (const [name, code] of Object.entries(modules)) {
    mkdirSync(join(folder, name, '..'), { recursive: true });
    writeFileSync(join(folder, name), code);
  }
  const path = join(folder, 'cluster.yaml');
  writeFileSync(path, text);
  return path;
};
/** Checks a file beside modules. */
const file =
  (text, modules = {}) =>
  () =>
    checkConfig({ config: write(text, modules), log: new MemoryLog() });
const plugins = (use, modules) => file(`scheduler: { plugins: ['${use}'] }`, modules);
/** The same in a process of its own, where Node loads the modules. */
const node = (name, code) => (log) => {
  const path = write(`scheduler: { plugins: [./${name}] }`, { [name]: code });
  const cli = join(fileURLToPath(import.meta.url), '../../../dist/bundle/cli.js');
  return new Promise((resolve) => {
    execFile(process.execPath, [cli, 'check-config', path], (_error, _out, errors) => {
      log.lines.push(errors);
      resolve();
    });
  });
};
/** Lets the time of a scheduler pass while a plugin hangs or fails. */
const living =
  (members, setup = () => members) =>
  async (log) => {
    const host = await startHost();
    const passing = async (change) => {
      change.catch(nothing);
      await host.clock.advanceAsync(11_000);
      await change;
    };
    await passing(host.scheduler.addPlugin(plugin({ setup })));
    await passing(host.scheduler.close());
    log.lines.push(...host.log.messages);
  };
/** Uses the context of a plugin that was removed. */
const late = (use) => async (log) => {
  const host = await startHost();
  let kept;
  await host.scheduler.addPlugin(plugin({ setup: (context) => void (kept = context) }));
  await host.scheduler.removePlugin('p');
  await use(kept);
  log.lines.push(...host.log.messages);
};

// prettier-ignore
misuses('the definition of a plugin', {
  'is missing': [() => forPlugins.definePlugin(),
    'definePlugin | got nothing | such as { name, apiVersion: 1, setup }'],
  'has no version': [defined({ apiVersion: undefined }),
    'plugin p | does not say for which version | apiVersion: 1'],
  'is of a later version': [defined({ apiVersion: 2 }),
    'p (p given in code) | is written for version 2 | update yardmaster, or install an older version of it; its author can write it for this version'],
  'is of an earlier version': [defined({ apiVersion: 0 }),
    'p (p given in code) | is written for version 0 | docs/plugins.md#versions'],
  'has its version in quotes': [defined({ apiVersion: '1' }),
    'p (p given in code) | (got "1") | must be the number 1'],
  'has a release as its version': [defined({ apiVersion: '0.1.0' }),
    'p (p given in code) | (got "0.1.0") | must be the number 1'],
  'has no name': [defined({ name: undefined }),
    'name | (got nothing) | must be text that starts with a letter'],
  'has a space in its name': [defined({ name: 'my counter' }),
    'plugin my counter | got "my counter" | text that starts with a letter and has letters, digits, - and _'],
  'has no setup': [defined({ setup: undefined }),
    'plugin p | setup | must be a function; hooks are what it returns'],
  'has hooks in the place of setup': [defined({ setup: { workerAdded: nothing } }),
    'plugin p | setup | hooks are what it returns'],
  'has hooks beside setup': [defined({ workerAdded: nothing }),
    'plugin p | there is no field "workerAdded" | there are kind, name, apiVersion'],
  'has a misspelt field': [defined({ optionSchema: {} }),
    'plugin p | there is no field "optionSchema" | did you mean "optionsSchema"?'],
  'has a misspelt list of requirements': [defined({ require: ['amm'] }),
    'plugin p | there is no field "require" | did you mean "requires"?'],
  'has a field that nothing reads': [defined({ after: ['amm'] }),
    'plugin p | there is no field "after" | requires, provide, load'],
  'has a schema in text': [defined({ optionsSchema: 'object' }),
    'plugin p | (got "object") | optionsSchema must be a JSON schema'],
  'has an unknown type in its schema': [added(takes({ n: { type: 'int' } })),
    'optionsSchema of p | properties.n.type | must be one of string, number, integer'],
  'has $ref in its schema': [added(takes({ n: { $ref: '#/n' } })),
    'optionsSchema of p | properties.n.$ref is not a known keyword | there are title'],
  'has a default that its schema refuses': [added(takes({ n: { type: 'integer', default: 'x' } })),
    'p from p given in code | options.n | must be a whole number'],
  'requires text': [defined({ requires: 'amm' }),
    'plugin p | requires | must be a list of names (got "amm")'],
  'requires what is not there': [defined({ requires: ['database'] }),
    'plugin "p" | requires "database" | list it before "p"'],
  'requires itself': [defined({ requires: ['p'] }),
    'plugin "p" | requires "p"; that is itself | take it out'],
  'requires what comes later': [started({ plugins: [plugin({ requires: ['b'] }), plugin({ name: 'b' })] }),
    'plugin "p" | requires "b" | list it before "p"'],
  'has a load that is no function': [defined({ load: {} }),
    'plugin p | load | must be a function (got {})'],
  'has a load that throws': [defined({ load: fail }),
    'load() of plugin "p" | threw | oops'],
  'has providers that are no list': [defined({ provide: {} }),
    'plugin p | provide | must be a list of providers, such as [{ token, useClass }]'],
  'provides nothing': [started({ plugins: [plugin({ provide: [{ token: tokens.SERVER_ID, useFactory: nothing }] })] }),
    '"server-id" | useFactory returned nothing | give the service itself'],
  'provides a promise': [started({ plugins: [plugin({ provide: [{ token: tokens.SERVER_ID, useFactory: ends }] })] }),
    '"server-id" | returned a promise | await it before, and give what it resolves to as useValue'],
  'provides in an unknown way': [started({ plugins: [plugin({ provide: [{ token: tokens.SERVER_ID, value: 'x' }] })] }),
    '"server-id" | needs | useClass, useFactory or useValue'],
  'provides at run time': [defined({ provide: [{ token: tokens.SERVER_ID, useValue: 'x' }] }),
    'the plugin "p" | "server-id" cannot be replaced | list the plugin in the configuration'],
  'comes twice': [started({ plugins: [plugin(), plugin()] }),
    'scheduler.plugins[1].use | two plugins "p" | remove one, or give it another name'],
  'declares no options': [added(plugin(), { options: { every: 1 } }),
    'p from p given in code | options.every is not known | describe it in an optionsSchema'],
  'has a misspelt option': [started({ plugins: [{ use: takes({ every: { type: 'integer' } }), options: { evry: 1 } }] }),
    'p from p | scheduler.plugins[0].options.evry is not known | did you mean "every"?'],
  'has an option of another type': [added(takes({ every: { type: 'integer' } }), { options: { every: 'ten' } }),
    'p from p | options.every | must be a whole number (got "ten")'],
  'has an option below its least': [added(takes({ every: { type: 'integer', minimum: 1 } }), { options: { every: 0 } }),
    'p from p | options.every | a whole number of at least 1 (got 0)'],
  'lacks an option that it requires': [added(takes({ url: { type: 'string' } }, { required: ['url'] })),
    'p from p | options.url | must be text (got nothing)'],
  'has a time that is none': [added(takes({ wait: { type: ['number', 'string'], unit: 'ms' } }), { options: { wait: '2 parsecs' } }),
    'p from p | options.wait | a time such as "2s"'],
  'has an unknown onError': [started({ plugins: [{ use: plugin(), onError: 'ignore' }] }),
    'scheduler.plugins[0].onError | (got "ignore") | one of log, disable, crash'],
  'has a misspelt key beside use': [started({ plugins: [{ use: plugin(), option: {} }] }),
    'scheduler.plugins[0] | .option is not known | did you mean "options"?'],
  'is undefined': [started({ plugins: [{ use: undefined }] }),
    'scheduler.plugins[0].use | (got nothing) | must be a name, a path or a package'],
});

// prettier-ignore
misuses('as a plugin is given', {
  'undefined': [added(undefined),
    'no plugin | it is undefined | is its import right?'],
  'a promise': [added(ends()),
    'no plugin | it is a promise | await it first'],
  'a module': [added({ default: {} }),
    'no plugin | it is a module | give one of its exports'],
  'a list': [added([plugin()]),
    'no plugin | it is a list | give its entries one by one'],
  'an entry': [added({ use: './counter.js' }),
    'no plugin | an entry of a configuration | give what its "use" names'],
  'a configuration': [added({ scheduler: {} }),
    'no plugin | it is a configuration | createScheduler({ config })'],
  'a number': [added(3),
    'Number given in code | is no plugin | a definition made by definePlugin, a class or an instance'],
  'a path that leads nowhere': [added('./counter.js'),
    '"./counter.js" | there is no file | paths are relative to'],
  'an object without a name': [added({ workerAdded: nothing }),
    `plugin | that is given as a plain object | needs a name: { name: 'counter'`],
  'a class of which nothing is called': [added(class Idle {}),
    'Idle | nothing of it would ever be called | neither a hook nor a method setup'],
  'a class whose constructor throws': [added(class Picky { constructor() { fail(); } workerAdded() {} }),
    'the constructor of Picky | threw: oops | it got one argument, the options {}'],
  'a class with a misspelt schema': [added(class Counter { static optionSchema = {}; workerAdded() {} }),
    'Counter | static "optionSchema", which nothing reads | did you mean "optionsSchema"?'],
  'a class of a later version': [added(class Counter { static apiVersion = 2; workerAdded() {} }),
    'Counter | written for version 2 | update yardmaster'],
  'an instance with options': [added({ name: 'p', workerAdded: nothing }, { options: { n: 1 } }),
    'p given in code | options.n is not known | leave it out'],
  'a class whose setup returns hooks': [added(class Counter { setup() { return { workerAdded: nothing }; } }),
    'plugin "Counter" | would never be called | make the hooks methods of the plugin itself'],
  'a policy': [added(policy('fairness')),
    'own | is a policy of the slot fairness | name it under scheduler.policies.fairness'],
  'a rule': [added(rule()),
    'own | is a rule | name it under scheduler.policies.rules'],
  'a policy of the Active Memory Manager': [added(policies.defineAmmPolicy({ name: 'own', apiVersion: 1, *run() {} })),
    'own | a policy of the Active Memory Manager | scheduler.activeMemoryManager.policies'],
  'a transport': [added(transport()),
    'own | is a transport | name it under scheduler.transport'],
  'an executor': [added(executor()),
    'own | is an executor | name it under worker.executor'],
  'a store': [added(store()),
    'own | is a store of results | name it under worker.resultStore'],
  'a plugin of workers': [added(workerPlugin()),
    'w | is a worker-plugin | name it under worker.plugins'],
  'an unknown kind': [added({ kind: 'extension', name: 'p', apiVersion: 1, setup: nothing }),
    'p given in code | its kind is "extension" | there are plugin, executor'],
  'a misspelt option of addPlugin': [added(plugin(), { option: {} }),
    'addPlugin | option is not known | did you mean "options"?'],
  'a name that is not there': [async () => (await startHost()).scheduler.removePlugin('counter'),
    '"counter" | there is no plugin | there are amm'],
  'one that others require': [async () => {
    const { scheduler } = await startHost({ plugins: [plugin(), plugin({ name: 'b', requires: ['p'] })] });
    await scheduler.removePlugin('p');
  },
    'plugin "p" cannot be removed | plugin "b" requires it | remove that first'],
});

// prettier-ignore
misuses('in the life of a plugin', {
  'setup throws': [inSetup(fail),
    'plugin "p" (p given in code) | failed in setup | oops'],
  'setup throws text': [inSetup(failText),
    'plugin "p" | failed in setup | something that is not an Error was thrown'],
  'setup hangs': [living({}, forever),
    'plugin "p" | did not finish setup within 10 s | awaits a promise that never settles'],
  'setup returns a number': [inSetup(() => 5),
    'plugin "p" | its setup returned 5 | returns the hooks of the plugin as an object, or nothing'],
  'setup returns a list': [inSetup(() => [{}]),
    'plugin "p" | its setup returned [{}] | returns the hooks of the plugin as an object, or nothing'],
  'start throws': [inSetup(() => ({ start: fail })),
    'plugin "p" (p given in code) | failed in start | oops'],
  'start hangs': [living({ start: forever }),
    'plugin "p" | did not finish start within 10 s | awaits a promise that never settles'],
  'startTimeoutMs is text': [inSetup(() => ({ start: nothing, startTimeoutMs: '5s' })),
    'plugin "p" | startTimeoutMs | a number of milliseconds above 0, got "5s"'],
  'beforeClose throws': [living({ beforeClose: fail }),
    'plugin "p" | failed in beforeClose | oops'],
  'close rejects': [living({ close: async () => fail() }),
    'plugin "p" | failed in close | oops'],
  'close hangs': [living({ close: forever }),
    'plugin "p" | did not finish close within 10 s | awaits a promise that never settles'],
  'a hook is misspelt': [inSetup(() => ({ taskTranstion: nothing })),
    'plugin "p" | hook "taskTranstion", which does not exist | did you mean "taskTransition"?'],
  "a hook has Dask's name": [inSetup(() => ({ add_worker: nothing })),
    'plugin "p" | hook "add_worker", which does not exist | did you mean "workerAdded"?'],
  'a hook of Dask is nowhere': [inSetup(() => ({ valid_workers_downscaling: nothing })),
    'plugin "p" | Dask has it, and nothing calls it here | remove it'],
  'a hook is of nannies': [inSetup(() => ({ processEnded: nothing })),
    'plugin "p" | hook "processEnded", which does not exist | only plugins of nannies have it'],
  'a hook is no function': [inSetup(() => ({ workerAdded: true })),
    'the hook workerAdded of plugin "p" | is neither a function | nor { order: '],
  'setup returns more than hooks': [inSetup(() => ({ workerAdded: nothing, reset: nothing })),
    'plugin "p" | hook "reset", which does not exist | there are admit, taskTransition'],
});

// prettier-ignore
misuses('a hook', {
  'throws': [hooks({ graphUpdated: fail }),
    'plugin "p" | the hook graphUpdated | threw: oops'],
  'throws text': [hooks({ graphUpdated: failText }),
    'plugin "p" | the hook graphUpdated | something that is not an Error was thrown'],
  'is async': [hooks({ graphUpdated: ends }),
    'the hook graphUpdated of plugin "p" | returned a promise, which is not awaited | make it synchronous'],
  'changes a task': [hooks({ taskTransition: (task) => void (task.retries = 3) }),
    'plugin "p" | set "retries" of the task "echo- | copy what is to be changed'],
  'adds to a task': [hooks({ taskTransition: (task) => void (task.seen = true) }),
    'plugin "p" | add "seen" to the task "echo- | keep it in a Map'],
  'deletes from a worker': [hooks({ workerAdded: (worker) => void delete worker.identity.name }),
    'plugin "p" | delete "name" of identity of the worker | copy what is to be changed'],
  'pushes to a list': [hooks({ taskTransition: (task) => task.dependencies.push(task) }),
    'plugin "p" | of dependencies of the task "echo- | copy what is to be changed'],
  'sorts a list': [hooks({ graphUpdated: ({ tasks }) => tasks.sort() }),
    'plugin "p" | it tried to set "0" of tasks | copy what is to be changed'],
  'changes a map': [hooks(({ cluster }) => ({ workerAdded: () => cluster.workers.clear() })),
    'plugin "p" | clear() on workers of the cluster | copy what is to be changed'],
  'changes a set': [hooks({ taskTransition: (task) => task.whoHas.add(1) }),
    'plugin "p" | add() on whoHas of the task "echo- | copy what is to be changed'],
  'is slow': [hooks({ clientAdded() { for (const end = Date.now() + 150; Date.now() < end; ); } }),
    'the hook clientAdded of plugin "p" | blocked the scheduler for | do less at once'],
  'of errors throws': [hooks({ graphUpdated: fail, errorReported: fail }),
    'plugin "p" | the hook errorReported | threw: oops'],
  'admits with nothing': [hooks({ admit: nothing }),
    `the hook admit of plugin "p" | its answer is nothing | instead of true or { refuse: 'why' }`],
  'admits with false': [hooks({ admit: () => false }),
    `the hook admit of plugin "p" | its answer is false | instead of true or { refuse: 'why' }`],
  'admits with text': [hooks({ admit: () => 'no' }),
    `the hook admit of plugin "p" | its answer is "no" | instead of true or { refuse: 'why' }`],
  'admits with a promise': [hooks({ admit: ends }),
    'the hook admit of plugin "p" | returned a promise | make it synchronous'],
  'refuses without a reason': [hooks({ admit: () => ({ refuse: true }) }),
    `the hook admit of plugin "p" | its answer is {"refuse":true} | instead of true or { refuse: 'why' }`],
  'changes the graph that it admits': [hooks({ admit: ({ tasks }) => tasks.pop() }),
    'plugin "p" | of tasks of the object that it was given | copy what is to be changed'],
});

// prettier-ignore
misuses('the context', {
  'has no timer of text': [inSetup(({ every }) => void every('1s', nothing)),
    'every() of plugin "p" | got "1s" | a number of milliseconds above 0'],
  'has no timer of 0': [inSetup(({ every }) => void every(0, nothing)),
    'every() of plugin "p" | got 0 | a number of milliseconds above 0'],
  'has no timer without a callback': [inSetup(({ every }) => void every(10)),
    'a timer of plugin "p" | got nothing | takes a function'],
  'has timers whose callback throws': [hooks(({ every }) => void every(1, fail)),
    'plugin "p" | a timer | threw: oops'],
  'has a clock that takes no text': [inSetup(({ clock }) => void clock.setTimer('1s', nothing)),
    'clock.setTimer() of plugin "p" | got "1s" | takes milliseconds'],
  'has a clock whose timer throws': [hooks(({ clock }) => void clock.setTimer(0, fail)),
    'plugin "p" | a timer | threw: oops'],
  'is misspelt': [inSetup(({ logger }) => void logger.info({}, 'x')),
    'the context of plugin "p" | has no "logger" | did you mean "log"?'],
  'is asked for what the bridge has': [inSetup((context) => void context.observe({})),
    'the context of plugin "p" | has no "observe" | context.get(BRIDGE) has it'],
  'is changed': [inSetup(({ cluster }) => void (cluster.tasks = new Map())),
    'plugin "p" | tried to set "tasks" of the cluster | copy what is to be changed'],
  'gets no token': [inSetup(({ get }) => void get()),
    'get() of plugin "p" | got nothing | is its import right?'],
  'gets by a name': [inSetup(({ get }) => void get('database')),
    'get() of plugin "p" | got "database" | takes a token'],
  'gets what nothing provides': [inSetup(({ get }) => void get(token('database'))),
    'plugin "p" | no plugin provides the service "database" | list the plugin that does before'],
  'provides by no token': [inSetup(({ provide }) => void provide({}, 1)),
    'provide() of plugin "p" | got {} | takes a token'],
  'provides twice': [inSetup(({ provide }) => void [1, 2].map((n) => provide(token('twice'), n))),
    'plugin "p" cannot provide the service "twice" | plugin "p" does already | remove one of both'],
  'provides what another one does': [async () => {
    const setup = ({ provide }) => void provide(token('database'), 1);
    await startHost({ plugins: [plugin({ setup }), plugin({ name: 'b', setup })] });
  },
    'plugin "b" | plugin "p" does already | remove one of both'],
  'enqueues nothing': [hooks(({ enqueue }) => ({ graphUpdated: () => enqueue() })),
    'enqueue(), as plugin "p" called it | stimulus | must be an object'],
  'enqueues an unknown op': [hooks(({ enqueue }) => ({ graphUpdated: () => enqueue({ op: 'log-evnt' }) })),
    'plugin "p" | "log-evnt" is not a stimulus | did you mean "log-event"?'],
  'enqueues without a field': [hooks(({ enqueue }) => ({ graphUpdated: () => enqueue({ op: 'log-event', message: 1 }) })),
    'plugin "p" | stimulus log-event | topics is missing'],
  'enqueues a wrong field': [hooks(({ enqueue }) => ({ graphUpdated: () => enqueue({ op: 'log-event', topics: 'x', message: 1 }) })),
    'plugin "p" | stimulus log-event | topics must be array (got "x")'],
  'runs an unknown command': [inSetup(({ run }) => run('retireWorkers')),
    'plugin "p" | there is no command "retireWorkers" | did you mean "restart-workers"?'],
  'runs with wrong parameters': [inSetup(({ run }) => run('why', { keys: 'x' })),
    'plugin "p" | the command "why": keys is not known | did you mean "key"?'],
  'reports text': [hooks(({ report }) => ({ graphUpdated: () => report('no database') })),
    'what plugin "p" reported | something that is not an Error was thrown | no database'],
  'reports a plain error': [hooks(({ report }) => ({ graphUpdated: () => report(new Error('no database')) })),
    'plugin "p" | what plugin "p" reported | no database'],
  'observes by a misspelt hook': [inSetup((context) => void context.get(BRIDGE).observe({ workerAdd: nothing })),
    'plugin "p" | hook "workerAdd", which does not exist | did you mean "workerAdded"?'],
  'asks for the policy of no slot': [inSetup((context) => void context.get(BRIDGE).policyIn('steal')),
    'plugin "p" | no policy slot "steal" | did you mean "stealing"?'],
  'listens to no event': [async () => (await startHost()).scheduler.events.on('worker-add', nothing),
    '"worker-add" | there is no event | did you mean "worker-added"?'],
  'listens with no function': [async () => (await startHost()).scheduler.events.on('worker-added'),
    'event "worker-added" | (got nothing) | must be a function'],
  'is used late: every': [late(({ every }) => every(1, nothing)),
    'plugin "p" | was closed when every() was called | when context.signal is aborted'],
  'is used late: enqueue': [late(({ enqueue }) => enqueue({ op: 'log-event', topics: ['x'], message: 1 })),
    'plugin "p" | was closed when enqueue() was called | when context.signal is aborted'],
  'is used late: command': [late((context) => context.command('x', nothing)),
    'plugin "p" | was closed when command() was called | when context.signal is aborted'],
  'is used late: provide': [late(({ provide }) => provide(token('database'), 1)),
    'plugin "p" | was closed when provide() was called | when context.signal is aborted'],
});

// prettier-ignore
misuses('a command', {
  'is there twice': [inSetup((context) => void [1, 2].map(() => context.command('reset', nothing))),
    'plugin "p" | registers the command "reset" twice | give one of both another name'],
  'has no name': [inSetup((context) => void context.command(nothing)),
    `plugin "p" | without a name | write context.command('name', handler)`],
  'has no handler': [inSetup((context) => void context.command('reset')),
    'plugin "p" | registers the command "reset" | without a function that handles it'],
  'has an unknown access': [inSetup((context) => void context.command('reset', { access: 'root' }, nothing)),
    'plugin "p" | command "reset" as "root" | one of any, worker, viewer, client, admin'],
  'has parameters that are no schema': [inSetup((context) => void context.command('reset', { parameters: { n: 'number' } }, nothing)),
    'plugin "p" | command "reset" | a JSON schema of type "object" with properties'],
  'has a schema around nothing': [inSetup((context) => void context.command('reset', { type: 'object', properties: {} }, nothing)),
    'plugin "p" | declares the command "reset" with "type" | write { parameters: … } around the schema'],
  'throws': [command([fail], 'p.reset'),
    'plugin "p" | the command "p.reset" | threw: oops'],
  'is called by another name': [command([nothing], 'p.rest'),
    '"p.rest" | there is no command | did you mean "p.reset"?'],
  'is called without its plugin': [command([nothing], 'reset'),
    '"reset" | there is no command | did you mean "p.reset"?'],
  'is called with wrong parameters': [command([{ parameters: { type: 'object', properties: { n: { type: 'integer' } } } }, nothing], 'p.reset', { n: 'x' }),
    'the command "p.reset" | n | must be a whole number (got "x")'],
});

// prettier-ignore
misuses('a policy', {
  'is for no slot': [() => policy('workerSelect'),
    'definePolicy | got "workerSelect" | one of workerSelection, queuing'],
  'is not said for which slot': [() => policies.definePolicy({ name: 'own', apiVersion: 1, create: nothing }),
    'definePolicy | got {"name":"own","apiVersion":1} | wants the name of a slot first'],
  'has no definition': [() => policies.definePolicy('ordering'),
    'definePolicy | got nothing | such as { name, apiVersion: 1, create }'],
  'has no version': [started({ policies: { ordering: policy('ordering', { apiVersion: undefined }) } }),
    'scheduler.policies.ordering.use | does not say for which version | apiVersion: 1'],
  'has no create': [started({ policies: { ordering: policy('ordering', { create: undefined }) } }),
    'policy own | (got nothing) | create must be a function'],
  'has its method beside create': [started({ policies: { ordering: policy('ordering', { order: nothing }) } }),
    'policy own | there is no field "order" | there are kind, slot, name'],
  'throws in create': [started({ policies: { ordering: policy('ordering', { create: fail }) } }),
    'create of own | threw | oops'],
  'has an async create': [started({ policies: { ordering: policy('ordering', { create: ends }) } }),
    'create of own | returned a promise | what it makes is needed at once'],
  'is not made': [filled('ordering', undefined),
    'create of own | returned nothing | it returns an object with methods'],
  'is made as its method': [filled('ordering', () => []),
    'create of own | returned function | it returns an object with methods'],
  'is of another slot': [started({ policies: { ordering: policy('fairness') } }),
    'own (own given in code) | is a policy for fairness and cannot fill ordering | name it under scheduler.policies.fairness'],
  'is in a misspelt slot': [started({ policies: { worker_selecton: 'balanced' } }),
    'scheduler.policies | .worker_selecton is not known | did you mean "workerSelection"?'],
  'is not built in': [started({ policies: { ordering: 'deep-first' } }),
    'scheduler.policies.ordering.use | unknown policy "deep-first" | did you mean "depth-first"?'],
  'is a plugin': [started({ policies: { ordering: plugin() } }),
    'p given in code | is a plugin, and a policy is wanted here | make a policy with definePolicy'],
  'is a function': [started({ policies: { ordering: (tasks) => tasks } }),
    'scheduler.policies.ordering.use | is no policy | a definition made by definePolicy'],
  'replaces one of no slot': [async () => (await startHost()).scheduler.replacePolicy('order', 'fifo'),
    '"order" | there is no policy slot | did you mean "ordering"?'],
  'fills no slot': [inSetup((context) => void context.providePolicy('workerselection', {})),
    'plugin "p" | slot "workerselection", which does not exist | did you mean "workerSelection"?'],
  'fills no rule': [inSetup((context) => void context.providePolicy('rule', {})),
    'plugin "p" | slot "rule", which does not exist | did you mean "rules"?'],
  'fills a slot as a definition': [inSetup((context) => void context.providePolicy('fairness', policy('fairness'))),
    'p from plugin "p" | it is a definition | give what its create() returns'],
  'fills a slot with nothing': [inSetup((context) => void context.providePolicy('fairness')),
    'p from plugin "p" | it is nothing | no object with methods'],
  'fills a slot that another one fills': [async () => {
    const setup = ({ providePolicy }) => void providePolicy('fairness', { generations: () => 1 });
    await startHost({ policies: { fairness: 'fifo' }, plugins: [plugin({ setup })] });
  },
    'the slot fairness | two providers: "fifo" from the configuration and "p" from plugin "p" | remove one of both'],
  'changes what it is shown': [filled('workerSelection', { score: (task) => (task.rank = 1), reach: 'all', admits: () => true }),
    'policy "own" | tried to set "rank" of the task | copy what is to be changed'],
});

// prettier-ignore
misuses('a policy for workerSelection', {
  'has no method': [filled('workerSelection', {}),
    'own | has no method score or select | there are reach'],
  'has score and select': [filled('workerSelection', { score: nothing, select: nothing }),
    'own | it has both score and select | keep one of them'],
  'has a misspelt method': [filled('workerSelection', { scroe: nothing }),
    'own | it has "scroe", which nothing asks for | did you mean "score"?'],
  'has a method of nothing': [filled('workerSelection', { score: nothing, onTask: nothing }),
    'own | it has "onTask", which nothing asks for | a method of its own begins with _'],
  'has a flag in text': [filled('workerSelection', { score: nothing, placesRootish: 'no' }),
    'own | its placesRootish | must be true or false (got "no")'],
  'has an unknown reach': [filled('workerSelection', { score: nothing, reach: 'every' }),
    'own | its reach | must be "all" or { holders, others }'],
  'scores with nothing': [filled('workerSelection', { score: nothing, admits: () => true }),
    'policy "own" of slot workerSelection | a value of the type undefined | instead of a finite number'],
  'scores with NaN': [filled('workerSelection', { score: () => NaN, admits: () => true }),
    'policy "own" of slot workerSelection | the number NaN | instead of a finite number'],
  'scores with text': [filled('workerSelection', { score: () => '1', admits: () => true }),
    'policy "own" of slot workerSelection | is "1" | instead of a finite number'],
  'scores with a promise': [filled('workerSelection', { score: ends, admits: () => true }),
    'policy "own" of slot workerSelection | is a promise | policies answer at once'],
  'throws': [filled('workerSelection', { score: fail, admits: () => true }),
    'policy "own" of slot workerSelection | threw: oops | the built-in policy decided instead'],
  'selects a position': [filled('workerSelection', { select: () => 0 }),
    'policy "own" of slot workerSelection | chose the number 0 for echo- | one of the workers that it was given'],
  'selects an address': [filled('workerSelection', { select: (_, [worker]) => worker.address }),
    'policy "own" of slot workerSelection | chose "inmemory: | one of the workers that it was given'],
  'selects a worker of its own': [filled('workerSelection', { select: () => ({ address: 'x' }) }),
    'policy "own" of slot workerSelection | chose x for echo- | choose one of those that it was given'],
  'selects a list': [filled('workerSelection', { select: (_, workers) => workers }),
    'policy "own" of slot workerSelection | chose an object of the class Array | one of the workers that it was given'],
  'selects a promise': [filled('workerSelection', { select: ends }),
    'policy "own" of slot workerSelection | chose a promise | policies answer at once'],
  'admits with nothing': [filled('workerSelection', { admits: nothing, score: () => 1 }),
    'policy "own" of slot workerSelection | admits answered a value of the type undefined | instead of true or false'],
  'admits nowhere': [filled('workerSelection', { admits: () => false, score: () => 1 }, waits),
    'the policy "own" (workerSelection) | waits although all workers are idle | gives it to no worker'],
  'picks an address': [filled('workerSelection', { score: () => 1, pickFromPool: () => 'x' }),
    'policy "own" of slot workerSelection | chose "x" for echo- | one of the workers that it was given'],
  'throws in prepare': [filled('workerSelection', { score: () => 1, prepare: fail }),
    'policy "own" of slot workerSelection | threw: oops | the built-in policy decided instead'],
});

const queues = (wrong) =>
  filled('queuing', {
    holdsBack: true,
    isRootish: () => true,
    slotLimit: () => 1,
    selectRootish: (_, { openSlots }) => openSlots.peek(),
    ...wrong,
  });
// prettier-ignore
misuses('a policy for queuing', {
  'has no slotLimit': [queues({ slotLimit: undefined }),
    'own | has no method slotLimit | there are holdsBack'],
  'has a number as a flag': [queues({ holdsBack: 1 }),
    'own | its holdsBack | must be true or false (got 1)'],
  'allows no slot': [queues({ slotLimit: () => 0 }),
    'policy "own" of slot queuing | the number 0 as its slot limit | allowed are numbers from 1 on'],
  'allows slots in text': [queues({ slotLimit: () => '2' }),
    'policy "own" of slot queuing | "2" as its slot limit | allowed are numbers from 1 on'],
  'is undecided about roots': [queues({ isRootish: nothing }),
    'policy "own" of slot queuing | answered isRootish with a value of the type undefined | instead of true or false'],
  'is async about roots': [queues({ isRootish: ends }),
    'policy "own" of slot queuing | answered isRootish with a promise | policies answer at once'],
  'selects an address': [queues({ selectRootish: () => 'x' }),
    'policy "own" of slot queuing | chose "x" for echo- | one of the workers that it was given'],
  'takes a key from the queue': [queues({ nextQueued: () => 'x' }),
    'policy "own" of slot queuing | to "x", which is not queued | choose one of cluster.queued'],
});

// prettier-ignore
misuses('a policy for ordering', {
  'has a misspelt method': [filled('ordering', { ordr: nothing }),
    'own | it has "ordr", which nothing asks for | did you mean "order"?'],
  'returns nothing': [filled('ordering', { order: nothing }),
    'policy "own" of slot ordering | a value of the type undefined | instead of a rank for each task'],
  'returns too few': [filled('ordering', { order: () => [0] }),
    'policy "own" of slot ordering | ranked 1 of 4 tasks | each task has a rank'],
  'returns one rank twice': [filled('ordering', { order: (tasks) => tasks.map(() => 0) }),
    'policy "own" of slot ordering | the rank 0 twice | each is given once'],
  'returns keys': [filled('ordering', { order: (tasks) => tasks.map(({ key }) => key) }),
    'policy "own" of slot ordering | "echo- | ranks are whole numbers from 0'],
  'ranks a task before its dependencies': [filled('ordering', { order: (tasks) => tasks.map((_, at) => tasks.length - at) }),
    'policy "own" of slot ordering | which it needs | dependencies have lower ranks'],
  'is async': [filled('ordering', { order: ends }),
    'policy "own" of slot ordering | gave a promise | policies answer at once'],
  'is a generator without a result': [filled('ordering', { *order() { yield; } }),
    'policy "own" of slot ordering | a value of the type undefined | instead of a rank for each task'],
  'throws': [filled('ordering', { order: fail }),
    'policy "own" of slot ordering | threw: oops | the built-in policy decided instead'],
  'sorts the tasks in place': [filled('ordering', { order: (tasks) => tasks.sort() }),
    'policy "own" of slot ordering | tried to set "0" of the list | copy what is to be changed'],
});

// prettier-ignore
misuses('a policy for fairness', {
  'has a misspelt method': [filled('fairness', { generation: nothing }),
    'own | it has "generation", which nothing asks for | did you mean "generations"?'],
  'gives nothing': [filled('fairness', { generations: nothing }),
    'policy "own" of slot fairness | a value of the type undefined | instead of the number of a generation'],
  'gives NaN': [filled('fairness', { generations: () => NaN }),
    'policy "own" of slot fairness | gave the generation NaN | instead of a finite number'],
  'gives text': [filled('fairness', { generations: () => 'late' }),
    'policy "own" of slot fairness | gave "late" | instead of the number of a generation'],
  'gives a list without isPerTask': [filled('fairness', { generations: () => [1] }),
    'policy "own" of slot fairness | gave a list of generations | does not say that it isPerTask'],
  'gives too few for isPerTask': [filled('fairness', { isPerTask: true, generations: () => [1] }),
    'policy "own" of slot fairness | gave 1 generations | to 4 tasks'],
  'is async': [filled('fairness', { generations: ends }),
    'policy "own" of slot fairness | gave a promise | policies answer at once'],
  'has a weight in text': [started({ policies: { fairness: { use: 'weighted-fair-share', options: { weights: { ann: 'high' } } } } }),
    'weighted-fair-share | fairness.options.weights.ann | must be a number above 0 (got "high")'],
});

// prettier-ignore
misuses('a policy for stealing', {
  'has a misspelt method': [filled('stealing', { levelOff: nothing }),
    'own | it has "levelOff", which nothing asks for | did you mean "levelOf"?'],
  'has no method': [filled('stealing', {}),
    'own | has no method mayTake or victims | there are begin'],
  'throws': [scheduler({ workStealing: { start: false }, policies: { stealing: policy('stealing', { create: () => ({ begin: fail, pays: () => true }) }) } }, (client) => client.command('work-stealing.runOnce')),
    'policy "own" of slot stealing | threw: oops | the built-in policy decided instead'],
});

// prettier-ignore
misuses('a rule', {
  'has a misspelt method': [ruled({ fliter: nothing }),
    'own | it has "fliter", which nothing asks for | did you mean "filter"?'],
  'has no method': [ruled({ concerns: nothing }),
    'own | has no method filter or score or holds or mayMove | there are concerns'],
  'is not made': [ruled(undefined),
    'create of own | returned nothing | it returns an object with methods'],
  'is a policy': [started({ policies: { rules: [policy('fairness')] } }),
    'scheduler.policies.rules[0].use | is a policy of the slot fairness | make a rule with defineRule'],
  'filters with nothing': [ruled({ filter: nothing }),
    `the rule "own" | answered filter with a value of the type undefined | instead of true, false or { refuse: 'why' }`],
  'filters with text': [ruled({ filter: () => 'no GPU' }),
    `the rule "own" | answered filter with "no GPU" | instead of true, false or { refuse: 'why' }`],
  'filters with a promise': [ruled({ filter: ends }),
    'the rule "own" | answered filter with a promise | policies answer at once'],
  'throws': [ruled({ filter: fail }),
    'the rule "own" | threw in filter: oops | the decision was made without it'],
  'scores with NaN': [ruled({ score: () => NaN }),
    'the rule "own" | answered score with the number NaN | instead of a finite number'],
  'holds with nothing': [ruled({ holds: nothing }),
    `the rule "own" | answered holds with a value of the type undefined | instead of true, false or { hold: 'why' }`],
  'is concerned with nothing': [ruled({ concerns: nothing, filter: () => true }),
    'the rule "own" | answered concerns with a value of the type undefined | instead of true or false'],
  'has a weight below 0': [ruled({ score: nothing }, -1),
    'scheduler.policies.rules[0].weight | (got -1) | must be a number of at least 0'],
  'has a weight in text': [ruled({ score: nothing }, 'high'),
    'scheduler.policies.rules[0].weight | (got "high") | must be a number of at least 0'],
  'changes a task': [ruled({ filter: (task) => (task.rank = 1) }),
    'the rule "own" | tried to set "rank" of the task | copy what is to be changed'],
});

// prettier-ignore
misuses('a policy of the Active Memory Manager', {
  'has no run': [() => policies.defineAmmPolicy({ name: 'own', apiVersion: 1 }),
    'policy own | (got nothing) | run must be a generator function, *run(amm, options)'],
  'has an async run': [() => policies.defineAmmPolicy({ name: 'own', apiVersion: 1, async *run() {} }),
    'policy own | run must be a generator function | without async'],
  'throws': [round(function* () { yield fail(); }),
    'policy "own" of the Active Memory Manager | threw: oops | what it suggested before stands'],
  'yields nothing': [round(function* () { yield; }),
    'policy "own" of the Active Memory Manager | undefined is not a suggestion | yield replicate(task) or drop(task)'],
  'yields text': [round(function* () { yield 'drop'; }),
    'policy "own" of the Active Memory Manager | drop is not a suggestion | yield replicate(task) or drop(task)'],
  'drops a key': [round(function* () { yield drop('a'); }),
    'own: drop is refused | about no task of the cluster | look the task up with cluster.tasks.get(key)'],
  'replicates to an address': [round(function* ({ cluster }) { yield replicate(cluster.tasks.get('a'), [...cluster.workers.keys()]); }),
    'own: replicate "a" is refused | none of its candidates is a worker | look workers up with cluster.workers.get(address)'],
  'changes the cluster': [round(function* ({ cluster }) { yield cluster.tasks.clear(); }),
    'policy "own" | clear() on tasks of the cluster | copy what is to be changed'],
  'is no class': [managed({ use: { name: 'own' } }),
    'scheduler.activeMemoryManager.policies[0].use | it has no method run | extend ActiveMemoryManagerPolicy'],
  'is made without options': [managed(class Own extends ActiveMemoryManagerPolicy { constructor({ sources }) { super({}); this.n = sources.length; } *run() {} }),
    'the constructor of Own | threw: Cannot read | it got one argument, the options {}'],
  'declares no options': [managed(policies.defineAmmPolicy({ name: 'own', apiVersion: 1, *run() {} }), { n: 1 }),
    'own from own given in code | policies[0].options.n is not known | there are none'],
  'has wrong options': [managed('ensure-broadcast', { keys: 'x' }),
    'EnsureBroadcast | policies[0].options.keys is not known | did you mean "key"?'],
  'is not built in': [managed('reduce-replica'),
    'scheduler.activeMemoryManager.policies[0].use | unknown extension "reduce-replica" | did you mean "reduce-replicas"?'],
  'is one of Python': [managed('my_package.MyPolicy'),
    'my_package.MyPolicy | a class of Python cannot run here | write it in JavaScript and name it as ./file.js#MyPolicy'],
  'is not there': [scheduler({}, (client) => client.amm.removePolicy('none')),
    'the memory manager | has no policy "none" | it has keep-replicas-1'],
  'comes below 0': [started({ activeMemoryManager: { interval: -1 } }),
    'scheduler.activeMemoryManager.interval | (got -1) | a time such as "2s"'],
});

// prettier-ignore
misuses('a transport', {
  'has no scheme': [wired({ scheme: undefined }),
    'create of own | its scheme | the part of its addresses before "://", such as "tcp"'],
  'has a scheme with ://': [wired({ scheme: 'own://' }),
    'create of own | (got "own://") | the part of its addresses before "://"'],
  'has a misspelt method': [wired({ connect: undefined, conect: nothing }),
    'create of own | nothing calls its method "conect" | did you mean "connect"?'],
  'is not made': [carried(nothing),
    'scheduler.transport.use: create of own | returned nothing | it returns an object with methods'],
  'is a promise': [carried(ends),
    'scheduler.transport.use: create of own | returned a promise | needed at once'],
  'fails to listen': [wired({ listen: async () => fail() }),
    'the transport "inmemory" | could not listen at inmemory: | oops'],
  'listens with nothing': [wired({ listen: ends }),
    'the transport "inmemory" | gave nothing | instead of a listener, { address, close }'],
  'has a listener without an address': [wired({ listen: async () => ({ close: ends }) }),
    'the transport "inmemory" | gave {} | instead of a listener, { address, close }'],
  'fails to connect': [wired({ connect: async () => failText() }),
    'the transport "inmemory" | could not connect with inmemory: | something that is not an Error was thrown: "oops"'],
  'connects and opens nothing': [wired({ connect: ends }),
    'the transport "inmemory" | could not connect with inmemory: | it has not called open(connection), which comes first'],
  'is a class': [cluster({ transport: InMemoryTransport }),
    'InMemoryTransport given in code | is no transport | and no class'],
  'is of a later version': [cluster({ transport: transport({ apiVersion: 2 }) }),
    'scheduler.transport.use: own | written for version 2 | update yardmaster'],
  'has unknown options': [started({ transport: { use: 'tcp', options: { timeout: 1 } } }),
    'tcp | scheduler.transport.options.timeout is not known | there are frameBytesMax'],
  'is not built in': [started({ transport: 'tpc' }),
    'scheduler.transport.use | unknown transport "tpc" | did you mean "tcp"?'],
  'speaks no such scheme': [() => Client.connect('tpc://127.0.0.1:1'),
    '"tpc://127.0.0.1:1" | is not an address that this client can reach | use one like tcp://127.0.0.1:8786'],
  'comes twice': [() => Client.connect('inmemory://x', { transports: [0, 1].map(() => new InMemoryTransport(new VirtualClock())) }),
    'transports[0] and transports[1] | both speak the scheme "inmemory" | remove one of them'],
});

// prettier-ignore
misuses('an executor', {
  'is not built in': [cluster({ executor: 'thread' }),
    'unknown executor | "thread" | did you mean "threads"'],
  'is a class': [cluster({ executor: InlineExecutor }),
    'InlineExecutor given in code | is no executor | and no class'],
  'is of a later version': [cluster({ executor: executor({ apiVersion: 2 }) }),
    'own | written for version 2 | update yardmaster'],
  'is not made': [cluster({ executor: executor() }),
    'create of own | returned nothing | it returns an object with methods'],
  'is a promise': [cluster({ executor: executor({ create: ends }) }),
    'create of own | returned a promise | needed at once'],
  'has no run': [running({ run: undefined }),
    'create of own | its run | must be a function (got nothing)'],
  'has a misspelt method': [running({ close: undefined, clsoe: nothing }),
    'create of own | nothing calls its method "clsoe" | did you mean "close"?'],
  'has a method that nothing calls': [running({ stop: nothing }),
    'create of own | nothing calls its method "stop" | its own begin with _'],
  'runs no task at all': [running({ threadCount: 0 }),
    'create of own | its threadCount | a whole number of tasks that it runs at once, at least 1'],
  'has a flag in text': [running({ hasEventLoops: 'yes' }),
    'create of own | its hasEventLoops | must be true or false (got "yes")'],
  'throws text': [running({ run: failText }),
    'the executor own | threw at the task "echo- | what a task throws is a result of the kind failure'],
  'rejects': [running({ run: async () => fail() }),
    'the executor own | threw at the task "echo- | its run must not reject'],
  'answers nothing': [running({ run: ends }),
    'the executor own | ended the task "echo- | results of the kinds success, failure'],
  'answers with the value': [running({ run: async () => 42 }),
    'the executor own | with 42, which is no result | results of the kinds success, failure'],
  'has text as its result': [running({ run: async () => ({ kind: 'success', value: '42', type: 'x', startMs: 0, stopMs: 1 }) }),
    'the executor own | which is no result | its value must be a Uint8Array (got "42")'],
  'has a result without times': [running({ run: async () => ({ kind: 'success', value: new Uint8Array(), type: 'x' }) }),
    'the executor own | which is no result | its startMs must be a number of milliseconds'],
  'fails with text': [running({ run: async () => ({ kind: 'failure', error: 'oops' }) }),
    'the executor own | which is no result | its error must be an object with a name and a message'],
  'never answers': [running({ run: forever }, (client) => client.with({ timeoutMs: 1 }).submit(bad.echo, 1).result()),
    '"echo- | was stopped: it ran for longer than 1 ms | as its timeoutMs says'],
  'answers twice': [running({ begin: (_task, _slot, onEnd) => { for (const n of [1, 2]) setImmediate(() => onEnd({ kind: 'failure', error: { name: 'Error', message: `${n}` } })); return nothing; } }),
    'the executor own | ended the task "echo- | twice: call onEnd once'],
  'gives nothing to abort by': [running({ begin: (_task, _slot, onEnd) => void setImmediate(() => onEnd({ kind: 'failure', error: { name: 'Error', message: 'x' } })) }),
    'the executor own | answered begin of the task "echo- | instead of a function that aborts it'],
  'rejects what runs aside': [running({ runAside: async () => fail() }, (client) => client.run(bad.echo, 1)),
    'the executor own | oops | did not answer runAside with a list of results'],
  'runs aside with one result': [running({ runAside: ends }, (client) => client.run(bad.echo, 1)),
    'the executor own | is not iterable | did not answer runAside with a list of results'],
  'runs nothing aside': [running({}, (client) => client.run(bad.echo, 1)),
    'the executor own | has no method runAside | add one'],
  'does not close': [running({ close: async () => fail() }),
    'the executor | could not be closed in good order | oops'],
  'runs with a misspelt setting': [cluster({ executor: executor({ create: (context) => ({ threadCount: 1, close: ends, run: (task, signl) => context.run(task, { signl }) }) }) }),
    'the executor own | there is no setting "signl" | did you mean "signal"?'],
  'declares no options': [cluster({ executor: { use: executor(), options: { n: 1 } } }),
    'own from own given in code | worker.executor.options.n is not known | describe it in an optionsSchema'],
  'serves two workers': [cluster({ workers: 2, executor: new InlineExecutor({ clock: new VirtualClock() }) }),
    'the executor InlineExecutor | serves a worker already | give its definition (defineExecutor)'],
  'is code for processes': [cluster({ mode: 'processes', executor: executor() }),
    'worker.executor | cannot be sent to workers in separate processes | name its module'],
  'is a store': [cluster({ executor: store() }),
    'own given in code | is a store of results, and an executor is wanted here | make an executor with defineExecutor'],
});

// prettier-ignore
misuses('a store', {
  'has a misspelt method': [kept('delete: undefined, delet: async () => {}'),
    'create of own | nothing calls its method "delet" | did you mean "delete"?'],
  'has text in the place of a flag': [kept("has: async () => 'no'"),
    'the store of results | its has answered "no" | instead of true or false'],
  'gives bytes alone': [kept('has: async () => true, read: async () => new Uint8Array(2)'),
    'the store of results | its read gave "2 bytes" | instead of { type, value }'],
  'gives null': [kept('has: async () => true, read: async () => null'),
    'the store of results | its read gave null | or undefined'],
  'gives text': [kept("has: async () => true, read: async () => ({ type: 'x', value: 'y' })"),
    'the store of results | its read gave {"type":"x","value":"y"} | a text and a Uint8Array'],
  'cannot be asked': [kept("has: async () => { throw new Error('no disk'); }"),
    'the store of results | could not be asked for "echo- | no disk'],
  'cannot write': [kept("write: async () => { throw new Error('no disk'); }"),
    'the store of results | did not keep the result of "echo- | no disk'],
  'is of a later version': [kept('', 'apiVersion: 2'),
    'own | written for version 2 | update yardmaster'],
  'is code': [cluster({ resultStore: { use: store() } }),
    'worker.resultStore.use | (got {"kind":"store" | the path, URL or name of a module'],
  'is a definition': [cluster({ resultStore: store() }),
    'worker.resultStore | (got {"kind":"store" | { use } with the path, URL or name of a module'],
  'has no module': [cluster({ resultStore: { use: './none.mjs' } }),
    'none.mjs" does not exist | there is no file | paths are relative to'],
  'is not installed': [cluster({ resultStore: { use: 'results-in-redis' } }),
    '"results-in-redis" | no package of that name can be imported from | has to be installed there'],
  'has a misspelt bucket': [cluster({ resultStore: { s3: { buckets: 'x' } } }),
    'worker.resultStore.s3 | buckets is not known | did you mean "bucket"?'],
  'is missing': [cluster({}, (client) => client.with({ persist: true }).submit(bad.echo, 1).result()),
    'persist | (got true) | must be given with resultStore'],
});

// prettier-ignore
misuses('a plugin of workers', {
  'has a hook of schedulers': [local({ workerAdded: nothing }),
    'plugin "w" | hook "workerAdded", which does not exist | only plugins of the scheduler have it'],
  'has a misspelt hook': [local({ taskTransitions: nothing }),
    'plugin "w" | hook "taskTransitions", which does not exist | did you mean "taskTransition"?'],
  'throws in setup': [local({}, { setup: fail }),
    'plugin "w" | failed in setup: oops | a plugin of this worker is not there'],
  'throws in a hook': [local({ taskTransition: fail }),
    'plugin "w" | the hook taskTransition | threw: oops'],
  'has an async hook': [local({ taskTransition: ends }),
    'plugin "w" | returned a promise | make it synchronous'],
  'has a timer of text': [local({}, { setup: ({ every }) => void every('1s', nothing) }),
    'every() of plugin "w" | got "1s" | a number of milliseconds above 0'],
  'publishes without a list': [local({}, { setup: ({ logEvent }) => logEvent('topic', 1) }),
    'plugin "w" | got the topics "topic" | wants a list of topics and a message'],
  'has a context with another name': [local({}, { setup: ({ logEvents }) => logEvents(['topic'], 1) }),
    'the context of plugin "w" | has no "logEvents" | did you mean "logEvent"?'],
  'is one of schedulers': [cluster({ config: { worker: { plugins: [plugin()] } } }),
    'p given in code | is a plugin, and a worker-plugin is wanted here | make a worker-plugin with defineWorkerPlugin'],
  'comes twice': [cluster({ config: { worker: { plugins: [workerPlugin(), workerPlugin()] } } }),
    'worker.plugins[1].use | two worker plugins "w" | remove one, or give it another name'],
  'is registered in code': [cluster({}, (client) => client.registerWorkerPlugin(workerPlugin())),
    'a plugin for workers | code cannot travel | named by its module, as in { use: "./plugin.js" }'],
  'is registered from nowhere': [cluster({}, (client) => client.registerWorkerPlugin({ use: './none.mjs' })),
    'the worker plugin "./none.mjs" | there is no file | paths are relative to'],
  'is not there': [cluster({}, (client) => client.unregisterWorkerPlugin('none')),
    '"none" | no worker plugin | there are none'],
  'is given to nannies': [file('worker: { nannyPlugins: [./w.mjs] }', { 'w.mjs': "export default { kind: 'worker-plugin', name: 'w', apiVersion: 1, setup() {} };" }),
    'worker.nannyPlugins[0].use | ./w.mjs is a worker-plugin | name it under worker.plugins'],
  'has nothing to preload': [file('worker: { preload: [./e.mjs] }', { 'e.mjs': 'export const start = () => {};' }),
    'the preload ./e.mjs | exports neither | export one of them'],
  'has the teardown of Dask': [file('scheduler: { preload: [./t.mjs] }', { 't.mjs': 'export const teardown = () => {};' }),
    'the preload ./t.mjs | teardown, which nothing calls | did you mean "close"?'],
});

// prettier-ignore
misuses('an option', {
  'of a cluster is misspelt': [cluster({ worker: 2 }),
    'LocalCluster.start | worker is not known | did you mean "workers"?'],
  'of a cluster is text': [cluster({ workers: '2' }),
    'LocalCluster.start | workers | a whole number of at least 0 (got "2")'],
  'of a cluster is an unknown mode': [cluster({ mode: 'thread' }),
    'LocalCluster.start | (got "thread") | did you mean "threads"?'],
  'of a cluster has no section': [cluster({ config: { plugins: [] } }),
    'configuration | plugins is not known | there are $schema, scheduler'],
  'of scaling is the wrong way round': [cluster({ adapt: { minimum: 5, maximum: 1 } }),
    'adapt: maximum | (got 1) | must be at least the minimum, 5'],
  'of scaling is misspelt': [cluster({ adapt: { max: 5 } }),
    'adapt | max is not known | did you mean "maximum"?'],
  'of a client is no address': [() => Client.connect(),
    'Client.connect | got undefined | such as tcp://127.0.0.1:8786'],
  'of a client has no scheme': [() => Client.connect('localhost:8786'),
    '"localhost:8786" | not an address that this client can reach | use one like tcp://127.0.0.1:8786'],
  'of a client is misspelt': [() => Client.connect('tcp://127.0.0.1:1', { timeout: 5 }),
    'Client.connect | timeout is not known | did you mean "timeoutMs"?'],
  'of a task is misspelt': [cluster({}, (client) => client.with({ retrys: 2 }).submit(bad.echo, 1).result()),
    'submission | retrys is not known | did you mean "retries"?'],
  'of a task is text': [cluster({}, (client) => client.with({ priority: 'high' }).submit(bad.echo, 1).result()),
    'submission | priority | a finite number (got "high")'],
  'of a task is a plain function': [cluster({}, (client) => client.submit((x) => x, 1).result()),
    'the function | is not known to workers | define it in a separate module with defineTasks'],
  'of a worker is misspelt': [() => startWorker('tcp://127.0.0.1:1', { thread: 2 }),
    'startWorker | thread is not known | did you mean "threads"?'],
});

const minimal = "{ name: 'm', apiVersion: 1, setup() {} };";
const one = {
  'm.mjs': `export default ${minimal}`,
  'named.mjs': `export const counter = ${minimal}`,
};
// prettier-ignore
misuses('a configuration', {
  'is a list': [file('- a'),
    'cluster.yaml:1:1 | (got ["a"]) | must be an object'],
  'has a tab': [file('scheduler:\n\tvalidate: true'),
    'cluster.yaml:2:1 | Tabs | are not allowed as indentation'],
  'has a misspelt section': [file('schedular: {}'),
    'cluster.yaml:1:1 | schedular is not known | did you mean "scheduler"?'],
  'has a misspelt key': [file('scheduler: { plugin: [] }'),
    'cluster.yaml:1:14 | scheduler.plugin is not known | did you mean "plugins"?'],
  'has no list': [file('scheduler: { plugins: ./m.mjs }'),
    'cluster.yaml:1:23 | scheduler.plugins | must be a list (got "./m.mjs")'],
  'has a flag in text': [file('scheduler: { validate: "yes" }'),
    'cluster.yaml:1:24 | scheduler.validate | must be true or false (got "yes")'],
  'has a time of no kind': [file('scheduler: { workStealing: { interval: soon } }'),
    'cluster.yaml:1:40 | (got "soon") | a time such as "2s" or "100 ms"'],
  'has an unknown plugin': [plugins('amn'),
    'scheduler.plugins[0].use | unknown plugin "amn" | did you mean "amm"?'],
  'has a package that is not installed': [plugins('@acme/quota'),
    'scheduler.plugins[0].use | unknown plugin "@acme/quota" | has to be installed there'],
  'has a file that is not there': [plugins('./none.mjs'),
    '"./none.mjs" does not exist | there is no file | relative to the configuration file'],
  'has a file named like a package': [plugins('m', one),
    'unknown plugin "m" | no package of that name | to name the file, write "./m.mjs"'],
  'has a file without its ending': [plugins('./m', one),
    '"./m" does not exist | there is no file | to name the file, write "./m.mjs"'],
  'has no default export': [plugins('./named.mjs', one),
    '"./named.mjs" | has no default export | pick one of its exports: ./named.mjs#counter'],
  'has a misspelt export': [plugins('./named.mjs#conter', one),
    '"./named.mjs#conter" | has no export "conter" | did you mean "counter"?'],
  'has another export': [plugins('./named.mjs#Quota', one),
    '"./named.mjs#Quota" | has no export "Quota" | pick one of its exports: ./named.mjs#counter'],
  'has no export at all': [plugins('./empty.mjs', { 'empty.mjs': '' }),
    '"./empty.mjs" | it exports nothing | write export default'],
  'has exports of CommonJS': [plugins('./list.cjs', { 'list.cjs': "exports.a = { kind: 'plugin', name: 'a' };" }),
    '"./list.cjs" | has no default export | pick one of its exports: ./list.cjs#a'],
  'has a module that throws text': [plugins('./throws.mjs', { 'throws.mjs': "throw 'oops';" }),
    '"./throws.mjs" cannot be loaded | something that is not an Error was thrown: "oops" | throw an Error, which says where'],
  'has import in CommonJS': [node('import.cjs', "import 'node:fs';"),
    '"./import.cjs" | import statement outside a module | name the file .mjs'],
  'has require in a module': [node('require.mjs', "require('node:fs');"),
    '"./require.mjs" | require is not defined in ES module scope | write import and export default'],
  'has module.exports in a module': [node('exports.mjs', 'module.exports = 1;'),
    '"./exports.mjs" | module is not defined in ES module scope | write import and export default'],
  'has a syntax error': [node('syntax.mjs', 'export default {;'),
    '"./syntax.mjs" cannot be loaded | Unexpected token | node --check'],
  'imports what is not there': [node('imports.mjs', "import './missing.mjs';"),
    '"./imports.mjs" | Cannot find module | needs the ending of the file'],
  'imports what is not installed': [node('imports2.mjs', "import 'left-pad-of-acme';"),
    '"./imports2.mjs" | Cannot find package \'left-pad-of-acme\' | install it'],
  'is TypeScript': [node('typed.ts', 'export default 1 as number;'),
    '"./typed.ts" | Unknown file extension ".ts" | compile it to JavaScript first'],
  'has a policy as a plugin': [plugins('fifo'),
    'built-in fifo | is a policy of the slot fairness | name it under scheduler.policies.fairness'],
  'has an address that nothing speaks': [file('scheduler: { address: "tpc://localhost:1" }'),
    'scheduler.address | no transport for the address "tpc: | did you mean "tcp"?'],
  'has an executor that is not made': [file('worker: { executor: ./x.mjs }', { 'x.mjs': "export default { kind: 'executor', name: 'x', apiVersion: 1, create: () => ({ threadCount: 1 }) };" }),
    'worker.executor.use | create of x from ./x.mjs | its run must be a function'],
  'has two plugins of one name': [file('scheduler: { plugins: [./m.mjs, "./named.mjs#counter"] }', one),
    'scheduler.plugins[1].use | two plugins "m" | remove one, or give it another name'],
  'has options in the place of an entry': [file('scheduler: { plugins: [{ every: 5 }] }'),
    'scheduler.plugins[0] | every is not known | there are use, options, onError'],
});
