import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

export const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** Folders of what is shipped. */
export const PRODUCT = ['core', 'policies', 'plugins', 'adapters'] as const;

export interface SourceFile {
  /** From the root of the project: `core/kernel/fill-slots.ts`. */
  readonly path: string;
  readonly text: string;
}

/** Every TypeScript file of the product. */
export function productFiles(): SourceFile[] {
  return PRODUCT.flatMap((folder) => filesIn(folder, '.ts'));
}

/** Where `npm run docs` writes. */
const GENERATED = join(ROOT, 'docs/api');

/** What stands there, and is not made by a tool. */
export function filesIn(folder: string, ending: string): SourceFile[] {
  return readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(ending))
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((absolute) => !absolute.startsWith(GENERATED))
    .map((absolute) => ({
      path: relative(ROOT, absolute),
      text: readFileSync(absolute, 'utf8'),
    }));
}

export function parse({ path, text }: SourceFile): ts.SourceFile {
  return ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
}
