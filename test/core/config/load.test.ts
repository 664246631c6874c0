import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { YardmasterError } from '../../../core/api/index.ts';
import { configuration } from '../../../adapters/app/config.ts';
import { type ConfigInput, defineConfig } from '../../../adapters/app/config.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'yardmaster-config-'));
});
afterAll(() => rm(folder, { recursive: true }));

async function file(name: string, text: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, text);
  return path;
}

/** The lines of the error, without the folder. */
async function problemsOf(loading: () => unknown): Promise<string[]> {
  try {
    await loading();
  } catch (error) {
    expect(YardmasterError.is(error, 'ERR_CONFIG')).toBe(true);
    return (error as Error).message
      .replaceAll(`${folder}/`, '')
      .split('\n')
      .map((l) => l.trim());
  }
  return ['no error'];
}

const SCHEDULING = {
  enableKillSlot: true,
  memQuotaSize: 0.8,
  memHardLimit: 0.95,
};
const WORKER_PROCESS = {
  killGrace: 500,
  nanny: true,
  stuckAfter: 30_000,
  retireTimeout: 10_000,
  onSchedulerLost: 'close',
  reconnectTimeout: 60_000,
  schedulerTtl: 300_000,
  lifetime: Infinity,
  lifetimeStagger: 0,
  lifetimeRestart: false,
  plugins: [],
  preload: [],
  nannyPlugins: [],
  nannyPreload: [],
};

/** Of workers, when nothing is said. */
const MEMORY = {
  target: 0.6,
  spill: 0.7,
  pause: 0.8,
  terminate: 0.95,
  transfer: 0.1,
  maxSpill: Infinity,
  monitorInterval: 100,
};

