/**
 * What `npm publish` would upload: sizes by kind, and that it holds nothing that users do not need. Fails when there are
 * tests or sources, when a file of the bundle is imported by no other, or when it has become larger than it should.
 */
import console from 'node:console';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import process from 'node:process';

/** Bytes, packed. A tenth above what it was when this line was last changed. */
const PACKED_MAX = 1_600_000;
const KINDS = [
  ['the bundle', /^dist\/bundle\//],
  ['types', /^dist\/types\/[\w-]+\.d\.ts$/],
  ['pages of the dashboard', /^dist\/adapters\/dashboard\/assets\//],
  ['recorded workloads', /^dist\/adapters\/workloads\/recorded\//],
  ['Python', /^dist\/.*\.py$/],
  ['schemas', /^dist\/schema\//],
  ['guides', /^(?:docs\/|README|SECURITY)/],
  ['licence and package.json', /^(?:LICENSE|package\.json)$/],
];

const root = join(import.meta.dirname, '..');
const text = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts=false'], {
  cwd: root,
  encoding: 'utf8',
  stdio: ['ignore', 'pipe', 'ignore'],
  maxBuffer: 2 ** 26,
});
// npm 11 gives an object by the name of the package.
const [{ files, size, unpackedSize }] = Object.values(JSON.parse(text));
const paths = files.map(({ path }) => path);
const faults = [];
const refuse = (what, found) => {
  if (found.length > 0) faults.push(`${what}: ${found.slice(0, 5).join(', ')}`);
};

refuse(
  'tests',
  paths.filter((path) => /(?:^|\/)test\//.test(path) && !path.startsWith('docs/examples/')),
);
refuse(
  'files of no known kind',
  paths.filter((path) => !KINDS.some(([, pattern]) => pattern.test(path))),
);

const bundle = paths.filter((path) => path.startsWith('dist/bundle/'));
const { exports, bin, imports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const named = JSON.stringify([exports, bin, imports]);
const code = bundle.map((path) => readFileSync(join(root, path), 'utf8')).join('\n');
refuse(
  'files of the bundle that nothing imports',
  bundle.filter(
    (path) =>
      // Modules of tasks are imported by their URL.
      !path.endsWith('-tasks.js') && !named.includes(path) && !code.includes(`./${basename(path)}`),
  ),
);
if (size > PACKED_MAX) faults.push(`${size} bytes packed, of at most ${PACKED_MAX}`);

const kB = (bytes) => `${Math.round(bytes / 1000)} kB`.padStart(9);
for (const [kind, pattern] of KINDS) {
  const own = files.filter(({ path }) => pattern.test(path));
  const bytes = own.reduce((total, file) => total + file.size, 0);
  console.log(`${kind.padEnd(26)}${String(own.length).padStart(5)} files${kB(bytes)}`);
}
console.log(
  `${'all'.padEnd(26)}${String(files.length).padStart(5)} files${kB(unpackedSize)}, packed ${kB(size).trim()}`,
);
for (const fault of faults) console.error(`the package contains ${fault}`);
process.exitCode = faults.length === 0 ? 0 : 1;
