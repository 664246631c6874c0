import { execFile, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { describe, expect, it } from 'vitest';

import { DaskBench } from './peers.ts';
import { findDaskPython } from './pythons.ts';

const SHUFFLES = fileURLToPath(new URL('fixtures/shuffles.py', import.meta.url));
const NEEDED =
  'from distributed.shuffle._core import P2PBarrierTask; import pyarrow, dask.dataframe';

const python = findDaskPython()?.command;
const hasP2p =
  python !== undefined && spawnSync(python, ['-c', NEEDED], { stdio: 'ignore' }).status === 0;
if (!hasP2p) {
  console.warn(
    'tests of the P2P shuffle are skipped: they need a Python with distributed since 2024.11, dask.dataframe and pyarrow (name one in DASK_PYTHON)',
  );
}

/** Runs a scenario of the fixture with two real workers. */
async function play(scenario: string): Promise<unknown> {
  const bench = await DaskBench.start({}, python);
  try {
    const args = [SHUFFLES, bench.address, scenario];
    const { stdout } = await promisify(execFile)(python!, args, { timeout: 170_000 });
    return JSON.parse(stdout.trim().split('\n').at(-1)!);
  } finally {
    await bench.close();
  }
}

describe.skipIf(!hasP2p)('P2P shuffles with real workers of Dask', { timeout: 180_000 }, () => {
  it('bring equal values together, join, and rechunk', async () => {
    expect(await play('results')).toEqual({ apart: true, joined: true, rechunked: true });
  });

  it('start over when a worker is killed while it sends', async () => {
    expect(await play('killed-sending')).toEqual({ rows: 20_000, sum: true });
  });

  it('start over when a worker is killed while it gives outputs', async () => {
    expect(await play('killed-receiving')).toEqual({ rows: 20_000, sum: true });
  });
});
