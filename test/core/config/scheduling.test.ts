import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { checkConfig, createScheduler } from '../../../adapters/app/start-scheduler.ts';
import { kernelOptions } from '../../../core/scheduler-host/tokens.ts';
import { configuration } from '../../../adapters/app/config.ts';
import type { ConfigInput } from '../../../adapters/app/config.ts';
import { MemoryLog } from '../../bad-input/memory-log.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'yardmaster-scheduling-'));
});
afterAll(() => rm(folder, { recursive: true }));

async function file(text: string): Promise<string> {
  const path = join(folder, 'cluster.yaml');
  await writeFile(path, text);
  return path;
}

/** The configuration that the documentation of Mars shows, word for word, and more of its words. */
const MARS = `scheduling:
  mem_quota_size: "80%"
  mem_hard_limit: 12 GiB
  enable_kill_slot: false
  subtask_max_retries: 1
  subtask_max_reschedules: 2
  subtask_cancel_timeout: 7
  speculation: { min_task_runtime: 4s }
`;

it("Mars' own spelling is understood, in the section and inside it", async () => {
  const { config } = await configuration.loadFile(await file(MARS));
  expect(config.scheduling).toMatchObject({
    memQuotaSize: 0.8,
    memHardLimit: 12 * 2 ** 30,
    enableKillSlot: false,
    subtaskMaxRetries: 1,
    subtaskMaxReschedules: 2,
    subtaskCancelTimeout: 7000,
  });
});

it('retries and reschedules reach the kernel', () => {
  const options = (input: ConfigInput): object =>
    kernelOptions(configuration.loadObject(input).config);
  expect(options({})).toMatchObject({
    allowedFailures: 3,
    avoidUsedWorkers: false,
    defaultRetries: 0,
  });
  const scheduling = { subtaskMaxRetries: 1, subtaskMaxReschedules: 0 };
  expect(options({ scheduler: { allowedFailures: 5 }, scheduling })).toMatchObject({
    allowedFailures: 0,
    avoidUsedWorkers: true,
    defaultRetries: 1,
  });
});

it('retries that are written as 0 take the place of those of the scheduler, and others do not', () => {
  const retriesWith = (scheduling: ConfigInput['scheduling']): number =>
    configuration.loadObject({ scheduler: { retries: 2 }, scheduling }).config.scheduler.retries;
  expect(retriesWith({ subtaskMaxRetries: 0 })).toBe(0);
  expect(retriesWith({})).toBe(2);
});

it('threads of cancelled tasks are ended after the timeout, or never', () => {
  const grace = (scheduling: ConfigInput['scheduling'] = {}, worker = {}): number =>
    configuration.loadObject({ scheduling, worker }).config.worker.killGrace;
  expect(grace()).toBe(500);
  expect(grace({}, { killGrace: '2s' })).toBe(2000);
  expect(grace({ subtaskCancelTimeout: '300 ms' }, { killGrace: '2s' })).toBe(300);
  expect(grace({ enableKillSlot: false, subtaskCancelTimeout: 1 })).toBe(Infinity);
});

it('words without effect are ignored and named with their place, and only those that were written', async () => {
  const { notes } = await configuration.loadFile(await file(MARS));
  expect(notes.map((note) => note.replace(`${folder}/`, ''))).toEqual([
    expect.stringContaining(
      'worker.memoryAdmission quota acts on workers with a memory limit only',
    ),
    'cluster.yaml:8:3: scheduling.speculation has no effect: no task runs twice at once',
  ]);
  const { config } = await configuration.loadFile(await file(MARS));
  expect(config.scheduling).not.toHaveProperty('speculation');
  expect(configuration.loadObject({ scheduling: { subtaskMaxRetries: 3 } }).notes).toEqual([]);
});

