/**
 * Packs this package, installs the tarball into an empty project, and runs that project's own tests:
 * a policy from a config file, a plugin, and another transport, all through the public entry points.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, URL } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const project = mkdtempSync(join(tmpdir(), 'yardmaster-consumer-'));
const run = (command, args, cwd) =>
  execFileSync(command, args, { cwd, stdio: ['ignore', 'pipe', 'inherit'] });

try {
  const { devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const packed = JSON.parse(run('npm', ['pack', '--json', '--pack-destination', project], root));
  const list = Array.isArray(packed) ? packed : Object.values(packed);
  const tarball = join(project, list[0].filename);
  cpSync(fileURLToPath(new URL('project', import.meta.url)), project, { recursive: true });
  const wanted = [tarball, `vitest@${devDependencies.vitest}`];
  run('npm', ['install', '--no-audit', '--no-fund', ...wanted], project);
  execFileSync('npx', ['vitest', 'run', '--testTimeout=30000'], { cwd: project, stdio: 'inherit' });
} finally {
  rmSync(project, { recursive: true, force: true });
}
