/** Which Python may help. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
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
