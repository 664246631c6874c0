import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { removeAbandoned, SpillFolder } from '../../../adapters/stores/index.ts';

let parent = '';
beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'spill-test-'));
});
afterEach(() => rmSync(parent, { recursive: true, force: true }));

const filesOf = (area: SpillFolder): string[] =>
  readdirSync(area.path!)
    .filter((name) => name.endsWith('.bin'))
    .map((name) => join(area.path!, name));

describe('values', () => {
  it('come back as they were, also those in shared memory', () => {
    const area = new SpillFolder(parent);
    const shared = new Uint8Array(new SharedArrayBuffer(70_000)).fill(7);
    area.write('a/../b', shared);
    area.write('empty', new Uint8Array(0));
    expect(area.nbytes).toBe(70_000);
    expect(area.read('a/../b')).toEqual(new Uint8Array(70_000).fill(7));
    expect(area.read('empty')).toEqual(new Uint8Array(0));
    area.close();
  });

  it('are replaced and deleted together with their files', () => {
    const area = new SpillFolder(parent);
    area.write('a', new Uint8Array(10));
    area.write('a', new Uint8Array(20).fill(2));
    expect(area.read('a')).toEqual(new Uint8Array(20).fill(2));
    expect(filesOf(area)).toHaveLength(1);
    area.delete('a');
    area.delete('a');
    expect([area.nbytes, filesOf(area).length]).toEqual([0, 0]);
    expect(() => area.read('a')).toThrow(/not on disk/);
    area.close();
  });

  it('that another process changed, truncated or deleted are not given out', () => {
    const area = new SpillFolder(parent);
    const damage: ((file: string) => void)[] = [
      (file) => {
        const content = readFileSync(file);
        content[500]! ^= 1;
        writeFileSync(file, content);
      },
      (file) => truncateSync(file, 999),
      (file) => rmSync(file),
    ];
    for (const spoil of damage) {
      area.write('x', new Uint8Array(1000).fill(5));
      spoil(filesOf(area)[0]!);
      expect(() => area.read('x')).toThrow(/was changed|ENOENT/);
      area.delete('x');
    }
    area.close();
  });
});

