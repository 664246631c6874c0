/** A journal whose file cannot grow: the limit of a process for files stands for a disk that is full. */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { Client } from '../../../../adapters/client/index.ts';
import type { Run } from '../../../kit/runs.ts';
import { useLive } from '../../../kit/live.ts';
import { square } from '../../cli/fixtures/tasks.js';

const CLI = createRequire(import.meta.url).resolve('#cli');
const { folder, runs, stops } = useLive('full-disk');
/** A graph with this argument is larger than what the file may have. */
const LARGE = 'x'.repeat(200_000);

/** A scheduler with a journal of 64 or 128 KiB at most, as the shell counts. */
function limited(journal: string, onError: 'stop' | 'continue'): Run {
  const flags = `--port 0 --no-dashboard --insecure --on-journal-error ${onError}`;
  const command = `ulimit -f 128; exec "$0" ${CLI} scheduler --journal ${journal} ${flags}`;
  return runs.start('/bin/sh', ['-c', command, process.execPath]);
}

async function connect(address: string): Promise<Client> {
  const client = await Client.connect(address);
  stops.push(() => client.close());
  return client;
}

it('is left behind when that is wanted: the scheduler says so, and promises nothing any more', async () => {
  const scheduler = limited(join(folder, 'continue'), 'continue');
  const address = await scheduler.firstLine();
  const worker = runs.yardmaster('worker', address, '-t', '1', '--no-nanny');
  await worker.firstLine();
  const client = await connect(address);
  expect(await client.submit(square, 2).result()).toBe(4);
  await client.committed();
  const large = client.with({ pure: false }).submit(square, LARGE as unknown as number);
  await expect(client.committed()).rejects.toMatchObject({ code: 'ERR_JOURNAL' });
  await large.settled();
  expect(await client.submit(square, 3).result()).toBe(9);
  await expect(client.committed()).rejects.toMatchObject({ code: 'ERR_JOURNAL' });
  expect(scheduler.stderr).toMatch(/cannot be written.*EFBIG.*continues without it/s);
});

it('ends the scheduler otherwise, and the next one knows what was acknowledged', async () => {
  const journal = join(folder, 'stop');
  const scheduler = limited(journal, 'stop');
  const address = await scheduler.firstLine();
  const client = await Client.connect(address, { onSchedulerLost: 'reconnect' });
  stops.push(() => client.close());
  const kept = client.submit(square, 2);
  await client.committed();
  const lost = client.with({ pure: false }).submit(square, LARGE as unknown as number);
  expect(await scheduler.exit).toBe(1);
  expect(scheduler.stderr).toMatch(/ERR_JOURNAL.*cannot be written/s);
  lost.release();
  const { port } = new URL(address.replace('tcp:', 'http:'));
  const flags = ['--journal', journal, '--port', port, '--no-dashboard', '--insecure'];
  await runs.yardmaster('scheduler', ...flags).firstLine();
  await runs.yardmaster('worker', address, '-t', '1', '--no-nanny').firstLine();
  expect(await kept.result()).toBe(4);
});
