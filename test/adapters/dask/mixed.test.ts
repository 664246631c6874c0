import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { Client, type Future } from '../../../adapters/app/index.ts';
import { arrow, keywords, ndarray, python } from '../../../adapters/app/entries/dask.ts';
import { DaskRuns } from './dask-runs.ts';
import { add, arrowOf, describe as shown, first, valueOf } from './fixtures/border-tasks.mjs';
import { findDaskPython, skipReason } from './pythons.ts';

const found = findDaskPython();

const FOLDER = fileURLToPath(new URL('./fixtures', import.meta.url));

const hasArrow =
  found !== undefined && spawnSync(found.command, ['-c', 'import pyarrow']).status === 0;

const repr = python<(value: unknown) => string>('builtins:repr');
const sqrt = python<(x: number) => number>('math:sqrt');

describe.skipIf(found === undefined)(`a Dask worker and a Node worker${skipReason(found)}`, () => {
  let runs: DaskRuns;
  let client: Client;
  let close = (): Promise<void> => Promise.resolve();
  let dask = '';

  beforeAll(async () => {
    runs = new DaskRuns(found!.command, { PYTHONPATH: FOLDER });
    const scheduler = await runs.scheduler();
    dask = scheduler.dask;
    runs.worker(dask, ['--nthreads', '2', '--no-nanny']);
    runs.yardmaster('worker', scheduler.own, '--threads', '2');
    client = await Client.connect(scheduler.own);
    close = () => client.close();
    const joined = async (): Promise<boolean> => {
      const { workers } = await client.identity();
      return workers.filter(({ status }) => status === 'running').length === 2;
    };
    while (!(await joined())) await new Promise((resolve) => setTimeout(resolve, 100));
  });

  afterAll(async () => {
    await close();
    await runs.end();
  });

  /** From a JavaScript task to a Python task that reports its argument. */
  const passed = (name: string): Promise<unknown> =>
    client.submit(repr, client.submit(valueOf, name)).result();

  it.each([
    ['null', 'None'],
    ['true', 'True'],
    ['int', '7'],
    ['large int', '9007199254740991'],
    ['bigint', '1267650600228229401496703205376'],
    ['float', '2.5'],
    ['text', "'grün'"],
    ['bytes', "b'abc'"],
    ['list', "[1, [2, 'x'], {}]"],
    ['map', "{1: 'a', 2: 'b'}"],
    ['object', "{'a': 1, 'b': {'c': [None, False]}}"],
    ['float array', 'array([1.5, 2.5])'],
    ['int array', 'array([ 1, -2])'],
    ['small ints', 'array([  1, 255], dtype=uint8)'],
    ['empty array', 'array([], dtype=float32)'],
  ])('Python gets %s as %s', async (name, text) => {
    expect(await passed(name)).toBe(text);
  });

  it.each([
    ['None', 'Null null'],
    ['1.5', 'Number 1.5'],
    ['2**70', 'BigInt "1180591620717411303424n"'],
    ['"ü"', 'String "ü"'],
    ['b"ab"', 'Uint8Array {"type":"Buffer","data":[97,98]}'],
    ['(1, [2.5, True])', 'Array [1,[2.5,true]]'],
    ['{"a": {"b": None}}', 'Object {"a":{"b":null}}'],
    ['numpy.float32(1.5)', 'Number 1.5'],
    ['numpy.int64(3)', 'Number 3'],
    ['numpy.bool_(True)', 'Boolean true'],
    ['numpy.arange(3, dtype="u2")', 'Uint16Array {"0":0,"1":1,"2":2}'],
    ['numpy.arange(6)[::2].astype("f4")', 'Float32Array {"0":0,"1":2,"2":4}'],
    ['{"x": numpy.array([1])}', 'Object {"x":{"0":"1n"}}'],
    [
      'numpy.arange(4.0).reshape(2, 2).T',
      'Object {"$python":"ndarray","dtype":"float64","shape":[2,2],"data":{"0":0,"1":2,"2":1,"3":3}}',
    ],
  ])('JavaScript gets %s as %s', async (expression, text) => {
    const made = client.submit(python('border_python:evaluate'), expression);
    expect(await client.submit(shown, made).result()).toBe(text);
  });

  it('a graph goes back and forth between the languages, and its client gathers both', async () => {
    const sum = client.submit(add, 7, 9);
    const root = client.submit(sqrt, sum);
    const more = client.submit(add, root, 0.5);
    const pair = client.submit(repr, [root, { more }]);
    expect(await client.gather([sum, root, more, pair])).toEqual([
      16,
      4,
      4.5,
      "[4.0, {'more': 4.5}]",
    ]);
  });

  it('an array that does not fit into memory is refused, and nobody waits for it', async () => {
    const made = client.submit(python('numpy:broadcast_to'), 0, [2 ** 45]);
    await expect(made.result()).rejects.toMatchObject({
      code: 'ERR_NOT_PORTABLE',
      message: expect.stringContaining(`the result of "${made.key}"`) as string,
    });
  });

  it('large arrays pass whole', async () => {
    const sum = client.submit(python('numpy:sum'), client.submit(valueOf, 'large array'));
    expect(await sum.result()).toBe(200_000);
  });

  it('arguments of Python may have names, and be arrays of any shape', async () => {
    const table = ndarray(Float64Array.of(1, 2, 3, 4), [2, 2]);
    const sums = client.submit(python('numpy:sum'), table, keywords({ axis: 0 }));
    expect(await sums.result()).toEqual(Float64Array.of(4, 6));
  });

  it('many tasks of both languages run at once', async () => {
    const numbers = client.map(
      add,
      Array.from({ length: 100 }, (_, i) => i),
      Array(100).fill(1),
    );
    const roots = client.map(sqrt, numbers);
    const sum = client.submit(python('builtins:sum'), roots);
    expect(await sum.result()).toBeCloseTo(671.46, 2);
  });

  it('a result that cannot pass to Python fails the task that wants it, and no other', async () => {
    const made = client.submit(valueOf, 'set within');
    const good = client.submit(valueOf, 'int');
    const wanting = client.submit(repr, [made, good]);
    await expect(wanting.result()).rejects.toMatchObject({
      code: 'ERR_NOT_PORTABLE',
      message: expect.stringContaining(`the result of "${made.key}" has at .a[1] a Set`) as string,
      data: { result: made.key, path: '.a[1]', from: 'JavaScript', to: 'Python' },
    });
    expect(await made.result()).toEqual({ a: [1, new Set()] });
    expect(await client.submit(repr, good).result()).toBe('7');
  });

  it('a result that cannot pass to JavaScript fails who wants it there, and not in Python', async () => {
    const made = client.submit(python('datetime:timedelta'), 1);
    const refusal = {
      code: 'ERR_NOT_PORTABLE',
      message: expect.stringContaining(
        `"${made.key}" is an object of datetime.timedelta`,
      ) as string,
    };
    await expect(client.submit(shown, made).result()).rejects.toMatchObject(refusal);
    await expect(made.result()).rejects.toMatchObject(refusal);
    expect(await client.submit(python('builtins:str'), made).result()).toBe('1 day, 0:00:00');
  });

  it('an argument that cannot pass fails its task', async () => {
    await expect(client.submit(repr, new Date(0)).result()).rejects.toMatchObject({
      code: 'ERR_NOT_PORTABLE',
      message: expect.stringContaining('a Date') as string,
    });
  });

  it('exceptions of Python come with name, message and traceback', async () => {
    await expect(client.submit(sqrt, -1).result()).rejects.toMatchObject({
      name: 'ValueError',
      message: 'math domain error',
    });
    const nested = client.submit(
      add,
      client.submit(python<(key: string) => number>('border_python:fail'), 'no'),
      1,
    );
    await expect(nested.result()).rejects.toMatchObject({
      name: 'KeyError',
      stack: expect.stringContaining('border_python.py') as string,
    });
    const missing = client.submit(python('math:nonsense'));
    await expect(missing.result()).rejects.toMatchObject({ name: 'AttributeError' });
  });

  it('call stacks and samples of Python come as those of JavaScript do', async () => {
    const resting = client.with({ key: 'rest-1' }).submit(python('border_python:rest'), 60);
    const stack = async (): Promise<readonly unknown[]> => {
      const { running } = await client.callStack([resting]);
      return running.flatMap(({ key, frames }) => [key, ...frames.map(({ name }) => name)]);
    };
    await expect.poll(stack, { timeout: 20_000 }).toEqual(['rest-1', 'nap', 'rest']);
    const { running } = await client.callStack([resting]);
    expect(running[0]?.frames[0]).toMatchObject({
      url: expect.stringMatching(/border_python\.py$/) as string,
      line: expect.any(Number) as number,
    });
    const samples = async (): Promise<string> => {
      const answers = await client.broadcast('inspect', { what: 'profile' });
      return JSON.stringify([...answers.values()]);
    };
    await expect.poll(samples, { timeout: 20_000 }).toMatch(/"rest":.*"name":"nap"/);
    resting.cancel();
  });

  it.runIf(hasArrow)('tables pass both ways', async () => {
    const made = client.submit(python('pyarrow:table'), { a: [1, 2] });
    const bytes = (await made.result()) as { readonly bytes: Uint8Array };
    const again = client.submit(arrowOf, bytes.bytes);
    expect(await client.submit(python('builtins:str'), again).result()).toContain('a: [[1,2]]');
    const given = client.submit(python('builtins:len'), arrow(bytes.bytes));
    expect(await given.result()).toBe(2);
  });

  it('a table that a worker cannot read fails the task that wants it', async () => {
    const made = client.submit(arrowOf, Uint8Array.of(1, 2));
    await expect(client.submit(repr, made).result()).rejects.toMatchObject({
      code: 'ERR_NOT_PORTABLE',
      message: expect.stringMatching(
        /cannot read the result of "arrowOf-.*(arrow|Arrow)/,
      ) as string,
    });
  });

  it('values that the client scatters go to Node workers, and from there to Python', async () => {
    const [list] = await client.scatter([[1, 2, 3]]);
    expect(await client.submit(python('builtins:sum'), list).result()).toBe(6);
  });

  it('a client of Dask gets results of JavaScript, and its tasks run where Python is', async () => {
    const text = client.submit(add, 'from ', 'Node');
    const pair = client.submit(valueOf, 'list');
    await client.variable('text').set(text);
    await client.variable('pair').set(pair);
    const script = [`${FOLDER}/border_client.py`, dask];
    const { stdout, stderr } = spawnSync(found!.command, script, { encoding: 'utf8' });
    expect(stdout, stderr).toBe("'from Node'\n[1, [2, 'x'], {}]\n'FROM NODE'\n3\n");
    const upper = (await client.variable('upper').get()) as Future<string>;
    expect(await client.submit(add, upper, '!').result()).toBe('FROM NODE!');
    expect(await client.submit(first, pair).result()).toBe(1);
  });

  it('a plugin that a Node client registers is set up on Node workers; those of Dask go without it', async () => {
    const use = fileURLToPath(
      new URL('../../core/worker/fixtures/worker-plugins.mjs', import.meta.url),
    );
    const registered = await client.registerWorkerPlugin({
      use,
      name: 'steps',
      options: { label: 'm' },
    });
    expect(registered).toBe('steps');
    const sum = client.submit(add, 30, 1);
    expect(await client.submit(sqrt, client.submit(add, sum, 5)).result()).toBe(6);
    const events = (await client.getEvents('news')).map(({ message }) => message);
    expect(events).toContainEqual({
      label: 'm',
      results: expect.arrayContaining([sum.key]) as unknown,
    });
    await client.unregisterWorkerPlugin('steps');
    expect(await client.submit(sqrt, 49).result()).toBe(7);
  });

  it('queues and published data sets pass plain data between the clients, queues futures, too', async () => {
    const sum = client.submit(add, 20, 1);
    const given = client.queue('to-python');
    for (const value of [[1, { x: 2.5 }], sum, [sum]]) await given.put(value);
    await client.publish('node-data', [1, 2]);
    await client.publish('node-future', sum);
    await client.publish('node-list', [sum]);
    const other = runs.script(`${FOLDER}/border_sharing.py`, dask);

    const taken = client.queue('to-node');
    expect(await taken.get()).toEqual([1, { x: 2.5 }]);
    const squared = (await taken.get()) as Future<number>;
    expect(await client.submit(add, squared, 1).result()).toBe(50);
    expect(await taken.get()).toBe('published');
    expect(await client.getPublished('python-list')).toMatchObject({
      message: expect.stringMatching(
        /cannot be read in JavaScript.* by a Variable or a Queue/,
      ) as string,
    });
    await given.put('the end');
    expect(await other.exit, other.stderr).toBe(0);
    expect(
      other.stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as unknown),
    ).toEqual([
      [1, { x: 2.5 }],
      21,
      expect.stringMatching(/^NotImplementedError: .*futures among other data; Dask can take/),
      [1, 2],
      expect.stringMatching(/^NotImplementedError: .*"node-future".* from a Variable or a Queue/),
      expect.stringMatching(/^NotImplementedError: .*futures among other data; Dask can take/),
    ]);
  });
});
