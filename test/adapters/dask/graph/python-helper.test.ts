import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { SystemClock, VirtualClock } from '../../../../adapters/clocks/index.ts';
import { decodeMessage, Opaque } from '../../../../adapters/dask/wire/codec.ts';
import { FrameReader } from '../../../../adapters/dask/wire/frames.ts';
import {
  GraphUnpacker,
  isCallSpec,
  pythonCommands,
  type GraphMessage,
  type HelperOptions,
  type UnpackedGraph,
} from '../../../../adapters/dask/graph/index.ts';
import { DaskRuns } from '../dask-runs.ts';
import { findDaskPython, skipReason } from '../pythons.ts';

const python = findDaskPython();
const MAKE_GRAPHS = fileURLToPath(new URL('../make_graphs.py', import.meta.url));
const NAMES = [
  'chained',
  'array',
  'annotated',
  'many',
  'deadly',
  'slow',
  'broken',
  'deadlyOnce',
  'hungry',
] as const;

const ignore = () => undefined;
const silent = { debug: ignore, info: ignore, warn: ignore, error: ignore };
const context = {
  keyOf: (wire: unknown) => (typeof wire === 'string' ? wire : JSON.stringify(wire)),
  isWorkerName: () => false,
};
const unpackers: GraphUnpacker[] = [];

function anUnpacker(options: Partial<HelperOptions> = {}): GraphUnpacker {
  const unpacker = makeUnpacker(options);
  unpackers.push(unpacker);
  return unpacker;
}

function makeUnpacker(options: Partial<HelperOptions> = {}): GraphUnpacker {
  return new GraphUnpacker(
    {
      commands: [[python?.command ?? '']],
      timeoutMs: 60_000,
      clock: new SystemClock(),
      log: silent,
      ...options,
    },
    context,
  );
}

/** Every dependency comes before its dependents in some order, and all are in the graph. */
function expectComplete({ tasks, keys }: UnpackedGraph): void {
  const known = new Set(tasks.map(({ key }) => key));
  expect(known.size).toBe(tasks.length);
  for (const key of keys) expect(known).toContain(key);
  for (const { key, dependencies, runSpec } of tasks) {
    expect(dependencies).not.toContain(key);
    for (const input of dependencies) expect(known).toContain(input);
    expect(isCallSpec(runSpec) || runSpec instanceof Opaque).toBe(true);
  }
}

afterEach(() => {
  for (const unpacker of unpackers.splice(0)) unpacker.close();
});

