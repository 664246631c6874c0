import { YardmasterError } from '../../../core/api/index.ts';
import type { Future } from '../future.ts';
import { checkNames, refuseOption } from './option-checks.ts';

const FAN_IN = 8;

/**
 * Submits a tree of calls, each for a group of neighbours; the last group of a level may be smaller, and a group of
 * one is passed to the next level as it is.
 *
 * @throws YardmasterError `ERR_GRAPH_INVALID`
 */
export function reduceTree(
  parts: readonly unknown[],
  options: { readonly fanIn?: number },
  submit: (group: readonly unknown[]) => Future<unknown>,
): Future<unknown> {
  checkNames(options, ['fanIn']);
  const { fanIn = FAN_IN } = options;
  if (!(Number.isInteger(fanIn) && fanIn >= 2)) {
    refuseOption('fanIn', fanIn, 'a whole number, at least 2');
  }
  if (parts.length === 0) {
    throw new YardmasterError(
      'ERR_GRAPH_INVALID',
      'reduce got no parts; there is nothing to combine',
    );
  }
  if (parts.length <= fanIn) return submit(parts);
  const made = new Set<Future<unknown>>();
  let level = parts;
  while (level.length > fanIn) {
    const next: unknown[] = [];
    for (let at = 0; at < level.length; at += fanIn) {
      const group = level.slice(at, at + fanIn);
      if (group.length === 1) next.push(group[0]);
      else {
        const future = submit(group);
        made.add(future);
        next.push(future);
      }
    }
    level = next;
  }
  const root = submit(level);
  // The tasks above them keep them.
  for (const future of made) future.release();
  return root;
}
