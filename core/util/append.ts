/** Lists up to this length get arrays of exactly their length, or of the length that is expected. */
const EXACT_MAX = 4;

/**
 * Adds an item to a short list and returns the list, which may be another array; a list of one item
 * is never written to.
 *
 * `push` onto a one-element array reserves capacity for seventeen. With several such lists in every
 * task the spare capacity would be most of the memory of a graph.
 *
 * @param lengthExpected - expected final length, for which capacity is reserved with the second
 *   item. A wrong guess costs a copy, or memory
 */
export function append<T>(list: readonly T[], item: T, lengthExpected = 0): T[] {
  switch (list.length) {
    case 0:
      return [item];
    case 1:
      return pair(list[0] as T, item, lengthExpected);
    case 2:
      if (hasRoom(2, lengthExpected)) break;
      return [list[0] as T, list[1] as T, item];
    case EXACT_MAX - 1:
      if (hasRoom(EXACT_MAX - 1, lengthExpected)) break;
      return [list[0] as T, list[1] as T, list[2] as T, item];
  }
  (list as T[]).push(item);
  return list as T[];
}

function hasRoom(length: number, lengthExpected: number): boolean {
  return length < lengthExpected && lengthExpected <= EXACT_MAX;
}

/**
 * Two items, with capacity for the expected length: an array from which the last item is popped
 * keeps its capacity.
 */
function pair<T>(first: T, second: T, lengthExpected: number): T[] {
  if (!hasRoom(2, lengthExpected)) return [first, second];
  const list =
    lengthExpected === EXACT_MAX ? [first, second, second, second] : [first, second, second];
  while (list.length > 2) list.pop();
  return list;
}
