import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

const ROOT = new URL('../..', import.meta.url).pathname;
const FOLDERS = ['adapters', 'test'];
const LINE_MAX = 130;

const files = FOLDERS.flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.py'))
    .map((file) => join(folder, file)),
);
const hasPython = spawnSync('python3', ['--version']).status === 0;

describe.each(files)('%s', (file) => {
  const lines = readFileSync(join(ROOT, file), 'utf8').split('\n');

  it('has lines of ordinary length, indented with spaces, without blanks at their ends', () => {
    const odd = lines.filter((line) => line.length > LINE_MAX || /\t|\s$/.test(line));
    expect(odd).toEqual([]);
  });

  it('says what it is', () => {
    expect(lines.find((line) => !line.startsWith('#') && line !== '')).toMatch(/^"""/);
  });

  it.skipIf(!hasPython)('is Python', () => {
    const source = 'import ast, sys; ast.parse(open(sys.argv[1]).read(), sys.argv[1])';
    const { stderr } = spawnSync('python3', ['-c', source, join(ROOT, file)], { encoding: 'utf8' });
    expect(stderr).toBe('');
  });
});
