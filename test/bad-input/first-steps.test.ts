import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LocalCluster } from '../../adapters/app/local-cluster.ts';
import type { Client } from '../../adapters/client/index.ts';
import { type GraphContext, readAnnotations } from '../../adapters/dask/graph/materialized.ts';
import { python } from '../../adapters/dask/wire/python.ts';
import { defineTasks, taskOf } from '../../adapters/tasks/index.ts';
import { drive } from '../../adapters/testing/virtual-cluster.ts';
import { transportConformance } from '../../adapters/testing/index.ts';
import { connectError } from '../../adapters/transports/tcp/errors.ts';
import { VirtualClock } from '../../adapters/clocks/virtual-clock.ts';
import { readSource } from '../../core/config/read-source.ts';
import { nearest } from '../../core/shared/words.ts';
import { bad } from './fixtures/bad-tasks.js';
import { MemoryLog } from './memory-log.ts';

/** Calls with arguments that no type permits, as plain JavaScript has them. */
type Anything = (...args: unknown[]) => unknown;
const loose = (fn: unknown): Anything => fn as Anything;
const noop = (): void => undefined;
const { definePlugin } = await import('../../core/api/index.ts');

let cluster: LocalCluster;
let client: Client;
const log = new MemoryLog();

beforeAll(async () => {
  cluster = await LocalCluster.start({ mode: 'inline', workers: 1, log });
  client = await cluster.client();
});
afterAll(() => cluster.close());

describe('a wrong argument is refused in words that say what is wanted', () => {
  const context = {} as GraphContext;
  const addAmmPolicy = (): unknown => loose(client.amm.addPolicy)('reduce-replicas', { x: 1 });
  const calls: readonly (readonly [string, () => unknown, RegExp])[] = [
    ['defineTasks without functions', () => loose(defineTasks)('file:///x.js'), /wants an object with the functions of file:\/\/\/x\.js/],
    ['defineTasks without a module', () => loose(defineTasks)(undefined, {}), /wants the URL of the module.*got nothing; write import\.meta\.url/],
    ['defineTasks with a relative path', () => defineTasks('./x.js', {}), /wants the URL of the module.*got "\.\/x\.js"/],
    ['taskOf without a module', () => loose(taskOf)(undefined, noop), /^taskOf wants the URL/],
    ['taskOf without a function', () => loose(taskOf)('file:///x.js'), /"fn" of file:\/\/\/x\.js is undefined, not a function/],
    ['python without a path', () => loose(python)(), /nothing does not name a function of Python/],
    ['drive without a promise', () => loose(drive)(new VirtualClock(), 5), /wants the promise that virtual time shall settle.*got 5/],
    ['transportConformance without a runner', () => loose(transportConformance)('x', noop), /wants the functions of a test runner.*\{ describe, it \}/],
    ['transportConformance without a harness', () => loose(transportConformance)('x', 5, { describe, it: test }), /wants a function that makes the harness/],
    ['logEvent without a topic', () => loose(client.logEvent.bind(client))(), /wants a list of topics and a message, got the topics nothing/],
    ['logEvent without a message', () => loose(client.logEvent.bind(client))('t'), /got no message/],
    ['submit of a function that is no task', () => loose(client.submit.bind(client))(noop), /defineTasks\(import\.meta\.url, \{ … \}\)/],
    ['resources of Dask that are a word', () => readAnnotations({ resources: 'x' }, context), /resources of a task are numbers by name.*not "x"/],
    ['resources of Dask without a number', () => readAnnotations({ resources: { A: 'x' } }, context), /numbers by name/],
    ['an option of a memory manager policy', addAmmPolicy, /\n? *options\.x is not known/],
    ['a worker plugin that is not there', () => client.registerWorkerPlugin({ use: './nope.js' }), /relative to the configuration file, or to the current folder/],
    ['a plugin whose name is misspelt', () => cluster.scheduler.addPlugin(loose(definePlugin)({ nam: 'x', apiVersion: 1, setup: noop }) as never), /there is no field "nam"; did you mean "name"/],
  ]; // prettier-ignore

  test.each(calls)('%s', async (_, call, says) => {
    const error: unknown = await Promise.resolve()
      .then(call)
      .then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
    expect(error).toMatchObject({ message: expect.stringMatching(says) as string });
    expect(error).not.toBeInstanceOf(TypeError);
  });
});

test('a module of tasks may be named by an absolute path or an URL object, as CommonJS has it', () => {
  const { a } = defineTasks('/tmp/x.cjs', { a: noop });
  expect(a.module).toBe('file:///tmp/x.cjs');
  expect(defineTasks(new URL('file:///tmp/y.js'), { a: noop }).a.module).toBe('file:///tmp/y.js');
});

test.each([
  ['a name', 'workerSelection', { select: (): unknown => 'w1' }, 'chose "w1" for'],
  ['a promise', 'workerSelection', { select: (): unknown => Promise.resolve() }, 'chose a promise (policies answer at once) for'],
  ['a word', 'fairness', { generations: (): unknown => 'a' }, 'gave "a" instead of the number of a generation'],
  ['a number', 'ordering', { order: (): unknown => 5 }, 'gave the number 5 instead of a rank for each task'],
] as const)('a policy that answers with %s is reported with what it gave', async (_, slot, policy, says) => {
  await cluster.scheduler.replacePolicy(slot, policy);
  await client.with({ pure: false }).submit(bad.echo, says).result();
  await cluster.scheduler.replacePolicy(slot, 'default').catch(noop);
  expect(log.text).toContain(says);
}); // prettier-ignore

test('of two names that are as near, the one with the same first letter is proposed', () => {
  expect(nearest('daks', ['depth-first', 'mars', 'dask'])).toBe('dask');
});

test('a broken file of JSON is reported in words of JSON, with its place', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'first-steps-'));
  const path = join(folder, 'c.json');
  writeFileSync(path, '{\n  "scheduler": { "port": 1 }\n');
  await expect(readSource('c.json', path)).rejects.toThrow(
    /c\.json:\d:\d+: not valid JSON: Expected ','/,
  );
  rmSync(folder, { recursive: true });
});

test('a hook of a Python plugin that fails each time is logged the 1st, 2nd, 4th and 8th time', () => {
  const companion = fileURLToPath(
    new URL('../../adapters/dask/yardmaster_companion', import.meta.url),
  );
  const script = `
import logging, sys
sys.path.insert(0, ${JSON.stringify(companion)})
from hooks import Hooks
hooks = Hooks.__new__(Hooks)
hooks.failures = {}
logging.basicConfig(format="%(message)s", stream=sys.stdout)
for _ in range(15):
    hooks.begin("bad", "transition", lambda: 1 / 0, (), {})`;
  const { stdout, stderr } = spawnSync('python3', ['-c', script], { encoding: 'utf8' });
  expect(stderr).toBe('');
  expect(stdout.match(/^transition of .*$/gm)).toEqual([
    'transition of the scheduler plugin bad failed',
    'transition of the scheduler plugin bad failed',
    'transition of the scheduler plugin bad failed (failure 4 of this hook)',
    'transition of the scheduler plugin bad failed (failure 8 of this hook)',
  ]);
});

test('a peer that closes a tcp:// connection at once may be one of tls://', () => {
  const cause = Object.assign(new Error('the peer left without a word'), { code: 'ERR_CLOSED' });
  expect(connectError('tcp://h:1', cause).message).toContain(
    'if it listens with encryption, connect to tls://h:1',
  );
});
