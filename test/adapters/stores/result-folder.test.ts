import { randomUUID } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ResultFolder } from '../../../adapters/stores/results/result-folder.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'yardmaster-results-'));
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true });
});

const keyOf = (index: number): string => `${index}`.padStart(64, '0');
const pathOf = (key: string): string => join(folder, key.slice(0, 2), key);

describe('a folder of results', () => {
  test('gives back what was written, of any size, also from shared memory', async () => {
    const results = new ResultFolder(folder);
    const large = new Uint8Array(new SharedArrayBuffer(3_000_001)).fill(7);
    for (const [index, value] of [new Uint8Array(0), new Uint8Array([1, 2]), large].entries()) {
      await results.write(keyOf(index), { type: 'Größe', value });
      expect(await results.has(keyOf(index))).toBe(true);
      const found = await new ResultFolder(folder).read(keyOf(index));
      expect(found?.type).toBe('Größe');
      expect(Buffer.compare(Buffer.from(found?.value ?? []), Buffer.from(value))).toBe(0);
    }
  });

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
    const results = new ResultFolder(folder, 5000);
    for (const index of [1, 2]) {
      await results.write(keyOf(index), { type: 'x', value: new Uint8Array(4000) });
    }
    expect(others.filter((path) => !existsSync(path))).toEqual([]);
    expect([await results.has(keyOf(1)), await results.has(keyOf(2))]).toEqual([false, true]);
  });

  test('has nothing under a key that was not written, or was deleted', async () => {
    const results = new ResultFolder(join(folder, 'not', 'there'));
    expect(await results.has(keyOf(1))).toBe(false);
    expect(await results.read(keyOf(1))).toBeUndefined();
    await results.delete(keyOf(1));
    await results.write(keyOf(1), { type: 'x', value: new Uint8Array(1) });
    await results.delete(keyOf(1));
    expect(await results.has(keyOf(1))).toBe(false);
  });

  test.each([
    ['cut', (path: string) => truncateSync(path, 30)],
    ['cut within its head', (path: string) => truncateSync(path, 5)],
    ['empty', (path: string) => truncateSync(path, 0)],
    ['something else', (path: string) => writeFileSync(path, 'x'.repeat(500))],
  ])('removes a file that is %s', async (_, damage) => {
    const warned = vi.spyOn(process, 'emitWarning').mockReturnValue();
    const results = new ResultFolder(folder);
    for (const look of ['has', 'read'] as const) {
      await results.write(keyOf(1), { type: 'Uint8Array', value: new Uint8Array(100) });
      damage(pathOf(keyOf(1)));
      expect((await results[look](keyOf(1))) ?? false).toBe(false);
      expect(readdirSync(join(folder, '00'))).toEqual([]);
    }
    expect(warned).toHaveBeenCalledTimes(2);
  });

  test('keeps about as much as its limit, and removes first what was not used for longest', async () => {
    const results = new ResultFolder(folder, 100_000);
    for (let index = 0; index < 30; index++) {
      await results.write(keyOf(index), { type: 'Uint8Array', value: new Uint8Array(10_000) });
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
    const results = new ResultFolder(folder, 1000);
    await results.write(keyOf(1), { type: 'x', value: new Uint8Array(1) });
    const unfinished = (): string => `${pathOf(keyOf(3))}-${randomUUID()}.part`;
    const [old, young] = [unfinished(), unfinished()];
    for (const path of [old, young]) writeFileSync(path, '');
    utimesSync(old, 1, 1);
    await results.write(keyOf(2), { type: 'x', value: new Uint8Array(100) });
    expect(readdirSync(join(folder, '00'))).toEqual([keyOf(1), keyOf(2), basename(young)]);
  });
});
