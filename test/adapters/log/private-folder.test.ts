import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  isPrivateFolder,
  removeFile,
  removePrivateFolder,
} from '../../../adapters/log/private-folder.ts';

let parent = '';
beforeEach(() => {
  parent = realpathSync(mkdtempSync(join(tmpdir(), 'private-test-')));
});
afterEach(() => rmSync(parent, { recursive: true, force: true }));

function aFolder(name: string, mode = 0o700): string {
  const folder = join(parent, name);
  mkdirSync(join(folder, 'inner'), { recursive: true });
  writeFileSync(join(folder, 'inner', 'file'), '');
  chmodSync(folder, mode);
  return folder;
}

const isRoot = process.getuid?.() === 0;

describe('removePrivateFolder', () => {
  it('deletes a folder of this user with all that is in it, and links in it but not what they lead to', () => {
    const folder = aFolder('own');
    const home = aFolder('home');
    symlinkSync(home, join(folder, 'link'));
    symlinkSync(home, join(folder, 'inner', 'link'));
    expect(removePrivateFolder(folder)).toBe(true);
    expect(existsSync(folder)).toBe(false);
    expect(existsSync(join(home, 'inner', 'file'))).toBe(true);
  });

  it('does not touch links, files, folders that others can enter, and what is not there', () => {
    symlinkSync(aFolder('home'), join(parent, 'link'));
    writeFileSync(join(parent, 'file'), '');
    aFolder('open', 0o750);
    for (const name of ['link', 'file', 'open', 'nothing', 'no/thing']) {
      expect(removePrivateFolder(join(parent, name)), name).toBe(false);
    }
    expect(readdirSync(parent).sort()).toEqual(['file', 'home', 'link', 'open']);
  });

  it.skipIf(!isRoot)('does not touch folders of other users', () => {
    const folder = aFolder('foreign');
    chownSync(folder, 65_534, 65_534);
    expect(removePrivateFolder(folder)).toBe(false);
    expect(isPrivateFolder(folder)).toBe(false);
    expect(existsSync(join(folder, 'inner', 'file'))).toBe(true);
  });

  it.skipIf(process.platform !== 'linux')(
    'deletes the folder that it has checked, whatever is put in its place meanwhile',
    () => {
      const folder = aFolder('own');
      const home = aFolder('home');
      const swap = (): boolean => {
        renameSync(folder, join(parent, 'moved'));
        symlinkSync(home, folder);
        return true;
      };
      expect(() => removePrivateFolder(folder, swap)).toThrow(/ENOTDIR/);
      expect(existsSync(join(home, 'inner', 'file'))).toBe(true);
      expect(readdirSync(join(parent, 'moved'))).toEqual([]);
    },
  );
});

describe('isPrivateFolder', () => {
  it('says no where another user could rename the folder', () => {
    const folder = aFolder('a');
    expect(isPrivateFolder(folder)).toBe(true);
    chmodSync(parent, 0o707);
    expect(isPrivateFolder(folder)).toBe(false);
    chmodSync(parent, 0o1777);
    expect(isPrivateFolder(folder)).toBe(true);
  });

  it('looks at the folders to which links on the way lead', () => {
    const folder = aFolder('a');
    const open = join(parent, 'open');
    mkdirSync(open);
    chmodSync(open, 0o777);
    renameSync(folder, join(open, 'a'));
    symlinkSync(open, join(parent, 'link'));
    expect(isPrivateFolder(join(parent, 'link', 'a'))).toBe(false);
  });
});

describe('removeFile', () => {
  it('deletes files and links, but nothing in a folder that is a link', () => {
    const home = aFolder('home');
    symlinkSync(join(home, 'inner'), join(parent, 'inner'));
    symlinkSync(join(home, 'inner', 'file'), join(parent, 'file'));
    for (const name of ['inner/file', 'file', 'nothing', 'no/thing'])
      removeFile(join(parent, name));
    expect(readdirSync(parent)).toEqual(['home', 'inner']);
    expect(existsSync(join(home, 'inner', 'file'))).toBe(true);
  });
});