describe('a valid configuration', () => {
  it('is complete, in base units and frozen, when nothing is given', () => {
    const { config } = configuration.loadObject({});
    expect(config).toEqual({
      scheduler: {
        address: 'tls://127.0.0.1:8786',
        validate: false,
        allowedFailures: 3,
        retries: 0,
        avoidUsedWorkers: false,
        slotWork: 4,
        sendAlong: 1024,
        unknownTaskDuration: 500,
        defaultTaskDurations: {},
        defaultDataSize: 1024,
        workerTtl: 300_000,
        noWorkersTimeout: Infinity,
        slowHook: 100,
        idleTimeout: Infinity,
        clientGrace: 60_000,
        transitionLogLength: 1000,
        eventLogLength: 1000,
        erredTaskLogLength: 100,
        decisionLogLength: 0,
        policies: { rules: [] },
        shadows: {},
        clientPolicies: {},
        activeMemoryManager: {
          start: true,
          interval: 2000,
          measure: 'optimistic',
          policies: [{ use: 'reduce-replicas' }],
        },
        rebalance: {
          measure: 'optimistic',
          senderMin: 0.3,
          recipientMax: 0.6,
          senderRecipientGap: 0.1,
        },
        recentToOldTime: 30_000,
        workStealing: {
          start: true,
          interval: 100,
          horizon: 500,
          spare: ['rechunk-split', 'split-shuffle', 'split-taskshuffle', 'split-stage'],
        },
        coordination: { enabled: true, leaseTimeout: 30_000, memoryLimit: 2 ** 28 },
        limits: { scattered: Infinity, graph: 2 ** 32, events: 2 ** 26 },
        plugins: [],
        preload: [],
      },
      scheduling: SCHEDULING,
      worker: {
        resources: {},
        memoryLimit: 0,
        memory: MEMORY,
        memoryAdmission: 'thresholds',
        ready: 'priority',
        ...WORKER_PROCESS,
      },
    });
    expect(Object.isFrozen(config.scheduler.activeMemoryManager.policies)).toBe(true);
    expect(() => ((config as { scheduler: object }).scheduler = {})).toThrow(TypeError);
  });

  it('YAML has units, short names and entries', async () => {
    const path = await file(
      'good.yaml',
      `
scheduler:
  workerTtl: 1 minute
  noWorkersTimeout: null
  defaultTaskDurations: { inc: 10ms }
  policies:
    queuing: { use: root-ish, options: { workerSaturation: .inf } }
    ordering: depth-first
  plugins:
    - metrics
    - { use: ./counter.js, options: { every: 5 }, onError: crash }
worker:
  threads: 4
  resources: { GPU: 2 }
  memoryLimit: 4 GiB
  memory: { spill: false, maxSpill: 20 GB, monitorInterval: 50ms }
`,
    );
    const { config, folder: from } = await configuration.loadFile(path);
    expect(config.scheduler.workerTtl).toBe(60_000);
    expect(config.scheduler.noWorkersTimeout).toBe(Infinity);
    expect(config.scheduler.defaultTaskDurations).toEqual({ inc: 10 });
    expect(config.scheduler.policies).toEqual({
      queuing: { use: 'root-ish', options: { workerSaturation: Infinity } },
      ordering: { use: 'depth-first' },
      rules: [],
    });
    expect(config.scheduler.plugins).toEqual([
      { use: 'metrics', onError: 'log' },
      { use: './counter.js', options: { every: 5 }, onError: 'crash' },
    ]);
    expect(config.worker).toEqual({
      threads: 4,
      resources: { GPU: 2 },
      memoryLimit: 4 * 2 ** 30,
      memory: { ...MEMORY, spill: 0, maxSpill: 20e9, monitorInterval: 50 },
      memoryAdmission: 'thresholds',
      ready: 'priority',
      ...WORKER_PROCESS,
    });
    expect(from).toBe(folder);
  });

  it('the limits of the memory of workers may be false, as in Dask, but not true', () => {
    const memory = { target: false, maxSpill: false } as const;
    expect(configuration.loadObject({ worker: { memory } }).config.worker.memory).toEqual({
      ...MEMORY,
      target: 0,
    });
    const wrong = { worker: { memory: { pause: true, spill: 1.5 } } } as never;
    expect(() => configuration.loadObject(wrong)).toThrow(
      /worker\.memory\.spill must be a number from 0 to 1[^]*worker\.memory\.pause must be a number from 0 to 1, or false \(got true\)/,
    );
  });

  it('JSON works, and may name the schema for its editor', async () => {
    const path = await file('good.json', '{"$schema": "x", "scheduler": {"allowedFailures": 0}}');
    expect((await configuration.loadFile(path)).config.scheduler.allowedFailures).toBe(0);
  });

  it('a module is read', async () => {
    const path = await file('good.mjs', 'export default { scheduler: { bandwidth: "5 MB" } };');
    expect((await configuration.loadFile(path)).config.scheduler.bandwidth).toBe(5_000_000);
  });

  it('an empty file means all defaults', async () => {
    const path = await file('empty.yaml', '# nothing\n');
    expect((await configuration.loadFile(path)).config.scheduler.allowedFailures).toBe(3);
  });

  it("Dask's spelling of a policy of the memory manager becomes use and options", async () => {
    const path = await file(
      'dask.yaml',
      `
scheduler:
  activeMemoryManager:
    policies:
      - class: reduce-replicas
      - class: ./policies.js#EnsureBroadcast
        key: foo
`,
    );
    expect(
      (await configuration.loadFile(path)).config.scheduler.activeMemoryManager.policies,
    ).toEqual([
      { use: 'reduce-replicas', options: {} },
      { use: './policies.js#EnsureBroadcast', options: { key: 'foo' } },
    ]);
  });

  it('in code an extension may be the thing itself, and stays the same object', () => {
    class Counter {
      readonly name = 'counter';
    }
    const counter = new Counter();
    const literal = { name: 'literal', taskTransition: () => undefined };
    const policy = { score: () => 0 };
    const input = defineConfig({
      scheduler: { plugins: [counter, Counter, literal], policies: { workerSelection: policy } },
    });
    const { plugins, policies } = configuration.loadObject(input).config.scheduler;
    expect(plugins.map(({ use }) => use)).toEqual<unknown[]>([counter, Counter, literal]);
    expect(plugins[2]?.use).toBe(literal);
    expect(Object.isFrozen(literal)).toBe(false);
    expect(policies.workerSelection?.use).toBe(policy);
  });

  it('the given object is neither changed nor frozen', () => {
    const input = { scheduler: { workerTtl: '1s' } };
    configuration.loadObject(input);
    expect(input).toEqual({ scheduler: { workerTtl: '1s' } });
    expect(Object.isFrozen(input.scheduler)).toBe(false);
  });
});

