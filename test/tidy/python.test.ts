import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const ROOT = new URL('../..', import.meta.url).pathname;
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

it.skipIf(!hasPython)('files of Python can be parsed', () => {
  expect(spawnSync('python3', ['-c', PARSE, ...files], { encoding: 'utf8' }).stderr).toBe('');
});
