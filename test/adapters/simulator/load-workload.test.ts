import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { builtins } from '../../../adapters/app/builtin-extensions.ts';
import {
  BUILTIN_POLICIES,
  loadWorkload,
  loadWorkloads,
  policyVariant,
  readVariant,
  simulate,
} from '../../../adapters/simulator/index.ts';

const folder = mkdtempSync(join(tmpdir(), 'yardmaster-workloads-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});
const HISTORIES = new URL('../../histories', import.meta.url).pathname;

describe('a workload on the command line', () => {
  it('is one of the literature, or a shape with its size and costs', async () => {
    expect((await loadWorkload('xarray-25')).tasks).toHaveLength(552);
    expect((await loadWorkload('chains:3,4')).tasks).toHaveLength(12);
    const { durationsS, nbytes } = await loadWorkload('tree:3@100ms,10MB');
    expect([...durationsS]).toEqual(Array.from({ length: 7 }, () => 0.1));
    expect(new Set(nbytes)).toEqual(new Set([10e6]));
  });

  it('is a recording, with what workers reported', async () => {
    const workload = await loadWorkload(join(HISTORIES, 'tree-whose-worker-dies.ylog'));
    expect(workload.tasks).toHaveLength(63);
    const report = await simulate(workload, { workers: 4, validate: true });
    expect(report).toMatchObject({ tasks: 63, failed: 0 });
    expect(report.makespanS).toBeGreaterThan(1);
  });

  it('is a whole recording: a torn one is refused with what repairs it', async () => {
    const torn = join(folder, 'torn.ylog');
    writeFileSync(
      torn,
      readFileSync(join(HISTORIES, 'tree-whose-worker-dies.ylog')).subarray(0, -7),
    );
    await expect(loadWorkload(torn)).rejects.toThrow(`"yardmaster log repair ${torn}" keeps`);
  });

  it('is a module that makes one', async () => {
    const file = join(folder, 'graph.mjs');
    writeFileSync(
      file,
      "export default () => ({ tasks: [{ key: 'a', dependencies: [], runSpec: 1 }], keys: ['a'], durationsS: [1], nbytes: [1] });",
    );
    const report = await simulate(await loadWorkload(file));
    expect(report.makespanS).toBeCloseTo(1, 2);
  });

  it('is each graph of a folder and of its data sets; a single one is named after a #', async () => {
    const corpus = join(folder, 'corpus');
    mkdirSync(corpus);
    const graph = JSON.stringify([{ d: 1, e_d: 1, cpus: 1, outputs: [], inputs: [] }]);
    writeFileSync(join(corpus, 'alone.json'), graph);
    writeFileSync(join(corpus, 'arrows.gv'), 'digraph { a [duration=1] }');
    copyFileSync(join(HISTORIES, 'tree-whose-worker-dies.ylog'), join(corpus, 'run.ylog'));
    const set = join(corpus, 'set.json');
    writeFileSync(
      set,
      JSON.stringify({ graph_name: { 0: 'x', 1: 'y' }, graph: { 0: graph, 1: graph } }),
    );
    writeFileSync(join(corpus, 'pack.js'), 'throw new Error("a policy is no graph")');
    const names = (await loadWorkloads(corpus)).map(({ name }) => name);
    expect(names).toEqual(['alone', 'arrows.gv', 'run.ylog', 'set#x', 'set#y']);
    expect((await loadWorkload(`${set}#y`)).name).toBe('set#y');
    await expect(loadWorkload(set)).rejects.toThrow(`"${set}" has 2 graphs; name a single one`);
    await expect(loadWorkload(`${set}#z`)).rejects.toThrow(`${set} has set#x, set#y`);
  });

  it.each([
    ['tre:8', '"tre:8" is no workload; did you mean "tree"? Choose one of merge-10K'],
    ['tree:0', '"tree:0" needs 1 whole number, 1 or more, as in tree:10'],
    ['chains:3', '"chains:3" needs 2 whole numbers'],
    ['tree:3@fast', 'has a wrong cost'],
    ['tree:3@1e300s', 'has a wrong cost'],
    ['tree:3@1ms,-5MB', 'has a wrong cost'],
    ['tree:3@1ms,1e30', 'has a wrong cost'],
    ['tree:3@1ms,1MB,2MB', 'has a wrong cost'],
    ['tree:3@1ms@2ms', 'has a wrong cost'],
    ['tree:3:4', '"tree:3:4" needs 1 whole number'],
    ['crossv:2000000', '"crossv:2000000" has more than 20000000 tasks'],
    ['tree:40', '"tree:40" has more than 20000000 tasks'],
    ['missing.json', 'missing.json cannot be read'],
  ])('that is wrong is refused: %s', async (text, message) => {
    await expect(loadWorkload(text)).rejects.toThrow(message);
  });
});

describe('policies on the command line', () => {
  it('are all that is built in', async () => {
    const found: string[] = [];
    for (const load of Object.values(builtins)) {
      const { kind, slot, name } = (await load()) as {
        kind?: string;
        slot?: string;
        name?: string;
      };
      if (kind === 'policy') found.push(`${slot}/${name}`);
    }
    const known = Object.entries(BUILTIN_POLICIES).flatMap(([slot, names]) =>
      names.map((name) => `${slot}/${name}`),
    );
    expect(found.sort()).toEqual(known.sort());
  });

  it('are named alone, with their slot, and together', () => {
    expect(policyVariant('balanced+ordering/dask').overrides).toEqual({
      scheduler: { policies: { workerSelection: { use: 'balanced' }, ordering: { use: 'dask' } } },
    });
    expect(policyVariant('dask+calm+amm/none').overrides).toMatchObject({
      scheduler: {
        policies: { ordering: { use: 'dask' }, stealing: { use: 'calm' } },
        workStealing: { interval: '1s' },
        activeMemoryManager: { start: false },
      },
    });
    expect(policyVariant('mine.yaml')).toEqual({ name: 'mine.yaml', config: 'mine.yaml' });
    expect(() => policyVariant('mars')).toThrow('write queuing/mars or ordering/mars');
    expect(() => policyVariant('ballanced')).toThrow('no built-in policy');
  });

  it('are named by the module of one policy, or of a configuration', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'yardmaster-variants-'));
    const policy = join(folder, 'pack.js');
    const config = join(folder, 'config.js');
    const definition =
      "{ kind: 'policy', slot: 'workerSelection', name: 'pack', apiVersion: 1, create: () => ({}) }";
    writeFileSync(policy, `export default ${definition};`);
    writeFileSync(config, 'export default { scheduler: {} };');
    expect(await readVariant(policy)).toEqual({
      name: policy,
      overrides: { scheduler: { policies: { workerSelection: { use: policy } } } },
    });
    expect(await readVariant(`calm+${policy}`)).toEqual({
      name: `calm+${policy}`,
      overrides: {
        scheduler: { policies: { stealing: { use: 'calm' }, workerSelection: { use: policy } } },
      },
    });
    await expect(readVariant(`calm+${config}`)).rejects.toThrow('does not say which slot it fills');
    expect(await readVariant(config)).toEqual({ name: config, config });
    expect(await readVariant('default')).toEqual({ name: 'default', isBuiltin: true });
    rmSync(folder, { recursive: true });
  });
});
