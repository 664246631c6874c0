import { spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { definePlugin, YardmasterError } from '../../../core/api/index.ts';
import { AT_RUN_TIME } from '../../../core/plugin-host/extension-options.ts';
import { blueprintOf } from '../../../core/plugin-host/load-extensions.ts';
import { ModuleFiles } from '../../../core/plugin-host/module-files.ts';
import { PluginResolver } from '../../../core/plugin-host/plugin-resolver.ts';

/** As it is built. */
const DIST = new URL('../../../dist/core/plugin-host/', import.meta.url).href;

let root: string;
let folder: string;
let resolver: PluginResolver;

const ESM = 'export default "default of FILE"; export const Named = "named of FILE";';
const CJS = 'module.exports = { Named: "named of FILE" };';

const FILES: Readonly<Record<string, string>> = {
  'app/plugins/local.mjs': ESM,
  'app/plugins/named-only.mjs': 'export const Counter = 1; export const Other = 2;',
  'app/plugins/broken.mjs': 'throw new Error("broken on purpose");',
  'app/plugins/compiled.cjs':
    'Object.defineProperty(exports, "__esModule", { value: true }); exports.default = "inner default"; exports.Named = "named";',
  'app/plugins/plain.cjs': CJS,
  'app/plugins/several.cjs': 'exports.one = { kind: "plugin" }; exports.Two = class {};',
  'app/plugins/hung.mjs': 'export default await new Promise(() => {});',
  'app/plugins/old-place.mjs':
    'import { definePlugin } from "yardmaster"; export default definePlugin({});',
  'app/plugins/no-place.mjs':
    'import { defineExtension } from "yardmaster/plugin"; export default 1;',
  'app/plugins/old-entry.mjs': 'import { definePlugin } from "yardmaster/api"; export default 1;',
  'app/node_modules/yardmaster/package.json': JSON.stringify({
    name: 'yardmaster',
    exports: { '.': './index.mjs', './plugin': './plugin.mjs', './broken': './none.mjs' },
  }),
  'app/node_modules/yardmaster/index.mjs': 'export class Client {}',
  'app/node_modules/yardmaster/plugin.mjs':
    'export const definePlugin = (definition) => definition;',
  'shared/outside.mjs': ESM,
  'app/node_modules/import-only/package.json': JSON.stringify({
    name: 'import-only',
    type: 'module',
    exports: { import: './index.js' },
  }),
  'app/node_modules/import-only/index.js': ESM,
  'app/node_modules/plain/package.json': JSON.stringify({ name: 'plain' }),
  'app/node_modules/plain/index.js': CJS,
  'app/node_modules/with-main/package.json': JSON.stringify({
    name: 'with-main',
    main: './lib/entry.js',
  }),
  'app/node_modules/with-main/lib/entry.js': CJS,
  'app/node_modules/with-main/lib/other.js': CJS,
  'app/node_modules/dual/package.json': JSON.stringify({
    name: 'dual',
    exports: { require: './index.cjs', import: './index.mjs' },
  }),
  'app/node_modules/dual/index.cjs': CJS,
  'app/node_modules/dual/index.mjs': ESM,
  'app/node_modules/subpaths/package.json': JSON.stringify({
    name: 'subpaths',
    exports: {
      '.': './index.mjs',
      './feature': { default: './feature.mjs' },
      './policies/*': './dist/*.mjs',
      './policies/private/*': null,
    },
  }),
  'app/node_modules/subpaths/index.mjs': ESM,
  'app/node_modules/subpaths/feature.mjs': ESM,
  'app/node_modules/subpaths/dist/pack.mjs': ESM,
  'app/node_modules/@acme/policies/package.json': JSON.stringify({
    name: '@acme/policies',
    exports: {
      '.': {
        browser: './browser.mjs',
        node: { require: './index.cjs', import: './index.mjs' },
        default: './browser.mjs',
      },
    },
  }),
  'app/node_modules/@acme/policies/browser.mjs': ESM,
  'app/node_modules/@acme/policies/index.cjs': CJS,
  'app/node_modules/@acme/policies/index.mjs': ESM,
  'node_modules/hoisted/package.json': JSON.stringify({
    name: 'hoisted',
    exports: ['./missing-condition.txt/../x', './index.mjs'],
  }),
  'node_modules/hoisted/index.mjs': ESM,
  'app/package.json': JSON.stringify({
    name: 'my-app',
    exports: { './policies': { import: './own.mjs' } },
  }),
  'app/own.mjs': ESM,
};

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'yardmaster-resolve-'));
  folder = join(root, 'app');
  for (const [path, text] of Object.entries(FILES)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(
      join(root, path),
      text.replaceAll('FILE', path.replace(/^.*node_modules\//, '')),
    );
  }
  const builtins = {
    'reduce-replicas': () => Promise.resolve('built in'),
    tcp: () => Promise.reject(new Error('no network here')),
  };
  resolver = new PluginResolver(builtins, new ModuleFiles(folder));
});
afterAll(() => rm(root, { recursive: true }));

