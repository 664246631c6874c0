import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

import { afterAll, expect, it } from 'vitest';

import { loadFunction } from '../../../adapters/tasks/load-function.ts';
import { AllowedModules, sourceVersion } from '../../../adapters/tasks/modules.ts';

const home = realpathSync(mkdtempSync(join(tmpdir(), 'yardmaster-modules-')));
const [inside, outside] = [join(home, 'project'), join(home, 'elsewhere')];
for (const folder of [inside, outside, join(inside, 'node_modules'), join(outside, 'parcel')]) {
  mkdirSync(folder, { recursive: true });
}
for (const folder of [inside, outside, join(outside, 'parcel')]) {
  writeFileSync(join(folder, 'tasks.js'), '');
}
symlinkSync(outside, join(inside, 'way-out'));
symlinkSync(join(inside, 'tasks.js'), join(outside, 'way-in.js'));
symlinkSync(join(outside, 'parcel'), join(inside, 'node_modules', 'parcel'));

afterAll(() => {
  rmSync(home, { recursive: true });
});

/** Whether a module is refused. */
function isRefused(allowed: AllowedModules, module: string): boolean {
  try {
    allowed.check(module);
    return false;
  } catch (error) {
    expect(error).toMatchObject({ code: 'ERR_MODULE_REFUSED' });
    return true;
  }
}

const url = (...parts: string[]): string => pathToFileURL(join(...parts)).href;

it('modules of a folder that is permitted may be loaded, by path and by URL, and no others', () => {
  const allowed = AllowedModules.of(['./project'], home);
  expect(isRefused(allowed, url(inside, 'tasks.js'))).toBe(false);
  expect(isRefused(allowed, join(inside, 'tasks.js'))).toBe(false);
  expect(isRefused(allowed, `${url(inside, 'tasks.js')}?fresh`)).toBe(false);
  expect(isRefused(allowed, url(outside, 'tasks.js'))).toBe(true);
  expect(isRefused(allowed, url(home, 'project-two', 'tasks.js'))).toBe(true);
  expect(isRefused(allowed, `file://${inside}/../elsewhere/tasks.js`)).toBe(true);
  expect(isRefused(allowed, `file://${inside}/%2e%2e/elsewhere/tasks.js`)).toBe(true);
});

it('a symbolic link leads to no other folder, and its target is what counts', () => {
  const allowed = AllowedModules.of(['./project'], home);
  expect(isRefused(allowed, url(inside, 'way-out', 'tasks.js'))).toBe(true);
  expect(isRefused(allowed, url(inside, 'way-out', 'missing.js'))).toBe(true);
  expect(isRefused(allowed, url(outside, 'way-in.js'))).toBe(false);
});

it('only files are permitted, whatever else is', () => {
  const everything = AllowedModules.of(['*'], home);
  expect(isRefused(everything, url(outside, 'tasks.js'))).toBe(false);
  for (const module of [
    'data:text/javascript,export const f = () => 1',
    'http://127.0.0.1/tasks.js',
    'node:child_process',
    'blob:nodedata:1',
    'file://elsewhere/tasks.js',
    'fs',
  ]) {
    expect([module, isRefused(everything, module)]).toEqual([module, true]);
  }
});

it('a package or a file can be permitted alone', () => {
  const parcel = AllowedModules.of(['parcel'], inside);
  expect(isRefused(parcel, url(inside, 'node_modules', 'parcel', 'tasks.js'))).toBe(false);
  expect(isRefused(parcel, url(outside, 'tasks.js'))).toBe(true);
  const file = AllowedModules.of(['./tasks.js'], outside);
  expect(isRefused(file, url(outside, 'tasks.js'))).toBe(false);
  expect(isRefused(file, url(outside, 'parcel', 'tasks.js'))).toBe(true);
  for (const missing of ['./nothing', 'no-such-package']) {
    expect(() => AllowedModules.of([missing], home)).toThrow('worker.allowModules names');
  }
});

