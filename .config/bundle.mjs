/**
 * Bundles the entries of the package, the command and what threads run into a few files of `dist/bundle`, so that a
 * start reads three files instead of four hundred. All of it is bundled at once: each class exists once in a process,
 * whichever entries are imported.
 */
import { rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { rolldown } from 'rolldown';
import { ENTRIES } from './entries.mjs';

const root = join(import.meta.dirname, '..');
const dist = join(root, 'dist');
const folder = join(dist, 'bundle');
const built = (path) => join(dist, `${path}.js`);

/** Run as they are: the command, threads, and modules of tasks, which workers import by their URL. */
const PROGRAMS = {
  cli: built('adapters/cli/main'),
  'thread-main': built('adapters/executors/threads/thread-main'),
  'lab-thread': built('adapters/simulator/lab/lab-thread'),
  'hardware-tasks': built('adapters/peers/hardware-tasks'),
  'demo-tasks': built('adapters/demo/tasks'),
};

/** What a local cluster with the default configuration imports when it starts. */
const STARTED = [
  'adapters/app/start-local',
  'adapters/peers/tcp',
  'adapters/executors/threads/index',
  'policies/worker-selection/earliest-start',
  'policies/queuing/root-ish',
  'policies/ordering/depth-first',
  'policies/fairness/fifo',
  'policies/stealing/dask',
  'policies/amm/reduce-replicas',
  'plugins/active-memory-manager',
  'plugins/coordination',
  'plugins/work-stealing',
  'adapters/report/plugin',
].map(built);

/** Packages that are many small files, or needed in every thread. */
const BUNDLED = /^(tsyringe|tslib|reflect-metadata|fastest-levenshtein|es-module-lexer)(\/|$)/;
const IN_CLUSTER = /node_modules\/(?!fastest-|es-module-)|\.cjs$/;
const IN_COMMON = /node_modules\/(fastest-levenshtein|es-module-lexer)\/|rolldown\/runtime/;

/** Chunks beside those that follow from the entries: what every thread loads, a start, any command, and `scheduler`. */
const common = new Set();
const cluster = new Set();
const commandLine = new Set();
const scheduler = new Set();
const chunks = {
  name: 'chunks',
  transform(code, id) {
    // What the build has compiled becomes part of the bundle; compilers stay where they are.
    const inlined = code.includes("require('./compiled-")
      ? code
          .replace('const require =', 'const load =')
          .replaceAll("require('ajv", "load('ajv")
          .replace("require('../", "load('../")
      : code;
    // Modules keep the URL that they have without a bundle: some find files by it. Programs are next to the bundle.
    if (!inlined.includes('import.meta.url') || isOfBundle(id, inlined)) return inlined;
    const path = JSON.stringify(relative(folder, id));
    // As the last argument of a call; messages that show how tasks are defined have it in other places.
    const own = /import\.meta\.url(?=\))/g;
    return inlined.replace(own, `new URL(${path}, import.meta.url).href`);
  },
  buildEnd() {
    const add = (ids, to) => {
      for (const id of ids) {
        if (to.has(id)) continue;
        to.add(id);
        add(this.getModuleInfo(id)?.importedIds ?? [], to);
      }
    };
    add([built('adapters/app/index'), PROGRAMS['thread-main']], common);
    add(STARTED, cluster);
    add([PROGRAMS.cli], commandLine);
    add([built('adapters/cli/commands/scheduler')], scheduler);
  },
};
/** Whether its URL is that of the file of the bundle. */
const isOfBundle = (id, code) => id.endsWith('tasks.js') || code.includes("resolve('#");
const isProgram = (id) => Object.values(PROGRAMS).includes(id);

rmSync(folder, { recursive: true, force: true });
const bundle = await rolldown({
  input: {
    ...Object.fromEntries(ENTRIES.map(({ name, source }) => [name, built(source)])),
    ...PROGRAMS,
  },
  platform: 'node',
  // Modules that are imported for nothing but what they do stay.
  treeshake: { moduleSideEffects: true },
  external: (id) => !id.startsWith('.') && !id.startsWith('/') && !BUNDLED.test(id),
  checks: { ineffectiveDynamicImport: false },
  preserveEntrySignatures: 'allow-extension',
  plugins: [chunks],
});
const { output } = await bundle.write({
  dir: folder,
  format: 'esm',
  entryFileNames: '[name].js',
  chunkFileNames: '[name]-[hash].js',
  // Declarations and the sources have them.
  comments: { legal: true, annotation: true, jsdoc: false },
  codeSplitting: {
    includeDependenciesRecursively: false,
    groups: [
      {
        name: 'common',
        test: (id) => (common.has(id) && !isProgram(id)) || IN_COMMON.test(id),
        priority: 2,
      },
      {
        name: 'cluster',
        test: (id) => (cluster.has(id) && !isProgram(id)) || IN_CLUSTER.test(id),
        priority: 1,
      },
      // What is only needed by some: few files rather than one for each module. Each command is loaded when it is called.
      { name: 'command-line', test: (id) => commandLine.has(id) && !isProgram(id) },
      { name: 'scheduler', test: (id) => scheduler.has(id) },
      { name: 'policies', test: /dist\/policies\// },
      { name: 'pages', test: /dist\/adapters\/dashboard\// },
      { name: 'engine', test: /dist\/adapters\/dask\/(?!wire\/python\.js)/ },
    ],
  },
});
await bundle.close();

// V8 keeps a source of ASCII in half the memory, and reads it faster.
const escaped = (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`;
for (const { type, fileName, code } of output) {
  if (type === 'chunk') writeFileSync(join(folder, fileName), code.replace(/[^\0-\x7f]/g, escaped));
}