describe('use', () => {
  it.each<[form: string, use: string, exported: unknown, source: string]>([
    ['a built-in name', 'reduce-replicas', 'built in', 'built-in reduce-replicas'],
    [
      'a local file',
      './plugins/local.mjs',
      'default of app/plugins/local.mjs',
      './plugins/local.mjs',
    ],
    [
      'a named export',
      './plugins/local.mjs#Named',
      'named of app/plugins/local.mjs',
      './plugins/local.mjs',
    ],
    [
      'a file further up',
      '../shared/outside.mjs',
      'default of shared/outside.mjs',
      '../shared/outside.mjs',
    ],
    [
      'a CommonJS file',
      './plugins/plain.cjs#Named',
      'named of app/plugins/plain.cjs',
      './plugins/plain.cjs',
    ],
    ['compiled CommonJS', './plugins/compiled.cjs', 'inner default', './plugins/compiled.cjs'],
    ['a package for import alone', 'import-only', 'default of import-only/index.js', 'import-only'],
    ['its named export', 'import-only#Named', 'named of import-only/index.js', 'import-only#Named'],
    ['a plain package', 'plain#Named', 'named of plain/index.js', 'plain#Named'],
    [
      'a package with main',
      'with-main#Named',
      'named of with-main/lib/entry.js',
      'with-main#Named',
    ],
    [
      'a file of a package',
      'with-main/lib/other.js#Named',
      'named of with-main/lib/other.js',
      'with-main/lib/other.js#Named',
    ],
    ['a dual package loads its ESM', 'dual', 'default of dual/index.mjs', 'dual'],
    ['a subpath', 'subpaths/feature', 'default of subpaths/feature.mjs', 'subpaths/feature'],
    [
      'a subpath by pattern',
      'subpaths/policies/pack',
      'default of subpaths/dist/pack.mjs',
      'subpaths/policies/pack',
    ],
    [
      'nested conditions of a scoped package',
      '@acme/policies#Named',
      'named of @acme/policies/index.mjs',
      '@acme/policies#Named',
    ],
    ['a package further up', 'hoisted', 'default of hoisted/index.mjs', 'hoisted'],
    ['the own package by its name', 'my-app/policies', 'default of app/own.mjs', 'my-app/policies'],
  ])('%s: %s', async (_form, use, exported, source) => {
    expect(await resolver.resolve(use, 'plugin')).toEqual({ exported, source });
  });

  it('an absolute path', async () => {
    const { exported } = await resolver.resolve(join(folder, 'plugins/local.mjs'), 'plugin');
    expect(exported).toBe('default of app/plugins/local.mjs');
  });

  it('the thing itself', async () => {
    class Counter {}
    expect(await resolver.resolve(Counter, 'plugin')).toEqual({
      exported: Counter,
      source: 'Counter given in code',
    });
  });

  it.each([
    [
      'reduce-replica',
      'unknown policy "reduce-replica": nothing of that name is built in, and no package of that name can be imported from FOLDER; did you mean "reduce-replicas"?',
    ],
    [
      '@acme/nothing',
      'unknown policy "@acme/nothing": nothing of that name is built in, and no package of that name can be imported from FOLDER; a package has to be installed there',
    ],
    [
      'subpaths/policies/private/x',
      'unknown policy "subpaths/policies/private/x": nothing of that name is built in, and no package of that name can be imported from FOLDER; a package has to be installed there',
    ],
    [
      'fs',
      'unknown policy "fs": nothing of that name is built in, and no package of that name can be imported from FOLDER; a package has to be installed there',
    ],
    [
      './plugins/none.js',
      'the policy "./plugins/none.js" does not exist: there is no file FOLDER/plugins/none.js; paths are relative to the configuration file, or to the current folder if there is none',
    ],
    [
      './plugins/named-only.mjs',
      'the policy "./plugins/named-only.mjs" has no default export; pick one of its exports: ./plugins/named-only.mjs#Counter, ./plugins/named-only.mjs#Other',
    ],
    [
      './plugins/named-only.mjs#Conter',
      'the policy "./plugins/named-only.mjs#Conter" has no export "Conter"; did you mean "Counter"?',
    ],
    [
      './plugins/broken.mjs',
      'the policy "./plugins/broken.mjs" cannot be loaded: broken on purpose',
    ],
    ['tcp', 'the built-in "tcp" cannot be loaded: no network here'],
  ])('%s fails and says why', async (use, message) => {
    const error: unknown = await resolver.resolve(use, 'policy').catch((thrown: unknown) => thrown);
    expect(YardmasterError.is(error, 'ERR_PLUGIN_LOAD')).toBe(true);
    expect((error as Error).message.replaceAll(folder, 'FOLDER')).toBe(message);
  });
});

