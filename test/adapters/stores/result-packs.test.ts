import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { headOf, ResultFolder } from '../../../adapters/stores/result-folder.ts';

const HEADER_BYTES = 56;
/** Of a record with a type of one letter and a value of 100 bytes. */
const RECORD_BYTES = HEADER_BYTES + 1 + 100;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'yardmaster-packs-'));
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true });
});

const keyOf = (index: number): string => `${index}`.padStart(64, '0');
const small = (fill: number) => ({ type: 'x', value: new Uint8Array(100).fill(fill) });
const packs = (): string[] => readdirSync(folder).filter((name) => name.endsWith('.pack'));
const onlyPack = (): string => {
  const [name, ...others] = packs();
  expect(others).toEqual([]);
  return join(folder, name ?? '');
};
const longAgo = (path: string, ms = 60_000): void => {
  const then = new Date(Date.now() - ms);
  utimesSync(path, then, then);
};

async function filled(count: number): Promise<ResultFolder> {
  const results = new ResultFolder(folder);
  for (let index = 0; index < count; index++) await results.write(keyOf(index), small(index));
  return results;
}

/** Which of so many are there, for a process that has not read them before. */
async function present(count: number, results = new ResultFolder(folder)): Promise<number[]> {
  const indices = Array.from({ length: count }, (_, index) => index);
  const there = await Promise.all(indices.map((index) => results.has(keyOf(index))));
  return indices.filter((index) => there[index]);
}

