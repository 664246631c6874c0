import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { checkConfig, createScheduler } from '../../../adapters/app/start-scheduler.ts';
import { checkConfigCommand } from '../../../adapters/cli/commands/check-config.ts';
import { errorText } from '../../../adapters/cli/terminal.ts';
import { MemoryLog } from '../../bad-input/memory-log.ts';

const folder = mkdtempSync(join(tmpdir(), 'yardmaster-check-'));
afterAll(() => rmSync(folder, { recursive: true }));

const EXTENSIONS = `
export class NoRun { constructor(options) { this.options = options; } }
export class Picky { constructor(options) { this.size = options.table.size; } *run() {} }
export class AsyncRun { async *run() {} }
export class Pin {
  static optionsSchema = { type: 'object', additionalProperties: false, required: ['key'],
    properties: { key: { type: 'string' }, copies: { type: 'integer', default: 2 } } };
  constructor(options) { this.options = options; }
  *run() {}
}
export class Misspelt { taskTranstion() {} workerAdded() {} }
export class Throws { constructor() { throw new Error('no idea'); } workerAdded() {} }
export const late = { kind: 'plugin', name: 'late', apiVersion: 1, requires: ['other'], setup() {} };
export const notAPolicy = { kind: 'policy', slot: 'queuing', name: 'half', apiVersion: 1, create: () => ({}) };
export const throwing = { kind: 'policy', slot: 'queuing', name: 'broken', apiVersion: 1, create() { throw new Error('not today'); } };
export const wire = { kind: 'transport', name: 'wire', apiVersion: 1, create() { throw new Error('no socket'); } };
export class OfWorkers { statusChanged() {} }
export class OfNannies { processStarting() {} }
`;
writeFileSync(join(folder, 'extensions.mjs'), EXTENSIONS);
writeFileSync(join(folder, 'preload.mjs'), 'export function setup() {}');
writeFileSync(join(folder, 'broken.mjs'), 'export default {;');

function write(text: string): string {
  const path = join(folder, 'cluster.yaml');
  writeFileSync(path, text);
  return path;
}

async function messageOf(promise: Promise<unknown>): Promise<string> {
  const error: unknown = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  return errorText(error, false).replaceAll(folder, 'FOLDER');
}