it('check-config and the log of a scheduler name settings without effect', async () => {
  const log = new MemoryLog();
  const report = await checkConfig({
    config: { scheduling: { submitPeriod: '1s' } as object },
    log,
  });
  expect(report).toMatch(/scheduling\.submitPeriod has no effect: tasks are sent/);
  expect(await checkConfig({ config: {}, log })).not.toContain('no effect');
  await using scheduler = await createScheduler({
    config: { scheduling: { autoscale: {} } as object },
    log,
  });
  expect(scheduler.bootReport()).toMatch(/scheduling\.autoscale has no effect/);
  expect(log.text).toMatch(/scheduling\.autoscale has no effect/);
});

it.each([
  ['mem_quota_size: 120%', 'memQuotaSize must be a share such as "80%", or a size'],
  ['memQuotaSize: 0', 'memQuotaSize must be a share'],
  ['mem_hard_limit: much', 'memHardLimit must be a share'],
  ['subtask_max_retries: -1', 'subtaskMaxRetries must be a whole number of at least 0'],
  ['subtaskMaxReschedules: 1.5', 'subtaskMaxReschedules must be a whole number'],
  ['enable_kill_slot: maybe', 'enableKillSlot must be true or false'],
  ['mem_quota_sice: 80%', 'memQuotaSice is not known; did you mean "memQuotaSize"?'],
  ['subtask_max_retries: 1, subtaskMaxRetries: 2', 'subtaskMaxRetries is written twice'],
])('%s is refused, with its place', async (text, message) => {
  const loading = configuration.loadFile(await file(`scheduling: { ${text} }\n`));
  await expect(loading).rejects.toThrow(`scheduling.${message}`);
  await expect(loading).rejects.toThrow(/cluster\.yaml:1:\d\d/);
});

it('the preset mars fills the slots and words that are not written', () => {
  const schedulerOf = (input: ConfigInput): object => {
    const { policies, slotWork } = configuration.loadObject(input).config.scheduler;
    return { policies, slotWork };
  };
  const rules = {
    policies: { queuing: { use: 'mars' }, ordering: { use: 'mars' }, rules: [] },
    slotWork: 0,
  };
  expect(schedulerOf({ scheduling: 'mars' })).toEqual(rules);
  expect(schedulerOf({ scheduling: { preset: 'mars', subtaskMaxRetries: 1 } })).toEqual(rules);
  expect(
    schedulerOf({
      scheduling: 'mars',
      scheduler: { policies: { ordering: 'best' }, slotWork: '2 ms' },
    }),
  ).toEqual({
    policies: { queuing: { use: 'mars' }, ordering: { use: 'best' }, rules: [] },
    slotWork: 2,
  });
  expect(() => configuration.loadObject({ scheduling: 'marz' as 'mars' })).toThrow(/preset.*mars/);
});

it('the preset of a file is named with its place when there is no such preset', async () => {
  const { config } = await configuration.loadFile(await file('scheduling: mars\n'));
  expect(config.scheduler.policies.queuing).toEqual({ use: 'mars' });
  await expect(file('scheduling: marz\n').then(configuration.loadFile)).rejects.toThrow(':1:');
});

it('a quota above the hard limit is refused, in shares and in bytes', () => {
  const load = (memQuotaSize: string | number, memHardLimit: string | number, limit = 0) => {
    const worker = { memoryAdmission: 'quota', memoryLimit: limit } as const;
    return () => configuration.loadObject({ scheduling: { memQuotaSize, memHardLimit }, worker });
  };
  expect(load('96%', '95%')).toThrow(
    'scheduling.memQuotaSize must not be above scheduling.memHardLimit: 96 % is more than 95 %',
  );
  expect(load('4 GiB', '3 GiB')).toThrow('must not be above');
  expect(load('80%', '3 GiB', 4 * 2 ** 30)).toThrow('must not be above');
  expect(load('95%', '95%')).not.toThrow();
  expect(load('80%', '3 GiB', 2 ** 30)).not.toThrow();
  expect(() => configuration.loadObject({ scheduling: { memQuotaSize: 1 } })).toThrow(
    'must not be above',
  );
});

