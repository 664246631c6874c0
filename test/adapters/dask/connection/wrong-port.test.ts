/** Peers of Dask at the address for our own, and the reverse. */
import { afterEach, describe, expect, it } from 'vitest';

import { Client } from '../../../../adapters/app/index.ts';
import { DaskRuns } from '../dask-runs.ts';
import { findDaskPython, skipReason } from '../pythons.ts';

const found = findDaskPython();
const CLIENT = 'import sys; from distributed import Client; Client(sys.argv[1])';

const runs = new DaskRuns(found?.command ?? 'python3');

afterEach(() => runs.end());

describe('at the address for Dask', () => {
  it('a worker and a client of Yardmaster end with an error that names their own address', async () => {
    const { dask, own } = await runs.scheduler();
    const worker = runs.yardmaster('worker', dask, '--no-nanny');
    expect(await worker.exit).not.toBe(0);
    expect(worker.stderr).toContain(`connect to ${own}`);
    await expect(Client.connect(dask)).rejects.toMatchObject({
      code: 'ERR_PROTOCOL',
      data: { seems: 'Dask', addresses: [own] },
    });
  });
});

describe.skipIf(found === undefined)(`at the address for Yardmaster${skipReason(found)}`, () => {
  it.each([['--nanny'], ['--no-nanny']])(
    'a worker of Dask with %s ends with an error that names the address for Dask',
    async (flag) => {
      const { run, dask, own } = await runs.scheduler();
      const worker = runs.worker(own, [flag]);
      await worker.exit;
      expect(worker.stderr).toContain(`those of Dask connect to ${dask}`);
      const warnings = run.stderr.split('\n').filter((line) => line.includes(' of Dask ('));
      expect(warnings).toHaveLength(1);
      expect(warnings[0]).toContain('tcp://127.0.0.1:');
    },
  );

  it('a client of Dask raises an error that names the address for Dask', async () => {
    const { dask, own } = await runs.scheduler();
    const client = runs.script('-c', CLIENT, own);
    expect(await client.exit).not.toBe(0);
    expect(client.stderr).toContain(`those of Dask connect to ${dask}`);
  });

  it('without an address for Dask the error says how to open one', async () => {
    const run = runs.yardmaster('scheduler', '--port', '0', '--insecure');
    const [own] = (await run.addresses(1)) as [string];
    const client = runs.script('-c', CLIENT, own);
    expect(await client.exit).not.toBe(0);
    expect(client.stderr).toContain('yardmaster scheduler --dask');
  });
});