describe('check-config', () => {
  it('refuses an address at which nothing can listen', async () => {
    const config = write('scheduler: { address: tls://127.0.0.1:99999 }\n');
    expect(await messageOf(checkConfig({ config, log: new MemoryLog() }))).toContain(
      'scheduler.address must have a port up to 65535 (got 99999)',
    );
  });

  it.each<[string, boolean]>([
    ['10 MB', true],
    ['50 MB', true],
    ['200 MB', false],
    ['0', false],
  ])('says whether a worker process can live with memoryLimit: %s', async (limit, isWarned) => {
    const config = write(`worker:\n  memoryLimit: ${limit}\n`);
    const report = await checkConfig({ config, log: new MemoryLog() });
    const warning = `${config}:2:16: worker.memoryLimit is of little use below`;
    expect(report.includes(warning)).toBe(isWarned);
    expect(report.includes('or write 0 for no limit')).toBe(isWarned);
  });

  it.each([
    [
      'an AMM class without run',
      'activeMemoryManager: { policies: [{ use: ./extensions.mjs#NoRun }] }',
      'has no method run',
    ],
    [
      'an AMM class whose constructor throws',
      'activeMemoryManager: { policies: [{ use: ./extensions.mjs#Picky }] }',
      'the constructor of Picky from',
    ],
    [
      'an AMM class with an async run',
      'activeMemoryManager: { policies: [{ use: ./extensions.mjs#AsyncRun }] }',
      'write *run(amm) without async',
    ],
    [
      'AMM options that are wrong',
      'activeMemoryManager: { policies: [{ use: ./extensions.mjs#Pin }] }',
      'policies[0].options.key must be text (got nothing)',
    ],
    [
      'a plugin class with a misspelt hook',
      'plugins: [{ use: ./extensions.mjs#Misspelt }]',
      'did you mean "taskTransition"?',
    ],
    [
      'a plugin class whose constructor throws',
      'plugins: [{ use: ./extensions.mjs#Throws }]',
      'threw: no idea',
    ],
    [
      'a plugin of workers',
      'plugins: [{ use: ./extensions.mjs#OfWorkers }]',
      'name it under worker.plugins',
    ],
    [
      'a plugin that requires another one',
      'plugins: [{ use: ./extensions.mjs#late }]',
      'requires "other"',
    ],
    [
      'a policy without its methods',
      'policies: { queuing: { use: ./extensions.mjs#notAPolicy } }',
      'it has no method isRootish',
    ],
    [
      'a policy whose create throws',
      'policies: { queuing: { use: ./extensions.mjs#throwing } }',
      'threw: not today',
    ],
    [
      'a shadow that does not exist',
      'shadows: { queuing: { use: ./nowhere.mjs } }',
      'there is no file',
    ],
    [
      'a transport whose create throws',
      'transport: { use: ./extensions.mjs#wire }',
      'threw: no socket',
    ],
    ['a module that cannot be parsed', 'plugins: [{ use: ./broken.mjs }]', 'cannot be loaded'],
    [
      'a preloaded module without functions',
      'preload: [{ use: ./extensions.mjs }]',
      'neither a function setup',
    ],
  ])('refuses %s as the scheduler does, with the place', async (_what, line, says) => {
    const config = write(`scheduler:\n  ${line}\n`);
    const log = new MemoryLog();
    const checked = await messageOf(checkConfig({ config, log }));
    const started = await messageOf(createScheduler({ config, log }));
    expect(checked).toBe(started);
    expect(checked).toContain(says);
    expect(checked).toMatch(/FOLDER\/cluster\.yaml:2:\d+: scheduler\./);
    expect(checked).not.toMatch(/^ *because:/m);
  });

  it('names every problem of all sections at once, each once', async () => {
    const config = write(`scheduler:
  transport: { use: ./extensions.mjs#wire }
  preload: [./nothing.mjs]
  policies: { queuing: { use: ./extensions.mjs#notAPolicy } }
  shadows: { ordering: { use: fifi } }
  activeMemoryManager:
    policies:
      - { use: ./extensions.mjs#NoRun }
      - { use: ./extensions.mjs#Pin, options: { kee: 1 } }
  plugins:
    - { use: ./extensions.mjs#Throws }
    - { use: ./extensions.mjs#late }
worker:
  plugins: [{ use: ./nothing.mjs }]
  preload: [./extensions.mjs]
`);
    const text = await messageOf(checkConfig({ config, log: new MemoryLog() }));
    const [first, ...lines] = text.split('\n');
    expect(first).toBe('ERR_CONFIG: the configuration has 11 problems:');
    expect(
      lines.map((line) => /^ {2}FOLDER\/cluster\.yaml:(\d+):\d+: [\w.[\]]+/.exec(line)?.[1]),
    ).toEqual(['2', '3', '4', '5', '8', '9', '9', '11', '12', '14', '15']);
    expect(new Set(lines).size).toBe(lines.length);
  });

  it('names what the schema refuses and what cannot be loaded in one run', async () => {
    const config = write(`scheduler:
  allowedFailures: -1
  plugins:
    - { us: ./extensions.mjs#Throws }
    - { use: ./extensions.mjs#Throws, optoins: {} }
    - { use: ./nowhere.mjs }
worker:
  thraeds: 4
  plugins:
    - { use: ./nothing.mjs, onError: crahs }
`);
    const log = new MemoryLog();
    const checked = await messageOf(checkConfig({ config, log }));
    const started = await messageOf(createScheduler({ config, log }));
    const placesIn = (text: string): (string | undefined)[] =>
      text
        .split('\n')
        .slice(1)
        .map((line) => /cluster\.yaml:(\d+:\d+: [\w.[\]]+)/.exec(line)?.[1]);
    const ofSchedulerAndSchema = [
      '2:20: scheduler.allowedFailures',
      '4:7: scheduler.plugins[0].use',
      '4:9: scheduler.plugins[0].us',
      '5:39: scheduler.plugins[1].optoins',
      '8:3: worker.thraeds',
      '10:38: worker.plugins[0].onError',
      '5:14: scheduler.plugins[1].use',
      '6:14: scheduler.plugins[2].use',
    ];
    expect(placesIn(started)).toEqual(ofSchedulerAndSchema);
    expect(placesIn(checked)).toEqual([...ofSchedulerAndSchema, '10:14: worker.plugins[0].use']);
    expect(checked).toContain('threw: no idea');
  });

  it.each([
    ['plugins', 'worker plugins', './extensions.mjs#OfWorkers', 'OfWorkers'],
    ['nannyPlugins', 'nanny plugins', './extensions.mjs#OfNannies', 'OfNannies'],
    ['preload', 'preloads', './preload.mjs', './preload.mjs'],
    ['nannyPreload', 'preloads', './preload.mjs', './preload.mjs'],
  ])(
    'refuses two of one name under worker.%s with the places of both',
    async (field, what, use, name) => {
      const config = write(`worker:\n  ${field}:\n    - { use: ${use} }\n    - { use: ${use} }\n`);
      const text = await messageOf(checkConfig({ config, log: new MemoryLog() }));
      const place = (line: number, index: number): string =>
        `from ${use.replace(/#.*/, '')} at FOLDER/cluster.yaml:${line}:14: worker.${field}[${index}].use`;
      expect(text).toContain(`there are two ${what} "${name}", ${place(3, 0)} and ${place(4, 1)}`);
    },
  );

  it('lists the policies of the memory manager with their options', async () => {
    const config = write(`scheduler:
  activeMemoryManager:
    policies:
      - reduce-replicas
      - { use: ./extensions.mjs#Pin, options: { key: model } }
`);
    const report = await checkConfig({ config, log: new MemoryLog() });
    expect(report.split('\n')).toEqual(
      expect.arrayContaining([
        '- amm (built-in amm)',
        '    policies[0]: ReduceReplicas from built-in reduce-replicas',
        '    policies[1]: Pin from ./extensions.mjs {"key":"model","copies":2}',
      ]),
    );
  });

  it('--python without --dask is refused, because it would have no effect', async () => {
    const flags = { logLevel: 'warn', python: 'python3' } as const;
    expect(await messageOf(checkConfigCommand(write('scheduler: {}\n'), flags))).toBe(
      "ERR_CONFIG: --python concerns Dask's configuration; add --dask",
    );
  });
});
