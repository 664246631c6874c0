import { YardmasterError } from '../../../core/api/index.ts';
import { toNumber } from './index.ts';
import type { Fields } from '../context.ts';

/** A text field. @throws YardmasterError `ERR_PROTOCOL` naming the field */
export function textIn(message: Fields, field: string): string {
  const value = message[field];
  if (typeof value === 'string') return value;
  throw wrong(field, 'a text', value);
}

/** A number field, whichever type Python gave it; undefined when it is missing or None. */
export function numberIn(message: Fields, field: string): number | undefined {
  const value = message[field];
  if (value === undefined || value === null) return undefined;
  const number = toNumber(value);
  if (number === undefined) throw wrong(field, 'a number', value);
  return number;
}

/** A list (tuple, list or set) field as an array; undefined when it is missing or None. */
export function listIn(message: Fields, field: string): readonly unknown[] | undefined {
  const value = message[field];
  if (value === undefined || value === null) return undefined;
  const list = asList(value);
  if (list === undefined) throw wrong(field, 'a list', value);
  return list;
}

/** A list, tuple or set of Python; undefined when it is none. */
export function asList(value: unknown): readonly unknown[] | undefined {
  if (Array.isArray(value)) return value as readonly unknown[];
  return value instanceof Set ? [...(value as Set<unknown>)] : undefined;
}

/** The entries of a dict of Python, whatever its keys are. Empty for None and what is no dict. */
export function entriesOf(value: unknown): readonly (readonly [key: unknown, value: unknown])[] {
  if (value instanceof Map) return [...(value as Map<unknown, unknown>)];
  return isFields(value) ? Object.entries(value) : [];
}

/** Whether it is a dict with text keys. */
export function isFields(value: unknown): value is Fields {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** Numbers of a dict by name; others are left out. */
export function amountsOf(value: unknown): Record<string, number> {
  const amounts: Record<string, number> = {};
  for (const [name, amount] of entriesOf(value)) {
    const number = toNumber(amount);
    if (typeof name === 'string' && number !== undefined) amounts[name] = number;
  }
  return amounts;
}

function wrong(field: string, what: string, got: unknown): YardmasterError {
  return new YardmasterError(
    'ERR_PROTOCOL',
    `the field ${field} has to be ${what}, not ${got === null ? 'None' : typeof got}`,
    { field },
  );
}
