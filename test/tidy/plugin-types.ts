import ts from 'typescript';
import { parse, ROOT } from './source-files.ts';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Where the types are that authors of extensions meet, in the order of the page. */
const CHAPTERS: readonly (readonly [title: string, paths: readonly string[]])[] = [
  [
    'What plugins and policies see',
    ['core/api/views.ts', 'core/state/task.ts', 'core/state/worker.ts', 'core/state/groups.ts'],
  ],
  [
    'Plugins of the scheduler',
    [
      'core/api/plugin.ts',
      'core/api/token.ts',
      'core/api/hooks.ts',
      'core/api/clock.ts',
      'core/api/insight.ts',
    ],
  ],
  [
    'Stimuli: what a plugin can enqueue',
    [
      'core/messages/stimulus.ts',
      'core/messages/from-client.ts',
      'core/messages/from-worker.ts',
      'core/util/values.ts',
    ],
  ],
  ['Policies', ['core/api/policies.ts']],
  ['The Active Memory Manager', ['core/api/amm.ts', 'core/api/amm-manager.ts']],
  ['Transports', ['core/api/transport.ts']],
  ['Plugins of workers and nannies', ['core/api/local-plugins.ts']],
];

/** State that is no part of what authors see: its views are. */
const LEFT_OUT = new Set([
  'TaskState',
  'TaskGroup',
  'TaskPrefix',
  'WorkerState',
  'GenericWorker',
  'ClientState',
  'Steal',
  'GenericSteal',
  'RecentGroups',
  'Builtins',
  'UnmanagedHistory',
]);

/** One type of the page. */
export interface TypeEntry {
  readonly name: string;
  readonly about: string;
  readonly heritage: string;
  readonly members: readonly {
    readonly name: string;
    readonly text: string;
    readonly about: string;
  }[];
}

/** All types that authors meet, by chapter. */
export function authorTypes(): readonly (readonly [
  title: string,
  entries: readonly TypeEntry[],
])[] {
  return CHAPTERS.map(([title, paths]) => [title, paths.flatMap(typesOf)]);
}

/** The page `docs/plugin-types.md`. */
export function typesPage(): string {
  const chapters = authorTypes().map(
    ([title, entries]) => `## ${title}\n\n${entries.map(section).join('\n')}`,
  );
  return `# The types that authors meet

Every field of what plugins, policies and transports get and give, from the declarations of the package. The guides say
how they go together: [plugins](plugins.md), [policies](policies.md), [transports](transports.md), [plugins of
workers](worker-plugins.md). Made from the code: \`UPDATE_DOCS=1 npx vitest run test/tidy/plugin-types.test.ts\`.

${chapters.join('\n')}`;
}

function section({ name, heritage, about, members }: TypeEntry): string {
  const rows = members.map(({ text, about: what }) => `| \`${cell(text)}\` | ${cell(what)} |`);
  const table = rows.length === 0 ? '' : `\n| | |\n|---|---|\n${rows.join('\n')}\n`;
  return `### \`${name}\`\n\n${about}${heritage === '' ? '' : ` Has all of ${heritage}.`}\n${table}`;
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|');
}

function typesOf(path: string): TypeEntry[] {
  const source = parse({ path, text: readFileSync(join(ROOT, path), 'utf8') });
  return source.statements.flatMap((node) => {
    if (!isExported(node) || !('name' in node)) return [];
    if (ts.isInterfaceDeclaration(node) || ts.isClassDeclaration(node)) {
      const name = (node.name as ts.Identifier | undefined)?.text ?? '';
      if (LEFT_OUT.has(name)) return [];
      const heritage = (node.heritageClauses ?? [])
        .flatMap(({ types }) => types.map((type) => `\`${type.getText()}\``))
        .join(' and ');
      const members = [...node.members].flatMap((member) => memberOf(member));
      return members.length === 0 && heritage === ''
        ? []
        : [{ name, heritage, about: aboutOf(node), members }];
    }
    if (ts.isTypeAliasDeclaration(node) && !LEFT_OUT.has(node.name.text)) {
      const text = oneLine(node.type.getText());
      return [
        {
          name: node.name.text,
          heritage: '',
          about: aboutOf(node),
          members: [{ name: '', text, about: '' }],
        },
      ];
    }
    return [];
  });
}

function memberOf(member: ts.TypeElement | ts.ClassElement): TypeEntry['members'] {
  if (member.name === undefined || ts.isPrivateIdentifier(member.name)) return [];
  const modifiers = ts.canHaveModifiers(member) ? (ts.getModifiers(member) ?? []) : [];
  if (modifiers.some(({ kind }) => kind === ts.SyntaxKind.PrivateKeyword)) return [];
  const body = 'body' in member ? (member.body as ts.Node | undefined) : undefined;
  const end = body === undefined ? member.getEnd() : body.getStart();
  const text = member.getSourceFile().text.slice(member.name.getStart(), end);
  return [
    {
      name: member.name.getText(),
      text: oneLine(text.replace(/;$/, '')),
      about: aboutOf(member),
    },
  ];
}

function isExported(node: ts.Node): boolean {
  const modifiers = ts.canHaveModifiers(node) ? ts.getModifiers(node) : undefined;
  return modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) === true;
}

/** The docblock, its tags included, as one paragraph. */
function aboutOf(node: ts.Node): string {
  const [doc] = ts.getJSDocCommentsAndTags(node).filter((each) => ts.isJSDoc(each));
  if (doc === undefined) return '';
  const text = doc
    .getText()
    .replace(/^\/\*\*|\*\/$/g, '')
    .replace(/^\s*\* ?/gm, '')
    .replaceAll(/\{@link ([^}]+)\}/g, '`$1`')
    .replaceAll(/@param (\w+) - /g, '`$1`: ')
    .replaceAll(/@throws YardmasterError /g, 'Throws ')
    .replaceAll(/@throws /g, 'Throws ')
    .replaceAll(/@returns /g, 'Returns ')
    .replaceAll(/@typeParam (\w+) - /g, '`$1`: ');
  return oneLine(text);
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim();
}
