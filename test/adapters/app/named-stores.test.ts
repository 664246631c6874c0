/** Stores of results that a configuration or options name. */
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { LocalCluster, type LocalClusterOptions } from '../../../adapters/app/local-cluster.ts';
import { checkConfig } from '../../../adapters/app/start-scheduler.ts';
import { startWorker } from '../../../adapters/app/start-worker.ts';
import { Client } from '../../../adapters/client/index.ts';
import type { ResultStoreOption } from '../../../adapters/client/options.ts';
import type { TaskFunction } from '../../../adapters/tasks/index.ts';
import { defineStore } from '../../../core/api/index.ts';
import { tasks } from '../fixtures/sample-tasks.mjs';

const folder = mkdtempSync(join(tmpdir(), 'yardmaster-stores-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});
const add = tasks.add as unknown as TaskFunction<[number, number], number>;

/** The module of a store that keeps each result in a file of its own. */
function storeModule(name: string, methods: string, apiVersion = 1): string {
  const code = `import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
const pathOf = (key) => ${JSON.stringify(folder)} + '/' + key;
const optionsSchema = { type: 'object', additionalProperties: false, properties: { limit: { type: 'integer' } } };
export default { kind: 'store', name: '${name}', apiVersion: ${apiVersion}, optionsSchema, create: () => ({ ${methods} }) };`;
  const path = join(folder, `${name}.mjs`);
  writeFileSync(path, code);
  return path;
}

const METHODS = `
  has: async (key) => existsSync(pathOf(key)),
  read: async (key) => existsSync(pathOf(key)) ? { type: 'x', value: readFileSync(pathOf(key)) } : undefined,
  write: async (key, { value }) => writeFileSync(pathOf(key), value),`;
const whole = storeModule(
  'whole',
  `${METHODS} delete: async (key) => rmSync(pathOf(key), { force: true })`,
);

const executor = join(folder, 'executor.mjs');
writeFileSync(
  executor,
  "export default { kind: 'executor', name: 'x', apiVersion: 1, create: 0 };",
);

async function sumKept(options: LocalClusterOptions, first = 2): Promise<number> {
  await using cluster = await LocalCluster.start({ workers: 1, ...options });
  const client = await cluster.client();
  const kept = client.with({ persist: true });
  return await kept.submit(add, first, 3).result();
}

it.each(['inline', 'threads', 'processes'] as const)(
  'a cluster in the mode %s keeps results in the store that its configuration names',
  async (mode) => {
    const file = join(folder, `${mode}.yaml`);
    writeFileSync(file, 'worker: { resultStore: { use: ./whole.mjs } }');
    expect(await sumKept({ mode, config: file })).toBe(5);
  },
);

it('a package of a configuration is found from its folder, whatever the current one is', async () => {
  const home = join(folder, 'node_modules', 'kept-in-files');
  mkdirSync(home, { recursive: true });
  writeFileSync(
    join(home, 'package.json'),
    '{ "name": "kept-in-files", "exports": "./index.mjs" }',
  );
  copyFileSync(whole, join(home, 'index.mjs'));
  const file = join(folder, 'package.yaml');
  writeFileSync(file, 'worker: { resultStore: { use: kept-in-files } }');
  expect(await sumKept({ mode: 'inline', config: file }, 5)).toBe(8);
});

it('a store of the configuration need not be among the modules that clients may name', async () => {
  const warnings: Error[] = [];
  const onWarning = (warning: Error): number => warnings.push(warning);
  process.on('warning', onWarning);
  const allowModules = [new URL('../fixtures', import.meta.url).pathname];
  const other = storeModule('other', `${METHODS} delete: async () => {}`);
  const options = { mode: 'inline', resultStore: { use: other }, allowModules } as const;
  expect(await sumKept(options, 4)).toBe(7);
  process.off('warning', onWarning);
  expect(warnings).toEqual([]);
});

const REFUSED: readonly [what: string, store: object, code: string, says: string][] = [
  ['has no module', { use: './none.mjs' }, 'ERR_PLUGIN_LOAD', 'none.mjs" does not exist'],
  [
    'gets an unknown option',
    { use: whole, options: { limits: 1 } },
    'ERR_CONFIG',
    'options.limits is not known; did you mean "limit"',
  ],
  ['is no such export', { use: `${whole}#none` }, 'ERR_PLUGIN_LOAD', 'has no export "none"'],
  [
    'is an executor',
    { use: executor },
    'ERR_PLUGIN_LOAD',
    'is an executor, and a store of results is wanted here',
  ],
  [
    'is written for another version',
    { use: storeModule('later', '', 2) },
    'ERR_PLUGIN_LOAD',
    'written for version 2',
  ],
  ['is misspelt', { use: whole, option: {} }, 'ERR_CONFIG', 'option is not known'],
  ['is nothing', { uses: whole }, 'ERR_CONFIG', 'must be the path of a folder'],
  ['is no bucket', { s3: { buckets: 'x' } }, 'ERR_CONFIG', 's3.bucket must be text'],
];

it.each(REFUSED)('check-config finds a store that %s, with its place', async (...row) => {
  const [, store, code, says] = row;
  const file = join(folder, 'refused.yaml');
  writeFileSync(file, JSON.stringify({ worker: { resultStore: store } }));
  const refused = expect(checkConfig({ config: file })).rejects;
  await refused.toMatchObject({ code, message: expect.stringContaining(says) as string });
  await refused.toThrow(/refused\.yaml:1:\d+: worker\.resultStore/);
});

it('check-config makes no store that it looks at', async () => {
  const config = { worker: { resultStore: { use: storeModule('unmade', 'throw: 1') } } };
  expect(await checkConfig({ config })).toContain('policies');
});

it.each([
  ...REFUSED,
  ['lacks a method', { use: storeModule('lacking', METHODS) }, '', 'its delete must be'],
] as const)('a store that %s is refused when the cluster starts', async (...row) => {
  const [, store, , says] = row;
  const resultStore = store as ResultStoreOption;
  await expect(sumKept({ mode: 'inline', resultStore })).rejects.toThrow(says);
});

const create = (): never => {
  throw new Error('it was made');
};
const inCode = defineStore({ name: 'in-code', apiVersion: 1, create });

it.each([
  ['a definition', inCode],
  ['an entry of one', { use: inCode }],
])('%s in code is no store, because threads load its module', async (_what, given) => {
  const resultStore = given as unknown as ResultStoreOption;
  const says = 'the path, URL or name of a module, because each thread of a worker loads it';
  await expect(sumKept({ mode: 'inline', resultStore })).rejects.toThrow(says);
  await expect(Client.connect('tcp://127.0.0.1:1', { resultStore })).rejects.toThrow(says);
  await expect(startWorker('tcp://127.0.0.1:1', { resultStore })).rejects.toThrow(says);
});

it.each([
  ['throws', 'throw new Error("no disk")', 'no disk'],
  [
    'gives text',
    'return { type: "x", value: "text" }',
    'its read gave {"type":"x","value":"text"} instead of { type, value }',
  ],
])('a store whose read %s is named in the failure of the task', async (what, body, says) => {
  const name = `read-${what.replace(' ', '-')}`;
  const reading = `has: async () => true, read: async () => { ${body}; }, write: async () => {}, delete: async () => {}`;
  const use = storeModule(name, reading);
  await expect(sumKept({ mode: 'inline', resultStore: { use } }, 9)).rejects.toMatchObject({
    code: 'ERR_RESULT_STORE',
    message: expect.stringContaining(`from the store of results ${use}: ${says}`) as string,
  });
});

it('a store whose has or write fails is named in a warning, and the task is computed', async () => {
  const warnings: string[] = [];
  const onWarning = ({ message }: Error): number => warnings.push(message);
  process.on('warning', onWarning);
  const fail = 'async () => { throw new Error("no disk"); }';
  const methods = `has: ${fail}, read: ${fail}, write: ${fail}, delete: ${fail}`;
  const use = storeModule('failing', methods);
  expect(await sumKept({ mode: 'inline', resultStore: { use } }, 8)).toBe(11);
  process.off('warning', onWarning);
  const store = `the store of results ${use}`;
  expect(warnings).toHaveLength(2);
  expect(warnings[0]).toContain(`${store} could not be asked for`);
  expect(warnings[1]).toContain(`${store} did not keep the result of`);
});