describe.skipIf(python === undefined)(`graphs read by Python${skipReason(python)}`, () => {
  const graphs = {} as Record<(typeof NAMES)[number], GraphMessage>;
  // Its process starts once for those that only ask it.
  const shared = makeUnpacker();
  afterAll(() => shared.close());

  beforeAll(() => {
    const made = spawnSync(python!.command, [MAKE_GRAPHS], { maxBuffer: 2 ** 28 });
    expect(made.stderr.toString()).not.toContain('Traceback');
    const messages: GraphMessage[] = [];
    new FrameReader((frames) => messages.push(decodeMessage(frames) as GraphMessage)).push(
      made.stdout,
    );
    NAMES.forEach((name, index) => (graphs[name] = messages[index]!));
  });

  it('a chain has its two tasks and their dependency', async () => {
    const graph = await shared.unpack(graphs.chained);
    expectComplete(graph);
    expect(graph.tasks.length).toBeGreaterThanOrEqual(1);
    expect(graph.keys).toHaveLength(1);
  });

  it('symbolic layers become tasks', async () => {
    const graph = await shared.unpack(graphs.array);
    expectComplete(graph);
    expect(graph.tasks.length).toBeGreaterThan(64);
    expect(shared.versions).toMatchObject({ distributed: python!.version });
  });

  it('annotations arrive, also those that are functions', async () => {
    const { tasks } = await shared.unpack(graphs.annotated);
    expect(tasks.every(({ resources }) => resources?.['GPU'] === 1)).toBe(true);
    const annotated = tasks.filter(({ userPriority }) => userPriority === 3);
    expect(annotated.length).toBeGreaterThan(0);
    expect(annotated.every(({ retries }) => retries === 2)).toBe(true);
  });

  it('a function that many tasks share is there once', async () => {
    const graph = await shared.unpack(graphs.many);
    expectComplete(graph);
    expect(graph.tasks).toHaveLength(5000);
    if (isCallSpec(graph.tasks[0]?.runSpec)) return; // The client lists them, each with its own.
    const functions = new Set(graph.tasks.map(({ runSpec }) => (runSpec as Opaque).frames[0]));
    expect(functions.size).toBe(1);
  });

  it('graphs that one process reads are answered in their order', async () => {
    const unpacker = anUnpacker({ processesMax: 1 });
    const order: string[] = [];
    await Promise.all(
      (['array', 'chained', 'annotated'] as const).map(async (name) => {
        await unpacker.unpack(graphs[name]);
        order.push(name);
      }),
    );
    // One that lists its tasks needs no Python and is not late.
    expect(order.filter((name) => name !== 'chained')).toEqual(['array', 'annotated']);
  });

  it('a graph that kills the process fails, and those behind it do not', async () => {
    const unpacker = anUnpacker({ processesMax: 1 });
    const before = unpacker.unpack(graphs.array);
    const deadly = unpacker.unpack(graphs.deadly);
    const behind = unpacker.unpack(graphs.annotated);
    await expect(deadly).rejects.toMatchObject({ code: 'ERR_CLOSED', data: { code: 3 } });
    expectComplete(await before);
    expect((await behind).tasks.length).toBeGreaterThan(0);
  });

  it('a graph on which a process dies is tried once more in a fresh one', async () => {
    const warnings: string[] = [];
    const unpacker = anUnpacker({
      log: { ...silent, warn: (_, text = '') => warnings.push(text) },
    });
    await unpacker.packages();
    const { pid } = unpacker;
    // It was read at the second time; that it says nothing useful is another matter.
    await expect(unpacker.unpack(graphs.deadlyOnce)).rejects.toMatchObject({
      code: 'ERR_GRAPH_INVALID',
    });
    expect(warnings).toEqual([expect.stringMatching(/died \(exit code 3\).*tried once more/)]);
    expect(unpacker.pid).not.toBe(pid);
  });

  it('a graph that takes long does not delay those of others', async () => {
    const unpacker = anUnpacker({ processesMax: 2 });
    const slow = unpacker.unpack(graphs.slow);
    const other = unpacker.unpack(graphs.array);
    expectComplete(await other);
    unpacker.close();
    await expect(slow).rejects.toMatchObject({ code: 'ERR_CLOSED' });
  });

  it('a graph that needs more memory than a process may use fails with that reason', async () => {
    const unpacker = anUnpacker({ memoryLimitBytes: 500 * 2 ** 20 });
    await expect(unpacker.unpack(graphs.hungry)).rejects.toMatchObject({
      code: 'ERR_CLOSED',
      message: expect.stringContaining('more than 500 MiB of memory') as string,
    });
    expectComplete(await unpacker.unpack(graphs.array));
  });

  it.each([
    ['has grown is replaced by a fresh one', 1, false],
    ['has not grown stays', 2 ** 40, true],
  ])('a process without work that %s', async (_name, idleMemoryBytes, stays) => {
    const clock = new VirtualClock();
    const infos: string[] = [];
    const log = { ...silent, info: (_: unknown, text = '') => infos.push(text) };
    const unpacker = anUnpacker({ clock, idleMemoryBytes, log });
    await unpacker.unpack(graphs.array);
    const { pid } = unpacker;
    clock.advance(59_000);
    await unpacker.packages();
    expect(unpacker.pid).toBe(pid);
    // It is asked for its memory before this.
    clock.advance(60_000);
    await unpacker.packages();
    expect(infos.filter((text) => text.includes('was replaced'))).toHaveLength(stays ? 0 : 1);
    expect(unpacker.pid === pid).toBe(stays);
    expectComplete(await unpacker.unpack(graphs.array));
  });

  it('a process without a graph ends only when it has read the file that all have to read', async () => {
    const clock = new VirtualClock();
    const unpacker = anUnpacker({ clock, timeoutMs: Infinity, processesMax: 2 });
    const [first, second] = [unpacker.unpack(graphs.array), unpacker.unpack(graphs.array)];
    clock.advance(200);
    await Promise.all([first, second]);
    writeFileSync(join(await unpacker.uploads(), 'lasting.py'), 'import time; time.sleep(0.5)');
    const imported = unpacker.importFile({ filename: 'lasting.py', load: true });
    await unpacker.uploads();
    clock.advance(60_000);
    await expect(imported).resolves.toBeUndefined();
  });

  it('an exception in Python is handed on as it was', async () => {
    const failing = shared.unpack(graphs.broken);
    await expect(failing).rejects.toMatchObject({
      code: 'ERR_GRAPH_INVALID',
      data: {
        exceptionText: expect.stringContaining('invalid literal for int()') as string,
        exception: expect.any(Opaque) as Opaque,
      },
    });
  });

  it('a graph that takes too long fails, and the next one does not', async () => {
    const clock = new VirtualClock();
    const unpacker = anUnpacker({ clock, timeoutMs: 5000, processesMax: 1 });
    await unpacker.packages();
    const slow = unpacker.unpack(graphs.slow);
    const behind = unpacker.unpack(graphs.array);
    clock.advance(5000);
    await expect(slow).rejects.toMatchObject({ code: 'ERR_TIMEOUT' });
    expectComplete(await behind);
  });

  it('what is on its way fails when the scheduler closes', async () => {
    const unpacker = anUnpacker();
    const going = unpacker.unpack(graphs.array);
    unpacker.close();
    await expect(going).rejects.toMatchObject({ code: 'ERR_CLOSED' });
    await expect(unpacker.unpack(graphs.array)).rejects.toMatchObject({ code: 'ERR_CLOSED' });
  });

  it('an object of Python can be looked at', async () => {
    const { tasks } = await shared.unpack(graphs.array);
    const spec = tasks.map(({ runSpec }) => runSpec).find((each) => each instanceof Opaque);
    if (spec === undefined) return; // Before 2023.8.1 there are only calls.
    const seen = await shared.inspect(spec, ['key', 'nothing']);
    expect(seen.type).not.toBe('');
    expect(seen.attributes).not.toHaveProperty('nothing');
  });
});

