/**
 * Packs this package, installs the tarball into an empty project, and runs that project's own tests:
 * a policy from a config file, a plugin, and another transport, all through the public entry points. Then
 * the examples of the guides and of extensions run with what was installed, the example of a transport in that project, and the first program
 * of the README on each Node that is here (`kinds.mjs`). The last line is `N passed, N failed, N skipped`.
 */
import console from 'node:console';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath, URL } from 'node:url';
import { runKinds } from './kinds.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const project = mkdtempSync(join(tmpdir(), 'yardmaster-consumer-'));
const run = (command, args, cwd) =>
  execFileSync(command, args, { cwd, stdio: ['ignore', 'pipe', 'inherit'] });

/** The first module in TypeScript of a guide. */
const exampleOf = (guide) =>
  /^```ts\n(.*?)^```$/ms.exec(readFileSync(join(root, guide), 'utf8'))?.[1];

try {
  const { devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const packed = JSON.parse(run('npm', ['pack', '--json', '--pack-destination', project], root));
  const list = Array.isArray(packed) ? packed : Object.values(packed);
  const tests = list[0].files
    .map(({ path }) => path)
    .filter((path) => /^(?!docs\/examples\/)(.*\/)?test\//.test(path));
  if (tests.length > 0)
    throw new Error(`the package contains tests: ${tests.slice(0, 5).join(', ')}`);
  const tarball = join(project, list[0].filename);
  cpSync(fileURLToPath(new URL('project', import.meta.url)), project, { recursive: true });
  const wanted = [tarball, `vitest@${devDependencies.vitest}`];
  run('npm', ['install', '--engine-strict', '--no-audit', '--no-fund', ...wanted], project);
  writeFileSync(join(project, 'counting.ts'), exampleOf('docs/transports.md'));
  execFileSync('npx', ['vitest', 'run', '--testTimeout=60000'], { cwd: project, stdio: 'inherit' });
  const examples = [
    'test/adapters/cli/docs.test.ts',
    ...['executors', 'extensions', 'stores'].map((name) => `test/examples/${name}.test.ts`),
  ];
  const env = { ...process.env, YARDMASTER_PACKAGE: join(project, 'node_modules/yardmaster') };
  execFileSync('npx', ['vitest', 'run', '--config', '.config/vitest.config.ts', ...examples], {
    cwd: root,
    stdio: 'inherit',
    env,
  });
  const { passed, failed, skipped } = await runKinds(project);
  console.log(`${passed + 2} passed, ${failed} failed, ${skipped} skipped`);
  if (failed > 0) process.exitCode = 1;
} finally {
  rmSync(project, { recursive: true, force: true });
}
