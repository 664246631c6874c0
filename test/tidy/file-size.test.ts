import ts from 'typescript';
import { expect, it } from 'vitest';
import { parse, placeOf, productFiles, type SourceFile, visit } from './source-files.ts';

const FILE_LINES_MAX = 500;
const FUNCTION_LINES_MAX = 70;

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

const files = productFiles();

it('there are files to look at', () => {
  expect(files.length).toBeGreaterThan(100);
});

it('no file of the product is longer than 500 lines', () => {
  expect(files.flatMap(longFile)).toEqual([]);
});

it('no function of the product is longer than 70 lines', () => {
  expect(files.flatMap(longFunctions)).toEqual([]);
});

it('a file and a function that are too long are noticed', () => {
  const body = 'const x = 1;\n'.repeat(70);
  const file = { path: 'x.ts', text: `\nexport const f = () => {\n${body}};\n` };
  expect(longFunctions(file)).toEqual(['x.ts:2 has 72 lines']);
  expect(longFile({ path: 'x.ts', text: '\n'.repeat(500) + 'x' })).toEqual(['x.ts has 501 lines']);
});
