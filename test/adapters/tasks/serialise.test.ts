import { describe, expect, it } from 'vitest';

import { deserialise, ScatteredValue, serialise, typeName } from '../../../adapters/tasks/index.ts';
import { valueBytes, withoutSharedMemory } from '../../../core/util/bytes.ts';

const roundTrip = (value: unknown): unknown => deserialise(serialise(value));

/** As on the way to another thread of this process, where the bytes refer to shared memory. */
const shareTrip = (value: unknown): unknown =>
  deserialise(serialise(value, 'value', undefined, true));

describe('serialise with shared memory', () => {
  const memory = new SharedArrayBuffer(64);
  const largeBuffer = new ArrayBuffer(100_000);

  it('keeps it, under views and by itself, beside parts that are copied', () => {
    const value = {
      bytes: new Uint8Array(100_000).fill(1),
      view: new Float64Array(memory, 8, 2),
      memory,
      largeBuffer,
      same: new Map([[memory, [new DataView(memory, 3, 5)]]]),
      other: new Int16Array(new SharedArrayBuffer(6), 2),
    };
    const back = shareTrip(value) as typeof value;
    expect(back).toEqual(value);
    expect(back.memory).toBe(memory);
    expect(back.view.buffer).toBe(memory);
    expect(back.other.buffer).toBe(value.other.buffer);
    expect(back.same.get(memory)?.[0]).toMatchObject({ byteOffset: 3, byteLength: 5 });
    expect(back.bytes.buffer).not.toBe(value.bytes.buffer);
    expect(back.largeBuffer).not.toBe(largeBuffer);
  });

  it('reads back what looks like its own marks', () => {
    const marks = Array.from({ length: 70 }, (_, attempt) =>
      Buffer.from([0x75, 0x80, 0x80, 0x80 + ((attempt << 2) & 0x7f), 0x80 + (attempt >> 5), 0x0f]),
    );
    const few = { memory, text: marks.slice(0, 5) };
    expect(shareTrip(few)).toEqual(few);
    expect(() => shareTrip({ memory, text: marks })).toThrow(
      expect.objectContaining({ code: 'ERR_NOT_SERIALISABLE' }),
    );
  });

  it('counts the bytes that the value shows, and copies no others for another process', () => {
    const wide = new SharedArrayBuffer(10_000_000);
    const view = new Int32Array(wide, 5_000_004, 3).fill(9);
    const value = [view, new Uint8Array(wide, 5_000_006, 4), new Uint8Array(50_000).fill(2)];
    const bytes = serialise(value, 'value', undefined, true);
    const copy = withoutSharedMemory(bytes);
    expect(valueBytes(bytes)).toBe(copy.byteLength);
    expect(copy.byteLength).toBeLessThan(51_000);
    const scattered = new ScatteredValue(copy.byteLength);
    scattered.set(copy, 0);
    for (const back of [deserialise(copy), deserialise(scattered)] as (typeof value)[]) {
      expect(back).toEqual(value);
      expect(back[0]?.buffer).toBeInstanceOf(ArrayBuffer);
      expect(back[1]?.buffer).toBe(back[0]?.buffer);
    }
    expect(new Int32Array(wide, 5_000_004, 1)[0]).toBe(9);
  });

  it('has an error in the place of a bare SharedArrayBuffer for another process', () => {
    const bytes = serialise([memory], 'value', undefined, true);
    expect(() => deserialise(withoutSharedMemory(bytes))).toThrow(
      expect.objectContaining({ code: 'ERR_NOT_SERIALISABLE' }),
    );
  });

  it('is not read from bytes that have come without it', () => {
    const bytes = serialise([new Uint8Array(memory)], 'value', undefined, true);
    expect(() => deserialise(Uint8Array.from(bytes))).toThrow(
      expect.objectContaining({ code: 'ERR_FRAME' }),
    );
  });
});