describe('a module that cannot be used says what to do', () => {
  const refusal = async (use: string, from = resolver): Promise<string> => {
    const error: unknown = await from.resolve(use, 'plugin').catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'ERR_PLUGIN_LOAD' });
    return (error as Error).message;
  };

  it('one whose top-level await never settles, within a limit', async () => {
    const hasty = new PluginResolver({}, new ModuleFiles(folder), undefined, undefined, 50);
    expect(await refusal('./plugins/hung.mjs', hasty)).toBe(
      'the plugin "./plugins/hung.mjs" did not load within 0.05 s; a top-level await of it, or of a module that it imports, probably never settles',
    );
    await expect(hasty.resolveModule('./plugins/hung.mjs', 'preload module')).rejects.toThrow(
      'the preload module "./plugins/hung.mjs" did not load within 0.05 s',
    );
  });

  it('a plugin whose load() never settles, within the same limit', async () => {
    const hung = definePlugin({
      name: 'hung',
      apiVersion: 1,
      load: () => new Promise(() => undefined),
      setup: () => undefined,
    });
    const request = { onError: 'log' as const, place: AT_RUN_TIME };
    const blueprint = blueprintOf({ exported: hung, source: './hung.js' }, request);
    await expect(
      blueprint.load(new PluginResolver({}, new ModuleFiles(folder), undefined, undefined, 50)),
    ).rejects.toMatchObject({
      code: 'ERR_PLUGIN_LOAD',
      message:
        'load() of plugin "hung" (./hung.js) did not end within 0.05 s; it probably awaits a promise that never settles',
    });
  });

  it.each([
    [
      'a name that lives elsewhere now',
      './plugins/old-place.mjs',
      /does not provide an export named 'definePlugin'; import definePlugin from "yardmaster\/plugin"$/,
    ],
    [
      'a name that no entry has',
      './plugins/no-place.mjs',
      /; no entry of the package has defineExtension/,
    ],
    [
      'an entry that does not exist any more',
      './plugins/old-entry.mjs',
      /; the entries of the package are yardmaster, yardmaster\/plugin, yardmaster\/broken$/,
    ],
  ])('an import of %s', (_what, use, says) => {
    // In a process of its own: here a tool of the tests imports modules, and has other messages.
    const program = `
      import { ModuleFiles } from ${JSON.stringify(`${DIST}module-files.js`)};
      import { PluginResolver } from ${JSON.stringify(`${DIST}plugin-resolver.js`)};
      const error = await new PluginResolver({}, new ModuleFiles(${JSON.stringify(folder)}))
        .resolve(${JSON.stringify(use)}, 'plugin').catch((thrown) => thrown);
      console.log(error.code, error.message);`;
    const options = { encoding: 'utf8' as const, input: program };
    const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-'], options);
    expect(stdout).toMatch(/^ERR_PLUGIN_LOAD /);
    expect(stdout.trim()).toMatch(says);
  });

  it('a CommonJS module with several extensions', async () => {
    expect(await refusal('./plugins/several.cjs')).toBe(
      'the plugin "./plugins/several.cjs" has no default export; pick one of its exports: ./plugins/several.cjs#one, ./plugins/several.cjs#Two',
    );
  });
});
