/** Words of a private vocabulary, which the glossary and the field's own terms replace. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { filesIn, productFiles, ROOT, type SourceFile } from './source-files.ts';

const BANNED =
  /\b(nobody|somebody|whoever|told|glutton|leftovers?|twins|wish(?:es|ed)?|(?:goes|go) on|lets? go(?: of)?|such a one)\b/gi;

/** The changelog names things as they were called in each release. */
const HISTORY = 'docs/changelog.md';

const DOCUMENTS = [
  { path: 'README.md', text: readFileSync(join(ROOT, 'README.md'), 'utf8') },
  ...filesIn('docs', '.md').filter(({ path }) => path !== HISTORY),
];

function bannedWords({ path, text }: SourceFile): string[] {
  return text.split('\n').flatMap((line, index) => {
    return [...line.matchAll(BANNED)].map(([word]) => `${path}:${index + 1} ${word}`);
  });
}

it('product code uses the terms of the glossary', () => {
  expect(productFiles().flatMap(bannedWords)).toEqual([]);
});

it('the guides use the terms of the glossary', () => {
  expect(DOCUMENTS.flatMap(bannedWords)).toEqual([]);
});

it('a banned word is noticed', () => {
  const text = '// Nobody is waited for.\n// The worker goes on.';
  expect(bannedWords({ path: 'x.ts', text })).toEqual(['x.ts:1 Nobody', 'x.ts:2 goes on']);
});