describe('the folder', () => {
  it('is made when it is needed, for its owner alone, and goes when the area closes', () => {
    const area = new SpillFolder(join(parent, 'made', 'too'));
    expect(area.path).toBeUndefined();
    area.write('a', new Uint8Array(3));
    expect(statSync(area.path!).mode & 0o077).toBe(0);
    area.close();
    area.close();
    expect(readdirSync(join(parent, 'made', 'too'))).toEqual([]);
  });

  it('that cannot be made is an error of the first value', () => {
    writeFileSync(join(parent, 'file'), '');
    const area = new SpillFolder(join(parent, 'file'));
    expect(() => area.write('a', new Uint8Array(3))).toThrow(/EEXIST|ENOTDIR/);
    expect(area.nbytes).toBe(0);
    area.close();
  });

  it('goes with its process, unless that is killed; then the next worker deletes it', () => {
    const store = new URL('../../../dist/adapters/stores/index.js', import.meta.url).href;
    const script = (end: string): string =>
      `import { SpillFolder } from ${JSON.stringify(store)};
       const area = new SpillFolder(${JSON.stringify(parent)});
       area.write('a', new Uint8Array(10));
       ${end}`;
    const run = (end: string): void => {
      spawnSync(process.execPath, ['--input-type=module', '-e', script(end)]);
    };
    run('process.exit(3)');
    expect(readdirSync(parent)).toEqual([]);
    run("process.kill(process.pid, 'SIGKILL')");
    const [left] = readdirSync(parent);
    expect(removeAbandoned(parent)).toEqual([join(parent, left!)]);
    expect(readdirSync(parent)).toEqual([]);
  });

  it('of a living process, of another host, or of something else stays', () => {
    const area = new SpillFolder(parent);
    area.write('a', new Uint8Array(10));
    const others = { foreign: { pid: 1, host: `not-${hostname()}`, mark: '' }, odd: undefined };
    for (const [name, owner] of Object.entries(others)) {
      mkdirSync(join(parent, `yardmaster-spill-${name}`), { mode: 0o700 });
      if (owner === undefined) continue;
      const file = join(parent, `yardmaster-spill-${name}`, 'owner.json');
      writeFileSync(file, JSON.stringify(owner));
    }
    mkdirSync(join(parent, 'mine'));
    expect(removeAbandoned(parent)).toEqual([]);
    expect(existsSync(area.path!)).toBe(true);
    area.close();
    expect(removeAbandoned(join(parent, 'nowhere'))).toEqual([]);
  });

  it('with a pipe, a link or a folder in the place of the file of its owner stays, and is not waited for', () => {
    const make = (name: string): string => {
      const folder = join(parent, `yardmaster-spill-${name}`);
      mkdirSync(folder);
      return join(folder, 'owner.json');
    };
    spawnSync('mkfifo', [make('pipe'), join(parent, 'yardmaster-spill-fifo')]);
    symlinkSync('/dev/zero', make('device'));
    mkdirSync(make('folder'));
    writeFileSync(make('large'), ' '.repeat(5000));
    expect(removeAbandoned(parent)).toEqual([]);
  });

  it('is not left behind when a full disk refuses the file of its owner', () => {
    const store = new URL('../../../dist/adapters/stores/index.js', import.meta.url).href;
    const script = `import { SpillFolder } from ${JSON.stringify(store)};
      process.on('SIGXFSZ', () => {});
      const area = new SpillFolder(${JSON.stringify(parent)});
      for (let i = 0; i < 3; i++) try { area.write('a', new Uint8Array(10)); } catch (e) { console.log(e.code); }`;
    const command = 'ulimit -f 0; exec "$0" --input-type=module -e "$1"';
    const { stdout } = spawnSync('bash', ['-c', command, process.execPath, script]);
    expect(String(stdout)).toBe('EFBIG\nEFBIG\nEFBIG\n');
    expect(readdirSync(parent)).toEqual([]);
  });

  it('of an earlier process with the id of this one is abandoned', () => {
    const folder = join(parent, 'yardmaster-spill-old');
    mkdirSync(folder, { mode: 0o700 });
    const owner = { pid: process.pid, host: hostname(), mark: `${process.pid}-0` };
    writeFileSync(join(folder, 'owner.json'), JSON.stringify(owner));
    expect(removeAbandoned(parent)).toEqual([folder]);
  });
});

describe('a folder that another user may have planted', () => {
  const gone = JSON.stringify({ pid: 2 ** 22 + 1, host: hostname(), mark: '0-0' });
  const plant = (name: string, mode: number): string => {
    const folder = join(parent, `yardmaster-spill-${name}`);
    mkdirSync(join(folder, 'inner'), { recursive: true });
    for (const file of ['owner.json', 'inner/file']) writeFileSync(join(folder, file), gone);
    chmodSync(folder, mode);
    return folder;
  };

  it('is not touched when others can write to it, and when it is a link', () => {
    const open = plant('open', 0o777);
    mkdirSync(join(parent, 'home'));
    const home = plant('home', 0o700);
    renameSync(home, join(parent, 'home', 'real'));
    symlinkSync(join(parent, 'home', 'real'), home);
    expect(removeAbandoned(parent)).toEqual([]);
    expect(existsSync(join(open, 'inner', 'file'))).toBe(true);
    expect(existsSync(join(home, 'inner', 'file'))).toBe(true);
  });

  it.skipIf(process.getuid?.() !== 0)('is not touched when it belongs to that user', () => {
    const folder = plant('foreign', 0o700);
    chownSync(folder, 65_534, 65_534);
    expect(removeAbandoned(parent)).toEqual([]);
    expect(existsSync(join(folder, 'inner', 'file'))).toBe(true);
  });

  it('in the place of the own one is not touched when the area closes or deletes a value', () => {
    const area = new SpillFolder(parent);
    area.write('a', new Uint8Array(10));
    const own = area.path!;
    renameSync(own, join(parent, 'moved'));
    const precious = plant('precious', 0o700);
    for (let index = 0; index < 3; index++) writeFileSync(join(precious, `${index}.bin`), '');
    renameSync(precious, own);
    area.delete('a');
    area.close();
    expect(readdirSync(own).sort()).toEqual(['0.bin', '1.bin', '2.bin', 'inner', 'owner.json']);
  });
});
