/** The way of a `task-finished` through the scheduler is the one that `docs/architecture.md` describes. */
import { fork } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test, onTestFinished } from 'vitest';
import { startWorker } from '../../../adapters/app/start-worker.ts';
import { Client } from '../../../adapters/client/index.ts';
import { slowSquare } from '../cli/fixtures/tasks.js';
import { ROOT } from '../../tidy/source-files.ts';

const PROGRAM = fileURLToPath(new URL('./fixtures/measured-scheduler.mjs', import.meta.url));
/** Data structures, which each step uses, and what timers do meanwhile. */
const BESIDE_THE_WAY = /^(core\/(state|util)|adapters\/clocks|plugins|policies)\//;
/**
 * What a heartbeat or timer of one round does is not there in another: a round is shorter than their interval, or on a
 * busy machine nearly as short.
 */
const ROUNDS_MAX = 40;
const TASK_MS = 300;
const FILES_MAX = 31;

function documentedFiles(): string[] {
  const guide = readFileSync(join(ROOT, 'docs/architecture.md'), 'utf8');
  const [, section = ''] = guide.split('## The way of a `task-finished`');
  const [steps = ''] = section.split(/^## /m);
  return [...steps.matchAll(/`([\w/-]+\.(?:ts|cjs))`/g)].map(([, path]) => path!);
}

test('a task that finishes passes the files that the architecture lists, and no others', async () => {
  const scheduler = fork(PROGRAM);
  onTestFinished(() => void scheduler.kill());
  const next = <T>(): Promise<T> => {
    return new Promise((resolve, reject) => {
      scheduler.once('message', resolve);
      scheduler.once('exit', (code) => reject(new Error(`the scheduler ended with ${code}`)));
    });
  };
  const { address } = await next<{ address: string }>();
  const worker = await startWorker(address, { threads: 1 });
  onTestFinished(() => worker.close());
  const client = await Client.connect(address);
  onTestFinished(() => client.close());
  const documented = documentedFiles().sort();
  let always: string[] | undefined;
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const future = client.submit(slowSquare, TASK_MS, round);
    scheduler.send('arm');
    await next();
    await future.result();
    scheduler.send('read');
    const { files } = await next<{ files: string[] }>();
    always = (always ?? files).filter((path) => files.includes(path) && !BESIDE_THE_WAY.test(path));
    if (always.length <= documented.length) break;
  }
  expect(always!.sort()).toEqual(documented);
  expect(always!.length).toBeLessThan(FILES_MAX);
});
