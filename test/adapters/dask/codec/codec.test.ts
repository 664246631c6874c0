import { readFileSync } from 'node:fs';
import { inflateSync } from 'node:zlib';

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { MsgpackCodec } from '../../../../adapters/codecs/msgpack.ts';
import {
  DASK_VALUES,
  decodeMessage,
  encodeMessage,
  MsgpackExtension,
  Opaque,
  PyFloat,
  toNumber,
} from '../../../../adapters/dask/wire/codec.ts';
import { readValue } from '../../../../adapters/dask/values.ts';

interface Fixture {
  readonly name: string;
  readonly frames: readonly string[];
}

const { messages } = JSON.parse(
  readFileSync(new URL('../fixtures/messages.json', import.meta.url), 'utf8'),
) as { readonly messages: readonly Fixture[] };

function framesOf(name: string): Uint8Array[] {
  const fixture = messages.find((each) => each.name === name);
  if (fixture === undefined) throw new Error(`no fixture ${name}`);
  return fixture.frames.map((text) => {
    const packed = text.startsWith('deflated:') ? text.slice('deflated:'.length) : undefined;
    const bytes =
      packed === undefined ? Buffer.from(text, 'hex') : inflateSync(Buffer.from(packed, 'base64'));
    return new Uint8Array(bytes);
  });
}

test('parts of a value are joined once, whatever positions its header tells', () => {
  const fields = { serializer: 'dask', type: 'bytes', compression: [null, null] };
  const split = { 'split-num-sub-frames': [2, 2], 'split-offsets': [0, 0] };
  const [header] = encodeMessage({ ...fields, ...split });
  const frames = ['a', 'b'].map((text) => Buffer.from(text));
  expect(readValue(new Opaque('serialized', header!, frames))).toEqual(Buffer.from('ab'));
});

const OPAQUE_NAMES = ['__Serialized__', '__Pickled__'];
const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31));

describe('messages that Dask wrote', () => {
  test.each(messages.map(({ name }) => name))('%s comes back byte for byte', (name) => {
    const frames = framesOf(name);
    expect(encodeMessage(decodeMessage(frames)).map(hex)).toEqual(frames.map(hex));
  });

  test('integral floats stay floats and compute like numbers', () => {
    const values = decodeMessage(framesOf('floats')) as unknown[];
    expect(values[0]).toBeInstanceOf(PyFloat);
    expect(values.map(toNumber)).toEqual([1, 0.5, -2, 1e300, Infinity, -0]);
    expect((values[0] as number) + 1).toBe(2);
  });

  test('integers beyond 2^53 are exact', () => {
    expect(decodeMessage(framesOf('large integers'))).toEqual([
      2n ** 53n,
      2n ** 63n,
      2n ** 64n - 1n,
      -(2n ** 53n),
      -(2n ** 63n),
    ]);
  });

  test('a map whose keys are not all strings is a Map', () => {
    expect(decodeMessage(framesOf('maps with other keys'))).toEqual(
      new Map<unknown, unknown>([
        [1, 'int'],
        [null, 'nothing'],
        [2.5, 'float'],
        [['x', 0], 'tuple'],
      ]),
    );
  });

  test('a set is a Set', () => {
    expect(decodeMessage(framesOf('sets'))).toEqual({ keys: new Set(['only']), empty: new Set() });
  });

  test('opaque values keep header and frames', () => {
    const { data, more } = decodeMessage(framesOf('serialized')) as {
      data: Opaque;
      more: Opaque[];
    };
    expect(data).toBeInstanceOf(Opaque);
    expect(data.kind).toBe('serialized');
    expect(data.frames).toHaveLength(1);
    expect(Buffer.from(more[0]!.frames[0]!).toString()).toBe('bytes');
    expect((decodeMessage(framesOf('pickled')) as { graph: Opaque }).graph.kind).toBe('pickled');
  });
});

describe('round trips', () => {
  test(`any value comes back (SEED=${seed})`, () => {
    fc.assert(
      fc.property(anyValue(), (value) => {
        expect(decodeMessage(encodeMessage(value))).toEqual(value);
      }),
      { seed, numRuns: 300 },
    );
  });

  test(`what was cut or damaged is refused or read, and never crashes (SEED=${seed})`, () => {
    fc.assert(
      fc.property(anyValue(), fc.nat(), fc.nat(255), (value, place, byte) => {
        const [first, ...others] = encodeMessage(value) as [Uint8Array, ...Uint8Array[]];
        const cut = first.slice(0, place % first.length);
        expect(() => decodeMessage([cut, ...others])).toThrow(
          expect.objectContaining({ code: 'ERR_FRAME' }),
        );
        const damaged = first.slice();
        damaged[place % first.length] = byte;
        try {
          decodeMessage([damaged, ...others]);
        } catch (error) {
          expect(error).toMatchObject({ code: 'ERR_FRAME' });
        }
      }),
      { seed, numRuns: 500 },
    );
  });

  test('undefined fields are left out', () => {
    expect(decodeMessage(encodeMessage({ a: undefined, b: null }))).toEqual({ b: null });
  });

  test('a field called __proto__ is a field', () => {
    const value = JSON.parse('{"__proto__": {"polluted": 1}, "a": 2}') as object;
    const back = decodeMessage(encodeMessage(value)) as Record<string, unknown>;
    expect(Object.getOwnPropertyNames(back)).toEqual(['__proto__', 'a']);
    expect('polluted' in back).toBe(false);
  });

  test('a map with an object as sixteenth field keeps all of it', () => {
    const value = Object.fromEntries(
      Array.from({ length: 70_000 }, (_, index) => [`k${index}`, { index }]),
    );
    expect(decodeMessage(encodeMessage(value))).toEqual(value);
  });
});

