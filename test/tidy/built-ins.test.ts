/** The core knows no built-in plugin and no section of one by name: the application tells it. */
import ts from 'typescript';
import { expect, it } from 'vitest';
import { configuration } from '../../adapters/app/config.ts';
import { configReader } from '../../core/config/load.ts';
import { filesIn, parse, type SourceFile } from './source-files.ts';

const core = configReader([]).schema.properties;
const all = configuration.schema.properties;

function added(to: object, from: object): string[] {
  return Object.keys(to).filter((name) => !Object.hasOwn(from, name));
}

const PLUGINS: readonly string[] = configuration.loadObject({}).plugins.map(({ use }) => use);
const SECTIONS: readonly string[] = [
  ...added(all, core),
  ...added(all.scheduler.properties, core.scheduler.properties),
];

/** Texts that name a plugin or a section, also in a path, and identifiers that are the name of a section. */
function namedIn(file: SourceFile): string[] {
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isStringLiteralLike(node) && !ts.isImportDeclaration(node.parent)) {
      const words = node.text.split('.');
      const isNamed = [...PLUGINS, ...SECTIONS].some((name) => words.includes(name));
      if (isNamed) found.push(`${file.path}: ${node.text}`);
    } else if (ts.isIdentifier(node) && SECTIONS.includes(node.text)) {
      found.push(`${file.path}: ${node.text}`);
    }
    ts.forEachChild(node, visit);
  };
  visit(parse(file));
  return found;
}

it('there are plugins and sections to look for', () => {
  expect(PLUGINS).toEqual(['amm', 'work-stealing', 'coordination', 'report']);
  expect(SECTIONS).toEqual(expect.arrayContaining(['scheduling', 'activeMemoryManager']));
});

it('no file of the core names one, but for the contract of the memory manager', () => {
  const files = filesIn('core', '.ts').filter(({ path }) => path !== 'core/api/amm-manager.ts');
  expect(files.flatMap(namedIn)).toEqual([]);
});

it('a name in a planted file is found', () => {
  const planted = {
    path: 'core/planted.ts',
    text: `const { workStealing } = config; request('amm.runOnce');`,
  };
  expect(namedIn(planted)).toEqual([
    'core/planted.ts: workStealing',
    'core/planted.ts: amm.runOnce',
  ]);
});
