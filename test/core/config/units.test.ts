import { describe, expect, it } from 'vitest';
import { parseBytes, parseDurationMs, parseShareOrBytes } from '../../../core/util/units.ts';

describe('durations', () => {
  it.each([
    ['2s', 2000],
    ['100 ms', 100],
    ['100MS', 100],
    ['5 minutes', 300_000],
    ['1m', 60_000],
    ['1.5h', 5_400_000],
    ['1us', 0.001],
    ['3 days', 259_200_000],
    ['1e3 ms', 1000],
    ['.5s', 500],
    ['7', 7000],
    [7, 7000],
    [0, 0],
    ['-1s', -1000],
    ['inf', Infinity],
    ['INF', Infinity],
    ['.inf', Infinity],
    ['infinity', Infinity],
  ])('%j is %d ms', (text, expected) => expect(parseDurationMs(text)).toBeCloseTo(expected, 9));

  it.each(['', 's', '2 parsecs', '2s 3s', 'two seconds', true, null, {}, NaN, '0x10'])(
    '%j is not a duration',
    (text) => expect(parseDurationMs(text)).toBeUndefined(),
  );
});

describe('sizes', () => {
  it.each([
    ['64 MiB', 64 * 2 ** 20],
    ['50MB', 50e6],
    ['50 mb', 50e6],
    ['1kiB', 1024],
    ['1kB', 1000],
    ['1k', 1000],
    ['1Ki', 1024],
    ['2 GiB', 2 * 2 ** 30],
    ['1.5 kiB', 1536],
    ['17', 17],
    [17, 17],
    ['10 B', 10],
    ['100 MB/s', 100e6],
    ['inf', Infinity],
  ])('%j is %d bytes', (text, expected) => expect(parseBytes(text)).toBe(expected));

  it.each(['', '1 XB', '2s', 'MiB', [], undefined])('%j is not a size', (text) =>
    expect(parseBytes(text)).toBeUndefined(),
  );
});

describe('shares', () => {
  it.each([
    ['80%', 0.8],
    [' 12.5 % ', 0.125],
    [0.5, 0.5],
    [1, 1],
    ['4 GiB', 4 * 2 ** 30],
    [2, 2],
  ])('%j is %d', (text, expected) => expect(parseShareOrBytes(text)).toBe(expected));

  it.each(['0%', '101%', '-5%', 0, -1, '', 'half', '80 percent', null, true])(
    '%j is neither a share nor a size',
    (text) => expect(parseShareOrBytes(text)).toBeUndefined(),
  );
});
