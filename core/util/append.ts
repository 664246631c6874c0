/** Lists up to this length get arrays of exactly their length. */
const EXACT_MAX = 4;

/**
 * Adds an item to a short list and returns the list, which may be another array.
 *
 * `push` onto a one-element array reserves room for seventeen. With several such lists in every task
 * that room would be most of the memory of a graph.
 */
export function append<T>(list: readonly T[], item: T): T[] {
  switch (list.length) {
    case 0:
      return [item];
    case 1:
      return [list[0] as T, item];
    case 2:
      return [list[0] as T, list[1] as T, item];
    case EXACT_MAX - 1:
      return [list[0] as T, list[1] as T, list[2] as T, item];
    default:
      (list as T[]).push(item);
      return list as T[];
  }
}
