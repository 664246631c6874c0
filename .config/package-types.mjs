/**
 * Leaves of the declarations in `dist` those that an entry of the package needs: what the compiler has written for all
 * other files would only make the package larger.
 */
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import ts from 'typescript';

const root = join(import.meta.dirname, '..');
const dist = join(root, 'dist');
const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

const needed = new Set();

/** @throws Error when an entry or what it imports is not there */
function follow(path) {
  if (needed.has(path)) return;
  needed.add(path);
  const { importedFiles } = ts.preProcessFile(readFileSync(path, 'utf8'), true, true);
  for (const { fileName } of importedFiles) {
    if (!fileName.startsWith('.')) continue;
    follow(join(dirname(path), fileName.replace(/(?:\.d)?\.[jt]s$/, '.d.ts')));
  }
}

for (const { types } of Object.values(exports)) {
  if (types !== undefined) follow(join(root, types));
}
for (const path of readdirSync(dist, { recursive: true })) {
  if (path.endsWith('.d.ts') && !needed.has(join(dist, path))) rmSync(join(dist, path));
}
