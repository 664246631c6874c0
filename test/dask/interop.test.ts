import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readFileSync } from 'node:fs';
import { findDaskPython, skipReason } from './pythons.ts';

// Only when it is asked for: it takes a minute, and a Python with all of Dask.
const isAsked = (process.env['DASK_PYTHON'] ?? '') !== '';
const python = isAsked ? findDaskPython() : undefined;
const reason = isAsked ? skipReason(python) : ' (skipped: DASK_PYTHON is not set)';

const COMMAND = fileURLToPath(new URL('../../dist/adapters/cli/main.js', import.meta.url));
const SCRIPT = fileURLToPath(new URL('./interop.py', import.meta.url));
const PATIENCE_MS = 300_000;

const facts = Array.from(
  readFileSync(SCRIPT, 'utf8').matchAll(/^@fact\("(?<text>.*)"\)$/gm),
  (match) => match.groups!['text']!,
);

describe.skipIf(python === undefined)(`Dask's own client and workers${reason}`, () => {
  const processes: ChildProcess[] = [];
  const outcomes = new Map<string, string | null>();
  let complaints = '';

  function start(program: string, args: readonly string[]): ChildProcess {
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    child.stderr.on('data', (chunk: Buffer) => (complaints += chunk.toString()));
    child.stdout.resume();
    processes.push(child);
    return child;
  }

  beforeAll(async () => {
    const { command } = python!;
    const ports = ['--port', '0', '--dask-port', '0', '--python', command];
    const scheduler = start(process.execPath, [COMMAND, 'scheduler', '--dask', ...ports]);
    const [line] = (await once(createInterface({ input: scheduler.stdout! }), 'line')) as [string];
    const address = /tcp:\/\/\S+/.exec(line)![0];
    const workers = [
      ['--name', 'alice', '--resources', 'GPU=2'],
      ['--name', 'bob'],
    ];
    for (const flags of workers) {
      const args = ['-m', 'distributed.cli.dask_worker', address, '--nthreads', '1'];
      start(command, [...args, '--no-dashboard', ...flags]);
    }
    const client = start(command, [SCRIPT, address]);
    createInterface({ input: client.stdout! }).on('line', (text) => {
      const { fact, error } = JSON.parse(text) as { fact: string; error: string | null };
      outcomes.set(fact, error);
    });
    await once(client, 'close');
  }, PATIENCE_MS);

  afterAll(async () => {
    for (const child of processes.toReversed()) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), 10_000);
      await once(child, 'close');
      clearTimeout(timer);
    }
  }, 60_000);

  it.each(facts)('%s', (fact) => {
    expect(outcomes.has(fact), `it did not come to this: ${complaints.slice(-2000)}`).toBe(true);
    expect(outcomes.get(fact)).toBe(null);
  });
});
