/** Which Pythons of this machine have Dask. */
import { spawnSync } from 'node:child_process';

/** A Python that can import distributed. */
export interface DaskPython {
  readonly command: string;
  /** Of distributed. */
  readonly version: string;
}

const PROBE = 'import distributed, dask.array; print(distributed.__version__)';

/**
 * The Python of the environment variable `DASK_PYTHON`, or else the first of the usual ones that has
 * Dask. Undefined: there is none, and what needs one has to be skipped.
 */
export function findDaskPython(): DaskPython | undefined {
  const asked = process.env['DASK_PYTHON'];
  const commands = asked === undefined || asked === '' ? ['/usr/bin/python3', 'python3'] : [asked];
  for (const command of commands) {
    const { status, stdout } = spawnSync(command, ['-c', PROBE], { encoding: 'utf8' });
    if (status === 0) return { command, version: stdout.trim() };
  }
  return undefined;
}

/** Why tests are skipped, as a suffix to the name of their group. */
export function skipReason(python: DaskPython | undefined): string {
  return python === undefined
    ? ' (skipped: no Python here can import distributed; set DASK_PYTHON)'
    : ` (distributed ${python.version})`;
}