it('by default the project of the current folder is permitted, and tasks of Yardmaster itself always', () => {
  const byDefault = AllowedModules.of(undefined, home);
  expect(isRefused(byDefault, import.meta.url)).toBe(false);
  expect(isRefused(byDefault, url(inside, 'tasks.js'))).toBe(true);
  const other = AllowedModules.of(['./project'], home);
  const own = (path: string): string => new URL(`../../../${path}`, import.meta.url).href;
  expect(isRefused(other, own('adapters/peers/hardware-tasks.ts'))).toBe(false);
  expect(isRefused(other, own('adapters/demo/tasks.ts'))).toBe(false);
});

it('what lies in the folder of Yardmaster is permitted by its name only, also the packages that it uses', () => {
  const other = AllowedModules.of(['./project'], home);
  const own = (path: string): string => new URL(`../../../${path}`, import.meta.url).href;
  expect(isRefused(other, own('node_modules/pino/pino.js'))).toBe(true);
  expect(isRefused(other, import.meta.url)).toBe(true);
  const copy = join(outside, 'yardmaster');
  mkdirSync(join(copy, 'dist', 'bundle'), { recursive: true });
  writeFileSync(join(copy, 'package.json'), '{ "name": "yardmaster" }');
  writeFileSync(join(copy, 'dist', 'bundle', 'demo-tasks.js'), '');
  expect(isRefused(other, url(copy, 'dist', 'bundle', 'demo-tasks.js'))).toBe(true);
});

it('functions of packages may be called only where defineTasks has registered them, unless the package is permitted', async () => {
  const project = join(home, 'with-packages');
  const sources = {
    'plain.js': 'export const shout = () => "plain";',
    'node_modules/tool/package.json': '{ "name": "tool", "type": "module" }',
    'node_modules/tool/index.js': 'export const shout = () => "tool";',
    'node_modules/other/package.json': '{ "name": "other", "type": "module" }',
    'node_modules/other/index.js': 'export const shout = () => "other";',
    'node_modules/jobs/package.json': '{ "name": "jobs", "type": "module" }',
    // It registers its function as defineTasks does, of this copy of Yardmaster or another one.
    'node_modules/jobs/index.js': `const registry = (globalThis[Symbol.for('yardmaster.tasks')] ??= new Map());
      registry.set(import.meta.url, new Map([['shout', () => 'jobs']]));`,
    'package.json': '{ "type": "module" }',
  };
  for (const [path, text] of Object.entries(sources)) {
    mkdirSync(dirname(join(project, path)), { recursive: true });
    writeFileSync(join(project, path), text);
  }
  const call = async (path: string, ...entries: string[]): Promise<unknown> => {
    const module = url(project, path);
    const spec = { module, name: 'shout', version: sourceVersion(module), args: new Uint8Array() };
    try {
      const modules = AllowedModules.of(entries, project);
      return (await loadFunction(spec, { modules }))();
    } catch (error) {
      return (error as { code?: unknown }).code;
    }
  };
  expect(await call('node_modules/tool/index.js', '.')).toBe('ERR_MODULE_REFUSED');
  expect(await call('node_modules/jobs/index.js', '.')).toBe('jobs');
  expect(await call('plain.js', '.')).toBe('plain');
  expect(await call('node_modules/tool/index.js', 'tool')).toBe('tool');
  expect(await call('node_modules/other/index.js', '*')).toBe('other');
});

it('other modules of Yardmaster are refused, of each copy of it and wherever they are permitted', () => {
  const everything = AllowedModules.of(['*'], home);
  const here = fileURLToPath(new URL('../../../', import.meta.url));
  const copy = join(inside, 'node_modules', 'yardmaster');
  mkdirSync(join(copy, 'dist', 'bundle'), { recursive: true });
  writeFileSync(join(copy, 'package.json'), '{ "name": "yardmaster" }');
  writeFileSync(join(copy, 'dist', 'bundle', 'simulator.js'), '');
  symlinkSync(join(copy, 'dist', 'bundle', 'simulator.js'), join(inside, 'innocent.js'));
  for (const path of [
    join(here, 'adapters/simulator/index.ts'),
    join(here, 'adapters/tasks/index.ts'),
    join(here, 'dist/bundle/cli.js'),
    join(copy, 'dist/bundle/simulator.js'),
    join(inside, 'innocent.js'),
  ]) {
    expect([path, isRefused(everything, pathToFileURL(path).href)]).toEqual([path, true]);
  }
});
