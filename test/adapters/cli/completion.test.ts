import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, test } from 'vitest';

import { completionScript, type Shell, SHELLS } from '../../../adapters/cli/completion.ts';
import { program } from '../../../adapters/cli/program.ts';

const folder = mkdtempSync(join(tmpdir(), 'yardmaster-completion-'));
afterAll(() => rmSync(folder, { recursive: true }));

const isThere = (shell: Shell): boolean => spawnSync(shell, ['--version']).status === 0;

const file = (shell: Shell): string => {
  const path = join(folder, `completion.${shell}`);
  writeFileSync(path, completionScript(program, shell));
  return path;
};

/** What bash offers for the last of these words. */
function offered(...words: readonly string[]): string[] {
  const line = `source '${file('bash')}'
COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}
_yardmaster; printf '%s\\n' "\${COMPREPLY[@]}"`;
  return execFileSync('bash', ['-c', line], { encoding: 'utf8', cwd: folder }).trim().split('\n');
}

describe('completion in bash', () => {
  it('offers the commands that begin with what was typed', () => {
    expect(offered('yardmaster', 're')).toEqual(['retire', 'replay', 'report']);
  });

  it('offers commands and flags below a command', () => {
    expect(offered('yardmaster', 'lab', 'c')).toEqual(['compare', 'corpus', 'calibrate']);
    expect(offered('yardmaster', 'top', '--int')).toEqual(['--interval']);
    expect(offered('yardmaster', 'policy', 'replace', '--opt')).toEqual(['--options']);
  });

  it('offers the values of a flag that has a few, and files otherwise', () => {
    expect(offered('yardmaster', 'top', '--log-level', 'w')).toEqual(['warn']);
    expect(offered('yardmaster', 'scheduler', '--config', 'compl')).toEqual(['completion.bash']);
  });
});

test.skipIf(!isThere('fish'))('fish offers commands, flags and values', () => {
  const complete = (line: string): string =>
    execFileSync('fish', ['-c', `source ${file('fish')}; complete -C '${line}'`], {
      ...{ encoding: 'utf8', cwd: folder },
    });
  expect(complete('yardmaster re')).toMatch(
    /^replay\t.*\nreport\t.*\nretire\tTake workers out of service$/m,
  );
  expect(complete('yardmaster lab comp')).toMatch(/^compare\t/);
  expect(complete('yardmaster top --log-level w')).toMatch(/^warn\t/);
});

test.each(SHELLS.map((shell) => [shell]))('%s reads its script without an error', (shell) => {
  if (!isThere(shell)) return;
  const { status, stderr } = spawnSync(shell, ['-n', file(shell)], { encoding: 'utf8' });
  expect([status, stderr]).toEqual([0, '']);
});

test.skipIf(!isThere('zsh'))('zsh finds the place in the tree of commands', () => {
  const line = `compdef() { :; }; source ${file('zsh')}; _yardmaster_place lab --json compare x`;
  expect(execFileSync('zsh', ['-c', line], { encoding: 'utf8' })).toBe('/lab/compare');
});

test('the help lists every command in a group', () => {
  expect(program.helpInformation().match(/^[A-Z].*:$/gm)).toEqual([
    'Options:',
    ...['Run a cluster:', 'Look at a cluster and operate it:', 'Look into a recording:'],
    ...['Simulate:', 'Try it:', 'This program:'],
  ]);
});
