import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { eventually } from '../../kit/eventually.ts';

const PROGRAM = fileURLToPath(new URL('./fixtures/kept-program.mjs', import.meta.url));
const COUNT = 60;

let folder: string;
let child: ChildProcess | undefined;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'yardmaster-resume-'));
});
afterEach(() => {
  killAll();
  rmSync(folder, { recursive: true });
});

/** The program with its workers and whatever else it has started. */
function killAll(): void {
  if (child?.pid === undefined || child.exitCode !== null) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
}

function start(): { readonly printed: Promise<string> } {
  const args = [PROGRAM, join(folder, 'log'), join(folder, 'store'), String(COUNT)];
  const started = spawn(process.execPath, args, {
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  child = started;
  let text = '';
  started.stdout.setEncoding('utf8').on('data', (more: string) => (text += more));
  return { printed: new Promise((resolve) => started.on('close', () => resolve(text))) };
}

function runs(): number {
  const log = join(folder, 'log');
  return existsSync(log) ? readFileSync(log, 'utf8').split('\n').length - 1 : 0;
}

test('after SIGKILL of everything at half time, the other half is computed, and little twice', async () => {
  const first = start();
  await eventually(() => expect(runs()).toBeGreaterThanOrEqual(COUNT / 2));
  killAll();
  expect(await first.printed).toBe('');
  const before = runs();
  expect(before).toBeLessThan(COUNT);
  const second = start();
  expect(await second.printed).toBe(`${(COUNT * (COUNT - 1)) / 2}\n`);
  const again = runs() - before;
  // Results that were computed and not written when the processes were killed: one for each worker.
  expect(again).toBeLessThanOrEqual(COUNT - before + 2);
  expect(again / COUNT).toBeLessThanOrEqual(0.55);
});
