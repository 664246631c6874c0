import { isDeepStrictEqual } from 'node:util';
import { describe, expect, it } from 'vitest';

import { deserialise, ScatteredValue, serialise } from '../../../adapters/tasks/index.ts';
import { PART_BYTES } from '../../../core/shared/fetch-data.ts';

const LARGE = 200_000;

function pattern(nbytes: number, seed = 3): Uint8Array<ArrayBuffer> {
  return Uint8Array.from({ length: nbytes }, (_, index) => (index * 7 + seed) % 251);
}

const kinds: [name: string, value: unknown][] = [
  ['bytes', pattern(LARGE)],
  ['a view into a larger buffer', pattern(2 * LARGE).subarray(17, 17 + LARGE)],
  ['a buffer', Buffer.from(pattern(LARGE))],
  ['doubles', new Float64Array(pattern(LARGE).buffer)],
  ['16 bit integers', new Int16Array(pattern(LARGE).buffer)],
  ['64 bit integers', new BigUint64Array(pattern(LARGE).buffer)],
  ['a data view', new DataView(pattern(LARGE).buffer, 8, LARGE - 9)],
  ['an array buffer', pattern(LARGE).buffer],
  ['bytes in shared memory', new Uint8Array(new SharedArrayBuffer(LARGE)).fill(9)],
  [
    'large and small ones anywhere in a structure',
    {
      rows: [pattern(LARGE, 1), pattern(10, 2), new Map([['deep', [pattern(LARGE + 1, 3)]]])],
      odd: pattern(40_001),
      bare: pattern(LARGE, 4).buffer,
      text: 'x'.repeat(LARGE),
    },
  ],
  ['buffers in an array', [pattern(LARGE, 5).buffer, 1, pattern(LARGE, 6).buffer]],
];

/** As if it came in parts of such a size. */
function scattered(bytes: Uint8Array, partBytes: number): ScatteredValue {
  const value = new ScatteredValue(bytes.byteLength);
  for (let at = 0; at < bytes.byteLength; at += partBytes) {
    value.set(bytes.subarray(at, at + partBytes), at);
  }
  return value;
}

describe('a value with large binary parts', () => {
  it.each(kinds)('%s comes back as it was, also when it comes in parts', (_, value) => {
    const bytes = serialise(value);
    // The comparison of `expect` takes a hundred times as long.
    expect(isDeepStrictEqual(deserialise(bytes), value)).toBe(true);
    for (const partBytes of [PART_BYTES, 4096]) {
      const again = deserialise(scattered(bytes, partBytes));
      expect([partBytes, isDeepStrictEqual(again, value)]).toEqual([partBytes, true]);
    }
  });

  it('is written once, to memory that is given', () => {
    const given: Uint8Array[] = [];
    const bytes = serialise([pattern(LARGE), 'text'], 'result', (nbytes) => {
      given.push(new Uint8Array(new SharedArrayBuffer(nbytes)));
      return given[0]!;
    });
    expect(given).toEqual([bytes]);
    expect(bytes.byteLength).toBeLessThan(LARGE + 200);
  });

  it('shares no memory with its bytes, so that no reader changes it for another one', () => {
    const bytes = serialise({ a: pattern(LARGE), b: pattern(LARGE).buffer });
    const first = deserialise(bytes) as { a: Uint8Array; b: ArrayBuffer };
    first.a.fill(1);
    new Uint8Array(first.b).fill(1);
    const second = { a: pattern(LARGE), b: pattern(LARGE).buffer };
    expect(isDeepStrictEqual(deserialise(bytes), second)).toBe(true);
    expect([first.a.buffer.byteLength, first.a.byteOffset]).toEqual([LARGE, 0]);
  });

  it('that stands twice in the value is one object, and is written once', () => {
    const shared = pattern(LARGE);
    const bytes = serialise([shared, shared]);
    expect(bytes.byteLength).toBeLessThan(LARGE + 200);
    const [a, b] = deserialise(bytes) as [Uint8Array, Uint8Array];
    expect(a).toBe(b);
  });

  it('is given away without a copy when it was collected part by part', () => {
    const value = scattered(serialise(pattern(LARGE)), 4096);
    const buffers = value.pieces!.parts.map((part) => part.buffer);
    expect((deserialise(value) as Uint8Array).buffer).toBe(buffers[0]);
  });

  it('of which the end is missing is refused', () => {
    const bytes = serialise(pattern(LARGE));
    for (const length of [1, 15, 23, 100, LARGE]) {
      expect(() => deserialise(bytes.slice(0, length))).toThrow(
        expect.objectContaining({ code: 'ERR_FRAME' }) as Error,
      );
    }
  });
});
