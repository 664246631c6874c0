import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ERROR_CODES } from '../../core/api/errors.ts';
import { filesIn, productFiles, ROOT } from './source-files.ts';

const DOCUMENTS = [
  { path: 'README.md', text: readFileSync(join(ROOT, 'README.md'), 'utf8') },
  ...filesIn('docs', '.md'),
];

const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  scripts: Record<string, string>;
};

function unknownScripts(text: string): string[] {
  const named = [...text.matchAll(/npm run (?:-s )?([\w:-]+)/g)].map(([, name]) => name ?? '');
  return named.filter((name) => !Object.hasOwn(scripts, name));
}

it('every error code is used where errors are made', () => {
  const code = productFiles().filter(({ path }) => path !== 'core/api/errors.ts');
  const unused = Object.keys(ERROR_CODES).filter((name) => {
    return !code.some(({ text }) => text.includes(`'${name}'`));
  });
  expect(unused).toEqual([]);
});

it.each(DOCUMENTS)('$path names scripts that exist', ({ text }) => {
  expect(unknownScripts(text)).toEqual([]);
});

it('a script that does not exist is noticed', () => {
  expect(unknownScripts('`npm run -s nonsense` and `npm run build`')).toEqual(['nonsense']);
});

it('every link between documents leads to a file', () => {
  const all = new Set(DOCUMENTS.map(({ path }) => path));
  const broken = DOCUMENTS.flatMap(({ path, text }) => {
    const links = [...text.matchAll(/\]\(([\w./-]+\.md)(?:#[\w-]*)?\)/g)].map(([, to]) => to ?? '');
    return links
      .map((to) => join(path, '..', to))
      .filter((to) => !all.has(to))
      .map((to) => `${path} -> ${to}`);
  });
  expect(broken).toEqual([]);
});
