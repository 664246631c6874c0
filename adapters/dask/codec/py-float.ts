/**
 * A float of Python that happens to be integral (`1.0`). It computes like a number, and leaves as a
 * float again; a plain `1` would leave as an int and change the type of what a user stored.
 * Numbers with a fraction, NaN and the infinities are plain numbers: they can be nothing but floats.
 */
export class PyFloat extends Number {}

/** The number in a decoded value; undefined when it is none. An int beyond 2^53 loses its last digits. */
export function toNumber(value: unknown): number | undefined {
  if (typeof value === 'number') return value;
  if (value instanceof PyFloat) return value.valueOf();
  return typeof value === 'bigint' ? Number(value) : undefined;
}