describe('bad input', () => {
  test.each([
    ['no frame', []],
    ['an empty frame', ['']],
    ['bytes after the value', ['0101']],
    ['a code that does not exist', ['c1']],
    ['a list that announces 4 billion items', ['ddffffffff']],
    ['a map that announces 4 billion items', ['dfffffffff01']],
    ['a text that is not UTF-8', ['a2fffe']],
    ['an opaque value without its frame', [`81${hexText('__Serialized__')}01`]],
    ['a sub-header that is no map', [`81${hexText('__Serialized__')}01`, '01']],
    ['a sub-header without its count', [`81${hexText('__Serialized__')}01`, '80']],
    [
      'a sub-header that announces more frames than there are',
      [`81${hexText('__Serialized__')}01`, `81${hexText('num-sub-frames')}02`, '00'],
    ],
    ['lists in lists in lists', ['91'.repeat(100_000)]],
  ])('%s is refused', (_, frames) => {
    const bytes = frames.map((text) => new Uint8Array(Buffer.from(text, 'hex')));
    expect(() => decodeMessage(bytes)).toThrow(expect.objectContaining({ code: 'ERR_FRAME' }));
  });

  test('a frame that many values name is kept once', () => {
    const header = encodeMessage({ 'num-sub-frames': 1, pad: new Uint8Array(5000) })[0]!;
    const segment = Buffer.concat([header, new Uint8Array(6000), new Uint8Array(200_000)]);
    const frames = [
      encodeMessage(Array.from({ length: 50 }, (_, at) => ({ [OPAQUE_NAMES[at % 2]!]: 1 })))[0]!,
      segment.subarray(0, header.length),
      segment.subarray(header.length, header.length + 6000),
    ];
    const values = decodeMessage(frames) as readonly Opaque[];
    const parts = values.flatMap((value) => [value.header, ...value.frames]);
    expect(parts).toHaveLength(100);
    expect(new Set(parts.map(({ buffer }) => buffer)).size).toBe(2);
  });

  test.each([
    ['a function', () => undefined],
    ['a class instance', new Date(0)],
    ['half of a surrogate pair', '\ud800'],
    ['an integer of more than 64 bits', 2n ** 64n],
  ])('%s cannot be sent', (_, value) => {
    expect(() => encodeMessage({ value })).toThrow(
      expect.objectContaining({ code: 'ERR_NOT_SERIALISABLE' }),
    );
  });
});

function anyValue(): fc.Arbitrary<unknown> {
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.maxSafeInteger(),
      fc.bigInt({ min: 2n ** 53n, max: 2n ** 64n - 1n }),
      fc.bigInt({ min: -(2n ** 63n), max: -(2n ** 53n) }),
      fc.double().filter((each) => !Number.isInteger(each)),
      fc
        .double()
        .filter((each) => Number.isInteger(each))
        .map((each) => new PyFloat(each)),
      fc.boolean(),
      fc.constant(null),
      fc.string({ unit: 'grapheme', maxLength: 300 }),
      fc.uint8Array({ maxLength: 300 }),
      fc.array(tie('value'), { maxLength: 20 }),
      fc.dictionary(fc.string().filter(isPlainName), tie('value')),
      fc.array(fc.tuple(fc.integer(), tie('value')), { minLength: 1 }).map((each) => new Map(each)),
      fc.array(fc.integer()).map((each) => new Set(each)),
      fc
        .uint8Array({ maxLength: 20 })
        .map((each) => new MsgpackExtension((each[0] ?? 0) - 128, each)),
      fc
        .array(fc.uint8Array({ maxLength: 300 }), { maxLength: 3 })
        .map((frames) => new Opaque('serialized', subHeader(frames.length), frames)),
    ),
  }));
  return value;
}

test('a journal holds what clients of Dask submit, and nothing else that is not plain data', () => {
  const codec = new MsgpackCodec(undefined, { foreign: DASK_VALUES });
  const graph = {
    runSpec: new Opaque('pickled', subHeader(2), [new Uint8Array([1, 2]), new Uint8Array(70_000)]),
    annotations: { priority: new PyFloat(2), note: new Map([[1, ['a', new Set([2n ** 60n])]]]) },
    plain: [1, 'two', null, new Uint8Array([3])],
  };
  expect(codec.decode(codec.encode(graph))).toEqual(graph);
  expect(() => codec.encode({ at: new Date() })).toThrow(/at: an instance of Date/);
  expect(() => new MsgpackCodec().encode(graph)).toThrow(/runSpec: an instance of Opaque/);
  expect(() => new MsgpackCodec().decode(codec.encode(graph))).toThrow(/0xc9/);
});

function isPlainName(name: string): boolean {
  return !name.startsWith('__');
}

function subHeader(count: number): Uint8Array {
  return encodeMessage({ serializer: 'pickle', nested: [{ a: 1.5 }], 'num-sub-frames': count })[0]!;
}

function hexText(text: string): string {
  return (0xa0 + text.length).toString(16) + Buffer.from(text).toString('hex');
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}
