import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import {
  deserialise,
  packArguments,
  serialise,
  unpackArguments,
} from '../../../adapters/tasks/index.ts';

class Result {
  constructor(readonly key: string) {}
}
const keyOf = (value: unknown): string | undefined =>
  value instanceof Result ? value.key : undefined;

function inputs(values: Record<string, unknown>): ReadonlyMap<string, Uint8Array> {
  return new Map(Object.entries(values).map(([key, value]) => [key, serialise(value)]));
}

function roundTrip(args: readonly unknown[], values: Record<string, unknown> = {}): unknown[] {
  return unpackArguments(packArguments(args, keyOf).bytes, inputs(values));
}

describe('arguments of a task', () => {
  it('without results they are serialised as they are', () => {
    const args = [1, { a: [2, new Map([['k', new Date(3)]])] }];
    const packed = packArguments(args, keyOf);
    expect(packed.dependencies).toEqual([]);
    expect(deserialise(packed.bytes)).toStrictEqual(args);
    expect(unpackArguments(packed.bytes, new Map())).toStrictEqual(args);
  });

  it('a getter that throws is named, beside a result as well', () => {
    const bad = {
      get size(): number {
        throw new Error('no size');
      },
    };
    for (const args of [[{ bad }], [new Result('x'), { bad }]]) {
      expect(() => packArguments(args, keyOf)).toThrow(
        expect.objectContaining({
          code: 'ERR_NOT_SERIALISABLE',
          message: expect.stringContaining('.bad is an object with a getter that throws') as string,
        }),
      );
    }
  });

  it('results are put in anywhere in objects, arrays, Maps and Sets', () => {
    const x = new Result('x');
    const y = new Result('y');
    const args = [
      x,
      [1, y],
      { deep: { er: [x] } },
      new Map<unknown, unknown>([
        ['a', x],
        [y, 'b'],
        [x, y],
        [[x], [y]],
      ]),
      new Set<unknown>([0, x, y]),
    ];
    expect(packArguments(args, keyOf).dependencies).toEqual(['x', 'y']);
    expect(roundTrip(args, { x: 'X', y: 'Y' })).toStrictEqual([
      'X',
      [1, 'Y'],
      { deep: { er: ['X'] } },
      new Map<unknown, unknown>([
        ['a', 'X'],
        ['Y', 'b'],
        ['X', 'Y'],
        [['X'], ['Y']],
      ]),
      new Set([0, 'X', 'Y']),
    ]);
  });

  it('a result that is used twice is the same object both times', () => {
    const [a, { b }, c] = roundTrip(
      [new Result('x'), { b: new Result('x') }, new Set([new Result('x')])],
      {
        x: { big: true },
      },
    ) as [unknown, { b: unknown }, Set<unknown>];
    expect(a).toBe(b);
    expect(c.has(a)).toBe(true);
  });

  it('cycles through containers with results are kept', () => {
    const args: unknown[] = [new Result('x')];
    const map = new Map<unknown, unknown>([['args', args]]);
    map.set('self', map);
    args.push(map, args);
    const back = roundTrip(args, { x: 5 });
    const backMap = back[1] as Map<unknown, unknown>;
    expect(back[0]).toBe(5);
    expect(back[2]).toBe(back);
    expect(backMap.get('args')).toBe(back);
    expect(backMap.get('self')).toBe(backMap);
  });

  it('the arguments of the caller are not changed', () => {
    const inner = [new Result('x')];
    packArguments([inner], keyOf);
    expect(inner[0]).toBeInstanceOf(Result);
  });

  it('a property called __proto__ stays a property', () => {
    const args = [JSON.parse('{"__proto__": {"a": 1}}') as object, new Result('x')];
    const [back] = roundTrip(args, { x: 1 });
    expect(Object.keys(back as object)).toEqual(['__proto__']);
    expect(Object.getPrototypeOf(back)).toBe(Object.prototype);
  });

  it('no data of the user is mistaken for the place of a result', () => {
    // Whatever was packed, with everything that packing itself writes, is an argument like any other.
    const tricky = deserialise(packArguments([new Result('x'), [new Result('y')]], keyOf).bytes);
    expect(roundTrip([tricky, new Result('x')], { x: 1, y: 2 })).toStrictEqual([tricky, 1]);
    expect(roundTrip([tricky])).toStrictEqual([tricky]);
  });

  it('any structure with results comes back with the values in their places', () => {
    const value = fc.letrec((tie) => ({
      node: fc.oneof(
        { depthSize: 'small' },
        fc.constantFrom('x', 'y', 'z').map((key) => new Result(key)),
        fc.anything({ withTypedArray: true, withDate: true, withBigInt: true }),
        fc.array(tie('node')),
        fc.dictionary(fc.string(), tie('node')),
        fc.array(fc.tuple(fc.string(), tie('node'))).map((entries) => new Map(entries)),
        fc.array(tie('node')).map((members) => new Set(members)),
      ),
    })).node;
    const values: Record<string, unknown> = { x: [1], y: 'Y', z: new Map([[1, 2]]) };
    const expected = (node: unknown): unknown => {
      if (node instanceof Result) return values[node.key];
      if (Array.isArray(node)) return node.map(expected);
      if (node instanceof Map)
        return new Map([...node].map(([k, v]) => [expected(k), expected(v)]));
      if (node instanceof Set) return new Set([...node].map(expected));
      const isPlain =
        typeof node === 'object' &&
        node !== null &&
        [null, Object.prototype].includes(Object.getPrototypeOf(node) as null);
      if (isPlain)
        return Object.fromEntries(Object.entries(node).map(([k, v]) => [k, expected(v)]));
      return node;
    };
    fc.assert(
      fc.property(fc.array(value), (args) => {
        // What serialisation alone does to the data is not the question here.
        const plain = deserialise(serialise(args.map(expected)));
        expect(roundTrip(args, values)).toEqual(plain);
      }),
      { numRuns: 200 },
    );
  });

  it('an input that is not there is named', () => {
    const { bytes } = packArguments([new Result('x-1')], keyOf);
    expect(() => unpackArguments(bytes, new Map())).toThrow(/"x-1"/);
  });

  it('an argument that cannot travel is named by its path, with and without results', () => {
    expect(() => packArguments([1, { f: () => 1 }], keyOf)).toThrow(
      /arguments\[1\]\.f is a function/,
    );
    expect(() => packArguments([new Result('x'), { f: () => 1 }], keyOf)).toThrow(
      /arguments\[1\]\.f is a function/,
    );
  });
});
