/** The tree that `docs/architecture.md` prints is the tree of folders that exists. */
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ROOT } from './source-files.ts';

/** Folders whose own folders the document lists one by one. */
const LISTED = ['adapters', 'plugins', 'policies', 'core', 'core/kernel', 'core/worker'];

/** Paths of the folders in the first block of code below the heading "The tree". */
function documentedFolders(document: string): string[] {
  const [, section = ''] = document.split('## The tree');
  const [, block = ''] = section.split('```');
  const parents: string[] = [];
  return block.split('\n').flatMap((line) => {
    const [, indent, names] = /^( *)((?:[\w-]+\/ *)+)(?: |$)/.exec(`${line} `) ?? [];
    if (indent === undefined || names === undefined) return [];
    const depth = indent.length / 2;
    const paths = names
      .trim()
      .split(/ +/)
      .map((name) => join(...parents.slice(0, depth), name.slice(0, -1)));
    parents[depth] = names.trim().split(/ +/)[0]?.slice(0, -1) ?? '';
    return paths;
  });
}

const documented = documentedFolders(readFileSync(join(ROOT, 'docs/architecture.md'), 'utf8'));

it('every folder of the tree exists', () => {
  expect(documented.length).toBeGreaterThan(40);
  expect(documented.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});

it.each(LISTED)('every folder below %s is in the tree', (folder) => {
  const existing = readdirSync(join(ROOT, folder), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => `${folder}/${name}`);
  expect(existing.filter((path) => !documented.includes(path))).toEqual([]);
});

it('a folder that does not exist is noticed', () => {
  const text = '## The tree\n```\ncore/\n  attic/  cellar/      dust\n```\n';
  expect(documentedFolders(text)).toEqual(['core', 'core/attic', 'core/cellar']);
});
