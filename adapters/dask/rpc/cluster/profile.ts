import { toNumber } from '../../codec/index.ts';
import type { Fields } from '../../context.ts';
import { entriesOf, isFields } from '../../codec/values.ts';

/** A profile that has seen nothing. */
const EMPTY: Fields = {
  count: 0,
  children: {},
  identifier: 'root',
  description: { filename: '', name: '', line_number: 0, line: '' },
};

/** One tree of call counts out of many: counts add up, frames are matched by their identifiers. */
export function mergeProfiles(profiles: readonly unknown[]): Fields {
  const trees = profiles.filter(isFields);
  const [first] = trees;
  if (first === undefined) return EMPTY;
  const groups = new Map<unknown, unknown[]>();
  let count = 0;
  for (const tree of trees) {
    count += toNumber(tree['count']) ?? 0;
    for (const [identifier, child] of entriesOf(tree['children'])) {
      const same = groups.get(identifier);
      if (same === undefined) groups.set(identifier, [child]);
      else same.push(child);
    }
  }
  const children = new Map(
    [...groups].map(([identifier, same]) => [identifier, mergeProfiles(same)]),
  );
  return { ...first, count, children };
}
