import { describe, expect, it } from 'vitest';
import { ContentHash } from '../../../adapters/tasks/index.ts';

function hashOf(value: unknown): string {
  const hashing = new ContentHash(new Uint8Array(0));
  hashing.add(value);
  return hashing.digest();
}

const circle: unknown[] = [1];
circle.push(circle);
const shared = { a: 1 };

/** All of different content. */
const VALUES: readonly unknown[] = [
  ...[undefined, null, true, false, 0, -0, 1, 1.5, NaN, Infinity, 1n, -1n, '', '1', 'ä', '\uD800'],
  ...[[], [undefined], new Array<number>(1), [[]], [1, 2], [12], ['1', '2'], ['12', ''], [1, [2]]],
  ...[{}, { a: 1 }, { b: 1 }, { a: undefined }, { a: 1, b: 2 }, { b: 2, a: 1 }, { a: { b: 2 } }],
  ...[new Map(), new Map([[1, 2]]), new Set(), new Set([1, 2]), new Date(1), new Date(NaN)],
  ...[/a/, /a/g, new Uint8Array(2), new Int8Array(2), Buffer.alloc(2), new ArrayBuffer(2)],
  ...[
    new Uint8Array([0, 1]),
    new Float64Array(1),
    Object(1) as object,
    Object('1') as object,
    circle,
  ],
  ...[[shared, shared], [shared, { a: 1 }], Object.assign([1], { a: 2 }), new Error('a')],
  ...[
    Object.assign([1], { '-1': 2 }),
    Object.assign([1], { '0.5': 2 }),
    Object.assign([1], { '': 2 }),
  ],
];

describe('the hash of a content', () => {
  it('differs for different values', () => {
    const hashes = VALUES.map(hashOf);
    const twice = VALUES.filter((_, index) => hashes.indexOf(hashes[index]!) !== index);
    expect(twice).toEqual([]);
  });

  it('is the same for copies', () => {
    for (const value of VALUES) {
      if (value instanceof Buffer) continue; // A copy of it is a Uint8Array.
      expect(hashOf(structuredClone(value)), String(value)).toBe(hashOf(value));
    }
  });

  it('does not show how the engine holds numbers, lists and texts', () => {
    const computed = new Float64Array([7])[0];
    expect(hashOf({ a: computed })).toBe(hashOf({ a: 7 }));
    const doubles = [7, 1.5];
    doubles.pop();
    expect(hashOf([doubles])).toBe(hashOf([[7]]));
    expect(hashOf(new Array(3).fill(0))).toBe(hashOf([0, 0, 0]));
    const cut = `${'x'.repeat(70)}€`.slice(0, 70);
    expect(hashOf(cut)).toBe(hashOf('x'.repeat(70)));
  });

  it('covers large values whole', () => {
    const bytes = new Uint8Array(100_000);
    const other = bytes.slice();
    other[99_999] = 1;
    expect(hashOf(bytes)).not.toBe(hashOf(other));
    const texts = Array.from({ length: 2000 }, (_, index) => `line ${index}`);
    expect(hashOf(texts)).not.toBe(hashOf(texts.with(1999, 'line')));
  });
});
