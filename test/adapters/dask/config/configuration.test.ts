/** Dask's own configuration, and what it means for this scheduler. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, describe, expect, test } from 'vitest';

import { describeDaskSettings, readDaskSettings } from '../../../../adapters/app/dask-settings.ts';
import { createScheduler } from '../../../../adapters/app/start-scheduler.ts';
import { DaskConfig, parsePythonValue } from '../../../../adapters/dask/config.ts';
import { kernelOptions } from '../../../../core/scheduler-host/tokens.ts';
import { configuration } from '../../../../adapters/app/config.ts';
import { findDaskPython, skipReason } from '../pythons.ts';

const root = mkdtempSync(join(tmpdir(), 'yardmaster-dask-config-'));
const python = findDaskPython();
afterAll(() => rmSync(root, { recursive: true }));

let count = 0;
/** An environment in which only these files and variables configure Dask. */
function environment(
  files: Readonly<Record<string, string>> = {},
  variables: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const home = join(root, `home-${count++}`);
  const folders = { DASK_ROOT_CONFIG: join(home, 'etc'), DASK_CONFIG: join(home, 'own') };
  for (const [name, text] of Object.entries(files)) {
    const path = join(home, name);
    mkdirSync(join(path, '..'), { recursive: true });
    writeFileSync(path, text);
  }
  return { HOME: home, ...folders, ...variables };
}

function scheduler(variables: Readonly<Record<string, string>>): Record<string, string> {
  const entries = Object.entries(variables);
  return environment(
    {},
    Object.fromEntries(
      entries.map(([name, value]) => [`DASK_DISTRIBUTED__SCHEDULER__${name}`, value]),
    ),
  );
}

const VALUES = [
  ...['3', '-2', '+4', '1.5', '1e3', '.5', '1_000', '0x10', '0o17', '0b11', '007', '1_', '0'],
  ...['True', 'False', 'None', 'true', 'FALSE', 'none', 'null', 'yes', 'inf', '.inf', 'nan'],
  ...['5 minutes', '100 ms', '1h', "'5s'", '"a b"', "'it\\'s'", "'a\\nb'", "'open", '', ' 7 '],
  ...['[1, 2]', '[]', '(1, 2)', '(1)', '(1,)', '()', '[1', '[1,]', '[\'a\', "b", None]', '[a]'],
  ...['1,2', '1,', "'a', 'b'", ',', '1,,2', 'a,b', '1),(2', '(1),'],
  ...["{'a': 1, 'b': [2]}", '{}', "{'class': 'x.Y'", 'tcp://10.0.0.1:8786', '/etc/ca.pem'],
];

describe("values of Dask's environment variables", () => {
  test.skipIf(python === undefined)(`are read as Dask reads them${skipReason(python)}`, () => {
    const code = `import json, sys
from dask.config import collect_env
print(json.dumps([collect_env({"DASK_X": text})["x"] for text in json.load(sys.stdin)]))`;
    const input = JSON.stringify(VALUES);
    const output = execFileSync(python!.command, ['-c', code], { input, encoding: 'utf8' });
    const expected = JSON.parse(output) as unknown[];
    // Releases before 2023.3 did not read the words of YAML.
    const words = new Set(['true', 'FALSE', 'none', 'null']);
    const compared = VALUES.map((text, index) => [text, expected[index]] as const).filter(
      ([text]) => !words.has(text),
    );
    expect(compared.map(([text]) => [text, parsePythonValue(text)])).toEqual(compared);
  });

  test('several without brackets are a list', () => {
    expect(['1, 2', "'a',"].map(parsePythonValue)).toEqual([[1, 2], ['a']]);
  });

  test('the words of YAML count in any case', () => {
    expect(['true', 'FALSE', 'None', 'null'].map(parsePythonValue)).toEqual([
      true,
      false,
      null,
      null,
    ]);
  });
});

