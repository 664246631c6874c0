/** `set_metadata` and `get_metadata`: a tree of values that clients share. */
import type { DaskExtension } from '../context.ts';
import { PythonException } from '../py-errors.ts';
import { asList, entriesOf, isFields } from '../values.ts';

/** What Dask sends for "no default was given". */
const NO_DEFAULT = '__no_default__';

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
        let found: unknown = root;
        for (const key of keysOf(request['keys'])) {
          const branch = branchOf(found);
          if (branch?.has(key) !== true) {
            const { default: otherwise } = request;
            if (otherwise !== NO_DEFAULT && otherwise !== undefined) return otherwise;
            throw new PythonException('KeyError', String(key));
          }
          found = branch.get(key);
        }
        return found;
      },
    },
  };
}

function keysOf(keys: unknown): readonly unknown[] {
  return asList(keys) ?? [keys];
}

function branchOf(value: unknown): Map<unknown, unknown> | undefined {
  if (value instanceof Map) return value as Map<unknown, unknown>;
  return isFields(value) ? new Map(entriesOf(value)) : undefined;
}
