/** The entries of the package: one for each role, each documented, and in `docs/index.md`. */
import { readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { filesIn, parse, ROOT } from './source-files.ts';

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const { exports } = JSON.parse(read('package.json')) as {
  exports: Readonly<Record<string, string | { readonly types: string }>>;
};

/** Name for an import, and source, of each entry with code. */
const ENTRIES = Object.entries(exports).flatMap(([path, target]) =>
  typeof target === 'string'
    ? []
    : [
        {
          name: posix.join('yardmaster', path),
          source:
            path === '.'
              ? 'adapters/app/index.ts'
              : posix.join('adapters/app/entries', `${path}.ts`),
        },
      ],
);

/** Names that a module exports, those of `export *` included. */
function namesIn(path: string): ReadonlySet<string> {
  const names = new Set<string>();
  for (const node of parse({ path, text: read(path) }).statements) {
    if (ts.isExportDeclaration(node)) {
      const { exportClause, moduleSpecifier } = node;
      if (exportClause !== undefined && ts.isNamedExports(exportClause)) {
        for (const { name } of exportClause.elements) names.add(name.text);
      } else if (moduleSpecifier !== undefined && ts.isStringLiteral(moduleSpecifier)) {
        for (const name of namesIn(posix.join(dirname(path), moduleSpecifier.text))) {
          names.add(name);
        }
      }
    } else if (isExported(node)) {
      for (const name of declaredNames(node)) names.add(name);
    }
  }
  return names;
}

function isExported(node: ts.Node): boolean {
  const modifiers = ts.canHaveModifiers(node) ? (ts.getModifiers(node) ?? []) : [];
  return modifiers.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword);
}

function declaredNames(node: ts.Statement): string[] {
  if (ts.isVariableStatement(node)) {
    return node.declarationList.declarations.map(({ name }) => name.getText());
  }
  return 'name' in node ? [(node.name as ts.Identifier).text] : [];
}

describe.each(ENTRIES)('the entry $name', ({ name, source }) => {
  it('says at its top who it is for', () => {
    expect(read(source)).toMatch(new RegExp(`^/\\*\\*\\n \\* \`${name}\`: `));
  });

  it('has a row in the guide to the entries, with a page', () => {
    expect(read('docs/index.md')).toMatch(
      new RegExp(`^\\| \`${name}\` \\| .* \\| .*\\]\\([\\w-]+\\.md`, 'm'),
    );
  });

  it('is an entry of the documentation of the API', () => {
    expect(JSON.parse(read('.config/typedoc.json'))).toMatchObject({
      entryPoints: expect.arrayContaining([`../${source}`]) as string[],
    });
  });
});

it('the guides and fixtures import names from the entry that has them', () => {
  const entries = new Map(ENTRIES.map(({ name, source }) => [name, namesIn(source)]));
  const files = [
    ...filesIn('docs', '.md').filter(({ path }) => !path.startsWith('docs/api/')),
    { path: 'README.md', text: read('README.md') },
    ...filesIn('test/consumer/project', '.js'),
  ];
  const IMPORT = /import (?:type )?\{([^}]*)\} from '(yardmaster(?:\/[\w-]+)?)'/g;
  const wrong = files.flatMap(({ path, text }) =>
    [...text.matchAll(IMPORT)].flatMap(([, names = '', entry = '']) =>
      names
        .split(',')
        .map((name) =>
          name
            .trim()
            .replace(/^type /, '')
            .replace(/ as .*/, ''),
        )
        .filter((name) => name !== '' && entries.get(entry)?.has(name) !== true)
        .map((name) => `${path}: ${name} from ${entry}`),
    ),
  );
  expect(wrong).toEqual([]);
});