describe('small results of a folder', () => {
  test('are forgotten by all when one removes their file', async () => {
    const reader = new ResultFolder(folder);
    await filled(3);
    expect(await present(3, reader)).toEqual([0, 1, 2]);
    rmSync(onlyPack());
    await reader.has(keyOf(9));
    const { index, packs: known } = (reader as unknown as { packs: Record<string, Set<string>> })
      .packs as unknown as Record<string, Map<string, unknown>>;
    expect([index?.size, known?.size]).toEqual([0, 0]);
  });

  test('are in one file for each writer, and read by all', async () => {
    const one = await filled(3);
    const other = new ResultFolder(folder);
    await other.write(keyOf(3), small(3));
    expect(packs()).toHaveLength(2);
    expect(await present(5, one)).toEqual([0, 1, 2, 3]);
    expect(await present(5, other)).toEqual([0, 1, 2, 3]);
    await one.write(keyOf(4), small(4));
    const read = await other.read(keyOf(4));
    expect([read?.type, [...(read?.value ?? [])]]).toEqual(['x', [...small(4).value]]);
  });

  test('of more than a slice of a file are all found', async () => {
    const results = new ResultFolder(folder);
    for (let index = 0; index < 50; index++) {
      await results.write(keyOf(index), { type: 'x', value: new Uint8Array(60_000).fill(index) });
    }
    expect(await present(50)).toHaveLength(50);
    expect((await new ResultFolder(folder).read(keyOf(49)))?.value[59_999]).toBe(49);
  });

  test('are found beside those that have a file each', async () => {
    await filled(1);
    mkdirSync(join(folder, '00'));
    const { value } = small(7);
    writeFileSync(join(folder, '00', keyOf(7)), Buffer.concat([headOf(keyOf(7), small(7)), value]));
    const results = new ResultFolder(folder);
    expect(await present(8, results)).toEqual([0, 7]);
    expect((await results.read(keyOf(7)))?.value[0]).toBe(7);
  });

  test('are never read as those of another key when records were exchanged', async () => {
    const results = await filled(2);
    expect(await present(2, results)).toEqual([0, 1]);
    const bytes = readFileSync(onlyPack());
    const [one, two] = [bytes.subarray(0, RECORD_BYTES), bytes.subarray(RECORD_BYTES)];
    writeFileSync(onlyPack(), Buffer.concat([two, one]));
    expect((await results.read(keyOf(0)))?.value[0] ?? 0).toBe(0);
    expect((await results.read(keyOf(1)))?.value[0] ?? 1).toBe(1);
    expect((await new ResultFolder(folder).read(keyOf(1)))?.value[0]).toBe(1);
  });

  test('are gone for all when one forgets them, however often they were written', async () => {
    const one = await filled(2);
    const other = await filled(2);
    expect(await present(2, one)).toEqual([0, 1]);
    await other.delete(keyOf(0));
    expect(await present(2, one)).toEqual([1]);
    expect(await present(2)).toEqual([1]);
    await one.write(keyOf(0), small(0));
    expect(await present(2, other)).toEqual([0, 1]);
  });

  test('that a killed writer has not written to the end are missing, without a warning', async () => {
    const warned = vi.spyOn(process, 'emitWarning').mockReturnValue();
    await filled(3);
    truncateSync(onlyPack(), 3 * RECORD_BYTES - 10);
    expect(await present(3)).toEqual([0, 1]);
    truncateSync(onlyPack(), 2 * RECORD_BYTES + 10);
    expect(await present(3)).toEqual([0, 1]);
    expect(warned).not.toHaveBeenCalled();
  });

  test.each([1, HEADER_BYTES - 1, HEADER_BYTES, RECORD_BYTES - 1])(
    'written after a pack was left that ends %d bytes into a record are all found',
    async (part) => {
      await filled(3);
      truncateSync(onlyPack(), 2 * RECORD_BYTES + part);
      longAgo(onlyPack(), 2 * 60 * 60 * 1000);
      const next = new ResultFolder(folder);
      for (let index = 3; index < 20; index++) await next.write(keyOf(index), small(index));
      const there = [0, 1, ...Array.from({ length: 17 }, (_, index) => index + 3)];
      expect(await present(20, next)).toEqual(there);
      expect(await present(20)).toEqual(there);
    },
  );

  test('that are being written are found when they are complete', async () => {
    await filled(2);
    const path = onlyPack();
    const bytes = readFileSync(path);
    const results = new ResultFolder(folder);
    // Some network file systems show what is not there yet as zeros.
    for (const part of [0, 30, 70, RECORD_BYTES - 1]) {
      const zeros = Buffer.alloc(RECORD_BYTES - part);
      writeFileSync(path, Buffer.concat([bytes.subarray(0, RECORD_BYTES + part), zeros]));
      expect(await present(2, results)).toEqual([0]);
    }
    writeFileSync(path, bytes);
    expect(await present(2, results)).toEqual([0, 1]);
  });

  test.each([
    ['value', HEADER_BYTES + 20],
    ['key', 12],
    ['length', 45],
    ['mark', 0],
  ])('with a damaged %s are missing, one at a time, and a warning says where', async (_, at) => {
    const warned = vi.spyOn(process, 'emitWarning').mockReturnValue();
    await filled(3);
    const path = onlyPack();
    const bytes = readFileSync(path);
    bytes[RECORD_BYTES + at]! ^= 1;
    writeFileSync(path, bytes);
    expect(await present(3)).toEqual([0, 2]);
    expect(warned).toHaveBeenCalledExactlyOnceWith(
      expect.stringContaining(`${path} is damaged at byte ${RECORD_BYTES}`),
      'YardmasterResultStore',
    );
    expect(await present(3)).toEqual([0, 2]);
    expect(warned).toHaveBeenCalledOnce();
  });

  test('with a damaged last one say so when it cannot be one that is being written', async () => {
    const warned = vi.spyOn(process, 'emitWarning').mockReturnValue();
    await filled(2);
    const bytes = readFileSync(onlyPack());
    bytes[bytes.byteLength - 1]! ^= 1;
    writeFileSync(onlyPack(), bytes);
    longAgo(onlyPack());
    expect(await present(2)).toEqual([0]);
    longAgo(onlyPack());
    expect(await present(2)).toEqual([0]);
    expect(warned).toHaveBeenCalledTimes(1);
  });

  test('are written on when their file was removed', async () => {
    const results = await filled(2);
    expect(await present(2, results)).toEqual([0, 1]);
    rmSync(onlyPack());
    expect(await present(2, results)).toEqual([]);
    await results.write(keyOf(1), small(1));
    expect(await present(2, results)).toEqual([1]);
    rmSync(folder, { recursive: true });
    await results.write(keyOf(0), small(0));
    expect(await present(2, results)).toEqual([0]);
  });

  test('follow those of a writer that ended long ago, in the same file', async () => {
    const reader = new ResultFolder(folder);
    await filled(2);
    appendFileSync(onlyPack(), Buffer.alloc(30)); // It was killed.
    expect(await present(4, reader)).toEqual([0, 1]);
    longAgo(onlyPack(), 2 * 60 * 60 * 1000);
    const warned = vi.spyOn(process, 'emitWarning').mockReturnValue();
    await new ResultFolder(folder).write(keyOf(3), small(3));
    expect(await present(4)).toEqual([0, 1, 3]);
    expect(await present(4, reader)).toEqual([0, 1, 3]);
    expect(statSync(onlyPack()).size).toBe(3 * RECORD_BYTES);
    expect(warned).not.toHaveBeenCalled();
  });

  test('are removed with a limit, those first that were not used for longest', async () => {
    const results = new ResultFolder(folder, 100_000);
    for (let index = 0; index < 30; index++) {
      const before = new Set(packs());
      await results.write(keyOf(index), { type: 'x', value: new Uint8Array(10_000) });
      const pack = packs().find((name) => !before.has(name));
      if (pack !== undefined) utimesSync(join(folder, pack), 1e9 + index, 1e9 + index);
      await results.has(keyOf(0));
    }
    const kept = await present(30);
    expect(kept.length).toBeGreaterThanOrEqual(8);
    expect(kept.length).toBeLessThanOrEqual(10);
    expect(kept.slice(1)).toEqual(
      Array.from({ length: kept.length - 1 }, (_, at) => 31 - kept.length + at),
    );
    expect(kept[0]).toBe(0);
  });

  test('survive the SIGKILL of the process that wrote them', async () => {
    const module = new URL('../../../adapters/stores/result-folder.ts', import.meta.url);
    const built = module.href.replace('/adapters/', '/dist/adapters/').replace(/ts$/, 'js');
    const program = `
      const { ResultFolder } = await import(${JSON.stringify(built)});
      const results = new ResultFolder(${JSON.stringify(folder)});
      for (let index = 0; ; index++) {
        await results.write(String(index).padStart(64, '0'), { type: 'x', value: new Uint8Array(100) });
        if (index === 999) process.kill(process.pid, 'SIGKILL');
      }`;
    expect(() => execFileSync(process.execPath, ['--input-type=module', '-e', program])).toThrow();
    expect((await present(1001)).length).toBe(1000);
  });
});
