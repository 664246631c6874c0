import { existsSync, readdirSync, statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join, relative } from 'node:path';

import { defineConfig } from 'vitest/config';

const root = new URL('..', import.meta.url).pathname;
const PRODUCT = ['core', 'policies', 'plugins', 'adapters'];

/**
 * The only limit of a test or hook: it ends what hangs, also on a small and busy machine, and judges no speed. Random tests that
 * are asked to look harder take longer.
 */
const LIMIT_MS = Number(process.env['YARDMASTER_RUNS']) > 0 ? 3_600_000 : 300_000;

const builtOf = (path: string): string => join(root, 'dist', path.replace(/\.ts$/, '.js'));

/** True when every file of the product has been built since it was last changed, as it is after `npm run build`. */
function isBuilt(): boolean {
  const sources = PRODUCT.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !name.startsWith('dashboard/page/'))
      .map((name) => join(folder, name)),
  );
  return sources.every((path) => {
    const built = statSync(builtOf(path), { throwIfNoEntry: false });
    return built !== undefined && built.mtimeMs >= statSync(join(root, path)).mtimeMs;
  });
}

if (!existsSync(join(root, 'dist/bundle/index.js'))) {
  process.stderr.write(
    'The product is not built: tests that start processes or threads, open the dashboard, or load modules of users fail ' +
      'until "npm run build" has written dist.\n',
  );
}

/**
 * Tests of a product that is built import what the build has written. Node loads it in a fraction of the time that Vite
 * needs, and runs it as it is shipped. While a file is newer than its build, tests import the sources.
 */
const importBuilt = {
  name: 'import-built',
  enforce: 'pre' as const,
  resolveId(source: string, importer: string | undefined) {
    if (importer === undefined || !source.startsWith('.') || !source.endsWith('.ts')) return null;
    const path = relative(root, join(dirname(importer), source));
    const isOfProduct = PRODUCT.some((folder) => path.startsWith(`${folder}/`));
    const id = builtOf(path);
    return isOfProduct && existsSync(id) ? { id, external: true } : null;
  },
};

export default defineConfig({
  root,
  plugins: isBuilt() ? [importBuilt] : [],
  test: {
    include: ['test/**/*.test.ts', 'test/bad-input/*.test.js'],
    // Many tests wait for processes and timers: twice as many files as there are cores keep them all busy.
    maxWorkers: 2 * availableParallelism(),
    // The files of a worker share their modules: to load the product anew for each file takes longer than most of its tests.
    isolate: false,
    // Workers import the modules of fixtures with Node: tests that look into one look into the same.
    server: { deps: { external: [/\/dist\//, /\/fixtures\/.*\.m?js$/] } },
    testTimeout: LIMIT_MS,
    hookTimeout: LIMIT_MS,
    // Says what it waited for just before the test ends.
    expect: { poll: { timeout: LIMIT_MS - 20_000 } },
  },
});