it('quota and hard limit act when they are written, unless the switch says otherwise', () => {
  const scheduling = { memQuotaSize: '70%', memHardLimit: '95%' };
  const { config, notes } = configuration.loadObject({
    scheduling,
    worker: { memoryLimit: '1 GiB' },
  });
  expect(config.worker).toMatchObject({
    memoryAdmission: 'quota',
    memory: { quota: 0.7, hardLimit: 0.95, pause: 0 },
  });
  expect(notes).toEqual([]);
  const off = configuration.loadObject({ scheduling, worker: { memoryAdmission: 'thresholds' } });
  expect(off.config.worker.memory).not.toHaveProperty('quota');
  expect(off.notes).toEqual([
    'scheduling.memQuotaSize has no effect: it acts with worker.memoryAdmission: quota',
    'scheduling.memHardLimit has no effect: it acts with worker.memoryAdmission: quota',
  ]);
  expect(configuration.loadObject({}).config.worker.memoryAdmission).toBe('thresholds');
});

it('a quota without a memory limit is named, with the ways to give one', () => {
  const notesOf = (worker: object): readonly string[] => configuration.loadObject({ worker }).notes;
  const note =
    'worker.memoryAdmission quota acts on workers with a memory limit only: worker.memoryLimit is 0, which is unlimited, unless --memory-limit or memoryLimitBytes says otherwise; set a limit such as "4 GiB"';
  expect(notesOf({ memoryAdmission: 'quota', memoryLimit: 0 })).toEqual([note]);
  expect(notesOf({ memoryAdmission: 'quota' })).toEqual([note]);
  expect(notesOf({ memoryAdmission: 'quota', memoryLimit: '1 GiB' })).toEqual([]);
  expect(notesOf({ memoryLimit: 0 })).toEqual([]);
});

it("the preset dask has the policies and intervals of Dask's current release; what stands beside it wins", () => {
  const { scheduler } = configuration.loadObject({ scheduler: { policies: 'dask' } }).config;
  expect(scheduler.policies).toMatchObject({
    workerSelection: { use: 'earliest-start', options: { resources: 'offered' } },
    queuing: { use: 'root-ish' },
    ordering: { use: 'dask' },
    stealing: { use: 'dask' },
  });
  expect(scheduler.workStealing.interval).toBe(1000);
  const workStealing = { interval: '50 ms' };
  const beside = configuration.loadObject({ scheduler: { policies: 'dask', workStealing } }).config;
  expect(beside.scheduler.workStealing.interval).toBe(50);
  const overrides: ConfigInput = { scheduler: { policies: { ordering: 'fifo' } } };
  const above = configuration.loadObject({ scheduler: { policies: 'dask' } }, undefined, {
    overrides,
  }).config;
  expect(above.scheduler.policies.ordering).toMatchObject({ use: 'fifo' });
  expect(above.scheduler.workStealing.interval).toBe(1000);
});

it('a preset that does not exist is refused with the nearest name', () => {
  const policies = 'dusk' as 'dask';
  expect(() => configuration.loadObject({ scheduler: { policies } })).toThrow(
    /scheduler\.policies must be an object with a policy for each slot, or the name of a preset: dask; did you mean "dask"\?/,
  );
});

it.each(['overrides', 'defaults'])(
  'a preset in the %s that does not exist is refused, too',
  (layer) => {
    const layers = { [layer]: { scheduler: { policies: 'dusk' as 'dask' } } };
    const { error } = configuration.readObject({}, undefined, layers);
    expect(error?.message).toContain('did you mean "dask"?');
  },
);

it('the report of a check names the policies of a preset', async () => {
  const report = await checkConfig({ config: { scheduler: { policies: 'dask' } } });
  expect(report).toContain('- ordering: dask');
});
