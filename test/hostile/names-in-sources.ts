import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

/** The folder of the project: this file runs from the sources and from what is built of them. */
export const ROOT = dirname(createRequire(import.meta.url).resolve('yardmaster/package.json'));

/**
 * What a pattern finds in the sources of a folder: operations, fields and routes are attacked as soon as they
 * are written. The first group of the pattern is the name.
 */
export function namesInSources(folders: readonly string[], pattern: RegExp): readonly string[] {
  const found = new Set<string>();
  for (const folder of folders) {
    const files = readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' });
    for (const file of files.filter((name) => name.endsWith('.ts'))) {
      const text = readFileSync(join(ROOT, folder, file), 'utf8');
      for (const match of text.matchAll(pattern)) found.add(match[1] ?? '');
    }
  }
  return [...found].filter((name) => name !== '').sort();
}