describe.skipIf(python === undefined)('the choice of a Python', () => {
  const graph = { op: 'update-graph', keys: [], expr_ser: null };
  const working: [string] = [python?.command ?? ''];

  it('those that do not work are passed over', async () => {
    const unpacker = anUnpacker({ commands: [['no-such-python'], ['false'], working] });
    await expect(unpacker.unpack(graph)).rejects.toMatchObject({ code: 'ERR_GRAPH_INVALID' });
    expect(unpacker.versions).toMatchObject({ distributed: python!.version });
  });

  it('one of another version than the client is better than none', async () => {
    const unpacker = anUnpacker({ commands: [['false'], working, ['false']] });
    unpacker.prepare('2099.1.0');
    await expect(unpacker.unpack(graph)).rejects.toMatchObject({ code: 'ERR_GRAPH_INVALID' });
    expect(unpacker.versions).toMatchObject({ distributed: python!.version });
  });

  it('it is started for clients whose graphs need it', () => {
    const unpacker = anUnpacker();
    unpacker.prepare('2022.12.1+ds.1');
    expect(unpacker.pid).toBeUndefined();
    unpacker.prepare('2023.4.0');
    expect(unpacker.pid).toBeGreaterThan(0);
  });

  it('one that is named starts with the scheduler, before there is any client', async () => {
    const runs = new DaskRuns(python!.command);
    const { run } = await runs.scheduler('--log-level', 'info');
    while (!run.stderr.includes('the Python helper is ready')) await run.output();
    await runs.end();
  });

  it('one that is started early may have another version than the client, which is said', async () => {
    const warnings: string[] = [];
    const unpacker = anUnpacker({
      log: { ...silent, warn: (_, text = '') => warnings.push(text) },
    });
    unpacker.start();
    await unpacker.packages();
    unpacker.prepare('2099.1.0');
    const { pid } = unpacker;
    expect(warnings).toEqual([expect.stringContaining('different versions of distributed')]);
    await unpacker.packages();
    expect(unpacker.pid).toBe(pid);
  });

  it('the environment names some, the user exactly one', () => {
    const environment = { PYTHON: '/a/python', VIRTUAL_ENV: '/venv' };
    expect(pythonCommands('', environment).map(([program]) => program)).toEqual([
      '/a/python',
      '/venv/bin/python',
      'python3',
      '/usr/bin/python3',
      'python',
    ]);
    expect(pythonCommands('uv run python', environment)).toEqual([['uv', 'run', 'python']]);
  });
});

describe('without any Python', () => {
  it('the start of the scheduler says what will not work', async () => {
    const warnings: string[] = [];
    const unpacker = anUnpacker({
      commands: [['no-such-python'], ['false']],
      log: { ...silent, warn: (_, text = '') => warnings.push(text) },
    });
    await unpacker.checkPythons();
    expect(warnings).toEqual([
      expect.stringMatching(/no-such-python, false.*graphs of clients.*run_on_scheduler.*--python/),
    ]);
  });
});

describe('a Python that cannot be used', () => {
  const graph = { op: 'update-graph', expr_ser: null, keys: ['a'] };

  it('a command that does not exist is named', async () => {
    const unpacking = anUnpacker({ commands: [['no-such-python']] }).unpack(graph);
    await expect(unpacking).rejects.toMatchObject({
      code: 'ERR_CONNECT',
      message: expect.stringContaining('no-such-python') as string,
    });
  });

  it('one that is named is said to be so while the scheduler starts, which continues', async () => {
    const runs = new DaskRuns('false');
    const { run } = await runs.scheduler();
    while (!run.stderr.includes('ended before it was ready')) await run.output();
    expect(run.stderr).toContain('--python');
    expect(run.child.exitCode).toBe(null);
    await runs.end();
  });

  it('a command that is no Python is named, and is started again for the next graph', async () => {
    const unpacker = anUnpacker({ commands: [['false']] });
    for (let round = 0; round < 2; round++) {
      await expect(unpacker.unpack(graph)).rejects.toMatchObject({
        code: 'ERR_CONNECT',
        message: expect.stringContaining('before it was ready') as string,
      });
    }
  });
});
