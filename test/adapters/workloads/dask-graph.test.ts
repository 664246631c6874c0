import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { loadWorkload, simulate } from '../../../adapters/simulator/index.ts';
import { findDaskPython, skipReason } from '../dask/pythons.ts';

const python = findDaskPython();
const PYTHONPATH = new URL('../../../adapters/workloads', import.meta.url).pathname;
const env = { ...process.env, PYTHONPATH, PYTHONDONTWRITEBYTECODE: '1' };
const folder = mkdtempSync(join(tmpdir(), 'yardmaster-dask-graph-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

const COMPUTATION = `
import sys, time, dask
from dask_graph import Record

@dask.delayed(pure=False)
def load(size):
    time.sleep(0.02)
    return bytes(size)

@dask.delayed(pure=False)
def total(parts):
    return sum(map(len, parts))

with Record(sys.argv[1]):
    print(total([load(1000 * n) for n in range(1, 5)]).compute())
try:
    with Record(sys.argv[1] + '.failed'):
        raise ValueError
except ValueError:
    print(dask.config.get('scheduler', None))
`;

describe.skipIf(python === undefined)(`a computation of Dask${skipReason(python)}`, () => {
  it('becomes a graph with what its tasks took, and how large their results were', async () => {
    const file = join(folder, 'total.json');
    const { stdout } = await promisify(execFile)(python!.command, ['-c', COMPUTATION, file], {
      env,
    });
    expect(stdout).toBe('10000\nNone\n');
    const workload = await loadWorkload(file);
    const sizes = workload.tasks.flatMap(({ prefix }, at) => {
      return prefix === 'load' ? [workload.nbytes[at]!] : [];
    });
    expect(sizes.sort((one, other) => one - other)).toEqual([1000, 2000, 3000, 4000]);
    expect(Math.min(...workload.durationsS)).toBeGreaterThan(0);
    const { dependencies } = workload.tasks.find(({ prefix }) => prefix === 'total')!;
    expect(dependencies.filter((key) => key.startsWith('load-'))).toHaveLength(4);
    expect(await simulate(workload)).toMatchObject({ failed: 0, runs: workload.tasks.length });
    expect(existsSync(`${file}.failed`)).toBe(false);
  });

  it('of the guide becomes a graph of sums of blocks', async () => {
    const guide = readFileSync(new URL('../../../docs/simulator.md', import.meta.url), 'utf8');
    const [, code] = /^```python\n(# record.py.*?)^```$/ms.exec(guide)!;
    await promisify(execFile)(python!.command, ['-c', code!], { cwd: folder, env });
    const { tasks } = await loadWorkload(join(folder, 'mean.json'));
    expect(tasks.length).toBeGreaterThan(16);
  });
});
