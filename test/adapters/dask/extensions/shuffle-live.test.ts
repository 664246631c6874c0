import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

import { describe, expect, it } from 'vitest';

import { playScript } from '../dask-runs.ts';
import { findDaskPython } from '../pythons.ts';

const SHUFFLES = fileURLToPath(new URL('../fixtures/shuffles.py', import.meta.url));
const PROBE = [
  'import distributed, pyarrow, dask.dataframe',
  'print(*map(int, distributed.__version__.split(".")[:2]))',
].join('\n');

const python = findDaskPython()?.command;

/** Year and month of the release, as one number that grows; 0: it lacks what shuffles need. */
function releaseOf(command: string | undefined): number {
  if (command === undefined) return 0;
  const { status, stdout } = spawnSync(command, ['-c', PROBE], { encoding: 'utf8' });
  const [year = 0, month = 0] = status === 0 ? stdout.trim().split(' ').map(Number) : [];
  return year * 100 + month;
}

const release = releaseOf(python);
const canRechunk = release >= 202305;
/** Of 2023.5 shuffles of frames fail with the scheduler of Dask, too: `assert len(partitions) == len(shards)`. */
const canShuffle = release > 202305;
if (!canRechunk) {
  console.warn(
    'tests of the P2P shuffle are skipped: they need a Python with distributed since 2023.5, dask.dataframe and pyarrow (name one in DASK_PYTHON)',
  );
}

const play = (scenario: string): Promise<unknown> =>
  playScript({ python: python!, script: SHUFFLES, scenario });

describe.skipIf(!canRechunk)('P2P rechunking with real workers of Dask', () => {
  it('gives the array of before in other chunks', async () => {
    expect(await play('rechunk')).toEqual({ rechunked: true });
  });
});

describe.skipIf(!canShuffle)('P2P shuffles with real workers of Dask', () => {
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
