/** What the type checker could be talked out of, and constructs that this project does without. */
import ts from 'typescript';
import { expect, it } from 'vitest';
import { parse, placeOf, productFiles, type SourceFile, visit } from './source-files.ts';

const SILENCERS = /@ts-(ignore|expect-error|nocheck)|eslint-disable/;

function complaints(file: SourceFile): string[] {
  const source = parse(file);
  const found: string[] = [];
  const complain = (node: ts.Node, what: string): void => {
    found.push(`${placeOf(source, node)} ${what}`);
  };
  visit(source, (node) => {
    if (node.kind === ts.SyntaxKind.AnyKeyword) complain(node, 'any');
    if (ts.isEnumDeclaration(node)) complain(node, 'enum');
    if (ts.isModuleDeclaration(node) && !isAmbient(node)) complain(node, 'namespace');
  });
  file.text.split('\n').forEach((line, index) => {
    if (SILENCERS.test(line)) found.push(`${file.path}:${index + 1} silences a tool`);
  });
  return found;
}

/** `declare module 'x'` and `declare global` extend the types of others. */
function isAmbient(node: ts.ModuleDeclaration): boolean {
  return node.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.DeclareKeyword) === true;
}

it('the product has no any, no enum, no namespace, and silences no tool', () => {
  expect(productFiles().flatMap(complaints)).toEqual([]);
});

it('each of them is noticed', () => {
  const text = [
    'let a: any;',
    'enum E { A }',
    'namespace N {}',
    '// @ts-ignore',
    '/* eslint-disable */',
  ].join('\n');
  expect(complaints({ path: 'x.ts', text })).toEqual([
    'x.ts:1 any',
    'x.ts:2 enum',
    'x.ts:3 namespace',
    'x.ts:4 silences a tool',
    'x.ts:5 silences a tool',
  ]);
});
