/** The documents and the command line name the same commands and flags. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command as CommandObject } from 'commander';
import { expect, test } from 'vitest';
import { program } from '../../../adapters/cli/program.ts';
import { filesIn, ROOT } from '../../tidy/source-files.ts';

/** What the help of a command says, its subcommands included. */
interface Command {
  readonly flags: ReadonlySet<string>;
  readonly subcommands: readonly string[];
}

const guide = readFileSync(join(ROOT, 'docs/cli.md'), 'utf8');
const config = readFileSync(join(ROOT, 'docs/config.md'), 'utf8');
const documents = [
  { path: 'README.md', text: readFileSync(join(ROOT, 'README.md'), 'utf8') },
  ...filesIn('docs', '.md'),
];

const visible = (command: CommandObject): readonly CommandObject[] =>
  command
    .createHelp()
    .visibleCommands(command)
    .filter((each) => each.name() !== 'help');

function read(command: CommandObject): Command {
  const subcommands = visible(command);
  const options = [command, ...subcommands].flatMap((each) =>
    each.createHelp().visibleOptions(each),
  );
  return {
    flags: new Set(options.flatMap(({ long }) => long ?? [])),
    subcommands: subcommands.map((each) => each.name()),
  };
}

const commands = new Map(visible(program).map((command) => [command.name(), read(command)]));

/** Whether a flag is a setting, which the guide to the configuration explains. */
function isSetting(command: string, flag: string): boolean {
  const key = flag
    .replace(/^--(?:no-)?/, '')
    .replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
  return config.includes(`\`${command}.${key}\``);
}

/** What the guide says about all commands, and about one. */
function sectionsAbout(name: string): string {
  const [about = '', ...sections] = guide.split(/^## /m);
  const own = sections.filter((section) => {
    return (section.split('\n', 1)[0] as string).split(', ').includes(name);
  });
  return own.length === 0 ? '' : [about, ...own].join('\n');
}

/** Lines and pieces of code that call the command line: what follows `yardmaster`. */
function callsIn(text: string): string[] {
  return [...text.matchAll(/(?:`|^ *(?:\$ )?)(?:npx )?yardmaster ([a-z][^`\n]*)/gm)].map(
    ([, call]) => (call as string).replace(/ # .*/, ''),
  );
}

/** What a call names that there is not. */
function unknownIn(call: string): string[] {
  const [name = ''] = call.split(/\s/, 1);
  const command = commands.get(name);
  if (command === undefined) return [call];
  const flags = [...call.matchAll(/(?<=\s)--[a-z-]+/g)].map(([flag]) => flag);
  return flags.filter((flag) => !command.flags.has(flag)).map((flag) => `${name} ${flag}`);
}

test('the list of commands in docs/cli.md is the list of commands', () => {
  const [, list = ''] = /```\n(yardmaster .*?)```/s.exec(guide) ?? [];
  const listed = [...list.matchAll(/^yardmaster ([a-z-]+)/gm)].map(([, name]) => name);
  expect(listed.toSorted()).toEqual([...commands.keys()].sort());
  expect(listed.length).toBeGreaterThan(10);
});

test('docs/cli.md explains every flag and subcommand of every command, docs/config.md the settings', () => {
  const missing = [...commands].flatMap(([name, { flags, subcommands }]) => {
    const text = sectionsAbout(name);
    const words = new Set(text.match(/(?<![\w-])(?:--)?[a-z][a-z-]*/g));
    return [...flags, ...subcommands]
      .filter((word) => !words.has(word) && !isSetting(name, word))
      .map((word) => `${name} ${word}`);
  });
  expect(missing).toEqual([]);
});

test('every call of the command line in a document names a command and flags that exist', () => {
  const wrong = documents.flatMap(({ path, text }) => {
    return callsIn(text)
      .flatMap(unknownIn)
      .map((what) => `${path}: ${what}`);
  });
  expect(wrong).toEqual([]);
});

test('a command and a flag that do not exist are noticed', () => {
  const text = 'Say `yardmaster nonsense`, or:\n\n    $ npx yardmaster tasks --nonsense -s x\n';
  expect(callsIn(text).flatMap(unknownIn)).toEqual(['nonsense', 'tasks --nonsense']);
});
