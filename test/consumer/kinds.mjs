/**
 * The first program of the README with the packed package, on each Node that is here, in each way in which people write
 * programs: JavaScript, CommonJS, TypeScript (compiled, and as it is), a bundle, the REPL.
 *
 * Other versions than that of this process are looked for as `node20`, `node22`, `node24` in PATH, or under the paths in
 * NODES (`/opt/node22/bin/node:/opt/node24/bin/node`); what is not here is counted as skipped.
 */
import console from 'node:console';
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import process from 'node:process';
import { fileURLToPath, URL } from 'node:url';
import { build } from 'esbuild';

const MAJORS = [20, 22, 24];
/** What the program prints. */
const ANSWER = '30';
const TIME_MAX_MS = 120_000;

const root = fileURLToPath(new URL('../..', import.meta.url));
const [tasks, main] = [
  ...readFileSync(join(root, 'README.md'), 'utf8').matchAll(/^```js\n(.*?)^```$/gms),
].map(([, code]) => code);

const TYPED = main.replace('const squares =', 'const squares: Future<number>[] =');
const COMMON_TASKS = `const { defineTasks } = require('yardmaster');
module.exports = defineTasks(__filename, {
  square: (x) => x * x,
  sum: (numbers) => numbers.reduce((total, x) => total + x, 0),
});
`;
const COMMON_MAIN = `const { LocalCluster } = require('yardmaster');
const { square, sum } = require('./tasks.cjs');
(async () => {
${main.slice(main.indexOf('const cluster'))}})();
`;
/** On one line: the REPL reads the next line of a pipe without waiting for what the one before it awaits. */
const REPL_LINE = `const { LocalCluster } = await import('yardmaster');
const { square, sum } = await import('./tasks.js');
${main.slice(main.indexOf('const cluster'))}`
  .replaceAll(/ *\/\/.*$/gm, '')
  .replaceAll('\n', ' ');

function write(folder, files) {
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
}

function versionOf(node) {
  const { stdout } = spawnSync(node, ['--version'], { encoding: 'utf8' });
  return stdout?.trim().slice(1) ?? '';
}

/** By major version, where there is one. */
function nodes() {
  const given = (process.env.NODES ?? '').split(delimiter).filter((path) => path !== '');
  const found = new Map();
  for (const node of [process.execPath, ...given, ...MAJORS.map((major) => `node${major}`)]) {
    const version = versionOf(node);
    const major = Number.parseInt(version, 10);
    if (MAJORS.includes(major) && !found.has(major)) found.set(major, { node, version });
  }
  return found;
}

/** @returns what is wrong; undefined: nothing */
function run(node, folder, args, input) {
  const options = { cwd: folder, encoding: 'utf8', timeout: TIME_MAX_MS };
  const { stdout, stderr, status } = spawnSync(node, args, {
    ...options,
    ...(input === undefined ? {} : { input }),
  });
  const isRight = status === 0 && stdout.split(/\s+/).includes(ANSWER);
  return isRight && stderr === '' ? undefined : `status ${status}\n${stdout}${stderr}`;
}

/** Node strips types by itself from here on. */
function stripsTypes(version) {
  const [major, minor] = version.split('.').map(Number);
  return major > 22 || (major === 22 && minor >= 18);
}

async function prepare(folder) {
  write(folder, {
    'tasks.js': tasks,
    'main.js': main,
    'tasks.cjs': COMMON_TASKS,
    'main.cjs': COMMON_MAIN,
    'tasks.ts': tasks
      .replace('(x)', '(x: number)')
      .replace('(numbers)', '(numbers: readonly number[])'),
    'main.ts': TYPED.replace('{ LocalCluster }', '{ type Future, LocalCluster }').replace(
      './tasks.js',
      './tasks.ts',
    ),
  });
  const entries = { 'thread-main': './node_modules/yardmaster/dist/bundle/thread-main.js' };
  for (const name of ['main', 'tasks']) entries[name] = join(folder, `${name}.js`);
  await build({
    ...{ entryPoints: entries, absWorkingDir: folder, outdir: join(folder, 'bundle') },
    ...{ bundle: true, splitting: true, format: 'esm', platform: 'node', logLevel: 'error' },
    banner: {
      js: "import { createRequire as r } from 'node:module'; const require = r(import.meta.url);",
    },
  });
  const flags = ['--target', 'es2022', '--module', 'nodenext', '--strict', '--types', 'node'];
  const emit = ['--rewriteRelativeImportExtensions', '--outDir', 'compiled'];
  const typescript = join(root, 'node_modules/typescript/lib/tsc.js');
  const types = ['--typeRoots', join(root, 'node_modules/@types')];
  const words = [typescript, ...flags, ...types, ...emit, 'main.ts', 'tasks.ts'];
  const { status, stdout } = spawnSync(process.execPath, words, { cwd: folder, encoding: 'utf8' });
  if (status !== 0) throw new Error(`the README's program in TypeScript: ${stdout}`);
}

const KINDS = {
  JavaScript: (node, folder) => run(node, folder, ['main.js']),
  CommonJS: (node, folder) => run(node, folder, ['main.cjs']),
  'compiled TypeScript': (node, folder) => run(node, folder, ['compiled/main.js']),
  TypeScript: (node, folder, version) =>
    stripsTypes(version) ? run(node, folder, ['main.ts']) : 'skipped',
  'a bundle': (node, folder) => run(node, join(folder, 'bundle'), ['main.js']),
  'the REPL': (node, folder) => run(node, folder, ['--interactive'], `${REPL_LINE}\n`),
};

/**
 * @param folder - a project of ES modules in which the package is installed
 * @returns counts, and prints what failed
 */
export async function runKinds(folder) {
  await prepare(folder);
  const counts = { passed: 0, failed: 0, skipped: 0 };
  const found = nodes();
  for (const major of MAJORS) {
    const { node, version } = found.get(major) ?? {};
    for (const [kind, start] of Object.entries(KINDS)) {
      const fault = node === undefined ? 'skipped' : start(node, folder, version);
      if (fault === undefined) counts.passed += 1;
      else if (fault === 'skipped') counts.skipped += 1;
      else {
        counts.failed += 1;
        console.error(`${kind} with Node ${version}: ${fault}`);
      }
    }
    console.log(node === undefined ? `there is no Node ${major}` : `tried with Node ${version}`);
  }
  return counts;
}
