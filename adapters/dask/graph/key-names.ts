/** Prefix and group of keys that are no texts, as Dask's `key_split` and `key_split_group` give them. */
import { groupOfKey, prefixOfKey } from '../../../core/api/index.ts';
import { reprOf } from '../bridge/key-table.ts';

/** The names that a task gets from its key. */
export interface KeyNames {
  readonly prefix: string;
  readonly group: string;
}

const OTHER: KeyNames = { prefix: 'Other', group: 'Other' };
let latest: { readonly first: string; readonly names: KeyNames | undefined } | undefined;

/**
 * The names of a tuple come from its first element, not from what the tuple looks like as a text:
 * `("x-abc-de", 0)` has the prefix `x-abc-de`, and the text `('x-abc-de', 0)` has `x-abc`. Undefined where
 * the scheduler finds the same names in the text. Tuples of one collection come in a row, so the latest
 * answer is kept.
 */
export function namesOfWireKey(key: unknown): KeyNames | undefined {
  if (typeof key === 'string') return undefined;
  if (key instanceof Uint8Array) return namesOfText(Buffer.from(key).toString());
  if (!Array.isArray(key) || key.length === 0) return OTHER;
  const first = key[0] as unknown;
  if (typeof first !== 'string') {
    return { prefix: prefixOfNested(first), group: reprOf(first) };
  }
  if (latest?.first !== first) latest = { first, names: namesOfTuple(first) };
  return latest.names;
}

function namesOfTuple(first: string): KeyNames | undefined {
  const names = { prefix: prefixOfKey(first), group: first };
  const asText = namesOfText(reprOf([first, 0]));
  return names.prefix === asText.prefix && names.group === asText.group ? undefined : names;
}

function namesOfText(text: string): KeyNames {
  return { prefix: prefixOfKey(text), group: groupOfKey(text) };
}

/** Of a tuple within a tuple the first element decides, however deep it is. */
function prefixOfNested(key: unknown): string {
  if (typeof key === 'string') return prefixOfKey(key);
  if (key instanceof Uint8Array) return prefixOfKey(Buffer.from(key).toString());
  return Array.isArray(key) && key.length > 0 ? prefixOfNested(key[0]) : OTHER.prefix;
}
