import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createHash } from 'node:crypto';
import { afterAll, describe, expect, expectTypeOf, it, onTestFinished, vi } from 'vitest';

import {
  currentTask,
  defineTasks,
  deserialise,
  importingTaskModule,
  isTaskFunction,
  packArguments,
  runTask,
  sourceVersion,
  type TaskFunction,
  taskOf,
} from '../../../adapters/tasks/index.ts';
import { describeFailure } from '../../../adapters/tasks/context.ts';
import { type ExecutionResult, type FunctionSpec, RemoteError } from '../../../core/api/index.ts';
import { tasks } from '../fixtures/sample-tasks.mjs';

const FIXTURE = new URL('../fixtures/sample-tasks.mjs', import.meta.url).href;
const folder = mkdtempSync(join(tmpdir(), 'tasks-test-'));
afterAll(() => rmSync(folder, { recursive: true }));

const fixture = tasks as unknown as Record<string, TaskFunction>;

function spec(handle: TaskFunction, args: readonly unknown[] = []): FunctionSpec {
  const { module, name, version } = handle;
  return { module, name, version, args: packArguments(args, () => undefined).bytes };
}

function run(runSpec: unknown, signal = new AbortController().signal): Promise<ExecutionResult> {
  let nowMs = 0;
  return runTask({ key: 'k', runSpec, inputs: new Map() }, { signal, nowMs: () => (nowMs += 10) });
}

async function failure(runSpec: unknown): Promise<RemoteError> {
  const result = await run(runSpec);
  if (result.kind !== 'failure') throw new Error(`it ended with ${result.kind}`);
  return new RemoteError(structuredClone(result.error));
}

function moduleFile(name: string, source?: string): string {
  const file = join(folder, name);
  mkdirSync(dirname(file), { recursive: true });
  if (source !== undefined) writeFileSync(file, source);
  return pathToFileURL(file).href;
}

