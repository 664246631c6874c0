import { spawnSync } from 'node:child_process';

/**
 * A Python that has the package distributed: `YARDMASTER_PYTHON`, else the system's. Undefined, with a
 * message, when there is none; tests that need one are skipped then.
 */
export const daskPython: string | undefined = find();

function find(): string | undefined {
  const candidates = [process.env['YARDMASTER_PYTHON'], '/usr/bin/python3', 'python3'];
  for (const python of candidates) {
    if (python === undefined) continue;
    const { status } = spawnSync(python, ['-c', 'import distributed'], { stdio: 'ignore' });
    if (status === 0) return python;
  }
  console.warn(
    'tests with real Dask processes are skipped: no Python with the package distributed was found (install it, or name one in YARDMASTER_PYTHON)',
  );
  return undefined;
}
