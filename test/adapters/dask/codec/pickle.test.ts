import { expect, it } from 'vitest';
import { NotPortable, readPickle, writePickle } from '../../../../adapters/dask/wire/pickle.ts';

const refusal = (what: string) => new NotPortable(what);

/** `LONG4` with so many bytes, all alike. */
function integerOf(nbytes: number, byte: number): Buffer {
  const head = Buffer.from([0x80, 5, 0x8b, 0, 0, 0, 0]);
  head.writeUInt32LE(nbytes, 3);
  return Buffer.concat([head, Buffer.alloc(nbytes, byte), Buffer.from('.')]);
}

it('integers of any usual size are read, and longer ones refused', () => {
  expect(readPickle(integerOf(0, 0))).toBe(0);
  expect(readPickle(integerOf(1, 0xff))).toBe(-1);
  expect(readPickle(integerOf(9, 0x7f))).toBe(0x7f7f7f7f7f7f7f7f7fn);
  expect(readPickle(integerOf(9, 0x80))).toBe(0x808080808080808080n - 2n ** 72n);
  expect(readPickle(integerOf(2 ** 20, 0xff))).toBe(-1);
  expect(() => readPickle(integerOf(2 ** 20 + 1, 1))).toThrow(
    refusal('an integer of 1048577 bytes'),
  );
});

it('a list that is in many places is written and read once', () => {
  let value: unknown = new Map<unknown, unknown>([[1, { a: 'b' }]]);
  for (let level = 0; level < 300; level++) value = [value, { value }];
  const { bytes } = writePickle(value, false);
  expect(bytes.length).toBeLessThan(20_000);
  const [first, { value: second }] = readPickle(bytes) as [unknown, { value: unknown }];
  expect(first).toBe(second);
  const [deeper] = first as [unknown];
  expect(first).toEqual([deeper, { value: deeper }]);
});

it('a value within itself is refused', () => {
  const cycle: unknown[] = [];
  cycle.push(cycle, cycle);
  expect(() => writePickle(cycle, false)).toThrow(NotPortable);
  const pickled = Buffer.from([0x80, 5, 0x5d, 0x94, 0x28, 0x68, 0, 0x68, 0, 0x65, 0x2e]);
  expect(() => readPickle(pickled)).toThrow(refusal('a value nested too deeply, or within itself'));
});

it.each([
  ['C', [3]],
  ['C', [2 ** 20, 2 ** 20]],
  ['F', [3, 2]],
])('an array in the order %s of the shape %j without its bytes is refused', (order, shape) => {
  const text = (value: string): Buffer => {
    const bytes = Buffer.from(value);
    return Buffer.concat([Buffer.from([0x8c, bytes.length]), bytes]);
  };
  const name = (module: string, of: string): Buffer =>
    Buffer.concat([text(module), text(of), Buffer.from([0x93])]);
  const whole = (value: number): Buffer => {
    const bytes = Buffer.from([0x4a, 0, 0, 0, 0]);
    bytes.writeInt32LE(value, 1);
    return bytes;
  };
  const [tuple, reduce, mark] = [Buffer.from('t'), Buffer.from('R'), Buffer.from('(')];
  const array = Buffer.concat([
    ...[name('numpy.core.numeric', '_frombuffer'), mark],
    Buffer.from([0x43, 16, ...Buffer.alloc(16)]),
    ...[name('numpy', 'dtype'), mark, text('f8'), tuple, reduce],
    ...[mark, ...shape.map(whole), tuple, text(order), tuple, reduce, Buffer.from('.')],
  ]);
  expect(() => readPickle(array)).toThrow(refusal('a NumPy array without all of its bytes'));
});
