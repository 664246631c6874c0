import { isPlainObject } from '../../../core/util/plain-object.ts';

/** Nesting of arrays and objects that may travel; also what ends the walk through a cycle. */
export const DEPTH_MAX = 200;

/** Above it a number cannot count exactly any more: 2^53 and 2^53 + 1 look the same. */
const INTEGER_MAX = 2 ** 53;

/**
 * From here on no integer of msgpack can hold the value, so that every decoder reads it as a float.
 */
const FLOAT_ONLY_MIN = 2 ** 64;

/** A value that cannot travel. */
export interface Refusal {
  /** Field names and indices that lead to it. */
  readonly path: (string | number)[];
  readonly reason: string;
}

/**
 * Finds the first thing in a value that would not arrive as it is: what msgpack cannot express, and
 * what its encoder would change without a word (a Map becomes `{}`, a Float64Array bytes).
 * Cost: one visit of each value; nothing is allocated while all is well.
 */
export function findRefusal(value: unknown, depth = 0): Refusal | undefined {
  switch (typeof value) {
    case 'boolean':
    case 'undefined':
      return undefined;
    case 'number':
      return isUnsafeInteger(value)
        ? refuse(`the integer ${value} is beyond ±2^53 and would lose digits; send it as a string`)
        : undefined;
    case 'string':
      return isWellFormed(value)
        ? undefined
        : refuse('the string has half of a surrogate pair, which UTF-8 cannot carry');
    case 'object':
      return value === null ? undefined : refusalInObject(value, depth);
    case 'bigint':
      return refuse('a bigint cannot travel; send it as a string');
    case 'function':
      return refuse(`a function (${value.name || 'anonymous'}) cannot travel`);
    case 'symbol':
      return refuse('a symbol cannot travel');
  }
}

/** As text: `tasks[3].annotations.fn`. */
export function pathText(path: readonly (string | number)[]): string {
  let text = '';
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`;
    else if (/^[\p{L}_$][\p{L}\p{N}_$]*$/u.test(step)) text += text === '' ? step : `.${step}`;
    else text += `[${JSON.stringify(step)}]`;
  }
  return text;
}

/** An integer that a double does not hold exactly. */
export function isUnsafeInteger(value: number): boolean {
  const size = Math.abs(value);
  return size > INTEGER_MAX && size < FLOAT_ONLY_MIN;
}

function refusalInObject(value: object, depth: number): Refusal | undefined {
  if (value instanceof Uint8Array) return undefined;
  if (depth >= DEPTH_MAX) {
    return refuse(`it is nested deeper than ${DEPTH_MAX} levels (does it contain itself?)`);
  }
  if (Array.isArray(value)) return refusalInArray(value, depth);
  if (!isPlainObject(value)) {
    return refuse(`${describeClass(value)} cannot travel; send plain data made from it`);
  }
  return refusalInFields(value, depth);
}

function refusalInArray(value: readonly unknown[], depth: number): Refusal | undefined {
  for (let index = 0; index < value.length; index++) {
    const refusal = findRefusal(value[index], depth + 1);
    if (refusal !== undefined) {
      refusal.path.unshift(index);
      return refusal;
    }
  }
  return undefined;
}

function refusalInFields(
  value: Readonly<Record<string, unknown>>,
  depth: number,
): Refusal | undefined {
  for (const name in value) {
    const refusal =
      name === '__proto__'
        ? refuse('a field of this name cannot travel')
        : (findRefusal(value[name], depth + 1) ?? (isWellFormed(name) ? undefined : badName()));
    if (refusal !== undefined) {
      refusal.path.unshift(name);
      return refusal;
    }
  }
  return undefined;
}

function describeClass(value: object): string {
  const { constructor } = value as { readonly constructor?: { readonly name?: unknown } };
  const name = constructor?.name;
  return typeof name === 'string' && name !== ''
    ? `an instance of ${name}`
    : 'an object of a class';
}

function badName(): Refusal {
  return refuse('the name of the field has half of a surrogate pair, which UTF-8 cannot carry');
}

function refuse(reason: string): Refusal {
  return { path: [], reason };
}

/** In Node 20, but not yet in the type library of ES2023. */
export function isWellFormed(text: string): boolean {
  return (text as unknown as { isWellFormed(): boolean }).isWellFormed();
}