/** Has nothing that could travel. */
class Money {
  readonly #cents: number;
  constructor(cents: number) {
    this.#cents = cents;
  }
  get cents(): number {
    return this.#cents;
  }
}

describe('serialise', () => {
  it('copies a typed array over shared memory, and refuses the shared memory itself', () => {
    const shared = new SharedArrayBuffer(8);
    const view = Int32Array.of(7, 8);
    new Int32Array(shared).set(view);
    const copy = roundTrip(new Int32Array(shared)) as Int32Array;
    expect(copy).toEqual(view);
    expect(copy.buffer).toBeInstanceOf(ArrayBuffer);
    expect(() => serialise({ shared })).toThrow('value.shared is a SharedArrayBuffer');
  });

  it.each([
    ['undefined', undefined],
    ['null', null],
    ['-0', -0],
    ['NaN', NaN],
    ['a bigint', 2n ** 70n],
    ['a date', new Date(12345)],
    ['a regular expression', /a+/gi],
    ['a map of objects', new Map<unknown, unknown>([[{ a: 1 }, new Set([1, 'x'])]])],
    ['a typed array', new Float64Array([1.5, NaN, -0])],
    ['a buffer', Buffer.from('bytes')],
    ['an array buffer', new Uint8Array([1, 2, 3]).buffer],
    ['the smallest integer', -(2 ** 31)],
    ['an integer of more than 32 bits', 2 ** 31],
    ['a fraction', 0.1],
    ['a short text', 'à la carte'],
    ['a text that Latin-1 lacks', 'žluť'],
    ['a long text', 'x'.repeat(65)],
    ['a short list', [1, -0.5, 'a', true, null, undefined]],
    ['a long list', Array.from({ length: 300 }, (_, index) => index)],
    ['a list in a list', [[1], 2]],
    ['a small object', { text: 'žluť', list: [{ at: 0.5 }], none: undefined, empty: {} }],
    ['an object with long texts', { a: 'x'.repeat(300), b: 'y'.repeat(250), c: 'é'.repeat(250) }],
    [
      'an object with many properties',
      Object.fromEntries('abcdefghijklmnopqrs'.split('').entries()),
    ],
    ['lists in lists', [[[[[[1]]]]]]],
    ['half of a surrogate pair', { half: '\ud800' }],
    ['a property called __proto__', JSON.parse('{"a": 1, "__proto__": 2}')],
    ['an empty list', []],
    ['a list with a property', Object.assign([1], { extra: 2 })],
    ['a sparse array', [1, , 3]], // eslint-disable-line no-sparse-arrays
  ])('%s comes back as it was', (_, value) => {
    expect(roundTrip(value)).toStrictEqual(value);
  });

  it('a short list of numbers is one for the engine, too, after lists of other things', async () => {
    const { setFlagsFromString } = await import('node:v8');
    const { runInNewContext } = await import('node:vm');
    setFlagsFromString('--allow-natives-syntax');
    const kindOf = runInNewContext(
      '(list) => %HasDoubleElements(list) ? "doubles" : %HasSmiElements(list) ? "integers" : "any"',
    ) as (list: unknown) => string;
    expect(kindOf([1])).toBe('integers');
    setFlagsFromString('--no-allow-natives-syntax');
    for (let round = 0; round < 100; round++) roundTrip([['text'], [{}, 1], [1, 'a'], [0.5, null]]);
    expect(kindOf(roundTrip([1, 2]))).toBe('integers');
    expect(kindOf(roundTrip([1, 0.5]))).toBe('doubles');
    expect(kindOf(roundTrip([0.5, 1]))).toBe('doubles');
    expect(kindOf(roundTrip([0.5, 'text']))).toBe('any');
  });

  it('an error keeps name, message, stack and cause', () => {
    const error = new TypeError('bad', { cause: new Error('why') });
    const back = roundTrip(error) as Error;
    expect(back).toBeInstanceOf(TypeError);
    expect(back.message).toBe('bad');
    expect(back.stack).toBe(error.stack);
    expect((back.cause as Error).message).toBe('why');
  });

  it('a getter that itself serialises a value does not change what is around it', () => {
    const value = {
      before: 1,
      get within() {
        return roundTrip({ inner: 'other' });
      },
      after: 2,
    };
    expect(roundTrip(value)).toEqual({ before: 1, within: { inner: 'other' }, after: 2 });
  });

  it('cycles and shared references keep their identity', () => {
    const shared = { n: 1 };
    const value: Record<string, unknown> = { a: shared, b: shared };
    value['self'] = value;
    const back = roundTrip(value) as Record<string, unknown>;
    expect(back['a']).toBe(back['b']);
    expect(back['self']).toBe(back);
  });

  it('an instance of a class becomes a plain object', () => {
    class Point {
      x = 1;
    }
    const back = roundTrip(new Point()) as object;
    expect(Object.getPrototypeOf(back)).toBe(Object.prototype);
    expect(back).toEqual({ x: 1 });
  });

  it('what was read shares no memory with the bytes', () => {
    const bytes = serialise([
      new Uint8Array(64).fill(7),
      new DataView(new ArrayBuffer(8)),
      Buffer.alloc(64, 7),
    ]);
    const before = Buffer.from(bytes);
    const [array, view, buffer] = deserialise(bytes) as [Uint8Array, DataView, Buffer];
    array.fill(1);
    view.setInt8(0, 1);
    buffer.fill(1);
    expect(bytes).toEqual(before);
    expect(array.buffer.byteLength).toBe(64);
  });

  it.each([
    ['result.rows[1].format is a function (format)', { rows: [1, { format(): void {} }] }], // eslint-disable-line @typescript-eslint/no-empty-function
    ['result["odd name"] is a symbol (Symbol(s))', { 'odd name': Symbol('s') }],
    ['result is a Promise', Promise.resolve(1)],
    ['result.get("k") is a Promise', new Map([['k', Promise.resolve(1)]])],
    ['result (key 0 of the Map) is a symbol', new Map([[Symbol('x'), 1]])],
    ['result (member 1 of the Set) is a function', new Set([1, () => 1])],
    ['result.a.b is a WeakMap', { a: { b: new WeakMap() } }],
    ['result is a generator', (function* () {})()], // eslint-disable-line @typescript-eslint/no-empty-function
    ['result.p is a Proxy', { p: new Proxy({}, {}) }],
    ['result is an instance of URL', new URL('http://a/')],
    ['result is an instance of URLSearchParams', new URLSearchParams()],
    ['result is an instance of NumberFormat', new Intl.NumberFormat()],
    ['result is an instance of Money', new Money(5)],
    [
      'result is an object with a getter that throws (Error: no)',
      {
        get a() {
          throw new Error('no');
        },
      },
    ],
  ])('a value that cannot travel is named: %s', (message, value) => {
    expect(() => serialise(value, 'result')).toThrow(
      expect.objectContaining({
        code: 'ERR_NOT_SERIALISABLE',
        message: expect.stringContaining(message) as string,
      }),
    );
  });

  it('bytes that are no value are ERR_FRAME', () => {
    for (const bytes of [
      new Uint8Array(0),
      new Uint8Array([1, 2, 3]),
      serialise('abc').slice(0, 4),
    ]) {
      expect(() => deserialise(bytes)).toThrow(expect.objectContaining({ code: 'ERR_FRAME' }));
    }
  });

  it('type names are those that people use', () => {
    class Point {}
    expect(
      [1, 'a', null, undefined, [], {}, new Map(), Object.create(null), new Point(), 1n].map(
        typeName,
      ),
    ).toEqual([
      'number',
      'string',
      'null',
      'undefined',
      'Array',
      'Object',
      'Map',
      'Object',
      'Point',
      'bigint',
    ]);
  });
});
