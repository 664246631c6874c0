import { decode as decodeMsgpack, encode as encodeMsgpack } from '@msgpack/msgpack';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { DEPTH_MAX, MsgpackCodec } from '../../../adapters/codecs/msgpack.ts';

/** All that may travel, at random. */
const plainData = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.constant(null),
    fc.boolean(),
    fc.maxSafeInteger(),
    fc.double().map((value) => (Object.is(value, -0) || !isSafe(value) ? 0.5 : value)),
    fc.string({ unit: 'binary', maxLength: 40 }),
    fc.uint8Array({ maxLength: 300 }),
    fc.array(tie('value'), { maxLength: 5 }),
    fc.dictionary(
      fc.string({ unit: 'binary', maxLength: 20 }).filter((name) => name !== '__proto__'),
      tie('value'),
      { maxKeys: 5, noNullPrototype: true },
    ),
  ),
})).value;

function isSafe(value: number): boolean {
  return Math.abs(value) <= 2 ** 53 || Math.abs(value) >= 2 ** 64 || Number.isNaN(value);
}

function nested(depth: number): unknown {
  let value: unknown = 'core';
  for (let level = 0; level < depth; level++) value = [value];
  return value;
}

describe('MsgpackCodec', () => {
  it('gives back all plain data as it was', () => {
    const codec = new MsgpackCodec();
    fc.assert(
      fc.property(plainData, fc.boolean(), (value, owned) => {
        expect(codec.decode(codec.encode(value), owned)).toStrictEqual(value);
      }),
      { numRuns: 500 },
    );
  });

  it('either reads any bytes or says ERR_FRAME', () => {
    const codec = new MsgpackCodec();
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        try {
          codec.decode(bytes);
        } catch (error) {
          expect(error).toMatchObject({ code: 'ERR_FRAME' });
        }
      }),
      { numRuns: 1000 },
    );
  });

  it('names the path and the reason of what cannot travel', () => {
    class Point {
      x = 1;
    }
    const cases: readonly (readonly [unknown, string, string])[] = [
      [{ a: [0, { b: () => 1 }] }, 'a[1].b', 'a function'],
      [{ 'x y': 1n }, '["x y"]', 'a bigint'],
      [{ a: { '0': Symbol('s') } }, 'a["0"]', 'a symbol'],
      [{ a: new Point() }, 'a', 'an instance of Point'],
      [{ a: new Map() }, 'a', 'an instance of Map'],
      [{ a: new Set() }, 'a', 'an instance of Set'],
      [{ a: new Date() }, 'a', 'an instance of Date'],
      [{ a: new Error('e') }, 'a', 'an instance of Error'],
      [{ a: Promise.resolve() }, 'a', 'an instance of Promise'],
      [{ a: new Float32Array(1) }, 'a', 'an instance of Float32Array'],
      [{ a: new ArrayBuffer(1) }, 'a', 'an instance of ArrayBuffer'],
      [{ a: 2 ** 53 + 2 }, 'a', 'the integer 9007199254740994'],
      [{ a: -(2 ** 60) }, 'a', 'the integer -11529215046068'],
      [{ a: 'half \ud83d' }, 'a', 'half of a surrogate pair'],
      [{ '\udc00': 1 }, '["\\udc00"]', 'half of a surrogate pair'],
      [{ a: JSON.parse('{"__proto__": 1}') as unknown }, 'a.__proto__', 'a field of this name'],
    ];
    const codec = new MsgpackCodec();
    for (const [value, path, reason] of cases) {
      let error: unknown;
      try {
        codec.encode(value);
      } catch (thrown) {
        error = thrown;
      }
      expect(error).toMatchObject({ code: 'ERR_NOT_SERIALISABLE', data: { path } });
      expect(String(error)).toContain(reason);
    }
  });

  it('refuses what contains itself, and takes what is deep but not too deep', () => {
    const codec = new MsgpackCodec();
    const circular: Record<string, unknown> = {};
    circular['self'] = circular;
    expect(() => codec.encode(circular)).toThrow('does it contain itself?');
    expect(() => codec.encode(nested(DEPTH_MAX + 1))).toThrow('nested deeper than');
    expect(codec.decode(codec.encode(nested(DEPTH_MAX)))).toEqual(nested(DEPTH_MAX));
    const message = { deep: nested(DEPTH_MAX - 1) };
    const batch = encodeMsgpack([message], { maxDepth: 1000 });
    expect(codec.encodeMessage(message)).toEqual(encodeMsgpack(message, { maxDepth: 1000 }));
    expect(codec.decodeBatch(batch)).toEqual([message]);
  });

  it('writes the very bytes that another implementation writes, and reads all that it may write', () => {
    const codec = new MsgpackCodec();
    fc.assert(
      fc.property(plainData, (value) => {
        expect(codec.encode(value)).toEqual(encodeMsgpack(value));
        const asFloat32 = encodeMsgpack(value, { forceFloat32: true, forceIntegerToFloat: true });
        expect(codec.decode(asFloat32)).toEqual(decodeMsgpack(asFloat32));
      }),
    );
    const sizes = [31, 32, 255, 256, 65_535, 65_536, 70_000];
    const texts = sizes.flatMap((size) => ['x'.repeat(size), 'é'.repeat(size)]);
    const bytes = sizes.map((size) => new Uint8Array(size).fill(7));
    const lists = [15, 16, 65_535, 65_536].map((length) => new Array<number>(length).fill(1));
    const integers = [7, 8, 15, 16, 31, 32, 33, 52].flatMap((bits) =>
      [2 ** bits - 1, 2 ** bits].flatMap((size) => [size, -size, -size - 1]),
    );
    const fields = Object.fromEntries(Array.from({ length: 65_536 }, (_, index) => [index, 0]));
    for (const value of [...texts, ...bytes, ...lists, ...integers, fields]) {
      const encoded = codec.encode(value);
      expect(Buffer.compare(encoded, encodeMsgpack(value))).toBe(0);
      expect(codec.decode(encoded)).toEqual(value);
    }
  });

  it('reads texts that look alike as what they are', () => {
    const codec = new MsgpackCodec();
    const texts = ['abcde', 'axcde', 'abcxe', 'é', 'Ã©', 'a\0b', 'a\0c', ''];
    for (let round = 0; round < 3; round++) {
      expect(codec.decode(codec.encode(texts))).toEqual(texts);
    }
  });

  it('takes objects without a prototype, and turns undefined in an array into null', () => {
    const codec = new MsgpackCodec();
    const bare = Object.assign(Object.create(null) as object, { a: [undefined, 1], b: undefined });
    expect(codec.decode(codec.encode(bare))).toStrictEqual({ a: [null, 1] });
  });

  it('takes floats that no integer of msgpack could hold', () => {
    const codec = new MsgpackCodec();
    const values = [2 ** 64, -(2 ** 64), 1e300, Number.MAX_VALUE, Infinity, 5e-324];
    expect(codec.decode(codec.encode(values))).toEqual(values);
  });

  it('keeps working after it refused something', () => {
    const codec = new MsgpackCodec();
    expect(() => codec.encode({ a: 1, b: 1n })).toThrow();
    expect(() => codec.decode(new Uint8Array([0x92, 1]))).toThrow();
    expect(codec.decode(codec.encode({ a: 1 }))).toEqual({ a: 1 });
  });

  it('gives memory that the next encoding does not touch', () => {
    const codec = new MsgpackCodec();
    const small = codec.encode({ n: 1 });
    const large = codec.encode({ bytes: new Uint8Array(2 ** 20).fill(1) });
    codec.encode({ n: 2 });
    codec.encode({ bytes: new Uint8Array(2 ** 20).fill(2) });
    expect(codec.decode(small)).toEqual({ n: 1 });
    expect((codec.decode(large) as { bytes: Uint8Array }).bytes.every((byte) => byte === 1)).toBe(
      true,
    );
  });

  it('never keeps a large buffer alive for a small value, nor shares one that is not its own', () => {
    const codec = new MsgpackCodec();
    const frame = codec.encode({ small: new Uint8Array(10), large: new Uint8Array(100_000) });
    const exact = frame.slice();
    const owned = codec.decode(exact, true) as Record<'small' | 'large', Uint8Array>;
    expect(owned.small.buffer.byteLength).toBe(10);
    expect(owned.large.buffer).toBe(exact.buffer);
    const copied = codec.decode(exact) as Record<'small' | 'large', Uint8Array>;
    expect(copied.large.buffer.byteLength).toBe(100_000);
    expect(copied.small.buffer.byteLength).toBe(10);
  });

  it.each<[string, Uint8Array, string]>([
    ['nothing', new Uint8Array(0), 'is not msgpack'],
    ['a value and more', new Uint8Array([1, 2]), 'is not msgpack'],
    ['a timestamp', encodeMsgpack(new Date(0)), '0xd6 is not part of it'],
    ['a map with a number as key', new Uint8Array([0x81, 1, 2]), 'not a string'],
    [
      'an array longer than the frame',
      new Uint8Array([0xdd, 1, 0, 0, 0, 1]),
      'ends within a value',
    ],
    ['an integer of 64 bits', new Uint8Array([0xcf, 255, 0, 0, 0, 0, 0, 0, 0]), 'beyond ±2^53'],
    ['too deep a value', encodeMsgpack(nested(DEPTH_MAX + 5), { maxDepth: 500 }), 'nested deeper'],
  ])('refuses %s with ERR_FRAME', (_what, bytes, reason) => {
    expect(() => new MsgpackCodec().decode(bytes)).toThrow(
      expect.objectContaining({
        code: 'ERR_FRAME',
        message: expect.stringContaining(reason) as string,
      }),
    );
  });

  it('refuses a batch that is not an array of objects with ERR_PROTOCOL', () => {
    const codec = new MsgpackCodec();
    for (const batch of [{}, 1, 'text', [1], [[]], [null], [new Uint8Array(1)], [{}, 'x']]) {
      expect(() => codec.decodeBatch(encodeMsgpack(batch))).toThrow(
        expect.objectContaining({ code: 'ERR_PROTOCOL' }),
      );
    }
    expect(codec.decodeBatch(encodeMsgpack([{ a: 1 }, {}]))).toEqual([{ a: 1 }, {}]);
  });

  it('refuses a message that does not fit in a frame with ERR_FRAME', () => {
    const codec = new MsgpackCodec(1024);
    const fits = { bytes: new Uint8Array(1024 - 5 - 10) };
    expect(codec.encodeMessage(fits).length).toBe(1024 - 5);
    expect(() => codec.encodeMessage({ bytes: new Uint8Array(1024 - 5 - 9) })).toThrow(
      expect.objectContaining({ code: 'ERR_FRAME', data: expect.objectContaining({}) as object }),
    );
    expect(() => codec.encodeMessage([] as never)).toThrow('an object with named fields');
  });
});
