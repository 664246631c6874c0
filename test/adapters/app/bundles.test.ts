import { execFile } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { rolldown } from 'rolldown';
import webpack from 'webpack';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const run = promisify(execFile);
const ROOT = new URL('../../..', import.meta.url).pathname;

const TASKS = `import { currentTask, defineTasks } from 'yardmaster';
import { square } from './square.js';
export const tasks = defineTasks(import.meta.url, {
  square: (n) => square(n),
  key: () => currentTask().key,
});
`;
const APP = `import { LocalCluster } from 'yardmaster';
import { tasks } from './tasks.js';
const cluster = await LocalCluster.start();
const client = await cluster.client();
const squares = await client.gather(client.map(tasks.square, [1, 2, 3]));
const key = await client.submit(tasks.key).result();
console.log(squares.join(' '), key.startsWith('key-'));
const failed = await client.submit(tasks.square, 'no number').error();
console.log(failed.name, failed.message);
await cluster.close();
`;
const SQUARE = `export function square(n) {
  if (typeof n !== 'number') throw new RangeError(n);
  return n * n;
}
`;
const PRINTED = '1 4 9 true\nRangeError no number\n';

let folder: string;
let project: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'yardmaster-bundles-'));
  project = join(folder, 'project');
  mkdirSync(join(project, 'node_modules'), { recursive: true });
  symlinkSync(ROOT, join(project, 'node_modules/yardmaster'));
  writeFileSync(join(project, 'package.json'), '{ "type": "module" }');
  for (const [name, code] of Object.entries({ app: APP, tasks: TASKS, square: SQUARE })) {
    writeFileSync(join(project, `${name}.js`), code);
  }
});
afterAll(() => {
  rmSync(folder, { recursive: true });
});

/** Runs a bundle where no package is installed. A busy machine is warned about on the error stream. */
async function runAlone(name: string): Promise<string> {
  const alone = join(folder, name);
  cpSync(join(project, name), alone, { recursive: true });
  writeFileSync(join(alone, 'package.json'), '{ "type": "module" }');
  const { stdout } = await run(process.execPath, [join(alone, 'app.js')]);
  return stdout;
}

describe('an application with Yardmaster inside, its tasks in threads, runs alone when bundled by', () => {
  test('esbuild', async () => {
    await build({
      entryPoints: {
        app: join(project, 'app.js'),
        tasks: join(project, 'tasks.js'),
        'thread-main': './node_modules/yardmaster/dist/bundle/thread-main.js',
      },
      ...{ absWorkingDir: project, outdir: join(project, 'esbuild'), logLevel: 'error' },
      ...{ bundle: true, splitting: true, format: 'esm', platform: 'node' },
    });
    expect(await runAlone('esbuild')).toBe(PRINTED);
  });

  test('esbuild, or says what is missing when it was not told of what threads run', async () => {
    // As in the bundle before, but for one of the files.
    cpSync(join(project, 'esbuild'), join(project, 'without'), { recursive: true });
    rmSync(join(project, 'without/thread-main.js'));
    await expect(runAlone('without')).rejects.toThrow(
      /thread-main\.js, which does not exist: give the bundler node_modules\/yardmaster\/dist\/bundle\/thread-main/,
    );
  });

  test('rolldown, with the options of rollup', async () => {
    const bundle = await rolldown({
      input: {
        app: join(project, 'app.js'),
        tasks: join(project, 'tasks.js'),
        'thread-main': './node_modules/yardmaster/dist/bundle/thread-main.js',
      },
      ...{ cwd: project, platform: 'node', logLevel: 'silent' },
    });
    await bundle.write({ dir: join(project, 'rolldown'), format: 'esm' });
    await bundle.close();
    expect(await runAlone('rolldown')).toBe(PRINTED);
  });
});

test('an application with Yardmaster inside runs alone when bundled by webpack', async () => {
  const compiler = webpack({
    ...{ context: project, mode: 'none', target: 'node20' },
    entry: {
      app: './app.js',
      tasks: { import: './tasks.js', library: { type: 'module' } },
      'thread-main': './node_modules/yardmaster/dist/bundle/thread-main.js',
    },
    externals: [
      ({ request, contextInfo }, done) => {
        const isTasks = contextInfo.issuer !== '' && request.endsWith('/tasks.js');
        if (isTasks) done(undefined, 'module ./tasks.js');
        else done();
      },
    ],
    experiments: { outputModule: true },
    output: {
      ...{ path: join(project, 'webpack'), module: true, chunkFormat: 'module' },
      ...{ filename: '[name].js', chunkFilename: '[name].js' },
    },
    module: { parser: { javascript: { importMeta: false, url: false, createRequire: false } } },
  });
  const stats = await promisify(compiler.run.bind(compiler))();
  expect(stats?.toJson({ all: false, errors: true }).errors).toEqual([]);
  expect(await runAlone('webpack')).toBe(PRINTED);
});

test('an application that is bundled without Yardmaster runs beside its packages', async () => {
  await build({
    entryPoints: { app: join(project, 'app.js'), tasks: join(project, 'tasks.js') },
    ...{ absWorkingDir: project, outdir: join(project, 'beside'), logLevel: 'error' },
    ...{ bundle: true, splitting: true, format: 'esm', platform: 'node', packages: 'external' },
  });
  const { stdout } = await run(process.execPath, [join(project, 'beside/app.js')]);
  expect(stdout).toBe(PRINTED);
});

test('messages of the package show import.meta.url as it is written, not a path of its own bundle', () => {
  const folder = join(ROOT, 'dist/bundle');
  const code = readdirSync(folder)
    .filter((name) => name.endsWith('.js'))
    .map((name) => readFileSync(join(folder, name), 'utf8'))
    .join('\n');
  expect(code).toContain('write import.meta.url, or __filename');
  // The example in the documentation of `defineTasks` is no path of the bundle.
  expect(code).not.toMatch(/(?:write |defineTasks\()new URL\((?!'work\.js')/);
});
