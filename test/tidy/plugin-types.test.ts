import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { authorTypes, typesPage } from './plugin-types.ts';
import { ROOT } from './source-files.ts';

const PATH = join(ROOT, 'docs/plugin-types.md');
if (process.env['UPDATE_DOCS'] === '1') writeFileSync(PATH, typesPage());
const page = readFileSync(PATH, 'utf8');

/** The section of a type. */
function sectionOf(name: string): string {
  const start = page.indexOf(`### \`${name}\`\n`);
  if (start < 0) return '';
  const end = page.indexOf('\n##', start + 1);
  return page.slice(start, end < 0 ? undefined : end);
}

it('every type that authors of extensions meet has its fields in the guide (UPDATE_DOCS=1 makes it anew)', () => {
  const missing = authorTypes().flatMap(([, entries]) =>
    entries.flatMap(({ name, members }) => {
      const section = sectionOf(name);
      if (section === '') return [name];
      return members
        .filter((member) => !section.includes(`\`${member.name}`))
        .map((member) => `${name}.${member.name}`);
    }),
  );
  expect(missing).toEqual([]);
});

it('there are types to look for', () => {
  const names = authorTypes().flatMap(([, entries]) => entries.map(({ name }) => name));
  expect(names).toEqual(
    expect.arrayContaining([
      'TaskView',
      'WorkerView',
      'ClusterView',
      'TaskFailure',
      'PluginContext',
      'WorkerSelection',
      'StealTasks',
    ]),
  );
});
