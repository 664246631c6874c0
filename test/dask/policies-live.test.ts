import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { describe, expect, it } from 'vitest';

import { DaskBench } from './peers.ts';
import { findDaskPython } from './pythons.ts';

const daskPython = findDaskPython()?.command;
const SCENARIOS = fileURLToPath(new URL('fixtures/scenarios.py', import.meta.url));

/** Runs a scenario of the fixture with real workers. @param config - section `scheduler` */
async function play(scenario: string, config: object): Promise<unknown> {
  const bench = await DaskBench.start(config, daskPython);
  try {
    const { stdout } = await promisify(execFile)(
      daskPython!,
      [SCENARIOS, bench.address, scenario],
      {
        timeout: 170_000,
      },
    );
    return JSON.parse(stdout.trim().split('\n').at(-1)!);
  } finally {
    await bench.close();
  }
}

describe.skipIf(daskPython === undefined)('with real workers of Dask', { timeout: 180_000 }, () => {
  it('tasks that wait on a busy worker are stolen by one that comes', async () => {
    const config = { policies: { queuing: { use: 'direct' } } };
    expect(await play('stealing', config)).toEqual({ workers: 2 });
  });

  it('copies that nobody needs are dropped by the memory manager', async () => {
    const config = { activeMemoryManager: { interval: '200ms' } };
    expect(await play('copies', config)).toEqual({ copies: 1, places: 2 });
  });

  it('a worker that is retired gives its results away and ends', async () => {
    const given = { used: 2, retired: true, left: true, same: true };
    expect(await play('retirement', {})).toEqual(given);
  });

  it('roots that meet downstream are computed on one worker', async () => {
    const config = { policies: { queuing: { use: 'family' } }, workStealing: { start: false } };
    const found = (await play('family', config)) as { families: number; places: number };
    expect(found.families).toBe(24);
    expect(found.places).toBeLessThan(30);
  });

  it('a worker that is killed under its nanny costs nothing but time', async () => {
    expect(await play('killed', {})).toEqual({ results: 40, pids: 1 });
  });

  it('200 MB pass through the scheduler in both directions', async () => {
    expect(await play('scatter', {})).toEqual({ total: 25_000_000, nbytes: 200_000_000 });
  });
});