describe('defineTasks', () => {
  it('gives typed handles that can be called and that carry module, name and version', () => {
    const module = 'data:text/javascript,//a';
    const { length } = defineTasks(module, { length: (text: string) => text.length });
    expectTypeOf(length).toExtend<TaskFunction<[text: string], number>>();
    expect(length('abc')).toBe(3);
    expect(isTaskFunction(length)).toBe(true);
    expect(isTaskFunction(() => 1)).toBe(false);
    expect([length.module, length.name]).toEqual([module, 'length']);
    expect(length.version).toBe(createHash('sha256').update(module).digest('hex'));
  });

  it('refuses what is not a function', () => {
    expect(() => defineTasks('data:,x', { oops: 3 as never })).toThrow(
      /"oops" of data:,x is number/,
    );
    expect(() => taskOf('data:,x', () => 1)).toThrow(/has no name/);
  });

  it('the version of a module changes with what it imports, however far away, and not with its path', () => {
    const versionOf = (deep: string, folder: string): string => {
      moduleFile(`${folder}/deep.mjs`, deep);
      moduleFile(`${folder}/near.mjs`, "export { a } from './deep.mjs'; import './main.mjs';");
      return sourceVersion(moduleFile(`${folder}/main.mjs`, "import { a } from './near.mjs';"));
    };
    expect(versionOf('export const a = 1;', 'one')).toBe(versionOf('export const a = 1;', 'two'));
    expect(versionOf('export const a = 2;', 'three')).not.toBe(
      sourceVersion(moduleFile('one/main.mjs')),
    );
  });

  it('the version of a module counts packages with their version', () => {
    const versionOf = (version: string): string => {
      const folder = `with-${version}`;
      moduleFile(`${folder}/node_modules/@x/y/package.json`, JSON.stringify({ version }));
      return sourceVersion(moduleFile(`${folder}/main.mjs`, "import y from '@x/y/sub.js';"));
    };
    expect(versionOf('1.0.0')).not.toBe(versionOf('1.0.1'));
  });

  it('the version of a module changes with what CommonJS modules require, as require finds it', () => {
    const versionOf = (folder: string, { near = '', index = '', json = '{}', y = '1' }): string => {
      moduleFile(`${folder}/lib/index.js`, `require("../main.cjs"); ${index}`);
      moduleFile(`${folder}/data.json`, json);
      moduleFile(`${folder}/node_modules/y/package.json`, JSON.stringify({ version: y }));
      moduleFile(`${folder}/near.js`, `const d = require('./data'); require('y/sub'); ${near}`);
      const main = "const near = require('./near'); require(`./lib`); require('node:fs');";
      return sourceVersion(moduleFile(`${folder}/main.cjs`, main));
    };
    const first = versionOf('cjs-1', {});
    expect(versionOf('cjs-2', {})).toBe(first);
    const others = [
      versionOf('cjs-3', { near: '// changed' }),
      versionOf('cjs-4', { index: '// changed' }),
      versionOf('cjs-5', { json: '[]' }),
      versionOf('cjs-6', { y: '2' }),
    ];
    expect(new Set([first, ...others]).size).toBe(5);
  });

  it('the version of a module covers what ES modules require', () => {
    const versionOf = (folder: string, source: string): string => {
      moduleFile(`${folder}/near.cjs`, source);
      const main = "import { createRequire } from 'node:module'; import x from './gone.mjs';";
      const load = "const require = createRequire(import.meta.url); require('./near.cjs');";
      return sourceVersion(moduleFile(`${folder}/main.mjs`, `${main} ${load}`));
    };
    expect(versionOf('mixed-1', '1')).not.toBe(versionOf('mixed-2', '2'));
  });

  it('the version of a module ignores imports that do not exist, and text that is not JavaScript', () => {
    const [missing, broken] = ["import './gone.mjs'; import 'gone';", 'import { from'] as const;
    for (const [index, source] of [missing, broken].entries()) {
      const version = sourceVersion(moduleFile(`odd-${index}.mjs`, source));
      expect(version).toBe(createHash('sha256').update(source).digest('hex'));
    }
  });

  it('the version of a module without imports is the hash of its source', () => {
    const source = 'export const a = 1;';
    expect(sourceVersion(moduleFile('hash.mjs', source))).toBe(
      createHash('sha256').update(source).digest('hex'),
    );
  });

  it('a version that the author gives stands for the source and for what it imports', () => {
    const versionOf = (name: string, version?: string): string => {
      const module = moduleFile(`pinned/${name}.mjs`, `export const a = '${name}';`);
      return defineTasks(module, { a: () => 1 }, version === undefined ? {} : { version }).a
        .version;
    };
    expect(versionOf('one', '3')).toBe(versionOf('two', '3'));
    expect(versionOf('three', '4')).not.toBe(versionOf('two', '3'));
    expect(versionOf('four')).not.toBe(versionOf('five'));
    expect(() => defineTasks('data:,x', { a: () => 1 }, { version: '' })).toThrow(
      /^defineTasks: version must/,
    );
  });

  it('a module is called that has the version of the client and another source', async () => {
    // A module elsewhere cannot import uncompiled code.
    vi.stubGlobal('defineTasks', defineTasks);
    onTestFinished(() => void vi.unstubAllGlobals());
    const sourceWith = (comment: string): string =>
      `// ${comment}\n` +
      `export const { a } = defineTasks(import.meta.url, { a: () => 1 }, { version: 'same' });`;
    const mine = moduleFile('pinned-here.mjs', sourceWith('before'));
    const theirs = moduleFile('pinned-there.mjs', sourceWith('after'));
    const { version } = defineTasks(mine, { a: () => 1 }, { version: 'same' }).a;
    const result = await run({ ...spec(fixture['add']!), module: theirs, name: 'a', version });
    expect(result.kind).toBe('success');
  });

  it('a module whose source cannot be read has no version', () => {
    for (const module of ['file:///does/not/exist.js', 'node:fs', 'no url']) {
      expect(() => taskOf(module, Math.max).version).toThrow(
        expect.objectContaining({ code: 'ERR_FUNCTION_MISSING' }),
      );
    }
  });
});