describe('problems', () => {
  it('are all reported at once, in the order of the file, with place, path, value and hint', async () => {
    const path = await file(
      'bad.yaml',
      `scheduler:
  validate: maybe
  allowedFailures: -1
  workerTTL: 5s
  bandwidth: fast
  activeMemoryManger:
    start: true
  activeMemoryManager:
    measure: optimistc
    interval: 0s
  policies:
    ordering: { use: depth-first, option: {} }
  plugins:
    - { options: {} }
    - { use: 7 }
    - { use: metrics, onError: ignore }
worker:
  threads: 1.5
`,
    );
    expect(await problemsOf(() => configuration.loadFile(path))).toEqual([
      'the configuration has 12 problems:',
      'bad.yaml:2:13: scheduler.validate must be true or false (got "maybe")',
      'bad.yaml:3:20: scheduler.allowedFailures must be a whole number of at least 0 (got -1)',
      'bad.yaml:4:3: scheduler.workerTTL is not known; did you mean "workerTtl"?',
      'bad.yaml:5:14: scheduler.bandwidth must be a size such as "64 MiB" or "50MB" of at least 1 bytes (got "fast")',
      'bad.yaml:6:3: scheduler.activeMemoryManger is not known; did you mean "activeMemoryManager"?',
      'bad.yaml:9:14: scheduler.activeMemoryManager.measure must be one of process, managed, managedTotal, spilled, unmanaged, unmanagedOld, unmanagedRecent, optimistic (got "optimistc"); did you mean "optimistic"?',
      'bad.yaml:10:15: scheduler.activeMemoryManager.interval must be a time such as "2s" or "100 ms" of at least 1 ms (got "0s")',
      'bad.yaml:12:35: scheduler.policies.ordering.option is not known; did you mean "options"?',
      'bad.yaml:14:7: scheduler.plugins[0].use must be a name, a path or a package (got nothing)',
      'bad.yaml:15:14: scheduler.plugins[1].use must be a name, a path or a package (got 7)',
      'bad.yaml:16:32: scheduler.plugins[2].onError must be one of log, disable, crash (got "ignore")',
      'bad.yaml:18:12: worker.threads must be a whole number of at least 1 (got 1.5)',
    ]);
  });

  it.each<[string, ConfigInput, string]>([
    [
      'a key that Dask spells with dashes',
      { scheduler: { 'worker-ttl': '5s' } } as ConfigInput,
      'scheduler.worker-ttl is not known; did you mean "workerTtl"?',
    ],
    [
      'a time without sense',
      { scheduler: { workerTtl: '5 parsecs' } },
      'scheduler.workerTtl must be a time such as "2s" or "100 ms" of at least 1 ms, or inf (got "5 parsecs")',
    ],
    [
      'a time that must be finite',
      { scheduler: { unknownTaskDuration: 'inf' } },
      'scheduler.unknownTaskDuration must be a time such as "2s" or "100 ms" (got "inf")',
    ],
    [
      'a number that is none',
      { scheduler: { allowedFailures: NaN } },
      'scheduler.allowedFailures must be a whole number of at least 0 (got NaN)',
    ],
    [
      'an address without a scheme',
      { scheduler: { address: 'localhost:8786' } },
      'scheduler.address must be text that matches ^[a-z][a-z0-9+.-]*://, as "tls://127.0.0.1:8786" does (got "localhost:8786")',
    ],
    [
      'class next to use',
      { scheduler: { activeMemoryManager: { policies: [{ class: 'x', use: 'y' }] } } },
      'scheduler.activeMemoryManager.policies[0].class cannot stand next to use or options; with class the options are inline',
    ],
    [
      'a list where an object belongs',
      [] as ConfigInput,
      'the configuration must be an object (got [])',
    ],
    [
      'a dangerous key',
      JSON.parse('{"scheduler": {"__proto__": {"validate": true}}}') as ConfigInput,
      expect.stringMatching(/^scheduler\.__proto__ is not known; there are address, /) as string,
    ],
  ])('%s, given in code', async (_name, input, expected) => {
    expect(await problemsOf(() => configuration.loadObject(input))).toEqual([
      'the configuration has a problem:',
      expected,
    ]);
  });

  it('of syntax name the place', async () => {
    const path = await file('syntax.yaml', 'scheduler:\n  validate: [true\nworker: 1\n');
    const [head, first] = await problemsOf(() => configuration.loadFile(path));
    expect(head).toBe('the configuration cannot be parsed:');
    expect(first).toMatch(/^syntax\.yaml:3:\d+: /);
  });

  it('a key twice is an error', async () => {
    const path = await file('twice.yaml', 'worker: {}\nworker: {}\n');
    expect(await problemsOf(() => configuration.loadFile(path))).toEqual([
      'the configuration cannot be parsed:',
      'twice.yaml:2:1: Map keys must be unique',
    ]);
  });

  it('an alias within what it stands for is an error at its place', async () => {
    const path = await file('endless.yaml', 'worker: &w\n  memoryLimit: [*w]\n');
    expect(await problemsOf(() => configuration.loadFile(path))).toEqual([
      'the configuration cannot be parsed:',
      'endless.yaml:2:17: *w stands within &w, which would never end',
    ]);
  });

  it('a file that is not there is named', async () => {
    const [line] = await problemsOf(() => configuration.loadFile(join(folder, 'none.yaml')));
    expect(line).toMatch(/^the configuration file none\.yaml cannot be read: ENOENT/);
  });

  it('a module without a default export says what to write', async () => {
    const path = await file('named.mjs', 'export const config = {};');
    expect(await problemsOf(() => configuration.loadFile(path))).toEqual([
      'the configuration module named.mjs must export its configuration as default: export default defineConfig({ … })',
    ]);
  });

  it('has the problems as data', () => {
    try {
      configuration.loadObject({ scheduler: { allowedFailures: -1 } });
      expect.unreachable();
    } catch (error) {
      expect((error as YardmasterError).data).toEqual({
        problems: [
          {
            path: 'scheduler.allowedFailures',
            message: 'must be a whole number of at least 0 (got -1)',
            line: 'scheduler.allowedFailures must be a whole number of at least 0 (got -1)',
          },
        ],
      });
    }
  });
});
