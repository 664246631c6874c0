import { fileURLToPath } from 'node:url';

import { describe, expect, it } from 'vitest';

import { playScript } from './dask-runs.ts';
import { findDaskPython, skipReason } from './pythons.ts';

const SCRIPT = fileURLToPath(new URL('fixtures/behaviours.py', import.meta.url));
const found = findDaskPython();

describe.skipIf(found === undefined)(`what users of Dask see${skipReason(found)}`, () => {
  it('is what the scheduler of Dask shows them', async () => {
    const python = found!.command;
    expect(await playScript({ python, script: SCRIPT, scenario: 'all' })).toEqual({
      progress_bars: {
        bar: true,
        error: "ValueError('no')",
        bars: {
          all: { below: 10, above: 10 },
          remaining: { below: 0, above: 0 },
          status: 'finished',
        },
      },
      handovers: [],
      retries: [2, "ValueError('no')"],
      dump: {
        first: ['dumped', 'released', 'waiting'],
        worker: 1,
        missing: [],
        erred: ['failed'],
        exclude: false,
      },
      names: [1, 901],
    });
  });
});
