/**
 * Rolls the declarations that the compiler has written up into `dist/types`: one file for each entry of the package, and
 * one with what several entries share, so that each class is declared once. Part of packing; reads and writes `dist`.
 */
import { rmSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { rollup } from 'rollup';
import { dts } from 'rollup-plugin-dts';
import { ENTRIES } from './entries.mjs';

const dist = join(import.meta.dirname, '../dist');
const types = join(dist, 'types');
const input = Object.fromEntries(
  ENTRIES.map(({ name, source }) => [name, join(dist, `${source}.d.ts`)]),
);
const entryFiles = new Set(Object.values(input));

/** The entries that lead to a file, which is counted once for each. */
function entriesTo(id, getModuleInfo, found = new Set(), seen = new Set()) {
  if (seen.has(id)) return found;
  seen.add(id);
  if (entryFiles.has(id)) found.add(id);
  for (const importer of getModuleInfo(id)?.importers ?? []) {
    entriesTo(importer, getModuleInfo, found, seen);
  }
  return found;
}

rmSync(types, { recursive: true, force: true });
const bundle = await rollup({
  input,
  plugins: [dts()],
  external: (id) => !id.startsWith('.') && !isAbsolute(id),
  // Types that no entry exports, and that others refer to, are meant to have no name.
  onwarn: (warning) => {
    if (warning.plugin !== 'dts') throw new Error(warning.message);
  },
});
await bundle.write({
  dir: types,
  format: 'es',
  entryFileNames: '[name].d.ts',
  chunkFileNames: '[name].d.ts',
  manualChunks: (id, { getModuleInfo }) =>
    !entryFiles.has(id) && entriesTo(id, getModuleInfo).size > 1 ? 'shared' : undefined,
});
await bundle.close();
