import { existsSync, writeFileSync } from 'node:fs';
import process from 'node:process';
import { test } from 'vitest';

const marker = process.env.KILL_WORKER_ONCE;

/** Stands for a machine that is switched off: the first time, the worker of this file is killed. */
test('passes, though its worker is killed once', async () => {
  if (marker === undefined || existsSync(marker)) return;
  writeFileSync(marker, '');
  process.kill(process.ppid, 'SIGKILL');
  await new Promise(() => undefined);
});
