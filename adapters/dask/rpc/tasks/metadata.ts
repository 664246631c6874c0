/** `set_metadata` and `get_metadata`: a tree of values that clients share. */
import type { DaskExtension } from '../../context.ts';
import { PythonException } from '../py-errors.ts';
import { asList, entriesOf, isFields } from '../../codec/values.ts';

/** What Dask sends for "no default was given": a text, and since 2023.4 a member of an enumeration. */
function isNoDefault(value: unknown): boolean {
  if (value === '__no_default__') return true;
  return isFields(value) && value['__Enum__'] === true && value['name'] === 'no_default';
}

/** Metadata lives as long as the scheduler. */
export function makeMetadata(): DaskExtension {
  const root = new Map<unknown, unknown>();
  return {
    rpc: {
      set_metadata: (request) => {
        const keys = keysOf(request['keys']);
        let branch = root;
        for (const key of keys.slice(0, -1)) {
          const below = branchOf(branch.get(key)) ?? new Map<unknown, unknown>();
          branch.set(key, below);
          branch = below;
        }
        branch.set(keys.at(-1), request['value'] ?? null);
        return null;
      },
      get_metadata: (request) => {
        try {
          return keysOf(request['keys']).reduce(below, root);
        } catch (error) {
          const { default: otherwise } = request;
          const isMissing = error instanceof PythonException && error.type === 'KeyError';
          if (!isMissing || otherwise === undefined || isNoDefault(otherwise)) throw error;
          return otherwise;
        }
      },
    },
  };
}

/** The value under a key. @throws PythonException as Python does for `value[key]` */
function below(value: unknown, key: unknown): unknown {
  const branch = branchOf(value);
  if (branch !== undefined) {
    if (branch.has(key)) return branch.get(key);
    throw new PythonException('KeyError', [keyArgument(key)]);
  }
  const list = asList(value);
  if (list === undefined || typeof key !== 'number') {
    const type = list === undefined ? 'value' : 'tuple';
    throw new PythonException('TypeError', `${type} indices must be integers or slices`);
  }
  const item = list.at(key);
  if (item === undefined) throw new PythonException('IndexError', 'tuple index out of range');
  return item;
}

function keyArgument(key: unknown): string | number {
  return typeof key === 'number' ? key : String(key);
}

function keysOf(keys: unknown): readonly unknown[] {
  return asList(keys) ?? [keys];
}

function branchOf(value: unknown): Map<unknown, unknown> | undefined {
  if (value instanceof Map) return value as Map<unknown, unknown>;
  return isFields(value) ? new Map(entriesOf(value)) : undefined;
}
