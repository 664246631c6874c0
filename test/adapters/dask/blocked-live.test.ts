/** Dask's `blocked-handlers`, as its users set it and its clients see it. */
import { afterAll, describe, expect, it } from 'vitest';

import { DaskRuns } from './dask-runs.ts';
import { findDaskPython, skipReason } from './pythons.ts';

const found = findDaskPython();
const SCRIPT = `
import sys
from distributed import Client
with Client(sys.argv[1]) as client:
    for call in (lambda: client.run_on_scheduler(int), lambda: client.get_metadata(["x"], 1)):
        try:
            print(repr(call()))
        except Exception as error:
            print(type(error).__name__, error)
`;

describe.skipIf(found === undefined)(`blocked handlers${skipReason(found)}`, () => {
  const runs = new DaskRuns(found?.command ?? '', {
    DASK_DISTRIBUTED__SCHEDULER__BLOCKED_HANDLERS: "['run_function']",
  });
  afterAll(() => runs.end());

  it('that the configuration of Dask names raise a ValueError in its client, and no others do', async () => {
    const { dask } = await runs.scheduler();
    const client = runs.script('-c', SCRIPT, dask);
    expect(await client.exit, client.stderr).toBe(0);
    expect(client.stdout.trim().split('\n')).toEqual([
      expect.stringMatching(
        /^ValueError The 'run_function' handler has been explicitly disallowed in Scheduler/,
      ),
      '1',
    ]);
  });
});