describe("the places of Dask's configuration", () => {
  test('later places win key by key, and the environment over all files', () => {
    const env = environment(
      {
        'etc/a.yaml': 'distributed: {scheduler: {allowed-failures: 1, bandwidth: 1, validate: on}}',
        '.config/dask/b.YML': 'distributed: {scheduler: {allowed_failures: 2, bandwidth: 2}}',
        'own/a.json': '{"distributed": {"scheduler": {"allowed-failures": 3}}}',
        'own/note.txt': 'distributed: {scheduler: {allowed-failures: 9}}',
      },
      { DASK_DISTRIBUTED__SCHEDULER__BANDWIDTH: '4' },
    );
    const config = DaskConfig.read(env);
    const value = (key: string): unknown => config.find(`distributed.scheduler.${key}`)?.value;
    expect([value('allowed-failures'), value('bandwidth'), value('validate')]).toEqual([
      3,
      4,
      true,
    ]);
    expect(config.find('distributed.scheduler.bandwidth')?.source).toBe(
      'DASK_DISTRIBUTED__SCHEDULER__BANDWIDTH',
    );
  });

  test('the Python environment has a place, and a configuration can be inherited', () => {
    const env = environment(
      { 'venv/etc/dask/x.yaml': 'distributed: {scheduler: {allowed-failures: 5, bandwidth: 5}}' },
      {
        DASK_INTERNAL_INHERIT_CONFIG: Buffer.from(
          JSON.stringify({ distributed: { scheduler: { bandwidth: 6 } } }),
        ).toString('base64url'),
      },
    );
    const config = DaskConfig.read(env, join(env['HOME']!, 'venv/bin/python'));
    expect(config.below('distributed').map(({ value }) => value)).toEqual([5, 6]);
  });

  test('a former name of a key is read as the present one', () => {
    const env = environment(
      { 'own/a.yaml': 'work_stealing: false\ndistributed: {scheduler: {validate: false}}' },
      { DASK_LOG_LENGTH: '7' },
    );
    const config = DaskConfig.read(env);
    expect(config.find('distributed.scheduler.work-stealing')?.value).toBe(false);
    expect(config.find('distributed.admin.log-length')?.value).toBe(7);
  });

  test('of a key that stands twice in a file the last counts, as in Dask', () => {
    const env = environment({ 'own/a.yaml': 'work-stealing: on\nwork-stealing: off' });
    expect(DaskConfig.read(env).find('distributed.scheduler.work-stealing')?.value).toBe(false);
  });

  test('a file that is no mapping is named', () => {
    const env = environment({ 'own/list.yaml': '- 1' });
    expect(() => DaskConfig.read(env)).toThrow('list.yaml cannot be read: its top level');
  });
});

/** What each key does to the configuration of the scheduler. */
const EFFECTS: readonly (readonly [
  variable: string,
  value: string,
  place: string,
  want: unknown,
])[] = [
  ['ALLOWED_FAILURES', '10', 'allowedFailures', 10],
  ['BANDWIDTH', '50 MB', 'bandwidth', 50_000_000],
  ['DEFAULT_DATA_SIZE', '2kiB', 'defaultDataSize', 2048],
  ['WORKER_TTL', '2 minutes', 'workerTtl', 120_000],
  ['WORKER_TTL', '30', 'workerTtl', 30_000],
  ['WORKER_TTL', 'None', 'workerTtl', Infinity],
  ['IDLE_TIMEOUT', "'1h'", 'idleTimeout', 3_600_000],
  ['IDLE_TIMEOUT', '0', 'idleTimeout', Infinity],
  ['NO_WORKERS_TIMEOUT', '1 week', 'noWorkersTimeout', 604_800_000],
  ['UNKNOWN_TASK_DURATION', '250ms', 'unknownTaskDuration', 250],
  ['DEFAULT_TASK_DURATIONS__LOAD', '3s', 'defaultTaskDurations', { load: 3000 }],
  ['DEFAULT_TASK_DURATIONS', "{'my_load': '1us'}", 'defaultTaskDurations', { my_load: 0.001 }],
  ['VALIDATE', 'True', 'validate', true],
  ['WORK_STEALING', 'False', 'workStealing.start', false],
  ['WORK_STEALING_INTERVAL', '1s', 'workStealing.interval', 1000],
  ['WORK_STEALING_INTERVAL', '250', 'workStealing.interval', 250],
  ['WORKER_SATURATION', 'inf', 'policies.queuing.options.workerSaturation', 'inf'],
  ['WORKER_SATURATION', '1.5', 'policies.queuing.options.workerSaturation', 1.5],
  ['ROOTISH_TASKGROUP', '8', 'policies.queuing.options.rootishTaskgroup', 8],
  ['ACTIVE_MEMORY_MANAGER__START', 'false', 'activeMemoryManager.start', false],
  ['ACTIVE_MEMORY_MANAGER__INTERVAL', '5s', 'activeMemoryManager.interval', 5000],
  ['ACTIVE_MEMORY_MANAGER__MEASURE', 'managed_in_memory', 'activeMemoryManager.measure', 'managed'],
  ['ACTIVE_MEMORY_MANAGER__POLICIES', '[]', 'activeMemoryManager.policies', []],
  ['TRANSITION_LOG_LENGTH', '20', 'transitionLogLength', 20],
  ['EVENTS_LOG_LENGTH', '30', 'eventLogLength', 30],
  ['LOCKS__LEASE_TIMEOUT', '10s', 'coordination.leaseTimeout', 10_000],
];

