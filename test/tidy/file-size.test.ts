import { dirname } from 'node:path';
import ts from 'typescript';
import { expect, it } from 'vitest';
import { parse, placeOf, productFiles, type SourceFile, visit } from './source-files.ts';

const FILE_LINES_MAX = 400;
const FUNCTION_LINES_MAX = 60;
const FOLDER_FILES_MAX = 20;

function longFile({ path, text }: SourceFile): string[] {
  const lines = text.trimEnd().split('\n').length;
  return lines > FILE_LINES_MAX ? [`${path} has ${lines} lines`] : [];
}

function longFunctions(file: SourceFile): string[] {
  const source = parse(file);
  const found: string[] = [];
  visit(source, (node) => {
    if (!ts.isFunctionLike(node) || !('body' in node)) return;
    const first = source.getLineAndCharacterOfPosition(node.getStart()).line;
    const last = source.getLineAndCharacterOfPosition(node.end).line;
    const lines = last - first + 1;
    if (lines > FUNCTION_LINES_MAX) found.push(`${placeOf(source, node)} has ${lines} lines`);
  });
  return found;
}

function fullFolders(sources: readonly SourceFile[]): string[] {
  const counts = new Map<string, number>();
  for (const { path } of sources) counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1);
  return [...counts]
    .filter(([, count]) => count > FOLDER_FILES_MAX)
    .map(([folder, count]) => `${folder} has ${count} files`);
}

const files = productFiles();

it('there are files to look at', () => {
  expect(files.length).toBeGreaterThan(100);
});

it('no file of the product is longer than 400 lines', () => {
  expect(files.flatMap(longFile)).toEqual([]);
});

it('no function of the product is longer than 60 lines', { timeout: 120_000 }, () => {
  expect(files.flatMap(longFunctions)).toEqual([]);
});

it('no folder of the product has more than 20 files', () => {
  expect(fullFolders(files)).toEqual([]);
});

it('a folder that is too full is noticed', () => {
  const many = Array.from({ length: 21 }, (_, n) => ({ path: `core/x/${n}.ts`, text: '' }));
  expect(fullFolders([...many, { path: 'core/y/1.ts', text: '' }])).toEqual([
    'core/x has 21 files',
  ]);
});

it('a file and a function that are too long are noticed', () => {
  const body = 'const x = 1;\n'.repeat(60);
  const file = { path: 'x.ts', text: `\nexport const f = () => {\n${body}};\n` };
  expect(longFunctions(file)).toEqual(['x.ts:2 has 62 lines']);
  expect(longFile({ path: 'x.ts', text: '\n'.repeat(400) + 'x' })).toEqual(['x.ts has 401 lines']);
});
