import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ResultFolder } from '../../../adapters/stores/result-folder.ts';

// What a bucket has to do as well stands in result-stores.test.ts.
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'yardmaster-results-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

const keyOf = (index: number): string => `${index}`.padStart(64, '0');
const pathOf = (key: string): string => join(folder, key.slice(0, 2), key);

describe('a folder of results', () => {
  test('with a limit removes no file that is not of its own, whatever folder it is given', async () => {
    const others = ['notes.txt', 'old.part', `${keyOf(3)}.txt`, keyOf(4)].map((name) =>
      join(folder, 'documents', name),
    );
    others.push(join(folder, '00', 'readme'));
    const longAgo = new Date(Date.now() - 48 * 60 * 60 * 1000);
    for (const path of others) {
      mkdirSync(join(path, '..'), { recursive: true });
      writeFileSync(path, 'x'.repeat(10_000));
      utimesSync(path, longAgo, longAgo);
    }
    const results = new ResultFolder(folder, 100_000);
    for (const index of [1, 2]) {
      await results.write(keyOf(index), { type: 'x', value: new Uint8Array(80_000) });
    }
    expect(others.filter((path) => !existsSync(path))).toEqual([]);
    expect([await results.has(keyOf(1)), await results.has(keyOf(2))]).toEqual([false, true]);
  });

  test.skipIf(process.getuid?.() !== 0)('is read by a user who cannot write it', async () => {
    const stored = [1, 1, 80_000].map((nbytes) => ({ type: 'x', value: new Uint8Array(nbytes) }));
    const keys = stored.map((_, index) => keyOf(index));
    const writer = new ResultFolder(folder);
    for (const [index, result] of stored.entries()) await writer.write(keys[index]!, result);
    const pack = join(
      folder,
      readdirSync(folder).find((name) => name.endsWith('.pack'))!,
    );
    const bytes = readFileSync(pack);
    writeFileSync(pack, bytes.fill(0, 0, 10));
    execFileSync('chmod', ['-R', 'a=rX', folder]);
    const warned = vi.spyOn(process, 'emitWarning').mockReturnValue();
    process.seteuid!(65_534);
    try {
      const reader = new ResultFolder(folder);
      const has: boolean[] = [];
      for (const key of keys) has.push(await reader.has(key));
      expect(has).toEqual([false, true, true]);
      expect((await reader.read(keys[1]!))?.value.byteLength).toBe(1);
      expect((await reader.read(keys[2]!))?.value.byteLength).toBe(80_000);
      expect(warned.mock.calls.map(([text]) => text)).toEqual([
        `${pack} is damaged at byte 0; the result there cannot be removed, and is computed again`,
      ]);
    } finally {
      process.seteuid!(0);
      warned.mockRestore();
    }
  });

  test('finds no result, and does not wait, where another user has planted a pipe or a link', async () => {
    const elsewhere = mkdtempSync(join(tmpdir(), 'yardmaster-elsewhere-'));
    const results = new ResultFolder(folder);
    const large = { type: 'x', value: new Uint8Array(80_000) };
    await results.write(keyOf(1), large);
    renameSync(pathOf(keyOf(1)), join(elsewhere, keyOf(1)));
    symlinkSync(join(elsewhere, keyOf(1)), pathOf(keyOf(1)));
    for (const key of [keyOf(2), keyOf(3)]) execFileSync('mkfifo', [pathOf(key)]);
    execFileSync('mkfifo', [join(folder, `${randomUUID()}.pack`)]);
    expect(await results.read(keyOf(1))).toBeUndefined();
    expect(await results.read(keyOf(2))).toBeUndefined();
    expect(await results.has(keyOf(3))).toBe(false);
    for (const key of [keyOf(1), keyOf(2), keyOf(3)]) await results.write(key, large);
    expect((await results.read(keyOf(2)))?.value.byteLength).toBe(80_000);
    expect(existsSync(join(elsewhere, keyOf(1)))).toBe(true);
    rmSync(elsewhere, { recursive: true });
  });

  test('does not continue a pack that is a pipe, or a link to a file of its own user', async () => {
    const elsewhere = mkdtempSync(join(tmpdir(), 'yardmaster-elsewhere-'));
    const precious = join(elsewhere, 'precious');
    writeFileSync(precious, 'precious');
    utimesSync(precious, 1, 1);
    symlinkSync(precious, join(folder, `${randomUUID()}.pack`));
    const pipe = join(folder, `${randomUUID()}.pack`);
    execFileSync('mkfifo', [pipe]);
    utimesSync(pipe, 1, 1);
    const results = new ResultFolder(folder);
    await results.write(keyOf(1), { type: 'x', value: new Uint8Array(8) });
    expect(readFileSync(precious, 'utf8')).toBe('precious');
    expect((await results.read(keyOf(1)))?.value.byteLength).toBe(8);
    rmSync(elsewhere, { recursive: true });
  });

  test('with a limit removes nothing through a link that another user has planted', async () => {
    const elsewhere = mkdtempSync(join(tmpdir(), 'yardmaster-elsewhere-'));
    const precious = [keyOf(7), `${keyOf(8)}-${randomUUID()}.part`];
    for (const name of precious) {
      writeFileSync(join(elsewhere, name), 'x'.repeat(90_000));
      utimesSync(join(elsewhere, name), 1, 1);
    }
    symlinkSync(elsewhere, join(folder, '00'));
    const results = new ResultFolder(folder, 100_000);
    for (const index of [1, 2]) {
      const key = `${index}${index}`.padEnd(64, '0');
      await results.write(key, { type: 'x', value: new Uint8Array(80_000) });
    }
    await results.delete(keyOf(7));
    expect(readdirSync(elsewhere).sort()).toEqual(precious);
    rmSync(elsewhere, { recursive: true });
  });

  test('keeps about as much as its limit, and removes first what was not used for longest', async () => {
    const results = new ResultFolder(folder, 1_000_000);
    for (let index = 0; index < 30; index++) {
      await results.write(keyOf(index), { type: 'Uint8Array', value: new Uint8Array(100_000) });
      // File systems tell times by the millisecond at best.
      utimesSync(pathOf(keyOf(index)), index, index);
      await results.has(keyOf(0));
    }
    const kept: number[] = [];
    for (let index = 0; index < 30; index++) if (await results.has(keyOf(index))) kept.push(index);
    expect(kept.length).toBeGreaterThanOrEqual(8);
    expect(kept.length).toBeLessThanOrEqual(10);
    expect(kept).toContain(0);
    expect(kept.slice(1)).toEqual(
      Array.from({ length: kept.length - 1 }, (_, at) => 31 - kept.length + at),
    );
  });

  test('removes what a killed process has left, after a day', async () => {
    const results = new ResultFolder(folder, 1_000_000);
    await results.write(keyOf(1), { type: 'x', value: new Uint8Array(70_000) });
    const unfinished = (): string => `${pathOf(keyOf(3))}-${randomUUID()}.part`;
    const [old, young] = [unfinished(), unfinished()];
    for (const path of [old, young]) writeFileSync(path, '');
    utimesSync(old, 1, 1);
    await results.write(keyOf(2), { type: 'x', value: new Uint8Array(70_000) });
    expect(readdirSync(join(folder, '00'))).toEqual([keyOf(1), keyOf(2), basename(young)]);
  });
});
