import { fileURLToPath } from 'node:url';

import { describe, expect, it } from 'vitest';

import { playScript } from '../dask-runs.ts';
import { findDaskPython } from '../pythons.ts';

const daskPython = findDaskPython()?.command;
const SCENARIOS = fileURLToPath(new URL('../fixtures/scenarios.py', import.meta.url));

const play = (scenario: string, config: object): Promise<unknown> =>
  playScript({ python: daskPython!, script: SCENARIOS, scenario }, config);

describe.skipIf(daskPython === undefined)('with real workers of Dask', () => {
  it('tasks that wait on a busy worker are stolen by one that comes', async () => {
    const config = { policies: { queuing: { use: 'direct' } } };
    expect(await play('stealing', config)).toEqual({ workers: 2 });
  });

  it('copies that no task needs are dropped by the memory manager', async () => {
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
