import { inspect } from 'node:util';
import { YardmasterError } from '../../core/api/index.ts';
import { isPlainObject } from '../../core/util/values.ts';
import type { KeyEntry } from './entry.ts';
import { Future, holdingOfFuture } from './future.ts';

/** All futures inside arrays, plain objects, Maps (values) and Sets, each once, in reading order. */
export function futuresIn(structure: unknown): Future<unknown>[] {
  const found = new Set<Future<unknown>>();
  const seen = new Set<object>();
  const visit = (value: unknown): void => {
    if (value instanceof Future) {
      found.add(value);
      return;
    }
    if (typeof value !== 'object' || value === null || seen.has(value)) return;
    seen.add(value);
    for (const part of partsOf(value)) visit(part);
  };
  visit(structure);
  return [...found];
}

/** The structure itself when it is an array of nothing but futures, which needs no search. */
export function asFutureList(structure: unknown): readonly Future<unknown>[] | undefined {
  if (!Array.isArray(structure)) return undefined;
  for (let index = 0; index < structure.length; index++) {
    if (!(structure[index] instanceof Future)) return undefined;
  }
  return structure as readonly Future<unknown>[];
}

/**
 * The entry of each future inside a structure.
 * @throws YardmasterError `ERR_GRAPH_INVALID` when it can hold no futures
 */
export function entriesIn(structure: unknown): KeyEntry[] {
  if (typeof structure !== 'object' || structure === null) {
    const got = inspect(structure, { depth: 0 });
    throw new YardmasterError(
      'ERR_GRAPH_INVALID',
      `a future, or a structure that holds futures, is wanted here, got ${got}`,
    );
  }
  return futuresIn(structure).map((future) => holdingOfFuture(future).entry);
}

/**
 * A copy of the structure with each future replaced. Instances of classes stay as they are.
 *
 * @param omit - a replacement that is left out of arrays, Sets, Maps and objects
 */
export function replaceFutures(
  structure: unknown,
  replacement: (future: Future<unknown>) => unknown,
  omit?: symbol,
): unknown {
  const copies = new Map<object, unknown>();
  const fill = <Made>(
    value: object,
    made: Made,
    parts: Iterable<readonly [unknown, unknown]>,
    put: (part: unknown, name: unknown) => void,
  ): Made => {
    copies.set(value, made);
    for (const [name, part] of parts) {
      const copied = copy(part);
      if (omit === undefined || copied !== omit) put(copied, name);
    }
    return made;
  };
  const copy = (value: unknown): unknown => {
    if (value instanceof Future) return replacement(value);
    if (typeof value !== 'object' || value === null) return value;
    const known = copies.get(value);
    if (known !== undefined) return known;
    if (Array.isArray(value)) {
      const made: unknown[] = [];
      return fill(value, made, value.entries(), (part) => made.push(part));
    }
    if (value instanceof Map) {
      const made = new Map<unknown, unknown>();
      return fill(value, made, value, (part, key) => made.set(key, part));
    }
    if (value instanceof Set) {
      const made = new Set<unknown>();
      return fill(value, made, value.entries(), (part) => made.add(part));
    }
    if (!isPlainObject(value)) return value;
    const made: Record<string, unknown> = {};
    return fill(value, made, Object.entries(value), (part, name) =>
      Object.defineProperty(made, name as string, {
        value: part,
        enumerable: true,
        writable: true,
        configurable: true,
      }),
    );
  };
  return copy(structure);
}

function partsOf(value: object): Iterable<unknown> {
  if (Array.isArray(value)) return value as unknown[];
  if (value instanceof Set) return value as ReadonlySet<unknown>;
  if (value instanceof Map) return (value as ReadonlyMap<unknown, unknown>).values();
  return isPlainObject(value) ? Object.values(value) : [];
}
