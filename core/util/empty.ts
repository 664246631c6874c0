/** Arrays up to this length keep their capacity when they are emptied. */
const KEPT_MAX = 64;

/**
 * Empties an array that is going to be filled again. `length = 0` gives up its capacity, which the
 * next `push` has to allocate again; popping keeps it.
 */
export function empty(array: unknown[]): void {
  if (array.length > KEPT_MAX) array.length = 0;
  else while (array.length > 0) array.pop();
}