function effectOf(env: Readonly<Record<string, string>>, place: string): unknown {
  const { config } = configuration.loadObject({}, undefined, {
    defaults: readDaskSettings(env).config,
  });
  return place
    .split('.')
    .reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], config.scheduler);
}

describe("Dask's configuration of the scheduler", () => {
  test.each(EFFECTS)('%s=%s sets scheduler.%s', (variable, value, place, want) => {
    expect(effectOf(scheduler({ [variable]: value }), place)).toEqual(want);
  });

  test("the rules of a rebalance stand below the worker, as in Dask, and are the scheduler's", () => {
    const env = environment({
      'own/x.yaml': `distributed: {worker: {memory: {recent_to_old_time: 1 minute, target: 0.5, rebalance:
        {measure: managed_in_memory, sender-min: 0.2, recipient_max: 0.5, sender-recipient-gap: 0.2}}}}`,
    });
    expect(effectOf(env, 'recentToOldTime')).toBe(60_000);
    expect(effectOf(env, 'rebalance')).toEqual({
      measure: 'managed',
      senderMin: 0.2,
      recipientMax: 0.5,
      senderRecipientGap: 0.2,
    });
    const wrong = environment({
      'own/x.yaml': 'distributed: {worker: {memory: {rebalance: {sender-min: 2}}}}',
    });
    expect(() => readDaskSettings(wrong)).toThrow(
      'distributed.worker.memory.rebalance.sender-min must be a number from 0 to 1 (got 2)',
    );
  });

  test('the length of low-level logs holds for transitions and events, and older names win', () => {
    const env = environment(
      { 'own/x.yaml': 'distributed: {scheduler: {events-log-length: 5}}' },
      { DASK_DISTRIBUTED__ADMIN__LOW_LEVEL_LOG_LENGTH: '50' },
    );
    expect(effectOf(env, 'transitionLogLength')).toBe(50);
    expect(effectOf(env, 'eventLogLength')).toBe(5);
  });

  test('a task duration of Dask reaches the kernel', () => {
    const env = scheduler({ DEFAULT_TASK_DURATIONS__LOAD: '3s' });
    const { config } = configuration.loadObject({}, undefined, {
      defaults: readDaskSettings(env).config,
    });
    expect(kernelOptions(config).defaultTaskDurationsS).toEqual(new Map([['load', 3]]));
  });

  test('what Dask has among the settings of workers, and the scheduler reads', () => {
    const env = environment(
      { 'own/a.yaml': 'distributed: {worker: {memory: {recent-to-old-time: 10s}}}' },
      {
        DASK_DISTRIBUTED__WORKER__MEMORY__REBALANCE__MEASURE: 'managed_in_memory',
        DASK_DISTRIBUTED__WORKER__MEMORY__REBALANCE__SENDER_MIN: '0.1',
        DASK_DISTRIBUTED__WORKER__MEMORY__REBALANCE__RECIPIENT_MAX: '0.9',
        DASK_DISTRIBUTED__WORKER__MEMORY__REBALANCE__SENDER_RECIPIENT_GAP: '0',
      },
    );
    const { config } = configuration.loadObject({}, undefined, {
      defaults: readDaskSettings(env).config,
    });
    expect(config.scheduler).toMatchObject({
      rebalance: { measure: 'managed', senderMin: 0.1, recipientMax: 0.9, senderRecipientGap: 0 },
      recentToOldTime: 10_000,
    });
  });

  test('the name that the documentation of memory measures has for it', () => {
    const env = environment(
      { 'own/a.yaml': 'distributed: {memory: {recent-to-old-time: 10s, x: 1}}' },
      {},
    );
    const { config, ignored } = readDaskSettings(env);
    expect(config).toMatchObject({ scheduler: { recentToOldTime: '10000 ms' } });
    expect(ignored.map(({ key }) => key)).toEqual(['distributed.memory.x']);
  });

  test('some keys are options of the plugin', () => {
    const env = environment(
      {},
      {
        DASK_DISTRIBUTED__SCHEDULER__CONTACT_ADDRESS: 'tcp://10.0.0.1:9',
        DASK_DISTRIBUTED__SCHEDULER__BLOCKED_HANDLERS: "['run_function']",
        DASK_DISTRIBUTED__SCHEDULER__LOCKS__LEASE_VALIDATION_INTERVAL: '5s',
        DASK_DISTRIBUTED__ADAPTIVE__TARGET_DURATION: '10s',
        DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT: '60s',
      },
    );
    expect(readDaskSettings(env).options).toEqual({
      contactAddress: 'tcp://10.0.0.1:9',
      blockedHandlers: ['run_function'],
      leaseCheckIntervalMs: 5000,
      targetDurationMs: 10_000,
      connectTimeoutMs: 60_000,
    });
  });

  test('an own configuration wins key by key', () => {
    const env = scheduler({ ALLOWED_FAILURES: '10', WORKER_SATURATION: '2', WORKER_TTL: '1m' });
    const own = { scheduler: { allowedFailures: 1, policies: { queuing: 'direct' } } };
    const { config } = configuration.loadObject(own, undefined, {
      defaults: readDaskSettings(env).config,
    });
    expect(config.scheduler).toMatchObject({
      allowedFailures: 1,
      workerTtl: 60_000,
      policies: { queuing: { use: 'direct' } },
    });
    expect(config.scheduler.policies.queuing).not.toHaveProperty('options');
  });

  test('the defaults that Dask writes into its own file change nothing', () => {
    const env = environment({
      'own/distributed.yaml': `distributed:
  scheduler:
    contact-address: null
    idle-timeout: null
    no-workers-timeout: null
    preload: []
    blocked-handlers: []
  comm: {require-encryption: null, tls: {ca-file: null, scheduler: {cert: null}}, compression: auto}
  worker: {memory: {target: 0.6}}
array: {chunk-size: 128MiB}
`,
    });
    const settings = readDaskSettings(env);
    expect(settings.config).toEqual({
      scheduler: { idleTimeout: 'inf', noWorkersTimeout: 'inf' },
    });
    expect(settings.options).toEqual({ blockedHandlers: [] });
    expect(settings.ignored).toEqual([]);
  });

  test('what has no equivalent is ignored by name, and a misspelt key is corrected', () => {
    const env = environment({
      'own/x.yaml': `distributed:
  scheduler:
    http: {routes: [a]}
    worker-saturaton: 2
    active-memory-manager: {policies: [{class: distributed.active_memory_manager.ReduceReplicas}, {class: my.Pin}]}
  dashboard: {graph-max-items: 1}
`,
    });
    const { ignored, config } = readDaskSettings(env);
    expect(ignored.map(({ key, reason }) => `${key}: ${reason}`)).toEqual([
      expect.stringContaining('the policy my.Pin is a Python class'),
      'distributed.scheduler.http.routes: there are no HTTP routes of Python',
      'distributed.scheduler.worker-saturaton: Dask has no such key; did you mean "worker-saturation"?',
      expect.stringContaining('distributed.dashboard.graph-max-items: there is no dashboard'),
    ]);
    expect(config.scheduler?.activeMemoryManager?.policies).toEqual([{ class: 'reduce-replicas' }]);
  });

  test('every unusable value is named with its place', () => {
    const env = scheduler({
      ALLOWED_FAILURES: '-1',
      WORKER_TTL: 'soon',
      WORKER_SATURATION: '0',
      WORK_STEALING: 'maybe',
      ACTIVE_MEMORY_MANAGER__MEASURE: 'weight',
      LOCKS__LEASE_TIMEOUT: '1 ms',
    });
    const read = (): unknown => readDaskSettings(env);
    expect(read).toThrow("Dask's configuration has 6 problems");
    for (const part of [
      'SCHEDULER__ALLOWED_FAILURES: distributed.scheduler.allowed-failures must be a whole number of at least 0 (got -1)',
      'distributed.scheduler.worker-ttl must be a time such as "2s"',
      'distributed.scheduler.worker-saturation must be a number above 0, or inf (got 0)',
      'distributed.scheduler.work-stealing must be true or false (got "maybe")',
      'distributed.scheduler.active-memory-manager.measure must be one of',
      'distributed.scheduler.locks.lease-timeout must be a time such as "2s" or "100 ms" of at least 10 ms',
    ]) {
      expect(read).toThrow(part);
    }
  });

  test('it is described with the source of each value', () => {
    const text = describeDaskSettings(readDaskSettings(scheduler({ ALLOWED_FAILURES: '10' })));
    expect(text).toContain(
      'distributed.scheduler.allowed-failures = 10 -> scheduler.allowedFailures (DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES)',
    );
    expect(describeDaskSettings(readDaskSettings(environment()))).toContain('says nothing');
  });
});

test('the lengths of logs and the largest number of transitions are configuration', async () => {
  const running = await createScheduler({
    config: { scheduler: { eventLogLength: 2, transitionCounterMax: 5, erredTaskLogLength: 0 } },
  });
  for (const message of [1, 2, 3]) running.enqueue({ op: 'log-event', topics: ['t'], message });
  const events = (await running.command('events', { topic: 't' })) as { message: unknown }[];
  expect(events.map(({ message }) => message)).toEqual([2, 3]);
  expect(running.kernel.options).toMatchObject({ transitionCounterMax: 5, erredTasksMax: 0 });
  await running.close();
});
