import { reprOf } from './key-table.ts';
import { Opaque, PyFloat } from './codec.ts';

/** Deeper values are cut. */
const PLAIN_DEPTH_MAX = 64;

/**
 * A decoded value as data that JSON, YAML and any msgpack can carry: names of fields become texts, sets
 * lists, and what only Python can read a text that says so.
 */
export function toPlain(value: unknown, depth = 0): unknown {
  if (value === undefined || value === null || typeof value !== 'object') {
    return typeof value === 'bigint' ? Number(value) : (value ?? null);
  }
  if (depth >= PLAIN_DEPTH_MAX) return '…';
  if (value instanceof PyFloat) return value.valueOf();
  if (value instanceof Opaque) return `<${value.nbytes} bytes of Python>`;
  if (value instanceof Uint8Array) return `<${value.length} bytes>`;
  if (Array.isArray(value)) return value.map((item) => toPlain(item, depth + 1));
  if (value instanceof Set)
    return Array.from(value as Set<unknown>, (item) => toPlain(item, depth + 1));
  const entries =
    value instanceof Map ? [...(value as Map<unknown, unknown>)] : Object.entries(value);
  return Object.fromEntries(
    entries.map(([name, item]) => [nameOf(name), toPlain(item, depth + 1)] as const),
  );
}

function nameOf(name: unknown): string {
  if (typeof name === 'string') return name;
  try {
    return reprOf(name);
  } catch {
    return '…';
  }
}
