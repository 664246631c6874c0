/** Which Python may help. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { PythonCommand } from './python-helper.ts';

/** The usual names, the best first. Debian's stays reachable when another one shadows it. */
const USUAL = ['python3', '/usr/bin/python3', 'python'];

/**
 * The Pythons to try.
 * @param python - what the user names: a program, also with arguments (`uv run python`). Undefined or
 *   empty: that of the environment variable PYTHON, that of the active virtual environment, and the usual
 */
export function pythonCommands(
  python: string | undefined,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): PythonCommand[] {
  if (isNamed(python)) return [commandOf(python.trim())];
  const { PYTHON, VIRTUAL_ENV } = environment;
  const found: string[] = [];
  if (PYTHON !== undefined && PYTHON !== '') found.push(PYTHON);
  if (VIRTUAL_ENV !== undefined && VIRTUAL_ENV !== '') {
    found.push(join(VIRTUAL_ENV, process.platform === 'win32' ? 'Scripts' : 'bin', 'python'));
  }
  return [...new Set([...found, ...USUAL])].map((each) => [each]);
}

/** Whether the user names the one to use. */
export function isNamed(python: string | undefined): python is string {
  return python !== undefined && python.trim() !== '';
}

/** A path may have blanks in it. */
function commandOf(python: string): PythonCommand {
  if (!/\s/.test(python) || existsSync(python)) return [python];
  const [program = python, ...args] = python.split(/\s+/);
  return [program, ...args];
}

/** Looks for the packages without importing them, which takes some milliseconds. */
const PROBE = `import importlib.util as u, sys
sys.exit(any(u.find_spec(name) is None for name in ("dask", "distributed")))`;

/** Those of the commands that are Pythons with dask and distributed. */
export async function findPythons(commands: readonly PythonCommand[]): Promise<PythonCommand[]> {
  const run = promisify(execFile);
  const found = await Promise.all(
    commands.map(async (command) => {
      const [program, ...args] = command;
      try {
        await run(program, [...args, '-c', PROBE], { timeout: 60_000, windowsHide: true });
        return [command];
      } catch {
        return [];
      }
    }),
  );
  return found.flat();
}

/** The message to an operator whose scheduler has no usable Python. */
export function nothingWorksWithout(commands: readonly PythonCommand[]): string {
  const tried = commands.map((command) => command.join(' ')).join(', ');
  return (
    `no Python with dask and distributed was found (tried: ${tried}). Without one the scheduler cannot read ` +
    'graphs of clients from 2023.4 on, nor arrays and data frames of older ones; it has no run_on_scheduler, ' +
    'plugins of the scheduler, performance_report, upload_file and P2P shuffles; name one with the option ' +
    '"python" (--python)'
  );
}

/** Bytes that a Python may use unless an option says otherwise: half of what this process may have. */
export function defaultMemoryBytes(): number {
  const constrained = process.constrainedMemory();
  const total = totalmem();
  return Math.floor((constrained > 0 && constrained < total ? constrained : total) / 2);
}
