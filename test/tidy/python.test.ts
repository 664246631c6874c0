import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const ROOT = new URL('../..', import.meta.url).pathname;
const LINE_MAX = 130;
const PARSE = `
import ast, sys
for file in sys.argv[1:]:
    with open(file) as source:
        ast.parse(source.read(), file)
`;

const files = ['adapters', 'test'].flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.py'))
    .map((file) => join(ROOT, folder, file)),
);
const hasPython = spawnSync('python3', ['--version']).status === 0;

it('files of Python have lines of ordinary length, indented with spaces, without blanks at their ends', () => {
  const odd = files.flatMap((file) =>
    readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line.length > LINE_MAX || /\t|\s$/.test(line))
      .map((line) => `${file}: ${line}`),
  );
  expect(odd).toEqual([]);
});

it('files of Python say first what they are', () => {
  const silent = files.filter((file) => {
    const lines = readFileSync(file, 'utf8').split('\n');
    return !lines.find((line) => !line.startsWith('#') && line !== '')?.startsWith('"""');
  });
  expect(silent).toEqual([]);
});

it.skipIf(!hasPython)('files of Python can be parsed', () => {
  expect(spawnSync('python3', ['-c', PARSE, ...files], { encoding: 'utf8' }).stderr).toBe('');
});
