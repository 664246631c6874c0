/** Finds Dask's own tests of an installed release. */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** An installed release of distributed with its tests. */
export interface Installation {
  readonly version: string;
  /** The folder of the package, with the tests. */
  readonly folder: string;
  /** Folders that must precede others in the path of Python. */
  readonly path: readonly string[];
}

const PROBE =
  'import distributed, os; print(distributed.__version__); print(os.path.dirname(distributed.__file__))';
/** Modules of tests import from these folders as if they were in the path. */
const TEST_FOLDERS = ['tests', 'shuffle/tests', 'diagnostics/tests'];

/**
 * The installation of a Python. Wheels lack the tests: then a copy of the package in `scratch` gets those of a
 * repository, at the tag of the release when there is one, else of its default branch.
 *
 * @param source - path or URL of a Git repository of distributed
 * @throws Error when the repository cannot be cloned, or Python cannot import distributed
 */
export function withTests(python: string, source: string, scratch: string): Installation {
  const { status, stdout, stderr } = spawnSync(python, ['-c', PROBE], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${python} cannot import distributed: ${stderr}`);
  const [version, installed] = stdout.trim().split('\n') as [string, string];
  if (existsSync(join(installed, 'tests/test_client.py'))) {
    return { version, folder: installed, path: pathOf(installed) };
  }
  const site = join(scratch, 'site');
  const folder = join(site, 'distributed');
  cpSync(installed, folder, { recursive: true, filter: (name) => !name.includes('__pycache__') });
  const clone = join(scratch, 'source');
  if (!cloned(source, clone, ['--branch', version]) && !cloned(source, clone, [])) {
    throw new Error(`${source} cannot be cloned: name another repository with --source`);
  }
  copyTests(join(clone, 'distributed'), folder);
  return { version, folder, path: [site, ...pathOf(folder)] };
}

function pathOf(folder: string): string[] {
  return TEST_FOLDERS.map((name) => join(folder, name));
}

function cloned(source: string, target: string, args: readonly string[]): boolean {
  const command = ['-c', 'advice.detachedHead=false', 'clone', '-q', '--depth', '1', ...args];
  const { status } = spawnSync('git', [...command, source, target], { timeout: 180_000 });
  return status === 0;
}

/** Copies each folder named `tests` below one folder to the same place below another. */
function copyTests(from: string, to: string): void {
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    if (!entry.isDirectory()) continue;
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.name === 'tests') cpSync(source, target, { recursive: true });
    else if (existsSync(target)) copyTests(source, target);
  }
}