describe('runTask', () => {
  it('runs functions that were defined but not exported', async () => {
    const result = await run(spec(fixture['add']!, [2, 3]));
    expect(result).toMatchObject({ kind: 'success', type: 'number', startMs: 10, stopMs: 20 });
    expect(deserialise((result as { value: Uint8Array }).value)).toBe(5);
  });

  it('runs plain exports and awaits promises', async () => {
    const handle = taskOf(FIXTURE, function plainExport(text: string) {
      return text;
    });
    expect(await run(spec(handle as unknown as TaskFunction, ['a']))).toMatchObject({
      kind: 'success',
      type: 'string',
    });
    const later = await run(spec(fixture['later']!, ['b']));
    expect(deserialise((later as { value: Uint8Array }).value)).toBe('b');
  });

  it('imports a module once it is needed', async () => {
    const module = moduleFile('fresh.mjs', 'export const triple = (n) => 3 * n;');
    const result = await run({
      ...spec(fixture['add']!, [4]),
      module,
      name: 'triple',
      version: sourceVersion(module),
    });
    expect(deserialise((result as { value: Uint8Array }).value)).toBe(12);
    expect(importingTaskModule()).toBeUndefined();
  });

  it('no module is known to be imported after several were at once, whichever began or ended first', async () => {
    const runOf = (name: string, source: string): ReturnType<typeof run> => {
      const module = moduleFile(name, source);
      return run({
        ...spec(fixture['add']!, [4]),
        module,
        name: 'x',
        version: sourceVersion(module),
      });
    };
    const pause = `await new Promise((resolve) => setTimeout(resolve, 100));`;
    const quick = runOf('quick.mjs', 'export const x = (n) => n;');
    const slow = runOf('slow.mjs', `${pause} export const x = (n) => n;`);
    await Promise.all([quick, slow]);
    expect(importingTaskModule()).toBeUndefined();
  });

  it('a module is known to be imported for a task while it is', async () => {
    const module = moduleFile(
      'watch.mjs',
      `const at = globalThis[Symbol.for('yardmaster.importingTaskModule')]; export const where = () => at;`,
    );
    const result = await run({
      ...spec(fixture['add']!),
      module,
      name: 'where',
      version: sourceVersion(module),
    });
    expect(deserialise((result as { value: Uint8Array }).value)).toBe(module);
  });

  it('a missing module, and one that fails to load, are ERR_FUNCTION_MISSING', async () => {
    const base = spec(fixture['add']!);
    const missing = await failure({ ...base, module: 'file:///nowhere/tasks.js' });
    expect(missing).toMatchObject({ code: 'ERR_FUNCTION_MISSING' });
    expect(missing.message).toContain('file:///nowhere/tasks.js');
    const module = moduleFile('broken.mjs', 'throw new Error("top level");');
    const broken = await failure({ ...base, module, version: sourceVersion(module) });
    expect(broken).toMatchObject({ code: 'ERR_FUNCTION_MISSING' });
    expect(broken.message).toContain('top level');
  });

  it('a missing function is named with the nearest that is there', async () => {
    const error = await failure({ ...spec(fixture['add']!), name: 'doubel' });
    expect(error).toMatchObject({ code: 'ERR_FUNCTION_MISSING', data: { nearest: 'double' } });
    expect(error.message).toContain('did you mean "double"?');
    expect((await failure({ ...spec(fixture['add']!), name: 'notAFunction' })).message).toContain(
      'not as a function',
    );
    expect((await failure({ ...spec(fixture['add']!), name: 'toString' })).code).toBe(
      'ERR_FUNCTION_MISSING',
    );
  });

  it('another version of the module is refused with both versions', async () => {
    const expected = '0'.repeat(64);
    const error = await failure({ ...spec(fixture['add']!), version: expected });
    expect(error).toMatchObject({
      code: 'ERR_FUNCTION_VERSION',
      data: { expected, actual: sourceVersion(FIXTURE), module: FIXTURE, name: 'add' },
    });
    const module = moduleFile('other.mjs', 'export const a = () => 1;');
    expect(await failure({ ...spec(fixture['add']!), module, name: 'a' })).toMatchObject({
      code: 'ERR_FUNCTION_VERSION',
    });
  });

  it('a run spec that names no function is refused', async () => {
    expect(await failure(undefined)).toMatchObject({ code: 'ERR_PROTOCOL' });
    expect(await failure({ module: 1 })).toMatchObject({ code: 'ERR_PROTOCOL' });
  });

  it('a result that cannot be serialised is named by its path', async () => {
    const error = await failure(spec(fixture['returnFunction']!));
    expect(error).toMatchObject({
      code: 'ERR_NOT_SERIALISABLE',
      data: { path: 'result.rows[1].format' },
    });
  });

  it.each([
    ['throwString', '"just a string"', 'just a string'],
    ['throwUndefined', 'undefined', 'undefined'],
    ['throwNull', 'null', null],
    ['throwObject', '{"reason":"no disk","left":3}', { reason: 'no disk', left: 3 }],
  ])('%s: what is not an Error is described', async (name, text, thrown) => {
    const error = await failure(spec(fixture[name]!));
    expect(error.name).toBe('NonError');
    expect(error.message).toContain(text);
    expect(error.data['thrown']).toEqual(thrown);
  });

  it('properties that are no plain data, and the errors of an AggregateError, arrive in a plain form', () => {
    const errors = [new RangeError('too far'), 5n];
    const whole = Object.assign(new AggregateError(errors, 'all failed'), {
      ...{ id: 12345678901234567890n, at: new Date(0), seen: new Map([['a', 1]]) },
      self: [errors],
    });
    whole.errors.push(whole);
    expect(describeFailure(whole).data).toMatchObject({
      ...{ id: '12345678901234567890', at: '1970-01-01T00:00:00.000Z', seen: [['a', 1]] },
      errors: [
        { name: 'RangeError', message: 'too far' },
        '5',
        { name: 'AggregateError', message: 'all failed' },
      ],
    });
  });

  it('an error is carried with its code and frames however large its texts and properties are', () => {
    const large = 'm'.repeat(5_000_000);
    const error = Object.assign(new Error(large), { code: 'E_LARGE', body: large, retries: 3 });
    const payload = describeFailure(error);
    expect(payload).toMatchObject({ code: 'E_LARGE', data: { retries: 3, tooLarge: ['body'] } });
    expect(payload.message).toMatch(/^m{65536}… \(4934464 more characters\)$/);
    expect(payload.stack).toContain('tasks.test.ts');
    expect(JSON.stringify(payload).length).toBeLessThan(300_000);
    expect(JSON.stringify(describeFailure([large])).length).toBeLessThan(300_000);
  });

  it('an error keeps class, code, cause, stack and its plain properties', async () => {
    const error = await failure(spec(fixture['throwRich']!));
    expect(error).toMatchObject({
      name: 'Problem',
      message: 'could not save',
      code: 'ERR_SAVE',
      data: { path: '/data/x', nested: { ok: true } },
      cause: { message: 'disk full', code: 'ENOSPC' },
    });
    expect(error.stack).toContain('sample-tasks.mjs');
  });

  it('errors that defeat description still make a failure', async () => {
    const module = moduleFile(
      'nasty.mjs',
      `export function nasty() { const e = new Error('recursive'); const loop = []; loop.push(loop); e.loop = loop; throw e; }
       export function worse() { throw Object.defineProperty(new Error('x'), 'message', { get() { throw new Error('gotcha'); } }); }`,
    );
    const base = { ...spec(fixture['add']!), module, version: sourceVersion(module) };
    expect(await failure({ ...base, name: 'nasty' })).toMatchObject({
      name: 'Error',
      message: 'recursive',
    });
    expect((await failure({ ...base, name: 'worse' })).message).toContain(
      'cannot be described (Error: gotcha)',
    );
  });

  it('a task knows its key, also after an await, and nothing outside of one does', async () => {
    const result = await run(spec(fixture['key']!));
    expect(deserialise((result as { value: Uint8Array }).value)).toBe('k');
    expect(() => currentTask()).toThrow(/outside of a running task/);
  });

  it('a task that asks to be placed anew is not a failure', async () => {
    expect(await run(spec(fixture['reschedule']!))).toEqual({ kind: 'reschedule' });
  });

  it('the signal reaches the task', async () => {
    const controller = new AbortController();
    const running = run(spec(fixture['waitForAbort']!), controller.signal);
    controller.abort();
    expect(deserialise(((await running) as { value: Uint8Array }).value)).toBe('aborted');
  });
});
