import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

import { describe, expect, it } from 'vitest';

import { playScript } from './dask-runs.ts';
import { findDaskPython } from './pythons.ts';

const SHUFFLES = fileURLToPath(new URL('fixtures/shuffles.py', import.meta.url));
const NEEDED = [
  'import distributed, pyarrow, dask.dataframe',
  'assert tuple(map(int, distributed.__version__.split(".")[:2])) >= (2023, 5)',
].join('\n');

const python = findDaskPython()?.command;
const hasP2p =
  python !== undefined && spawnSync(python, ['-c', NEEDED], { stdio: 'ignore' }).status === 0;
if (!hasP2p) {
  console.warn(
    'tests of the P2P shuffle are skipped: they need a Python with distributed since 2023.5, dask.dataframe and pyarrow (name one in DASK_PYTHON)',
  );
}

const play = (scenario: string): Promise<unknown> =>
  playScript({ python: python!, script: SHUFFLES, scenario });

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
